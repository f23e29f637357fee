// The decoder of obvious_decoder_testing.h; obvious_decoder_reference_test.cc holds it
// against the references.
#include "engine/obvious_decoder_testing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "sampling/random.h"

namespace transept::testing {
namespace {

using Tokens = std::vector<int32_t>;
using Scores = std::vector<double>;

constexpr double kNever = -std::numeric_limits<double>::infinity();
// What sums of float arithmetic may be off by: one row's scores, and the sum of a beam's log-probabilities.
constexpr double kRowError = 3e-6, kSumError = 1e-5;

bool contains(const Tokens& tokens, int32_t token) { return std::count(tokens.begin(), tokens.end(), token) > 0; }

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

Tokens last(const Tokens& tokens, size_t count) { return {tokens.end() - static_cast<int64_t>(count), tokens.end()}; }

Scores log_softmax(Scores scores) {
  const double best = *std::max_element(scores.begin(), scores.end());
  if (best == kNever) return scores;
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - best);
  for (double& score : scores) score -= best + std::log(sum);
  return scores;
}

class Decoder {
 public:
  Decoder(const EncoderDecoderInputs& inputs, const SamplingParams& params, const Scorer& scorer)
      : encoder_(inputs.encoder_token_ids()),
        prompt_(inputs.prompt_token_ids),
        num_default_generated_(inputs.num_default_generated),
        params_(params),
        scorer_(scorer) {}

  ObviousAnswer run() {
    score_prompt();
    if (params_.score_only) return answer_;
    if (params_.num_beams > 1 && params_.patience.has_value()) {
      search_with_patience();
    } else if (params_.num_beams > 1) {
      search_beams();
    } else {
      for (int32_t i = 0; i < std::max(params_.n, params_.best_of); ++i) answer_.samples.push_back(sample(i));
      answer_.outputs = answer_.samples;
      if (params_.best_of > params_.n) keep_best_samples();
    }
    return answer_;
  }

 private:
  struct Beam {
    Tokens tokens;
    double sum = 0;
    std::vector<std::shared_ptr<const Scores>> rows = {};  // that each token was chosen from, if they are wanted
  };
  struct Hypothesis {
    ObviousOutput output;
    double score = 0;
  };
  struct End {
    FinishReason reason = FinishReason::kNone;
    std::variant<std::monostate, int32_t, std::string> stop_reason;
  };

  void note_gap(double gap, double error) { answer_.margin = std::min(answer_.margin, std::abs(gap) / error); }

  Scores raw_scores(const Tokens& decoder) const {
    const std::vector<float> scores = scorer_(encoder_, decoder);
    return {scores.begin(), scores.end()};
  }

  Tokens prompt_until(size_t count) const { return {prompt_.begin(), prompt_.begin() + static_cast<int64_t>(count)}; }

  void score_prompt() {
    for (size_t i = 1; i < prompt_.size(); ++i) {
      Scores scores = raw_scores(prompt_until(i));
      if (const auto vocab = static_cast<size_t>(params_.prompt_logprobs_vocab); vocab > 0) {
        for (size_t id = vocab; id < scores.size(); ++id) scores[id] = kNever;
      }
      answer_.prompt_logprobs.push_back(log_softmax(scores)[static_cast<size_t>(prompt_[i])]);
    }
    if (!params_.probe.has_value()) return;
    const Scores logprobs = log_softmax(raw_scores(prompt_until(static_cast<size_t>(params_.probe->prompt_index) + 1)));
    answer_.probe_logprob = logprobs[static_cast<size_t>(params_.probe->token_id)];
  }

  // ---- Processors, in the reference's order

  Scores edited(Scores scores, const Tokens& generated) {
    const Tokens all = joined(prompt_, generated);
    for (size_t id = 0; id < scores.size(); ++id) {
      const int32_t token = static_cast<int32_t>(id);
      double& score = scores[id];
      if (params_.logit_bias.contains(token)) score += params_.logit_bias.at(token);
      if (contains(all, token)) {
        score = score < 0 ? score * params_.repetition_penalty : score / params_.repetition_penalty;
      }
      const auto count = std::count(generated.begin(), generated.end(), token);
      score -= params_.frequency_penalty * static_cast<double>(count);
      if (count > 0) score -= params_.presence_penalty;
      if (is_banned(token, generated)) score = kNever;
    }
    if (params_.timestamp_rules.has_value()) weigh_timestamps(scores);
    force(scores, generated);
    return params_.renormalize_logits || params_.patience.has_value() ? log_softmax(scores) : scores;
  }

