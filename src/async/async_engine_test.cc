// Proves the engine's thread: whoever asks is answered, once, by the right answer; aborts, deadlines, a full queue, a
// failing executor and the end of the engine reach exactly those whom they concern; nothing stays.
#include "async/async_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "async/async_engine_testing.h"
#include "engine/stream_deltas.h"
#include "rank/gated_executor_testing.h"

namespace transept {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::FakeExecutor;
using testing::foretold;
using testing::GatedExecutor;
using ::testing::HasSubstr;
using testing::make_spec;
using testing::StepGate;
using Code = absl::StatusCode;

class AsyncEngineTest : public ::testing::Test {
 protected:
  AsyncEngineTest() { rebuild(16, 64); }

  // Whatever a test leaves: the engine ends, and no block is in use.
  ~AsyncEngineTest() override {
    gate_->open();
    if (engine_ != nullptr) stop();
  }

  void rebuild(int32_t max_num_seqs, int32_t max_queued, bool shares_inputs = false) {
    gate_->open();
    engine_ = nullptr;
    gate_ = std::make_shared<StepGate>();
    LLMEngine::Options options = testing::small_engine_options();
    options.scheduler.max_num_seqs = max_num_seqs;
    options.blocks.share_identical_inputs = shares_inputs;
    auto engine = std::make_unique<LLMEngine>(options, std::make_unique<GatedExecutor>(gate_), nullptr, clock_);
    engine_ = std::make_unique<AsyncEngine>(std::move(engine), AsyncEngine::Options{max_queued}, clock_);
  }

  void stop() {
    const std::unique_ptr<LLMEngine> engine = engine_->stop();
    testing::expect_nothing_left(*engine);
    engine_ = nullptr;
  }

  RequestStream add(RequestSpec spec) { return testing::add_request(*engine_, std::move(spec)); }
  RequestStream add(const std::string& id, int32_t max_tokens, uint64_t seed) {
    return add(make_spec(id, max_tokens, seed));
  }

  // One step and no more has been finished and told since the last call.
  void run_steps(int64_t count) {
    gate_->wait_for_step();
    gate_->open_for(count);
    gate_->wait_for_step();
  }

  FakeClock clock_;
  std::shared_ptr<StepGate> gate_ = std::make_shared<StepGate>();
  std::unique_ptr<AsyncEngine> engine_;
};

TEST_F(AsyncEngineTest, AnswersEveryStreamWithItsOwnAnswer) {
  gate_->open();
  std::vector<RequestStream> streams;
  streams.reserve(40);
  for (uint64_t i = 0; i < 40; ++i) streams.push_back(add(str_cat("r", i), 3 + static_cast<int32_t>(i % 9), i));
  for (uint64_t i = 40; i-- > 0;) {
    EXPECT_EQ(streams[i].request_id(), str_cat("r", i));
    EXPECT_FALSE(streams[i].has_ended());
    const StatusOr<RequestOutput> output = streams[i].next();
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->request_id, str_cat("r", i));
    EXPECT_TRUE(output->finished);
    EXPECT_EQ(output->outputs[0].token_ids, foretold(i, 3 + static_cast<int32_t>(i % 9)));
    EXPECT_TRUE(streams[i].has_ended());
  }
}

TEST_F(AsyncEngineTest, WaitsNoLongerThanAsked) {
  RequestStream stream = add("a", 3, 1);
  EXPECT_FALSE(stream.try_next().has_value());
  EXPECT_FALSE(stream.next_for(5ms).has_value());
  gate_->open();
  EXPECT_TRUE(stream.next().ok());
  EXPECT_EQ(stream.next().status().code(), Code::kFailedPrecondition);
}

TEST_F(AsyncEngineTest, TheTimeInTheQueueCountsFromTheCall) {
  RequestStream first = add("a", 1, 1);
  gate_->wait_for_step();
  RequestStream second = add("b", 1, 2);  // the engine takes it after the step that is under way
  clock_.advance(2s);
  gate_->open();
  EXPECT_DOUBLE_EQ(second.next()->metrics.queue_s, 2.0);
}

