// Proves that draws follow the exact distribution, filters and all: Pearson's chi-square of 50,000 draws a setting
// against probabilities worked out here in double by the definition (top-k, then top-p, then min-p, then temperature:
// docs/decisions/0005). Seeds are fixed, so a run always gives the same verdict; the significance says how unlikely it
// was that a right sampler would have failed when the test was written. Distributions that are a little wrong must be
// rejected by the same measure.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/thread_pool.h"
#include "ops/cpu_device.h"
#include "sampling/choose.h"

namespace transept {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr double kSignificance = 1e-6;
constexpr int kDraws = 50000;

// ---- The measure

// The chance that chi-square with `degrees` degrees of freedom exceeds x: Q(1) = erfc(sqrt(x / 2)), Q(2) = exp(-x / 2),
// Q(k + 2) = Q(k) + (x / 2)^(k / 2) exp(-x / 2) / Gamma(k / 2 + 1) (Abramowitz, Stegun 26.4.8).
double chi_square_tail(double x, int degrees) {
  const double half = x / 2;
  double tail = degrees % 2 == 1 ? std::erfc(std::sqrt(half)) : std::exp(-half);
  for (int k = 2 - degrees % 2; k + 2 <= degrees; k += 2) {
    tail += std::exp(k / 2.0 * std::log(half) - half - std::lgamma(k / 2.0 + 1));
  }
  return tail;
}

// How likely counts at least so far from the distribution are. 0 if something impossible was drawn. Bins that expect
// fewer than 5 are thrown together, as Pearson's approximation wants it.
double p_value(const std::vector<int>& counts, const std::vector<double>& distribution) {
  const double num_draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double statistic = 0, pooled_count = 0, pooled_expected = 0;
  int num_bins = 0;
  const auto add_bin = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++num_bins;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = distribution[i] * num_draws;
    if (expected == 0 && counts[i] > 0) return 0;
    if (expected >= 5) {
      add_bin(counts[i], expected);
    } else {
      pooled_count += counts[i];
      pooled_expected += expected;
    }
  }
  if (pooled_expected > 0) add_bin(pooled_count, pooled_expected);
  return num_bins == 1 ? 1 : chi_square_tail(statistic, num_bins - 1);
}

TEST(ChiSquare, AgreesWithTheTables) {  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4
  EXPECT_NEAR(chi_square_tail(3.841, 1), 0.05, 1e-4);
  EXPECT_NEAR(chi_square_tail(5.991, 2), 0.05, 1e-4);
  EXPECT_NEAR(chi_square_tail(10.828, 1), 0.001, 1e-6);
  EXPECT_NEAR(chi_square_tail(18.307, 10), 0.05, 1e-4);
  EXPECT_NEAR(chi_square_tail(29.588, 10), 0.001, 1e-6);
  EXPECT_NEAR(chi_square_tail(49.728, 23), 0.001, 1e-6);
}

// ---- The definition

struct Setting {
  double temperature = 1;
  int top_k = 0;
  double top_p = 1;
  double min_p = 0;

  std::string text() const {
    return str_cat("temperature ", temperature, ", top_k ", top_k, ", top_p ", top_p, ", min_p ", min_p);
  }
};

std::vector<double> normalized(std::vector<double> p) {
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= total;
  return p;
}

std::vector<double> softmax(const std::vector<float>& scores, double temperature = 1) {
  std::vector<double> p;
  p.reserve(scores.size());
  for (const float score : scores)
    p.push_back(score == kNever ? 0 : std::exp(static_cast<double>(score) / temperature));
  return normalized(p);
}

std::vector<double> filtered(std::vector<double> p, const Setting& setting) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  if (setting.top_k > 0) {
    for (size_t rank = static_cast<size_t>(setting.top_k); rank < order.size(); ++rank) p[order[rank]] = 0;
  }
  p = normalized(p);
  double before = 0;  // the mass of those that are better
  for (const size_t id : order) {
    const double own = p[id];
    // A setting at which rounding would decide is a bad question.
    EXPECT_TRUE(own == 0 || setting.top_p == 1 || std::abs(before - setting.top_p) > 1e-6) << setting.text();
    if (before >= setting.top_p) p[id] = 0;
    before += own;
  }
  const double least = setting.min_p * *std::max_element(p.begin(), p.end());
  for (double& value : p) value = value >= least ? value : 0;
  return normalized(p);
}

