// Results: vLLM's RequestOutput with two prompts. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace transept {

struct TokenLogprob {
  int32_t token_id = 0;
  float logprob = 0;  // natural logarithm
  int32_t rank = 0;   // 1: the best
};

// The k best of one position, best first, then the chosen token where it is not among them.
using PositionLogprobs = std::vector<TokenLogprob>;

enum class FinishReason : uint8_t { kNone, kStop, kLength, kAbort };

struct CompletionOutput {
  int32_t index = 0;
  std::string text;
  std::vector<int32_t> token_ids;    // generated ones only, the end token included
  double cumulative_logprob = 0;     // 0, too, where SamplingParams::skip_cumulative_logprob
  std::optional<double> beam_score;  // beam search: what ranks the answers, sum / length ^ length_penalty
  std::optional<std::vector<PositionLogprobs>> logprobs;
  // return_alignments: for each of token_ids the index in encoder_prompt_token_ids that it attends to most.
  std::optional<std::vector<int32_t>> alignments;
  FinishReason finish_reason = FinishReason::kNone;
  std::variant<std::monostate, int32_t, std::string> stop_reason;  // a stop id, or a stop string
};

// Cross-attention probabilities of the model's alignment heads (ModelSpec::alignment_heads, in their order) for the
// rows of a decoder prompt: [num_heads, num_tokens, num_positions] row-major. Row t is of the decoder that has read
// prompt tokens [0, t]; over the positions of the encoder's output each row sums to 1.
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

struct RequestMetrics {  // seconds since the request arrived; negative: has not happened
  double queue_s = -1;
  double encode_s = -1;
  double first_token_s = -1;
  double total_s = -1;
};

struct RequestOutput {
  std::string request_id;
  std::optional<std::string> encoder_prompt;
  std::vector<int32_t> encoder_prompt_token_ids;
  double audio_seconds = 0;  // of the encoder's audio
  std::optional<std::string> prompt;
  std::vector<int32_t> prompt_token_ids;
  std::optional<std::vector<std::optional<PositionLogprobs>>> prompt_logprobs;  // the first entry is null
  std::optional<std::vector<int32_t>> prompt_alignments;  // --score with return_alignments; the first entry is -1
  std::optional<double> score;                            // --score: the sum of prompt_logprobs
  std::optional<float> probe_logprob;                     // SamplingParams::probe: natural, of the raw distribution
  std::shared_ptr<const CrossAttentionWeights>
      cross_attention;  // SamplingParams::capture_cross_attention; null: not asked for
  // SamplingParams::capture_encoder_output: [num_positions, d_model] as the request's own encode gave it. Empty: not
  // asked for, or the input's cross KV was there already and nothing was encoded.
  std::vector<float> encoder_output;
  std::vector<CompletionOutput> outputs;
  bool finished = false;
  std::string error;        // "" but when the request failed while it ran
  std::string error_param;  // the field whose doing it was, if it was one's
  RequestMetrics metrics;
};

}  // namespace transept
