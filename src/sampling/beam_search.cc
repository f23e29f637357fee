#include "sampling/beam_search.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace transept {
namespace {

constexpr double kMostHypotheses = 1 << 20;  // nobody waits for so many: any number that fits

// The best continuation of each row that was not taken yet, the best row on top: a merge of sorted rows.
struct Worse {
  bool operator()(const BeamContinuation& a, const BeamContinuation& b) const {
    if (a.sum != b.sum) return a.sum < b.sum;
    return a.parent != b.parent ? a.parent > b.parent : a.token_id > b.token_id;
  }
};

BeamContinuation continuation(std::span<const BeamRow> beams, int32_t parent, int32_t entry) {
  const BeamRow& beam = beams[static_cast<size_t>(parent)];
  const TokenLogprob& token = beam.next[static_cast<size_t>(entry)];
  return {parent, entry, token.token_id, beam.sum + static_cast<double>(token.logprob)};
}

}  // namespace

void beam_search(int32_t num_beams, int32_t num_ending_ranks, std::span<const BeamRow> beams,
                 FunctionRef<bool(const BeamContinuation& continuation)> ends, BeamStep& step) {
  step.running.clear();
  step.ended.clear();
  std::priority_queue<BeamContinuation, std::vector<BeamContinuation>, Worse> heads;
  for (size_t i = 0; i < beams.size(); ++i) {
    if (!beams[i].next.empty()) heads.push(continuation(beams, static_cast<int32_t>(i), 0));
  }
  const size_t wanted = static_cast<size_t>(num_beams), ending_ranks = static_cast<size_t>(num_ending_ranks);
  for (size_t rank = 0; !heads.empty() && step.running.size() < wanted; ++rank) {
    const BeamContinuation best = heads.top();
    heads.pop();
    const int32_t next = best.entry + 1;
    if (next < static_cast<int32_t>(beams[static_cast<size_t>(best.parent)].next.size())) {
      heads.push(continuation(beams, best.parent, next));
    }
    if (!ends(best)) {
      step.running.push_back(best);
    } else if (rank < ending_ranks) {
      step.ended.push_back(best);
    }
  }
}

double hypothesis_score(double sum, int32_t length, float length_penalty) {
  return sum / std::pow(static_cast<double>(length), static_cast<double>(length_penalty));
}

bool is_beam_search_done(const BeamStopRule& rule, int32_t num_hypotheses, double worst_score, double best_sum,
                         int32_t length) {
  using EarlyStopping = SamplingParams::EarlyStopping;
  if (num_hypotheses < rule.num_beams) return false;
  if (rule.early_stopping == EarlyStopping::kTrue) return true;
  const bool may_grow = rule.early_stopping == EarlyStopping::kNever && rule.length_penalty > 0;
  return hypothesis_score(best_sum, may_grow ? rule.max_length : length, rule.length_penalty) <= worst_score;
}

int32_t num_patience_hypotheses(int32_t num_beams, double patience) {
  // nearbyint rounds half to even, as Python does.
  return static_cast<int32_t>(std::clamp(std::nearbyint(num_beams * patience), 1.0, kMostHypotheses));
}

double likelihood_score(double sum, int32_t length, std::optional<double> length_penalty) {
  if (!length_penalty.has_value()) return sum / std::max(length, 1);
  return sum / std::pow((5.0 + length) / 6.0, *length_penalty);
}

}  // namespace transept
