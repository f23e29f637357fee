#include "speculation/draft_length.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace transept {
namespace {

constexpr double kHalf = 0.5;
// The weight of the newest measurement of a cost, if it is slower than the mean or faster.
constexpr double kSlower = 0.125, kFaster = 0.25;
constexpr double kStillDear = 0.8;   // of what it cost when it was left
constexpr double kOutlier = 2;       // times the mean: a measurement counts as this at most
constexpr int32_t kFewSteps = 3;     // measurements of a cost before it is believed
constexpr int32_t kBareEvery = 256;  // steps with drafts, after which one goes without, to measure it again
constexpr double kLeastGain = 1.05;  // of tokens a second
constexpr int32_t kFirstPatience = 16, kMostPatience = 256;        // of a drafter that is wrong, in steps
constexpr int32_t kFirstForgetting = 128, kLastForgetting = 1024;  // of a cost

}  // namespace

void Acceptance::count(int32_t num_drafts, int32_t num_accepted, double half_life) {
  const double least = 1 - std::pow(kHalf, 1 / half_life);
  const int32_t num_told = std::min(num_accepted + 1, num_drafts);
  for (int32_t i = 0; i < num_told; ++i) {
    const double newest = std::max(1 / (weight + 1), least);
    share += newest * ((i < num_accepted ? 1.0 : 0.0) - share);
    weight += 1;
  }
  num_idle = 0;
  if (num_accepted > 0) patience = 0;
}

size_t DraftLength::bucket(int32_t count) {
  if (count <= 0) return 0;
  return std::min<size_t>(static_cast<size_t>(std::bit_width(static_cast<uint32_t>(count - 1))) + 1, kBuckets - 1);
}

// What was hardly measured is taken to cost what fewer drafts do, and so is tried. What was dear is forgotten, and so
// is tried again, more and more seldom: others may have used the machine.
double DraftLength::cost(size_t seqs, int32_t num_drafts) const {
  const Cost& bare = costs_[seqs][0];
  for (size_t i = bucket(num_drafts); i > 0; --i) {
    const Cost& measured = costs_[seqs][i];
    if (measured.count < kFewSteps) continue;
    const double age = num_steps_[seqs] - measured.last;
    return bare.seconds + std::max(measured.seconds - bare.seconds, 0.0) * std::pow(kHalf, age / measured.patience);
  }
  return bare.seconds;
}

int32_t DraftLength::choose(int32_t num_seqs, int32_t most, Acceptance& acceptance) {
  if (!is_adaptive_ || most <= 0) return most;
  const size_t seqs = bucket(num_seqs);
  const Cost& bare = costs_[seqs][0];
  if (bare.count < kFewSteps || num_since_bare_ >= kBareEvery) return 0;
  // The mean of tokens of k drafts, each accepted with probability a: (1 - a^(k+1)) / (1 - a).
  double tokens = 1, power = 1, best_rate = kLeastGain / bare.seconds;
  int32_t best = 0;
  for (int32_t k = 1; k <= most; ++k) {
    power *= acceptance.share;
    tokens += power;
    const double rate = tokens / cost(seqs, k * num_seqs);
    if (rate > best_rate) {
      best_rate = rate;
      best = k;
    }
  }
  if (best > 0) return best;
  if (acceptance.patience == 0) acceptance.patience = kFirstPatience;
  if (++acceptance.num_idle <= acceptance.patience) return 0;
  acceptance.num_idle = 0;
  acceptance.patience = std::min(2 * acceptance.patience, kMostPatience);
  return 1;
}

void DraftLength::count(int32_t num_seqs, int32_t num_drafts, double seconds) {
  num_since_bare_ = num_drafts == 0 ? 0 : num_since_bare_ + 1;
  if (seconds <= 0) return;
  const size_t seqs = bucket(num_seqs);
  Cost& cost = costs_[seqs][bucket(num_drafts)];
  const int32_t age = ++num_steps_[seqs] - cost.last;
  cost.last = num_steps_[seqs];
  if (++cost.count <= kFewSteps) {
    cost.seconds = cost.count == 1 ? seconds : std::min(cost.seconds, seconds);
    cost.patience = kFirstForgetting;
    return;
  }
  const bool was_left = age > cost.patience / 4;
  if (was_left && seconds <= kStillDear * cost.seconds) {
    cost.seconds = seconds;
    cost.patience = kFirstForgetting;
    return;
  }
  if (was_left) cost.patience = std::min(2 * cost.patience, kLastForgetting);
  const double newest = seconds > cost.seconds ? kSlower : kFaster;
  cost.seconds += newest * (std::min(seconds, kOutlier * cost.seconds) - cost.seconds);
}

}  // namespace transept
