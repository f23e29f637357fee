// Results of transept.h.
#include <cmath>
#include <limits>

#include "capi/border.h"
#include "capi/handles.h"
#include "request/result_json.h"

namespace transept {
namespace {

constexpr size_t kOutputV1 = sizeof(transept_output);
constexpr size_t kResultInfoV1 = sizeof(transept_result_info);
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int32_t finish_reason_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone: return TRANSEPT_FINISH_NONE;
    case FinishReason::kStop: return TRANSEPT_FINISH_STOP;
    case FinishReason::kLength: return TRANSEPT_FINISH_LENGTH;
    case FinishReason::kAbort: return TRANSEPT_FINISH_ABORT;
  }
  return TRANSEPT_FINISH_NONE;
}

transept_result_info info_of(const transept_result& result) {
  const RequestOutput& output = result.output;
  transept_result_info info{};
  info.num_outputs = output.outputs.size();
  info.encoder_ids = output.encoder_prompt_token_ids.data();
  info.num_encoder_ids = output.encoder_prompt_token_ids.size();
  info.decoder_ids = output.prompt_token_ids.data();
  info.num_decoder_ids = output.prompt_token_ids.size();
  info.encoder_output = output.encoder_output.data();
  info.encoder_width = static_cast<size_t>(result.encoder_width);
  info.num_encoder_rows = info.encoder_width == 0 ? 0 : output.encoder_output.size() / info.encoder_width;
  info.score = output.score.value_or(kNone);
  info.audio_seconds = output.audio_seconds;
  info.queue_seconds = output.metrics.queue_s;
  info.first_token_seconds = output.metrics.first_token_s;
  info.total_seconds = output.metrics.total_s;
  info.is_finished = output.finished ? 1 : 0;
  return info;
}

}  // namespace
}  // namespace transept

using namespace transept;  // NOLINT: the functions below are C's

transept_code transept_result_get_info(const transept_result* result, transept_result_info* info,
                                       transept_error** error) {
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(result, "result"));
    return write_struct(info_of(*result), kResultInfoV1, info, "info");
  });
}

transept_code transept_result_get_output(const transept_result* result, size_t index, transept_output* output,
                                         transept_error** error) {
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(result, "result"));
    const std::vector<CompletionOutput>& outputs = result->output.outputs;
    if (index >= outputs.size()) {
      return field_error("index", str_cat("index is ", index, ", and the result has ", outputs.size(), " answers"));
    }
    const CompletionOutput& one = outputs[index];
    transept_output out{};
    out.text = as_text(one.text);
    out.token_ids = one.token_ids.data();
    out.num_token_ids = one.token_ids.size();
    out.cumulative_logprob = one.cumulative_logprob;
    out.beam_score = one.beam_score.value_or(kNone);
    out.index = one.index;
    out.finish_reason = finish_reason_of(one.finish_reason);
    return write_struct(out, kOutputV1, output, "output");
  });
}

transept_text transept_result_text(const transept_result* result) {
  if (result == nullptr || result->output.outputs.empty()) return {"", 0};
  return as_text(result->output.outputs.front().text);
}

transept_code transept_result_json(const transept_result* result, char** json, transept_error** error) {
  if (json != nullptr) *json = nullptr;
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(result, "result"));
    RETURN_IF_ERROR(require(json, "json"));
    const auto token_text = [&](int32_t id) {
      return result->tokenizer == nullptr ? std::string() : result->tokenizer->decode({&id, 1}, false);
    };
    *json = copy_text(to_json(result->id, result->output, token_text).dump());
    return ok_status();
  });
}

void transept_result_free(transept_result* result) { delete result; }
