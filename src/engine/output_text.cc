#include "engine/output_text.h"

namespace transept {

OutputText::OutputText(const Tokenizer* tokenizer, std::span<const int32_t> prompt_token_ids,
                       const SamplingParams& params) {
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, prompt_token_ids, params.skip_special_tokens);
}

FinishReason OutputText::append(const SamplingParams& params, int32_t token_id, int32_t num_generated) {
  StopDecision decision = check_stop_token(params, token_id, num_generated);
  if (detokenizer_.has_value() && !decision.hides_token) {
    detokenizer_->append(token_id);
    if (decision.reason != FinishReason::kNone) detokenizer_->finish();
    const std::string& text = detokenizer_->text();
    if (!params.stop.empty()) {
      StopDecision by_string = check_stop_string(params, text, num_checked_, num_generated);
      if (by_string.reason != FinishReason::kNone) decision = std::move(by_string);
    }
    num_checked_ = text.size();
  }
  if (decision.reason == FinishReason::kNone) return FinishReason::kNone;
  stop_reason_ = std::move(decision.stop_reason);
  text_length_ = decision.text_length;
  finish();
  return decision.reason;
}

void OutputText::finish() {
  if (detokenizer_.has_value()) detokenizer_->finish();
}

std::string_view OutputText::text() const {
  if (!detokenizer_.has_value()) return {};
  return std::string_view(detokenizer_->text()).substr(0, text_length_.value_or(std::string_view::npos));
}

}  // namespace transept
