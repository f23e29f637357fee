// Prompts of models that transcribe: every form of docs/api.md (Prompts) with media, what stands before the text of a
// transcript, and what is refused, by the name of its field. Around a front end of 0.16 s and a tokenizer of letters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "prompts/prepare_request.h"
#include "prompts/prompt_processor.h"
#include "request/prompt_reader.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;

// 0 to 25: letters. Then the special tokens, in Whisper's order.
enum : int32_t { kEnd = 26, kStart, kEnglish, kGerman, kTranslate, kTranscribe, kPrevious, kNoTimestamps, kTime0 };
constexpr int32_t kVocabSize = 60;
constexpr std::string_view kSpecials[] = {"<|endoftext|>",   "<|startoftranscript|>", "<|en|>",
                                          "<|de|>",          "<|translate|>",         "<|transcribe|>",
                                          "<|startofprev|>", "<|notimestamps|>"};

class Letters final : public Tokenizer {
 public:
  StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      size_t length = 1;
      int32_t id = text.front() - 'a';
      for (size_t i = 0; i < std::size(kSpecials); ++i) {
        if (!text.starts_with(kSpecials[i])) continue;
        length = kSpecials[i].size();
        id = kEnd + static_cast<int32_t>(i);
      }
      ids.push_back(id);
      text.remove_prefix(length);
    }
    if (options.add_special_tokens) ids.push_back(kEnd);
    return ids;
  }
  void append_bytes(std::span<const int32_t>, int32_t, std::string&) const override {}
  std::string token_to_string(int32_t) const override { return ""; }
  std::optional<int32_t> string_to_token(std::string_view) const override { return std::nullopt; }
  StatusOr<int32_t> language_token(std::string_view language, std::string_view field) const override {
    return field_error(field, str_cat("\"", language, "\": this model has no languages of this kind"));
  }
  bool is_special(int32_t id) const override { return id >= kEnd; }
  int32_t vocab_size() const override { return kVocabSize; }
};

class TranscriptPrompts : public ::testing::Test {
 protected:
  TranscriptPrompts() {
    const TestFolder dir;
    dir.write("config.json", R"({"model_type": "whisper", "vocab_size": 60, "num_mel_bins": 5,
        "max_source_positions": 8})");
    dir.write("preprocessor_config.json", R"({"n_samples": 2560})");
    config_ = ModelConfig::load(dir.path()).value();
    media_ = MultiModalRegistry::create(config_).value();
    generation_.decoder_start_token_id = kStart;
    generation_.eos_token_ids = {kEnd};
    tokens_.languages = {{"en", kEnglish}, {"de", kGerman}};
    tokens_.transcribe = kTranscribe;
    tokens_.translate = kTranslate;
    tokens_.no_timestamps = kNoTimestamps;
    tokens_.start_of_previous = kPrevious;
    tokens_.max_initial_timestamp_index = 5;
    spec_.family = "whisper";
    spec_.vocab_size = spec_.encoder_vocab_size = kVocabSize;
    spec_.max_encoder_positions = limits_.max_encoder_len = 8;
    spec_.max_decoder_positions = limits_.max_decoder_len = 16;
    spec_.modalities = {"audio"};
    options_.language = "en";
  }

  PromptProcessor processor() const {
    return {config_, generation_, spec_, limits_, {&tokenizer_, "", media_.get(), &tokens_}};
  }

  // `prompt` as it stands in a request; AUDIO is a second of it.
  StatusOr<EncoderDecoderInputs> process(std::string request) const {
    constexpr std::string_view kAudio = R"({"audio": {"samples": [0, 0.5, -0.5, 0], "sampling_rate": 16000}})";
    for (size_t at = request.find("AUDIO"); at != std::string::npos; at = request.find("AUDIO")) {
      request.replace(at, 5, kAudio);
    }
    ASSIGN_OR_RETURN(const Json json, Json::parse(request));
    std::vector<std::string> warnings;
    ASSIGN_OR_RETURN(const EncoderDecoderPrompt prompt, read_prompt(json, warnings));
    EXPECT_THAT(warnings, IsEmpty());
    return processor().process(prompt, options_);
  }

  EncoderDecoderInputs inputs(std::string_view request) const {
    auto inputs = process(std::string(request));
    EXPECT_TRUE(inputs.ok()) << inputs.status() << ": " << request;
    return inputs.ok() ? std::move(inputs).value() : EncoderDecoderInputs();
  }
  std::vector<int32_t> ids(std::string_view request) const { return inputs(request).prompt_token_ids; }

  void expect_refused(std::string_view request, std::string_view field, std::string_view part) const {
    const Status status = process(std::string(request)).status();
    EXPECT_FALSE(status.ok()) << request;
    EXPECT_EQ(error_param(status), field) << request << ": " << status;
    EXPECT_THAT(error_message(status), HasSubstr(part)) << request;
  }

  ModelConfig config_;
  GenerationConfig generation_;
  SpeechTokens tokens_;
  ModelSpec spec_;
  PromptProcessor::Limits limits_;
  Letters tokenizer_;
  std::unique_ptr<MultiModalRegistry> media_;
  PromptProcessor::Options options_;
};

