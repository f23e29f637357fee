// A proxy that holds requests before decode instances: clients get the bytes of one server, whatever ends in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "disagg/instance_calls.h"
#include "disagg/local_broker.h"
#include "multimodal/multimodal_testing.h"
#include "proxy/proxy.h"
#include "server/fleet_testing.h"
#include "server/transcription_testing.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class HeldFleetTest : public FleetTest {
 protected:
  using Hold = ProxyService::Hold;

  void start_proxy(Hold hold = Hold::kAlways) {
    Proxy::Options options;
    options.http.port = 0;
    options.service.hold = hold;
    options.look_for_instances = milliseconds(20);
    options.held.secret = proxy_secret_;
    options.held.look = milliseconds(5);
    proxy_ = Proxy::start(options, LocalBroker::connect(folder_.path() + "/broker").value()).value();
    wait_for([&] { return proxy_->pool().num_ready(std::chrono::steady_clock::now()) > 0; });
  }
  ~HeldFleetTest() override {
    if (proxy_ != nullptr) proxy_->stop();
  }
  HttpClient proxy_client() const { return HttpClient("127.0.0.1", proxy_->http().port(), {}); }
  ProxyCounts counts() const { return proxy_->service().counts(); }
  template <typename Condition>
  static bool wait_for(Condition condition) {
    for (int i = 0; i < 4000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  int64_t num_encoder_runs() const {
    int64_t count = 0;
    for (const auto& encoder : encoders_) count += encoder->snapshot().executor.num_encoder_runs;
    return count;
  }

  std::shared_ptr<const EcSecret> proxy_secret_ = secret_;
  std::unique_ptr<Proxy> proxy_;
};

// A body, and the path that it goes to. Some are errors, some ask for streams.
struct Ask {
  std::string path, body;
};

std::string drawn_word(std::mt19937_64& random) {
  std::string word;
  for (uint64_t i = random() % 9; i < 9; ++i) word += static_cast<char>('a' + random() % 26);
  return word;
}

std::string drawn_prompt(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0: return str_cat("[", 3 + random() % 40, ", ", 3 + random() % 40, ", 2]");
    case 1: return str_cat(R"({"encoder_prompt": ")", drawn_word(random), R"(", "decoder_prompt": "le"})");
    case 2: return str_cat(R"({"prompt": ")", drawn_word(random), R"("})");
    default: return str_cat("\"", drawn_word(random), " ", drawn_word(random), "\"");
  }
}

std::string drawn_field(std::mt19937_64& random) {
  static constexpr const char* kFields[] = {R"(, "temperature": 0.9, "seed": 7)",
                                            R"(, "n": 2, "temperature": 1, "seed": 1)",
                                            R"(, "num_beams": 3)",
                                            R"(, "logprobs": 2)",
                                            R"(, "encoder_no_repeat_ngram_size": 2)",
                                            R"(, "truncate_prompt_tokens": 2)",
                                            R"(, "add_special_tokens": false)",
                                            R"(, "echo": true)",
                                            R"(, "unknown": 3)",
                                            R"(, "stream": true)",
                                            R"(, "stream": true, "stream_options": {"include_usage": true})",
                                            R"(, "temperature": "warm")",
                                            R"(, "max_tokens": 100000)",
                                            R"(, "encoded_inputs": [])",
                                            R"(, "source_lang": "xx")"};
  return random() % 3 == 0 ? "" : kFields[random() % std::size(kFields)];
}

Ask drawn_ask(std::mt19937_64& random) {
  std::string prompts = drawn_prompt(random);
  if (random() % 2 == 0) {
    std::string list = prompts;
    for (uint64_t i = random() % 4; i > 0; --i) list += ", " + drawn_prompt(random);
    prompts = "[" + list + "]";
  }
  const std::string more = drawn_field(random);
  switch (random() % 9) {
    case 0: return {"/v1/score", str_cat(R"({"decoder_prompt": "le mot", "prompt": )", prompts, more, "}")};
    case 1: return {"/v1/translate", str_cat(R"({"max_tokens": 8, "text": )", prompts, more, "}")};
    case 2: return {"/v1/completions", R"({"prompt": [99999999], "max_tokens": 3})"};
    case 3: return {"/v1/completions", str_cat(R"({"prompt": )", prompts)};
    case 4: {  // is not held
      const std::string message = str_cat(R"({"role": "user", "content": ")", drawn_word(random), "\"}");
      return {"/v1/chat/completions", str_cat(R"({"max_tokens": 8, "messages": [)", message, "]", more, "}")};
    }
    default: return {"/v1/completions", str_cat(R"({"max_tokens": 8, "prompt": )", prompts, more, "}")};
  }
}

