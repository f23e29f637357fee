#include "text/pipeline/text_pattern.h"

#include <string>

#include "text/subword/byte_level.h"
#include "text/unicode/regex.h"

namespace transept {
namespace {

class StringPattern final : public TextPattern {
 public:
  explicit StringPattern(std::string wanted) : wanted_(std::move(wanted)) {}

  StatusOr<std::vector<TextRange>> find_all(std::string_view text, SearchBudget& /*budget*/) const override {
    std::vector<TextRange> matches;
    for (size_t at = text.find(wanted_); at != std::string_view::npos; at = text.find(wanted_, at + wanted_.size())) {
      matches.push_back({at, at + wanted_.size()});
    }
    return matches;
  }

 private:
  std::string wanted_;
};

class RegexPattern final : public TextPattern {
 public:
  explicit RegexPattern(Regex regex) : regex_(std::move(regex)) {}
  StatusOr<std::vector<TextRange>> find_all(std::string_view text, SearchBudget& budget) const override {
    return regex_.find_all(text, budget);
  }

 private:
  Regex regex_;
};

// Many files write GPT-2's pattern out: it need not run as a regular expression.
class Gpt2SplitPattern final : public TextPattern {
 public:
  StatusOr<std::vector<TextRange>> find_all(std::string_view text, SearchBudget& /*budget*/) const override {
    std::vector<TextRange> matches;
    split_gpt2(text, {0, text.size()}, matches);
    return matches;
  }
};

// std::string_view::find takes time proportional to the product of both lengths at worst.
constexpr size_t kMaxStringPatternBytes = 1024;

}  // namespace

StatusOr<std::unique_ptr<TextPattern>> TextPattern::parse(const JsonField& field) {
  RETURN_IF_ERROR(field.expect_object());
  if (field.member("String").present()) {
    ASSIGN_OR_RETURN(std::string wanted, field.member("String").as_string());
    if (wanted.empty()) return field.member("String").not_supported("an empty pattern");
    if (wanted.size() > kMaxStringPatternBytes) return field.member("String").error("longer than 1024 bytes");
    return std::make_unique<StringPattern>(std::move(wanted));
  }
  ASSIGN_OR_RETURN(const std::string pattern, field.member("Regex").as_string());
  if (pattern == kGpt2Pattern) return std::make_unique<Gpt2SplitPattern>();
  StatusOr<Regex> regex = Regex::compile(pattern);
  if (!regex.ok()) {
    const Status status = field.member("Regex").error(error_message(regex.status()));
    return Status(regex.status().code(), error_message(status));
  }
  return std::make_unique<RegexPattern>(std::move(regex).value());
}

}  // namespace transept
