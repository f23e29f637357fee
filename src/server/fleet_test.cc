// Encode and decode instances as servers of their own, over the broker of one machine: clients get the answers of one
// server, and no instance's end hangs anybody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <thread>

#include "disagg/ec_connector.h"
#include "disagg/input_codec.h"
#include "disagg/instance_calls.h"
#include "disagg/local_broker.h"
#include "disagg/zmq_bulk.h"
#include "server/fleet_testing.h"
#include "server/prometheus_testing.h"
#include "server/transcription_testing.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST_F(FleetTest, CompletionsAreThoseOfOneServer) {
  constexpr int kCount = 40;
  std::vector<std::string> whole;
  {
    ServedModel model;
    model.load();
    whole = answers([&] { return model.client(); }, kCount);
  }
  for (const std::string& answer : whole) EXPECT_THAT(answer, HasSubstr("text"));
  start(bundled_model(), 2);
  EXPECT_EQ(answers([&] { return decoder_->client(); }, kCount), whole);
  EXPECT_EQ(decoder_->snapshot().executor.num_encoder_runs, 0);
  EXPECT_EQ(decoder_->snapshot().stats.num_local_encodes, 0);
  EXPECT_GT(encoders_[0]->snapshot().executor.num_encoder_runs + encoders_[1]->snapshot().executor.num_encoder_runs, 0);
}

PrometheusText metrics_of(const Member& member) {
  const auto reply = member.client().get("/metrics");
  EXPECT_EQ(reply->status, 200);
  auto parsed = PrometheusText::parse(reply->body);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *std::move(parsed) : PrometheusText();
}

// A series by its name and its labels beside the model's.
double value(const PrometheusText& text, std::string_view name, MetricLabels labels = {}) {
  const auto& families = text.families();
  const auto served = families.at("transept:num_requests_running").samples.at("transept:num_requests_running");
  labels["model_name"] = served.begin()->first.at("model_name");
  return text.value(str_cat("transept_ec_", name), labels);
}

