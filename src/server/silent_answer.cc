#include "server/silent_answer.h"

#include <utility>

#include "speech/silent_windows.h"

namespace transept {
namespace {

bool wants_tokens(const SamplingParams& params) {
  return params.min_tokens > 0 || params.ignore_eos || params.score_only || params.prompt_logprobs.has_value();
}

}  // namespace

std::optional<RequestOutput> silent_answer(const ServerContext& context, const ParsedRequest& parsed, TimePoint arrival,
                                           RequestSpec& spec) {
  const AudioProcessor* audio = context.model.media != nullptr ? context.model.media->audio() : nullptr;
  EncoderDecoderInputs& inputs = spec.inputs;
  if (audio == nullptr || inputs.items.size() != 1 || inputs.items.front().features == nullptr) return std::nullopt;
  if (!context.options.skip_silence || parsed.body.vad_filter == false || wants_tokens(spec.params)) {
    return std::nullopt;
  }
  const EncoderFeatures& features = *inputs.items.front().features;
  if (!is_silent(features, *audio)) return std::nullopt;
  RequestOutput output;
  output.request_id = spec.id;
  output.audio_seconds = features.audio_seconds;
  output.prompt = std::move(inputs.prompt);
  output.prompt_token_ids = std::move(inputs.prompt_token_ids);
  output.outputs.resize(static_cast<size_t>(spec.params.n));
  for (int32_t i = 0; i < spec.params.n; ++i) {
    CompletionOutput& one = output.outputs[static_cast<size_t>(i)];
    one.index = i;
    one.finish_reason = FinishReason::kStop;
    if (spec.params.logprobs.has_value()) one.logprobs.emplace();
    if (spec.params.return_alignments) one.alignments.emplace();
  }
  output.metrics = {.queue_s = 0, .total_s = seconds(context.clock.now() - arrival)};
  output.finished = true;
  return output;
}

}  // namespace transept
