// What the server says of itself, with a model and an engine behind it.
#include "server/info_routes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/folder_testing.h"
#include "base/source_dir_testing.h"
#include "base/strings.h"
#include "rank/gated_executor_testing.h"
#include "server/server_testing.h"

namespace transept {
namespace {

using testing::ServerHouse;

Json body_of(const HttpResponse& response) {
  EXPECT_EQ(response.content_type, "application/json");
  StatusOr<Json> body = Json::parse(response.body);
  EXPECT_TRUE(body.ok()) << response.body;
  return body.ok() ? *body : Json::object();
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.as_object()) keys.insert(key);
  return keys;
}

void expect_error(const HttpResponse& response, int status, std::string_view type) {
  EXPECT_EQ(response.status, status);
  const Json body = body_of(response);
  const Json* error = body.find("error");
  ASSERT_NE(error, nullptr) << response.body;
  EXPECT_EQ(keys_of(*error), (std::set<std::string>{"code", "message", "param", "type"}));
  EXPECT_EQ(error->find("type")->as_string(), type);
}

TEST(InfoRoutes, EveryServedNameIsAModel) {
  ServerOptions options = testing::default_server_options();
  options.served_model_names = {"first", "org/second"};
  const ServerHouse house(options);
  const Json body = body_of(get_models(house.context()));
  EXPECT_EQ(body.find("object")->as_string(), "list");
  const Json::Array& data = body.find("data")->as_array();
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0].find("id")->as_string(), "first");
  EXPECT_EQ(data[1].find("id")->as_string(), "org/second");
  EXPECT_EQ(data[1].find("object")->as_string(), "model");
  EXPECT_EQ(data[1].find("owned_by")->as_string(), "transept");
  EXPECT_EQ(data[1].find("created")->as_int(), ServerHouse::kStartTime);
  EXPECT_GT(data[1].find("max_model_len")->as_int(), 0);
  EXPECT_EQ(data[1].find("transept")->find("task")->as_string(), "text");
  EXPECT_FALSE(data[1].find("transept")->find("has_timestamps")->as_bool());

  const HttpResponse one = get_model(house.context(), "org/second");
  EXPECT_EQ(one.status, 200);
  EXPECT_EQ(body_of(one).dump(), data[1].dump()) << "the list and the model say the same";
}

TEST(InfoRoutes, AnUnknownModelIs404AndNamesTheParameter) {
  const ServerHouse house;
  for (const std::string_view name : {"", "G2P", "g2p ", "../g2p"}) {
    const HttpResponse response = get_model(house.context(), name);
    expect_error(response, 404, "invalid_request_error");
    EXPECT_EQ(body_of(response).find("error")->find("param")->as_string(), "model");
  }
}

TEST(InfoRoutes, ASpeechModelSaysItsLanguagesAndTimes) {
  const ServerHouse house(testing::default_server_options(), testing::speech_model());
  ASSERT_NE(house.context().speech, nullptr);
  const Json body = body_of(get_models(house.context()));
  const Json& abilities = *body.find("data")->as_array()[0].find("transept");
  EXPECT_EQ(abilities.find("task")->as_string(), "transcription");
  EXPECT_TRUE(abilities.find("has_timestamps")->as_bool());
  EXPECT_TRUE(abilities.find("has_word_timestamps")->as_bool());
  const Json::Array& languages = abilities.find("languages")->as_array();
  ASSERT_EQ(languages.size(), house.context().speech->tokens->languages.size());
  ASSERT_GT(languages.size(), 1u);
  EXPECT_EQ(languages[0].as_string(), house.context().speech->tokens->languages[0].code);
}

// What a model of tests/models says of itself; with a tokenizer of 40 tokens if it is given one.
Json abilities_of(std::string_view model, bool with_tokenizer = false, std::optional<InstanceRole> role = {}) {
  const testing::TestFolder folder;
  std::filesystem::copy(str_cat(source_dir(), "/tests/models/", model), folder.path(),
                        std::filesystem::copy_options::recursive);
  if (with_tokenizer) {
    std::string vocabulary = R"("<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3)";
    for (int i = 4; i < 40; ++i) vocabulary += str_cat(", \"t", i, "\": ", i);
    folder.write("tokenizer.json", str_cat(R"({"version": "1.0", "added_tokens": [], "model": {"type": "BPE",)",
                                           R"( "unk_token": "<unk>", "merges": [], "vocab": {)", vocabulary, "}}}"));
  }
  ServerOptions options = testing::default_server_options();
  options.role = role;
  const ServerHouse house(options, folder.path());
  return *body_of(get_models(house.context())).find("data")->as_array()[0].find("transept");
}