// Each figure against what was asked for: by its own count of requests, positions and bytes.
TEST_F(FleetTest, MetricsTellOfEachTransfer) {
  constexpr int kInputs = 9;
  start();
  const auto ask = [&] { return answers([&] { return decoder_->client(); }, kInputs); };
  const std::vector<std::string> first = ask();
  for (const std::string& answer : first) EXPECT_THAT(answer, HasSubstr("text"));
  // Its answer may be read before the encode instance has heard that the rows are there.
  for (int i = 0; i < 500 && value(metrics_of(*encoders_[0]), "transfers_total",
                                   {{"side", "sender"}, {"verdict", "injected"}}) < kInputs;
       ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  PrometheusText e = metrics_of(*encoders_[0]), p = metrics_of(*decoder_);
  const auto positions = static_cast<double>(encoders_[0]->snapshot().stats.num_encoder_tokens);
  const ModelSpec& spec = encoders_[0]->server().context()->model.info.spec;
  const double bytes = positions * spec.width_of(spec.consumers()) * 4;
  for (const auto& [text, side] : {std::pair(&e, "sender"), std::pair(&p, "receiver")}) {
    for (size_t i = 0; i < kNumEcOutcomes; ++i) {
      const std::string verdict(name(static_cast<EcOutcome>(i)));
      EXPECT_EQ(value(*text, "transfers_total", {{"side", side}, {"verdict", verdict}}),
                verdict == "injected" ? kInputs : 0)
          << side << verdict;
    }
    EXPECT_EQ(value(*text, "bytes_total", {{"side", side}}), bytes) << side;
    EXPECT_EQ(value(*text, "waiting_alloc"), 0);
    EXPECT_GT(value(*text, "slots_total"), 100);
    EXPECT_EQ(value(*text, "slots_reserved"), 0);
    EXPECT_EQ(value(*text, "slots_used"), 0) << "all requests have ended";
    EXPECT_EQ(value(*text, "hits_total"), 0);
    EXPECT_EQ(value(*text, "local_encodes_total"), 0);
    EXPECT_EQ(value(*text, "expired_total"), 0);
    for (const char* reason : {"cut", "magic", "version", "channel", "size", "checksum", "code", "field", "unreserved",
                               "gap", "inbox_full"}) {
      EXPECT_EQ(value(*text, "frames_refused_total", {{"reason", reason}}), 0) << reason;
    }
  }
  for (const char* phase : {"announce", "encode", "send"}) {
    EXPECT_EQ(value(e, "seconds_count", {{"phase", phase}}), kInputs) << phase;
    EXPECT_GT(value(e, "seconds_sum", {{"phase", phase}}), 0) << phase;
    EXPECT_LT(value(e, "seconds_sum", {{"phase", phase}}), 60) << phase;
  }
  EXPECT_LE(value(e, "seconds_count", {{"phase", "inject"}}), kInputs) << "some are told before the transport says so";
  EXPECT_EQ(value(p, "seconds_count", {{"phase", "claim"}}), kInputs);
  EXPECT_EQ(value(e, "queue_seconds_count"), kInputs);
  EXPECT_GE(value(e, "queue_seconds_sum"), 0) << "0 for those that are handed on as they come";
  EXPECT_LT(value(e, "queue_seconds_sum"), 60);
  EXPECT_TRUE(std::isnan(value(p, "queue_seconds_count"))) << "of those that scale by it alone";
  EXPECT_TRUE(std::isnan(value(p, "seconds_count", {{"phase", "encode"}})));
  EXPECT_TRUE(std::isnan(value(e, "seconds_count", {{"phase", "claim"}})));

  // The same inputs again: their rows are there.
  EXPECT_EQ(ask(), first);
  e = metrics_of(*encoders_[0]);
  p = metrics_of(*decoder_);
  EXPECT_EQ(value(p, "hits_total"), kInputs);
  EXPECT_EQ(value(p, "bytes_total", {{"side", "receiver"}}), bytes);
  EXPECT_EQ(value(e, "bytes_total", {{"side", "sender"}}), bytes);
  EXPECT_EQ(value(e, "queue_seconds_count"), kInputs);
}

TEST_F(FleetTest, MetricsTellWhoIsThere) {
  start(bundled_model(), 2);
  EngineConfig other;
  other.dtype = "float16";
  add_encoder(bundled_model(), other);
  const auto peers = [&](const Member& member, const char* role, const char* state) {
    return value(metrics_of(member), "peers", {{"role", role}, {"state", state}});
  };
  const auto becomes = [&](const Member& member, const char* role, const char* state, double wanted) {
    for (int i = 0; i < 500 && peers(member, role, state) != wanted; ++i) std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(peers(member, role, state), wanted) << role << state;
  };
  becomes(*decoder_, "encode", "ready", 2);
  becomes(*decoder_, "encode", "other_model", 1);
  becomes(*encoders_[2], "encode", "other_model", 2);
  becomes(*encoders_[0], "decode", "ready", 1);
  EXPECT_TRUE(encoders_[1]->server().drain(seconds(20), [] { return true; }));
  becomes(*decoder_, "encode", "draining", 1);
  EXPECT_EQ(peers(*decoder_, "encode", "ready"), 1);
  EXPECT_TRUE(decoder_->server().drain(seconds(20), [] { return true; }));
  becomes(*encoders_[0], "decode", "draining", 1);
}

TEST_F(FleetTest, AServerOfItsOwnHasNoMetricsOfTransfers) {
  ServedModel whole;
  whole.load();
  EXPECT_EQ(whole.get("/metrics").body.find("transept_ec_"), std::string::npos);
}

// The client's id and trace are in the lines of all that work for it.
TEST_F(FleetTest, LogsOfBothHalvesNameTheClientsRequest) {
  log_ = {.as_json = true};
  ::testing::internal::CaptureStderr();
  start(speech_model());
  constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const HttpHeaders headers = {{"X-Request-Id", "the/client:7"},
                               {"traceparent", str_cat("00-", kTrace, "-00f067aa0ba902b7-01")}};
  const Fields fields = {{"file", wav(7, 40)}};
  const auto reply = decoder_->client().post(
      "/v1/audio/transcriptions", str_cat("multipart/form-data; boundary=", kBoundary), form_body(fields), headers);
  EXPECT_EQ(reply->status, 200);
  encoders_[0]->server().stop();
  decoder_->server().stop();
  const std::string lines = ::testing::internal::GetCapturedStderr();
  int num_requests = 0, num_fetches = 0, num_encodes = 0;
  for (const std::string_view text : split(std::string_view(lines), '\n')) {
    const auto line = Json::parse(text);
    if (!line.ok() || line->find("request_id") == nullptr) continue;
    const std::string event = line->find("event")->as_string();
    if (event == "request" && line->find("path")->as_string().starts_with("/health")) continue;
    EXPECT_EQ(line->find("request_id")->as_string(), "the/client:7") << text;
    ASSERT_NE(line->find("trace_id"), nullptr) << text;
    EXPECT_EQ(line->find("trace_id")->as_string(), kTrace);
    if (event == "encode") {
      ++num_encodes;
      EXPECT_THAT(line->find("transfer")->as_string(), ::testing::StartsWith("p0."));
      EXPECT_EQ(line->find("outcome")->as_string(), "done");
    } else if (line->find("path")->as_string().starts_with("/v1/inputs/p0.")) {
      ++num_fetches;
    } else {
      ++num_requests;
    }
  }
  EXPECT_EQ(num_requests, 1) << lines;
  EXPECT_GE(num_encodes, 2) << "windows of 30 s" << lines;
  EXPECT_EQ(num_fetches, num_encodes) << lines;
}

// Windows whose bounds depend on the text before, the language, temperatures: all of it is asked for.
TEST_F(FleetTest, LongAudioIsTranscribedAsByOneServer) {
  const auto transcript = [](HttpClient client, const Fields& more) {
    Fields fields = {{"file", wav(7, 70, {{16000 * 20, 16000 * 24}})}, {"response_format", "verbose_json"}};
    fields.insert(fields.end(), more.begin(), more.end());
    const auto reply = client.post("/v1/audio/transcriptions", str_cat("multipart/form-data; boundary=", kBoundary),
                                   form_body(fields));
    return reply.ok() ? reply->body : error_message(reply.status());
  };
  const std::vector<Fields> asks = {{}, {{"language", "en"}, {"temperature", "0.4"}}, {{"beam_size", "3"}}};
  std::vector<std::string> whole;
  int64_t num_windows = 0;  // of the first
  {
    ServedModel model(default_server_options(), speech_model());
    model.load();
    for (const Fields& ask : asks) {
      whole.push_back(transcript(model.client(), ask));
      if (num_windows == 0) num_windows = model.server().context()->engine.snapshot().executor.num_encoder_runs;
    }
  }
  for (const std::string& text : whole) EXPECT_THAT(text, HasSubstr("segments"));
  EXPECT_GE(num_windows, 3) << "70 s in windows of 30";
  start(speech_model());
  for (size_t i = 0; i < asks.size(); ++i) {
    EXPECT_EQ(transcript(decoder_->client(), asks[i]), whole[i]);
    if (i == 0) {
      EXPECT_EQ(encoders_[0]->snapshot().executor.num_encoder_runs, num_windows);
    }
  }
  EXPECT_EQ(decoder_->snapshot().executor.num_encoder_runs, 0);
}

TEST_F(FleetTest, EachRoleSaysWhatItIs) {
  start();
  const auto abilities = [](const Member& member) {
    return at(Json::parse(member.client().get("/v1/models")->body).value(), "data", 0, "transept");
  };
  EXPECT_EQ(at(abilities(*encoders_[0]), "role").as_string(), "encode");
  EXPECT_EQ(at(abilities(*encoders_[0]), "task").as_string(), "text");
  EXPECT_EQ(at(abilities(*decoder_), "role").as_string(), "decode");
  ServedModel whole;
  whole.load();
  EXPECT_EQ(whole.get("/v1/models").body.find("role"), std::string::npos);
}

TEST_F(FleetTest, EachRoleHasItsPaths) {
  start();
  const auto status = [](HttpClient client, std::string_view method, std::string_view path) {
    return method == "GET" ? client.get(path)->status : client.post(path, "application/json", "{}")->status;
  };
  EXPECT_EQ(status(encoders_[0]->client(), "POST", "/v1/completions"), 404);
  EXPECT_EQ(status(encoders_[0]->client(), "POST", "/v1/audio/transcriptions"), 404);
  EXPECT_EQ(status(encoders_[0]->client(), "GET", "/v1/inputs/a/0"), 404);
  EXPECT_EQ(status(encoders_[0]->client(), "GET", "/health/ready"), 200);
  EXPECT_EQ(status(decoder_->client(), "GET", "/health/ready"), 200);
  // Not to be told from one that is there without the secret.
  EXPECT_EQ(status(decoder_->client(), "GET", "/v1/inputs/a/0"), 401);
  EXPECT_EQ(status(decoder_->client(), "POST", "/v1/inputs/a/0"), 401);
  const HttpHeaders code = {{std::string(kInstanceCodeHeader), instance_code(*secret_, "GET", "/v1/inputs/a/0", "")}};
  EXPECT_EQ(decoder_->client().get("/v1/inputs/a/0", code)->status, 404);
  ServedModel whole;
  whole.load();
  EXPECT_EQ(whole.get("/v1/inputs/a/0").status, 404);
}

// Two proxies do not know of each other's requests.
TEST_F(FleetTest, AnIdInFlightIsTaken) {
  add_decoder();
  const auto ask = [&](const std::string& id, std::string_view body) {
    return decoder_->client().post("/v1/completions", "application/json", body, {{"X-Request-Id", id}}).value();
  };
  int first = 0;
  std::thread waits([&] { first = ask("client-7", completion(0)).status; });  // for an encode instance
  const TicketAsker& asker = *decoder_->server().context()->instance->asker();
  for (int i = 0; i < 1000 && asker.num_asked() == 0; ++i) std::this_thread::sleep_for(milliseconds(2));
  const auto second = ask("client-7", completion(1));
  EXPECT_EQ(second.status, 409);
  EXPECT_THAT(second.body, HasSubstr("a request with the X-Request-Id client-7 is in flight"));
  add_encoder();
  EXPECT_EQ(ask("client-8", completion(2)).status, 200);
  waits.join();
  EXPECT_EQ(first, 200);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("client-7", completion(i)).status, 200) << "and is free again";
  EXPECT_EQ(ask("client-7", "{").status, 400);
  EXPECT_EQ(ask("client-7", completion(0)).status, 200);
  EXPECT_EQ(encoders_[0]->client().get("/v1/models", {{"X-Request-Id", "client-7"}})->status, 200);
}

