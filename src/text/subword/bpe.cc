#include "text/subword/bpe.h"

#include "base/quoted.h"
#include "base/utf8.h"
#include "text/subword/byte_token.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr int32_t kNone = -1;

constexpr uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

// The list of merges as SymbolMerger asks for it.
class BpeModel::Pairs final {
 public:
  using Symbol = BpeModel::Symbol;
  using Rank = int32_t;
  struct Found {
    int32_t rank, tag;
  };

  explicit Pairs(const BpeModel& model) : model_(model) {}

  std::optional<Found> find(const Symbol& left, const Symbol& right) const {
    const Merge* merge = model_.find_merge(left.id, right.id);
    if (merge == nullptr) return std::nullopt;
    return Found{merge->rank, merge->id};
  }
  // The reference asks only whether they still become the same token.
  bool is_current(const Symbol& left, const Symbol& right, int32_t tag) const {
    const Merge* merge = model_.find_merge(left.id, right.id);
    return merge != nullptr && merge->id == tag;
  }
  void join(Symbol& left, Symbol& /*right*/, int32_t tag) const { left.id = tag; }

 private:
  const BpeModel& model_;
};

struct BpeModel::Workspace {
  std::vector<Symbol> symbols;
  SymbolMerger<Pairs> merger;
  std::string spelling;
};

BpeModel::BpeModel(Vocabulary vocabulary, Options options)
    : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  if (!options_.unk_token.empty()) unk_id_ = vocabulary_.find(options_.unk_token);
  for (uint32_t c = 0; c < id_of_low_character_.size(); ++c) {
    std::string character;
    append_utf8(character, c);
    id_of_low_character_[c] = vocabulary_.find(character).value_or(kNone);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    id_of_byte_[byte] = vocabulary_.find(byte_token(static_cast<uint8_t>(byte))).value_or(kNone);
  }
}

Status BpeModel::add_merge(std::string_view left, std::string_view right) {
  const std::optional<int32_t> left_id = find_token(left);
  if (!left_id.has_value()) return invalid_argument(in_quotes(left), " is not in the vocabulary");
  const std::optional<int32_t> right_id = find_token(right);
  if (!right_id.has_value()) return invalid_argument(in_quotes(right), " is not in the vocabulary");
  const size_t prefix = options_.continuing_subword_prefix.size();
  if (right.size() < prefix) {
    return invalid_argument(in_quotes(right), " does not begin with the continuing_subword_prefix");
  }
  right.remove_prefix(prefix);
  // Most files number tokens as merges make them. What is guessed is found without a look into the table.
  if (!vocabulary_.is_only_token(next_joined_id_, left, right)) {
    const std::string joined = str_cat(left, right);
    const std::optional<int32_t> joined_id = vocabulary_.find(joined);
    if (!joined_id.has_value()) return invalid_argument(in_quotes(joined), " is not in the vocabulary");
    next_joined_id_ = *joined_id;
  }
  merges_.insert_or_assign(pair_key(*left_id, *right_id), Merge{.rank = num_merges_++, .id = next_joined_id_++});
  return ok_status();
}

std::optional<int32_t> BpeModel::find_character(std::string_view character) const {
  size_t length = 0;
  const uint32_t c = next_code_point(character, length);
  if (c >= id_of_low_character_.size()) return vocabulary_.find(character);
  if (id_of_low_character_[c] == kNone) return std::nullopt;
  return id_of_low_character_[c];
}

std::optional<int32_t> BpeModel::find_token(std::string_view text) const {
  if (text.empty() || text.size() > 2) return vocabulary_.find(text);
  const Utf8Step first = read_utf8(text);  // of merges.txt, which may hold any bytes
  const bool is_character = first.kind == Utf8Step::Kind::kValid && static_cast<size_t>(first.num_bytes) == text.size();
  return is_character ? find_character(text) : vocabulary_.find(text);
}

const BpeModel::Merge* BpeModel::find_merge(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

Status BpeModel::append_ids(const Words& words, std::vector<int32_t>& ids) const {
  Workspace work;
  for (const TextRange range : words.ranges) {
    if (range.size() > 0) RETURN_IF_ERROR(append_word(range.of(words.text), work, ids));
  }
  return ok_status();
}

Status BpeModel::append_word(std::string_view word, Workspace& work, std::vector<int32_t>& ids) const {
  if (options_.ignore_merges) {
    if (const std::optional<int32_t> id = vocabulary_.find(word)) {
      ids.push_back(*id);
      return ok_status();
    }
  }
  RETURN_IF_ERROR(start_word(word, work));
  using Merger = SymbolMerger<Pairs>;
  if (work.symbols.size() > Merger::kMaxSymbols) return invalid_argument("a word of this text is too long");
  work.merger.merge(work.symbols, Pairs(*this));
  for (const Symbol& symbol : work.symbols) {
    if (symbol.previous != Merger::kJoined) ids.push_back(symbol.id);
  }
  return ok_status();
}

// One symbol a character. An unknown row waits until a known character comes; bytes of a fallback overtake it, as they
// do in the reference.
Status BpeModel::start_word(std::string_view word, Workspace& work) const {
  work.symbols.clear();
  const auto add = [&](int32_t id) { work.symbols.push_back({.id = id}); };
  const bool has_affixes = !options_.continuing_subword_prefix.empty() || !options_.end_of_word_suffix.empty();
  bool unk_waits = false;
  for (size_t begin = 0, end = 0; begin < word.size(); begin = end) {
    next_code_point(word, end);
    std::string_view character = word.substr(begin, end - begin);
    if (has_affixes) {
      work.spelling.clear();
      if (begin > 0) work.spelling += options_.continuing_subword_prefix;
      work.spelling += character;
      if (end == word.size()) work.spelling += options_.end_of_word_suffix;
      character = work.spelling;
    }
    if (const auto id = has_affixes ? vocabulary_.find(character) : find_character(character)) {
      if (unk_waits) add(*unk_id_);
      unk_waits = false;
      add(*id);
      continue;
    }
    if (options_.byte_fallback && start_bytes(character, work)) continue;
    if (options_.unk_token.empty()) continue;
    if (!unk_id_.has_value()) return invalid_argument("the unk_token of this tokenizer is not in its vocabulary");
    if (unk_waits && !options_.fuse_unk) add(*unk_id_);
    unk_waits = true;
  }
  if (unk_waits) add(*unk_id_);
  return ok_status();
}

bool BpeModel::start_bytes(std::string_view character, Workspace& work) const {
  for (const char c : character) {
    if (id_of_byte_[static_cast<uint8_t>(c)] == kNone) return false;
  }
  for (const char c : character) work.symbols.push_back({.id = id_of_byte_[static_cast<uint8_t>(c)]});
  return true;
}

}  // namespace transept
