// Fields of a transcription that OpenAI has not: beams, hotwords, word_timestamps, vad_filter. What they mean against
// the transcriber's own result or the field that says the same, and what is refused, by the field's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/transcription_testing.h"
#include "speech/characters.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

class TranscriptionFields : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    house_ = speech_house();
    file_ = new std::string(wav(7, 34));
  }
  static void TearDownTestSuite() {
    house_.reset();
    delete file_;
  }

  static const ServerContext& context() { return house_->context(); }
  static HttpResponse answer(Fields fields, bool translate = false, const ServerContext& context = house_->context()) {
    fields.emplace_back("file", *file_);
    fields.emplace_back("language", "en");
    const auto client = post(context, fields, translate);
    EXPECT_EQ(client->answer().status, 200) << client->answer().body;
    return client->answer();
  }
  static std::string text_of(Fields fields, const ServerContext& context = house_->context()) {
    return text(parse_json(answer(std::move(fields), false, context).body), "text");
  }
  static std::string expected(TranscribeOptions options) {
    options.language = "en";
    return std::string(strip_space(transcribed(context(), *file_, options).transcript.text));
  }
  static TranscribeOptions with_beams(int32_t beams) {
    TranscribeOptions options = server_defaults();
    options.beam_size = beams;
    return options;
  }

  static inline std::unique_ptr<ServerHouse> house_;
  static inline const std::string* file_ = nullptr;
};

// ---- Beams

TEST_F(TranscriptionFields, BeamsHaveTwoNames) {
  const std::string greedy = text_of({}), beams = expected(with_beams(3));
  ASSERT_NE(beams, greedy) << "the test cannot tell them apart";
  EXPECT_EQ(greedy, expected(with_beams(1)));
  EXPECT_EQ(text_of({{"beam_size", "3"}}), beams);
  EXPECT_EQ(text_of({{"num_beams", "3"}}), beams);
  EXPECT_EQ(text_of({{"num_beams", "3"}, {"beam_size", "3"}, {"temperature", "0"}}), beams);
  EXPECT_EQ(text_of({{"beam_size", "1"}, {"num_beams", ""}}), greedy);
  const Json whole = parse_json(answer({{"beam_size", "3"}, {"response_format", "verbose_json"}}).body);
  EXPECT_EQ(text(whole, "text"), beams);
}

// What `transcribe` does where no flag says otherwise, but for the silence.
TEST_F(TranscriptionFields, FiveBeamsAreTheCommandLinesSearch) {
  EXPECT_EQ(text_of({{"beam_size", "5"}}), expected(TranscribeOptions()));
}

TEST_F(TranscriptionFields, AModelOfBeamsCanBeAskedForNone) {
  const ChangedModel model("num_beams", Json(3));
  const auto house = speech_house(model.path());
  EXPECT_EQ(text_of({}, house->context()), expected(with_beams(3)));
  EXPECT_EQ(text_of({{"beam_size", "1"}}, house->context()), expected(with_beams(1)));
}

// A window's text is certain when the window is done, and that is when a stream has it.
TEST_F(TranscriptionFields, BeamsAreStreamed) {
  const HttpResponse streamed = answer({{"beam_size", "3"}, {"stream", "true"}});
  const std::vector<std::string> events = events_of(streamed);
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(text(parse_json(events[events.size() - 2]), "text"), expected(with_beams(3)));
}

TEST_F(TranscriptionFields, BeamsThatTheEngineCannotRunAreRefusedByTheNameThatWasGiven) {
  EngineConfig config;
  config.kv_cache_memory = uint64_t{64} << 20;
  config.max_num_seqs = 4;
  const ServerHouse house(default_server_options(), speech_model(), config);
  for (const char* field : {"beam_size", "num_beams"}) {
    const Refusal refusal = refusal_of(post(house.context(), {{"file", wav(3, 2)}, {field, "5"}})->answer());
    EXPECT_EQ(refusal.status, 400);
    EXPECT_EQ(refusal.param, field);
    EXPECT_THAT(refusal.message, HasSubstr(str_cat(field, " 5: the engine runs 4 sequences at most")));
    EXPECT_EQ(post(house.context(), {{"file", wav(3, 2)}, {field, "4"}})->answer().status, 200);
  }
}

