// 64 threads add, read slowly, abort and drop as they like, for a few seconds, or for TRANSEPT_STRESS_SECONDS. Proves
// that nothing is lost (every stream ends, once), nothing crossed (every answer is the one foretold for its request)
// and nothing left (blocks, requests). Meant for ThreadSanitizer and AddressSanitizer as well.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

#include "async/async_engine.h"
#include "async/async_engine_testing.h"
#include "base/strings.h"
#include "engine/stream_deltas.h"

namespace transept {
namespace {

using namespace std::chrono_literals;
using testing::FakeExecutor;

constexpr int kNumThreads = 64;
constexpr int32_t kMaxQueued = 48;  // fewer than threads, so that the queue is full at times

double stress_seconds() {
  const char* text = std::getenv("TRANSEPT_STRESS_SECONDS");
  return text == nullptr ? 2.0 : std::strtod(text, nullptr);
}

struct Counts {
  std::atomic<int64_t> added{0}, refused{0}, whole{0}, aborted{0}, expired{0}, dropped{0}, pieces{0}, calls{0};
};

std::unique_ptr<AsyncEngine> make_engine(int num_replicas, const Clock& clock) {
  LLMEngine::Options options = testing::small_engine_options(64);
  options.scheduler.max_num_batched_tokens = 128;
  options.scheduler.max_num_seqs = 24;
  options.blocks.num_device_blocks = 96;  // preemption is usual
  std::vector<std::unique_ptr<LLMEngine>> engines;
  engines.reserve(static_cast<size_t>(num_replicas));
  for (int i = 0; i < num_replicas; ++i) {
    engines.push_back(std::make_unique<LLMEngine>(options, std::make_unique<FakeExecutor>(), nullptr, clock));
  }
  return std::make_unique<AsyncEngine>(std::move(engines), AsyncEngine::Options{kMaxQueued}, clock);
}

// One caller: its requests are its own, so it can tell whose answer it got.
class Caller final {
 public:
  Caller(AsyncEngine& engine, const Clock& clock, Counts& counts, int index)
      : engine_(engine), clock_(clock), counts_(counts), index_(index), random_(static_cast<uint64_t>(index) + 1) {}

  void run(TimePoint end) {
    while (clock_.now() < end) one_request();
  }

 private:
  void one_request() {
    const int32_t marker = index_ * 1000000 + static_cast<int32_t>(num_requests_++ % 1000000);
    RequestSpec spec;
    spec.id = str_cat("t", index_, "-", num_requests_ % 3);  // ids come again and again
    spec.inputs.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(1 + random_() % 9), marker));
    spec.inputs.prompt_token_ids = {2};
    spec.params.max_tokens = 1 + static_cast<int32_t>(random_() % 24);
    spec.params.n = 1 + static_cast<int32_t>(random_() % 4 == 0) * 2;
    spec.params.seed = static_cast<uint64_t>(marker);
    spec.params.logprobs = 0;
    spec.stream = random_() % 2 == 0;
    if (random_() % 8 == 0) spec.deadline = clock_.now() + std::chrono::microseconds(random_() % 3000);
    auto num_calls = std::make_shared<std::atomic<int64_t>>(0);
    if (random_() % 2 == 0) spec.on_ready = [num_calls] { ++*num_calls; };
    const bool is_called = spec.on_ready != nullptr;
    if (random_() % 4 == 0) {  // over a handle: one of its own, or the one that it had before
      if (random_() % 2 == 0 || !handle_.has_value()) {
        StatusOr<EncodedInput> handle = engine_.encode(spec.inputs).get();
        ASSERT_TRUE(handle.ok()) << handle.status();
        handle_ = std::move(*handle);
      }
      spec.encoded = handle_;
      spec.inputs.items = handle_.items();
    }
    const RequestSpec asked = spec;