// Clients that know only `task` take a model of pictures for one of text, whose routes it has.
TEST(InfoRoutes, AModelSaysWhatItReads) {
  const auto expect = [](std::string_view model, std::string_view task, std::string_view modalities) {
    SCOPED_TRACE(model);
    const Json abilities = abilities_of(model);
    EXPECT_EQ(abilities.find("task")->as_string(), task);
    EXPECT_EQ(abilities.find("modalities")->dump(), modalities);
    EXPECT_FALSE(abilities.find("has_structured_answers")->as_bool());
  };
  expect("bart-float32", "text", "[]");
  expect("whisper-transcribes", "transcription", R"(["audio"])");
  expect("trocr-float16", "text", R"(["image"])");
}

TEST(InfoRoutes, AnEncodeInstanceOfPicturesDoesNotTranscribe) {
  const auto task = [](std::string_view model) {
    return abilities_of(model, false, InstanceRole::kEncode).find("task")->as_string();
  };
  EXPECT_EQ(task("trocr-float16"), "text");
  EXPECT_EQ(task("whisper-transcribes"), "transcription");
  EXPECT_EQ(task("bart-float32"), "text");
}

TEST(InfoRoutes, AnswersHaveAFormWhereTheModelHasOneAndATokenizerGivesTexts) {
  EXPECT_TRUE(abilities_of("donut-float16", true).find("has_structured_answers")->as_bool());
  EXPECT_FALSE(abilities_of("donut-float16", false).find("has_structured_answers")->as_bool());
  EXPECT_FALSE(abilities_of("trocr-float16", true).find("has_structured_answers")->as_bool());
}

TEST(InfoRoutes, ReadyFollowsTheStateAndLiveDoesNot) {
  ServerHouse house;
  const auto ready = [&] { return get_health_ready(house.context()); };
  EXPECT_EQ(ready().status, 200);
  EXPECT_EQ(ready().body, R"({"status": "ready"})");
  for (const auto& [state, word] :
       {std::pair{ServerState::kLoading, "loading"}, std::pair{ServerState::kDraining, "draining"}}) {
    house.set_state(state);
    EXPECT_EQ(ready().status, 503);
    EXPECT_EQ(body_of(ready()).find("status")->as_string(), word);
    EXPECT_EQ(get_health_live(house.context()).status, 200);
    EXPECT_EQ(get_health_live(house.context()).body, R"({"status": "ok"})");
  }
}

// The context of a house with another engine, whose first step fails.
TEST(InfoRoutes, AServerWhoseEngineFailedIsNotReadyAndSaysNoMore) {
  ServerHouse house;
  const auto gate = std::make_shared<testing::StepGate>();
  LLMEngine::Options options;
  options.blocks.num_device_blocks = 64;
  const SteadyClock clock;
  AsyncEngine broken(
      std::make_unique<LLMEngine>(options, std::make_unique<testing::GatedExecutor>(gate), nullptr, clock), {}, clock);
  const ServerContext& c = house.context();
  const ServerContext context{
      c.options, c.model,   broken,         c.speech,  c.why_no_speech, c.admission, c.incoming,        c.metrics,
      c.log,     c.workers, c.long_workers, c.answers, c.transcribers,  c.clock,     c.start_time_unix, c.state};
  EXPECT_EQ(get_health_ready(context).status, 200);

  RequestSpec spec;
  spec.id = "a";
  spec.inputs.set_encoder_ids({3, 3});
  spec.inputs.prompt_token_ids = {2};
  gate->fail();
  ASSERT_FALSE(broken.add_request(std::move(spec)).value().next().ok());
  const HttpResponse response = get_health_ready(context);
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, R"({"status": "failed"})");
  EXPECT_EQ(get_health_live(context).status, 200);
  EXPECT_EQ(get_metrics(context).status, 200);
}

