#include "speech/word_alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

constexpr int64_t kMedianReach = 3;  // 7 positions
constexpr int64_t kMostTokens = 1 << 16, kMostPositions = 1 << 20, kMostHeads = 1 << 16;

int64_t num_used_positions(const AlignmentInput& input) {
  return std::clamp<int64_t>(input.num_frames / 2, 0, input.num_positions);
}

Status check_sizes(const AlignmentInput& input) {
  const auto texts = static_cast<int64_t>(input.text_tokens.size());
  if (input.num_heads < 1 || input.num_heads > kMostHeads || input.num_tokens < 0 || input.num_tokens > kMostTokens ||
      input.num_positions < 0 || input.num_positions > kMostPositions || input.num_prefix_tokens < 0 ||
      input.num_frames < 0) {
    return invalid_argument("alignment: ", input.num_heads, " heads, ", input.num_tokens, " tokens, ",
                            input.num_positions, " positions, ", input.num_frames, " frames");
  }
  if (input.num_tokens - 2 != input.num_prefix_tokens + texts) {
    return invalid_argument("alignment: ", input.num_tokens, " tokens are not ", input.num_prefix_tokens,
                            " + 1 before ", texts, " of text, and 1 after");
  }
  if (input.probabilities.size() != input.text_tokens.size()) {
    return invalid_argument("alignment: ", input.probabilities.size(), " probabilities for ", texts, " tokens");
  }
  const auto matrix = checked_mul(input.num_tokens, input.num_positions);
  const auto size = matrix.has_value() ? checked_mul(*matrix, input.num_heads) : std::nullopt;
  if (!size.has_value() || static_cast<uint64_t>(*size) != input.attention.size()) {
    return invalid_argument("alignment: ", input.attention.size(), " weights for ", input.num_heads, " heads of ",
                            input.num_tokens, " x ", input.num_positions);
  }
  return ok_status();
}

// One head: [num_tokens, num_columns], rows that sum 1.
void cut_rows(const AlignmentInput& input, int64_t head, int64_t num_columns, std::span<float> out) {
  const float* weights = input.attention.data() + head * input.num_tokens * input.num_positions;
  for (int64_t row = 0; row < input.num_tokens; ++row) {
    const float* from = weights + row * input.num_positions;
    float* to = out.data() + row * num_columns;
    double sum = 0;
    for (int64_t i = 0; i < num_columns; ++i) {
      to[i] = std::isfinite(from[i]) && from[i] > 0 ? from[i] : 0.0f;
      sum += to[i];
    }
    if (sum > 0) {
      for (int64_t i = 0; i < num_columns; ++i) to[i] = static_cast<float>(to[i] / sum);
    }
  }
}

// Every column to mean 0 and deviation 1. A column that is the same in all rows says nothing: 0 (the reference divides
// 0 by 0 there).
void normalise_columns(int64_t num_rows, int64_t num_columns, std::span<float> values) {
  std::vector<double> mean(num_columns, 0.0), square(num_columns, 0.0);
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t i = 0; i < num_columns; ++i) mean[i] += values[row * num_columns + i];
  }
  for (double& sum : mean) sum /= static_cast<double>(num_rows);
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t i = 0; i < num_columns; ++i) {
      const double difference = values[row * num_columns + i] - mean[i];
      square[i] += difference * difference;
    }
  }
  for (int64_t i = 0; i < num_columns; ++i) {
    const double deviation = std::sqrt(square[i] / static_cast<double>(num_rows));
    // Below: what rounding alone makes of equal values.
    square[i] = deviation > 1e-7 * std::abs(mean[i]) && deviation > 1e-30 ? 1 / deviation : 0.0;
  }
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t i = 0; i < num_columns; ++i) {
      float& value = values[row * num_columns + i];
      value = static_cast<float>((value - mean[i]) * square[i]);
    }
  }
}

// The middle one of seven: the four least rise to the front, one by one. No branches, so neighbours go side by side.
float median_of_7(const float* values) {
  float x[7];
  std::copy_n(values, 7, x);
  for (int front = 0; front <= 3; ++front) {
    for (int i = 6; i > front; --i) {
      const float low = std::min(x[i - 1], x[i]);
      x[i] = std::max(x[i - 1], x[i]);
      x[i - 1] = low;
    }
  }
  return x[3];
}

// Adds the row's medians to `sums`. `padded` has room for the row and its mirrored ends. Rows that are not longer than
// an end are left as they are (timing.py, median_filter).
void add_medians(std::span<const float> row, std::span<float> padded, std::span<float> sums) {
  const auto size = static_cast<int64_t>(row.size());
  if (size <= kMedianReach) {
    for (int64_t i = 0; i < size; ++i) sums[i] += row[i];
    return;
  }
  std::copy(row.begin(), row.end(), padded.begin() + kMedianReach);
  for (int64_t i = 1; i <= kMedianReach; ++i) {
    padded[kMedianReach - i] = row[i];
    padded[kMedianReach + size - 1 + i] = row[size - 1 - i];
  }
  for (int64_t i = 0; i < size; ++i) sums[i] += median_of_7(padded.data() + i);
}