    StatusOr<RequestStream> stream = engine_.add_request(std::move(spec));
    if (!stream.ok()) {
      // A stream that was let go keeps its id until the step under way is done.
      if (dropped_.contains(asked.id) && error_param(stream.status()) == "id") return;
      ASSERT_EQ(stream.status().code(), absl::StatusCode::kResourceExhausted) << stream.status();
      ++counts_.refused;
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 2000));
      return;
    }
    ++counts_.added;
    dropped_.erase(asked.id);
    const uint64_t habit = random_() % 8;
    if (habit == 0) {
      pause();
      ++counts_.dropped;
      dropped_.insert(asked.id);
      return;  // the stream is let go, ended or not
    }
    if (habit == 1) {
      pause();
      if (random_() % 2 == 0)
        stream->abort();
      else
        (void)engine_.abort(asked.id);  // gone already: kNotFound
    }
    read(*stream, asked);
    { const RequestStream done = std::move(stream).value(); }  // no call is under way after this
    if (is_called) {
      ASSERT_GE(num_calls->load(), 1) << "nobody called at the end";
      counts_.calls += num_calls->load();
    }
  }

  // Reads to the end, in its own time, and compares.
  void read(RequestStream& stream, const RequestSpec& asked) {
    RequestOutput whole;
    while (!whole.finished) {
      if (random_() % 4 == 0) pause();
      std::optional<StatusOr<RequestOutput>> output = stream.next_for(60s);
      ASSERT_TRUE(output.has_value()) << asked.id << " is lost";
      if (!output->ok()) {
        ASSERT_EQ(output->status().code(), absl::StatusCode::kDeadlineExceeded) << output->status();
        ASSERT_TRUE(asked.deadline.has_value());
        check_tokens(whole, asked, false);
        ++counts_.expired;
        ASSERT_TRUE(stream.has_ended());
        return;
      }
      ASSERT_EQ((*output)->request_id, asked.id);
      ASSERT_TRUE(asked.stream || (*output)->finished);
      ++counts_.pieces;
      merge_delta(whole, std::move(**output));
    }
    ASSERT_TRUE(stream.has_ended());
    ASSERT_EQ(whole.encoder_prompt_token_ids, asked.inputs.encoder_token_ids()) << "another's answer";
    const bool is_aborted = whole.outputs.at(0).finish_reason == FinishReason::kAbort;
    ASSERT_EQ(whole.error, "");
    check_tokens(whole, asked, !is_aborted);
    ++(is_aborted ? counts_.aborted : counts_.whole);
  }

  static void check_tokens(const RequestOutput& output, const RequestSpec& asked, bool is_whole) {
    if (is_whole) {
      ASSERT_EQ(output.outputs.size(), static_cast<size_t>(asked.params.n));
    }
    for (const CompletionOutput& completion : output.outputs) {
      if (is_whole) {
        ASSERT_EQ(completion.token_ids.size(), static_cast<size_t>(asked.params.max_tokens));
      }
      ASSERT_LE(completion.token_ids.size(), static_cast<size_t>(asked.params.max_tokens));
      if (completion.token_ids.empty()) continue;  // aborted before its first step
      ASSERT_EQ(completion.logprobs.value().size(), completion.token_ids.size());
      for (size_t i = 0; i < completion.token_ids.size(); ++i) {
        ASSERT_EQ(completion.token_ids[i],
                  FakeExecutor::token(asked.params.seed, completion.index, static_cast<uint32_t>(i)));
        ASSERT_EQ((*completion.logprobs)[i].at(0).token_id, completion.token_ids[i]);
      }
    }
  }

  void pause() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1500)); }

  AsyncEngine& engine_;
  const Clock& clock_;
  Counts& counts_;
  int index_;
  std::mt19937_64 random_;
  int64_t num_requests_ = 0;
  std::set<std::string> dropped_;
  EncodedInput handle_;
};

void expect_idle(const LLMEngine& engine) {
  const BlockSpaceManager& blocks = engine.scheduler().blocks();
  EXPECT_EQ(blocks.get_num_free_device_blocks(), blocks.num_device_blocks());
  EXPECT_EQ(blocks.get_num_free_host_blocks(), blocks.num_host_blocks());
  EXPECT_EQ(engine.num_unfinished_requests(), 0u);
  EXPECT_TRUE(engine.scheduler().check_invariants().ok());
}

class AsyncEngineStressTest : public ::testing::TestWithParam<int> {};  // replicas

TEST_P(AsyncEngineStressTest, NothingLostNothingCrossedNothingLeft) {
  const SteadyClock clock;
  const std::unique_ptr<AsyncEngine> engine = make_engine(GetParam(), clock);
  Counts counts;
  const TimePoint end =
      clock.now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(stress_seconds()));
  std::vector<std::thread> threads;
  threads.reserve(kNumThreads);
  for (int i = 0; i < kNumThreads; ++i) {
    threads.emplace_back([&, i] { Caller(*engine, clock, counts, i).run(end); });
  }
  std::thread watcher([&] {  // what /metrics and /debug/state do
    while (clock.now() < end) {
      const EngineSnapshot snapshot = engine->snapshot();
      const EngineSnapshot::Blocks& blocks = snapshot.blocks;
      EXPECT_EQ(blocks.free + blocks.self + blocks.cross + blocks.pinned, blocks.total);
      EXPECT_LE(snapshot.num_queued, kMaxQueued);
      EXPECT_LE(snapshot.running.size(), 24u * static_cast<size_t>(GetParam()));
      std::this_thread::sleep_for(1ms);
    }
  });
  for (std::thread& thread : threads) thread.join();
  watcher.join();

  ASSERT_TRUE(engine->drain(60s).ok());
  const EngineSnapshot last = engine->snapshot();
  EXPECT_EQ(last.counts.finished + last.counts.aborted + last.counts.expired, counts.added);
  EXPECT_EQ(last.counts.failed, 0);
  EXPECT_EQ(last.counts.refused, counts.refused);
  // Of dropped ones only the engine knows how they ended.
  EXPECT_EQ(counts.whole + counts.aborted + counts.expired + counts.dropped, counts.added);
  EXPECT_LE(counts.whole, last.counts.finished);
  EXPECT_LE(counts.expired, last.counts.expired);
  EXPECT_GT(counts.whole, 0);

  for (const std::unique_ptr<LLMEngine>& left : engine->stop_all()) expect_idle(*left);
  std::cout << counts.added << " requests: " << counts.whole << " whole, " << counts.aborted << " aborted, "
            << counts.expired << " expired, " << counts.dropped << " dropped; " << counts.refused << " refused; "
            << counts.pieces << " pieces, " << counts.calls << " calls; " << last.stats.num_steps << " steps, "
            << last.stats.num_preemptions << " preemptions\n";
}

INSTANTIATE_TEST_SUITE_P(Replicas, AsyncEngineStressTest, ::testing::Values(1, 3),
                         [](const auto& test) { return str_cat("of_", test.param); });

}  // namespace
}  // namespace transept
