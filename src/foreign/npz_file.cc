#include "foreign/npz_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked_math.h"
#include "base/little_endian.h"
#include "base/quoted.h"
#include "foreign/file_cursor.h"
#include "weights/zip_directory.h"

namespace transept {
namespace {

constexpr std::string_view kEnding = ".npy", kMagic = "\x93NUMPY";
constexpr size_t kMaxEntries = 100'000, kMaxRank = 8, kMaxHeader = size_t{64} << 10;

struct Type {
  std::string_view descr, dtype;
  int64_t width;
};
constexpr Type kTypes[] = {{"f4", "F32", 4}, {"f2", "F16", 2}, {"f8", "F64", 8}, {"b1", "BOOL", 1},
                           {"i1", "I8", 1},  {"i2", "I16", 2}, {"i4", "I32", 4}, {"i8", "I64", 8},
                           {"u1", "U8", 1},  {"u2", "U16", 2}, {"u4", "U32", 4}, {"u8", "U64", 8}};

// Python's literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser final {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  struct Header {
    std::optional<std::string_view> descr;
    std::optional<bool> is_fortran;
    std::optional<std::vector<int64_t>> shape;
  };

  StatusOr<Header> parse() {
    Header header;
    RETURN_IF_ERROR(expect('{'));
    while (!take('}')) {
      ASSIGN_OR_RETURN(const std::string_view key, string());
      RETURN_IF_ERROR(expect(':'));
      RETURN_IF_ERROR(member(key, header));
      if (take(',')) continue;
      RETURN_IF_ERROR(expect('}'));
      break;
    }
    skip_spaces();
    if (!text_.empty()) return invalid_argument("its header goes on behind its dict");
    if (!header.descr.has_value()) return invalid_argument("its header has no descr");
    if (!header.is_fortran.has_value()) return invalid_argument("its header has no fortran_order");
    if (!header.shape.has_value()) return invalid_argument("its header has no shape");
    return header;
  }

 private:
  Status member(std::string_view key, Header& header) {
    const bool is_twice = (key == "descr" && header.descr.has_value()) ||
                          (key == "fortran_order" && header.is_fortran.has_value()) ||
                          (key == "shape" && header.shape.has_value());
    if (is_twice) return invalid_argument("its header has ", key, " twice");
    if (key == "descr") {
      skip_spaces();
      if (text_.starts_with('[')) return invalid_argument("is of structs, which are not read");
      ASSIGN_OR_RETURN(header.descr, string());
    } else if (key == "fortran_order") {
      ASSIGN_OR_RETURN(header.is_fortran, boolean());
    } else if (key == "shape") {
      ASSIGN_OR_RETURN(header.shape, tuple());
    } else {
      return invalid_argument("its header has the key ", in_quotes(key));
    }
    return ok_status();
  }

  void skip_spaces() {
    const size_t end = text_.find_first_not_of(" \n\t");
    text_.remove_prefix(std::min(end, text_.size()));
  }
  bool take(char c) {
    skip_spaces();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  Status expect(char c) {
    return take(c) ? ok_status()
                   : invalid_argument("its header has no '", std::string_view(&c, 1), "' where one is due");
  }
  StatusOr<std::string_view> string() {
    skip_spaces();
    const char quote = text_.empty() ? '\0' : text_.front();
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) return invalid_argument("its header has no string where one is due");
    const std::string_view found = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return found;
  }
  StatusOr<bool> boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    return invalid_argument("its header's fortran_order is neither True nor False");
  }
  StatusOr<std::vector<int64_t>> tuple() {
    std::vector<int64_t> sides;
    RETURN_IF_ERROR(expect('('));
    while (!take(')')) {
      ASSIGN_OR_RETURN(sides.emplace_back(), integer());
      if (sides.size() > kMaxRank) return invalid_argument("has more than ", kMaxRank, " dimensions");
      if (take(',')) continue;
      if (sides.size() == 1) return invalid_argument("its header's shape is no tuple");
      RETURN_IF_ERROR(expect(')'));
      break;
    }
    return sides;
  }
  StatusOr<int64_t> integer() {
    skip_spaces();
    int64_t value = 0;
    size_t count = 0;
    for (; count < text_.size() && text_[count] >= '0' && text_[count] <= '9'; ++count) {
      const std::optional<int64_t> tens = checked_mul<int64_t>(value, 10);
      const std::optional<int64_t> sum = tens.has_value() ? checked_add<int64_t>(*tens, text_[count] - '0') : tens;
      if (!sum.has_value()) return invalid_argument("its header's shape has a number beyond 64 bits");
      value = *sum;
    }
    if (count == 0) return invalid_argument("its header's shape has no number where one is due");
    text_.remove_prefix(count);
    return value;
  }

  std::string_view text_;
};