// Of a stream of completions: what each choice comes to. How it is cut into pieces, and whose come first, differs from
// one time to the next.
std::string shown_stream(std::string_view body) {
  std::map<int64_t, std::pair<std::string, std::string>> choices;  // the text, and how it ended
  std::string rest;
  while (!body.empty()) {
    const size_t end = body.find("\n\n");
    const std::string_view line = body.substr(0, end);
    body = end == std::string_view::npos ? std::string_view() : body.substr(end + 2);
    const auto event = Json::parse(line.substr(std::min<size_t>(line.size(), 6)));
    const Json* list = event.ok() && event->is_object() ? event->find("choices") : nullptr;
    if (list == nullptr || list->as_array().empty()) {
      const Json* usage = event.ok() && event->is_object() ? event->find("usage") : nullptr;
      rest += usage == nullptr ? std::string(line) : usage->dump();
      continue;
    }
    for (const Json& choice : list->as_array()) {
      auto& [text, finish] = choices[at(choice, "index").as_int()];
      text += (choice.find("delta") == nullptr ? at(choice, "text") : at(choice, "delta", "content")).as_string();
      if (!at(choice, "finish_reason").is_null()) finish += at(choice, "finish_reason").dump();
    }
  }
  for (const auto& [index, choice] : choices) rest += str_cat("\n", index, ": ", choice.first, " ", choice.second);
  return rest;
}

// Of an answer, without what differs from one time to the next.
std::string shown(const StatusOr<HttpClient::Reply>& reply) {
  if (!reply.ok()) return error_message(reply.status());
  const std::string& type = *find_header(reply->headers, "Content-Type");
  const bool is_stream = type.starts_with("text/event-stream");
  std::string body = is_stream ? shown_stream(reply->body) : reply->body;
  // Of equal inputs at the same time one waits for the other, or is encoded itself after it.
  for (size_t at = body.find("\"cached_tokens\": "); at != std::string::npos;
       at = body.find("\"cached_tokens\": ", at + 1)) {
    body.erase(at, body.find_first_of(",}", at) - at);
  }
  constexpr std::string_view kMedia = ", \"cached_media_tokens\": ";  // is there only if there are some
  for (size_t at = body.find(kMedia); at != std::string::npos; at = body.find(kMedia)) {
    body.erase(at, body.find_first_of(",}", at + kMedia.size()) - at);
  }
  for (size_t at = body.find("\"created\": "); at != std::string::npos; at = body.find("\"created\": ", at + 1)) {
    body.erase(at, body.find(',', at) - at);
  }
  return str_cat(reply->status, " ", type, " ", body);
}

