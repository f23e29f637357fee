// Several threads, several models, callbacks of the engine's thread, and the end of a model with requests in flight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "capi/capi_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

class ModelsAndThreads : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = load_model(model_dir("bart-float32")).release();
    set_log_level(LogLevel::kError);
  }
  static void TearDownTestSuite() { FreeHandle()(model_); }

  static transept_model* model_;
  CallError error_;
};
transept_model* ModelsAndThreads::model_ = nullptr;

// ---- on_ready

struct OnReady {
  std::atomic<int> num_calls = 0;
  std::atomic<transept_stream*> stream = nullptr;
  transept_model* model = nullptr;
  std::atomic<transept_code> waiting = TRANSEPT_OK;
  transept_code stopping = TRANSEPT_OK, freeing = TRANSEPT_OK, generating = TRANSEPT_OK;
  transept_code draining = TRANSEPT_OK, encoding = TRANSEPT_OK;

  static void call(void* data) {
    auto& self = *static_cast<OnReady*>(data);
    if (self.num_calls++ > 0) return;
    const transept_request request = {sizeof request};
    transept_result* result = nullptr;
    transept_encoded* encoded = nullptr;
    self.stopping = transept_model_stop(self.model, nullptr);
    self.freeing = transept_model_free(self.model, nullptr);
    self.generating = transept_generate(self.model, &request, &result, nullptr);
    self.draining = transept_model_drain(self.model, 1, nullptr);
    self.encoding = transept_encode(self.model, &request, &encoded, nullptr);
    while (self.stream == nullptr) std::this_thread::yield();
    self.waiting = transept_stream_next(self.stream, -1, &result, nullptr);
  }
};

TEST_F(ModelsAndThreads, OnReadyMayNotWait) {
  OnReady ready;
  ready.model = model_;
  transept_request request = request_of(kLong);
  request.on_ready = OnReady::call;
  request.on_ready_data = &ready;
  const Owned<transept_stream> stream = submit(model_, request);
  ready.stream = stream.get();
  while (ready.waiting == TRANSEPT_OK) std::this_thread::yield();
  transept_result* result = nullptr;
  ASSERT_EQ(transept_stream_next(stream.get(), -1, &result, error_.out()), TRANSEPT_OK) << error_.message();
  const Owned<transept_result> owner(result);
  for (const transept_code code :
       {ready.waiting.load(), ready.stopping, ready.freeing, ready.generating, ready.draining, ready.encoding}) {
    EXPECT_EQ(code, TRANSEPT_FAILED_PRECONDITION);
  }
  EXPECT_GE(ready.num_calls, 1);
}

// ---- Several threads, models, ends

TEST_F(ModelsAndThreads, ThreadsShareAModel) {
  const std::vector<Json> requests = golden_lines("bart-float32/requests.jsonl");
  const std::vector<Json> expected = golden_lines("bart-float32/expected.jsonl");
  std::vector<std::string> lines;
  lines.reserve(requests.size());
  for (const Json& request : requests) lines.push_back(request.dump());
  std::atomic<size_t> next = 0, num_wrong = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < 2 * lines.size(); at = next++) {
        const Owned<transept_result> result = generate(model_, lines[at % lines.size()]);
        num_wrong += our_ids(result.get()) != wanted_ids(expected[at % lines.size()]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0u);
}

TEST_F(ModelsAndThreads, AStreamHasOneReader) {
  HeldEngine engine(model_);
  const transept_request request = request_of(kLong);
  const Owned<transept_stream> stream = submit(model_, request);
  std::atomic<int> num_refused = 0;
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    transept_result* result = nullptr;
    while (!is_over) {
      num_refused += transept_stream_next(stream.get(), 0, &result, nullptr) == TRANSEPT_FAILED_PRECONDITION;
      if (num_refused == 1) engine.release.open();
      if (num_refused > 0) break;
    }
  });
  transept_result* result = nullptr;
  transept_code code = TRANSEPT_FAILED_PRECONDITION;  // when the other was first for a moment
  while (code == TRANSEPT_FAILED_PRECONDITION) {
    code = transept_stream_next(stream.get(), -1, &result, error_.out());
  }
  EXPECT_EQ(code, TRANSEPT_OK);
  const Owned<transept_result> owner(result);
  is_over = true;
  other.join();
  EXPECT_EQ(num_refused, 1);
}