StatusOr<const Type*> type_of(std::string_view descr) {
  if (descr.find('O') != std::string_view::npos) {
    return invalid_argument("is of Python's objects (a pickle), which are never read");
  }
  if (descr.starts_with('>')) return invalid_argument("is big-endian (", in_quotes(descr), "), which is not read");
  const std::string_view name = descr.empty() ? descr : descr.substr(1);
  const auto* const found = std::ranges::find(kTypes, name, &Type::descr);
  const bool is_one_byte = found != std::end(kTypes) && found->width == 1;
  if (found == std::end(kTypes) || !(descr.front() == '<' || (descr.front() == '|' && is_one_byte))) {
    return invalid_argument("its type ", in_quotes(descr), " is not read");
  }
  return found;
}

StatusOr<NpzFile::Array> parse_array(std::span<const std::byte> bytes) {
  FileCursor cursor(bytes);
  const std::optional<std::string_view> magic = cursor.text(kMagic.size());
  const std::optional<uint8_t> major = cursor.number<uint8_t>(), minor = cursor.number<uint8_t>();
  if (magic != kMagic || !minor.has_value()) return invalid_argument("does not begin as a .npy");
  if (*major < 1 || *major > 3 || *minor != 0) {
    return invalid_argument("version ", int{*major}, ".", int{*minor}, " of .npy is not read");
  }
  std::optional<uint64_t> size;
  if (*major == 1) {
    if (const auto narrow = cursor.number<uint16_t>()) size = *narrow;
  } else if (const auto wide = cursor.number<uint32_t>()) {
    size = *wide;
  }
  const std::optional<std::string_view> text =
      size.has_value() && *size <= kMaxHeader ? cursor.text(*size) : std::nullopt;
  if (!text.has_value()) return invalid_argument("its header is cut off or over ", kMaxHeader, " bytes");
  ASSIGN_OR_RETURN(HeaderParser::Header header, HeaderParser(*text).parse());
  ASSIGN_OR_RETURN(const Type* const type, type_of(*header.descr));
  if (*header.is_fortran) return invalid_argument("is in Fortran's order, which is not read");
  std::optional<int64_t> wanted = type->width;
  for (const int64_t side : *header.shape) {
    if (side == 0) return invalid_argument("has a size of 0");
    if (wanted.has_value()) wanted = checked_mul(*wanted, side);
  }
  if (!wanted.has_value() || std::cmp_not_equal(*wanted, cursor.left())) {
    return invalid_argument("has ", cursor.left(), " bytes of data, which are not those of its shape");
  }
  return NpzFile::Array{type->dtype, *std::move(header.shape), *cursor.bytes(cursor.left())};
}

}  // namespace

bool begins_as_npz_file(std::span<const std::byte> bytes) {
  constexpr size_t kLocalHeader = 30, kNameLength = 26;
  if (!begins_as_zip(bytes) || bytes.size() < kLocalHeader) return false;
  const size_t size = little_endian<uint16_t>(bytes.data() + kNameLength);
  if (bytes.size() - kLocalHeader < size) return false;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + kLocalHeader, size).ends_with(kEnding);
}

StatusOr<NpzFile> NpzFile::parse(std::span<const std::byte> bytes, std::string_view file) {
  NpzFile npz;
  npz.file_ = file;
  StatusOr<std::vector<ZipEntry>> entries = read_zip_directory(bytes);
  if (!entries.ok()) return with_prefix(entries.status(), file);
  if (entries->size() > kMaxEntries) {
    return invalid_argument(file, ": ", entries->size(), " arrays are over the ", kMaxEntries, " allowed");
  }
  for (const ZipEntry& entry : *entries) {
    if (!entry.name.ends_with(kEnding)) return npz.error(entry.name, "is no .npy");
    const std::string_view name = entry.name.substr(0, entry.name.size() - kEnding.size());
    StatusOr<Array> array = parse_array(entry.data);
    if (!array.ok()) return npz.error(name, error_message(array.status()));
    npz.arrays_.emplace(name, *std::move(array));
  }
  return npz;
}

const NpzFile::Array* NpzFile::find(std::string_view name) const {
  const auto found = arrays_.find(name);
  return found == arrays_.end() ? nullptr : &found->second;
}

Status NpzFile::error(std::string_view name, std::string_view reason) const {
  return with_param(invalid_argument(file_, ": array ", in_quotes(name, 200), ": ", reason), name);
}

}  // namespace transept
