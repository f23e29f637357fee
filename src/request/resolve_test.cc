// Which settings hold: request, model file, default; contradictions, lengths and what is refused.
#include "request/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ModelLimits kLimits{.vocab_size = 560, .max_decoder_positions = 128, .decoder_prompt_tokens = 2};

StatusOr<SamplingParams> resolve_line(std::string_view fields, const GenerationConfig& model = {},
                                      const ModelLimits& limits = kLimits) {
  const auto line = Json::parse(str_cat("{\"prompt\": \"x\"", fields.empty() ? "" : ", ", fields, "}"));
  EXPECT_TRUE(line.ok()) << fields;
  const auto request = parse_request(*line, 1);
  return request.ok() ? resolve(request->sampling, model, limits) : request.status();
}

// bart-cnn's generation_config.json.
GenerationConfig cnn() {
  GenerationConfig model;
  model.source = "generation_config.json";
  model.max_length = 28;
  model.min_length = 10;
  model.no_repeat_ngram_size = 3;
  model.num_beams = 4;
  model.length_penalty = 2;
  model.early_stopping = SamplingParams::EarlyStopping::kTrue;
  model.forced_bos_token_id = 0;
  model.forced_eos_token_ids = {2};
  model.eos_token_ids = {2};
  return model;
}

TEST(Resolve, DefaultsAreGreedyUpToThePositions) {
  const auto params = resolve_line("");
  ASSERT_TRUE(params.ok()) << params.status();
  SamplingParams expected;
  expected.max_tokens = 126;
  expected.seed = params->seed;
  EXPECT_EQ(*params, expected);
}

TEST(Resolve, DraftsAreIdsOfTheVocabulary) {
  EXPECT_THAT(resolve_line(R"("draft_token_ids": [5, 0, 559, 5])")->draft_token_ids, ElementsAre(5, 0, 559, 5));
  for (const char* ids : {"[560]", "[5, 2000000000]"}) {
    const auto params = resolve_line(str_cat(R"("draft_token_ids": )", ids));
    EXPECT_EQ(error_param(params.status()), "draft_token_ids");
    EXPECT_THAT(error_message(params.status()), HasSubstr("outside the vocabulary of 560"));
  }
}

TEST(Resolve, TheModelsFileComesBeforeDefaults) {
  const auto params = resolve_line("", cnn());
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(params->max_tokens, 26);            // max_length counts the decoder prompt
  EXPECT_EQ(params->min_tokens_before_eos, 8);  // min_length too, and it says nothing about stop ids
  EXPECT_EQ(params->min_tokens, 0);
  EXPECT_EQ(params->no_repeat_ngram_size, 3);
  EXPECT_EQ(params->forced_bos_token_id, 0);
  EXPECT_THAT(params->forced_eos_token_ids, ElementsAre(2));
  EXPECT_THAT(params->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(params->num_beams, 4);
  EXPECT_EQ(params->length_penalty, 2);
  EXPECT_EQ(params->early_stopping, SamplingParams::EarlyStopping::kTrue);
  EXPECT_EQ(params->temperature, 0);
  EXPECT_EQ(params->n, 1);
}

TEST(Resolve, TheRequestComesBeforeTheModelsFile) {
  const auto params = resolve_line(R"("max_tokens": 24, "min_tokens": 4, "no_repeat_ngram_size": 2,
      "encoder_no_repeat_ngram_size": 5,
      "forced_eos_token_id": [5], "forced_bos_token_id": 6, "num_beams": 1, "suppress_tokens": [9],
      "repetition_penalty": 1.5, "stop": ["a"], "stop_token_ids": [7], "ignore_eos": true, "logprobs": 0,
      "prompt_logprobs": 3, "skip_special_tokens": false, "include_stop_str_in_output": true,
      "presence_penalty": -1, "frequency_penalty": 1, "logit_bias": {"3": -100}, "begin_suppress_tokens": [1], "allowed_token_ids": [8, 3, 5, 3, 8, 8],
      "temperature": 0.5, "top_k": -1, "top_p": 0.5, "min_p": 0.25, "seed": 11, "n": 3)",
                                   cnn());
  ASSERT_TRUE(params.ok()) << params.status();
  SamplingParams expected;
  expected.max_tokens = 24;
  expected.min_tokens = expected.min_tokens_before_eos = 4;
  expected.n = expected.best_of = 3;
  expected.temperature = 0.5f;
  expected.top_k = 0;
  expected.top_p = 0.5f;
  expected.min_p = 0.25f;
  expected.seed = 11;
  expected.stop = {"a"};
  expected.stop_token_ids = {7};
  expected.eos_token_ids = {2};
  expected.ignore_eos = true;
  expected.include_stop_str_in_output = true;
  expected.skip_special_tokens = false;
  expected.logprobs = 0;
  expected.prompt_logprobs = 3;
  expected.repetition_penalty = 1.5f;
  expected.presence_penalty = -1;
  expected.frequency_penalty = 1;
  expected.no_repeat_ngram_size = 2;
  expected.encoder_no_repeat_ngram_size = 5;
  expected.logit_bias = {{3, -100.0f}};
  expected.suppress_tokens = {9};
  expected.begin_suppress_tokens = {1};
  expected.allowed_token_ids = {3, 5, 8};
  expected.forced_bos_token_id = 6;
  expected.forced_eos_token_ids = {5};
  expected.length_penalty = 2;
  expected.early_stopping = SamplingParams::EarlyStopping::kTrue;
  EXPECT_EQ(*params, expected);
}

