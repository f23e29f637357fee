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
    if (!params.stop.empty()) look_for_stops(params, num_generated, decision);
    num_checked_ = detokenizer_->text().size();
  }
  if (decision.reason == FinishReason::kNone) return FinishReason::kNone;
  stop_reason_ = std::move(decision.stop_reason);
  text_length_ = decision.text_length;
  finish();
  return decision.reason;
}

void OutputText::look_for_stops(const SamplingParams& params, int32_t num_generated, StopDecision& decision) {
  StopDecision by_string = check_stop_string(params, detokenizer_->text(), num_checked_, num_generated);
  if (by_string.reason == FinishReason::kNone && detokenizer_->has_end()) {
    // What the text ends with for now counts, as in the decoded whole; if nothing is found there, it was never written.
    IncrementalDetokenizer ended = *detokenizer_;
    ended.finish();
    by_string = check_stop_string(params, ended.text(), num_checked_, num_generated);
    if (by_string.reason != FinishReason::kNone) *detokenizer_ = std::move(ended);
  }
  if (by_string.reason != FinishReason::kNone) decision = std::move(by_string);
}

void OutputText::finish() {
  if (detokenizer_.has_value()) detokenizer_->finish();
}

std::string_view OutputText::text() const {
  if (!detokenizer_.has_value()) return {};
  return std::string_view(detokenizer_->text()).substr(0, text_length_.value_or(std::string_view::npos));
}

}  // namespace transept
