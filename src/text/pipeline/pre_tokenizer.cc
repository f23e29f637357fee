#include "text/pipeline/pre_tokenizer.h"

#include <utility>

#include "text/pipeline/metaspace.h"
#include "text/pipeline/text_pattern.h"
#include "text/subword/byte_level.h"
#include "text/unicode/text_growth.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr size_t kMaxSteps = 64;

// What becomes of the text that a pattern matches.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Part {
  TextRange range;
  bool is_match;
};

// The matches and what lies between them.
std::vector<Part> cover(std::string_view text, const std::vector<TextRange>& matches, bool invert) {
  std::vector<Part> parts;
  size_t covered = 0;
  for (const TextRange match : matches) {
    if (covered != match.begin) parts.push_back({{covered, match.begin}, invert});
    parts.push_back({match, !invert});
    covered = match.end;
  }
  if (covered != text.size()) parts.push_back({{covered, text.size()}, invert});
  return parts;
}

// Joins each part to the one before where `joins(part, whether the one before was a match)`.
template <typename Joins>
std::vector<Part> join_parts(const std::vector<Part>& parts, Joins joins) {
  std::vector<Part> joined;
  bool previous_match = false;
  for (const Part& part : parts) {
    if (!joined.empty() && joins(part, previous_match)) {
      joined.back().range.end = part.range.end;
    } else {
      joined.push_back(part);
    }
    previous_match = part.is_match;
  }
  return joined;
}

std::vector<Part> join_to_next(const std::vector<Part>& parts) {
  std::vector<Part> joined;
  bool next_match = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!joined.empty() && part->is_match && !next_match) {
      joined.back().range.begin = part->range.begin;
    } else {
      joined.push_back(*part);
    }
    next_match = part->is_match;
  }
  return {joined.rbegin(), joined.rend()};
}

std::vector<Part> apply_behavior(std::vector<Part> parts, Behavior behavior) {
  switch (behavior) {
    case Behavior::kIsolated: return parts;
    case Behavior::kRemoved: std::erase_if(parts, [](const Part& part) { return part.is_match; }); return parts;
    case Behavior::kContiguous:
      return join_parts(parts, [](const Part& part, bool previous_match) { return part.is_match == previous_match; });
    case Behavior::kMergedWithPrevious:
      return join_parts(parts, [](const Part& part, bool previous_match) { return part.is_match && !previous_match; });
    case Behavior::kMergedWithNext: return join_to_next(parts);
  }
  return parts;
}

// Splits each word by what `find_all(word)` matches in it.
template <typename FindAll>
Status split_words(Words& words, FindAll find_all, Behavior behavior, bool invert) {
  std::vector<TextRange> ranges;
  for (const TextRange word : words.ranges) {
    const std::string_view text = word.of(words.text);
    ASSIGN_OR_RETURN(const std::vector<TextRange> matches, find_all(text));
    for (const Part& part : apply_behavior(cover(text, matches, invert), behavior)) {
      if (part.range.size() > 0) ranges.push_back({word.begin + part.range.begin, word.begin + part.range.end});
    }
  }
  words.ranges = std::move(ranges);
  return ok_status();
}

// Each character that `wanted` is a match of its own.
template <typename Wanted>
std::vector<TextRange> find_characters(std::string_view text, Wanted wanted) {
  std::vector<TextRange> matches;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    if (wanted(next_code_point(text, end))) matches.push_back({begin, end});
  }
  return matches;
}