TEST(InfoRoutes, VersionIsTheBinarys) {
  const ServerHouse house;
  EXPECT_EQ(get_version(house.context()).body, R"({"version": "0.0.0", "commit": "0123456789ab"})");
}

TEST(InfoRoutes, MetricsAreTextOfTheEngine) {
  const ServerHouse house;
  const HttpResponse response = get_metrics(house.context());
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  const int32_t total = house.context().engine.snapshot().blocks.total;
  ASSERT_GT(total, 0);
  EXPECT_NE(response.body.find(str_cat("transept:kv_cache_blocks_total{model_name=\"g2p\"} ", total, "\n")),
            std::string::npos)
      << response.body;
}

TEST(InfoRoutes, DebugStateIsForThisMachineAlone) {
  const ServerHouse house;
  HttpRequest request;
  request.headers = {{"X-Forwarded-For", "127.0.0.1"}, {"Forwarded", "for=127.0.0.1"}};
  expect_error(get_debug_state(house.context(), request), 403, "permission_error");
  request.peer_is_loopback = true;
  EXPECT_EQ(get_debug_state(house.context(), request).status, 200);
}

TEST(InfoRoutes, DebugStateHasApiMdsShapeAndCountsTheQueue) {
  ServerHouse house;
  HttpRequest request;
  request.peer_is_loopback = true;
  const Admission::Places places = house.admission().take_places(3).value();
  const Json body = body_of(get_debug_state(house.context(), request));
  EXPECT_EQ(keys_of(body), (std::set<std::string>{"blocks", "queue", "running", "swapped", "waiting"}));
  for (const char* list : {"running", "waiting", "swapped"}) EXPECT_TRUE(body.find(list)->is_array());
  const Json& blocks = *body.find("blocks");
  EXPECT_EQ(keys_of(blocks), (std::set<std::string>{"cached", "cross", "free", "pinned", "prefixes", "self", "total"}));
  EXPECT_EQ(blocks.find("total")->as_int(), blocks.find("free")->as_int()) << "nothing runs";
  EXPECT_EQ(body.find("queue")->dump(), R"({"requests": 3, "limit": 512})");
}

TEST(InfoRoutes, DebugStateNamesADevice) {
  ServerHouse house;
  HttpRequest request;
  request.peer_is_loopback = true;
  EXPECT_EQ(body_of(get_debug_state(house.context(), request)).find("device"), nullptr) << "the processor";
  house.model().info.device = {"Card 9000", "its own, 1.2"};
  EXPECT_EQ(body_of(get_debug_state(house.context(), request)).find("device")->dump(),
            R"({"name": "Card 9000", "driver": "its own, 1.2"})");
}

TEST(InfoRoutes, SeveralReplicasAreShownTogetherAndEach) {
  EngineConfig config;
  config.replicas = 2;
  ServerHouse house(testing::default_server_options(), testing::bundled_model(), config);
  HttpRequest request;
  request.peer_is_loopback = true;
  const Json body = body_of(get_debug_state(house.context(), request));
  EXPECT_EQ(keys_of(body), (std::set<std::string>{"blocks", "queue", "replicas", "running", "swapped", "waiting"}));
  const Json::Array& replicas = body.find("replicas")->as_array();
  ASSERT_EQ(replicas.size(), 2u);
  int64_t total = 0;
  for (const Json& replica : replicas) {
    EXPECT_EQ(keys_of(replica), (std::set<std::string>{"blocks", "running", "swapped", "waiting"}));
    total += replica.find("blocks")->find("total")->as_int();
  }
  EXPECT_EQ(body.find("blocks")->find("total")->as_int(), total);
  EXPECT_NE(
      get_metrics(house.context()).body.find("transept:replica_requests_running{model_name=\"g2p\",replica=\"1\"}"),
      std::string::npos);
  EXPECT_EQ(get_health_ready(house.context()).status, 200);
}

TEST(InfoRoutes, AStoppedEngineStillAnswersQuestions) {
  ServerHouse house;
  house.engine().stop();
  HttpRequest request;
  request.peer_is_loopback = true;
  EXPECT_EQ(get_debug_state(house.context(), request).status, 200);
  EXPECT_EQ(get_metrics(house.context()).status, 200);
  EXPECT_EQ(get_health_live(house.context()).status, 200);
}

}  // namespace
}  // namespace transept