TEST_F(TranscriptionFields, PatienceAndBestOfAreOfTheSearch) {
  TranscribeOptions options = with_beams(3);
  options.patience = 0.34;
  const std::string patient = expected(options);
  ASSERT_NE(patient, expected(with_beams(3))) << "the test cannot tell them apart";
  EXPECT_EQ(text_of({{"beam_size", "3"}, {"patience", "0.34"}}), patient);

  options = server_defaults();
  options.temperature = 0.8;
  options.temperature_increment = std::nullopt;
  const std::string drawn = expected(options);
  options.best_of = 1;
  const std::string alone = expected(options);
  ASSERT_NE(alone, drawn) << "the test cannot tell them apart";
  EXPECT_EQ(text_of({{"temperature", "0.8"}, {"best_of", "1"}}), alone);
  EXPECT_EQ(text_of({{"temperature", "0.8"}}), drawn);

  const auto refused = [](Fields fields) {
    fields.emplace_back("file", wav(3, 2));
    return refusal_of(post(context(), fields)->answer());
  };
  EXPECT_EQ(refused({{"patience", "2"}}).param, "patience") << "there are no beams";
  EXPECT_EQ(refused({{"patience", "0"}, {"beam_size", "2"}}).param, "patience");
  EXPECT_EQ(refused({{"best_of", "0"}}).param, "best_of");
}

TEST_F(TranscriptionFields, BestOfMoreThanTheEngineRunsIsRefused) {
  EngineConfig config;
  config.kv_cache_memory = uint64_t{64} << 20;
  config.max_num_seqs = 4;
  const ServerHouse house(default_server_options(), speech_model(), config);
  const Refusal refusal = refusal_of(post(house.context(), {{"file", wav(3, 2)}, {"best_of", "5"}})->answer());
  EXPECT_EQ(refusal.param, "best_of");
  EXPECT_THAT(refusal.message, HasSubstr("best_of 5: the engine runs 4 sequences at most"));
}

// ---- Task, text before

TEST_F(TranscriptionFields, TheTaskIsTheOtherRoutes) {
  const std::string translated = answer({}, /*translate=*/true).body;
  ASSERT_NE(translated, answer({}).body) << "the test cannot tell them apart";
  EXPECT_EQ(answer({{"task", "translate"}}).body, translated);
  EXPECT_EQ(answer({{"task", "translate"}}, /*translate=*/true).body, translated);
  EXPECT_EQ(answer({{"task", "transcribe"}}).body, answer({}).body);
  const Fields file = {{"file", wav(3, 2)}};
  const auto refused = [&](std::string_view task, bool translate) {
    Fields fields = file;
    fields.emplace_back("task", task);
    return refusal_of(post(context(), fields, translate)->answer());
  };
  EXPECT_EQ(refused("transcribe", true).param, "task");
  EXPECT_THAT(refused("sing", false).message, HasSubstr(R"(must be one of "transcribe", "translate", not "sing")"));
}

TEST_F(TranscriptionFields, TheTextBeforeAWindowCanBeKeptFromIt) {
  TranscribeOptions options = server_defaults();
  options.temperature = 0.2;  // alone: after a fallback above 0.5 no window is told
  options.temperature_increment = std::nullopt;
  const std::string told = expected(options);
  options.condition_on_previous_text = false;
  const std::string alone = expected(options);
  ASSERT_NE(alone, told) << "the test cannot tell them apart";
  const std::pair<std::string, std::string> cool = {"temperature", "0.2"};
  EXPECT_EQ(text_of({cool, {"condition_on_previous_text", "false"}}), alone);
  EXPECT_EQ(text_of({cool, {"condition_on_previous_text", "true"}}), told);
}

TEST_F(TranscriptionFields, TheDetectorHasNoParameters) {
  const Fields fields = {{"file", wav(3, 2)}, {"vad_parameters", R"({"threshold": 0.5})"}};
  const Refusal refusal = refusal_of(post(context(), fields)->answer());
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(refusal.param, "vad_parameters");
}

