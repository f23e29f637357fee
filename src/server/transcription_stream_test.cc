// Transcriptions as events, and how they end before their time: clients that go, deadlines, an engine that stops.
#include "server/transcription_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "server/transcription_testing.h"
#include "speech/characters.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

// What a stream said: its deltas joined, and the event that ended it.
struct Told {
  std::string deltas;
  size_t num_deltas = 0;
  Json last;
};

Told told(const HttpResponse& response) {
  Told result;
  const std::vector<std::string> events = events_of(response);
  EXPECT_GE(events.size(), 2u);
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json event = parse_json(events[i]);
    if (i + 2 == events.size()) {
      result.last = event;
      continue;
    }
    EXPECT_EQ(text(event, "type"), "transcript.text.delta");
    EXPECT_FALSE(text(event, "delta").empty());
    result.deltas += text(event, "delta");
    ++result.num_deltas;
  }
  return result;
}

class TranscriptionStreams : public ::testing::Test {
 protected:
  const ServerContext& context() const { return house_->context(); }

  // The engine has nothing to do, and no block is held. (It lets go of them after the step that runs.)
  void expect_idle() {
    const auto is_idle = [&] {
      const EngineSnapshot now = house_->engine().snapshot();
      return now.running.empty() && now.waiting.empty() && now.blocks.self == 0 && now.blocks.cross == 0 &&
             now.blocks.pinned == 0;
    };
    for (int i = 0; i < 200 && !is_idle(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(is_idle());
  }

  std::unique_ptr<ServerHouse> house_ = speech_house();
};

TEST_F(TranscriptionStreams, DeltasAreTheWholeText) {
  const std::string file = wav(7, 40);
  for (const Fields& asked :
       {Fields{{"language", "en"}}, Fields{{"response_format", "text"}, {"temperature", "0.2"}},
        Fields{{"temperature", "0.2"}}, Fields{{"chunking_strategy", "auto"}, {"temperature", "0.2"}}}) {
    Fields fields = asked;
    fields.emplace_back("file", file);
    Fields plain = fields;
    std::erase_if(plain, [](const auto& field) { return field.first == "response_format"; });
    const std::string whole = text(post(context(), plain)->json(), "text");
    fields.emplace_back("stream", "true");
    const auto client = post(context(), fields);
    ASSERT_TRUE(client->was_streamed() && client->has_ended());
    EXPECT_EQ(client->answer().status, 200);
    const Told result = told(client->answer());
    EXPECT_GT(result.num_deltas, 1u);
    EXPECT_EQ(result.deltas, whole);
    EXPECT_EQ(text(result.last, "type"), "transcript.text.done");
    EXPECT_EQ(text(result.last, "text"), whole);
    const Json& usage = member(result.last, "usage");
    EXPECT_EQ(text(usage, "type"), "tokens");
    EXPECT_GT(integer(usage, "output_tokens"), 0);
    EXPECT_GT(integer(member(usage, "input_token_details"), "audio_tokens"), 0);
    EXPECT_EQ(integer(usage, "total_tokens"), integer(usage, "input_tokens") + integer(usage, "output_tokens"));
  }
  EXPECT_THAT(house_->metrics().text(house_->engine().snapshot(), {}),
              HasSubstr("transept:time_to_first_token_seconds_count{model_name=\"g2p\"} 8"));
}

// A segment of verbose_json as its event has it.
Json segment_of(const Json& event) {
  Json segment = Json::object();
  for (const auto& [name, value] : event.as_object()) {
    if (name == "type" || name == "speaker" || name == "words") continue;
    segment.set(name, name == "id" ? Json(std::stoi(value.as_string())) : value);
  }
  return segment;
}

// Put together, the events are the reply that is not streamed.
TEST_F(TranscriptionStreams, VerboseEventsAreTheWholeReply) {
  const std::string file = wav(7, 70);
  const std::pair<std::string, std::string> words = {"timestamp_granularities[]", "word"};
  for (const Fields& asked : {Fields{}, Fields{words}, Fields{words, {"timestamp_granularities[]", "segment"}},
                              Fields{{"word_timestamps", "true"}, {"vad_filter", "true"}}}) {
    SCOPED_TRACE(asked.empty() ? "segments" : asked.back().second);
    Fields fields = asked;
    fields.insert(fields.end(), {{"file", file}, {"response_format", "verbose_json"}, {"temperature", "0.2"}});
    const Json whole = post(context(), fields)->json();
    fields.insert(fields.end(), {{"stream", "true"}, {"stream_options[include_progress]", "true"}});
    const std::vector<std::string> events = events_of(post(context(), fields)->answer());
    std::string deltas;
    Json segments = Json::array(), all_words = Json::array(), done;
    double last_progress = 0;
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const Json event = parse_json(events[i]);
      const std::string& type = text(event, "type");
      if (type == "transcript.text.delta") deltas += text(event, "delta");
      if (type == "transept.progress") {
        EXPECT_GE(number(event, "seconds_done"), last_progress);
        EXPECT_EQ(number(event, "seconds_all"), 70);
        last_progress = number(event, "seconds_done");
      }
      if (type == "transcript.text.done") done = event;
      if (type != "transcript.text.segment") continue;
      segments.push_back(segment_of(event));
      EXPECT_EQ(event.find("words") != nullptr, !asked.empty());
      if (asked.empty()) continue;
      for (const Json& word : list(event, "words")) all_words.push_back(word);
    }
    EXPECT_EQ(last_progress, 70);
    EXPECT_EQ(deltas, text(whole, "text"));
    EXPECT_GT(segments.as_array().size(), 2u);
    EXPECT_EQ(text(member(done, "usage"), "type"), "tokens");  // as of every stream
    for (const auto& [name, value] : whole.as_object()) {
      if (name == "usage") continue;
      const Json& told = name == "segments" ? segments : name == "words" ? all_words : member(done, name);
      EXPECT_EQ(told.dump(), value.dump()) << name;
    }
  }
}

// The segments of a window, with their words, before the window after it is decoded.
TEST_F(TranscriptionStreams, SegmentsWithWordsComeWhenTheirWindowIsDone) {
  int64_t runs_at_first = 0;
  std::shared_ptr<Client> client;
  client = std::make_shared<Client>([&] {
    const std::string& sent = client->answer().body;
    if (runs_at_first == 0 && sent.find("transcript.text.segment") != std::string::npos) {
      runs_at_first = house_->engine().snapshot().executor.num_encoder_runs;
    }
  });
  post(context(),
       {{"file", wav(7, 200)},
        {"temperature", "0.2"},
        {"language", "en"},
        {"response_format", "verbose_json"},
        {"word_timestamps", "true"},
        {"stream", "true"}},
       false, client);
  EXPECT_GT(runs_at_first, 0);
  EXPECT_GT(house_->engine().snapshot().executor.num_encoder_runs, runs_at_first + 2);
}

TEST_F(TranscriptionStreams, DeltasComeWhileItRuns) {
  int64_t runs_at_first = 0;
  const auto watching = std::make_shared<Client>([&] {
    if (runs_at_first == 0) runs_at_first = house_->engine().snapshot().executor.num_encoder_runs;
  });
  post(context(), {{"file", wav(7, 200)}, {"temperature", "0.2"}, {"language", "en"}, {"stream", "true"}}, false,
       watching);
  EXPECT_GT(house_->engine().snapshot().executor.num_encoder_runs, runs_at_first + 2);
}

TEST_F(TranscriptionStreams, SilenceIsAnEmptyText) {
  const auto client = post(
      context(), {{"file", make_wav({}, std::string(64000, '\0'))}, {"stream", "true"}, {"chunking_strategy", "auto"}});
  const Told result = told(client->answer());
  EXPECT_EQ(result.num_deltas, 0u);
  EXPECT_EQ(text(result.last, "text"), "");
}

TEST_F(TranscriptionStreams, ErrorsBeforeTheFirstEventArePlainAnswers) {
  for (const Fields& fields : {Fields{{"file", "x"}, {"stream", "true"}},
                               Fields{{"file", wav(3, 2)}, {"stream", "true"}, {"prompt", "<|endoftext|>"}}}) {
    const auto client = post(context(), fields);
    EXPECT_FALSE(client->was_streamed());
    EXPECT_EQ(client->answer().status, 400);
  }
}

// The status is out already: the error is an event, in OpenAI's form, and the stream is complete.
TEST_F(TranscriptionStreams, AnErrorInMidStreamIsAnEvent) {
  bool stopped = false;
  const auto client = std::make_shared<Client>([&] {
    if (!std::exchange(stopped, true)) house_->engine().stop();
  });
  post(context(), {{"file", wav(7, 200)}, {"temperature", "0.2"}, {"language", "en"}, {"stream", "true"}}, false,
       client);
  ASSERT_TRUE(client->was_streamed() && client->has_ended());
  const Told result = told(client->answer());
  EXPECT_GE(result.num_deltas, 1u);
  EXPECT_EQ(text(member(result.last, "error"), "code"), "unavailable");
}

TEST_F(TranscriptionStreams, AClientThatGoesEndsItWithinAStep) {
  for (const bool batched : {false, true}) {
    SCOPED_TRACE(batched);
    int num_writes = 0;
    int64_t runs_at_first = 0;
    std::shared_ptr<Client> client;
    client = std::make_shared<Client>([&] {
      ++num_writes;
      runs_at_first = house_->engine().snapshot().executor.num_encoder_runs;
      client->go();
    });
    Fields fields = {{"file", wav(7, 600)}, {"temperature", "0.2"}, {"language", "en"}, {"stream", "true"}};
    if (batched) fields.emplace_back("chunking_strategy", "auto");
    post(context(), fields, false, client);
    EXPECT_EQ(num_writes, 1);  // and none later
    EXPECT_FALSE(client->has_ended());
    // Those that were on their way: of a file, one window at a time, or eight. (A snapshot may be a step old.)
    EXPECT_LE(house_->engine().snapshot().executor.num_encoder_runs - runs_at_first, batched ? 16 : 2);
    expect_idle();
  }
}

TEST_F(TranscriptionStreams, AClientThatGoesMeanwhileIsNotAnswered) {
  const auto client = std::make_shared<Client>();
  std::thread leaving([&] {
    const auto has_begun = [&] { return house_->engine().snapshot().executor.num_encoder_runs > 0; };
    for (int i = 0; i < 10000 && !has_begun(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    client->go();
  });
  post(context(), {{"file", wav(7, 600)}, {"language", "en"}}, false, client);
  leaving.join();
  EXPECT_FALSE(client->has_answer());
  EXPECT_LT(house_->engine().snapshot().executor.num_encoder_runs, 15);
  EXPECT_THAT(context().metrics.text(house_->engine().snapshot(), {}),
              ::testing::ContainsRegex(R"(request_success_total\{[^}]*finished_reason="abort"[^}]*\} 1)"));
  expect_idle();
}

TEST_F(TranscriptionStreams, AClientThatHasGoneCostsNothing) {
  const auto client = std::make_shared<Client>();
  client->go();
  post(context(), {{"file", wav(7, 60)}}, false, client);
  EXPECT_FALSE(client->has_answer());
  EXPECT_EQ(house_->engine().snapshot().executor.num_encoder_runs, 0);
}

TEST_F(TranscriptionStreams, DeadlinesCountFromTheArrival) {
  ServerOptions options = default_server_options();
  options.request_timeout = std::chrono::hours(1);
  house_ = speech_house(speech_model(), options);
  for (const bool stream : {false, true}) {
    const auto client = std::make_shared<Client>();
    const Fields fields = {{"file", wav(3, 2)}, {"language", "en"}, {"stream", stream ? "true" : "false"}};
    const auto call = make_call(context(), form_body(fields), client);
    call->arrival -= std::chrono::hours(2);
    handle_transcription(context(), call, false);
    EXPECT_FALSE(client->was_streamed());
    EXPECT_EQ(refusal_of(client->answer()).status, 504);
    EXPECT_EQ(house_->engine().snapshot().executor.num_encoder_runs, stream ? 1 : 0);  // by the post below
    EXPECT_EQ(post(context(), fields)->answer().status, 200);
  }
  expect_idle();
}

// ---- Moonshine: samples instead of frames, no timestamps, no spaces before a segment's first word

TEST(MoonshineTranscriptions, AreStreamedAsTheyAreAnswered) {
  const MoonshineModel model;
  const auto house = speech_house(model.path());
  const std::string file = wav(11, 100, {{20 * 16000, 26 * 16000}, {60 * 16000, 65 * 16000}});
  const std::string whole = text(post(house->context(), {{"file", file}, {"language", "English"}})->json(), "text");
  const Told result = told(post(house->context(), {{"file", file}, {"stream", "true"}})->answer());
  EXPECT_GT(result.num_deltas, 1u);
  EXPECT_EQ(result.deltas, whole);
  EXPECT_EQ(text(result.last, "text"), whole);
  EXPECT_EQ(result.last.find("usage"), nullptr);
  for (const auto& [field, value] : Fields{{"language", "de"}, {"prompt", "A1"}}) {
    EXPECT_EQ(refusal_of(post(house->context(), {{"file", file}, {field, value}})->answer()).param, field);
  }
}

// ---- Text

// Wherever segments are cut: the pieces are what decoding all tokens at once gives, without the spaces around it.
TEST(TranscriptTexts, PiecesAreTheWhole) {
  const auto house = speech_house();
  const SpeechModel& speech = *house->context().speech;
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> ids;
    TranscriptText pieces(speech);
    std::string joined;
    for (int i = 0; i < 6; ++i) {
      Segment segment;
      segment.tokens.push_back(*speech.tokens->timestamp_begin() + i);
      const auto count = random() % 5;
      for (size_t k = 0; k < count; ++k) {
        segment.tokens.push_back(static_cast<int32_t>(random() % (round % 2 == 0 ? 256 : 400)));  // bytes, and words
        ids.push_back(segment.tokens.back());
      }
      joined += pieces.add(segment);
      EXPECT_EQ(joined, strip_space(joined));
    }
    joined += pieces.finish();
    EXPECT_EQ(joined, pieces.text());
    EXPECT_EQ(joined, strip_space(speech.tokenizer->decode(ids, false)));
  }
}

}  // namespace
}  // namespace transept::testing
