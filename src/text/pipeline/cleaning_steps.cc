#include "text/pipeline/cleaning_steps.h"

#include <string>
#include <string_view>

#include "text/unicode/unicode.h"

namespace transept {
namespace {

// REQUIRES: not empty.
uint32_t first_character(std::string_view text) {
  size_t end = 0;
  return next_code_point(text, end);
}

class NmtStep final : public NormalizerStep {
 public:
  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override {
    std::string out;
    out.reserve(text.size());
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      const uint32_t c = next_code_point(text, end);
      if (is_removed(c)) continue;
      if (is_space(c)) {
        out.push_back(' ');
      } else {
        out.append(text, begin, end - begin);
      }
    }
    return out;
  }
  bool drops_front(std::string_view text) const override { return !text.empty() && is_removed(first_character(text)); }

 private:
  static bool is_removed(uint32_t c) {
    return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  }
  static bool is_space(uint32_t c) {
    return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  }
};

class BertStep final : public NormalizerStep {
 public:
  struct Options {
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
  };
  explicit BertStep(Options options) : options_(options) {}

  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override {
    if (options_.clean_text || options_.handle_chinese_chars) text = clean(text);
    if (options_.strip_accents) text = strip_accents(normalize(text, NormalForm::kNfd));
    return options_.lowercase ? lowercase(text) : text;
  }
  bool drops_front(std::string_view text) const override {
    if (text.empty()) return false;
    const uint32_t first = first_character(text);
    return (options_.clean_text && is_removed(first)) || (options_.strip_accents && is_nonspacing_mark(first));
  }

 private:
  static bool is_line_space(uint32_t c) { return c == '\t' || c == '\n' || c == '\r'; }
  static bool is_removed(uint32_t c) { return c == 0 || c == 0xFFFD || (!is_line_space(c) && is_control(c)); }
  static bool is_ideograph(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  }

  std::string clean(std::string_view text) const {
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      const uint32_t c = next_code_point(text, end);
      if (options_.clean_text && is_removed(c)) continue;
      const bool alone = options_.handle_chinese_chars && is_ideograph(c);
      if (alone) out.push_back(' ');
      if (options_.clean_text && is_white_space(c)) {
        out.push_back(' ');
      } else {
        out += text.substr(begin, end - begin);
      }
      if (alone) out.push_back(' ');
    }
    return out;
  }

  static std::string strip_accents(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      if (!is_nonspacing_mark(next_code_point(text, end))) out += text.substr(begin, end - begin);
    }
    return out;
  }

  Options options_;
};

}  // namespace

std::unique_ptr<NormalizerStep> make_nmt_step() { return std::make_unique<NmtStep>(); }

StatusOr<std::unique_ptr<NormalizerStep>> parse_bert_step(const JsonField& field) {
  BertStep::Options options;
  ASSIGN_OR_RETURN(options.clean_text, field.member("clean_text").bool_or(true));
  ASSIGN_OR_RETURN(options.handle_chinese_chars, field.member("handle_chinese_chars").bool_or(true));
  ASSIGN_OR_RETURN(options.lowercase, field.member("lowercase").bool_or(true));
  ASSIGN_OR_RETURN(options.strip_accents, field.member("strip_accents").bool_or(options.lowercase));
  return std::make_unique<BertStep>(options);
}

}  // namespace transept
