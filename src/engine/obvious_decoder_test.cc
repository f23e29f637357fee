// The decoder of obvious_decoder.h (compiled into the tests only).
#include "engine/obvious_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "base/json.h"
#include "engine/fake_model_executor.h"
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
      : encoder_(inputs.encoder_prompt_token_ids),
        prompt_(inputs.prompt_token_ids),
        num_default_generated_(inputs.num_default_generated),
        params_(params),
        scorer_(scorer) {}

  ObviousAnswer run() {
    score_prompt();
    if (params_.score_only) return answer_;
    if (params_.num_beams > 1) {
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

  void score_prompt() {
    for (size_t i = 1; i < prompt_.size(); ++i) {
      const Scores logprobs =
          log_softmax(raw_scores(Tokens(prompt_.begin(), prompt_.begin() + static_cast<int64_t>(i))));
      answer_.prompt_logprobs.push_back(logprobs[static_cast<size_t>(prompt_[i])]);
    }
  }

  // ---- Processors, in the reference's order

  Scores edited(Scores scores, const Tokens& generated) const {
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
    force(scores, generated);
    return params_.renormalize_logits ? log_softmax(scores) : scores;
  }

  bool is_banned(int32_t token, const Tokens& generated) const {
    const int32_t num_generated = static_cast<int32_t>(generated.size());
    const int32_t begin = forces_bos() ? 1 : 0;
    return completes_ngram(token, generated, params_.no_repeat_ngram_size, joined(prompt_, generated)) ||
           completes_ngram(token, generated, params_.encoder_no_repeat_ngram_size, encoder_) ||
           completes_bad_word(token, generated) ||
           (num_generated < params_.min_tokens_before_eos && contains(params_.eos_token_ids, token)) ||
           (num_generated < params_.min_tokens && contains(params_.stop_token_ids, token)) ||
           contains(params_.suppress_tokens, token) ||
           (num_generated == begin && contains(params_.begin_suppress_tokens, token));
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

  // Best first; a continuation of probability zero is none.
  std::vector<Beam> continuations(const std::vector<Beam>& running) const {
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

// ---- Held against transformers' own generate around the same hash (tests/make_decoding.py)

namespace {

struct ReferenceCase {
  EncoderDecoderInputs inputs;
  SamplingParams params;
  std::vector<Tokens> outputs;
  Scores scores;  // of beams: sum / length ^ length_penalty
};

Tokens ids_of(const Json* list) {
  Tokens ids;
  if (list == nullptr) return ids;
  for (const Json& id : list->as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

SamplingParams params_of(const Json& line) {
  const auto number = [&](std::string_view key, double fallback) {
    return line.find(key) == nullptr ? fallback : line.find(key)->as_double();
  };
  const auto integer = [&](std::string_view key, int32_t fallback) {
    return static_cast<int32_t>(number(key, fallback));
  };
  SamplingParams params;
  params.max_tokens = integer("max_tokens", 0);
  params.min_tokens_before_eos = integer("min_tokens", 0);
  params.num_beams = integer("num_beams", 1);
  params.n = integer("n", 1);
  params.length_penalty = static_cast<float>(number("length_penalty", 1));
  if (const Json* early = line.find("early_stopping"); early != nullptr) {
    using EarlyStopping = SamplingParams::EarlyStopping;
    params.early_stopping = early->as_string() == "true"    ? EarlyStopping::kTrue
                            : early->as_string() == "never" ? EarlyStopping::kNever
                                                            : EarlyStopping::kFalse;
  }
  params.repetition_penalty = static_cast<float>(number("repetition_penalty", 1));
  params.no_repeat_ngram_size = integer("no_repeat_ngram_size", 0);
  params.encoder_no_repeat_ngram_size = integer("encoder_no_repeat_ngram_size", 0);
  params.eos_token_ids = ids_of(line.find("eos_token_ids"));
  params.suppress_tokens = ids_of(line.find("suppress_tokens"));
  params.begin_suppress_tokens = ids_of(line.find("begin_suppress_tokens"));
  if (const Json* words = line.find("bad_words_ids"); words != nullptr) {
    for (const Json& word : words->as_array()) params.bad_words_ids.push_back(ids_of(&word));
  }
  if (line.find("forced_bos_token_id") != nullptr) params.forced_bos_token_id = integer("forced_bos_token_id", 0);
  if (line.find("forced_eos_token_id") != nullptr) params.forced_eos_token_ids = {integer("forced_eos_token_id", 0)};
  params.renormalize_logits = line.find("renormalize_logits")->as_bool();
  return params;
}

std::vector<ReferenceCase> reference_cases() {
  std::ifstream file(TRANSEPT_SOURCE_DIR "/src/engine/testdata/decoding.jsonl");
  std::vector<ReferenceCase> cases;
  for (std::string text; std::getline(file, text);) {
    const Json line = std::move(Json::parse(text).value());
    ReferenceCase& reference = cases.emplace_back();
    reference.inputs.encoder_prompt_token_ids = ids_of(line.find("encoder"));
    reference.inputs.prompt_token_ids = ids_of(line.find("decoder"));
    reference.params = params_of(line);
    for (const Json& output : line.find("outputs")->as_array()) {
      reference.outputs.push_back(ids_of(output.find("token_ids")));
      if (output.find("score") != nullptr) reference.scores.push_back(output.find("score")->as_double());
    }
  }
  return cases;
}

TEST(ObviousDecoder, GivesWhatTransformersGives) {
  int num_checked = 0;
  const std::vector<ReferenceCase> cases = reference_cases();
  ASSERT_EQ(cases.size(), 300u);
  for (size_t c = 0; c < cases.size(); ++c) {
    const auto& [inputs, params, outputs, scores] = cases[c];
    const ObviousAnswer answer = decode_obviously(inputs, params, fake_scores);
    if (answer.margin < 10) continue;
    ++num_checked;
    ASSERT_EQ(answer.outputs.size(), outputs.size()) << "line " << c + 1;
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(answer.outputs[i].token_ids, outputs[i]) << "line " << c + 1 << ", output " << i;
      if (scores.empty()) continue;
      const double length = static_cast<double>(answer.outputs[i].token_ids.size());
      EXPECT_NEAR(answer.outputs[i].cumulative_logprob / std::pow(length, params.length_penalty), scores[i], 1e-4)
          << "line " << c + 1 << ", output " << i;
    }
  }
  EXPECT_GT(num_checked, 270);
}

// A bos that the default prompt supplied counts as generated, because transformers generates it by force.
TEST(ObviousDecoder, ASuppliedBosCountsLikeAForcedOne) {
  int num_checked = 0;
  for (ReferenceCase& reference : reference_cases()) {
    auto& [inputs, params, outputs, scores] = reference;
    const bool can_be_moved = params.forced_bos_token_id.has_value() && params.num_beams > 1 && params.max_tokens > 1 &&
                              params.begin_suppress_tokens.empty() && params.bad_words_ids.empty();
    if (!can_be_moved ||
        std::count(params.eos_token_ids.begin(), params.eos_token_ids.end(), *params.forced_bos_token_id) > 0) {
      continue;
    }
    inputs.prompt_token_ids.push_back(*params.forced_bos_token_id);
    inputs.num_default_generated = 1;
    params.forced_bos_token_id.reset();
    --params.max_tokens;
    params.min_tokens_before_eos = std::max(params.min_tokens_before_eos - 1, 0);
    const ObviousAnswer answer = decode_obviously(inputs, params, fake_scores);
    if (answer.margin < 10) continue;
    ++num_checked;
    ASSERT_EQ(answer.outputs.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(answer.outputs[i].token_ids, Tokens(outputs[i].begin() + 1, outputs[i].end()));
    }
  }
  EXPECT_GT(num_checked, 10);
}

}  // namespace

}  // namespace transept::testing