std::vector<double> exact_distribution(const std::vector<float>& scores, const Setting& setting) {
  std::vector<double> p = filtered(softmax(scores), setting);
  for (double& value : p) value = value == 0 ? 0 : std::pow(value, 1 / setting.temperature);
  return normalized(p);
}

// What Hugging Face and vLLM do, and we do not.
std::vector<double> temperature_first(const std::vector<float>& scores, const Setting& setting) {
  return filtered(softmax(scores, setting.temperature), setting);
}

// ---- The sampler

enum class Along { kPositions, kIndices, kSeeds };  // what of a draw's key changes from draw to draw

class Sampler {
 public:
  int32_t draw(const std::vector<float>& scores, const Setting& setting, uint64_t seed, uint32_t index,
               uint32_t position) {
    RowRequest request;
    request.temperature = static_cast<float>(setting.temperature);
    request.top_k = setting.top_k;
    request.top_p = static_cast<float>(setting.top_p);
    request.min_p = static_cast<float>(setting.min_p);
    request.seed = seed;
    request.seq_index = index;
    request.position = position;
    scratch_.resize(scores.size());
    return choose_token(context_, request, scores, scratch_);
  }

  int32_t draw(const std::vector<float>& scores, const Setting& setting, Along along, uint32_t i) {
    if (along == Along::kPositions) return draw(scores, setting, 11, i / 1000, i % 1000);
    if (along == Along::kIndices) return draw(scores, setting, 12, i % 64, i / 64);
    return draw(scores, setting, i, 0, 3);
  }

  std::vector<int> counts(const std::vector<float>& scores, const Setting& setting, Along along) {
    std::vector<int> counts(scores.size());
    for (uint32_t i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(draw(scores, setting, along, i))];
    return counts;
  }

 private:
  ThreadPool threads_{1};
  Arena arena_{1 << 12};
  CpuDevice device_{threads_};
  Context context_{device_, arena_};
  std::vector<Candidate> scratch_;
};

struct Row {
  const char* name;
  std::vector<float> scores;
};

std::vector<Row> rows() {
  std::vector<Row> rows = {
      {"spread", {}}, {"banned", {}}, {"ties", {1, 2, 2, 0, 2, 1, 2, 1, 0, 1}}, {"two", {-3.5f, -2.75f}}};
  for (int i = 0; i < 24; ++i) {
    rows[0].scores.push_back(1.5f * std::sin(2.4f * static_cast<float>(i) + 0.7f) - 0.05f * static_cast<float>(i));
    rows[1].scores.push_back(i % 3 == 1 ? kNever : -10 + 2 * std::cos(1.7f * static_cast<float>(i)));
  }
  return rows;
}

std::vector<Setting> settings() {
  return {
      {.temperature = 0.3},
      {.temperature = 0.7},
      {},
      {.temperature = 2.5},
      {.top_k = 2},
      {.top_k = 7},
      {.top_k = 1000},
      {.top_p = 0.05},
      {.top_p = 0.37},
      {.top_p = 0.93},
      {.min_p = 0.03},
      {.min_p = 0.2},
      {.min_p = 0.7},
      {.temperature = 1.6, .top_k = 5},
      {.temperature = 3, .top_p = 0.62},
      {.temperature = 0.4, .min_p = 0.11},
      {.top_k = 6, .top_p = 0.81},
      {.top_p = 0.71, .min_p = 0.26},
      {.temperature = 0.8, .top_k = 9, .top_p = 0.88, .min_p = 0.05},
      {.temperature = 2, .top_k = 4, .top_p = 0.97, .min_p = 0.3},
  };
}

TEST(Sampling, DrawsFollowTheExactDistribution) {
  Sampler sampler;
  int num_settings = 0;
  for (const Row& row : rows()) {
    for (const Setting& setting : settings()) {
      const Along along = static_cast<Along>(num_settings++ % 3);
      const std::vector<int> counts = sampler.counts(row.scores, setting, along);
      EXPECT_GT(p_value(counts, exact_distribution(row.scores, setting)), kSignificance)
          << row.name << ", " << setting.text() << ", along " << static_cast<int>(along);
    }
  }
}

// ---- The test can fail

