#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "base/folder_testing.h"
#include "capi/capi_testing.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

constexpr const char* kGreedy = R"({"language": "en", "beam_size": 1, "temperature_increment_on_fallback": null,
    "no_speech_threshold": null, "logprob_threshold": null, "compression_ratio_threshold": null})";

class SpeechFunctions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = load_model(model_folder("whisper-transcribes"), R"({"kv_cache_memory": 67108864})").release();
  }
  static void TearDownTestSuite() { FreeHandle()(model_); }

  SpeechFunctions() {
    options_.options_json = transept_str(kGreedy);
    audio_.samples = sound().data();
    audio_.num_samples = sound().size();
  }

  static const std::vector<float>& sound() {
    static const std::vector<float> kSound = raw_audio(synthetic_audio(1, 40 * 16000)).samples;
    return kSound;
  }

  transept_code run() {
    transept_transcript* transcript = nullptr;
    const transept_code code = transept_transcribe(model_, &audio_, &options_, &transcript, error_.out());
    transcript_.reset(transcript);
    return code;
  }

  static std::string written(const transept_transcript* transcript, const char* format, const char* options = "") {
    char* text = nullptr;
    size_t size = 0;
    EXPECT_EQ(transept_transcript_write(transcript, format, transept_str(options), &text, &size, nullptr), TRANSEPT_OK);
    const Owned<char> owner(text);
    return {text, size};
  }

  static transept_model* model_;
  transept_audio audio_ = {sizeof audio_};
  transept_transcribe_options options_ = {sizeof options_};
  Owned<transept_transcript> transcript_;
  CallError error_;
};
transept_model* SpeechFunctions::model_ = nullptr;

TEST_F(SpeechFunctions, TranscriptsAreTheReferences) {
  const std::set<std::string> chosen = {"plain", "by name", "detected language of little audio", "carried prompt",
                                        "words of a language without spaces"};
  size_t num_checked = 0;
  for (const Json& golden : golden_lines("whisper-transcribes/transcripts.jsonl")) {
    const Json& sound = *golden.find("audio");
    const int64_t num_samples = sound.find("num_samples")->as_int();
    if (!chosen.contains(golden.find("id")->as_string())) continue;
    // Ends of words may be on the other side of a near tie (speech/transcriber_golden_test.cc).
    const double tolerance = golden.find("options")->find("word_timestamps") != nullptr ? 0.0201 : 1e-3;
    Silence silence;
    for (const Json& range : sound.find("silence")->as_array()) {
      silence.emplace_back(range.as_array()[0].as_int(), range.as_array()[1].as_int());
    }
    const std::vector<float> samples = raw_audio(synthetic_audio(static_cast<uint32_t>(sound.find("seed")->as_int()),
                                                                 static_cast<size_t>(num_samples), silence))
                                           .samples;
    Json options = *golden.find("options");
    options.set("temperature_increment_on_fallback", Json());
    if (options.find("beam_size") == nullptr || options.find("beam_size")->is_null()) options.set("beam_size", 1);
    const std::string text = options.dump();
    audio_.samples = samples.data();
    audio_.num_samples = samples.size();
    options_.options_json = to_text(text);
    ASSERT_EQ(run(), TRANSEPT_OK) << error_.message() << " " << text;
    const Json& wanted = *golden.find("result");
    EXPECT_EQ(to_string(transept_transcript_text(transcript_.get())), wanted.find("text")->as_string()) << text;
    const Json::Array& segments = wanted.find("segments")->as_array();
    ASSERT_EQ(transept_transcript_num_segments(transcript_.get()), segments.size());
    for (size_t i = 0; i < segments.size(); ++i) {
      transept_segment segment = {sizeof segment};
      ASSERT_EQ(transept_transcript_get_segment(transcript_.get(), i, &segment, nullptr), TRANSEPT_OK);
      EXPECT_EQ(to_string(segment.text), segments[i].find("text")->as_string());
      EXPECT_EQ(segment.num_token_ids, segments[i].find("tokens")->as_array().size());
      EXPECT_NEAR(segment.start, segments[i].find("start")->as_double(), tolerance);
      EXPECT_NEAR(segment.end, segments[i].find("end")->as_double(), tolerance);
      const Json* words = segments[i].find("words");
      EXPECT_EQ(segment.num_words, words == nullptr ? 0 : words->as_array().size());
      for (size_t j = 0; j < segment.num_words; ++j) {
        EXPECT_EQ(to_string(segment.words[j].word), words->as_array()[j].find("word")->as_string());
      }
    }
    ++num_checked;
  }
  EXPECT_EQ(num_checked, chosen.size());
}

