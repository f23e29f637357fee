#include "sampling/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu_device.h"
#include "ops/select_kernels.h"
#include "ops/softmax.h"
#include "sampling/random.h"

namespace transept {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool before(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.token_id < b.token_id);
}

// Sorts just enough of the candidates, best first, that their probabilities reach `mass` of `total`; returns how many.
size_t sort_until_mass(std::span<Candidate> candidates, float best, double mass) {
  double sum = 0;
  size_t sorted = 0, kept = 0;
  size_t step = 64;
  while (kept < candidates.size()) {
    if (kept == sorted) {
      const size_t end = std::min(candidates.size(), sorted + step);
      const auto from = candidates.begin() + static_cast<std::ptrdiff_t>(sorted);
      std::partial_sort(from, candidates.begin() + static_cast<std::ptrdiff_t>(end), candidates.end(), before);
      sorted = end;
      step *= 4;
    }
    sum += std::exp(static_cast<double>(candidates[kept].score) - best);
    ++kept;
    if (sum >= mass) break;
  }
  return kept;
}

// One draw among the candidates, in the order in which they stand, with probability ~ exp(score / temperature).
int32_t draw(std::span<const Candidate> candidates, float best, const RowRequest& request) {
  const double inverse = 1.0 / request.temperature;
  const auto weight = [&](const Candidate& c) { return std::exp((static_cast<double>(c.score) - best) * inverse); };
  double total = 0;
  for (const Candidate& c : candidates) total += weight(c);
  double left = uniform(request.seed, request.seq_index, request.position) * total;
  for (const Candidate& c : candidates) {
    left -= weight(c);
    if (left < 0) return c.token_id;
  }
  // Rounding left a crumb: the last token that has a weight.
  for (size_t i = candidates.size(); i > 0; --i) {
    if (weight(candidates[i - 1]) > 0) return candidates[i - 1].token_id;
  }
  return candidates.front().token_id;
}

// "If sum of probability over timestamps is above any other token, sample timestamp" (openai-whisper's
// ApplyTimestampRules). A comparison that is not one, of rows without numbers or without anything left, bans nothing.
void weigh_timestamps(const Context& context, size_t num_others, std::span<float> scores) {
  const std::span<float> others = scores.first(num_others);
  const int64_t best = arg_max(context, others);
  if (best < 0) return;
  const float together = log_sum_exp(context, scores.subspan(num_others));
  if (together > others[static_cast<size_t>(best)]) std::fill(others.begin(), others.end(), kNever);
}

void edit_single_scores(const RowEdits& edits, const IdPlaces& places, std::span<float> scores) {
  DCHECK(places.size() == scores.size());
  const auto edit = [&](int32_t id, auto&& change) {
    if (const size_t place = places.find(id); place < scores.size()) change(scores[place]);
  };
  for (const RowEdits::Bias& bias : edits.biases) edit(bias.token_id, [&](float& score) { score += bias.value; });
  if (edits.repetition_penalty != 1) {
    for (const int32_t id : edits.seen) {
      edit(id, [&](float& score) {
        score = score < 0 ? score * edits.repetition_penalty : score / edits.repetition_penalty;
      });
    }
  }
  for (const RowEdits::Count& count : edits.generated) {
    edit(count.token_id, [&](float& score) {
      score -= edits.frequency_penalty * static_cast<float>(count.count) + edits.presence_penalty;
    });
  }
  for (const int32_t id : edits.banned) edit(id, [](float& score) { score = kNever; });
  for (const RowEdits::Range range : edits.banned_ranges) {
    const size_t end = places.lower(range.end);
    for (size_t i = places.lower(range.begin); i < end; ++i) scores[i] = kNever;
  }
  if (edits.forced_token >= 0) {
    std::fill(scores.begin(), scores.end(), kNever);
    edit(edits.forced_token, [](float& score) { score = 0; });
  }
}

}  // namespace