  bool is_banned(int32_t token, const Tokens& generated) const {
    const int32_t num_generated = static_cast<int32_t>(generated.size());
    const int32_t begin = forces_bos() ? 1 : 0;
    return completes_ngram(token, generated, params_.no_repeat_ngram_size, joined(prompt_, generated)) ||
           completes_ngram(token, generated, params_.encoder_no_repeat_ngram_size, encoder_) ||
           completes_bad_word(token, generated) ||
           (num_generated < params_.min_tokens_before_eos && contains(params_.eos_token_ids, token)) ||
           (num_generated < params_.min_tokens && contains(params_.stop_token_ids, token)) ||
           contains(params_.suppress_tokens, token) || breaks_timestamp_rules(token, generated) ||
           (!params_.allowed_token_ids.empty() && !contains(params_.allowed_token_ids, token)) ||
           (num_generated == begin && contains(params_.begin_suppress_tokens, token));
  }

  bool breaks_timestamp_rules(int32_t token, const Tokens& generated) const {
    if (!params_.timestamp_rules.has_value()) return false;
    const TimestampRules& rules = *params_.timestamp_rules;
    const auto is_time = [&](int32_t id) { return id >= rules.timestamp_begin; };
    if (token == rules.no_timestamps_token_id) return true;
    if (generated.empty()) {
      const int32_t index = token - rules.timestamp_begin;
      return index < 0 || (rules.max_initial_timestamp_index && index > *rules.max_initial_timestamp_index);
    }
    const bool after_time = is_time(generated.back());
    const bool opens = after_time && (generated.size() == 1 || is_time(generated[generated.size() - 2]));
    const bool closes = after_time && !opens;
    if (opens && is_time(token)) return true;
    if (closes && token < rules.eos_token_id) return true;
    int32_t latest = -1;
    for (const int32_t id : generated) latest = is_time(id) ? id : latest;
    return is_time(token) && (closes ? token < latest : token <= latest);
  }

  void weigh_timestamps(Scores& scores) {
    const auto begin = scores.begin() + params_.timestamp_rules->timestamp_begin;
    const double text = *std::max_element(scores.begin(), begin);
    double times = 0;
    for (auto score = begin; score != scores.end(); ++score) times += std::exp(*score);
    if (text > kNever && times > 0) note_gap(std::log(times) - text, kRowError);
    if (std::log(times) > text) std::fill(scores.begin(), begin, kNever);
  }

  // Would the last n tokens, this one among them, be an n-gram that `text` holds?
  bool completes_ngram(int32_t token, const Tokens& generated, int32_t n, const Tokens& text) const {
    const Tokens next = joined(joined(prompt_, generated), {token});
    const size_t size = static_cast<size_t>(n);
    if (n == 0 || next.size() < size) return false;
    const Tokens ngram = last(next, size);
    for (size_t i = 0; i + size <= text.size(); ++i) {
      if (std::equal(ngram.begin(), ngram.end(), text.begin() + static_cast<int64_t>(i))) return true;
    }
    return false;
  }

  bool completes_bad_word(int32_t token, const Tokens& generated) const {
    const Tokens next = joined(generated, {token});
    return std::any_of(params_.bad_words_ids.begin(), params_.bad_words_ids.end(), [&](const Tokens& word) {
      return word.size() <= next.size() && last(next, word.size()) == word;
    });
  }

  bool forces_bos() const { return params_.forced_bos_token_id.has_value() && prompt_.size() == 1; }

  void force(Scores& scores, const Tokens& generated) const {
    const auto only = [&](int32_t token) {
      for (double& score : scores) score = kNever;
      scores[static_cast<size_t>(token)] = 0;
    };
    if (forces_bos() && generated.empty()) only(*params_.forced_bos_token_id);
    if (!params_.forced_eos_token_ids.empty() && static_cast<int32_t>(generated.size()) + 1 == params_.max_tokens) {
      only(params_.forced_eos_token_ids[0]);
    }
  }

  // ---- Ends