// 16-bit PCM, so that a file holds the same samples.
std::string wav_of(const std::vector<float>& samples) {
  const auto number = [](uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
    return out;
  };
  std::string data;
  for (const float sample : samples) data += number(static_cast<uint16_t>(std::lround(sample * 32768)), 2);
  const auto size = static_cast<uint32_t>(data.size());
  return "RIFF" + number(36 + size, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) + number(1, 2) + number(16000, 4) +
         number(32000, 4) + number(2, 2) + number(16, 2) + "data" + number(size, 4) + data;
}

TEST_F(SpeechFunctions, AudioIsAFileBytesOrSamples) {
  ASSERT_EQ(run(), TRANSEPT_OK) << error_.message();
  const std::string wanted = written(transcript_.get(), "json");
  EXPECT_EQ(transept_transcript_duration(transcript_.get()), 40);
  EXPECT_EQ(to_string(transept_transcript_language(transcript_.get())), "en");
  const std::string wav = wav_of(sound());
  audio_ = {sizeof audio_};
  audio_.bytes = wav.data();
  audio_.num_bytes = wav.size();
  ASSERT_EQ(run(), TRANSEPT_OK) << error_.message();
  EXPECT_EQ(written(transcript_.get(), "json"), wanted);
  const TestFolder folder;
  folder.write("a.wav", wav);
  const std::string path = folder.path() + "/a.wav";
  audio_ = {sizeof audio_};
  audio_.path = path.c_str();
  ASSERT_EQ(run(), TRANSEPT_OK) << error_.message();
  EXPECT_EQ(written(transcript_.get(), "json"), wanted);
}

