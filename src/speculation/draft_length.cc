#include "speculation/draft_length.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace transept {
namespace {

constexpr double kHalf = 0.5;
// The weight of the newest measurement of a cost, if it is slower than the mean or faster.
constexpr double kSlower = 0.125, kFaster = 0.25;
constexpr double kForgetting = 64;   // steps without drafts that halve what a cost was above theirs
constexpr double kOutlier = 2;       // times the mean: a measurement counts as this at most
constexpr int32_t kFewSteps = 3;     // measurements of steps without drafts before any is made
constexpr int32_t kBareEvery = 256;  // steps with drafts, after which one goes without, to measure it again
constexpr double kLeastGain = 1.05;  // of tokens a second
constexpr int32_t kFirstPatience = 16, kMostPatience = 256;

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

// What was never measured is taken to cost what fewer drafts do, and so is tried. What was dear is forgotten, and so is
// tried again.
double DraftLength::cost(size_t seqs, int32_t num_drafts) const {
  const Cost& bare = costs_[seqs][0];
  for (size_t i = bucket(num_drafts); i > 0; --i) {
    const Cost& measured = costs_[seqs][i];
    if (measured.count == 0) continue;
    const double age = bare.count - measured.last;
    return bare.seconds + std::max(measured.seconds - bare.seconds, 0.0) * std::pow(kHalf, age / kForgetting);
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
  Cost& cost = costs_[bucket(num_seqs)][bucket(num_drafts)];
  ++cost.count;
  cost.last = costs_[bucket(num_seqs)][0].count;
  if (cost.count == 1) {
    cost.seconds = seconds;
  } else {
    const double newest = std::max(seconds > cost.seconds ? kSlower : kFaster, 1.0 / cost.count);
    cost.seconds += newest * (std::min(seconds, kOutlier * cost.seconds) - cost.seconds);
  }
}

}  // namespace transept
