// Completions and chats about audio in which nobody speaks: an empty text without an encode, and how they are told
// otherwise.
#include "server/silent_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "multimodal/multimodal_testing.h"
#include "server/chat.h"
#include "server/completions.h"
#include "server/transcription_testing.h"

namespace transept::testing {
namespace {

using Handler = void (*)(const ServerContext&, const ApiCallPtr&);

std::string silence(double seconds) {
  return base64_of(make_wav({}, std::string(static_cast<size_t>(seconds * 32000), '\0')));
}
std::string sound() { return base64_of(wav(3, 2)); }

std::string media(const std::string& audio) {
  return str_cat(R"({"multi_modal_data": {"audio": {"base64": ")", audio, R"("}}})");
}
std::string completion(const std::string& audio, std::string_view fields = "") {
  return str_cat(R"({"prompt": )", media(audio), fields, "}");
}
std::string chat(const std::string& audio, std::string_view fields = "") {
  return str_cat(R"({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": ")",
                 audio, R"(", "format": "wav"}}]}])", fields, "}");
}

std::shared_ptr<Client> ask(ServerHouse& house, Handler handler, const std::string& body) {
  auto client = std::make_shared<Client>();
  const ApiCallPtr call = make_call(house.context(), body, client);
  call->http.headers = {{"Content-Type", "application/json"}};
  handler(house.context(), call);
  for (int i = 0; i < 4000 && !client->has_ended(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(client->answer().status, 200) << client->answer().body;
  return client;
}

std::unique_ptr<ServerHouse> house_of(const std::string& model, bool skips = true) {
  ServerOptions options = default_server_options();
  options.skip_silence = skips;
  return speech_house(model, options);
}

int64_t num_encoder_runs(ServerHouse& house) { return house.engine().snapshot().executor.num_encoder_runs; }

std::vector<std::string> texts(const Json& answer) {
  std::vector<std::string> out;
  for (const Json& choice : member(answer, "choices").as_array()) {
    const Json* message = choice.find("message");
    out.push_back(message != nullptr ? text(*message, "content") : text(choice, "text"));
    EXPECT_EQ(text(choice, "finish_reason"), out.back().empty() ? "stop" : text(choice, "finish_reason"));
  }
  return out;
}

TEST(SilentAnswers, AreEmptyAndEncodeNothing) {
  const MoonshineModel moonshine;
  for (const std::string& model : {std::string(speech_model()), moonshine.path()}) {
    const auto house = house_of(model);
    for (const double seconds : {0.3, 5.0}) {
      const Json whole = ask(*house, &handle_completion, completion(silence(seconds)))->json();
      EXPECT_EQ(texts(whole), std::vector<std::string>{""});
      const Json& usage = member(whole, "usage");
      EXPECT_EQ(member(usage, "completion_tokens").as_int(), 0);
      EXPECT_GT(member(usage, "prompt_tokens").as_int(), 0) << "the decoder's prompt";
      EXPECT_NEAR(member(member(usage, "prompt_tokens_details"), "audio_seconds").as_double(), seconds, 1e-6);
      EXPECT_EQ(texts(ask(*house, &handle_chat, chat(silence(seconds)))->json()), std::vector<std::string>{""});
      EXPECT_EQ(
          texts(ask(*house, &handle_completion, completion(silence(seconds), R"(, "n": 2, "logprobs": 1)"))->json()),
          (std::vector<std::string>{"", ""}));
      const bool has_alignments = model != moonshine.path();
      const std::string asked = str_cat(R"(, "logprobs": 1, "return_alignments": )", has_alignments ? "true" : "false");
      const Json told = ask(*house, &handle_completion, completion(silence(seconds), asked))->json();
      const Json& choice = member(told, "choices").as_array()[0];
      EXPECT_TRUE(member(member(choice, "logprobs"), "tokens").as_array().empty());
      if (has_alignments) {
        EXPECT_TRUE(member(choice, "alignments").as_array().empty());
      }
    }
    EXPECT_EQ(num_encoder_runs(*house), 0);
  }
}

TEST(SilentAnswers, AreStreamedAsAnyOther) {
  const auto house = house_of(speech_model());
  const std::string fields = R"(, "stream": true, "stream_options": {"include_usage": true})";
  const auto heard = ask(*house, &handle_chat, chat(silence(2), fields));
  const std::vector<std::string> events = events_of(heard->answer());
  ASSERT_EQ(events.size(), 3u) << "a piece, its usage, the end";
  const Json piece = parse_json(events[0]), last = parse_json(events[1]);
  const Json& choice = member(piece, "choices").as_array()[0];
  EXPECT_EQ(text(member(choice, "delta"), "role"), "assistant");
  EXPECT_EQ(text(choice, "finish_reason"), "stop");
  EXPECT_EQ(member(member(last, "usage"), "completion_tokens").as_int(), 0);
  EXPECT_EQ(events[2], "[DONE]");
}

TEST(SilentAnswers, StandBetweenThoseOfTheEngine) {
  const auto house = house_of(speech_model());
  const std::string alone = texts(ask(*house, &handle_completion, completion(sound()))->json()).front();
  ASSERT_FALSE(alone.empty());
  const std::string body =
      str_cat(R"({"prompt": [)", media(silence(2)), ",", media(sound()), ",", media(silence(0.3)), "]}");
  EXPECT_EQ(texts(ask(*house, &handle_completion, body)->json()), (std::vector<std::string>{"", alone, ""}));
}

TEST(SilentAnswers, AreTheModelsWhereTheServerOrTheRequestSaysSo) {
  const auto open = house_of(speech_model(), false), house = house_of(speech_model());
  const std::string heard = texts(ask(*open, &handle_completion, completion(silence(5)))->json()).front();
  EXPECT_FALSE(heard.empty()) << "the test cannot tell them apart";
  EXPECT_EQ(texts(ask(*house, &handle_completion, completion(silence(5), R"(, "vad_filter": false)"))->json()).front(),
            heard);
  EXPECT_EQ(texts(ask(*house, &handle_chat, chat(silence(5), R"(, "vad_filter": false)"))->json()).front(), heard);
  int64_t runs = num_encoder_runs(*house);
  for (const char* fields :
       {R"(, "min_tokens": 1)", R"(, "ignore_eos": true, "max_tokens": 2)", R"(, "prompt_logprobs": 0)"}) {
    ask(*house, &handle_completion, completion(silence(5), fields));
    EXPECT_EQ(num_encoder_runs(*house), ++runs) << fields;
  }
  EXPECT_EQ(texts(ask(*house, &handle_completion, completion(silence(5), R"(, "vad_filter": true)"))->json()).front(),
            "");
  EXPECT_EQ(num_encoder_runs(*house), runs);
}

}  // namespace
}  // namespace transept::testing
