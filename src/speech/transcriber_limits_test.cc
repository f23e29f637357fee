// What ends a transcription before it is done: limits that the caller sets, looked at in every pass over the audio and
// in the engine's steps; a queue that is full; an engine that fails or is stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <new>
#include <stop_token>
#include <thread>

#include "rank/gated_executor_testing.h"
#include "speech/transcriber.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

class LimitsTest : public ::testing::Test {
 protected:
  House house_;
};

TEST_F(LimitsTest, AStopFromAnObserverEndsIt) {
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    std::stop_source stop;
    int num_segments = 0;
    TranscribeObserver observer;
    observer.on_segment = [&](const Segment&) {
      ++num_segments;
      stop.request_stop();
    };
    options.batch_size = 2;
    const auto result = house_.transcribe(synthetic_source(21, 600), options, observer, {stop.get_token()});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
    EXPECT_GT(num_segments, 0);
    EXPECT_LT(num_segments, 20);
  }
}

// A caller that finds no memory, say: whatever thread it is called on.
TEST_F(LimitsTest, WhatAnObserverThrowsIsThrownToTheCaller) {
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    TranscribeObserver observer;
    observer.on_segment = [](const Segment&) { throw std::bad_alloc(); };
    options.batch_size = 3;
    EXPECT_THROW((void)house_.transcribe(synthetic_source(21, 200), options, observer), std::bad_alloc);
  }
  EXPECT_TRUE(house_.transcribe(synthetic_source(21, 3), batched_options()).ok());
}