  End end_of(const Tokens& generated) const {
    const int32_t token = generated.back();
    const bool is_last = static_cast<int32_t>(generated.size()) == params_.max_tokens;
    if (!params_.ignore_eos && contains(params_.eos_token_ids, token)) {
      const bool was_forced =
          is_last && !params_.forced_eos_token_ids.empty() && params_.forced_eos_token_ids[0] == token;
      return {was_forced ? FinishReason::kLength : FinishReason::kStop, {}};
    }
    if (contains(params_.stop_token_ids, token)) return {FinishReason::kStop, token};
    return {is_last ? FinishReason::kLength : FinishReason::kNone, {}};
  }

  // ---- One sample

  ObviousOutput sample(int32_t index) {
    ObviousOutput output;
    while (output.finish_reason == FinishReason::kNone) {
      const Scores scores = edited(raw_scores(joined(prompt_, output.token_ids)), output.token_ids);
      const Scores logprobs = log_softmax(scores);
      if (*std::max_element(scores.begin(), scores.end()) == kNever) {
        answer_.nothing_left = true;
        output.finish_reason = FinishReason::kAbort;
        break;
      }
      const int32_t token = choose(logprobs, index, static_cast<int32_t>(output.token_ids.size()));
      output.token_ids.push_back(token);
      output.cumulative_logprob += logprobs[static_cast<size_t>(token)];
      output.logprobs.push_back(logprobs);
      const End end = end_of(output.token_ids);
      output.finish_reason = end.reason;
      output.stop_reason = end.stop_reason;
    }
    return output;
  }

  // best_of: by log-probability per token.
  void keep_best_samples() {
    const auto mean = [](const ObviousOutput& output) {
      return output.cumulative_logprob / static_cast<double>(std::max<size_t>(output.token_ids.size(), 1));
    };
    std::vector<ObviousOutput>& outputs = answer_.outputs;
    std::stable_sort(outputs.begin(), outputs.end(), [&](const auto& a, const auto& b) { return mean(a) > mean(b); });
    for (size_t i = 0; i < static_cast<size_t>(params_.n); ++i) {
      if (outputs[i].token_ids != outputs[i + 1].token_ids)
        note_gap(mean(outputs[i]) - mean(outputs[i + 1]), kSumError);
    }
    outputs.resize(static_cast<size_t>(params_.n));
  }

  // top_k, top_p and min_p look at the distribution as it is; temperature reshapes what they leave. The draw is the
  // inverse of the cumulative distribution, over ids in their order where nothing is filtered, else best first.
  int32_t choose(const Scores& logprobs, int32_t index, int32_t position) {
    Tokens order;
    for (size_t id = 0; id < logprobs.size(); ++id) {
      if (logprobs[id] > kNever) order.push_back(static_cast<int32_t>(id));
    }
    const Tokens by_id = order;
    const auto logprob = [&](int32_t token) { return logprobs[static_cast<size_t>(token)]; };
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logprob(a) > logprob(b); });
    const bool is_greedy = params_.temperature == 0 || params_.top_k == 1;
    const size_t num_in_order = is_greedy ? std::min<size_t>(order.size(), 2) : order.size();
    for (size_t i = 1; i < num_in_order; ++i) note_gap(logprob(order[i - 1]) - logprob(order[i]), kRowError);
    if (is_greedy) return order[0];