// A body of POST /v1/encode, from another instance.
class EncodeRoute : public FleetTest {
 protected:
  HttpClient::Reply encode(std::string_view body, std::string_view type = "application/json",
                           const std::string& query = "", const HttpHeaders& more = {}) {
    const std::string target = "/v1/encode" + query;
    HttpHeaders headers = more;
    headers.emplace_back(kInstanceCodeHeader, instance_code(*secret_, "POST", target, body));
    // The record of the decode instance may be on its way.
    for (int i = 0;; ++i) {
      HttpClient::Reply reply = encoders_[0]->client().post(target, type, body, headers).value();
      if (i == 100 || reply.body.find("no decode instance p0 is known") == std::string::npos) return reply;
      std::this_thread::sleep_for(milliseconds(50));
    }
  }
  static std::string message(const HttpClient::Reply& reply) {
    return at(Json::parse(reply.body).value(), "error", "message").as_string();
  }
};

TEST_F(EncodeRoute, AnswersWhenTheRowsAreThere) {
  start();
  const auto reply = encode(R"({"prompt": "word", "consumer": "p0", "request_id": "r.1"})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json body = Json::parse(reply.body).value();
  EXPECT_EQ(at(body, "object").as_string(), "encode");
  EXPECT_EQ(at(body, "request_id").as_string(), "r.1");
  EXPECT_EQ(at(body, "outputs").dump(), "[]");
  ASSERT_EQ(at(body, "items").as_array().size(), 1u);
  EXPECT_EQ(at(body, "items", 0, "input_id").as_int(), 0);
  EXPECT_EQ(at(body, "items", 0, "digest").as_string().size(), 64u);
  EXPECT_EQ(at(body, "items", 0, "place", "length").as_int(), at(body, "items", 0, "num_positions").as_int());
  EXPECT_EQ(encoders_[0]->snapshot().executor.num_encoder_runs, 1);

  // The same, as ids in bytes: encoded once.
  const Json tokens =
      Json::parse(decoder_->client().post("/tokenize", "application/json", R"({"prompt": "word"})")->body).value();
  std::vector<int32_t> ids;
  for (const Json& id : at(tokens, "tokens").as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  std::vector<std::byte> bytes;
  encode_input(EncoderItem(ids), bytes);
  const std::string features(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto again = encode(features, kFeaturesContentType, "?consumer=p0&request_id=r.2&timeout=20");
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(at(Json::parse(again.body).value(), "items", 0, "digest").as_string(),
            at(body, "items", 0, "digest").as_string());
  EXPECT_EQ(encoders_[0]->snapshot().executor.num_encoder_runs, 1);

  // Several inputs of one request; its name is the HTTP request's.
  const auto list =
      encode(R"({"prompt": ["one", "two"], "consumer": "p0"})", "application/json", "", {{"X-Request-Id", "mine"}});
  ASSERT_EQ(list.status, 200) << list.body;
  EXPECT_EQ(at(Json::parse(list.body).value(), "request_id").as_string(), "mine");
  EXPECT_EQ(at(Json::parse(list.body).value(), "items").as_array().size(), 2u);
}

TEST_F(EncodeRoute, RefusesByName) {
  start();
  const auto refusal = [&](std::string_view body, int status) {
    const auto reply = encode(body);
    EXPECT_EQ(reply.status, status) << body;
    return reply.body;
  };
  EXPECT_THAT(refusal(R"({"prompt": "word"})", 400), HasSubstr("consumer"));
  EXPECT_THAT(refusal(R"({"consumer": "p0"})", 400), HasSubstr("prompt"));
  EXPECT_THAT(refusal(R"({"prompt": "word", "consumer": "p9"})", 404), HasSubstr("no decode instance p9"));
  EXPECT_THAT(refusal(R"({"prompt": "word", "consumer": "e0"})", 404), HasSubstr("no decode instance e0"));
  EXPECT_THAT(refusal(R"({"prompt": "word", "consumer": "p0", "request_id": "a/b"})", 400), HasSubstr("request_id"));
  EXPECT_THAT(refusal(R"({"prompt": "word", "consumer": "p0", "timeout": 0})", 400), HasSubstr("timeout"));
  EXPECT_THAT(refusal(R"({"prompt": [5, 99999], "consumer": "p0"})", 400), HasSubstr("99999"));
  EXPECT_THAT(refusal(R"({"prompt": ["a", [5, 99999]], "consumer": "p0"})", 400), HasSubstr("prompt[1]"));
  const auto cut = encode("\x01\x01", kFeaturesContentType, "?consumer=p0");
  EXPECT_EQ(cut.status, 400);
  EXPECT_THAT(cut.body, HasSubstr("splice_offset"));
  // Bytes that no prompt of this model gives: they would end the process in the encoder.
  const auto as_bytes = [](const EncoderItem& item) {
    std::vector<std::byte> bytes;
    encode_input(item, bytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  auto picture = std::make_shared<EncoderFeatures>();
  picture->modality = Modality::kImage;
  picture->shape = {3, 1, 1};
  picture->values.resize(3);
  picture->num_positions = 1;
  for (const auto& [item, part] : {std::pair(EncoderItem({5, 99999}), "token id 99999 is outside the vocabulary"),
                                   std::pair(EncoderItem({}, picture), "encodes ids alone")}) {
    const auto reply = encode(as_bytes(item), kFeaturesContentType, "?consumer=p0");
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(part));
  }
  EXPECT_EQ(encode("{}", "application/json", "", {{std::string(kInstanceCodeHeader), "0"}}).status, 401);
  const auto stranger =
      encoders_[0]->client().post("/v1/encode", "application/json", R"({"prompt": "word", "consumer": "p0"})");
  EXPECT_EQ(stranger->status, 401);
  EXPECT_EQ(encoders_[0]->snapshot().executor.num_encoder_runs, 0);
}

TEST_F(EncodeRoute, ItsSchemaIsThatOfTheRole) {
  start();
  const Json encoder = Json::parse(encoders_[0]->client().get("/openapi.json")->body).value();
  const Json decoder = Json::parse(decoder_->client().get("/openapi.json")->body).value();
  EXPECT_NE(at(encoder, "paths").find("/v1/encode"), nullptr);
  EXPECT_EQ(at(encoder, "paths").find("/v1/completions"), nullptr);
  EXPECT_EQ(at(decoder, "paths").find("/v1/encode"), nullptr);
  EXPECT_NE(at(decoder, "paths").find("/v1/completions"), nullptr);
}

TEST_F(FleetTest, WithoutAnEncodeInstanceRequestsEnd) {
  add_decoder();
  const auto reply = decoder_->client().post("/v1/completions", "application/json", completion(0));
  EXPECT_EQ(reply->status, 503);
  EXPECT_THAT(reply->body, HasSubstr("no encode instance is there"));
  EXPECT_NE(find_header(reply->headers, "Retry-After"), nullptr);
  // The next one finds one.
  add_encoder();
  EXPECT_EQ(decoder_->client().post("/v1/completions", "application/json", completion(0))->status, 200);
}

TEST_F(FleetTest, WithoutAnEncodeInstanceADecodeInstanceMayFallBack) {
  constexpr int kCount = 30;
  std::vector<std::string> whole;
  {
    ServedModel model;
    model.load();
    whole = answers([&] { return model.client(); }, kCount);
  }
  EngineConfig config;
  config.ec_fallback = "local";
  add_decoder(bundled_model(), config);
  EXPECT_EQ(answers([&] { return decoder_->client(); }, kCount), whole);
  const auto num_local = [&] { return decoder_->snapshot().stats.num_local_encodes; };
  EXPECT_GT(num_local(), 0);
  // It has waited once: the next one is encoded at once.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(decoder_->client().post("/v1/completions", "application/json", R"({"prompt": "anew"})")->status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(3));
  const int64_t num_before = num_local();
  add_encoder();
  std::this_thread::sleep_for(seconds(1));
  EXPECT_EQ(decoder_->client().post("/v1/completions", "application/json", R"({"prompt": "other"})")->status, 200);
  EXPECT_EQ(num_local(), num_before) << "an encode instance is there";
  EXPECT_EQ(encoders_[0]->snapshot().executor.num_encoder_runs, 1);
}

TEST_F(FleetTest, AnInstanceOfAnotherTypeIsRefusedByName) {
  EngineConfig config;
  config.dtype = "float16";
  add_encoder(bundled_model(), config);
  add_decoder();
  const auto reply = decoder_->client().post("/v1/completions", "application/json", completion(0));
  EXPECT_EQ(reply->status, 503);
  EXPECT_THAT(reply->body, HasSubstr("no encode instance of this model is there"));
}

TEST_F(FleetTest, ATransferTypeOfItsOwnIsRefusedWithBothNames) {
  EngineConfig config;
  config.ec_transfer_dtype = "bfloat16";
  add_encoder(bundled_model(), config);
  add_decoder();
  const std::string here = "has --ec-transfer-dtype bfloat16, and this one float32";
  const auto reply = decoder_->client().post("/v1/completions", "application/json", completion(0));
  EXPECT_EQ(reply->status, 503);
  EXPECT_THAT(reply->body, HasSubstr(here));
  const std::string body = R"({"prompt": "word", "consumer": "p0"})";
  const HttpHeaders code = {{std::string(kInstanceCodeHeader), instance_code(*secret_, "POST", "/v1/encode", body)}};
  const auto direct = encoders_[0]->client().post("/v1/encode", "application/json", body, code);
  EXPECT_EQ(direct->status, 503);
  EXPECT_THAT(direct->body, HasSubstr("p0 has --ec-transfer-dtype float32, and this one bfloat16"));
}

// Texts may differ from those over float32, and do not differ between runs and fleets.
TEST_F(FleetTest, OverBFloat16AnswersAreThoseOfAnyFleet) {
  EngineConfig config;
  config.ec_transfer_dtype = "bfloat16";
  add_encoder(bundled_model(), config);
  add_decoder(bundled_model(), config);
  const std::vector<std::string> one = answers([&] { return decoder_->client(); }, 30);
  for (const std::string& answer : one) EXPECT_THAT(answer, HasSubstr("text"));
  EXPECT_EQ(decoder_->snapshot().executor.num_encoder_runs, 0);
  decoder_.reset();
  encoders_.clear();
  add_encoder(bundled_model(), config);
  add_encoder(bundled_model(), config);
  add_decoder(bundled_model(), config);
  EXPECT_EQ(answers([&] { return decoder_->client(); }, 30), one);
}

TEST_F(FleetTest, AnEncodeInstanceThatEndsLeavesItsWorkToOthers) {
  start(bundled_model(), 2);
  const std::vector<std::string> before = answers([&] { return decoder_->client(); }, 30);
  std::thread ending([&] {
    std::this_thread::sleep_for(milliseconds(20));
    encoders_[0]->server().stop();
  });
  for (int round = 0; round < 3; ++round) EXPECT_EQ(answers([&] { return decoder_->client(); }, 30), before);
  ending.join();
}

// The lease is the flag's: an encode instance gets room for its rows, and says nothing any longer.
TEST_F(FleetTest, RoomForRowsThatDoNotComeIsBackAfterTheLease) {
  EngineConfig config;
  config.ec_lease_seconds = 1;
  add_decoder(bundled_model(), config);
  const LoadedModel& model = decoder_->server().context()->model;
  const auto num_free = [&] { return decoder_->snapshot().blocks.available(); };
  const int32_t num_before = num_free();

  const InstanceId self{"e9", 99};
  auto writer = std::make_shared<FrameWriter>(self.incarnation, secret_);
  const std::shared_ptr<Broker> broker = LocalBroker::connect(folder_.path() + "/broker").value();
  std::shared_ptr<BulkTransport> bulk = ZmqBulk::create("ipc://" + folder_.path() + "/e9", writer).value();
  InstanceRecord record;
  record.id = self;
  record.bulk_address = bulk->address();
  ASSERT_EQ(broker->announce(record, seconds(100)), ok_status());
  EcConnector::Options options;
  options.self = self;
  options.secret = secret_;
  EcConnector connector(options, broker, std::move(bulk), writer);
  connector.start(std::make_shared<EcInbox>(100, nullptr));
  EcMeta meta;
  meta.key = {"r", 0, 0};
  meta.model = model.fingerprint;
  meta.num_positions = 10;
  meta.width = model.info.spec.width_of(Consumers::kCross);
  meta.place = {0, meta.num_positions, {}};
  meta.time_left = seconds(100);
  std::optional<InstanceId> decoder;
  for (int i = 0; i < 1000 && !decoder.has_value(); ++i) {
    const auto peers = broker->peers();
    ASSERT_TRUE(peers.ok()) << peers.status();
    for (const InstanceRecord& peer : *peers) {
      if (peer.id.name == "p0") decoder = peer.id;
    }
    if (!decoder.has_value()) std::this_thread::sleep_for(milliseconds(10));
  }
  ASSERT_TRUE(decoder.has_value());
  const auto waits_until = [&](bool is_free) {
    for (int i = 0; i < (is_free ? 1000 : 10) && (num_free() == num_before) != is_free; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    return (num_free() == num_before) == is_free;
  };
  // Again, until the decode instance knows the sender.
  bool has_room = false;
  for (int i = 0; i < 100 && !has_room; ++i) {
    connector.send(*decoder, meta);
    has_room = waits_until(false);
  }
  EXPECT_TRUE(has_room);
  EXPECT_TRUE(waits_until(true)) << "and has it no longer, ten seconds later";
}

TEST_F(FleetTest, DrainedInstancesFinishWhatTheyHave) {
  start();
  std::vector<std::string> texts;
  std::thread asking([&] { texts = answers([&] { return decoder_->client(); }, 20); });
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_TRUE(decoder_->server().drain(seconds(20), [] { return true; }));
  decoder_->server().stop();
  EXPECT_TRUE(encoders_[0]->server().drain(seconds(20), [] { return true; }));
  encoders_[0]->server().stop();
  asking.join();
  for (const std::string& text : texts) {
    EXPECT_THAT(text, ::testing::AnyOf(HasSubstr("\"text\""), HasSubstr("shutting down")));
  }
}

TEST_F(FleetTest, ABrokerThatStaysAwayIsToldByHealth) {
  start();
  EXPECT_EQ(decoder_->client().get("/health/ready")->status, 200);
  broker_.reset();
  for (int i = 0; i < 200 && decoder_->client().get("/health/ready")->status == 200; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  const auto reply = decoder_->client().get("/health/ready");
  EXPECT_EQ(reply->status, 503);
  EXPECT_THAT(reply->body, HasSubstr("broker"));
  broker_ = LocalServer::start(folder_.path() + "/broker", 2, {}).value();
  for (int i = 0; i < 100 && decoder_->client().get("/health/ready")->status != 200; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_EQ(decoder_->client().post("/v1/completions", "application/json", completion(0))->status, 200);
}

}  // namespace
}  // namespace transept::testing