TEST_F(TranscriptPrompts, MediaAloneHaveTheDefaultPrompt) {
  for (const std::string_view request :
       {R"({"prompt": {"multi_modal_data": AUDIO}})",
        R"({"prompt": {"encoder_prompt": {"multi_modal_data": AUDIO}, "decoder_prompt": null}})",
        R"({"prompt": {"encoder_prompt": {"multi_modal_data": AUDIO}}})"}) {
    const EncoderDecoderInputs got = inputs(request);
    EXPECT_THAT(got.prompt_token_ids, ElementsAre(kStart, kEnglish, kTranscribe, kNoTimestamps)) << request;
    EXPECT_FALSE(got.prompt.has_value());
    EXPECT_FALSE(got.encoder_prompt.has_value());
    ASSERT_EQ(got.items.size(), 1u);
    EXPECT_THAT(got.encoder_token_ids(), IsEmpty());
    ASSERT_NE(got.items[0].features, nullptr);
    EXPECT_EQ(got.num_encoder_tokens(), 8);
    EXPECT_FALSE(got.open_token.has_value());
    EXPECT_EQ(got.num_default_generated, 0);
  }
}

TEST_F(TranscriptPrompts, LanguageTaskAndTimestamps) {
  constexpr std::string_view kMedia = R"({"prompt": {"multi_modal_data": AUDIO}})";
  options_.language = "German";
  options_.task = "translate";
  options_.timestamps = true;
  EXPECT_THAT(ids(kMedia), ElementsAre(kStart, kGerman, kTranslate));
  options_.language = "fr";
  expect_refused(kMedia, "language", "knows en, de");
  options_.language = "<|en|>";
  options_.task = "sing";
  expect_refused(kMedia, "task", "transcribe, translate");
}

TEST_F(TranscriptPrompts, ALanguageThatNobodyNamesIsLeftOpen) {
  options_.language = "";
  const EncoderDecoderInputs got = inputs(R"({"prompt": {"multi_modal_data": AUDIO}})");
  ASSERT_EQ(got.prompt_token_ids.size(), 4u);
  ASSERT_TRUE(got.open_token.has_value());
  EXPECT_EQ(got.open_token->index, 1);
  EXPECT_THAT(got.open_token->choices, ElementsAre(kEnglish, kGerman));
  // Before a text too.
  const EncoderDecoderInputs text = inputs(R"({"prompt": {"prompt": "ab", "multi_modal_data": AUDIO}})");
  EXPECT_EQ(text.prompt_token_ids.size(), 6u);
  EXPECT_TRUE(text.open_token.has_value());
  // Not in a prompt that is given whole.
  EXPECT_FALSE(
      inputs(R"({"prompt": {"prompt_token_ids": [27, 29], "multi_modal_data": AUDIO}})").open_token.has_value());
}

TEST_F(TranscriptPrompts, TheFilesDefaultsStandInForTheRequest) {
  options_.language = "";
  tokens_.default_language = "<|de|>";
  tokens_.default_task = "translate";
  constexpr std::string_view kMedia = R"({"prompt": {"multi_modal_data": AUDIO}})";
  EXPECT_THAT(ids(kMedia), ElementsAre(kStart, kGerman, kTranslate, kNoTimestamps));
  options_.language = "en";
  options_.task = "transcribe";
  EXPECT_THAT(ids(kMedia), ElementsAre(kStart, kEnglish, kTranscribe, kNoTimestamps));
}

