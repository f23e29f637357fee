// Finds the time at which each token of a window was spoken, by dynamic time warping over the decoder's
// cross-attention. Source: openai-whisper, timing.py, find_alignment. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "speech/word_split.h"

namespace transept {

// An encoder position is 0.02 s: two frames.
inline constexpr double kPositionsPerSecond = 50;

struct WordTiming {
  std::string word;  // valid UTF-8
  std::vector<int32_t> tokens = {};
  double start = 0, end = 0;  // seconds from the beginning of the window
  double probability = 0;     // mean over its tokens
};

// The results of a decoder pass over [prefix..., <|notimestamps|>, text tokens..., <|endoftext|>]. All borrowed.
struct AlignmentInput {
  // [num_heads, num_tokens, num_positions]: weights of the alignment heads, after softmax over all positions.
  std::span<const float> attention;
  int64_t num_heads = 0, num_tokens = 0, num_positions = 0;
  // Tokens before <|notimestamps|>: <|startoftranscript|>, language, task. num_tokens = num_prefix_tokens + 1 +
  // text_tokens.size() + 1.
  int64_t num_prefix_tokens = 0;
  // Frames of the window that hold audio. Positions from num_frames / 2 on are ignored, the others renormalised.
  int64_t num_frames = 0;
  std::span<const int32_t> text_tokens;
  // [text_tokens]: of each token given those before it, normalised over the tokens below <|endoftext|>.
  std::span<const float> probabilities;
};

// Returns one timing per word, in order; times never decrease. Empty without text tokens or positions. Weights that are
// not finite count as 0; probabilities are clamped to [0, 1] (NaN: 0). Time and memory: O(num_tokens x num_positions),
// time also x num_heads. Errors: kInvalidArgument for sizes that do not match or are out of range.
StatusOr<std::vector<WordTiming>> align_words(const AlignmentInput& input, AppendTokenBytes append_bytes,
                                              WordSplit split);

// The steps of align_words, public for tests. Matrices are row-major.

// Returns the mean over heads, [text_tokens.size() + 1, columns], for the rows from <|notimestamps|> to the last text
// token, with columns = min(num_frames / 2, num_positions). Before the mean, each head is cut to these columns, its
// rows scaled to sum 1, its columns normalised by mean and deviation over all tokens, and a median of 7 taken along
// each row (reflected at the ends). REQUIRES: sizes that align_words accepts.
std::vector<float> alignment_matrix(const AlignmentInput& input);

struct WarpingPath {
  std::vector<int32_t> rows = {}, columns = {};  // of equal size, from (0, 0) to the last cell
};
// Returns the monotonic path of least cost through costs [num_rows, num_columns]; empty if either is 0. Adds costs in
// float; ties go to the previous column (timing.py, dtw_cpu). REQUIRES: costs.size() = num_rows x num_columns.
WarpingPath dynamic_time_warping(std::span<const float> costs, int64_t num_rows, int64_t num_columns);

}  // namespace transept
