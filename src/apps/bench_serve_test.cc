// `transept bench serve` from its flags to its exit code, against a server that answers as OpenAI's does; and what its
// flags refuse.
#include "apps/bench_serve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "apps/bench_serve_flags.h"
#include "apps/verbs.h"
#include "base/folder_testing.h"
#include "base/input_file.h"
#include "base/mutex.h"
#include "net/fake_http_server_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::transept::testing::FakeHttpServer;
using ::transept::testing::TestFolder;
using Connection = FakeHttpServer::Connection;

constexpr int kNumTokens = 4;

// A server of one model. Everything but what is posted is fixed; posts are kept.
class FakeOpenAi final {
 public:
  FakeOpenAi() : server_([this](Connection& connection) { serve(connection); }) {}

  std::string url() const { return server_.url(); }
  std::vector<std::string> posts() const {
    const MutexLock lock(mutex_);
    return posts_;
  }
  std::atomic<int> num_to_refuse{0};  // with 429, before anything is answered
  std::string more_of_model;          // members of its entry; before the first request

 private:
  void serve(Connection& connection) {
    while (auto request = connection.read_request()) {
      if (request->starts_with("GET /version ")) {
        connection.respond(200, R"({"version": "9.9"})");
      } else if (request->starts_with("GET /v1/models ")) {
        connection.respond(200, str_cat(R"({"object": "list", "data": [{"id": "the-model")", more_of_model, "}]}"));
      } else if (request->starts_with("POST ")) {
        keep(*request);
        if (!answer(connection, *request)) return;
      } else {
        connection.respond(404, "{}");
      }
    }
  }

  void keep(std::string request) {
    const MutexLock lock(mutex_);
    posts_.push_back(std::move(request));
  }

  // False: the answer ends with the connection.
  bool answer(Connection& connection, const std::string& request) {
    if (num_to_refuse-- > 0) {
      connection.respond(429, R"({"error": {}})");
    } else if (request.find(R"("stream": false)") != std::string::npos) {
      connection.respond(200, R"({"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 4}})");
    } else if (request.starts_with("POST /v1/audio/transcriptions ")) {
      return stream(
          connection, R"({"type": "transcript.text.delta", "delta": "x"})",
          R"({"type": "transcript.text.done", "text": "xxxx", "usage": {"type": "tokens", "input_tokens": 8, "output_tokens": 4}})");
    } else {
      return stream(connection, R"({"choices": [{"text": "x"}]})",
                    R"({"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 4}})");
    }
    return true;
  }

  static bool stream(Connection& connection, std::string_view token, std::string_view end) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < kNumTokens; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      connection.send(str_cat("data: ", token, "\n\n"));
    }
    connection.send(str_cat("data: ", end, "\n\ndata: [DONE]\n\n"));
    return false;
  }

  mutable Mutex mutex_;
  std::vector<std::string> posts_ ABSL_GUARDED_BY(mutex_);
  FakeHttpServer server_;
};

struct Ran {
  int exit_code = -1;
  Json report;
  std::string shown, said;
};

Ran run(std::vector<std::string> arguments) {
  const TestFolder folder;
  const std::string path = folder.path() + "/report.json";
  arguments.insert(arguments.end(), {"--output", path, "--timeout", "20"});
  const StatusOr<Flags> flags = Flags::parse(bench_serve_flags(), arguments);
  if (!flags.ok()) {
    ADD_FAILURE() << flags.status();
    return {};
  }
  Ran ran;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  ran.exit_code = run_bench_serve(*flags);
  ran.shown = ::testing::internal::GetCapturedStdout();
  ran.said = ::testing::internal::GetCapturedStderr();
  const StatusOr<std::string> text = read_file(path);
  if (text.ok() && !text->empty()) ran.report = Json::parse(*text).value();
  return ran;
}

TEST(BenchServeTest, AnOpenLoop) {
  FakeOpenAi server;
  const Ran ran = run({server.url(), "ttft:60000", "--num-prompts", "20", "--request-rate", "400", "--output-len", "4",
                       "--goodput", "e2el:60000", "--seed", "5", "--warmup", "2"});
  EXPECT_EQ(ran.exit_code, kExitOk) << ran.said;
  EXPECT_EQ(ran.said, "");
  EXPECT_THAT(ran.shown, HasSubstr("requests answered              20 of 20"));
  const Json& report = ran.report;
  EXPECT_EQ(report.find("model")->as_string(), "the-model");
  EXPECT_EQ(report.find("url")->as_string(), server.url() + "/v1/completions");
  EXPECT_EQ(report.find("server")->dump(), R"({"version": "9.9"})");
  EXPECT_EQ(report.find("seed")->as_int(), 5);
  EXPECT_EQ(report.find("settings")->find("loop")->as_string(), "open");
  EXPECT_TRUE(report.find("settings")->find("unique_inputs")->as_bool());
  EXPECT_EQ(report.find("num_ok")->as_int(), 20);
  EXPECT_EQ(report.find("input_tokens")->as_int(), 160);
  EXPECT_EQ(report.find("output_tokens")->as_int(), 80);
  EXPECT_GE(report.find("ttft_ms")->find("p50")->as_double(), 2);
  EXPECT_GE(report.find("tpot_ms")->find("mean")->as_double(), 1.9);
  EXPECT_GE(report.find("e2el_ms")->find("p50")->as_double(), 8);
  EXPECT_EQ(report.find("goodput")->find("num_good")->as_int(), 20);
  const std::vector<std::string> posts = server.posts();
  EXPECT_EQ(posts.size(), 22u);
  EXPECT_EQ(std::set(posts.begin(), posts.end()).size(), 22u) << "no two alike, warm-up's neither";
}

