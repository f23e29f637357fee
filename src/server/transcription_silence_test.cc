// Audio in which nobody speaks: no text on any path, before a window is encoded; and how the server is told otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/transcription_testing.h"

namespace transept::testing {
namespace {

std::string silence(double seconds) { return make_wav({}, std::string(static_cast<size_t>(seconds * 32000), '\0')); }

std::unique_ptr<ServerHouse> house_of(const std::string& model, bool skips) {
  ServerOptions options = default_server_options();
  options.skip_silence = skips;
  return speech_house(model, options);
}

int64_t num_encoder_runs(ServerHouse& house) { return house.engine().snapshot().executor.num_encoder_runs; }

// Every path, as its fields.
const Fields kPaths[] = {
    {},
    {{"language", "en"}},
    {{"response_format", "text"}},
    {{"response_format", "srt"}},
    {{"response_format", "verbose_json"}},
    {{"response_format", "verbose_json"}, {"timestamp_granularities[]", "word"}},
    {{"response_format", "verbose_json"}, {"word_timestamps", "true"}, {"stream", "true"}},
    {{"stream", "true"}},
    {{"chunking_strategy", "auto"}},
    {{"vad_filter", "true"}, {"stream", "true"}},
    {{"beam_size", "5"}},
    {{"temperature", "0.4"}},
};

void expect_no_text(const Client& client) {
  const HttpResponse& response = client.answer();
  if (client.was_streamed()) {
    const std::vector<std::string> events = events_of(response);
    for (const std::string& event : events) EXPECT_EQ(event.find("delta"), std::string::npos) << event;
    EXPECT_EQ(text(parse_json(events[events.size() - 2]), "text"), "");
    return;
  }
  if (response.content_type != "application/json") {
    EXPECT_TRUE(response.body.empty() || response.body == "\n") << response.body;
    return;
  }
  const Json json = client.json();
  EXPECT_EQ(text(json, "text"), "");
  for (const char* part : {"segments", "words"}) {
    const Json* found = json.find(part);
    EXPECT_TRUE(found == nullptr || found->as_array().empty()) << part;
  }
}

TEST(TranscriptionsOfSilence, AreEmptyOnEveryPathAndEncodeNothing) {
  const auto house = house_of(speech_model(), true);
  for (const double seconds : {0.3, 45.0}) {
    for (const bool translate : {false, true}) {
      for (Fields fields : kPaths) {
        SCOPED_TRACE(fields.empty() ? "plain" : str_cat(fields.front().first, "=", fields.front().second));
        fields.emplace_back("file", silence(seconds));
        const auto client = post(house->context(), fields, translate);
        ASSERT_EQ(client->answer().status, 200) << client->answer().body;
        expect_no_text(*client);
      }
    }
  }
  EXPECT_EQ(num_encoder_runs(*house), 0);
}

TEST(TranscriptionsOfSilence, HaveTheLanguageThatWasGivenAndElseNone) {
  const auto house = house_of(speech_model(), true);
  const std::pair<std::string, std::string> verbose = {"response_format", "verbose_json"};
  const auto language = [&](Fields fields) {
    fields.insert(fields.end(), {verbose, {"file", silence(5)}});
    return text(post(house->context(), fields)->json(), "language");
  };
  EXPECT_EQ(language({}), "");
  EXPECT_EQ(language({{"language", "de"}}), "german");
}

TEST(TranscriptionsOfSilence, AreDecodedWhereTheServerOrTheRequestSaysSo) {
  const Fields fields = {{"file", silence(5)}, {"language", "en"}};
  const auto open = house_of(speech_model(), false);
  const std::string heard = text(post(open->context(), fields)->json(), "text");
  EXPECT_GT(num_encoder_runs(*open), 0);
  EXPECT_FALSE(heard.empty()) << "the test cannot tell them apart";
  const auto house = house_of(speech_model(), true);
  Fields asked = fields;
  asked.emplace_back("vad_filter", "false");
  EXPECT_EQ(text(post(house->context(), asked)->json(), "text"), heard);
  EXPECT_EQ(text(post(house->context(), fields)->json(), "text"), "");
}

TEST(TranscriptionsOfSilence, BySamplesAreEmptyToo) {
  const MoonshineModel model;
  const auto house = house_of(model.path(), true);
  for (const double seconds : {0.3, 45.0}) {
    for (const Fields& path : {Fields{}, Fields{{"stream", "true"}}, Fields{{"response_format", "verbose_json"}}}) {
      Fields fields = path;
      fields.emplace_back("file", silence(seconds));
      const auto client = post(house->context(), fields);
      const std::string body = client->was_streamed() ? events_of(client->answer()).front() : client->answer().body;
      EXPECT_EQ(text(parse_json(body), "text"), "");
    }
  }
  EXPECT_EQ(num_encoder_runs(*house), 0);
  const auto open = house_of(model.path(), false);
  post(open->context(), {{"file", silence(0.3)}});
  EXPECT_EQ(num_encoder_runs(*open), 1);
}

}  // namespace
}  // namespace transept::testing