void apply_edits(const RowEdits& edits, int32_t first_id, std::span<float> scores) {
  edit_single_scores(edits, IdPlaces(first_id, scores.size()), scores);
}

void apply_edits(const Context& context, const RowEdits& edits, const IdPlaces& places, std::span<float> scores) {
  edit_single_scores(edits, places, scores);
  if (edits.timestamp_begin >= 0 && edits.forced_token < 0) {
    weigh_timestamps(context, places.lower(edits.timestamp_begin), scores);
  }
}

int32_t choose_token(const Context& context, const RowRequest& request, std::span<const float> scores,
                     std::span<Candidate> scratch) {
  const int32_t best_id = static_cast<int32_t>(arg_max(context, scores));
  if (best_id < 0 || scores[static_cast<size_t>(best_id)] == kNever) return -1;
  if (request.temperature == 0 || request.top_k == 1) return best_id;
  const float best = scores[static_cast<size_t>(best_id)];
  size_t count = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > kNever) scratch[count++] = {scores[i], static_cast<int32_t>(i)};
  }
  std::span<Candidate> candidates = scratch.first(count);
  if (request.top_k > 0 && static_cast<size_t>(request.top_k) < count) {
    std::nth_element(candidates.begin(), candidates.begin() + request.top_k, candidates.end(), before);
    candidates = candidates.first(static_cast<size_t>(request.top_k));
    std::sort(candidates.begin(), candidates.end(), before);
  }
  if (request.top_p < 1) {
    double total = 0;
    for (const Candidate& c : candidates) total += std::exp(static_cast<double>(c.score) - best);
    candidates = candidates.first(sort_until_mass(candidates, best, total * request.top_p));
  }
  if (request.min_p > 0) {
    const float least = best + std::log(request.min_p);
    const auto end =
        std::partition(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.score >= least; });
    candidates = candidates.first(static_cast<size_t>(end - candidates.begin()));
    std::sort(candidates.begin(), candidates.end(), before);
  }
  return draw(candidates, best, request);
}

int32_t rank_of(std::span<const float> scores, int32_t token_id) {
  const size_t token = static_cast<size_t>(token_id);
  const float score = scores[token];
  int32_t rank = 1;
  for (size_t i = 0; i < token; ++i) rank += scores[i] >= score ? 1 : 0;
  for (size_t i = token + 1; i < scores.size(); ++i) rank += scores[i] > score ? 1 : 0;
  return rank;
}

int32_t top_entries(const Context& context, std::span<const float> scores, float log_normalizer, int32_t k,
                    std::span<TokenLogprob> out) {
  if (k == 0) return 0;
  const OpKernels& kernels = op_kernels(cpu_of(context).isa());
  constexpr size_t kStretch = 512;
  int32_t places[kStretch];
  int32_t count = 0;
  const auto least = [&] { return count == k ? out[static_cast<size_t>(count - 1)].logprob : kNever; };
  for (size_t begin = 0; begin < scores.size(); begin += kStretch) {
    const float* stretch = scores.data() + begin;
    const auto size = static_cast<int32_t>(std::min(kStretch, scores.size() - begin));
    const int32_t num_above = kernels.find_above(stretch, size, least(), places);
    for (int32_t i = 0; i < num_above; ++i) {
      const float score = stretch[places[i]];
      if (!(score > least())) continue;
      // Insertion: k is at most a few dozen, and past the first entries a better one is rare.
      int32_t place = count < k ? count++ : count - 1;
      for (; place > 0 && out[static_cast<size_t>(place - 1)].logprob < score; --place) {
        out[static_cast<size_t>(place)] = out[static_cast<size_t>(place - 1)];
      }
      out[static_cast<size_t>(place)] = {static_cast<int32_t>(begin) + places[i], score, 0};
    }
  }
  for (int32_t i = 0; i < count; ++i) {
    out[static_cast<size_t>(i)].rank = i + 1;
    out[static_cast<size_t>(i)].logprob -= log_normalizer;
  }
  return count;
}

}  // namespace transept