    Tokens kept = order;
    const size_t top_k = static_cast<size_t>(params_.top_k);
    const bool cuts = params_.top_k > 0 && top_k < kept.size();
    if (cuts) kept.resize(top_k);
    keep_top_p(kept, logprob);
    if (params_.min_p > 0) {
      const double least = logprob(kept[0]) + std::log(static_cast<double>(params_.min_p));
      for (const int32_t token : kept) note_gap(logprob(token) - least, kRowError);
      std::erase_if(kept, [&](int32_t token) { return logprob(token) < least; });
    }
    const bool is_filtered = cuts || params_.top_p < 1 || params_.min_p > 0;
    return draw(is_filtered ? kept : by_id, logprob,
                uniform(params_.seed, static_cast<uint32_t>(index), static_cast<uint32_t>(position)));
  }

  template <typename Logprob>
  void keep_top_p(Tokens& kept, const Logprob& logprob) {
    if (params_.top_p >= 1) return;
    double total = 0, sum = 0;
    for (const int32_t token : kept) total += std::exp(logprob(token));
    size_t count = 0;
    while (count < kept.size() && sum < params_.top_p * total) {
      sum += std::exp(logprob(kept[count++]));
      note_gap(sum / total - params_.top_p, kRowError);
    }
    kept.resize(count);
  }

  template <typename Logprob>
  int32_t draw(const Tokens& tokens, const Logprob& logprob, double number) {
    Scores weights;
    for (const int32_t token : tokens) weights.push_back(std::exp(logprob(token) / params_.temperature));
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    double sum = 0;
    std::optional<int32_t> chosen;
    for (size_t i = 0; i < tokens.size(); ++i) {
      sum += weights[i] / total;
      if (i + 1 < tokens.size()) note_gap(sum - number, kRowError / std::min(params_.temperature, 1.0f));
      if (!chosen && (number < sum || i + 1 == tokens.size())) chosen = tokens[i];
    }
    return *chosen;
  }

  // ---- Beams

  void search_beams() {
    const size_t width = static_cast<size_t>(params_.num_beams);
    std::vector<Beam> running = {{}};
    std::vector<Hypothesis> kept;  // best first
    while (!running.empty()) {
      std::vector<Beam> next;
      const std::vector<Beam> all = continuations(running);
      note_boundary(all, width);
      for (size_t rank = 0; rank < all.size() && next.size() < width; ++rank) {
        const End end = end_of(all[rank].tokens);
        if (end.reason == FinishReason::kNone) {
          next.push_back(all[rank]);
        } else if (rank < width) {
          kept.push_back(hypothesis(all[rank], end));
        }
      }
      for (const Beam& beam : next) answer_.beams.insert(beam.tokens);
      keep_best(kept, width);
      running = std::move(next);
      if (kept.size() == width && !running.empty() && is_done(running[0], kept.back())) break;
    }
    answer_.nothing_left = kept.empty();
    for (size_t i = 0; i < std::min(kept.size(), static_cast<size_t>(params_.n)); ++i) {
      if (i + 1 < kept.size()) note_gap(kept[i].score - kept[i + 1].score, kSumError);
      answer_.outputs.push_back(kept[i].output);
    }
  }

  // openai-whisper's. A beam ends by an end token or stop id alone, and waits for others to end. CTranslate2 drops ends
  // that are not among the best.
  void search_with_patience() {
    const size_t width = static_cast<size_t>(params_.num_beams);
    // Python rounds half to even; the patience of these tests has one digit.
    const double tenths = std::round(params_.num_beams * *params_.patience * 10);
    const double whole = std::floor(tenths / 10), rest = tenths - whole * 10;
    const bool up = rest > 5 || (rest == 5 && std::fmod(whole, 2) == 1);
    const size_t most = static_cast<size_t>(std::max(whole + (up ? 1 : 0), 1.0));
    std::vector<Beam> running = {{}};
    std::vector<Hypothesis> ended;  // in the order in which they did
    size_t num_unfinished = width;  // that are answers, at most
    for (int32_t step = 0; step < params_.max_tokens && ended.size() < most && !running.empty(); ++step) {
      const std::vector<Beam> all = continuations(running);
      std::vector<Beam> next, last_ended;
      size_t rank = 0;
      for (; rank < all.size() && next.size() < width; ++rank)
        (has_ended(all[rank]) ? last_ended : next).push_back(all[rank]);
      if (params_.patience_ends_by_rank) {
        std::erase_if(last_ended, [&](const Beam& beam) { return rank_of(beam, all) >= width; });
      }
      for (size_t i = 1; i < std::min(rank + 1, all.size()); ++i) {  // order decides who is kept, and first
        if (has_ended(all[i - 1]) || has_ended(all[i]) || i >= rank) note_gap(all[i - 1].sum - all[i].sum, kSumError);
      }
      for (const Beam& beam : last_ended) {
        if (ended.size() < most || params_.patience_ends_by_rank) ended.push_back(patient(beam, end_of(beam.tokens)));
      }
      for (const Beam& beam : next) answer_.beams.insert(beam.tokens);
      running = std::move(next);
      if (params_.patience_ends_by_rank) {
        num_unfinished = step + 1 < params_.max_tokens ? 0 : width - std::min(width, last_ended.size());
      }
    }
    const bool is_counted = !params_.patience_ends_by_rank;
    for (size_t i = 0; i < std::min(running.size(), num_unfinished) && (ended.size() < width || !is_counted); ++i) {
      if (i + 1 < running.size()) note_gap(running[i].sum - running[i + 1].sum, kSumError);
      ended.push_back(patient(running[i], {FinishReason::kLength, {}}));
    }
    answer_.nothing_left = ended.empty();
    std::stable_sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    for (size_t i = 0; i < std::min(ended.size(), static_cast<size_t>(params_.n)); ++i) {
      if (i + 1 < ended.size()) note_gap(ended[i].score - ended[i + 1].score, kSumError);
      answer_.outputs.push_back(ended[i].output);
    }
  }

  static size_t rank_of(const Beam& beam, const std::vector<Beam>& all) {
    return static_cast<size_t>(std::ranges::find(all, beam.tokens, &Beam::tokens) - all.begin());
  }

  bool has_ended(const Beam& beam) const {
    const int32_t token = beam.tokens.back();
    return end_of(beam.tokens).reason == FinishReason::kStop ||
           (!params_.ignore_eos && contains(params_.eos_token_ids, token));
  }

  Hypothesis patient(const Beam& beam, const End& end) {
    Hypothesis result = hypothesis(beam, end);
    const double length = static_cast<double>(beam.tokens.size()) - (has_ended(beam) ? 1 : 0);
    const auto penalty = params_.patience_length_penalty;
    result.score = beam.sum / (penalty ? std::pow((5 + length) / 6, *penalty) : std::max(length, 1.0));
    return result;
  }

  // Best first; a continuation of probability zero is none.
  std::vector<Beam> continuations(const std::vector<Beam>& running) {
    std::vector<Beam> all;
    for (const Beam& beam : running) {
      const auto row =
          std::make_shared<const Scores>(edited(log_softmax(raw_scores(joined(prompt_, beam.tokens))), beam.tokens));
      for (size_t id = 0; id < row->size(); ++id) {
        if ((*row)[id] == kNever) continue;
        Beam& next = all.emplace_back(beam);
        next.tokens.push_back(static_cast<int32_t>(id));
        next.sum += (*row)[id];
        if (params_.logprobs.has_value()) next.rows.push_back(row);
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Beam& a, const Beam& b) { return a.sum > b.sum; });
    return all;
  }

  // What could fall either way: who is among the best `width` of all if one that ends is concerned, and who among those
  // that go on.
  void note_boundary(const std::vector<Beam>& all, size_t width) {
    const auto ends = [&](size_t i) { return end_of(all[i].tokens).reason != FinishReason::kNone; };
    if (all.size() > width && (ends(width - 1) || ends(width))) {
      note_gap(all[width - 1].sum - all[width].sum, kSumError);
    }
    std::vector<double> going_on;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!ends(i)) going_on.push_back(all[i].sum);
    }
    if (going_on.size() > width) note_gap(going_on[width - 1] - going_on[width], kSumError);
  }

  Hypothesis hypothesis(const Beam& beam, const End& end) {
    answer_.beams.insert(beam.tokens);
    Hypothesis result;
    result.output.token_ids = beam.tokens;
    result.output.cumulative_logprob = beam.sum;
    result.output.finish_reason = end.reason;
    result.output.stop_reason = end.stop_reason;
    for (const auto& row : beam.rows) result.output.logprobs.push_back(*row);
    result.score = normalized(beam.sum, static_cast<int32_t>(beam.tokens.size()));
    return result;
  }

  double normalized(double sum, int32_t num_tokens) const {
    return sum / std::pow(num_tokens + num_default_generated_, static_cast<double>(params_.length_penalty));
  }

  void keep_best(std::vector<Hypothesis>& kept, size_t width) {
    std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    if (kept.size() <= width) return;
    note_gap(kept[width - 1].score - kept[width].score, kSumError);
    kept.resize(width);
  }

  bool is_done(const Beam& best, const Hypothesis& worst) {
    using EarlyStopping = SamplingParams::EarlyStopping;
    if (params_.early_stopping == EarlyStopping::kTrue) return true;
    const bool to_the_end = params_.early_stopping == EarlyStopping::kNever && params_.length_penalty > 0;
    const double hope =
        normalized(best.sum, to_the_end ? params_.max_tokens : static_cast<int32_t>(best.tokens.size()));
    note_gap(hope - worst.score, kSumError);
    return hope <= worst.score;
  }

  const Tokens encoder_, prompt_;
  const int32_t num_default_generated_;
  const SamplingParams& params_;
  const Scorer& scorer_;
  ObviousAnswer answer_;
};

}  // namespace

ObviousAnswer decode_obviously(const EncoderDecoderInputs& inputs, const SamplingParams& params, const Scorer& scorer) {
  return Decoder(inputs, params, scorer).run();
}

}  // namespace transept::testing
