#include "text/pipeline/normalizer.h"

#include <optional>
#include <utility>

#include "base/base64.h"
#include "text/pipeline/cleaning_steps.h"
#include "text/pipeline/text_pattern.h"
#include "text/unicode/precompiled_charsmap.h"
#include "text/unicode/text_growth.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

// Every step walks the text: a file may not name thousands.
constexpr size_t kMaxSteps = 64;

class NormalFormStep final : public Normalizer::Step {
 public:
  explicit NormalFormStep(NormalForm form) : form_(form) {}
  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override {
    return normalize(text, form_);
  }

 private:
  NormalForm form_;
};

class LowercaseStep final : public Normalizer::Step {
 public:
  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override { return lowercase(text); }
};

// The character that the text begins with; nothing if it is empty.
std::optional<uint32_t> first_character(std::string_view text) {
  size_t end = 0;
  if (text.empty()) return std::nullopt;
  return next_code_point(text, end);
}

bool is_mark_at_front(std::string_view text) {
  const std::optional<uint32_t> first = first_character(text);
  return first.has_value() && is_mark(*first);
}

class StripAccentsStep final : public Normalizer::Step {
 public:
  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override {
    std::string out;
    out.reserve(text.size());
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      if (!is_mark(next_code_point(text, end))) out.append(text, begin, end - begin);
    }
    return out;
  }
  bool drops_front(std::string_view text) const override { return is_mark_at_front(text); }
};

class StripStep final : public Normalizer::Step {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}

  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override {
    size_t begin = 0;
    size_t end = text.size();
    while (left_ && begin < end) {
      size_t after = begin;
      if (!is_white_space(next_code_point(text, after))) break;
      begin = after;
    }
    while (right_ && end > begin) {
      const size_t before = previous_position(text, end);
      size_t position = before;
      if (!is_white_space(next_code_point(text, position))) break;
      end = before;
    }
    return text.substr(begin, end - begin);
  }
  bool drops_front(std::string_view text) const override {
    const std::optional<uint32_t> first = first_character(text);
    return left_ && first.has_value() && is_white_space(*first);
  }

 private:
  bool left_, right_;
};

class PrependStep final : public Normalizer::Step {
 public:
  explicit PrependStep(std::string prefix) : prefix_(std::move(prefix)) {}
  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override {
    return text.empty() ? text : prefix_ + text;
  }

 private:
  std::string prefix_;
};

