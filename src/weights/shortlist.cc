#include "weights/shortlist.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked_math.h"
#include "base/mmap_file.h"

namespace transept {
namespace {

constexpr uint64_t kMagic = 0xF11A48D5013417F5;
constexpr size_t kHashedFrom = 2 * sizeof(uint64_t);  // behind magic and checksum

struct Header {
  uint64_t magic, checksum, first, best, num_offsets, num_words;
};
static_assert(sizeof(Header) == 48);

// What a file without the magic is, where its first bytes tell.
std::string_view instead(std::span<const std::byte> bytes) {
  if (bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b}) {
    return ", but a gzip file: a shortlist in text form, it seems; marian-conv --shortlist makes a binary one "
           "(lex*.s2t.bin) of it, which is what is read";
  }
  const bool is_text = !bytes.empty() && std::ranges::all_of(bytes.first(std::min<size_t>(bytes.size(), 64)),
                                                             [](std::byte b) { return b >= std::byte{9}; });
  if (is_text) {
    return ", but text: marian-conv --shortlist makes a binary shortlist (lex*.s2t.bin) of a text, which is what is "
           "read";
  }
  return "";
}

Status field(std::string_view file, std::string_view name, const std::string& reason) {
  return with_param(invalid_argument(file, ": ", name, ": ", reason), name);
}

StatusOr<Header> read_header(std::span<const std::byte> bytes, std::string_view file) {
  uint64_t magic = 0;
  if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  if (magic != kMagic) return field(file, "magic", str_cat("not a binary shortlist of Marian's", instead(bytes)));
  if (bytes.size() < sizeof(Header)) {
    return field(file, "header", str_cat("only ", bytes.size(), " bytes of its ", sizeof(Header)));
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::optional<uint64_t> offsets = checked_mul<uint64_t>(header.num_offsets, sizeof(uint64_t));
  const std::optional<uint64_t> words = checked_mul<uint64_t>(header.num_words, sizeof(uint32_t));
  const std::optional<uint64_t> lists =
      offsets.has_value() && words.has_value() ? checked_add(*offsets, *words) : std::nullopt;
  if (!lists.has_value() || *lists != bytes.size() - sizeof(Header)) {
    return field(file, "header",
                 str_cat(header.num_offsets, " offsets and ", header.num_words, " words are not what the file's ",
                         bytes.size(), " bytes hold"));
  }
  if (header.num_offsets == 0) return field(file, "offsets", "there are none");
  return header;
}

Status check_offsets(std::span<const uint64_t> offsets, uint64_t num_words, std::string_view file) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    const uint64_t least = i == 0 ? 0 : offsets[i - 1];
    if (offsets[i] < least || offsets[i] > num_words) {
      return field(file, "offsets",
                   str_cat("offset ", i, " is ", offsets[i], ", not between the one before it (", least, ") and the ",
                           num_words, " words"));
    }
  }
  if (offsets.back() == num_words) return ok_status();
  return field(file, "offsets", str_cat("the last one is ", offsets.back(), ", but there are ", num_words, " words"));
}

}  // namespace

uint64_t shortlist_checksum(std::span<const std::byte> bytes) {
  uint64_t hash = 0;
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    hash ^= value + 0x9e3779b9 + (hash << 6) + (hash >> 2);
  }
  return hash;
}

StatusOr<Shortlist> Shortlist::open(const std::string& path, const Vocabularies& vocabularies) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MmapFile> file, MmapFile::open(path));
  return parse(file->bytes(), path, vocabularies);
}

StatusOr<Shortlist> Shortlist::parse(std::span<const std::byte> bytes, std::string_view file,
                                     const Vocabularies& vocabularies) {
  ASSIGN_OR_RETURN(const Header header, read_header(bytes, file));
  if (const uint64_t sum = shortlist_checksum(bytes.subspan(kHashedFrom)); sum != header.checksum) {
    return field(file, "checksum", str_cat("is ", header.checksum, ", that of its bytes is ", sum, ": damaged"));
  }
  if (static_cast<int64_t>(header.num_offsets - 1) > vocabularies.source) {
    return field(file, "offsets",
                 str_cat("lists for ", header.num_offsets - 1, " source ids, but the model has ", vocabularies.source,
                         ": it is another model's"));
  }
  Shortlist out;
  out.vocabularies_ = vocabularies;
  out.first_ = static_cast<int64_t>(std::min(header.first, static_cast<uint64_t>(vocabularies.target)));
  out.best_ = static_cast<int64_t>(std::min(header.best, static_cast<uint64_t>(vocabularies.target)));
  out.offsets_.resize(header.num_offsets);
  std::memcpy(out.offsets_.data(), bytes.data() + sizeof(Header), header.num_offsets * sizeof(uint64_t));
  RETURN_IF_ERROR(check_offsets(out.offsets_, header.num_words, file));
  out.words_.resize(header.num_words);
  if (header.num_words > 0) {
    std::memcpy(out.words_.data(), bytes.data() + sizeof(Header) + header.num_offsets * sizeof(uint64_t),
                header.num_words * sizeof(uint32_t));
  }
  for (size_t i = 0; i < out.words_.size(); ++i) {
    // As uint32: what is negative is too large.
    if (const auto id = static_cast<uint32_t>(out.words_[i]); id >= vocabularies.target) {
      return field(file, "words",
                   str_cat("word ", i, " is id ", id, ", but the model has ", vocabularies.target, " target ids"));
    }
  }
  return out;
}

void Shortlist::set_of(std::span<const int32_t> source_ids, std::span<const int32_t> also,
                       std::vector<int32_t>& out) const {
  out.clear();
  for (int32_t id = 0; id < first_; ++id) out.push_back(id);
  const auto add = [&](int32_t id) {
    if (id >= first_ && id < vocabularies_.target) out.push_back(id);
  };
  for (const int32_t id : source_ids) {
    if (vocabularies_.is_shared) add(id);
    if (id < 0 || id >= num_lists()) continue;
    const auto place = static_cast<size_t>(id);
    for (uint64_t i = offsets_[place]; i < offsets_[place + 1]; ++i) add(words_[i]);
  }
  for (const int32_t id : also) add(id);
  const auto rest = out.begin() + first_;
  std::sort(rest, out.end());
  out.erase(std::unique(rest, out.end()), out.end());
}

}  // namespace transept