// ---- Hotwords, words, pauses

TEST_F(TranscriptionFields, HotwordsStandBeforeEveryWindow) {
  TranscribeOptions options = server_defaults();
  options.initial_prompt = "Montag";
  const std::string without = expected(options);
  options.hotwords = "the harbour";
  const std::string with = expected(options);
  ASSERT_NE(with, without) << "the test cannot tell them apart";
  EXPECT_EQ(text_of({{"hotwords", " the harbour\n"}, {"prompt", "Montag"}}), with);
  EXPECT_EQ(text_of({{"hotwords", " "}, {"prompt", "Montag"}}), without);
  const HttpResponse translated = answer({{"hotwords", "the harbour"}}, /*translate=*/true);
  EXPECT_NE(translated.body, answer({}, /*translate=*/true).body);
}

TEST_F(TranscriptionFields, WordTimestampsAreAGranularity) {
  const std::pair<std::string, std::string> verbose = {"response_format", "verbose_json"},
                                            cool = {"temperature", "0.2"};
  const auto body = [&](Fields fields) {
    fields.push_back(verbose);
    fields.push_back(cool);
    return answer(fields).body;
  };
  const std::pair<std::string, std::string> words = {"timestamp_granularities[]", "word"};
  const std::pair<std::string, std::string> segments = {"timestamp_granularities[]", "segment"};
  const std::string with_words = body({words});
  EXPECT_EQ(body({{"word_timestamps", "true"}}), with_words);
  EXPECT_EQ(body({{"word_timestamps", "True"}, words}), with_words);
  EXPECT_EQ(body({{"word_timestamps", "1"}, segments}), body({words, segments}));
  EXPECT_EQ(body({{"word_timestamps", "false"}}), body({}));
  EXPECT_EQ(body({{"word_timestamps", "false"}, segments}), body({segments}));
  EXPECT_NE(with_words, body({}));
}

TEST_F(TranscriptionFields, AVadFilterCutsAtPauses) {
  const auto body = [&](Fields fields) {
    fields.emplace_back("response_format", "verbose_json");
    return answer(fields).body;
  };
  const std::string at_pauses = body({{"chunking_strategy", "auto"}});
  ASSERT_NE(at_pauses, body({})) << "the test cannot tell them apart";
  EXPECT_EQ(body({{"vad_filter", "true"}}), at_pauses);
  EXPECT_EQ(body({{"vad_filter", "true"}, {"chunking_strategy", "auto"}}), at_pauses);
  EXPECT_EQ(body({{"chunking_strategy", R"({"type": "server_vad"})"}}), at_pauses);
  EXPECT_EQ(body({{"chunking_strategy", "server_vad"}}), at_pauses);
  EXPECT_EQ(body({{"vad_filter", "false"}}), body({}));
}

// ---- What is refused