enum Step : uint8_t { kBoth, kRow, kColumn };

// [num_rows + 1, num_columns + 1] of steps that led to each cell.
std::vector<Step> cheapest_steps(std::span<const float> costs, int64_t num_rows, int64_t num_columns) {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  const int64_t stride = num_columns + 1;
  std::vector<Step> steps((num_rows + 1) * stride, kRow);
  std::fill_n(steps.begin(), stride, kColumn);
  std::vector<float> above(stride, kNever), row(stride, kNever);
  above[0] = 0;
  for (int64_t i = 1; i <= num_rows; ++i) {
    row[0] = kNever;
    for (int64_t j = 1; j <= num_columns; ++j) {
      const float both = above[j - 1], down = above[j], across = row[j - 1];
      Step step = kColumn;
      float cost = across;
      if (both < down && both < across) {
        step = kBoth;
        cost = both;
      } else if (down < both && down < across) {
        step = kRow;
        cost = down;
      }
      row[j] = costs[(i - 1) * num_columns + j - 1] + cost;
      steps[i * stride + j] = step;
    }
    above.swap(row);
  }
  return steps;
}

double sane_probability(float probability) {
  return probability > 0 ? std::min<double>(probability, 1.0) : 0.0;  // no number: 0
}

// The positions at which each text token, and the end, begin: [num_texts + 1].
std::vector<double> start_times(const WarpingPath& path, size_t num_rows) {
  std::vector<double> starts;
  starts.reserve(num_rows);
  for (size_t i = 0; i < path.rows.size(); ++i) {
    if (i == 0 || path.rows[i] != path.rows[i - 1]) starts.push_back(path.columns[i] / kPositionsPerSecond);
  }
  CHECK(starts.size() == num_rows, starts.size(), " of ", num_rows);
  return starts;
}

}  // namespace

std::vector<float> alignment_matrix(const AlignmentInput& input) {
  const int64_t columns = num_used_positions(input);
  const auto rows = static_cast<int64_t>(input.text_tokens.size()) + 1;
  std::vector<float> sums(rows * columns, 0.0f);
  std::vector<float> head_rows(input.num_tokens * columns), padded(columns + 2 * kMedianReach);
  for (int64_t head = 0; head < input.num_heads; ++head) {
    cut_rows(input, head, columns, head_rows);
    normalise_columns(input.num_tokens, columns, head_rows);
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = head_rows.data() + (input.num_prefix_tokens + row) * columns;
      add_medians({from, static_cast<size_t>(columns)}, padded,
                  {sums.data() + row * columns, static_cast<size_t>(columns)});
    }
  }
  for (float& sum : sums) sum /= static_cast<float>(input.num_heads);
  return sums;
}

WarpingPath dynamic_time_warping(std::span<const float> costs, int64_t num_rows, int64_t num_columns) {
  WarpingPath path;
  if (num_rows == 0 || num_columns == 0) return path;
  const std::vector<Step> steps = cheapest_steps(costs, num_rows, num_columns);
  int64_t i = num_rows, j = num_columns;
  // From the corner back. In the first row and column there is one way; costs that are no number lead nowhere else.
  while (i > 0 && j > 0) {
    path.rows.push_back(static_cast<int32_t>(i - 1));
    path.columns.push_back(static_cast<int32_t>(j - 1));
    Step step = steps[i * (num_columns + 1) + j];
    if (i == 1) step = j == 1 ? kBoth : kColumn;
    if (i > 1 && j == 1) step = kRow;
    if (step != kColumn) --i;
    if (step != kRow) --j;
  }
  std::reverse(path.rows.begin(), path.rows.end());
  std::reverse(path.columns.begin(), path.columns.end());
  return path;
}

StatusOr<std::vector<WordTiming>> align_words(const AlignmentInput& input, AppendTokenBytes append_bytes,
                                              WordSplit split) {
  RETURN_IF_ERROR(check_sizes(input));
  const int64_t columns = num_used_positions(input);
  if (input.text_tokens.empty() || columns == 0) return std::vector<WordTiming>();
  std::vector<float> costs = alignment_matrix(input);
  for (float& cost : costs) cost = -cost;
  const size_t rows = input.text_tokens.size() + 1;
  const std::vector<double> starts =
      start_times(dynamic_time_warping(costs, static_cast<int64_t>(rows), columns), rows);
  std::vector<WordTiming> timings;
  size_t token = 0;
  for (TokenWord& word : split_words(input.text_tokens, append_bytes, split)) {
    const size_t begin = token;
    double sum = 0;
    for (; token < begin + word.tokens.size(); ++token) sum += sane_probability(input.probabilities[token]);
    timings.push_back({.word = std::move(word.word),
                       .tokens = std::move(word.tokens),
                       .start = starts[begin],
                       .end = starts[token],
                       .probability = sum / static_cast<double>(token - begin)});
  }
  return timings;
}

}  // namespace transept