TEST_F(TranscriptPrompts, AModelOfOneLanguageNamesNeitherItNorATask) {
  tokens_.languages.clear();
  tokens_.transcribe = tokens_.translate = std::nullopt;
  constexpr std::string_view kMedia = R"({"prompt": {"multi_modal_data": AUDIO}})";
  EXPECT_THAT(ids(kMedia), ElementsAre(kStart, kNoTimestamps));
  options_.language = "";
  EXPECT_FALSE(inputs(kMedia).open_token.has_value());
  options_.language = "de";
  expect_refused(kMedia, "language", "English alone");
  options_.language = "";
  options_.task = "translate";
  expect_refused(kMedia, "task", "transcribes only");
  options_.task = "";
  options_.timestamps = true;
  EXPECT_THAT(ids(kMedia), ElementsAre(kStart));
  tokens_.no_timestamps = std::nullopt;
  expect_refused(kMedia, "timestamps", "no timestamps");
}

TEST_F(TranscriptPrompts, TextFollowsTheDefaultPromptUnlessItSaysWhereItStarts) {
  for (const std::string_view form :
       {R"({"prompt": {"prompt": "TEXT", "multi_modal_data": AUDIO}})",
        R"({"prompt": {"encoder_prompt": {"multi_modal_data": AUDIO}, "decoder_prompt": "TEXT"}})",
        R"({"prompt": {"encoder_prompt": {"multi_modal_data": AUDIO}, "decoder_prompt": {"prompt": "TEXT"}}})",
        R"({"prompt": {"multi_modal_data": AUDIO}, "decoder_prompt": "TEXT"})"}) {
    const auto with = [&](std::string_view text) {
      std::string request(form);
      return request.replace(request.find("TEXT"), 4, text);
    };
    EXPECT_THAT(ids(with("")), ElementsAre(kStart, kEnglish, kTranscribe, kNoTimestamps)) << form;
    EXPECT_EQ(inputs(with("ab")).prompt, "ab");
    EXPECT_THAT(ids(with("ab")), ElementsAre(kStart, kEnglish, kTranscribe, kNoTimestamps, 0, 1)) << form;
    EXPECT_THAT(ids(with("<|startoftranscript|>")), ElementsAre(kStart)) << form;
    EXPECT_THAT(ids(with("<|startoftranscript|><|de|>a")), ElementsAre(kStart, kGerman, 0)) << form;
    EXPECT_THAT(ids(with("<|startofprev|>c<|startoftranscript|><|de|>")), ElementsAre(kPrevious, 2, kStart, kGerman))
        << form;
    // Previous text without a start is text like any other.
    EXPECT_THAT(ids(with("<|startofprev|>c")), ElementsAre(kStart, kEnglish, kTranscribe, kNoTimestamps, kPrevious, 2));
  }
}

TEST_F(TranscriptPrompts, IdsBesideMediaAreTheWholePrompt) {
  for (const std::string_view name : {"prompt_token_ids", "prompt_tokens"}) {
    const auto with = [&](std::string_view list) {
      return ids(str_cat(R"({"prompt": {")", name, "\": ", list, R"(, "multi_modal_data": AUDIO}})"));
    };
    EXPECT_THAT(with("[5]"), ElementsAre(5));
    EXPECT_THAT(with("[32, 1, 27, 28]"), ElementsAre(kPrevious, 1, kStart, kEnglish));
    EXPECT_THAT(with("[27, 26]"), ElementsAre(kStart, kEnd));
  }
  expect_refused(R"({"prompt": {"prompt_token_ids": [60], "multi_modal_data": AUDIO}})", "prompt_token_ids",
                 "outside the vocabulary of 60");
  expect_refused(R"({"prompt": {"prompt_token_ids": [], "multi_modal_data": AUDIO}})", "prompt_token_ids", "empty");
}

TEST_F(TranscriptPrompts, IdsOfAnExplicitDecoderGetTheStartAlone) {
  const auto with = [&](std::string_view list) {
    return ids(str_cat(R"({"prompt": {"encoder_prompt": {"multi_modal_data": AUDIO}, "decoder_prompt": )", list, "}}"));
  };
  EXPECT_THAT(with("[5]"), ElementsAre(kStart, 5));
  EXPECT_THAT(with("[27, 5]"), ElementsAre(kStart, 5));
  EXPECT_THAT(with(R"({"prompt_token_ids": [32, 1, 27]})"), ElementsAre(kPrevious, 1, kStart));
  expect_refused(R"({"prompt": {"multi_modal_data": AUDIO}, "decoder_prompt": [60]})", "decoder_prompt", "vocabulary");
}