TEST(BenchServeTest, RequestsFitTheModelThatTheServerLists) {
  FakeOpenAi server;
  server.more_of_model = R"(, "max_model_len": 64, "transept": {"max_encoder_len": 128, "max_decoder_len": 64})";
  const Ran ran = run({server.url(), "--num-prompts", "3"});
  EXPECT_EQ(ran.exit_code, kExitOk);
  EXPECT_THAT(ran.said,
              HasSubstr("128 and 64 positions that the server names: 13 words instead of 32, 56 output tokens "
                        "instead of 128"));
  EXPECT_EQ(ran.report.find("settings")->find("input_len_words")->as_int(), 13);
  EXPECT_EQ(ran.report.find("settings")->find("max_output_len")->as_int(), 56);
  for (const std::string& post : server.posts()) EXPECT_THAT(post, HasSubstr(R"("max_tokens": 56)"));
  EXPECT_EQ(run({server.url(), "--num-prompts", "1", "--input-len", "40", "--output-len", "100"}).said, "");
  EXPECT_THAT(server.posts().back(), HasSubstr(R"("max_tokens": 100)"));
}

TEST(BenchServeTest, AClosedLoopThatIsRefusedNowAndThen) {
  FakeOpenAi server;
  server.num_to_refuse = 3;
  const Ran ran = run({server.url() + "/v1/", "--num-prompts", "30", "--max-concurrency", "4", "--model", "mine",
                       "--warmup", "0", "--json", "--api-key", "secret"});
  EXPECT_EQ(ran.exit_code, kExitSomeFailed);
  EXPECT_EQ(Json::parse(ran.shown).value().dump(), ran.report.dump());
  EXPECT_EQ(ran.report.find("settings")->find("loop")->as_string(), "closed");
  EXPECT_EQ(ran.report.find("num_requests")->as_int(), 30);
  EXPECT_EQ(ran.report.find("num_rejected")->as_int(), 3);
  EXPECT_EQ(ran.report.find("errors")->dump(), R"({"HTTP 429": 3})");
  EXPECT_LE(ran.report.find("max_in_flight")->as_int(), 4);
  EXPECT_EQ(ran.shown.find("secret"), std::string::npos);
  const std::vector<std::string> posts = server.posts();
  EXPECT_THAT(posts[0], HasSubstr("\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_THAT(posts[0], HasSubstr(R"("model": "mine")"));
}

TEST(BenchServeTest, WholeAnswersForASpan) {
  FakeOpenAi server;
  const Ran ran = run({server.url(), "--duration", "0.2", "--max-concurrency", "2", "--stream", "false"});
  EXPECT_EQ(ran.exit_code, kExitOk) << ran.said;
  EXPECT_GT(ran.report.find("num_ok")->as_int(), 2);
  EXPECT_TRUE(ran.report.find("ttft_ms")->is_null());
  EXPECT_GE(ran.report.find("duration_s")->as_double(), 0.15);
}

TEST(BenchServeTest, Transcriptions) {
  FakeOpenAi server;
  const TestFolder folder;
  folder.write("a.mp3", "sound a");
  folder.write("b.mp3", "sound b");
  const Ran ran = run({server.url(), "--audio", folder.path() + "/a.mp3", folder.path() + "/b.mp3", "--num-prompts",
                       "4", "--max-concurrency", "1", "--warmup", "0"});
  EXPECT_EQ(ran.exit_code, kExitOk) << ran.said;
  EXPECT_THAT(ran.said, HasSubstr("cannot be made unique"));
  EXPECT_FALSE(ran.report.find("settings")->find("unique_inputs")->as_bool());
  EXPECT_EQ(ran.report.find("output_tokens")->as_int(), 16);
  const std::vector<std::string> posts = server.posts();
  ASSERT_EQ(posts.size(), 4u);
  EXPECT_THAT(posts[2], HasSubstr("sound a"));
  EXPECT_THAT(posts[3], HasSubstr("sound b"));
}

TEST(BenchServeTest, InputFiles) {
  FakeOpenAi server;
  const TestFolder folder;
  folder.write("lines.txt", "first line\r\n\nsecond line");
  folder.write("bodies.jsonl", "{\"prompt\": \"third\", \"n\": 2}\n");
  for (const char* name : {"/lines.txt", "/bodies.jsonl"}) {
    EXPECT_EQ(run({server.url(), "--input", folder.path() + name, "--num-prompts", "2", "--max-concurrency", "1",
                   "--warmup", "0"})
                  .exit_code,
              kExitOk);
  }
  const std::vector<std::string> posts = server.posts();
  ASSERT_EQ(posts.size(), 4u);
  EXPECT_THAT(posts[0], HasSubstr(" first line\""));
  EXPECT_THAT(posts[1], HasSubstr(" second line\""));
  EXPECT_THAT(posts[2], HasSubstr(" third\", \"n\": 2"));
}

TEST(BenchServeTest, AServerThatIsNotThereIsAMistakeOfUsage) {
  std::string url;
  { url = FakeOpenAi().url(); }
  const Ran ran = run({url});
  EXPECT_EQ(ran.exit_code, kExitUsage);
  EXPECT_THAT(ran.said, HasSubstr("cannot connect to 127.0.0.1"));
}

TEST(BenchServeTest, WhatFlagsRefuse) {
  const TestFolder folder;
  folder.write("empty.txt", "\n \n");
  folder.write("bad.jsonl", "{}\n[]\n");
  const std::string empty = folder.path() + "/empty.txt", bad = folder.path() + "/bad.jsonl";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "expected: transept bench serve URL"},
      {{"localhost:8000"}, "expected http://"},
      {{"http://h?x"}, "expected no query"},
      {{"http://h", "more"}, "unexpected argument more"},
      {{"http://h", "--endpoint", "chat"}, "--endpoint chat: one of"},
      {{"http://h", "--endpoint", "transcriptions"}, "Give --audio"},
      {{"http://h", "--endpoint", "completions", "--audio", "x"}, "--audio does not go with completions"},
      {{"http://h", "--audio", "x", "--input-len", "3"}, "--input-len does not go with transcriptions"},
      {{"http://h", "--audio", folder.path() + "/none.wav"}, "none.wav"},
      {{"http://h", "--input", empty}, "nothing but blank lines"},
      {{"http://h", "--input", bad}, "bad.jsonl:2: expected a JSON object"},
      {{"http://h", "--input", bad, "--input-len", "2"}, "--input-len is of prompts"},
      {{"http://h", "--extra-body", "[1]"}, "--extra-body: expected a JSON object"},
      {{"http://h", "--extra-body", "{\"stream\": true}"}, "--stream"},
      {{"http://h", "--request-rate", "0"}, "or inf"},
      {{"http://h", "--request-rate", "fast"}, "--request-rate fast"},
      {{"http://h", "--max-concurrency", "1025"}, "--max-concurrency 1025"},
      {{"http://h", "--duration", "5"}, "--duration needs"},
      {{"http://h", "--num-prompts", "0"}, "--num-prompts 0"},
      {{"http://h", "--output-len", "5-"}, "--output-len 5-"},
      {{"http://h", "--output-len", "5-4"}, "--output-len 5-4"},
      {{"http://h", "--output-len", "1-2-3"}, "--output-len 1-2-3"},
      {{"http://h", "--output-len", "0"}, "--output-len 0"},
      {{"http://h", "--goodput", "itl:3"}, "--goodput"},
      {{"http://h", "--goodput", "e2el:3", "ttft:3", "--stream", "false"}, "need --stream true"},
      {{"http://h", "--timeout", "0"}, "--timeout 0"},
  };
  for (const auto& [arguments, message] : cases) {
    const Flags flags = Flags::parse(bench_serve_flags(), arguments).value();
    EXPECT_THAT(error_message(bench_serve_settings(flags).status()), HasSubstr(message)) << message;
  }
}

TEST(BenchServeTest, LengthsAndLoops) {
  const auto settings = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "http://h");
    return bench_serve_settings(Flags::parse(bench_serve_flags(), arguments).value()).value();
  };
  EXPECT_EQ(settings({}).requests.max_output_len, 128);
  EXPECT_EQ(settings({"--output-len", "3-9"}).requests.min_output_len, 3);
  EXPECT_EQ(settings({"--output-len", "3-9"}).requests.max_output_len, 9);
  EXPECT_TRUE(settings({}).plan.is_open_loop);
  EXPECT_TRUE(settings({"--request-rate", "2", "--max-concurrency", "3"}).plan.is_open_loop);
  EXPECT_FALSE(settings({"--max-concurrency", "3"}).plan.is_open_loop);
  EXPECT_EQ(settings({"--max-concurrency", "3"}).plan.num_workers, 3);
  EXPECT_NE(settings({}).plan.seed, settings({}).plan.seed) << "drawn anew";
}

}  // namespace
}  // namespace transept