class SplitStep final : public PreTokenizer::Step {
 public:
  SplitStep(std::unique_ptr<TextPattern> pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  Status apply(Words& words, SearchBudget& budget) const override {
    const auto find_all = [&](std::string_view text) { return pattern_->find_all(text, budget); };
    return split_words(words, find_all, behavior_, invert_);
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  Behavior behavior_;
  bool invert_;
};

// Splits at the characters that a predicate of unicode.h names.
class CharacterStep final : public PreTokenizer::Step {
 public:
  CharacterStep(bool (*wanted)(uint32_t), Behavior behavior) : wanted_(wanted), behavior_(behavior) {}

  Status apply(Words& words, SearchBudget& /*budget*/) const override {
    const auto find_all = [this](std::string_view text) -> StatusOr<std::vector<TextRange>> {
      return find_characters(text, wanted_);
    };
    return split_words(words, find_all, behavior_, false);
  }

 private:
  bool (*wanted_)(uint32_t);
  Behavior behavior_;
};

// \w+|[^\w\s]+ with all else removed.
class WhitespaceStep final : public PreTokenizer::Step {
 public:
  Status apply(Words& words, SearchBudget& /*budget*/) const override {
    enum class Kind { kSpace, kWord, kOther };
    const auto kind_of = [](uint32_t c) {
      if (is_word_character(c)) return Kind::kWord;
      return is_white_space(c) ? Kind::kSpace : Kind::kOther;
    };
    std::vector<TextRange> ranges;
    for (const TextRange word : words.ranges) {
      const std::string_view text = std::string_view(words.text).substr(0, word.end);
      Kind run = Kind::kSpace;
      for (size_t begin = word.begin, end = begin; begin < word.end; begin = end) {
        const Kind kind = kind_of(next_code_point(text, end));
        if (kind != Kind::kSpace && kind == run) {
          ranges.back().end = end;
        } else if (kind != Kind::kSpace) {
          ranges.push_back({begin, end});
        }
        run = kind;
      }
    }
    words.ranges = std::move(ranges);
    return ok_status();
  }
};

// At white space, which is removed, and around each mark of punctuation.
class BertStep final : public PreTokenizer::Step {
 public:
  Status apply(Words& words, SearchBudget& budget) const override {
    RETURN_IF_ERROR(CharacterStep(is_white_space, Behavior::kRemoved).apply(words, budget));
    return CharacterStep(is_punctuation, Behavior::kIsolated).apply(words, budget);
  }
};

class ByteLevelStep final : public PreTokenizer::Step {
 public:
  ByteLevelStep(bool add_prefix_space, bool use_regex) : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  Status apply(Words& words, SearchBudget& /*budget*/) const override {
    Words out{.text = {}, .ranges = {}, .at_front = words.at_front};
    out.text.reserve(words.text.size() + words.text.size() / 4);
    std::vector<TextRange> parts;
    std::string with_space;
    for (const TextRange word : words.ranges) {
      std::string_view text = word.of(words.text);
      if (add_prefix_space_ && !text.starts_with(' ')) {
        with_space = str_cat(" ", text);
        text = with_space;
      }
      parts.clear();
      if (use_regex_) {
        split_gpt2(text, {0, text.size()}, parts);
      } else {
        parts.push_back({0, text.size()});
      }
      for (const TextRange part : parts) {
        const size_t begin = out.text.size();
        append_byte_characters(part.of(text), out.text);
        out.ranges.push_back({begin, out.text.size()});
      }
    }
    words = std::move(out);
    return ok_status();
  }

 private:
  bool add_prefix_space_, use_regex_;
};

// Spaces become the replacement, and words begin with one.
class MetaspaceStep final : public PreTokenizer::Step {
 public:
  explicit MetaspaceStep(Metaspace metaspace) : metaspace_(std::move(metaspace)) {}

  Status apply(Words& words, SearchBudget& /*budget*/) const override {
    Words out{.text = {}, .ranges = {}, .at_front = words.at_front};
    out.text.reserve(words.text.size() + words.text.size() / 2);
    for (const TextRange word : words.ranges) {
      append_word(word.of(words.text), words.at_front && word.begin == 0, out);
    }
    words = std::move(out);
    return ok_status();
  }
  bool asks_for_front() const override { return metaspace_.scheme == Metaspace::Scheme::kFirst; }

 private:
  void append_word(std::string_view word, bool is_first, Words& out) const {
    const std::string& mark = metaspace_.replacement;
    size_t begin = out.text.size();
    const auto end_word = [&] {
      if (out.text.size() > begin) out.ranges.push_back({begin, out.text.size()});
      begin = out.text.size();
    };
    const bool prepends =
        metaspace_.scheme == Metaspace::Scheme::kAlways || (metaspace_.scheme == Metaspace::Scheme::kFirst && is_first);
    if (prepends && !word.starts_with(' ') && !word.starts_with(mark)) out.text += mark;
    while (!word.empty()) {
      const bool is_space = word.front() == ' ';
      if (is_space || word.starts_with(mark)) {
        // What was prepended is no word of its own.
        if (metaspace_.split) end_word();
        out.text += mark;
        word.remove_prefix(is_space ? 1 : mark.size());
      } else {
        out.text.push_back(word.front());
        word.remove_prefix(1);
      }
    }
    end_word();
  }

  Metaspace metaspace_;
};

StatusOr<Behavior> parse_behavior(const JsonField& field) {
  constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {{"Removed", Behavior::kRemoved},
                                                                  {"Isolated", Behavior::kIsolated},
                                                                  {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                                                                  {"MergedWithNext", Behavior::kMergedWithNext},
                                                                  {"Contiguous", Behavior::kContiguous}};
  ASSIGN_OR_RETURN(const std::string wanted, field.as_string());
  for (const auto& [name, behavior] : kBehaviors) {
    if (wanted == name) return behavior;
  }
  return field.error(
      str_cat("\"", wanted, "\" is none of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous"));
}

using StepOr = StatusOr<std::unique_ptr<PreTokenizer::Step>>;

StepOr parse_split(const JsonField& field) {
  ASSIGN_OR_RETURN(std::unique_ptr<TextPattern> pattern, TextPattern::parse(field.member("pattern")));
  ASSIGN_OR_RETURN(const Behavior behavior, parse_behavior(field.member("behavior")));
  ASSIGN_OR_RETURN(const bool invert, field.member("invert").bool_or(false));
  return std::make_unique<SplitStep>(std::move(pattern), behavior, invert);
}

StepOr parse_byte_level(const JsonField& field, std::optional<bool> add_prefix_space) {
  ASSIGN_OR_RETURN(const bool own, field.member("add_prefix_space").bool_or(true));
  ASSIGN_OR_RETURN(const bool use_regex, field.member("use_regex").bool_or(true));
  return std::make_unique<ByteLevelStep>(add_prefix_space.value_or(own), use_regex);
}

StepOr parse_metaspace(const JsonField& field) {
  ASSIGN_OR_RETURN(Metaspace metaspace, Metaspace::parse(field));
  return std::make_unique<MetaspaceStep>(std::move(metaspace));
}

StepOr parse_step(const JsonField& field, std::optional<bool> add_prefix_space) {
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "ByteLevel") return parse_byte_level(field, add_prefix_space);
  if (type == "Metaspace") return parse_metaspace(field);
  if (type == "Split") return parse_split(field);
  if (type == "Whitespace") return std::make_unique<WhitespaceStep>();
  if (type == "WhitespaceSplit") return std::make_unique<CharacterStep>(is_white_space, Behavior::kRemoved);
  if (type == "BertPreTokenizer") return std::make_unique<BertStep>();
  if (type == "Digits") {
    ASSIGN_OR_RETURN(const bool individual, field.member("individual_digits").bool_or(false));
    return std::make_unique<CharacterStep>(is_numeric, individual ? Behavior::kIsolated : Behavior::kContiguous);
  }
  if (type == "Punctuation") {
    Behavior behavior = Behavior::kIsolated;
    if (field.member("behavior").present()) {
      ASSIGN_OR_RETURN(behavior, parse_behavior(field.member("behavior")));
    }
    return std::make_unique<CharacterStep>(is_punctuation, behavior);
  }
  return field.member("type").not_supported(type);
}

}  // namespace

StatusOr<PreTokenizer> PreTokenizer::parse(const JsonField& field, std::optional<bool> add_prefix_space) {
  PreTokenizer pre_tokenizer;
  if (field.present()) RETURN_IF_ERROR(pre_tokenizer.append(field, add_prefix_space));
  return pre_tokenizer;
}

PreTokenizer PreTokenizer::byte_level(bool add_prefix_space) {
  PreTokenizer pre_tokenizer;
  pre_tokenizer.steps_.push_back(std::make_unique<ByteLevelStep>(add_prefix_space, /*use_regex=*/true));
  return pre_tokenizer;
}

Status PreTokenizer::append(const JsonField& field, std::optional<bool> add_prefix_space) {
  RETURN_IF_ERROR(field.expect_object());
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "Sequence") {
    const JsonField list = field.member("pretokenizers");
    RETURN_IF_ERROR(list.expect_list());
    for (size_t i = 0; i < list.json().as_array().size(); ++i) RETURN_IF_ERROR(append(list.item(i), std::nullopt));
    return ok_status();
  }
  if (steps_.size() >= kMaxSteps) return field.error("more than 64 steps");
  ASSIGN_OR_RETURN(std::unique_ptr<Step> step, parse_step(field, add_prefix_space));
  asks_for_front_ |= step->asks_for_front();
  steps_.push_back(std::move(step));
  return ok_status();
}

StatusOr<Words> PreTokenizer::split(std::string_view text, bool at_front, SearchBudget& budget) const {
  Words words{.text = std::string(text), .ranges = {}, .at_front = at_front};
  if (!text.empty()) words.ranges.push_back({0, text.size()});
  for (const std::unique_ptr<Step>& step : steps_) {
    RETURN_IF_ERROR(step->apply(words, budget));
    if (grew_too_much(text.size(), words.text.size())) return grew_too_much_error();
  }
  return words;
}

}  // namespace transept