TEST(Resolve, BadWordsIdsAreAdded) {
  GenerationConfig model;
  model.bad_words_ids = {{410}};
  EXPECT_THAT(resolve_line(R"("bad_words_ids": [[1, 2]])", model)->bad_words_ids,
              ElementsAre(ElementsAre(410), ElementsAre(1, 2)));
}

TEST(Resolve, LengthsOfTheModel) {
  GenerationConfig model;
  model.max_new_tokens = 9;
  model.max_length = 20;
  model.min_new_tokens = 4;
  model.min_length = 5;
  EXPECT_EQ(resolve_line("", model)->max_tokens, 9);             // as Hugging Face: max_new_tokens wins
  EXPECT_EQ(resolve_line("", model)->min_tokens_before_eos, 4);  // and of the minima the larger holds
  model.max_new_tokens = 1000;
  EXPECT_EQ(resolve_line("", model)->max_tokens, 126);
  model = {};
  model.max_length = 1000;
  EXPECT_EQ(resolve_line("", model)->max_tokens, 126);
  model.min_length = 50;
  EXPECT_EQ(resolve_line(R"("max_tokens": 6)", model)->min_tokens_before_eos, 6);  // an inherited minimum gives way

  ModelLimits limits = kLimits;
  limits.decoder_prompt_tokens = 30;
  const auto params = resolve_line("", cnn(), limits);
  EXPECT_EQ(error_param(params.status()), "max_tokens");
  EXPECT_THAT(error_message(params.status()), HasSubstr("max_length 28 of generation_config.json"));
  EXPECT_EQ(resolve_line(R"("max_tokens": 5)", cnn(), limits)->max_tokens, 5);
}

