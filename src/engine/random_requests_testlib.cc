// The requests of random_requests_testing.h.
#include "engine/random_requests_testing.h"

#include <algorithm>

#include "base/strings.h"
#include "rank/fake_model_executor_testing.h"

namespace transept::testing {
namespace {

int32_t any_token(Random& random) { return random.draw(0, kFakeVocabSize - 1); }

std::vector<int32_t> tokens(Random& random, int32_t min_count, int32_t max_count) {
  std::vector<int32_t> ids(static_cast<size_t>(random.draw(min_count, max_count)));
  for (int32_t& id : ids) id = any_token(random);
  return ids;
}

// What some prompts begin with: a path of one of two small trees, which are longer than a few blocks.
std::vector<int32_t> common_beginning(Random& random) {
  Random tree(static_cast<uint64_t>(random.draw(20, 21)));
  std::vector<int32_t> ids;
  for (int32_t i = random.draw(1, 24); i > 0; --i) {
    ids.push_back(any_token(tree));
    if (random.one_in(24)) ids.push_back(any_token(random));
  }
  return ids;
}

EncoderDecoderInputs random_inputs(Random& random) {
  EncoderDecoderInputs inputs;
  if (!random.one_in(10)) {
    Random content(static_cast<uint64_t>(random.draw(1, 6)));
    inputs.set_encoder_ids(tokens(content, 1, 16));
  }
  inputs.prompt_token_ids = random.one_in(4) ? common_beginning(random) : std::vector<int32_t>();
  const std::vector<int32_t> end = tokens(random, 1, random.one_in(3) ? 12 : 2);
  inputs.prompt_token_ids.insert(inputs.prompt_token_ids.end(), end.begin(), end.end());
  if (random.one_in(6)) inputs.cache_salt = random.any_of({"a", "b"});
  if (inputs.prompt_token_ids.size() == 2) inputs.num_default_generated = random.draw(0, 1);
  if (inputs.prompt_token_ids.size() > 1 && !inputs.encoder_token_ids().empty() && random.one_in(4)) {
    const auto last = static_cast<int32_t>(inputs.prompt_token_ids.size()) - 1;
    inputs.open_token = OpenToken{.index = random.draw(1, last), .choices = tokens(random, 1, 6)};
  }
  return inputs;
}

void choose_kind(Random& random, SamplingParams& params) {
  const int32_t kind = random.draw(0, 9);
  if (kind < 4) {  // beams
    params.num_beams = random.one_in(6) ? random.draw(5, 8) : random.draw(2, 4);
    params.n = random.draw(1, params.num_beams);
    params.length_penalty = random.any_of({1.0f, 1.0f, 0.0f, 0.6f, 2.0f, -1.0f});
    params.early_stopping = static_cast<SamplingParams::EarlyStopping>(random.draw(0, 2));
    if (random.one_in(3)) params.patience = random.any_of({1.0, 1.0, 0.3, 0.5, 1.5, 2.0});
    if (params.patience && random.one_in(2)) params.patience_length_penalty = random.any_of({0.0, 0.4, 1.0});
    params.patience_ends_by_rank = params.patience && random.one_in(2);
    return;
  }
  if (kind == 4) return;  // greedy
  params.temperature = random.any_of({0.3f, 0.8f, 1.0f, 1.0f, 1.7f});
  if (random.one_in(3)) params.top_k = random.draw(1, kFakeVocabSize + 2);
  if (random.one_in(3)) params.top_p = random.any_of({0.1f, 0.5f, 0.8f, 0.95f});
  if (random.one_in(3)) params.min_p = random.any_of({0.02f, 0.1f, 0.4f});
  if (random.one_in(2)) params.n = random.draw(2, 5);
  if (random.one_in(5)) params.best_of = params.n + random.draw(1, 3);
}

void choose_penalties(Random& random, SamplingParams& params) {
  if (random.one_in(4)) params.repetition_penalty = random.any_of({0.7f, 1.2f, 1.8f});
  if (random.one_in(4)) params.presence_penalty = random.any_of({-0.8f, 0.4f, 1.5f});
  if (random.one_in(4)) params.frequency_penalty = random.any_of({-0.5f, 0.3f, 1.1f});
  if (random.one_in(5)) params.no_repeat_ngram_size = random.draw(1, 3);
  if (random.one_in(6)) params.encoder_no_repeat_ngram_size = random.draw(1, 3);
  for (int32_t i = random.one_in(3) ? random.draw(1, 3) : 0; i > 0; --i) {
    params.logit_bias[any_token(random)] = random.any_of({-100.0f, -2.5f, 1.5f, 4.0f});
  }
  for (int32_t i = random.one_in(4) ? random.draw(1, 4) : 0; i > 0; --i) {
    params.bad_words_ids.push_back(tokens(random, 1, 3));
  }
  if (random.one_in(6)) params.suppress_tokens = tokens(random, 1, 3);
  if (random.one_in(6)) params.begin_suppress_tokens = tokens(random, 1, 3);
  params.renormalize_logits = random.one_in(5);
}

// Text, end, <|notimestamps|>, timestamps, in that order: the end token is the rules'.
void choose_speech(Random& random, SamplingParams& params) {
  if (random.one_in(8)) {
    const int32_t timestamp_begin = random.draw(4, kFakeVocabSize - 3);
    params.timestamp_rules = {.timestamp_begin = timestamp_begin,
                              .no_timestamps_token_id = timestamp_begin - 1,
                              .eos_token_id = timestamp_begin - random.draw(2, 3)};
    if (random.one_in(2)) params.timestamp_rules->max_initial_timestamp_index = random.draw(0, 4);
    params.eos_token_ids = {params.timestamp_rules->eos_token_id};
    params.forced_bos_token_id.reset();
    params.forced_eos_token_ids.clear();
  } else if (random.one_in(8)) {
    params.allowed_token_ids = tokens(random, 3, 9);
    std::sort(params.allowed_token_ids.begin(), params.allowed_token_ids.end());
  }
}

// What the engine tells of the prompt besides.
void choose_prompt_results(Random& random, RandomRequest& request) {
  SamplingParams& params = request.params;
  if (random.one_in(6)) params.prompt_logprobs = random.draw(0, 3);
  if (random.one_in(3)) params.prompt_logprobs_vocab = random.draw(0, kFakeVocabSize);
  if (random.one_in(6)) {
    const int32_t num_prompt = static_cast<int32_t>(request.inputs.prompt_token_ids.size());
    params.probe = {.prompt_index = random.draw(0, num_prompt - 1), .token_id = any_token(random)};
  }
  params.capture_cross_attention = random.one_in(6);
  params.skip_cumulative_logprob = random.one_in(3);
}

void choose_ends(Random& random, SamplingParams& params) {
  params.max_tokens = random.draw(1, 14);
  params.eos_token_ids = random.one_in(8) ? std::vector<int32_t>() : tokens(random, 1, random.one_in(4) ? 2 : 1);
  if (random.one_in(4)) params.stop_token_ids = tokens(random, 1, 2);
  if (random.one_in(4)) params.min_tokens = params.min_tokens_before_eos = random.draw(1, params.max_tokens);
  if (random.one_in(8)) params.min_tokens_before_eos = random.draw(0, params.max_tokens);
  params.ignore_eos = random.one_in(6);
  const auto is_suppressed = [&](int32_t token) {
    return std::count(params.suppress_tokens.begin(), params.suppress_tokens.end(), token) +
               std::count(params.begin_suppress_tokens.begin(), params.begin_suppress_tokens.end(), token) >
           0;
  };
  const int32_t bos = any_token(random), eos = params.eos_token_ids.empty() ? bos : params.eos_token_ids[0];
  if (random.one_in(4) && !is_suppressed(bos)) params.forced_bos_token_id = bos;
  if (random.one_in(5) && !is_suppressed(eos)) params.forced_eos_token_ids = {eos};
}

std::string list(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += str_cat(text.empty() ? "" : ", ", id);
  return str_cat("[", text, "]");
}

}  // namespace

void fill_open_token(EncoderDecoderInputs& inputs) {
  if (!inputs.open_token.has_value()) return;
  const std::span<const int32_t> before =
      std::span(inputs.prompt_token_ids).first(static_cast<size_t>(inputs.open_token->index));
  const std::vector<float> scores = fake_scores(inputs.encoder_token_ids(), before);
  const auto worse = [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] < scores[static_cast<size_t>(b)];
  };
  std::vector<int32_t> choices = inputs.open_token->choices;
  std::sort(choices.begin(), choices.end());
  inputs.prompt_token_ids[before.size()] = *std::max_element(choices.begin(), choices.end(), worse);
  inputs.open_token.reset();
}

