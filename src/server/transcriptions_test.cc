// Transcriptions as clients meet them: every format and granularity against the transcriber's own result, forms as real
// clients send them, and what is refused, by the field's name.
#include "server/transcriptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "core/speech_languages.h"
#include "server/transcription_testing.h"
#include "speech/characters.h"
#include "speech/subtitles.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Transcriptions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    house_ = speech_house();
    file_ = new std::string(wav(7, 34));
    TranscribeOptions options = server_defaults();
    options.language = "en";
    expected_ = new TranscribeResult(transcribed(house_->context(), *file_, options));
    ASSERT_FALSE(strip_space(expected_->transcript.text).empty());
    ASSERT_GT(expected_->transcript.segments.size(), 1u);
  }
  static void TearDownTestSuite() {
    house_.reset();
    delete file_;
    delete expected_;
  }

  static const ServerContext& context() { return house_->context(); }
  // With the file and its language.
  static std::shared_ptr<Client> ask(Fields fields, bool translate = false) {
    fields.emplace_back("file", *file_);
    fields.emplace_back("language", "en");
    return post(context(), fields, translate);
  }
  static HttpResponse answer(Fields fields, bool translate = false) {
    const auto client = ask(std::move(fields), translate);
    EXPECT_TRUE(client->has_ended());
    EXPECT_EQ(client->answer().status, 200) << client->answer().body;
    return client->answer();
  }
  static const Transcript& expected() { return expected_->transcript; }
  static std::string expected_text() { return std::string(strip_space(expected().text)); }

  static inline std::unique_ptr<ServerHouse> house_;
  static inline const std::string* file_ = nullptr;
  static inline const TranscribeResult* expected_ = nullptr;
};

TEST_F(Transcriptions, JsonIsTheDefault) {
  for (const Fields& fields : {Fields{}, Fields{{"response_format", "json"}}}) {
    const HttpResponse response = answer(fields);
    EXPECT_EQ(response.content_type, "application/json");
    const Json json = parse_json(response.body);
    EXPECT_EQ(text(json, "text"), expected_text());
    EXPECT_EQ(member(json, "usage").dump(), R"({"type": "duration", "seconds": 34})");
    EXPECT_EQ(json.as_object().size(), 2u);
  }
}

