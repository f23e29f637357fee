// The comparisons of answer_difference_testing.h.
#include "engine/answer_difference_testing.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "rank/fake_model_executor_testing.h"

namespace transept::testing {
namespace {

constexpr double kTolerance = 1e-4;  // of log-probabilities and their sums

std::string ids_text(const std::vector<int32_t>& ids) {
  std::string text = "[";
  for (const int32_t id : ids) text += str_cat(text.size() == 1 ? "" : " ", id);
  return text + "]";
}

template <typename Output>
std::string output_text(const Output& output) {
  const char* const reasons[] = {"none", "stop", "length", "abort"};
  std::string text = str_cat(ids_text(output.token_ids), ", ", reasons[static_cast<size_t>(output.finish_reason)],
                             ", sum ", output.cumulative_logprob);
  if (const auto* id = std::get_if<int32_t>(&output.stop_reason)) text += str_cat(", by token ", *id);
  return text;
}

bool is_near(double a, double b) { return a == b || std::abs(a - b) <= kTolerance * std::max(1.0, std::abs(b)); }

// One position's entries: the k best, best first, then the chosen token unless it is among them.
bool is_listed_right(const PositionLogprobs& entries, const std::vector<double>& logprobs, int32_t k, int32_t chosen) {
  std::vector<double> best = logprobs;
  std::sort(best.begin(), best.end(), std::greater<>());
  const size_t num_possible =
      static_cast<size_t>(std::count_if(best.begin(), best.end(), [](double p) { return std::isfinite(p); }));
  const size_t num_best = std::min(num_possible, static_cast<size_t>(k));
  bool has_chosen = false;
  for (size_t i = 0; i < entries.size(); ++i) {
    has_chosen |= entries[i].token_id == chosen;
    if (i < num_best && !is_near(entries[i].logprob, best[i])) return false;
    if (!is_near(entries[i].logprob, logprobs[static_cast<size_t>(entries[i].token_id)])) return false;
  }
  const bool is_extra = entries.size() == num_best + 1 && entries.back().token_id == chosen;
  return has_chosen && (entries.size() == num_best || is_extra);
}

bool has_right_logprobs(const CompletionOutput& got, const ObviousOutput& want, const SamplingParams& params) {
  if (got.logprobs.has_value() != params.logprobs.has_value()) return false;
  if (!params.logprobs.has_value()) return true;
  if (got.logprobs->size() != want.token_ids.size()) return false;
  for (size_t i = 0; i < want.token_ids.size(); ++i) {
    if (!is_listed_right((*got.logprobs)[i], want.logprobs[i], *params.logprobs, want.token_ids[i])) return false;
  }
  return true;
}

// The encoder position of each token from `first` on.
bool has_right_alignments(const RandomRequest& request, const std::vector<int32_t>& tokens, size_t first,
                          const std::vector<int32_t>& alignments) {
  if (alignments.size() != tokens.size()) return false;
  for (size_t i = first; i < tokens.size(); ++i) {
    const std::span<const int32_t> before = std::span(tokens).first(i);
    if (alignments[i] != fake_source_index(request.inputs.encoder_token_ids(), before)) return false;
  }
  return true;
}

bool has_right_alignments(const RandomRequest& request, const CompletionOutput& output) {
  if (output.alignments.has_value() != request.params.return_alignments) return false;
  if (!output.alignments.has_value()) return true;
  std::vector<int32_t> tokens = request.inputs.prompt_token_ids, alignments(tokens.size(), -1);
  tokens.insert(tokens.end(), output.token_ids.begin(), output.token_ids.end());
  alignments.insert(alignments.end(), output.alignments->begin(), output.alignments->end());
  return has_right_alignments(request, tokens, request.inputs.prompt_token_ids.size(), alignments);
}

std::string capture_difference(const RandomRequest& request, const RequestOutput& got) {
  const bool wants = request.params.capture_cross_attention;
  if ((got.cross_attention != nullptr) != wants) return "cross-attention is missing, or there unasked";
  if (!wants) return "";
  const CrossAttentionWeights& captured = *got.cross_attention;
  const std::vector<int32_t>&encoder = request.inputs.encoder_token_ids(), &prompt = request.inputs.prompt_token_ids;
  const int32_t num_tokens = static_cast<int32_t>(prompt.size()), num_positions = static_cast<int32_t>(encoder.size());
  const size_t num_values = size_t{kFakeAlignmentHeads} * prompt.size() * encoder.size();
  if (captured.num_heads != kFakeAlignmentHeads || captured.num_tokens != num_tokens ||
      captured.num_positions != num_positions || captured.values.size() != num_values) {
    return "the shape of the cross-attention";
  }
  for (int32_t head = 0; num_positions > 0 && head < captured.num_heads; ++head) {
    for (int32_t t = 0; t < num_tokens; ++t) {
      const int32_t source = fake_source_index(encoder, std::span(prompt).first(static_cast<size_t>(t) + 1));
      if (!std::ranges::equal(captured.row(head, t), fake_cross_attention(head, source, num_positions))) {
        return str_cat("cross-attention of head ", head, ", token ", t);
      }
    }
  }
  return "";
}

std::string prompt_difference(const RandomRequest& request, const RequestOutput& got, const ObviousAnswer& want) {
  if (std::string capture = capture_difference(request, got); !capture.empty()) return capture;
  if (got.probe_logprob.has_value() != request.params.probe.has_value()) return "probe_logprob is missing, or there";
  if (got.probe_logprob.has_value() && !is_near(*got.probe_logprob, want.probe_logprob)) {
    return str_cat("probe_logprob ", *got.probe_logprob, " is not ", want.probe_logprob);
  }
  const bool wants = request.params.prompt_logprobs.has_value() || request.params.score_only;
  if (got.prompt_logprobs.has_value() != wants) return "prompt_logprobs are missing, or there unasked";
  if (!wants) return "";
  const std::vector<int32_t>& prompt = request.inputs.prompt_token_ids;
  if (got.prompt_logprobs->size() != prompt.size() || got.prompt_logprobs->front().has_value()) {
    return "prompt_logprobs: not one entry a token, the first of them null";
  }
  double score = 0;
  for (size_t i = 1; i < prompt.size(); ++i) {
    const auto& entries = (*got.prompt_logprobs)[i];
    if (!entries.has_value()) return str_cat("prompt_logprobs: none for token ", i);
    const auto own = std::find_if(entries->begin(), entries->end(),
                                  [&](const TokenLogprob& entry) { return entry.token_id == prompt[i]; });
    if (own == entries->end() || !is_near(own->logprob, want.prompt_logprobs[i - 1])) {
      return str_cat("prompt_logprobs of token ", i, ": not ", want.prompt_logprobs[i - 1]);
    }
    score += want.prompt_logprobs[i - 1];
  }
  const bool wants_alignments = request.params.return_alignments;
  if (got.prompt_alignments.has_value() != wants_alignments ||
      (wants_alignments && !has_right_alignments(request, prompt, 1, *got.prompt_alignments))) {
    return "prompt_alignments";
  }
  if (request.params.score_only && !is_near(got.score.value_or(NAN), score)) return str_cat("the score is not ", score);
  return "";
}

bool skips_sum(const SamplingParams& params) {
  const bool is_ranked = params.best_of > params.n || params.num_beams > 1;
  return params.skip_cumulative_logprob && !params.logprobs.has_value() && !is_ranked;
}

}  // namespace

std::string aborted_difference(const RandomRequest& request, const RequestOutput& got, const ObviousAnswer& want) {
  for (const CompletionOutput& output : got.outputs) {
    const std::vector<int32_t>& ids = output.token_ids;
    if (request.params.num_beams > 1) {
      if (ids.empty() || want.beams.contains(ids)) continue;
      return str_cat("aborted with ", ids_text(ids), ", which was never a beam");
    }
    // With best_of the best come first, whichever they are.
    const auto is_beginning = [&](const ObviousOutput& truth) {
      const bool has_ended = output.finish_reason != FinishReason::kAbort;
      return ids.size() <= truth.token_ids.size() && (!has_ended || ids.size() == truth.token_ids.size()) &&
             std::equal(ids.begin(), ids.end(), truth.token_ids.begin());
    };
    const bool is_right = request.params.best_of > request.params.n
                              ? std::any_of(want.samples.begin(), want.samples.end(), is_beginning)
                              : is_beginning(want.samples.at(static_cast<size_t>(output.index)));
    if (!is_right) return str_cat("aborted output ", output_text(output), " is no beginning of the right one");
  }
  return "";
}

std::string difference(const RandomRequest& request, const RequestOutput& got, const ObviousAnswer& want) {
  if (got.error.empty() == want.nothing_left) return str_cat("error \"", got.error, "\"");
  if (got.prompt_token_ids != request.inputs.prompt_token_ids) {
    return str_cat("the prompt is ", ids_text(got.prompt_token_ids));
  }
  if (std::string prompt = prompt_difference(request, got, want); !prompt.empty()) return prompt;
  // A search in which no beam can go on shows how far its beams came, as one that is aborted.
  if (want.nothing_left && request.params.num_beams > 1) return aborted_difference(request, got, want);
  if (got.outputs.size() != want.outputs.size()) {
    return str_cat(got.outputs.size(), " outputs instead of ", want.outputs.size());
  }
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    const CompletionOutput& output = got.outputs[i];
    const ObviousOutput& truth = want.outputs[i];
    const bool is_same = output.index == static_cast<int32_t>(i) && output.token_ids == truth.token_ids &&
                         output.finish_reason == truth.finish_reason && output.stop_reason == truth.stop_reason &&
                         is_near(output.cumulative_logprob, skips_sum(request.params) ? 0 : truth.cumulative_logprob);
    if (!is_same) return str_cat("output ", i, " is ", output_text(output), "\n  must be ", output_text(truth));
    if (!has_right_logprobs(output, truth, request.params)) return str_cat("logprobs of output ", i);
    if (!has_right_alignments(request, output)) return str_cat("alignments of output ", i);
  }
  return "";
}

}  // namespace transept::testing