TEST_F(AsyncEngineTest, WhatCannotFitIsToldThroughTheStream) {
  gate_->open();
  RequestStream stream = add("big", 1000, 1);
  const StatusOr<RequestOutput> output = stream.next();
  EXPECT_EQ(output.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(error_param(output.status()), "max_tokens");
  EXPECT_THAT(error_message(output.status()), HasSubstr("64"));
  EXPECT_TRUE(stream.has_ended());
  EXPECT_EQ(engine_->snapshot().counts.failed, 1);
}

// ---- Ids

TEST_F(AsyncEngineTest, AnIdInFlightIsRefusedAndFreeAtTheEnd) {
  RequestStream first = add("a", 2, 1);
  const StatusOr<RequestStream> second = engine_->add_request(make_spec("a", 2, 1));
  EXPECT_EQ(error_param(second.status()), "id");
  gate_->open();
  for (uint64_t round = 0; round < 200; ++round) {  // whoever reads the end may use the id at once
    ASSERT_TRUE(first.next().ok());
    first = add("a", 2, round);
  }
}

TEST_F(AsyncEngineTest, AnOldStreamDoesNotAbortANewRequestOfItsId) {
  RequestStream first = add("a", 1, 1);
  gate_->wait_for_step();
  RequestStream keep_running = add("b", 4, 2);
  gate_->open_for(1);
  gate_->wait_for_step();  // "a" has ended, and nobody has read it
  RequestStream second = add("a", 2, 7);
  first.abort();
  { const RequestStream dropped = std::move(first); }
  gate_->open();
  EXPECT_EQ(second.next()->outputs[0].token_ids, foretold(7, 2));
}

// ---- Aborting

TEST_F(AsyncEngineTest, AbortBeforeTheEngineTakesIt) {
  RequestStream running = add("a", 9, 1);
  gate_->wait_for_step();
  RequestStream stream = add("b", 9, 2);
  EXPECT_TRUE(engine_->abort("b").ok());
  EXPECT_TRUE(engine_->abort("b").ok());  // twice is once
  run_steps(1);
  const StatusOr<RequestOutput> output = stream.next();
  ASSERT_TRUE(output.ok());
  EXPECT_TRUE(output->finished);
  EXPECT_EQ(output->outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_TRUE(output->outputs[0].token_ids.empty());
  gate_->open();
  EXPECT_EQ(running.next()->outputs[0].token_ids, foretold(1, 9)) << "a neighbour was touched";
  EXPECT_EQ(engine_->snapshot().counts.aborted, 1);
}

TEST_F(AsyncEngineTest, AbortWhileItRuns) {
  RequestStream stream = add("a", 9, 1);
  RequestStream other = add("b", 9, 2);
  run_steps(2);
  stream.abort();
  gate_->open();
  const StatusOr<RequestOutput> output = stream.next();
  EXPECT_EQ(output->outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_LE(output->outputs[0].token_ids.size(), 3u) << "after the step under way";
  EXPECT_EQ(output->outputs[0].token_ids, foretold(1, static_cast<int32_t>(output->outputs[0].token_ids.size())));
  EXPECT_EQ(other.next()->outputs[0].token_ids, foretold(2, 9));
}

TEST_F(AsyncEngineTest, AbortAfterTheEndIsNotFoundAndChangesNothing) {
  gate_->open();
  RequestStream stream = add("a", 2, 1);
  ASSERT_TRUE(engine_->drain(60s).ok());
  EXPECT_EQ(engine_->abort("a").code(), Code::kNotFound);
  stream.abort();
  EXPECT_EQ(stream.next()->outputs[0].finish_reason, FinishReason::kLength);
  EXPECT_EQ(engine_->abort("never").code(), Code::kNotFound);
}

TEST_F(AsyncEngineTest, LettingGoOfAStreamAbortsItsRequestWithinAStep) {
  RequestStream other = add("b", 9, 2);
  {
    const RequestStream dropped = add("a", 30, 1);
    run_steps(2);
    EXPECT_THAT(engine_->snapshot().running, ElementsAre("b", "a"));
  }
  run_steps(1);
  EXPECT_THAT(engine_->snapshot().running, ElementsAre("b"));
  gate_->open();
  EXPECT_EQ(other.next()->outputs[0].token_ids, foretold(2, 9));
  EXPECT_EQ(engine_->snapshot().counts.aborted, 1);
}

TEST_F(AsyncEngineTest, AMovedStreamGoesOn) {
  RequestStream first = add("a", 2, 1);
  RequestStream second = std::move(first);
  RequestStream third = add("b", 30, 2);
  third = std::move(second);  // lets "b" go
  gate_->open();
  EXPECT_EQ(third.next()->outputs[0].token_ids, foretold(1, 2));
}

// ---- Deadlines

TEST_F(AsyncEngineTest, ADeadlinePassesInTheQueue) {
  gate_->open();
  rebuild(1, 64);  // one sequence at a time
  RequestStream running = add("a", 5, 1);
  RequestSpec hasty = make_spec("b", 5, 2);
  hasty.deadline = clock_.now() + 3s;
  RequestStream waiting = add(std::move(hasty));
  run_steps(1);
  clock_.advance(2s);
  run_steps(1);
  EXPECT_FALSE(waiting.try_next().has_value());
  clock_.advance(2s);
  run_steps(1);
  const StatusOr<RequestOutput> output = *waiting.next_for(60s);
  EXPECT_EQ(output.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(error_message(output.status()), HasSubstr("4 s"));
  EXPECT_THAT(error_message(output.status()), HasSubstr("waited"));
  gate_->open();
  EXPECT_EQ(running.next()->outputs[0].token_ids, foretold(1, 5));
  EXPECT_EQ(engine_->snapshot().counts.expired, 1);
}

TEST_F(AsyncEngineTest, ADeadlinePassesInFlight) {
  RequestStream other = add("b", 9, 2);
  RequestSpec hasty = make_spec("a", 9, 1);
  hasty.deadline = clock_.now() + 1s;
  RequestStream stream = add(std::move(hasty));
  run_steps(3);
  clock_.advance(1500ms);
  run_steps(1);
  const StatusOr<RequestOutput> output = stream.next();
  EXPECT_EQ(output.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(error_message(output.status()), HasSubstr("1.5 s"));
  EXPECT_THAT(error_message(output.status()), HasSubstr("tokens were generated"));
  EXPECT_THAT(engine_->snapshot().running, ElementsAre("b"));
  gate_->open();
  EXPECT_EQ(other.next()->outputs[0].token_ids, foretold(2, 9));
}

TEST_F(AsyncEngineTest, ADeadlineThatIsKeptDoesNothing) {
  gate_->open();
  RequestSpec calm = make_spec("a", 9, 1);
  calm.deadline = clock_.now() + 1s;
  EXPECT_TRUE(add(std::move(calm)).next().ok());
  EXPECT_EQ(engine_->snapshot().counts.expired, 0);
}

// ---- The queue

TEST_F(AsyncEngineTest, AFullQueueRefusesWithBothNumbersAndOpensAgain) {
  gate_->open();
  rebuild(1, 2);
  RequestStream running = add("a", 2, 1);
  run_steps(1);  // "a" has had its first step
  RequestStream one = add("b", 2, 2), two = add("c", 2, 3);
  const StatusOr<RequestStream> refused = engine_->add_request(make_spec("d", 2, 4));
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(error_message(refused.status()), HasSubstr("2 requests wait, and the limit is 2"));
  EXPECT_EQ(engine_->num_queued(), 2);
  EXPECT_EQ(engine_->snapshot().counts.refused, 1);
  run_steps(1);  // "a" ends; the others are still to have their first steps
  EXPECT_FALSE(engine_->add_request(make_spec("d", 2, 4)).ok());
  run_steps(1);  // "b" has had its first
  RequestStream taken = add("d", 2, 4);
  gate_->open();
  EXPECT_EQ(taken.next()->outputs[0].token_ids, foretold(4, 2));
  EXPECT_EQ(two.next()->outputs[0].token_ids, foretold(3, 2));
}

TEST_F(AsyncEngineTest, AContinuationIsTakenByAFullQueueAndCountsInIt) {
  gate_->open();
  rebuild(1, 1);
  RequestStream running = add("a", 2, 1);
  run_steps(1);
  RequestStream waiting = add("b", 2, 2);
  RequestSpec later = make_spec("c", 2, 3);
  ASSERT_EQ(engine_->add_request(later).status().code(), Code::kResourceExhausted);
  later.is_continuation = true;
  RequestStream taken = add(std::move(later));
  EXPECT_EQ(engine_->num_queued(), 2);
  run_steps(2);  // "a" ends, "b" has had its first; "c" fills the queue for others
  EXPECT_EQ(engine_->num_queued(), 1);
  EXPECT_FALSE(engine_->add_request(make_spec("d", 2, 4)).ok());
  gate_->open();
  EXPECT_EQ(taken.next()->outputs[0].token_ids, foretold(3, 2));
  EXPECT_TRUE(waiting.next().ok());
  ASSERT_TRUE(engine_->drain(60s).ok());
  RequestSpec late = make_spec("e", 2, 5);
  late.is_continuation = true;
  EXPECT_EQ(engine_->add_request(std::move(late)).status().code(), Code::kUnavailable) << "drained is drained";
}

// The input is changed as soon as the call is over and while the engine's thread stands in a step: had that thread
// made the digest, the next request with the old values would find nothing to share.
TEST_F(AsyncEngineTest, DigestsAreMadeOnTheCallersThread) {
  rebuild(16, 64, true);
  RequestStream running = add("running", 30, 1);
  gate_->wait_for_step();
  const auto window = [](float value) {
    auto features = std::make_shared<EncoderFeatures>();
    features->shape = {2, 4};
    features->values.assign(8, value);
    features->num_positions = 4;
    return features;
  };
  const auto spec_of = [](const std::string& id, const std::shared_ptr<const EncoderFeatures>& features) {
    RequestSpec spec = make_spec(id, 20, 7);
    spec.inputs.items.clear();
    spec.inputs.set_encoder_features(features);
    return spec;
  };
  const std::shared_ptr<EncoderFeatures> first = window(1), held = window(2);
  RequestStream a = add(spec_of("a", first));
  EncoderDecoderInputs for_handle;
  for_handle.set_encoder_features(held);
  std::future<StatusOr<EncodedInput>> handle = engine_->encode(for_handle);
  first->values.assign(8, 9);
  held->values.assign(8, 8);
  RequestStream b = add(spec_of("b", window(1)));
  gate_->open_for(1);
  StatusOr<EncodedInput> encoded = handle.get();
  ASSERT_TRUE(encoded.ok());
  RequestSpec over_handle = spec_of("c", nullptr);
  over_handle.encoded = *encoded;
  RequestStream c = add(std::move(over_handle));
  RequestStream d = add(spec_of("d", window(2)));
  gate_->open();
  for (RequestStream* stream : {&running, &a, &b, &c, &d}) ASSERT_TRUE(stream->next().ok());
  encoded = EncodedInput();
  const std::unique_ptr<LLMEngine> engine = engine_->stop();
  testing::expect_nothing_left(*engine);
  EXPECT_EQ(engine->stats().num_encoder_cache_hits, 2) << "b found what a brought, and d what the handle holds";
  engine_ = nullptr;
}

TEST_F(AsyncEngineTest, MadeIdsAreEachGivenOnce) {
  std::vector<std::vector<std::string>> made(4);
  std::vector<std::thread> threads;
  threads.reserve(made.size());
  for (auto& ids : made) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) ids.push_back(engine_->make_id("x-"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& ids : made) all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_TRUE(all.contains("x-0") && all.contains("x-1999"));
  EXPECT_EQ(engine_->make_id("y"), "y2000");
  EXPECT_EQ(&engine_->clock(), &clock_);
}

TEST_F(AsyncEngineTest, SnapshotsTellWhoIsWhereAndWhatIsUsed) {
  gate_->open();
  rebuild(2, 64);
  RequestStream a = add("a", 9, 1);
  gate_->wait_for_step();
  RequestStream b = add("b", 9, 2);
  RequestStream c = add("c", 9, 3);
  run_steps(3);
  RequestStream d = add("d", 9, 4);  // not taken yet
  const EngineSnapshot snapshot = engine_->snapshot();
  EXPECT_THAT(snapshot.running, ElementsAre("a", "b"));
  EXPECT_THAT(snapshot.waiting, ElementsAre("c", "d"));
  EXPECT_THAT(snapshot.swapped, ElementsAre());
  EXPECT_EQ(snapshot.num_queued, 2);
  EXPECT_EQ(snapshot.max_queued, 64);
  EXPECT_EQ(snapshot.blocks.total, 64);
  EXPECT_EQ(snapshot.blocks.cross, 4) << "two for 5 encoder tokens, twice";
  EXPECT_EQ(snapshot.blocks.self, 2) << "a fed 2 + 2 tokens, b 2 + 1; a block holds 4";
  EXPECT_EQ(snapshot.blocks.free, 64 - snapshot.blocks.self - snapshot.blocks.cross);
  EXPECT_EQ(snapshot.blocks.host_free, 64);
  EXPECT_EQ(snapshot.stats.num_steps, 3);
}

// ---- Streams

TEST_F(AsyncEngineTest, AStreamBringsEveryStepAndASlowReaderEverythingAtOnce) {
  RequestSpec fast_spec = make_spec("fast", 6, 1), slow_spec = make_spec("slow", 6, 2);
  fast_spec.stream = slow_spec.stream = true;
  int num_calls = 0;  // written by the engine thread, read when it stands at the gate
  slow_spec.on_ready = [&] { ++num_calls; };
  RequestStream fast = add(std::move(fast_spec)), slow = add(std::move(slow_spec));
  gate_->wait_for_step();
  for (int32_t i = 0; i < 4; ++i) {
    run_steps(1);
    const StatusOr<RequestOutput> piece = *fast.try_next();
    ASSERT_TRUE(piece.ok());
    EXPECT_FALSE(piece->finished);
    EXPECT_EQ(piece->outputs[0].token_ids, std::vector<int32_t>{FakeExecutor::token(1, 0, static_cast<uint32_t>(i))});
    EXPECT_FALSE(fast.try_next().has_value());
  }
  EXPECT_EQ(num_calls, 1) << "nobody read: no reason to call again";
  const StatusOr<RequestOutput> late = *slow.try_next();
  EXPECT_FALSE(late->finished);
  const size_t num_ids = late->outputs[0].token_ids.size();
  EXPECT_EQ(late->outputs[0].token_ids, foretold(2, static_cast<int32_t>(num_ids)));
  EXPECT_GE(num_ids, 3u) << "the second request may have come a step later";
  gate_->open();
  ASSERT_TRUE(engine_->drain(60s).ok());
  RequestOutput whole = *late;
  merge_delta(whole, std::move(**slow.try_next()));
  EXPECT_TRUE(whole.finished);
  EXPECT_EQ(whole.outputs[0].token_ids, foretold(2, 6));
}

TEST_F(AsyncEngineTest, APieceThatCameBeforeTheDeadlineIsReadBeforeTheError) {
  RequestSpec hasty = make_spec("a", 9, 1);
  hasty.stream = true;
  hasty.deadline = clock_.now() + 1s;
  RequestStream stream = add(std::move(hasty));
  run_steps(2);
  clock_.advance(2s);
  gate_->open();
  ASSERT_TRUE(engine_->drain(60s).ok());
  EXPECT_EQ((*stream.try_next())->outputs[0].token_ids.at(0), FakeExecutor::token(1, 0, 0));
  EXPECT_EQ(stream.try_next()->status().code(), Code::kDeadlineExceeded);
}

// ---- Callbacks

TEST_F(AsyncEngineTest, OnReadyIsCalledOnTheEngineThreadAndMayLetTheStreamGo) {
  gate_->open();
  std::promise<std::thread::id> called;
  RequestSpec asked = make_spec("a", 2, 1);
  asked.on_ready = [&] { called.set_value(std::this_thread::get_id()); };
  RequestStream stream = add(std::move(asked));
  EXPECT_NE(called.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ((*stream.try_next())->outputs[0].token_ids, foretold(1, 2));

  std::promise<void> let_go;
  std::promise<RequestStream> handed_over;
  auto future = std::make_shared<std::future<RequestStream>>(handed_over.get_future());
  RequestSpec dropped = make_spec("b", 2, 1);
  dropped.on_ready = [&, future] {
    { const RequestStream inside = future->get(); }
    let_go.set_value();
  };
  handed_over.set_value(add(std::move(dropped)));
  let_go.get_future().get();
  EXPECT_EQ(add("c", 2, 3).next()->outputs[0].token_ids, foretold(3, 2));
}

// ---- Handles

TEST_F(AsyncEngineTest, RequestsOverAHandleShareOneEncodeEvenOneAfterTheOther) {
  gate_->open();
  StatusOr<EncodedInput> handle = engine_->encode(make_spec("", 1, 1).inputs).get();
  ASSERT_TRUE(handle.ok()) << handle.status();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    RequestSpec over = make_spec(str_cat("r", seed), 4, seed);
    over.inputs.items.clear();
    over.encoded = *handle;
    const StatusOr<RequestOutput> output = add(std::move(over)).next();
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->encoder_prompt_token_ids, handle->items().front().token_ids);
    EXPECT_EQ(output->outputs[0].token_ids, foretold(seed, 4));
  }
  EXPECT_EQ(engine_->snapshot().stats.num_encoder_tokens, 5);
  EXPECT_EQ(engine_->snapshot().stats.num_encoder_cache_hits, 2);
}

TEST_F(AsyncEngineTest, AnEngineThatSleepsGivesBackWhatADroppedHandleHeld) {
  gate_->open();
  StatusOr<EncodedInput> handle = engine_->encode(make_spec("", 1, 1).inputs).get();
  ASSERT_TRUE(handle.ok()) << handle.status();
  RequestSpec over = make_spec("a", 2, 1);
  over.encoded = *handle;
  ASSERT_TRUE(add(std::move(over)).next().ok());
  ASSERT_TRUE(engine_->drain(60s).ok()) << "it sleeps";
  EXPECT_EQ(engine_->snapshot().blocks.free, 64 - 2) << "two for 5 encoder tokens";
  *handle = EncodedInput();
  const auto patience = std::chrono::steady_clock::now() + 60s;
  while (engine_->snapshot().blocks.free < 64 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(engine_->snapshot().blocks.free, 64);
}

TEST_F(AsyncEngineTest, AHandleIsReadyAfterTheStepThatRuns) {
  RequestStream running = add("a", 9, 1);
  gate_->wait_for_step();
  std::future<StatusOr<EncodedInput>> handle = engine_->encode(make_spec("", 1, 1).inputs);
  EXPECT_EQ(handle.wait_for(5ms), std::future_status::timeout);
  run_steps(1);
  EXPECT_TRUE(handle.get().ok());
}

TEST_F(AsyncEngineTest, WhatNoHandleCanBeMadeOfIsTold) {
  gate_->open();
  EXPECT_EQ(error_param(engine_->encode({}).get().status()), "prompt");
  EncoderDecoderInputs big;
  big.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(1000), 3));
  EXPECT_EQ(engine_->encode(std::move(big)).get().status().code(), Code::kInvalidArgument);

  StatusOr<EncodedInput> foreign = engine_->encode(make_spec("", 1, 1).inputs).get();
  ASSERT_TRUE(foreign.ok());
  rebuild(16, 64);
  gate_->open();
  RequestSpec over = make_spec("a", 2, 1);
  over.encoded = *foreign;
  EXPECT_EQ(error_param(add(std::move(over)).next().status()), "encoded_input");

  ASSERT_TRUE(engine_->drain(60s).ok());
  EXPECT_EQ(engine_->encode(make_spec("", 1, 1).inputs).get().status().code(), Code::kUnavailable);
}

// ---- Ends

TEST_F(AsyncEngineTest, AFailingExecutorIsToldToEverybody) {
  std::vector<RequestStream> streams;
  streams.push_back(add("a", 9, 1));
  streams.push_back(add("b", 9, 2));
  run_steps(2);
  streams.push_back(add("late", 9, 3));  // not taken yet
  gate_->fail();
  for (RequestStream& stream : streams) {
    const StatusOr<RequestOutput> output = stream.next();
    EXPECT_EQ(output.status().code(), Code::kInternal);
    EXPECT_THAT(error_message(output.status()), HasSubstr("the device is gone"));
  }
  EXPECT_EQ(engine_->add_request(make_spec("after", 2, 4)).status().code(), Code::kInternal);
  EXPECT_EQ(engine_->failure().code(), Code::kInternal);
  EXPECT_TRUE(engine_->drain(60s).ok());
  const EngineSnapshot snapshot = engine_->snapshot();
  EXPECT_EQ(snapshot.blocks.free, snapshot.blocks.total);
  EXPECT_EQ(snapshot.counts.failed, 3);
}

// As when another process that a step needs has died: the step itself takes its time to find out.
TEST_F(AsyncEngineTest, GivingUpDoesNotWaitForTheStep) {
  std::vector<RequestStream> streams;
  streams.push_back(add("a", 9, 1));
  streams.push_back(add("b", 9, 2));
  gate_->wait_for_step();
  streams.push_back(add("late", 9, 3));  // not taken yet
  std::future<StatusOr<EncodedInput>> handle = engine_->encode(make_spec("", 1, 1).inputs);
  engine_->give_up(absl::UnavailableError("rank 1 is gone"));
  for (RequestStream& stream : streams) EXPECT_EQ(stream.next().status(), absl::UnavailableError("rank 1 is gone"));
  EXPECT_EQ(handle.get().status(), absl::UnavailableError("rank 1 is gone"));
  EXPECT_EQ(engine_->add_request(make_spec("after", 2, 4)).status(), absl::UnavailableError("rank 1 is gone"));
  EXPECT_EQ(engine_->failure(), absl::UnavailableError("rank 1 is gone"));
  gate_->fail();  // the step finds out
  EXPECT_TRUE(engine_->drain(60s).ok());
  EXPECT_EQ(engine_->failure().code(), Code::kInternal);
  EXPECT_EQ(engine_->snapshot().counts.failed, 3);
}

TEST_F(AsyncEngineTest, DrainingEndsWhatIsInFlightAndRefusesTheRest) {
  RequestStream stream = add("a", 5, 1);
  const Status late = engine_->drain(5ms);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(error_message(late), HasSubstr("1 requests"));
  EXPECT_EQ(engine_->add_request(make_spec("b", 5, 1)).status().code(), Code::kUnavailable);
  gate_->open();
  EXPECT_TRUE(engine_->drain(60s).ok());
  EXPECT_EQ((*stream.try_next())->outputs[0].token_ids, foretold(1, 5)) << "drained means told";
}

TEST_F(AsyncEngineTest, StreamsOutliveTheEngine) {
  RequestStream running = add("a", 40, 1), dropped = add("b", 50, 2);
  run_steps(2);
  RequestStream waiting = add("c", 5, 3);
  std::thread opener([this] {  // once stop() has closed the door, the step under way ends, and no other begins
    while (!absl::IsUnavailable(engine_->add_request(make_spec("a", 1, 1)).status())) std::this_thread::yield();
    gate_->open_for(1);
  });
  stop();
  opener.join();
  for (RequestStream* stream : {&running, &waiting}) {
    const StatusOr<RequestOutput> output = stream->next();
    EXPECT_EQ(output.status().code(), Code::kUnavailable);
    EXPECT_THAT(error_message(output.status()), HasSubstr("stopped"));
  }
  dropped.abort();
}

}  // namespace
}  // namespace transept
