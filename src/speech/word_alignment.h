// When each token of a window was spoken: dynamic time warping over the decoder's cross-attention.
// Source: openai-whisper, timing.py, find_alignment. Pure functions: thread-safe.
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
  std::string word;
  std::vector<int32_t> tokens = {};
  double start = 0, end = 0;  // seconds from the beginning of the window
  double probability = 0;
};

// A decoder run over [prefix..., <|notimestamps|>, text tokens..., <|endoftext|>].
struct AlignmentInput {
  // [num_heads, num_tokens, num_positions]: the alignment heads' attention, after softmax over all positions.
  std::span<const float> attention;
  int64_t num_heads = 0, num_tokens = 0, num_positions = 0;
  // Tokens before <|notimestamps|>: <|startoftranscript|>, language, task. num_tokens = num_prefix + 1 + texts + 1.
  int64_t num_prefix_tokens = 0;
  // Frames of the window that hold audio; positions from num_frames / 2 on are left out, and the rest renormalised.
  int64_t num_frames = 0;
  std::span<const int32_t> text_tokens;
  // Of each text token, given those before it, among the tokens below <|endoftext|> alone.
  std::span<const float> probabilities;
};

// One timing a word, in order; times do not go back. Empty if there are no text tokens or no positions. Attention that
// is no number counts as 0, probabilities outside [0, 1] as the nearest of these (no number: 0).
// Time and memory grow with num_heads x num_tokens x num_positions, and num_tokens x num_positions.
// Errors: sizes that do not fit each other.
StatusOr<std::vector<WordTiming>> align_words(const AlignmentInput& input, AppendTokenBytes append_bytes,
                                              WordSplit split);

// The steps of align_words, for tests. [rows, columns] matrices by rows.

// Each head: rows cut to num_frames / 2 positions and made to sum 1, normalised by mean and deviation over all tokens,
// median of 7 along positions (reflecting at the ends), then the mean over heads; rows from <|notimestamps|> to the
// last text token: [num_texts + 1, num_frames / 2].
std::vector<float> alignment_matrix(const AlignmentInput& input);

struct WarpingPath {
  std::vector<int32_t> rows = {}, columns = {};  // of equal size, from (0, 0) to the last of each
};
// The monotonic path of least cost; costs are added in float, and ties go to the column before (timing.py, dtw_cpu).
// REQUIRES: costs.size() = num_rows x num_columns.
WarpingPath dynamic_time_warping(std::span<const float> costs, int64_t num_rows, int64_t num_columns);

}  // namespace transept