// A caller inside the program may build what no request can say.
TEST_F(TranscriptPrompts, AnEmptyListIsNoPrompt) {
  EncoderDecoderPrompt prompt;
  prompt.encoder.multi_modal_data = Json::parse(R"({"audio": {"samples": [0], "sampling_rate": 16000}})").value();
  prompt.decoder.emplace();
  prompt.decoder->content = TokensPrompt{};
  prompt.decoder_beside_media = true;
  EXPECT_EQ(error_param(processor().process(prompt, options_).status()), "decoder_prompt");
}

TEST_F(TranscriptPrompts, TheEncoderTakesAudioAlone) {
  expect_refused(R"({"prompt": "ab"})", "prompt", "encodes audio");
  expect_refused(R"({"prompt": [1, 2]})", "prompt", "encodes audio");
  expect_refused(R"({"prompt": {"encoder_prompt": "ab", "decoder_prompt": [27]}})", "encoder_prompt", "encodes audio");
  expect_refused(R"({"prompt": {"encoder_prompt": {"prompt": "ab", "multi_modal_data": AUDIO}}})", "encoder_prompt",
                 "no place for text beside media");
  expect_refused(R"({"prompt": {"encoder_prompt": {"prompt_token_ids": [1], "multi_modal_data": AUDIO}}})",
                 "encoder_prompt", "no place for text beside media");
  expect_refused(R"({"prompt": {"encoder_prompt": {"multi_modal_data": AUDIO},
                     "decoder_prompt": {"multi_modal_data": AUDIO}}})",
                 "multi_modal_data", "media belong to the encoder");
  expect_refused(R"({"prompt": {"multi_modal_data": {"image": "a.png"}}})", "multi_modal_data", "no image input");
  expect_refused(R"({"prompt": {"multi_modal_data": {"audio": "a.wav"}}})", "multi_modal_data",
                 "paths are not allowed");
  // Read with a decoder part that is no request's.
  EncoderDecoderPrompt prompt;
  prompt.encoder.multi_modal_data = Json::parse(R"({"audio": null})").value();
  prompt.decoder.emplace();
  prompt.decoder->multi_modal_data = Json::object();
  EXPECT_EQ(error_param(processor().process(prompt, options_).status()), "multi_modal_data");
}

TEST_F(TranscriptPrompts, NothingCutsAudioByTokens) {
  options_.truncate_prompt_tokens = 4;
  expect_refused(R"({"prompt": {"multi_modal_data": AUDIO}})", "truncate_prompt_tokens", "is audio");
}

TEST_F(TranscriptPrompts, MoreThanAWindowOrThePositionsIsRefusedByBothCounts) {
  std::string zeros;
  for (int i = 0; i < 3200; ++i) zeros += "0,";
  const std::string longer =
      str_cat(R"({"prompt": {"multi_modal_data": {"audio": {"samples": [)", zeros, R"(0], "sampling_rate": 16000}}}})");
  expect_refused(longer, "multi_modal_data", "0.2 s");
  expect_refused(longer, "multi_modal_data", "transept transcribe");
  std::string many;
  for (int i = 0; i < 17; ++i) many += "a";
  expect_refused(str_cat(R"({"prompt": {"prompt": ")", many, R"(", "multi_modal_data": AUDIO}})"), "prompt",
                 "21 tokens");
}

TEST_F(TranscriptPrompts, WithoutATokenizerIdsStillWork) {
  const PromptProcessor prompts(config_, generation_, spec_, limits_, {nullptr, "no files", media_.get(), &tokens_});
  EncoderDecoderPrompt prompt;
  prompt.encoder.multi_modal_data = Json::parse(R"({"audio": {"samples": [0], "sampling_rate": 16000}})").value();
  EXPECT_TRUE(prompts.process(prompt, options_).ok());
  prompt.decoder.emplace();
  prompt.decoder->content = TextPrompt{"ab"};
  EXPECT_THAT(error_message(prompts.process(prompt, options_).status()), HasSubstr("no files"));
}