class ReplaceStep final : public Normalizer::Step {
 public:
  ReplaceStep(std::unique_ptr<TextPattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  StatusOr<std::string> apply(std::string text, SearchBudget& budget) const override {
    ASSIGN_OR_RETURN(const std::vector<TextRange> matches, pattern_->find_all(text, budget));
    if (matches.empty()) return text;
    std::string out;
    size_t copied = 0;
    for (const TextRange match : matches) {
      out.append(text, copied, match.begin - copied);
      out += content_;
      copied = match.end;
      if (grew_too_much(text.size(), out.size())) return grew_too_much_error();
    }
    out.append(text, copied);
    return out;
  }
  bool drops_front(std::string_view text) const override {
    if (!content_.empty()) return false;
    SearchBudget budget(text.size());
    const StatusOr<std::vector<TextRange>> matches = pattern_->find_all(text, budget);
    return matches.ok() && !matches->empty() && matches->front().begin == 0 && matches->front().size() > 0;
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

class PrecompiledStep final : public Normalizer::Step {
 public:
  explicit PrecompiledStep(PrecompiledCharsmap charsmap) : charsmap_(std::move(charsmap)) {}

  StatusOr<std::string> apply(std::string text, SearchBudget& /*budget*/) const override {
    std::string out;
    out.reserve(text.size() + text.size() / 8);
    RETURN_IF_ERROR(charsmap_.append_by_graphemes(text, out));
    return out;
  }

 private:
  PrecompiledCharsmap charsmap_;
};

StatusOr<std::unique_ptr<Normalizer::Step>> parse_strip(const JsonField& field) {
  ASSIGN_OR_RETURN(const bool left, field.member("strip_left").as_bool());
  ASSIGN_OR_RETURN(const bool right, field.member("strip_right").as_bool());
  return std::make_unique<StripStep>(left, right);
}

StatusOr<std::unique_ptr<Normalizer::Step>> parse_replace(const JsonField& field) {
  ASSIGN_OR_RETURN(std::unique_ptr<TextPattern> pattern, TextPattern::parse(field.member("pattern")));
  ASSIGN_OR_RETURN(std::string content, field.member("content").as_string());
  return std::make_unique<ReplaceStep>(std::move(pattern), std::move(content));
}

StatusOr<std::unique_ptr<Normalizer::Step>> parse_precompiled(const JsonField& field) {
  const JsonField map = field.member("precompiled_charsmap");
  ASSIGN_OR_RETURN(const std::string text, map.as_string());
  const std::optional<std::string> bytes = decode_base64(text);
  if (!bytes.has_value()) return map.error("is not base64");
  StatusOr<PrecompiledCharsmap> charsmap = PrecompiledCharsmap::parse(*bytes);
  if (!charsmap.ok()) return map.error(error_message(charsmap.status()));
  return std::make_unique<PrecompiledStep>(std::move(charsmap).value());
}

StatusOr<std::unique_ptr<Normalizer::Step>> parse_step(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  constexpr std::pair<std::string_view, NormalForm> kForms[] = {
      {"NFC", NormalForm::kNfc}, {"NFD", NormalForm::kNfd}, {"NFKC", NormalForm::kNfkc}, {"NFKD", NormalForm::kNfkd}};
  for (const auto& [name, form] : kForms) {
    if (type == name) return std::make_unique<NormalFormStep>(form);
  }
  if (type == "Lowercase") return std::make_unique<LowercaseStep>();
  if (type == "StripAccents") return std::make_unique<StripAccentsStep>();
  if (type == "Strip") return parse_strip(field);
  if (type == "Replace") return parse_replace(field);
  if (type == "Precompiled") return parse_precompiled(field);
  if (type == "Nmt") return make_nmt_step();
  if (type == "BertNormalizer") return parse_bert_step(field);
  if (type == "Prepend") {
    ASSIGN_OR_RETURN(std::string prefix, field.member("prepend").as_string());
    return std::make_unique<PrependStep>(std::move(prefix));
  }
  return field.member("type").not_supported(type);
}

}  // namespace

StatusOr<Normalizer> Normalizer::parse(const JsonField& field) {
  Normalizer normalizer;
  if (field.present()) RETURN_IF_ERROR(normalizer.append(field));
  return normalizer;
}

Status Normalizer::append(const JsonField& field) {
  RETURN_IF_ERROR(field.expect_object());
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "Sequence") {
    const JsonField list = field.member("normalizers");
    RETURN_IF_ERROR(list.expect_list());
    for (size_t i = 0; i < list.json().as_array().size(); ++i) RETURN_IF_ERROR(append(list.item(i)));
    return ok_status();
  }
  if (steps_.size() >= kMaxSteps) return field.error("more than 64 steps");
  ASSIGN_OR_RETURN(std::unique_ptr<Step> step, parse_step(field));
  steps_.push_back(std::move(step));
  return ok_status();
}

StatusOr<std::string> Normalizer::apply(std::string text, SearchBudget& budget) const {
  const size_t original_size = text.size();
  for (const std::unique_ptr<Step>& step : steps_) {
    ASSIGN_OR_RETURN(text, step->apply(std::move(text), budget));
    if (grew_too_much(original_size, text.size())) return grew_too_much_error();
  }
  return text;
}

StatusOr<bool> Normalizer::drops_front(std::string text, SearchBudget& budget) const {
  const size_t original_size = text.size();
  for (const std::unique_ptr<Step>& step : steps_) {
    if (step->drops_front(text)) return true;
    ASSIGN_OR_RETURN(text, step->apply(std::move(text), budget));
    if (grew_too_much(original_size, text.size())) return grew_too_much_error();
  }
  return false;
}

}  // namespace transept