TEST_F(HeldFleetTest, AnswersAreTheBytesOfOneServer) {
  std::mt19937_64 random(20);
  std::vector<Ask> asks;
  asks.reserve(300);
  for (int i = 0; i < 300; ++i) asks.push_back(drawn_ask(random));
  // Under the same ids: they are in answers.
  const auto answers_of = [&](const auto& make_client) {
    std::vector<std::string> answers(asks.size());
    std::vector<std::thread> threads;
    for (size_t first = 0; first < 6; ++first) {
      threads.emplace_back([&, first] {
        HttpClient client = make_client();
        for (size_t i = first; i < asks.size(); i += 6) {
          answers[i] = shown(
              client.post(asks[i].path, "application/json", asks[i].body, {{"X-Request-Id", str_cat("ask-", i)}}));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return answers;
  };
  std::vector<std::string> whole;
  {
    ServedModel model;
    model.load();
    whole = answers_of([&] { return model.client(); });
  }
  EXPECT_GT(std::ranges::count_if(whole, [](const std::string& one) { return one.starts_with("200"); }), 100);
  EXPECT_GT(std::ranges::count_if(whole, [](const std::string& one) { return one.starts_with("400"); }), 30);
  start(bundled_model(), 2);
  start_proxy();
  const std::vector<std::string> held = answers_of([&] { return proxy_client(); });
  for (size_t i = 0; i < asks.size(); ++i) EXPECT_EQ(held[i], whole[i]) << asks[i].path << " " << asks[i].body;
  EXPECT_GT(counts().num_held, 80);
  EXPECT_EQ(counts().num_failed, 0);
  EXPECT_EQ(decoder_->snapshot().executor.num_encoder_runs, 0);
  EXPECT_EQ(proxy_->held()->num_held(), 0u);
}

TEST_F(HeldFleetTest, InputsOfARequestAreSpreadOverEncodeInstances) {
  start(bundled_model(), 2);
  start_proxy(Hold::kSeveral);
  EXPECT_EQ(proxy_client().post("/v1/completions", "application/json", completion(0))->status, 200);
  EXPECT_EQ(counts().num_held, 0) << "one input: nothing is to be spread";
  HttpClient client = proxy_client();
  for (int i = 0; i < 20; ++i) {
    std::string list;
    for (int k = 0; k < 16; ++k) list += str_cat(k == 0 ? "" : ", ", "\"word ", i, " ", k, "\"");
    EXPECT_EQ(client.post("/v1/completions", "application/json", str_cat("{\"prompt\": [", list, "]}"))->status, 200);
  }
  EXPECT_EQ(counts().num_held, 20);
  EXPECT_EQ(counts().num_let_go, 0);
  EXPECT_GT(encoders_[0]->snapshot().executor.num_encoder_runs, 0);
  EXPECT_GT(encoders_[1]->snapshot().executor.num_encoder_runs, 0);
}

TEST_F(HeldFleetTest, EncodedInputsAreBelievedOfInstancesAlone) {
  start();
  const std::string body = R"({"prompt": "a", "encoded_inputs": [{"request_id": "r", "input_id": 0, "digest": ")" +
                           std::string(64, 'a') + R"(", "num_positions": 2, "place": {"offset": 0, "length": 2}}]})";
  const auto post = [&](HttpClient client, const HttpHeaders& headers, const std::string& text) {
    return client.post("/v1/completions", "application/json", text, headers).value();
  };
  const auto proven = [&](const std::string& text) {
    return HttpHeaders{{std::string(kInstanceCodeHeader), instance_code(*secret_, "POST", "/v1/completions", text)}};
  };
  for (const HttpHeaders& headers :
       {HttpHeaders(), HttpHeaders{{std::string(kInstanceCodeHeader), "none"}}, proven(body + " ")}) {
    const auto reply = post(decoder_->client(), headers, body);
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("encoded_inputs is for a proxy"));
    EXPECT_THAT(reply.body, HasSubstr("\"param\": \"encoded_inputs\""));
  }
  // Its rows are not here: the prompt is encoded as if nothing had been said.
  EXPECT_EQ(post(decoder_->client(), proven(body), body).status, 200);
  for (const char* bad : {R"({"prompt": "a", "encoded_inputs": 3})", R"({"prompt": "a", "encoded_inputs": []})",
                          R"({"prompt": "a", "encoded_inputs": [{}]})"}) {
    const auto reply = post(decoder_->client(), proven(bad), bad);
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_THAT(reply.body, HasSubstr("encoded_inputs"));
  }
  // Through a proxy it is the client's all the same.
  start_proxy();
  const auto reply = post(proxy_client(), proven(body), body);
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("encoded_inputs is for a proxy"));
  EXPECT_EQ(counts().num_held, 0);
}

// The rows that a request finds here are those that the proxy had sent; none is asked for.
TEST_F(HeldFleetTest, AHeldRequestAsksForNothing) {
  start();
  start_proxy();
  HttpClient client = proxy_client();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(client.post("/v1/completions", "application/json", completion(i))->status, 200);
  }
  EXPECT_EQ(counts().num_held, 10);
  EXPECT_EQ(num_encoder_runs(), 10);
  EXPECT_EQ(decoder_->server().context()->instance->asker()->num_asked(), 0u);
}