// Timestamps are asked for by a prompt that does not forbid them, whoever wrote it.
TEST_F(TranscriptPrompts, ThePromptSaysWhetherTimestampsAreRuled) {
  const auto rules_of = [&](std::vector<int32_t> ids) {
    ParsedRequest request;
    request.prompt.encoder.multi_modal_data =
        Json::parse(R"({"audio": {"samples": [0], "sampling_rate": 16000}})").value();
    request.prompt.decoder.emplace();
    request.prompt.decoder->content = TokensPrompt{std::move(ids)};
    request.prompt.decoder_beside_media = true;
    const auto prepared = prepare_request(request, processor(), generation_, {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return prepared.ok() ? prepared->params.timestamp_rules : std::nullopt;
  };
  EXPECT_FALSE(rules_of({kStart, kEnglish, kTranscribe, kNoTimestamps}).has_value());
  const auto rules = rules_of({kStart, kEnglish, kTranscribe});
  ASSERT_TRUE(rules.has_value());
  EXPECT_EQ(rules->timestamp_begin, kTime0);
  EXPECT_EQ(rules->eos_token_id, kEnd);
  EXPECT_EQ(rules->max_initial_timestamp_index, 5);
}

TEST_F(TranscriptPrompts, TextModelsRefuseWhatBelongsToSpeech) {
  ModelSpec text = spec_;
  text.family = "bart";
  text.modalities.clear();
  ModelConfig config;
  config.model_type = "bart";
  const PromptProcessor prompts(config, generation_, text, limits_, {&tokenizer_});
  EncoderDecoderPrompt prompt;
  prompt.encoder.content = TokensPrompt{{5}};
  PromptProcessor::Options options;
  EXPECT_TRUE(prompts.process(prompt, options).ok());
  const auto expect_field = [&](std::string_view field) {
    const Status status = prompts.process(prompt, options).status();
    EXPECT_EQ(error_param(status), field);
    EXPECT_THAT(error_message(status), AllOf(HasSubstr("bart"), HasSubstr(field)));
    options = {};
  };
  options.language = "en";
  expect_field("language");
  options.task = "transcribe";
  expect_field("task");
  options.timestamps = true;
  expect_field("timestamps");
  prompt.encoder.content = std::monostate();
  prompt.encoder.multi_modal_data = Json::parse(R"({"audio": "a.wav"})").value();
  const Status media = prompts.process(prompt, options).status();
  EXPECT_EQ(error_param(media), "multi_modal_data");
  EXPECT_THAT(error_message(media), AllOf(HasSubstr("bart"), HasSubstr("takes no audio")));
  Json::Object long_name;
  long_name.emplace_back(std::string(1'000'000, 'e'), Json("x"));
  prompt.encoder.multi_modal_data = Json(std::move(long_name));
  EXPECT_LT(error_message(prompts.process(prompt, options).status()).size(), 200u) << "it is not sent back";
}

// Moonshine: audio, and an ordinary decoder prompt.
TEST_F(TranscriptPrompts, AudioModelsWithoutTranscriptTokens) {
  ModelSpec spec = spec_;
  spec.family = "moonshine";
  ModelConfig config;
  config.model_type = "moonshine";
  const PromptProcessor prompts(config, generation_, spec, limits_, {&tokenizer_, "", media_.get()});
  EncoderDecoderPrompt prompt;
  prompt.encoder.multi_modal_data = Json::parse(R"({"audio": {"samples": [0], "sampling_rate": 16000}})").value();
  PromptProcessor::Options options;
  EXPECT_THAT(prompts.process(prompt, options)->prompt_token_ids, ElementsAre(kStart));
  options.language = "en";
  EXPECT_EQ(error_param(prompts.process(prompt, options).status()), "language");
  options = {};
  prompt.decoder.emplace();
  prompt.decoder->content = TextPrompt{"ab"};
  EXPECT_THAT(prompts.process(prompt, options)->prompt_token_ids, ElementsAre(kStart, 0, 1));
  prompt.decoder->content = TokensPrompt{{3}};
  EXPECT_THAT(prompts.process(prompt, options)->prompt_token_ids, ElementsAre(kStart, 3));
  prompt.decoder_beside_media = true;
  EXPECT_THAT(prompts.process(prompt, options)->prompt_token_ids, ElementsAre(3));
}

}  // namespace
}  // namespace transept