TEST_F(Transcriptions, TextAndSubtitles) {
  const HttpResponse plain = answer({{"response_format", "text"}});
  EXPECT_EQ(plain.content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(plain.body, expected_text() + "\n");
  const HttpResponse srt = answer({{"response_format", "srt"}});
  EXPECT_EQ(srt.content_type, "application/x-subrip; charset=utf-8");
  EXPECT_EQ(srt.body, write_transcript(expected(), TranscriptFormat::kSrt));
  const HttpResponse vtt = answer({{"response_format", "vtt"}});
  EXPECT_EQ(vtt.content_type, "text/vtt; charset=utf-8");
  EXPECT_EQ(vtt.body, write_transcript(expected(), TranscriptFormat::kVtt));
}

TEST_F(Transcriptions, VerboseJsonHasSegments) {
  const Json json = parse_json(answer({{"response_format", "verbose_json"}}).body);
  EXPECT_EQ(text(json, "task"), "transcribe");
  EXPECT_EQ(text(json, "language"), "english");
  EXPECT_EQ(number(json, "duration"), 34);
  EXPECT_EQ(text(json, "text"), expected_text());
  EXPECT_EQ(text(member(json, "usage"), "type"), "duration");
  EXPECT_EQ(json.find("words"), nullptr);
  const Json::Array& segments = list(json, "segments");
  ASSERT_EQ(segments.size(), expected().segments.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    EXPECT_EQ(segments[i].dump(), segment_json(expected().segments[i], false).dump());
  }
}

TEST_F(Transcriptions, GranularitiesSayWhatHasTimes) {
  TranscribeOptions options = server_defaults();
  options.language = "en";
  options.word_timestamps = true;
  options.temperature = 0.2;
  options.temperature_increment = std::nullopt;
  const Transcript with_words = transcribed(context(), *file_, options).transcript;
  std::vector<Word> words;
  for (const Segment& segment : with_words.segments) {
    words.insert(words.end(), segment.words.begin(), segment.words.end());
  }
  ASSERT_FALSE(words.empty());
  const struct {
    Fields fields;
    bool words, segments;
  } cases[] = {
      {{{"timestamp_granularities[]", "word"}}, true, false},
      {{{"timestamp_granularities", "word"}}, true, false},
      {{{"timestamp_granularities[]", "segment"}}, false, true},
      {{{"timestamp_granularities[]", "segment"}, {"timestamp_granularities[]", "word"}}, true, true},
      {{{"timestamp_granularities", "[\"word\", \"segment\"]"}}, true, true},
      {{{"timestamp_granularities[]", ""}}, false, true},
  };
  for (const auto& [fields, has_words, has_segments] : cases) {
    Fields all = fields;
    all.emplace_back("response_format", "verbose_json");
    all.emplace_back("temperature", "0.2");
    const Json json = parse_json(answer(all).body);
    EXPECT_EQ(json.find("words") != nullptr, has_words) << fields[0].second;
    EXPECT_EQ(json.find("segments") != nullptr, has_segments) << fields[0].second;
    if (!has_words) continue;
    ASSERT_EQ(list(json, "words").size(), words.size());
    for (size_t i = 0; i < words.size(); ++i) {
      const Json& word = list(json, "words")[i];
      EXPECT_EQ(text(word, "word"), strip_space(words[i].word));
      EXPECT_EQ(number(word, "start"), words[i].start);
      EXPECT_EQ(number(word, "end"), words[i].end);
      EXPECT_EQ(word.as_object().size(), 3u);
    }
  }
}

TEST_F(Transcriptions, TranslationsAreEnglish) {
  TranscribeOptions options = server_defaults();
  options.task = "translate";
  options.language = "de";
  const Transcript translated = transcribed(context(), *file_, options).transcript;
  const auto client = post(context(), {{"file", *file_}, {"language", "German"}, {"response_format", "verbose_json"}},
                           /*translate=*/true);
  const Json json = client->json();
  EXPECT_EQ(text(json, "task"), "translate");
  EXPECT_EQ(text(json, "language"), "english");
  EXPECT_EQ(text(json, "text"), strip_space(translated.text));
  EXPECT_NE(translated.text, expected().text);
}

TEST_F(Transcriptions, LanguageIsDetectedWhereNoneIsGiven) {
  const Transcript detected = transcribed(context(), *file_, server_defaults()).transcript;
  const std::string name(speech_language_name(detected.language));
  for (const Fields& fields : {Fields{}, Fields{{"language", ""}}}) {
    Fields all = fields;
    all.emplace_back("file", *file_);
    all.emplace_back("response_format", "verbose_json");
    const Json json = post(context(), all)->json();
    EXPECT_EQ(text(json, "language"), name);
    EXPECT_EQ(text(json, "text"), strip_space(detected.text));
  }
}

TEST_F(Transcriptions, OptionsReachTheTranscriber) {
  TranscribeOptions options = server_defaults();
  options.language = "es";
  options.initial_prompt = "Montag";
  options.temperature = 0.4;
  options.temperature_increment = std::nullopt;
  options.mode = TranscribeMode::kBatched;
  const Transcript wanted = transcribed(context(), *file_, options).transcript;
  const Fields fields = {{"file", *file_},        {"language", "Castilian"},
                         {"prompt", " Montag\n"}, {"temperature", "0.4"},
                         {"model", "g2p"},        {"response_format", "verbose_json"},
                         {"user", "u"},           {"chunking_strategy[type]", "server_vad"},
                         {"stream", "False"},     {"chunking_strategy[threshold]", "0.5"}};
  const Json json = post(context(), fields)->json();
  EXPECT_EQ(text(json, "text"), strip_space(wanted.text));
  EXPECT_EQ(text(json, "language"), "spanish");
  ASSERT_FALSE(wanted.segments.empty());
  EXPECT_EQ(number(list(json, "segments")[0], "temperature"), 0.4);
}

// ---- Forms

TEST_F(Transcriptions, FilesOfAnyTypeAndNoName) {
  for (const std::string_view headers :
       {"Content-Disposition: form-data; name=\"file\"; filename=\"blob\"\r\nContent-Type: application/octet-stream",
        "Content-Disposition: form-data; name=\"file\"; filename=\"\"",
        "Content-Disposition: form-data; name=file; filename=x.mp3\r\nContent-Type: video/mp4",
        "Content-Disposition: form-data; name=\"file\"\r\nContent-Type: audio/wav"}) {
    std::string body;
    append_part(body, headers, wav(3, 2));
    const auto client = post_body(context(), str_cat(body, "--", kBoundary, "--\r\n"));
    EXPECT_EQ(client->answer().status, 200) << headers << client->answer().body;
  }
}

TEST_F(Transcriptions, UnknownFieldsAreCountedAndIgnored) {
  const auto house = speech_house();
  const auto client =
      post(house->context(),
           {{"file", wav(3, 2)}, {"no_such", "true"}, {"no_such", "\xff"}, {"files", "x"}, {"language", "en"}});
  EXPECT_EQ(client->answer().status, 200) << client->answer().body;
  EXPECT_THAT(house->metrics().text(house->engine().snapshot(), {}),
              HasSubstr("transept:unknown_request_fields_total{model_name=\"g2p\"} 2"));
}

TEST_F(Transcriptions, BadFieldsAreRefusedByName) {
  const std::string two = wav(3, 2);
  const struct {
    Fields fields;
    std::string_view param, part;
  } cases[] = {
      {{{"language", "klingon"}, {"file", two}}, "language", "klingon"},
      {{{"language", "en"}, {"language", "de"}, {"file", two}}, "language", "twice"},
      {{{"language[]", "en"}, {"language", "en"}, {"file", two}}, "language", "twice"},
      {{{"response_format", "diarized_json"}, {"file", two}}, "response_format", "verbose_json"},
      {{{"temperature", "1.5"}, {"file", two}}, "temperature", "0 to 1"},
      {{{"temperature", "warm"}, {"file", two}}, "temperature", "number"},
      {{{"temperature", "-0.1"}, {"file", two}}, "temperature", "0 to 1"},
      {{{"stream", "maybe"}, {"file", two}}, "stream", "true or false"},
      {{{"stream", "true"}, {"response_format", "srt"}, {"file", two}}, "stream", "srt"},
      {{{"stream", "true"}, {"response_format", "vtt"}, {"file", two}}, "stream", "vtt"},
      {{{"timestamp_granularities[]", "word"}, {"file", two}}, "timestamp_granularities", "verbose_json"},
      {{{"timestamp_granularities[]", "char"}, {"response_format", "verbose_json"}, {"file", two}},
       "timestamp_granularities",
       "char"},
      {{{"include[]", "logprobs"}, {"file", two}}, "include", "not supported"},
      {{{"prompt", "\xc3"}, {"file", two}}, "prompt", "UTF-8"},
      {{{"prompt", "<|endoftext|>"}, {"file", two}}, "prompt", "special token"},
      {{{"language", "en"}}, "file", "missing"},
      {{{"file", two}, {"file", two}}, "file", "twice"},
      {{{"file[]", two}, {"file[]", two}}, "file", "twice"},
      {{{"file", ""}}, "file", "empty"},
      {{{"file", "no audio at all, but long enough to be looked at closely"}}, "file", "file: "},
      {{{"file", wav(3, 0.05)}}, "file", "0.05 s; the least is 0.1 s"},
  };
  for (const auto& [fields, param, part] : cases) {
    SCOPED_TRACE(str_cat(fields[0].first, "=", fields[0].second.substr(0, 20), " ", part));
    const Refusal refusal = refusal_of(post(context(), fields)->answer());
    EXPECT_EQ(refusal.status, 400);
    EXPECT_EQ(refusal.param, param) << refusal.message;
    EXPECT_THAT(refusal.message, HasSubstr(part));
  }
}

TEST_F(Transcriptions, AFieldSentAsAFileIsNoField) {
  std::string body = form_body({{"file", wav(3, 2)}});
  std::string part;
  append_part(part, "Content-Disposition: form-data; name=\"language\"; filename=\"l.txt\"", "en");
  EXPECT_EQ(refusal_of(post_body(context(), part + body)->answer()).param, "language");
}

TEST_F(Transcriptions, OtherBodiesAreRefused) {
  const auto call = make_call(context(), form_body({{"file", wav(3, 2)}}), nullptr);
  for (const HttpHeaders& headers : {HttpHeaders{}, HttpHeaders{{"Content-Type", "application/json"}},
                                     HttpHeaders{{"Content-Type", "multipart/form-data"}},
                                     HttpHeaders{{"Content-Type", "multipart/form-data; boundary=another"}}}) {
    const auto client = std::make_shared<Client>();
    const auto other = std::make_shared<ApiCall>();
    other->http = call->http;
    other->http.headers = headers;
    other->responder = client;
    handle_transcription(context(), other, false);
    const Refusal refusal = refusal_of(client->answer());
    EXPECT_EQ(refusal.status, 400);
    EXPECT_EQ(refusal.param, "null");
  }
}

TEST_F(Transcriptions, ATenthOfASecondIsEnough) {
  EXPECT_EQ(post(context(), {{"file", wav(3, 0.1)}})->answer().status, 200);
  const std::string cd = make_wav({.channels = 1, .rate = 44100}, bytes_of(synthetic_audio(5, 4410)));
  EXPECT_EQ(post(context(), {{"file", cd}})->answer().status, 200);
}

TEST_F(Transcriptions, UnknownModelsAreNotFound) {
  const Refusal refusal = refusal_of(post(context(), {{"model", "whisper-1"}, {"file", wav(3, 2)}})->answer());
  EXPECT_EQ(refusal.status, 404);
  EXPECT_EQ(refusal.param, "model");
  EXPECT_EQ(post(context(), {{"model", ""}, {"file", wav(3, 2)}})->answer().status, 200);
}

TEST_F(Transcriptions, ALanguageOfAMegabyteIsNotSentBack) {
  const std::string language(1'000'000, 'e');
  const Refusal refusal = refusal_of(post(context(), {{"language", language}, {"file", wav(3, 2)}})->answer());
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(refusal.param, "language");
  EXPECT_THAT(refusal.message, HasSubstr("(1000000 bytes)"));
  EXPECT_LT(refusal.message.size(), 1000u);
}

TEST_F(Transcriptions, LimitsAreToldWithBothNumbers) {
  ServerOptions options = default_server_options();
  options.max_upload_bytes = 64000;
  options.max_field_bytes = 100;
  options.max_audio_seconds = 1.5;
  const auto house = speech_house(speech_model(), options);
  const auto large = post(house->context(), {{"file", wav(3, 3)}});
  EXPECT_EQ(large->answer().status, 413);
  EXPECT_EQ(refusal_of(large->answer()).param, "file");
  EXPECT_THAT(refusal_of(large->answer()).message, HasSubstr("96044 bytes, more than the 64000"));
  const Refusal field = refusal_of(post(house->context(), {{"prompt", std::string(101, 'x')}})->answer());
  EXPECT_EQ(field.status, 400);
  EXPECT_EQ(field.param, "prompt");
  const Refusal length = refusal_of(post(house->context(), {{"file", wav(3, 1.75)}})->answer());
  EXPECT_EQ(length.status, 400);
  EXPECT_EQ(length.param, "file");
  EXPECT_THAT(length.message, HasSubstr("1.5"));
  EXPECT_EQ(post(house->context(), {{"file", wav(3, 1.5)}})->answer().status, 200);
}

// ---- Models

TEST(TranscriptionModels, OfTextAreToldApartWithoutTheirPath) {
  ServerHouse house;
  const Refusal refusal = refusal_of(post(house.context(), {{"file", "x"}})->answer());
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(refusal.param, "model");
  EXPECT_THAT(refusal.message, HasSubstr("does not take audio"));
  EXPECT_THAT(refusal.message, Not(HasSubstr("g2p"))) << "the folder";
}

TEST(TranscriptionModels, WithoutAlignmentHeadsHaveNoWords) {
  const ChangedModel model("alignment_heads", Json());
  const auto house = speech_house(model.path());
  Fields fields = {{"file", wav(3, 2)}, {"response_format", "verbose_json"}, {"timestamp_granularities[]", "word"}};
  EXPECT_EQ(refusal_of(post(house->context(), fields)->answer()).param, "timestamp_granularities");
  fields.back().second = "segment";
  EXPECT_EQ(post(house->context(), fields)->answer().status, 200);
}

TEST(TranscriptionModels, OfEnglishAloneDoNotTranslate) {
  const ChangedModel model("is_multilingual", Json(false));
  const auto house = speech_house(model.path());
  const Refusal refusal = refusal_of(post(house->context(), {{"file", wav(3, 2)}}, true)->answer());
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(refusal.param, "model");
  EXPECT_EQ(post(house->context(), {{"file", wav(3, 2)}, {"language", "English"}})->answer().status, 200);
  EXPECT_EQ(refusal_of(post(house->context(), {{"file", wav(3, 2)}, {"language", "de"}})->answer()).param, "language");
}

TEST(TranscriptionModels, TheirFilesSayHowWideTheSearchIs) {
  const ChangedModel model("num_beams", Json(3));
  const auto house = speech_house(model.path());
  const std::string file = wav(7, 34);
  TranscribeOptions options = server_defaults();
  options.beam_size = 3;
  options.language = "en";
  const Transcript beams = transcribed(house->context(), file, options).transcript;
  options.beam_size = 1;
  const Transcript greedy = transcribed(house->context(), file, options).transcript;
  ASSERT_NE(beams.text, greedy.text) << "the test cannot tell them apart";
  const Json json = post(house->context(), {{"file", file}, {"language", "en"}})->json();
  EXPECT_EQ(text(json, "text"), strip_space(beams.text));
}

// ---- Admission

TEST_F(Transcriptions, AudioInWorkIsCharged) {
  ServerOptions options = default_server_options();
  options.queue.max_audio_seconds = 10;
  const auto house = speech_house(speech_model(), options);
  auto held = house->admission().take_budget(0, 9);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(post(house->context(), {{"file", wav(3, 2)}})->answer().status, 429);
  held->release();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post(house->context(), {{"file", wav(3, 6)}})->answer().status, 200);
  EXPECT_TRUE(house->admission().take_budget(0, 9).ok());  // nothing was kept
  EXPECT_THAT(house->metrics().text(house->engine().snapshot(), {}),
              HasSubstr("transept:audio_seconds_total{model_name=\"g2p\"} 18"));
}