TEST_F(SpeechFunctions, ErrorsNameWhatIsWrong) {
  const auto refused = [&](auto change) {
    const transept_audio audio = audio_;
    const transept_transcribe_options options = options_;
    change();
    EXPECT_EQ(run(), TRANSEPT_INVALID_ARGUMENT) << error_.message();
    EXPECT_EQ(transcript_, nullptr);
    audio_ = audio;
    options_ = options;
    return error_.field();
  };
  EXPECT_EQ(refused([&] { audio_.path = "x"; }), "audio");
  EXPECT_EQ(refused([&] { audio_.samples = nullptr; }), "audio");
  EXPECT_EQ(refused([&] { audio_.num_samples = 0; }), "samples");
  EXPECT_EQ(refused([&] { audio_.sampling_rate = 7; }), "sampling_rate");
  EXPECT_EQ(refused([&] { audio_.struct_size = 7; }), "audio.struct_size");
  EXPECT_EQ(refused([&] { options_.struct_size = 7; }), "options.struct_size");
  EXPECT_EQ(refused([&] { options_.language = transept_str("Klingon"); }), "language");
  EXPECT_EQ(refused([&] { options_.task = transept_str("sing"); }), "task");
  EXPECT_EQ(refused([&] { options_.options_json = transept_str("[]"); }), "options_json");
  EXPECT_EQ(refused([&] { options_.options_json = transept_str(R"({"beam_size": 0})"); }), "beam_size");
  EXPECT_EQ(refused([&] { options_.timeout_seconds = -1; }), "timeout_seconds");
  audio_ = {sizeof audio_};
  audio_.path = "/no/such/file.wav";
  EXPECT_EQ(run(), TRANSEPT_NOT_FOUND);
  transept_transcript* transcript = nullptr;
  EXPECT_EQ(transept_transcribe(nullptr, &audio_, nullptr, &transcript, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_transcribe(model_, nullptr, nullptr, &transcript, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_transcribe(model_, &audio_, nullptr, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  const Owned<transept_model> text = load_model(model_dir("t5-float32"));
  EXPECT_EQ(transept_transcribe(text.get(), &audio_, nullptr, &transcript, error_.out()), TRANSEPT_UNIMPLEMENTED);
}

struct Heard {
  std::vector<std::string> segments = {};
  size_t num_words = 0;
  int num_progress = 0, num_languages = 0;
  double done = 0, all = 0, duration = 0, sum_of_probabilities = 0;
  std::string best_language = {};
  int32_t stop_at_segment = INT32_MAX;
};

TEST_F(SpeechFunctions, CallbacksHearAsItGoes) {
  Heard heard;
  options_.data = &heard;
  options_.options_json = transept_str(R"({"beam_size": 1, "temperature_increment_on_fallback": null,
      "no_speech_threshold": null, "logprob_threshold": null, "compression_ratio_threshold": null,
      "word_timestamps": true})");
  options_.on_segment = [](void* data, const transept_segment* segment) -> int32_t {
    static_cast<Heard*>(data)->segments.push_back(to_string(segment->text));
    static_cast<Heard*>(data)->num_words += segment->num_words;
    return 0;
  };
  options_.on_progress = [](void* data, double done, double all) -> int32_t {
    auto& own = *static_cast<Heard*>(data);
    ++own.num_progress;
    own.done = done;
    own.all = all;
    return 0;
  };
  options_.on_language = [](void* data, transept_text code, double probability) -> int32_t {
    static_cast<Heard*>(data)->num_languages += code.size == 2 && probability > 0;
    return 0;
  };
  options_.on_duration = [](void* data, double seconds) -> int32_t {
    auto& own = *static_cast<Heard*>(data);
    EXPECT_EQ(own.num_progress + own.num_languages, 0);  // the first news
    own.duration += seconds;
    return 0;
  };
  options_.on_languages = [](void* data, const transept_language* languages, size_t count) -> int32_t {
    auto& own = *static_cast<Heard*>(data);
    own.best_language += to_string(languages[0].code);
    for (size_t i = 0; i < count; ++i) own.sum_of_probabilities += languages[i].probability;
    return 0;
  };
  ASSERT_EQ(run(), TRANSEPT_OK) << error_.message();
  EXPECT_EQ(heard.duration, 40);
  EXPECT_EQ(heard.best_language, to_string(transept_transcript_language(transcript_.get())));
  EXPECT_NEAR(heard.sum_of_probabilities, 1, 1e-3);
  EXPECT_EQ(heard.segments.size(), transept_transcript_num_segments(transcript_.get()));
  EXPECT_GT(heard.num_words, 0u);
  EXPECT_EQ(heard.num_languages, 1);
  EXPECT_GT(heard.num_progress, 0);
  EXPECT_EQ(heard.done, 40);
  EXPECT_EQ(heard.all, 40);
  EXPECT_NE(written(transcript_.get(), "srt", R"({"max_words_per_line": 1})"), written(transcript_.get(), "srt"));
}

TEST_F(SpeechFunctions, SegmentsKnowTheirWindow) {
  ASSERT_EQ(run(), TRANSEPT_OK) << error_.message();
  const Json json = Json::parse(written(transcript_.get(), "json")).value();
  const Json::Array& wanted = json.find("segments")->as_array();
  ASSERT_EQ(wanted.size(), transept_transcript_num_segments(transcript_.get()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    transept_segment segment = {sizeof segment};
    ASSERT_EQ(transept_transcript_get_segment(transcript_.get(), i, &segment, nullptr), TRANSEPT_OK);
    EXPECT_EQ(segment.seek, static_cast<int32_t>(wanted[i].find("seek")->as_double()));
  }
}

TEST_F(SpeechFunctions, DecodesAudio) {
  const std::string wav = wav_of(sound());
  transept_audio audio = {sizeof audio};
  audio.bytes = wav.data();
  audio.num_bytes = wav.size();
  float* samples = nullptr;
  size_t size = 0;
  ASSERT_EQ(transept_decode_audio(&audio, 0, 0, &samples, &size, error_.out()), TRANSEPT_OK) << error_.message();
  const Owned<float> owner(samples);
  ASSERT_EQ(size, sound().size());
  for (size_t i = 0; i < size; ++i) ASSERT_NEAR(samples[i], sound()[i], 1.0 / 32768);
  float* others = nullptr;
  ASSERT_EQ(transept_decode_audio(&audio, 8000, 0, &others, &size, error_.out()), TRANSEPT_OK) << error_.message();
  const Owned<float> others_owner(others);
  EXPECT_EQ(size, sound().size() / 2);
  EXPECT_EQ(transept_decode_audio(&audio, 7, 0, &others, &size, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_decode_audio(&audio, 0, 1, &others, &size, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(others, nullptr);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(transept_decode_audio(nullptr, 0, 0, &others, &size, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_decode_audio(&audio, 0, 0, nullptr, &size, error_.out()), TRANSEPT_INVALID_ARGUMENT);
}

TEST_F(SpeechFunctions, ACallbackStopsTheTranscription) {
  Heard heard{.stop_at_segment = 1};
  options_.data = &heard;
  options_.on_segment = [](void* data, const transept_segment* segment) -> int32_t {
    auto& own = *static_cast<Heard*>(data);
    own.segments.push_back(to_string(segment->text));
    return static_cast<int32_t>(own.segments.size()) >= own.stop_at_segment ? 1 : 0;
  };
  EXPECT_EQ(run(), TRANSEPT_CANCELLED);
  EXPECT_EQ(transcript_, nullptr);
  EXPECT_GE(heard.segments.size(), 1u);
}

TEST_F(SpeechFunctions, ACallbackThatStopsAtTheEndStopsStill) {
  options_.on_progress = [](void*, double done, double all) -> int32_t { return done >= all ? 1 : 0; };
  EXPECT_EQ(run(), TRANSEPT_CANCELLED);
}

TEST_F(SpeechFunctions, CancellationsAndStopsEndIt) {
  transept_cancellation* cancellation = nullptr;
  ASSERT_EQ(transept_cancellation_create(&cancellation, nullptr), TRANSEPT_OK);
  const Owned<transept_cancellation> owner(cancellation);
  ASSERT_EQ(transept_cancellation_cancel(cancellation, nullptr), TRANSEPT_OK);
  options_.cancellation = cancellation;
  EXPECT_EQ(run(), TRANSEPT_CANCELLED);
  options_.cancellation = nullptr;
  options_.timeout_seconds = 1e-6;
  EXPECT_EQ(run(), TRANSEPT_DEADLINE_EXCEEDED);
  options_.timeout_seconds = 0;

  const Owned<transept_model> model =
      load_model(model_folder("whisper-transcribes"), R"({"kv_cache_memory": 67108864})");
  options_.data = model.get();
  options_.on_segment = [](void* data, const transept_segment*) -> int32_t {
    EXPECT_EQ(transept_model_stop(static_cast<transept_model*>(data), nullptr), TRANSEPT_OK);
    return 0;
  };
  transept_transcript* transcript = nullptr;
  EXPECT_EQ(transept_transcribe(model.get(), &audio_, &options_, &transcript, error_.out()), TRANSEPT_UNAVAILABLE);
}

TEST_F(SpeechFunctions, ManyThreadsTranscribe) {
  ASSERT_EQ(run(), TRANSEPT_OK);
  const std::string wanted = written(transcript_.get(), "json");
  std::vector<std::thread> threads;
  threads.reserve(3);
  std::atomic<int> num_same = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      transept_transcript* transcript = nullptr;
      EXPECT_EQ(transept_transcribe(model_, &audio_, &options_, &transcript, nullptr), TRANSEPT_OK);
      const Owned<transept_transcript> owner(transcript);
      num_same += written(transcript, "json") == wanted;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_same, 3);
}

TEST_F(SpeechFunctions, ARequestTakesSamplesOfOneWindow) {
  transept_request request = request_of(R"({"max_tokens": 5, "language": "en"})");
  request.samples = sound().data();
  request.num_samples = 16000;
  const Owned<transept_result> first = generate(model_, request);
  ASSERT_NE(first, nullptr);
  transept_result_info info = {sizeof info};
  ASSERT_EQ(transept_result_get_info(first.get(), &info, nullptr), TRANSEPT_OK);
  EXPECT_EQ(info.audio_seconds, 1);
  transept_encoded* encoded = nullptr;
  ASSERT_EQ(transept_encode(model_, &request, &encoded, error_.out()), TRANSEPT_OK) << error_.message();
  const Owned<transept_encoded> owner(encoded);
  request.samples = nullptr;
  request.num_samples = 0;
  request.encoded = encoded;
  EXPECT_EQ(token_ids(generate(model_, request).get()), token_ids(first.get()));
}

TEST_F(SpeechFunctions, NothingIsEmpty) {
  EXPECT_EQ(to_string(transept_transcript_text(nullptr)), "");
  EXPECT_EQ(to_string(transept_transcript_language(nullptr)), "");
  EXPECT_EQ(transept_transcript_duration(nullptr), 0);
  EXPECT_EQ(transept_transcript_num_segments(nullptr), 0u);
  transept_transcript_free(nullptr);
  transept_segment segment = {sizeof segment};
  EXPECT_EQ(transept_transcript_get_segment(nullptr, 0, &segment, nullptr), TRANSEPT_INVALID_ARGUMENT);
  ASSERT_EQ(run(), TRANSEPT_OK);
  EXPECT_EQ(transept_transcript_get_segment(transcript_.get(), SIZE_MAX, &segment, error_.out()),
            TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "index");
  char* text = nullptr;
  const auto write = [&](const char* format, const char* options) {
    return transept_transcript_write(transcript_.get(), format, transept_str(options), &text, nullptr, error_.out());
  };
  EXPECT_EQ(write("doc", ""), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(write(nullptr, ""), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(write("srt", R"({"highlight_words": true})"), TRANSEPT_INVALID_ARGUMENT) << "without word times";
  EXPECT_EQ(text, nullptr);
}

}  // namespace
}  // namespace transept::testing