TEST_F(TranscriptionFields, BadValuesAndContradictionsAreRefusedByName) {
  const struct {
    Fields fields;
    std::string_view param, part;
  } cases[] = {
      {{{"beam_size", "0"}}, "beam_size", "from 1 to 64"},
      {{{"beam_size", "65"}}, "beam_size", "from 1 to 64"},
      {{{"num_beams", "65"}}, "num_beams", "from 1 to 64"},
      {{{"num_beams", "many"}}, "num_beams", "whole number"},
      {{{"beam_size", "2.5"}}, "beam_size", "whole number"},
      {{{"beam_size", "2"}, {"num_beams", "3"}}, "num_beams", "contradict"},
      {{{"beam_size", "2"}, {"beam_size", "2"}}, "beam_size", "twice"},
      {{{"beam_size", "2"}, {"temperature", "0.2"}}, "temperature", "beam search does not"},
      {{{"vad_filter", "maybe"}}, "vad_filter", "true or false"},
      {{{"vad_filter", "false"}, {"chunking_strategy", "auto"}}, "vad_filter", "chunking_strategy"},
      {{{"chunking_strategy", "off"}}, "chunking_strategy", "server_vad"},
      {{{"chunking_strategy", R"({"type": "none"})"}}, "chunking_strategy", "server_vad"},
      {{{"chunking_strategy[type]", "none"}}, "chunking_strategy", "server_vad"},
      {{{"chunking_strategy[threshold]", "0.5"}}, "chunking_strategy", "server_vad"},
      {{{"word_timestamps", "words"}}, "word_timestamps", "true or false"},
      {{{"word_timestamps", "true"}}, "word_timestamps", "verbose_json"},
      {{{"word_timestamps", "true"}, {"response_format", "srt"}}, "word_timestamps", "verbose_json"},
      {{{"word_timestamps", "false"}, {"timestamp_granularities[]", "word"}, {"response_format", "verbose_json"}},
       "word_timestamps",
       "timestamp_granularities"},
      {{{"stream_options[include_progress]", "true"}}, "stream_options", "needs stream"},
      {{{"stream_options[include_progress]", "true"}, {"stream", "true"}}, "stream_options", "verbose_json"},
      {{{"stream_options[include_progress]", "x"}}, "stream_options.include_progress", "true or false"},
      {{{"hotwords", "<|endoftext|>"}}, "hotwords", "special token"},
      {{{"hotwords", std::string(500, 'x')}}, "hotwords", "tokens, and at most"},
      {{{"hotwords", "\xc3"}}, "hotwords", "UTF-8"},
  };
  for (const bool translate : {false, true}) {
    for (const auto& [fields, param, part] : cases) {
      SCOPED_TRACE(str_cat(fields[0].first, "=", fields[0].second.substr(0, 20), " ", part));
      Fields all = fields;
      all.emplace_back("file", wav(3, 2));
      const Refusal refusal = refusal_of(post(context(), all, translate)->answer());
      EXPECT_EQ(refusal.status, 400);
      EXPECT_EQ(refusal.param, param) << refusal.message;
      EXPECT_THAT(refusal.message, HasSubstr(part));
    }
  }
}

TEST_F(TranscriptionFields, TheServersLimitOfBeamsHolds) {
  ServerOptions options = default_server_options();
  options.limits.max_beams = 2;
  const auto house = speech_house(speech_model(), options);
  for (const char* field : {"beam_size", "num_beams"}) {
    const Refusal refusal = refusal_of(post(house->context(), {{"file", wav(3, 2)}, {field, "3"}})->answer());
    EXPECT_EQ(refusal.param, field);
    EXPECT_THAT(refusal.message, HasSubstr("from 1 to 2, not 3"));
  }
}

TEST_F(TranscriptionFields, ModelsWithoutAlignmentHeadsHaveNoWordTimestamps) {
  const ChangedModel model("alignment_heads", Json());
  const auto house = speech_house(model.path());
  Fields fields = {{"file", wav(3, 2)}, {"response_format", "verbose_json"}, {"word_timestamps", "true"}};
  const Refusal refusal = refusal_of(post(house->context(), fields)->answer());
  EXPECT_EQ(refusal.param, "word_timestamps");
  EXPECT_THAT(refusal.message, HasSubstr("does not tell when a word was spoken"));
  fields.back().second = "false";
  EXPECT_EQ(post(house->context(), fields)->answer().status, 200);
}

TEST_F(TranscriptionFields, MoonshineHasBeamsAndPauses) {
  const MoonshineModel model;
  const auto house = speech_house(model.path());
  const std::string file = wav(11, 5);
  for (const auto& [field, value] : Fields{{"hotwords", "A1"}, {"vad_filter", "false"}, {"word_timestamps", "true"}}) {
    const Fields fields = {{"file", file}, {field, value}, {"response_format", "verbose_json"}};
    EXPECT_EQ(refusal_of(post(house->context(), fields)->answer()).param, field);
  }
  for (const auto& [field, value] : Fields{{"vad_filter", "true"}, {"beam_size", "2"}, {"word_timestamps", "false"}}) {
    EXPECT_EQ(post(house->context(), {{"file", file}, {field, value}})->answer().status, 200) << field;
  }
}

}  // namespace
}  // namespace transept::testing