TEST_F(ModelsAndThreads, AFullQueueRefuses) {
  const Owned<transept_model> model = load_model(model_dir("bart-float32"), "{}", 1);
  HeldEngine engine(model.get());
  const transept_request request = request_of(kLong);
  const Owned<transept_stream> first = submit(model.get(), request);
  transept_stream* second = nullptr;
  EXPECT_EQ(transept_submit(model.get(), &request, &second, error_.out()), TRANSEPT_RESOURCE_EXHAUSTED);
  EXPECT_THAT(error_.message(), HasSubstr("limit is 1"));
  EXPECT_EQ(second, nullptr);
  engine.release.open();
}

TEST_F(ModelsAndThreads, StoppingEndsWhatIsInFlight) {
  Owned<transept_model> model = load_model(model_dir("bart-float32"));
  HeldEngine engine(model.get());
  const transept_request request = request_of(kLong);
  Owned<transept_stream> stream = submit(model.get(), request);
  transept_code waited = TRANSEPT_OK, stopped = TRANSEPT_INTERNAL;
  std::thread waiter([&] {
    transept_result* result = nullptr;
    waited = transept_generate(model.get(), &request, &result, nullptr);
  });
  std::thread stopper([&] { stopped = transept_model_stop(model.get(), nullptr); });
  transept_stream* refused = nullptr;
  while (transept_submit(model.get(), &request, &refused, error_.out()) == TRANSEPT_OK) {
    transept_stream_free(refused);  // the stopper has not come so far
    std::this_thread::yield();
  }
  EXPECT_EQ(error_.code(), TRANSEPT_UNAVAILABLE);
  engine.release.open();
  waiter.join();
  stopper.join();
  EXPECT_EQ(waited, TRANSEPT_UNAVAILABLE);
  EXPECT_EQ(stopped, TRANSEPT_OK);
  transept_result* result = nullptr;
  EXPECT_EQ(transept_stream_next(stream.get(), -1, &result, error_.out()), TRANSEPT_UNAVAILABLE);

  EXPECT_EQ(transept_model_stop(model.get(), error_.out()), TRANSEPT_OK) << "twice is once";
  int32_t* ids = nullptr;
  size_t num_ids = 0;
  EXPECT_EQ(transept_tokenize(model.get(), {"a", 1}, nullptr, &ids, &num_ids, error_.out()), TRANSEPT_OK);
  transept_free(ids);
  char* stats = nullptr;
  EXPECT_EQ(transept_model_stats(model.get(), &stats, error_.out()), TRANSEPT_OK);
  transept_free(stats);
  transept_encoded* encoded = nullptr;
  EXPECT_EQ(transept_encode(model.get(), &request, &encoded, error_.out()), TRANSEPT_UNAVAILABLE);
}

TEST_F(ModelsAndThreads, DrainingWaitsAndRefuses) {
  const Owned<transept_model> model = load_model(model_dir("bart-float32"));
  HeldEngine engine(model.get());
  const transept_request request = request_of(kLong);
  const Owned<transept_stream> in_flight = submit(model.get(), request);
  EXPECT_EQ(transept_model_drain(model.get(), 0.01, error_.out()), TRANSEPT_DEADLINE_EXCEEDED);
  transept_stream* refused = nullptr;
  EXPECT_EQ(transept_submit(model.get(), &request, &refused, error_.out()), TRANSEPT_UNAVAILABLE);
  engine.release.open();
  EXPECT_EQ(transept_model_drain(model.get(), 60, error_.out()), TRANSEPT_OK) << error_.message();
  transept_result* result = nullptr;
  EXPECT_EQ(transept_stream_next(in_flight.get(), 0, &result, error_.out()), TRANSEPT_OK);
  const Owned<transept_result> owner(result);
  EXPECT_NE(result, nullptr) << "drained before its end";
  EXPECT_EQ(transept_model_drain(model.get(), -1, error_.out()), TRANSEPT_INVALID_ARGUMENT);
}