TEST_F(LimitsTest, LimitsThatHaveComeToPassEndTheFirstPass) {
  std::stop_source stop;
  stop.request_stop();
  const int64_t before = house_.num_encoder_runs();
  const AudioSource audio = synthetic_source(21, 3);
  const TranscribeOptions options = greedy_options();
  EXPECT_EQ(house_.transcribe(audio, options, {}, {stop.get_token()}).status().code(), absl::StatusCode::kCancelled);
  const TimePoint now = house_.engine().clock().now();
  EXPECT_EQ(house_.transcribe(audio, options, {}, {.deadline = now}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(house_.transcribe(audio, options, {}, {stop.get_token(), now}).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(house_.num_encoder_runs(), before);
  EXPECT_TRUE(house_.transcribe(audio, options, {}, {.deadline = now + std::chrono::hours(1)}).ok());
}

class GatedTest : public ::testing::Test {
 protected:
  // What threads run must have ended before the engine does.
  ~GatedTest() override { gate_->open(); }

  void build_engine(int32_t max_queued, int32_t max_num_seqs = 64) {
    gate_->open();
    engine_ = nullptr;
    gate_ = std::make_shared<StepGate>();
    LLMEngine::Options engine_options;
    engine_options.scheduler.max_num_seqs = max_num_seqs;
    engine_options.blocks = {.block_size = 16, .num_device_blocks = 2000, .num_host_blocks = 0, .watermark = 0};
    auto engine = std::make_unique<LLMEngine>(engine_options, std::make_unique<GatedExecutor>(gate_), nullptr, clock_);
    engine_ = std::make_unique<AsyncEngine>(std::move(engine), AsyncEngine::Options{max_queued}, clock_);
  }

  // The house's model over an engine whose steps the test lets pass.
  StatusOr<TranscribeResult> transcribe_over_gate(const TranscribeOptions& options,
                                                  const TranscribeLimits& limits = {}) {
    SpeechModel model = house_.speech();
    model.engine = engine_.get();
    return Transcriber(model).transcribe(synthetic_source(1, 90), options, {}, limits);
  }

  // The result, while a step passes every few milliseconds. How many it takes depends on when threads run: one that
  // stands between adding its request and hearing of the stop costs steps. A window takes hundreds, and with them the
  // test would see requests that finished.
  StatusOr<TranscribeResult> expect_ended(std::future<StatusOr<TranscribeResult>>& result) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (result.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready &&
           std::chrono::steady_clock::now() < give_up) {
      gate_->open_for_next();
    }
    EXPECT_EQ(result.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "it waits for more steps";
    gate_->open();
    return result.get();
  }

  House house_;
  FakeClock clock_;
  std::shared_ptr<StepGate> gate_ = std::make_shared<StepGate>();
  std::unique_ptr<AsyncEngine> engine_;
};

TEST_F(GatedTest, AFailureEndsTheTranscription) {
  for (const TranscribeOptions& options : {greedy_options(), batched_options()}) {
    build_engine(512);
    gate_->open_for(5);
    std::thread failing([&] {
      gate_->wait_for_step();
      gate_->fail();
    });
    const auto result = transcribe_over_gate(options);
    failing.join();
    EXPECT_THAT(error_message(result.status()), HasSubstr("the device is gone"));
  }
}

TEST_F(GatedTest, AFullQueueRefusesATranscription) {
  for (const TranscribeOptions& options : {greedy_options(), batched_options()}) {
    build_engine(0);
    gate_->open();
    const auto result = transcribe_over_gate(options);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
  }
}

TEST_F(GatedTest, AQueueThatIsFullLaterDoesNotEndIt) {
  build_engine(/*max_queued=*/1, /*max_num_seqs=*/1);
  auto result = std::async(std::launch::async, [&] { return transcribe_over_gate(batched_options()); });
  gate_->open_for(1);
  gate_->wait_for_step();  // its first window runs
  const auto other = [&](bool is_continuation) {
    RequestSpec spec;
    spec.is_continuation = is_continuation;
    spec.id = engine_->make_id("other-");
    spec.inputs.set_encoder_ids({3});
    spec.inputs.prompt_token_ids = {2};
    return engine_->add_request(std::move(spec));
  };
  const auto waiting = other(true);  // until that window has ended
  EXPECT_TRUE(waiting.ok()) << waiting.status();
  EXPECT_EQ(other(false).status().code(), absl::StatusCode::kResourceExhausted);
  for (int i = 0; i < 100 && engine_->num_queued() < 2; ++i) {
    gate_->open_for(1);
    gate_->wait_for_step();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(engine_->num_queued(), 2) << "its other windows";
  gate_->open();
  const auto ended = result.get();
  EXPECT_TRUE(ended.ok()) << ended.status();
}

TEST_F(GatedTest, AStopAbortsWhatRuns) {
  for (const TranscribeOptions& options : {greedy_options(), batched_options()}) {
    build_engine(512);
    std::stop_source stop;
    auto result = std::async(std::launch::async, [&] { return transcribe_over_gate(options, {stop.get_token()}); });
    gate_->open_for(3);
    gate_->wait_for_step();
    stop.request_stop();
    const auto ended = expect_ended(result);
    EXPECT_EQ(ended.status(), absl::CancelledError("the transcription was cancelled"));
    ASSERT_TRUE(engine_->drain(std::chrono::seconds(60)).ok());
    EXPECT_GE(engine_->snapshot().counts.aborted, 1);
    EXPECT_EQ(engine_->snapshot().counts.finished, 0);
  }
}

// What there is of a window that was aborted is no transcript of it.
TEST_F(GatedTest, AnAbortOfItsRequestEndsIt) {
  build_engine(512);
  auto result = std::async(std::launch::async, [&] { return transcribe_over_gate(greedy_options()); });
  gate_->open_for(3);
  gate_->wait_for_step();
  EXPECT_TRUE(engine_->abort("speech-0").ok());
  EXPECT_EQ(expect_ended(result).status(), absl::CancelledError("the request was aborted"));
}

TEST_F(GatedTest, ADeadlineEndsWhatRuns) {
  for (const TranscribeOptions& options : {greedy_options(), batched_options()}) {
    build_engine(512);
    const TimePoint deadline = clock_.now() + std::chrono::seconds(3);
    auto result = std::async(std::launch::async, [&] { return transcribe_over_gate(options, {.deadline = deadline}); });
    gate_->open_for(3);
    gate_->wait_for_step();
    clock_.advance(std::chrono::seconds(4));
    const auto ended = expect_ended(result);
    EXPECT_EQ(ended.status(), absl::DeadlineExceededError("the transcription was not finished before its deadline"));
    ASSERT_TRUE(engine_->drain(std::chrono::seconds(60)).ok());
    EXPECT_GE(engine_->snapshot().counts.expired, 1);
    EXPECT_EQ(engine_->snapshot().counts.finished, 0);
  }
}

TEST_F(GatedTest, AnEngineThatIsStoppedEndsIt) {
  build_engine(512);
  gate_->open_for(5);
  std::thread stopping([&] {
    gate_->wait_for_step();
    std::thread stop([&] { engine_->stop(); });
    gate_->open();
    stop.join();
  });
  const auto result = transcribe_over_gate(batched_options());
  stopping.join();
  if (!result.ok()) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << result.status();
  }
}

}  // namespace
}  // namespace transept::testing
