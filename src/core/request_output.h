// The results of a request: vLLM's RequestOutput with two prompts. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/content_digest.h"
#include "base/json.h"
#include "base/status.h"
#include "core/encoder_features.h"

namespace transept {

struct TokenLogprob {
  int32_t token_id = 0;
  float logprob = 0;  // natural logarithm
  int32_t rank = 0;   // 1: the best

  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
};

// The k best tokens of one position, best first, then the chosen token if it is not among them.
using PositionLogprobs = std::vector<TokenLogprob>;

enum class FinishReason : uint8_t { kNone, kStop, kLength, kAbort };

struct CompletionOutput {
  int32_t index = 0;
  std::string text;
  std::vector<int32_t> token_ids;    // generated tokens only, the end token included
  double cumulative_logprob = 0;     // natural; 0 if it was not computed (SamplingParams::skip_cumulative_logprob)
  std::optional<double> beam_score;  // beam search only: the score that ranks the answers (sampling/beam_search.h)
  std::optional<std::vector<PositionLogprobs>> logprobs;  // one entry per token
  // return_alignments only: for each token the position of the encoder's output that it attends to most.
  std::optional<std::vector<int32_t>> alignments;
  std::optional<Json> structured;                    // return_structured only: multimodal/structured_answers.h
  FinishReason finish_reason = FinishReason::kNone;  // kNone: the answer continues (a piece of a stream)
  std::variant<std::monostate, int32_t, std::string> stop_reason;  // the stop id or stop string that ended the answer
};

// Cross-attention probabilities of the model's alignment heads (ModelSpec::alignment_heads, in their order) for the
// rows of a decoder prompt: [num_heads, num_tokens, num_positions], row-major. Row t belongs to the decoder after
// prompt tokens [0, t]. Each row sums to 1 over the positions of the encoder's output.
struct CrossAttentionWeights {
  int32_t num_heads = 0;
  int32_t num_tokens = 0;
  int32_t num_positions = 0;
  std::vector<float> values;

  std::span<const float> row(int32_t head, int32_t token) const {
    const auto width = static_cast<size_t>(num_positions);
    return std::span(values).subspan(
        (static_cast<size_t>(head) * static_cast<size_t>(num_tokens) + static_cast<size_t>(token)) * width, width);
  }
};

// Seconds, but for the last. Negative: has not happened.
struct RequestMetrics {
  double queue_s = -1;  // from arrival to the first step
  // Duration of all encodes of the step, or for a long encode of the steps, that encoded the first item. -1: the
  // request encoded nothing (a shared input).
  double encode_s = -1;
  double first_token_s = -1;  // from arrival to the first generated token
  double total_s = -1;        // from arrival to this result
  // Tokens of both prompts that were not computed for this request, as an earlier one, or one at the same time, had
  // them: positions of the encoder's input, and tokens of the decoder's prompt.
  int32_t num_cached_tokens = -1;
  // Of these, positions of media that the decoder crosses: they are no tokens of a prompt.
  int32_t num_cached_media = 0;
};

// What became of one item of a request that only encodes: another instance has its rows.
struct EncodedItem {
  ContentDigest digest;
  int32_t num_positions = 0;
  int32_t splice_offset = 0;  // EncoderItem::splice_offset; 0 for rows that are crossed
  double seconds = 0;         // from arrival until the rows were there
};

// A picture of the encoder's input.
struct TakenImage {
  ImageSizes sizes;
  int32_t num_positions = 0;  // rows of the tower's output
};

// A finished result, or (finished == false) a piece of a stream: request_id and `outputs` alone, with only what is new.
struct RequestOutput {
  std::string request_id;
  std::optional<std::string> encoder_prompt;
  std::vector<int32_t> encoder_prompt_token_ids;
  double audio_seconds = 0;        // length of the encoder's audio
  std::vector<TakenImage> images;  // in their order; those that another process has read are not among them
  std::optional<std::string> prompt;
  std::vector<int32_t> prompt_token_ids;
  std::optional<std::vector<std::optional<PositionLogprobs>>> prompt_logprobs;  // the first entry is empty
  // prompt_logprobs with return_alignments: as CompletionOutput::alignments, for the prompt; the first entry is -1.
  std::optional<std::vector<int32_t>> prompt_alignments;
  std::optional<double> score;  // --score: sum of the prompt's log-probabilities
  std::optional<float>
      probe_logprob;  // SamplingParams::probe: natural, raw distribution; NaN: the scores were no numbers
  // SamplingParams::capture_cross_attention. Null: not requested, or the request ended before its whole prompt ran.
  std::shared_ptr<const CrossAttentionWeights> cross_attention;
  // SamplingParams::capture_encoder_output: [num_positions, width] of each item, from the request's own encodes. Empty:
  // not requested, or the items' tables existed already and the request did not encode: so it is with spliced items
  // whose rows came from another process.
  std::vector<float> encoder_output;
  std::vector<CompletionOutput> outputs;
  // Of the tokens that were guessed and run (SamplingParams::draft_token_ids, --speculative-config), in all sequences:
  // those that became the answer's, and those that did not. Of the finished result.
  int32_t num_accepted_drafts = 0, num_rejected_drafts = 0;
  bool finished = false;
  std::vector<EncodedItem> encoded_items;  // of a request that only encodes, in order; it has no outputs
  std::string error;                       // why the request failed while it ran; "": it did not
  absl::StatusCode error_code = absl::StatusCode::kInternal;  // of `error`
  std::string error_param;                                    // the request's field that caused the error; "": none
  RequestMetrics metrics;
};

}  // namespace transept