TEST_F(HeldFleetTest, AProxyOfAnotherSecretHoldsNothing) {
  proxy_secret_ = std::make_shared<const EcSecret>(std::as_bytes(std::span("a secret of another fleet", 25)));
  start();
  start_proxy();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(proxy_client().post("/v1/completions", "application/json", completion(i))->status, 200);
  }
  EXPECT_EQ(counts().num_held, 0);
  EXPECT_EQ(counts().num_let_go, 1) << "it is not tried again at once";
}

TEST_F(HeldFleetTest, WithoutAnEncodeInstanceTheDecodeInstanceAnswers) {
  add_decoder();
  start_proxy();
  const auto reply = proxy_client().post("/v1/completions", "application/json", completion(0));
  EXPECT_EQ(reply->status, 503);
  EXPECT_THAT(reply->body, HasSubstr("no encode instance is there"));
}

TEST_F(HeldFleetTest, AnEncodeInstanceThatEndsLeavesItsWorkToOthers) {
  start(bundled_model(), 2);
  start_proxy();
  const std::vector<std::string> before = answers([&] { return decoder_->client(); }, 30);
  std::thread ending([&] {
    std::this_thread::sleep_for(milliseconds(20));
    encoders_[0]->server().stop();
  });
  for (int round = 0; round < 3; ++round) EXPECT_EQ(answers([&] { return proxy_client(); }, 30), before);
  ending.join();
}

TEST_F(HeldFleetTest, ADecodeInstanceThatEndsLeavesItsRequestsToOthers) {
  start(bundled_model(), 1);
  std::unique_ptr<Member> other = decoder("p1");
  start_proxy();
  ASSERT_TRUE(wait_for([&] { return proxy_->pool().num_ready(std::chrono::steady_clock::now()) == 2; }));
  const std::vector<std::string> before = answers([&] { return decoder_->client(); }, 30);
  const int64_t num_encoded = num_encoder_runs();
  std::thread ending([&] {
    std::this_thread::sleep_for(milliseconds(20));
    decoder_->server().stop();
  });
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::string> held = answers([&] { return proxy_client(); }, 30);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i] == before[i]) continue;
      // It had begun to answer, or was asked for the second time in vain.
      EXPECT_THAT(held[i], ::testing::AnyOf(HasSubstr("broke off"), HasSubstr("shutting down"), ::testing::IsEmpty()));
    }
  }
  EXPECT_EQ(answers([&] { return proxy_client(); }, 30), before);
  ending.join();
  EXPECT_EQ(num_encoder_runs(), num_encoded) << "rows are sent again without an encode";
}

TEST_F(HeldFleetTest, AClientThatGoesLeavesNothing) {
  start();
  start_proxy();
  encoders_[0]->server().stop();  // its record is gone with it; what is offered waits
  {
    HttpClient impatient("127.0.0.1", proxy_->http().port(), {.timeout = milliseconds(200)});
    EXPECT_TRUE(
        absl::IsDeadlineExceeded(impatient.post("/v1/completions", "application/json", completion(0)).status()));
  }
  EXPECT_TRUE(wait_for([&] { return proxy_->held()->num_held() == 0; }));
  EXPECT_TRUE(wait_for([&] { return decoder_->server().context()->instance->broker().num_tickets().value() == 0; }));
}

TEST_F(HeldFleetTest, AudioOfAJsonBodyIsHeldToo) {
  const auto clip = [](uint32_t seed, double length) {
    return str_cat(R"({"multi_modal_data": {"audio": {"base64": ")", base64_of(wav(seed, length)), R"("}}})");
  };
  const std::string body = str_cat(R"({"max_tokens": 6, "prompt": [)", clip(3, 1), ", ", clip(4, 1.5), "]}");
  const auto choices = [&](HttpClient client) {
    const auto reply = client.post("/v1/completions", "application/json", body);
    return reply.ok() && reply->status == 200
               ? at(*Json::parse(reply->body), "choices").dump() + at(*Json::parse(reply->body), "usage").dump()
               : reply->body;
  };
  std::string whole;
  {
    ServedModel model(default_server_options(), speech_model());
    model.load();
    whole = choices(model.client());
  }
  EXPECT_THAT(whole, HasSubstr("audio_seconds"));
  start(speech_model());
  start_proxy();
  EXPECT_EQ(choices(proxy_client()), whole);
  EXPECT_EQ(counts().num_held, 1);
  EXPECT_EQ(num_encoder_runs(), 2);
}

}  // namespace
}  // namespace transept::testing
