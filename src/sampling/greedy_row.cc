#include "sampling/greedy_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/select_kernels.h"
#include "sampling/choose.h"

namespace transept {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Each piece goes through all of them.
constexpr size_t kMaxEdits = 256;

// Where a row's scores are parted; past every id if they are not.
int32_t boundary(const RowRequest& request) {
  const RowEdits* edits = request.edits;
  const bool weighs = edits != nullptr && edits->timestamp_begin >= 0 && edits->forced_token < 0;
  return weighs ? edits->timestamp_begin : std::numeric_limits<int32_t>::max();
}

// Timestamps are weighed by their sum.
bool needs_sums(const RowRequest& request) {
  return request.wants_logprob || boundary(request) != std::numeric_limits<int32_t>::max();
}

constexpr ScorePiece kNoPiece{kNever, 0, kNothingLeft, false};

// Without the sum.
ScorePiece find_best_of_piece(const Context& context, int32_t first_id, std::span<const float> scores) {
  const OpKernels& kernels = op_kernels(cpu_of(context).isa());
  const auto size = static_cast<int64_t>(scores.size());
  ScorePiece piece = kNoPiece;
  piece.max = kernels.max(scores.data(), size, &piece.has_strange);
  if (piece.max > kNever) {
    piece.best = first_id + static_cast<int32_t>(kernels.find_equal(scores.data(), size, piece.max));
  }
  return piece;
}

// What several pieces come to together.
class Total final {
 public:
  void take_max(const ScorePiece& piece) {
    max_ = std::max(max_, piece.max);
    has_strange_ |= piece.has_strange;
  }
  void add(const ScorePiece& piece) {
    if (piece.max > kNever) sum_ += piece.sum * std::exp(piece.max - max_);
  }
  float max() const { return max_; }
  float log_sum() const { return max_ == kNever ? kNever : max_ + std::log(sum_); }
  bool has_strange() const { return has_strange_; }

 private:
  float max_ = kNever, sum_ = 0;
  bool has_strange_ = false;
};

template <ScorePiece GreedyPiece::*kSide>
Total total_of(std::span<const GreedyPiece> pieces) {
  Total total;
  for (const GreedyPiece& piece : pieces) total.take_max(piece.*kSide);
  for (const GreedyPiece& piece : pieces) total.add(piece.*kSide);
  return total;
}

// The first id with the score `max`. It is in the first piece that has it.
template <ScorePiece GreedyPiece::*kSide>
int32_t find_best(std::span<const GreedyPiece> pieces, float max) {
  for (const GreedyPiece& piece : pieces) {
    if ((piece.*kSide).max == max) return (piece.*kSide).best;
  }
  return kNothingLeft;
}

}  // namespace

bool are_few(const RowEdits& edits) {
  return !edits.renormalize && edits.biases.size() + edits.seen.size() + edits.generated.size() + edits.banned.size() +
                                       edits.banned_ranges.size() <=
                                   kMaxEdits;
}

ScorePiece sum_up_piece(const Context& context, int32_t first_id, std::span<const float> scores) {
  ScorePiece piece = kNoPiece;
  if (scores.empty()) return piece;
  piece.sum =
      op_kernels(cpu_of(context).isa()).log_sum_exp_max(scores.data(), static_cast<int64_t>(scores.size()), &piece.max);
  if (piece.max == kNever) {  // differences of infinities: nothing was summed
    piece.sum = 0;
    piece.has_strange = std::any_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
  } else {
    piece.has_strange = !std::isfinite(piece.sum);
    const auto size = static_cast<int64_t>(scores.size());
    piece.best =
        first_id + static_cast<int32_t>(op_kernels(cpu_of(context).isa()).find_equal(scores.data(), size, piece.max));
  }
  return piece;
}

float log_sum_of(std::span<const GreedyPiece> pieces) {
  const Total total = total_of<&GreedyPiece::text>(pieces);
  return total.has_strange() ? std::numeric_limits<float>::quiet_NaN() : total.log_sum();
}

bool is_found_by_pieces(const RowRequest& request) {
  const bool is_greedy = request.temperature == 0 || request.top_k == 1;
  if (request.target_token >= 0 || request.num_candidates > 0 || request.num_logprobs >= 0 || !is_greedy) return false;
  return request.edits == nullptr || are_few(*request.edits);
}

GreedyPiece look_at_piece(const Context& context, const RowRequest& request, int32_t first_id,
                          std::span<float> scores) {
  if (request.edits != nullptr) apply_edits(*request.edits, first_id, scores);
  if (!needs_sums(request)) return {find_best_of_piece(context, first_id, scores), kNoPiece};
  const auto text = static_cast<size_t>(
      std::clamp<int64_t>(int64_t{boundary(request)} - first_id, 0, static_cast<int64_t>(scores.size())));
  return {sum_up_piece(context, first_id, scores.first(text)),
          sum_up_piece(context, first_id + static_cast<int32_t>(text), scores.subspan(text))};
}

void choose_by_pieces(const RowRequest& request, std::span<const GreedyPiece> pieces, RowSample& sample) {
  const int64_t top_begin = sample.top_begin;
  sample = {};
  sample.top_begin = top_begin;
  const Total text = total_of<&GreedyPiece::text>(pieces), timestamps = total_of<&GreedyPiece::timestamps>(pieces);
  if (text.has_strange() || timestamps.has_strange()) {
    sample.token_id = kNotNumbers;
    return;
  }
  // Where timestamps together are likelier than any text, it is a timestamp (timestamp_rules.h).
  const bool is_text = text.max() >= timestamps.log_sum() && text.max() > kNever;
  const float max = is_text ? text.max() : timestamps.max();
  sample.token_id = kNothingLeft;
  if (max == kNever) return;
  sample.token_id =
      is_text ? find_best<&GreedyPiece::text>(pieces, max) : find_best<&GreedyPiece::timestamps>(pieces, max);
  if (!request.wants_logprob) return;
  float normalizer = timestamps.log_sum();
  if (is_text) {
    const float most = std::max(text.log_sum(), timestamps.log_sum());
    normalizer = most + std::log(std::exp(text.log_sum() - most) + std::exp(timestamps.log_sum() - most));
  }
  sample.logprob = max - normalizer;
}

}  // namespace transept