// Freed while a thread streams: that call ends, and what it was given stays.
TEST_F(ModelsAndThreads, FreeingWaitsForCallsAndLeavesTheirHandles) {
  Owned<transept_model> model = load_model(model_dir("bart-float32"));
  const Owned<transept_result> kept =
      generate(model.get(), std::string(R"({"prompt": "a", "max_tokens": 3, "logprobs": 2})"));
  const std::string before = json_of(kept.get()).dump();
  const transept_request input = request_of(R"({"prompt": "a"})");
  transept_encoded* encoded = nullptr;
  ASSERT_EQ(transept_encode(model.get(), &input, &encoded, nullptr), TRANSEPT_OK);
  const Owned<transept_encoded> encoded_owner(encoded);
  transept_request streamed = request_of(kLong);
  streamed.flags = TRANSEPT_REQUEST_STREAM;
  const Owned<transept_stream> stream = submit(model.get(), streamed);

  struct Streaming {
    Gate begun, go_on;
    std::atomic<bool> has_left = false;
    static int32_t take(void* data, const transept_result*) {
      auto& self = *static_cast<Streaming*>(data);
      self.begun.open();
      self.go_on.wait();
      self.has_left = true;
      return 0;
    }
  } streaming;
  transept_code ended = TRANSEPT_INTERNAL;
  std::thread streamer([&, handle = model.get()] {
    const transept_request request = request_of(kLong);
    transept_result* result = nullptr;
    ended = transept_generate_stream(handle, &request, Streaming::take, &streaming, &result, nullptr);
    transept_result_free(result);
  });
  streaming.begun.wait();
  std::thread freer([handle = model.release()] { FreeHandle()(handle); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  streaming.go_on.open();
  freer.join();
  EXPECT_TRUE(streaming.has_left) << "freed while a call ran";
  streamer.join();
  EXPECT_TRUE(ended == TRANSEPT_UNAVAILABLE || ended == TRANSEPT_OK) << ended;

  EXPECT_EQ(json_of(kept.get()).dump(), before);
  EXPECT_GT(transept_encoded_num_positions(encoded), 0);
  transept_code code = TRANSEPT_OK;
  while (code == TRANSEPT_OK && transept_stream_has_ended(stream.get()) == 0) {
    transept_result* piece = nullptr;
    code = transept_stream_next(stream.get(), -1, &piece, error_.out());
    transept_result_free(piece);
  }
  EXPECT_TRUE(code == TRANSEPT_UNAVAILABLE || code == TRANSEPT_OK) << error_.message();
}

TEST_F(ModelsAndThreads, ACallbackMayUseAModelButNotFreeIt) {
  struct Freeing {
    transept_model* model;
    transept_code freed = TRANSEPT_OK;
    size_t num_inner = 0;
    static int32_t take(void* data, const transept_result*) {
      auto& self = *static_cast<Freeing*>(data);
      self.freed = transept_model_free(self.model, nullptr);
      self.num_inner +=
          token_ids(generate(self.model, std::string(R"({"prompt": "a", "max_tokens": 1})")).get()).size();
      return 1;
    }
  } freeing{model_};
  const transept_request request = request_of(kLong);
  EXPECT_EQ(transept_generate_stream(model_, &request, Freeing::take, &freeing, nullptr, error_.out()), TRANSEPT_OK);
  EXPECT_EQ(freeing.freed, TRANSEPT_FAILED_PRECONDITION);
  EXPECT_EQ(freeing.num_inner, 1u);
}

TEST_F(ModelsAndThreads, ACallbackMayStopTheModel) {
  struct Stopping {
    transept_model* model;
    static int32_t take(void* data, const transept_result*) {
      EXPECT_EQ(transept_model_stop(static_cast<Stopping*>(data)->model, nullptr), TRANSEPT_OK);
      return 0;
    }
  };
  const Owned<transept_model> model = load_model(model_dir("bart-float32"));
  Stopping stopping{model.get()};
  const transept_request request = request_of(kLong);
  const transept_code code =
      transept_generate_stream(model.get(), &request, Stopping::take, &stopping, nullptr, error_.out());
  EXPECT_TRUE(code == TRANSEPT_UNAVAILABLE || code == TRANSEPT_OK) << error_.message();
}

TEST_F(ModelsAndThreads, ModelsLiveBesideEachOther) {
  const Owned<transept_model> other = load_model(model_dir("t5-float32"), R"({"replicas": 2})");
  const std::vector<Json> requests = golden_lines("t5-float32/requests.jsonl");
  const std::vector<Json> expected = golden_lines("t5-float32/expected.jsonl");
  std::thread first([&] {
    for (int i = 0; i < 5; ++i) generate(model_, std::string(kLong));
  });
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(our_ids(generate(other.get(), requests[i].dump()).get()), wanted_ids(expected[i]));
  }
  first.join();
}

}  // namespace
}  // namespace transept::testing