RandomRequest random_request(Random& random) {
  RandomRequest request;
  request.inputs = random_inputs(random);
  SamplingParams& params = request.params;
  params.seed = random.number();
  choose_kind(random, params);
  choose_penalties(random, params);
  choose_ends(random, params);
  choose_speech(random, params);
  choose_prompt_results(random, request);
  if (random.one_in(5)) params.logprobs = random.draw(0, 4);
  params.return_alignments = !request.inputs.encoder_token_ids().empty() && random.one_in(6);
  if (random.one_in(12)) {
    params.score_only = true;
    params.prompt_logprobs = 0;
    params.max_tokens = params.n = params.best_of = params.num_beams = 1;
  }
  return request;
}

std::string RandomRequest::text() const {
  const SamplingParams defaults;
  std::string text = str_cat("encoder ", list(inputs.encoder_token_ids()), ", decoder ", list(inputs.prompt_token_ids),
                             ", max_tokens ", params.max_tokens);
  const auto number = [&](std::string_view name, auto value, auto neutral) {
    if (value != neutral) text += str_cat(", ", name, " ", value);
  };
  const auto ids = [&](std::string_view name, const std::vector<int32_t>& value) {
    if (!value.empty()) text += str_cat(", ", name, " ", list(value));
  };
  if (inputs.open_token.has_value()) {
    ids(str_cat("decoder token ", inputs.open_token->index, " one of"), inputs.open_token->choices);
  }
  if (!inputs.cache_salt.empty()) text += str_cat(", salt ", inputs.cache_salt);
  number("num_default_generated", inputs.num_default_generated, 0);
  number("num_beams", params.num_beams, 1);
  number("n", params.n, 1);
  number("best_of", params.best_of, 1);
  number("length_penalty", params.length_penalty, 1.0f);
  number("patience", params.patience.value_or(-1), -1.0);
  number("patience_length_penalty", params.patience_length_penalty.value_or(-1), -1.0);
  number("patience_ends_by_rank", static_cast<int>(params.patience_ends_by_rank), 0);
  number("early_stopping (false, true, never)", static_cast<int>(params.early_stopping), 0);
  number("temperature", params.temperature, 0.0f);
  number("top_k", params.top_k, 0);
  number("top_p", params.top_p, 1.0f);
  number("min_p", params.min_p, 0.0f);
  if (params.temperature > 0) number("seed", params.seed, uint64_t{0});
  number("repetition_penalty", params.repetition_penalty, 1.0f);
  number("presence_penalty", params.presence_penalty, 0.0f);
  number("frequency_penalty", params.frequency_penalty, 0.0f);
  number("no_repeat_ngram_size", params.no_repeat_ngram_size, 0);
  number("encoder_no_repeat_ngram_size", params.encoder_no_repeat_ngram_size, 0);
  for (const auto& [token, bias] : params.logit_bias) text += str_cat(", logit_bias ", token, ": ", bias);
  for (const std::vector<int32_t>& word : params.bad_words_ids) ids("bad word", word);
  ids("suppress_tokens", params.suppress_tokens);
  ids("begin_suppress_tokens", params.begin_suppress_tokens);
  number("forced_bos_token_id", params.forced_bos_token_id.value_or(-1), -1);
  ids("forced_eos_token_id", params.forced_eos_token_ids);
  number("renormalize_logits", params.renormalize_logits, false);
  ids("eos_token_ids", params.eos_token_ids);
  ids("stop_token_ids", params.stop_token_ids);
  number("min_tokens", params.min_tokens, 0);
  number("min_tokens_before_eos", params.min_tokens_before_eos, 0);
  number("ignore_eos", params.ignore_eos, false);
  number("logprobs", params.logprobs.value_or(-1), -1);
  number("prompt_logprobs", params.prompt_logprobs.value_or(-1), -1);
  ids("allowed_token_ids", params.allowed_token_ids);
  if (params.timestamp_rules.has_value()) {
    text += str_cat(", timestamps from ", params.timestamp_rules->timestamp_begin, ", end of text ",
                    params.timestamp_rules->eos_token_id);
    number("max_initial_timestamp_index", params.timestamp_rules->max_initial_timestamp_index.value_or(-1), -1);
  }
  number("prompt_logprobs_vocab", params.prompt_logprobs_vocab, 0);
  if (params.probe) text += str_cat(", probe of ", params.probe->token_id, " at ", params.probe->prompt_index);
  number("capture_cross_attention", params.capture_cross_attention, false);
  number("return_alignments", params.return_alignments, false);
  number("score_only", params.score_only, false);
  return text;
}

}  // namespace transept::testing