TEST(Sampling, DistributionsThatAreALittleWrongAreRejected) {
  Sampler sampler;
  const std::vector<float> scores = rows()[0].scores;
  const auto is_rejected = [&](const Setting& drawn, const Setting& claimed) {
    return p_value(sampler.counts(scores, drawn, Along::kPositions), exact_distribution(scores, claimed)) <
           kSignificance;
  };
  EXPECT_TRUE(is_rejected({.temperature = 1.05}, {}));
  EXPECT_TRUE(is_rejected({}, {.temperature = 1.05}));
  EXPECT_TRUE(is_rejected({.top_k = 7}, {.top_k = 6}));
  EXPECT_TRUE(is_rejected({.top_k = 6}, {.top_k = 7}));
  EXPECT_TRUE(is_rejected({.top_p = 0.37}, {.top_p = 0.15}));
  EXPECT_TRUE(is_rejected({.top_p = 0.93}, {}));
  EXPECT_TRUE(is_rejected({.min_p = 0.2}, {.min_p = 0.3}));
  EXPECT_TRUE(is_rejected({.min_p = 0.03}, {}));
  // One count in a hundred of the commonest token goes to the next.
  const std::vector<double> exact = exact_distribution(scores, {});
  std::vector<int> counts = sampler.counts(scores, {}, Along::kSeeds);
  EXPECT_GT(p_value(counts, exact), kSignificance);
  const size_t best = static_cast<size_t>(std::max_element(exact.begin(), exact.end()) - exact.begin());
  counts[best] -= kDraws / 100;
  counts[best + 1] += kDraws / 100;
  EXPECT_LT(p_value(counts, exact), kSignificance);
}

TEST(Sampling, FiltersLookAtTheDistributionBeforeTemperature) {
  Sampler sampler;
  const std::vector<float> scores = rows()[0].scores;
  for (const Setting& setting :
       {Setting{.temperature = 3, .top_p = 0.62}, Setting{.temperature = 0.4, .min_p = 0.11}}) {
    const std::vector<int> counts = sampler.counts(scores, setting, Along::kPositions);
    EXPECT_GT(p_value(counts, exact_distribution(scores, setting)), kSignificance) << setting.text();
    EXPECT_LT(p_value(counts, temperature_first(scores, setting)), kSignificance) << setting.text();
  }
}

// ---- Neighbouring draws know nothing of each other

// Counts of pairs of tokens that two keys give; the keys of pair i are what `first` and `second` say.
template <typename First, typename Second>
std::vector<int> pair_counts(size_t vocab, First first, Second second) {
  std::vector<int> counts(vocab * vocab);
  for (uint32_t i = 0; i < kDraws; ++i) {
    ++counts[static_cast<size_t>(first(i)) * vocab + static_cast<size_t>(second(i))];
  }
  return counts;
}

TEST(Sampling, NeighboursInPositionIndexAndSeedAreIndependent) {
  Sampler sampler;
  const std::vector<float> scores = {0.5f, 2, 1, -0.5f, 1.5f, 0};
  const size_t vocab = scores.size();
  const std::vector<double> p = exact_distribution(scores, {});
  std::vector<double> pairs;
  for (const double a : p) {
    for (const double b : p) pairs.push_back(a * b);
  }
  const auto draw = [&](uint64_t seed, uint32_t index, uint32_t position) {
    return sampler.draw(scores, {}, seed, index, position);
  };
  // Pairs do not overlap, else they would depend on each other by construction.
  const auto along = [&](auto key) {
    return p_value(pair_counts(
                       vocab, [&](uint32_t i) { return key(2 * i); }, [&](uint32_t i) { return key(2 * i + 1); }),
                   pairs);
  };
  EXPECT_GT(along([&](uint32_t i) { return draw(5, 0, i); }), kSignificance);
  EXPECT_GT(along([&](uint32_t i) { return draw(5, i, 0); }), kSignificance);
  EXPECT_GT(along([&](uint32_t i) { return draw(i, 0, 0); }), kSignificance);
  // The same step of neighbouring samples, and the two that a mix-up of index and position would make equal.
  EXPECT_GT(p_value(pair_counts(
                        vocab, [&](uint32_t i) { return draw(5, 0, i); }, [&](uint32_t i) { return draw(5, 1, i); }),
                    pairs),
            kSignificance);
  EXPECT_GT(
      p_value(pair_counts(
                  vocab, [&](uint32_t i) { return draw(5, i, 70000); }, [&](uint32_t i) { return draw(5, 70000, i); }),
              pairs),
      kSignificance);
  // And it would show: draws that look at every second position only.
  EXPECT_LT(along([&](uint32_t i) { return draw(5, 0, i / 2); }), kSignificance);
}

}  // namespace
}  // namespace transept