// A WebM as browsers record it: its duration is blanked out.
std::string webm_without_length() {
  std::string bytes = read_file(str_cat(source_dir(), "/src/media/testdata/opus.webm")).value();
  const size_t at = bytes.find("\x44\x89\x88");
  EXPECT_NE(at, std::string::npos);
  bytes.replace(at, 3, std::string("\xec\x89\0", 3));  // EBML's Void, as long
  return bytes;
}

// The most that one may have, until the first pass has found its length.
TEST_F(Transcriptions, AudioWithoutALengthIsChargedTheLimitThenWhatWasFound) {
  ServerOptions options = default_server_options();
  options.max_audio_seconds = 50;
  options.queue.max_audio_seconds = 60;
  const auto house = speech_house(speech_model(), options);
  auto held = house->admission().take_budget(0, 11);
  ASSERT_TRUE(held.ok());
  const auto refused = post(house->context(), {{"file", webm_without_length()}})->answer();
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("with the 50 s of this request"));
  std::thread letting_go([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    held->release();
  });
  EXPECT_EQ(post(house->context(), {{"file", webm_without_length()}})->answer().status, 200);  // it waited
  letting_go.join();
  EXPECT_TRUE(house->admission().take_budget(0, 60).ok());  // nothing was kept

  bool has_written = false;
  const auto client = std::make_shared<Client>([&] {
    has_written = true;
    EXPECT_TRUE(house->admission().take_budget(0, 40).ok());
  });
  const Fields fields = {{"file", webm_without_length()}, {"stream", "true"}};
  handle_transcription(house->context(), make_call(house->context(), form_body(fields), client), false);
  EXPECT_TRUE(has_written);
}

TEST_F(Transcriptions, APlaceIsHeldUntilTheThreadHasCome) {
  auto call = make_call(context(), form_body({{"file", wav(3, 2)}}), std::make_shared<Client>());
  const int32_t before = context().admission.num_waiting();
  call->places = context().admission.take_places(1).value();
  EXPECT_EQ(context().admission.num_waiting(), before + 1);
  handle_transcription(context(), call, false);
  EXPECT_EQ(context().admission.num_waiting(), before);
}

// Their windows share the engine's batch, and nothing else.
TEST_F(Transcriptions, ManyAtOnceAnswerAsEachAlone) {
  std::vector<Fields> all;
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    for (const char* format : {"json", "srt", "verbose_json"}) {
      all.push_back({{"file", wav(seed, 3 + 2 * seed)}, {"response_format", format}, {"temperature", "0.2"}});
    }
  }
  std::vector<std::string> alone;
  alone.reserve(all.size());
  for (const Fields& fields : all) alone.push_back(post(context(), fields)->answer().body);
  std::vector<std::shared_ptr<Client>> clients(all.size());
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] { clients[i] = post(context(), all[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(clients[i]->answer().body, alone[i]);
}

}  // namespace
}  // namespace transept::testing