TEST(Resolve, PositionsAreNeverExceeded) {
  EXPECT_EQ(resolve_line(R"("max_tokens": 126)")->max_tokens, 126);
  EXPECT_EQ(resolve_line(R"("max_tokens": 127)")->max_tokens, 126);
  EXPECT_EQ(resolve_line(R"("max_tokens": 128)")->max_tokens, 126);
  const auto over = resolve_line(R"("max_tokens": 129)");
  EXPECT_EQ(over.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(error_param(over.status()), "max_tokens");
  EXPECT_EQ(error_message(over.status()), "max_tokens 129 exceeds the model's 128 positions");

  ModelLimits limits = kLimits;
  limits.decoder_prompt_tokens = 127;
  EXPECT_EQ(resolve_line("", {}, limits)->max_tokens, 1);
  for (const int32_t prompt : {128, 129}) {
    limits.decoder_prompt_tokens = prompt;
    const auto params = resolve_line("", {}, limits);
    EXPECT_EQ(error_param(params.status()), "decoder_prompt");
    EXPECT_THAT(error_message(params.status()), HasSubstr(str_cat(prompt, " tokens")));
    EXPECT_THAT(error_message(params.status()), HasSubstr("128 positions"));
  }
}

TEST(Resolve, ScoringGeneratesNothing) {
  ModelLimits limits = kLimits;
  limits.score_only = true;
  limits.decoder_prompt_tokens = 128;  // all positions may be prompt
  const auto params = resolve_line(R"("prompt_logprobs": 3)", cnn(), limits);
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_TRUE(params->score_only);
  EXPECT_EQ(params->prompt_logprobs, 3);
  EXPECT_EQ(params->max_tokens, 1);
  EXPECT_EQ(params->min_tokens, 0);
  EXPECT_EQ(resolve_line("", {}, limits)->prompt_logprobs, 0);
  limits.decoder_prompt_tokens = 129;
  EXPECT_EQ(error_param(resolve_line("", {}, limits).status()), "decoder_prompt");
}

TEST(Resolve, TemperatureOfTheModelHoldsOnlyWithDoSample) {
  GenerationConfig model;
  model.temperature = 0.7f;
  model.top_k = 9;
  model.num_return_sequences = 3;
  EXPECT_EQ(resolve_line("", model)->temperature, 0);
  EXPECT_EQ(resolve_line("", model)->n, 1);  // three greedy answers are one answer
  model.do_sample = true;
  EXPECT_EQ(resolve_line("", model)->temperature, 0.7f);
  EXPECT_EQ(resolve_line("", model)->top_k, 9);
  EXPECT_EQ(resolve_line("", model)->n, 3);
  EXPECT_EQ(resolve_line(R"("temperature": 0)", model)->temperature, 0);
  EXPECT_EQ(resolve_line(R"("n": 2)", model)->n, 2);
  EXPECT_EQ(resolve_line(R"("num_return_sequences": 2)", model)->n, 2);
  model.num_beams = 4;  // an inherited beam search does not sample
  EXPECT_EQ(resolve_line("", model)->temperature, 0);
  EXPECT_EQ(resolve_line("", model)->num_beams, 4);
  EXPECT_EQ(resolve_line("", model)->n, 3);
  EXPECT_EQ(resolve_line(R"("num_beams": 2)", model)->n, 2);  // the file's 3 answers are more than the request's beams
  for (const char* off : {R"("top_p": 0.5)", R"("top_k": 5)", R"("min_p": 0.1)", R"("temperature": 0.5)",
                          R"("num_beams": 1)", R"("use_beam_search": false)"}) {
    EXPECT_EQ(resolve_line(off, model)->num_beams, 1) << off;
  }
  EXPECT_EQ(resolve_line(R"("top_p": 0.5)", model)->temperature, 0.7f);
  EXPECT_EQ(resolve_line(R"("num_beams": 1)", model)->temperature, 0.7f);
  EXPECT_EQ(resolve_line(R"("use_beam_search": false)", model)->temperature, 0.7f);
}

TEST(Resolve, SeedsAreTheRequestsOrDrawn) {
  EXPECT_EQ(resolve_line(R"("seed": 5)")->seed, 5u);
  EXPECT_EQ(resolve_line(R"("seed": -1)")->seed, ~uint64_t{0});
  ModelLimits limits = kLimits;
  const uint64_t first = resolve_line("", {}, limits)->seed;
  EXPECT_EQ(resolve_line("", {}, limits)->seed, first);
  limits.request_index = 1;
  EXPECT_NE(resolve_line("", {}, limits)->seed, first);
  limits.request_index = 0;
  limits.engine_seed = 1;
  EXPECT_NE(resolve_line("", {}, limits)->seed, first);
}

TEST(Resolve, RefusesIdsOutsideTheVocabularyByField) {
  struct Case {
    const char *field, *fine, *outside;
  };
  const Case cases[] = {
      {"stop_token_ids", "[559]", "[1, 560]"},
      {"suppress_tokens", "[559]", "[560]"},
      {"begin_suppress_tokens", "[559]", "[560]"},
      {"allowed_token_ids", "[559]", "[560]"},
      {"forced_bos_token_id", "559", "560"},
      {"forced_eos_token_id", "559", "560"},
      {"forced_eos_token_id", "[1, 559]", "[1, 560]"},
      {"bad_words_ids", "[[1], [2, 559]]", "[[1], [2, 560]]"},
      {"logit_bias", R"({"559": 1})", R"({"560": 1})"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(resolve_line(str_cat("\"", c.field, "\": ", c.fine)).ok()) << c.field;
    const auto params = resolve_line(str_cat("\"", c.field, "\": ", c.outside));
    EXPECT_EQ(params.status().code(), absl::StatusCode::kInvalidArgument) << c.field;
    EXPECT_EQ(error_param(params.status()), c.field);
    EXPECT_THAT(error_message(params.status()), HasSubstr("560 is outside the vocabulary of 560"));
  }
}

TEST(Resolve, RefusesContradictionsByField) {
  struct Case {
    const char *fields, *param;
  };
  const Case cases[] = {
      {R"("max_tokens": 4, "min_tokens": 9)", "min_tokens"},
      {R"("min_tokens": 127)", "min_tokens"},
      {R"("allowed_token_ids": [])", "allowed_token_ids"},
      {R"("n": 2, "num_return_sequences": 3)", "n"},
      {R"("num_beams": 2, "n": 3)", "n"},
      {R"("num_beams": 2, "num_return_sequences": 6)", "num_return_sequences"},
      {R"("use_beam_search": true, "best_of": 2, "n": 3)", "n"},
      {R"("use_beam_search": true, "num_beams": 3, "best_of": 2)", "best_of"},
      {R"("use_beam_search": false, "num_beams": 3)", "use_beam_search"},
      {R"("best_of": 2, "n": 3)", "best_of"},
      {R"("num_beams": 2, "temperature": 0.5)", "temperature"},
  };
  for (const Case& c : cases) {
    const auto params = resolve_line(c.fields);
    EXPECT_EQ(params.status().code(), absl::StatusCode::kInvalidArgument) << c.fields << params.status();
    EXPECT_EQ(error_param(params.status()), c.param) << c.fields;
  }
  EXPECT_EQ(error_param(resolve_line(R"("n": 5)", cnn()).status()), "n");
  EXPECT_TRUE(resolve_line(R"("n": 4)", cnn()).ok());
  EXPECT_TRUE(resolve_line(R"("n": 2, "num_return_sequences": 2)").ok());
}

TEST(Resolve, EveryWayToAskForBeams) {
  struct Case {
    const char* fields;
    int32_t num_beams, n, num_seqs;
  };
  const Case cases[] = {
      {R"("num_beams": 4)", 4, 1, 4},
      {R"("num_beams": 4, "n": 2)", 4, 2, 4},
      {R"("num_beams": 4, "num_return_sequences": 4)", 4, 4, 4},
      {R"("num_beams": 4, "use_beam_search": true)", 4, 1, 4},
      {R"("num_beams": 4, "best_of": 4, "n": 3)", 4, 3, 4},
      {R"("use_beam_search": true, "n": 3)", 3, 3, 3},
      {R"("use_beam_search": true, "best_of": 5)", 5, 1, 5},
      {R"("use_beam_search": true, "best_of": 5, "n": 2)", 5, 2, 5},
      {R"("use_beam_search": true)", 1, 1, 1},  // one beam is the greedy search
      {R"("num_beams": 1, "n": 2)", 1, 2, 2},
      {R"("num_beams": 64, "n": 16)", 64, 16, 64},
      {R"("best_of": 3, "n": 2, "temperature": 1)", 1, 2, 3},
      {R"("best_of": 2, "n": 2, "temperature": 1)", 1, 2, 2},
      {R"("best_of": 3)", 1, 1, 3},
  };
  for (const Case& c : cases) {
    const auto params = resolve_line(c.fields);
    ASSERT_TRUE(params.ok()) << c.fields << params.status();
    EXPECT_EQ(params->num_beams, c.num_beams) << c.fields;
    EXPECT_EQ(params->n, c.n) << c.fields;
    EXPECT_EQ(params->num_seqs(), c.num_seqs) << c.fields;
  }
  EXPECT_EQ(resolve_line(R"("num_beams": 65)").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(resolve_line(R"("best_of": 4)", cnn()).ok());  // the model's own 4 beams are as many
  EXPECT_EQ(error_param(resolve_line(R"("best_of": 5)", cnn()).status()), "best_of");
}

// A stream numbers the answers of its prompts before they are resolved.
TEST(Resolve, NumberOfAnswersIsKnownBeforehand) {
  GenerationConfig model;
  model.num_return_sequences = 3;
  GenerationConfig samples = model, beams = model;
  samples.do_sample = true;
  beams.num_beams = 2;
  for (const GenerationConfig& file : {GenerationConfig(), model, samples, beams}) {
    for (const std::string_view fields : {"", R"("n": 2)", R"("temperature": 1)", R"("temperature": 0.5, "n": 4)",
                                          R"("num_beams": 4)", R"("num_beams": 3, "n": 2)", R"("top_k": 5)"}) {
      const auto request =
          parse_request(*Json::parse(str_cat("{\"prompt\": \"x\"", fields.empty() ? "" : ", ", fields, "}")), 1);
      ASSERT_TRUE(request.ok());
      const auto params = resolve(request->sampling, file, kLimits);
      ASSERT_TRUE(params.ok()) << fields << ": " << params.status();
      EXPECT_EQ(num_answers(request->sampling, file), params->n) << fields;
    }
  }
  EXPECT_EQ(num_answers({}, model), 1) << "greedy answers would be one answer three times";
  EXPECT_EQ(num_answers({}, samples), 3);
  EXPECT_EQ(num_answers({}, beams), 2);
}

TEST(StartupNotes, SayWhatTheModelsFilesChange) {
  EXPECT_THAT(startup_notes(GenerationConfig()), IsEmpty());
  GenerationConfig model = cnn();
  model.unsupported = {"num_beam_groups: 2"};
  model.bad_words_ids = {{410}};
  model.suppress_tokens = std::vector<int32_t>(90, 1);
  const std::vector<std::string> notes = startup_notes(model);
  EXPECT_THAT(notes, Contains("generation_config.json: max_length 28 (with the decoder prompt)"));
  EXPECT_THAT(notes, Contains("generation_config.json: num_beams 4, length_penalty 2, early_stopping true: requests "
                              "that say nothing about beams or sampling are searched with beams"));
  EXPECT_THAT(notes, Contains("generation_config.json: no_repeat_ngram_size 3"));
  EXPECT_THAT(notes, Contains("generation_config.json: forced_eos_token_id [2]"));
  EXPECT_THAT(notes, Contains("generation_config.json: suppress_tokens (90 ids)"));
  model.suppress_tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_THAT(startup_notes(model), Contains("generation_config.json: suppress_tokens [1, 2, 3, 4, 5, 6, 7, 8]"));
  EXPECT_THAT(notes, Contains("generation_config.json: bad_words_ids (1 words)"));
  EXPECT_THAT(notes, Contains("generation_config.json: num_beam_groups: 2 is not supported and has no effect"));
  GenerationConfig sampling;
  sampling.source = "config.json";
  sampling.do_sample = true;
  sampling.temperature = 0.5f;
  EXPECT_THAT(startup_notes(sampling),
              ElementsAre("config.json: do_sample true: requests without a temperature are sampled at 0.5"));
}

}  // namespace
}  // namespace transept
