// Proves that the obvious decoder, by which the engine's property tests judge, is right: held against transformers' own
// generate (tests/make_decoding.py) and openai-whisper's beam search (tests/make_patience.py) around the same hash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/json.h"
#include "base/source_dir_testing.h"
#include "engine/obvious_decoder_testing.h"
#include "rank/fake_model_executor_testing.h"

namespace transept::testing {
namespace {

using Tokens = std::vector<int32_t>;

struct ReferenceCase {
  EncoderDecoderInputs inputs;
  SamplingParams params;
  std::vector<Tokens> outputs;
  std::vector<double> scores;  // of beams: sum / length ^ length_penalty; with patience: the sum
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
  if (line.find("renormalize_logits") != nullptr)
    params.renormalize_logits = line.find("renormalize_logits")->as_bool();
  if (line.find("patience") != nullptr) params.patience = number("patience", 0);
  if (line.find("patience_length_penalty") != nullptr) {
    params.patience_length_penalty = number("patience_length_penalty", 0);
  }
  if (const Json* rules = line.find("timestamp_rules"); rules != nullptr) {
    const auto id = [&](std::string_view key) { return static_cast<int32_t>(rules->find(key)->as_int()); };
    params.timestamp_rules = {id("timestamp_begin"), id("no_timestamps_token_id"), id("eos_token_id"), {}};
    if (rules->find("max_initial_timestamp_index") != nullptr) {
      params.timestamp_rules->max_initial_timestamp_index = id("max_initial_timestamp_index");
    }
  }
  return params;
}

std::vector<ReferenceCase> reference_cases(const std::string& name = "decoding.jsonl") {
  std::ifstream file(source_dir() + "/src/engine/testdata/" + name);
  std::vector<ReferenceCase> cases;
  for (std::string text; std::getline(file, text);) {
    const Json line = std::move(Json::parse(text).value());
    ReferenceCase& reference = cases.emplace_back();
    reference.inputs.set_encoder_ids(ids_of(line.find("encoder")));
    reference.inputs.prompt_token_ids = ids_of(line.find("decoder"));
    reference.params = params_of(line);
    for (const Json& output : line.find("outputs")->as_array()) {
      reference.outputs.push_back(ids_of(output.find("token_ids")));
      if (output.find("score") != nullptr) reference.scores.push_back(output.find("score")->as_double());
      if (output.find("sum") != nullptr) reference.scores.push_back(output.find("sum")->as_double());
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

// tests/make_patience.py
TEST(ObviousDecoder, GivesWhatOpenaiWhisperGivesWithPatience) {
  int num_checked = 0;
  const std::vector<ReferenceCase> cases = reference_cases("patience.jsonl");
  ASSERT_EQ(cases.size(), 300u);
  for (size_t c = 0; c < cases.size(); ++c) {
    const auto& [inputs, params, outputs, sums] = cases[c];
    const ObviousAnswer answer = decode_obviously(inputs, params, fake_scores);
    if (answer.margin < 10) continue;
    ++num_checked;
    ASSERT_EQ(answer.outputs.size(), outputs.size()) << "line " << c + 1;
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(answer.outputs[i].token_ids, outputs[i]) << "line " << c + 1 << ", output " << i;
      EXPECT_NEAR(answer.outputs[i].cumulative_logprob, sums[i], 1e-4) << "line " << c + 1 << ", output " << i;
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
