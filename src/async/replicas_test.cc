// Several engines behind one AsyncEngine: requests are spread, stay where they are, and are found there; ids, the queue
// and the counts are of all replicas; a handle's requests go to its engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "async/async_engine.h"
#include "async/async_engine_testing.h"
#include "rank/gated_executor_testing.h"

namespace transept {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::foretold;
using testing::GatedExecutor;
using ::testing::HasSubstr;
using testing::make_spec;
using testing::StepGate;
using ::testing::UnorderedElementsAre;
using Code = absl::StatusCode;

class ReplicasTest : public ::testing::Test {
 protected:
  ReplicasTest() { rebuild(64, true); }
  ~ReplicasTest() override {
    for (const auto& gate : gates_) gate->open();
    if (engine_ == nullptr) return;
    for (const std::unique_ptr<LLMEngine>& engine : engine_->stop_all()) testing::expect_nothing_left(*engine);
  }

  void rebuild(int32_t max_queued, bool share_identical_inputs, bool cache_inputs = false) {
    for (const auto& gate : gates_) gate->open();
    engine_ = nullptr;
    LLMEngine::Options options = testing::small_engine_options();
    options.blocks.share_identical_inputs = share_identical_inputs;
    options.blocks.cache_inputs = cache_inputs;
    std::vector<std::unique_ptr<LLMEngine>> engines;
    for (auto& gate : gates_) {
      gate = std::make_shared<StepGate>();
      engines.push_back(std::make_unique<LLMEngine>(options, std::make_unique<GatedExecutor>(gate), nullptr, clock_));
    }
    engine_ = std::make_unique<AsyncEngine>(std::move(engines), AsyncEngine::Options{max_queued}, clock_);
  }

  RequestStream add(RequestSpec spec) { return testing::add_request(*engine_, std::move(spec)); }
  RequestStream add(const std::string& id, int32_t max_tokens, uint64_t seed) {
    return add(make_spec(id, max_tokens, seed, static_cast<int32_t>(seed)));
  }

  // Who is in which replica, waiting or running.
  std::vector<std::set<std::string>> places() const {
    std::vector<std::set<std::string>> places;
    for (const EngineSnapshot& snapshot : engine_->snapshots()) {
      std::set<std::string>& ids = places.emplace_back(snapshot.running.begin(), snapshot.running.end());
      ids.insert(snapshot.waiting.begin(), snapshot.waiting.end());
    }
    return places;
  }
  // Every replica stands in a step: what was added before is in its lists.
  void wait_for_steps() {
    for (const auto& gate : gates_) gate->wait_for_step();
  }
  void open() {
    for (const auto& gate : gates_) gate->open();
  }

  FakeClock clock_;
  std::vector<std::shared_ptr<StepGate>> gates_ = {std::make_shared<StepGate>(), std::make_shared<StepGate>()};
  std::unique_ptr<AsyncEngine> engine_;
};

TEST(EngineSnapshotTest, EveryFigureOfReplicasIsAddedUp) {
  std::vector<EngineSnapshot> replicas(2);
  replicas[0].stats.num_long_encodes = 2;
  replicas[1].stats.num_long_encodes = 3;
  replicas[0].stats.max_running_seqs = 7;
  replicas[1].stats.max_running_seqs = 5;
  replicas[1].executor.num_encoder_runs = 4;
  const EngineSnapshot sum = add_up(replicas);
  EXPECT_EQ(sum.stats.num_long_encodes, 5);
  EXPECT_EQ(sum.stats.max_running_seqs, 7);
  EXPECT_EQ(sum.executor.num_encoder_runs, 4);
}

TEST_F(ReplicasTest, RequestsAreSpreadAndEachIsAnsweredAsItsOwn) {
  std::vector<RequestStream> streams;
  for (uint64_t i = 0; i < 12; ++i) streams.push_back(add(str_cat("r", i), 3 + static_cast<int32_t>(i % 5), i));
  wait_for_steps();
  EXPECT_EQ(places()[0].size(), 6u);
  EXPECT_EQ(places()[1].size(), 6u);
  const EngineSnapshot all = engine_->snapshot();
  EXPECT_EQ(all.running.size() + all.waiting.size(), 12u);
  EXPECT_EQ(all.blocks.total, 128);
  EXPECT_EQ(all.max_queued, 64);
  open();
  for (uint64_t i = 12; i-- > 0;) {
    const StatusOr<RequestOutput> output = streams[i].next();
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->request_id, str_cat("r", i));
    EXPECT_EQ(output->outputs[0].token_ids, foretold(i, 3 + static_cast<int32_t>(i % 5)));
  }
  EXPECT_EQ(engine_->snapshot().counts.finished, 12);
  int64_t num_tokens = 0;
  for (const EngineSnapshot& replica : engine_->snapshots()) num_tokens += replica.stats.num_generated_tokens;
  EXPECT_EQ(engine_->snapshot().stats.num_generated_tokens, num_tokens);
}

TEST_F(ReplicasTest, ALongRequestWeighsMoreThanSeveralShortOnes) {
  RequestSpec large = make_spec("large", 12, 1, 1);
  large.params.n = 8;
  std::vector<RequestStream> streams;
  streams.push_back(add(std::move(large)));
  for (uint64_t i = 2; i < 6; ++i) streams.push_back(add(str_cat("s", i), 1, i));
  wait_for_steps();
  EXPECT_THAT(places(), ElementsAre(UnorderedElementsAre("large"), UnorderedElementsAre("s2", "s3", "s4", "s5")));
  // What has ended weighs nothing.
  gates_[1]->open();
  for (size_t i = 1; i < streams.size(); ++i) EXPECT_TRUE(streams[i].next().ok());
  gates_[0]->open();
  EXPECT_TRUE(streams[0].next().ok());
}

TEST_F(ReplicasTest, TheSameInputGoesWhereItIs) {
  std::vector<RequestStream> streams;
  streams.push_back(add(make_spec("a", 9, 1, 7)));
  streams.push_back(add(make_spec("same", 9, 2, 7)));
  streams.push_back(add(make_spec("other", 9, 3, 8)));
  wait_for_steps();
  EXPECT_THAT(places(), ElementsAre(UnorderedElementsAre("a", "same"), UnorderedElementsAre("other")));
  open();
  for (RequestStream& stream : streams) EXPECT_TRUE(stream.next().ok());
  EXPECT_EQ(engine_->snapshot().stats.num_encoder_cache_hits, 1);
}

// Also when it is idle: a request goes where its input lies, unless that replica is busy.
TEST_F(ReplicasTest, AnInputThatWasHereIsLookedForWhereItWas) {
  rebuild(64, true, true);
  open();
  for (uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(add(make_spec(str_cat("r", i), 2, i, 7)).next().ok());
  const std::vector<EngineSnapshot> replicas = engine_->snapshots();
  EXPECT_EQ(replicas[0].stats.num_encoder_cache_hits + replicas[1].stats.num_encoder_cache_hits, 5);
  EXPECT_EQ(engine_->snapshot().stats.num_encoder_cache_misses, 1);
  EXPECT_EQ(engine_->snapshot().blocks.cached_tables, 1);
  EXPECT_GT(engine_->clear_cache(), 0);
  EXPECT_EQ(engine_->snapshot().blocks.cached_tables, 0);
  EXPECT_EQ(engine_->clear_cache(), 0);
  // Forgotten by the mailboxes, too: equal loads are dealt out in turn.
  for (uint64_t i = 0; i < 2; ++i)
    EXPECT_TRUE(add(make_spec(str_cat("s", i), 2, i, 20 + static_cast<int32_t>(i))).next().ok());
  for (const EngineSnapshot& replica : engine_->snapshots()) EXPECT_EQ(replica.blocks.cached_tables, 1);
  engine_->clear_cache();
}

TEST_F(ReplicasTest, TheSameInputIsNoReasonWhereNothingIsShared) {
  rebuild(64, false);
  RequestStream a = add(make_spec("a", 9, 1, 7)), b = add(make_spec("b", 9, 2, 7));
  wait_for_steps();
  EXPECT_THAT(places(), ElementsAre(UnorderedElementsAre("a"), UnorderedElementsAre("b")));
}

TEST_F(ReplicasTest, AHandlesRequestsGoToItsEngineHoweverBusy) {
  open();
  const EncodedInput first = engine_->encode(make_spec("", 1, 1, 4).inputs).get().value();
  const EncodedInput second = engine_->encode(make_spec("", 1, 1, 5).inputs).get().value();
  EXPECT_NE(first.owner(), second.owner()) << "handles are spread, too";
  std::vector<RequestStream> streams;
  for (uint64_t i = 0; i < 8; ++i) {
    RequestSpec over = make_spec(str_cat("h", i), 4, i, 4);
    over.encoded = first;
    streams.push_back(add(std::move(over)));
  }
  for (uint64_t i = 0; i < 8; ++i) {
    const StatusOr<RequestOutput> output = streams[i].next();
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->outputs[0].token_ids, foretold(i, 4));
  }
  const std::vector<EngineSnapshot> replicas = engine_->snapshots();
  EXPECT_EQ(replicas[0].counts.finished, 8);
  EXPECT_EQ(replicas[1].counts.finished, 0);
}

TEST_F(ReplicasTest, AHandleOfNoReplicaIsRefused) {
  open();
  EncodedInput foreign;
  {
    AsyncEngine other(std::move(engine_->stop_all().front()), {}, clock_);
    foreign = other.encode(make_spec("", 1, 1, 4).inputs).get().value();
  }
  rebuild(64, true);
  open();
  RequestSpec over = make_spec("a", 2, 1, 4);
  over.encoded = foreign;
  EXPECT_EQ(error_param(add(std::move(over)).next().status()), "encoded_input");
}

TEST_F(ReplicasTest, AbortsReachTheReplicaThatHasTheRequest) {
  std::vector<RequestStream> streams;
  for (uint64_t i = 0; i < 4; ++i) streams.push_back(add(str_cat("r", i), 9, i));
  wait_for_steps();
  ASSERT_THAT(places(), ElementsAre(UnorderedElementsAre("r0", "r2"), UnorderedElementsAre("r1", "r3")));
  EXPECT_TRUE(engine_->abort("r1").ok());
  streams[2].abort();
  EXPECT_EQ(engine_->abort("r9").code(), Code::kNotFound);
  open();
  for (const size_t i : {1u, 2u}) EXPECT_EQ(streams[i].next()->outputs[0].finish_reason, FinishReason::kAbort);
  for (const size_t i : {0u, 3u}) EXPECT_EQ(streams[i].next()->outputs[0].token_ids, foretold(i, 9));
  for (const EngineSnapshot& replica : engine_->snapshots()) EXPECT_EQ(replica.counts.aborted, 1);
}

TEST_F(ReplicasTest, AnIdInFlightInAnyReplicaIsRefused) {
  RequestStream a = add("a", 9, 1), b = add("b", 9, 2);
  for (const char* id : {"a", "b"}) {
    const Status refused = engine_->add_request(make_spec(id, 2, 5, 5)).status();
    EXPECT_EQ(error_param(refused), "id") << id;
  }
  open();
  ASSERT_TRUE(a.next().ok());
  EXPECT_TRUE(add("a", 2, 3).next().ok());
}

TEST_F(ReplicasTest, TheQueueIsOneForAll) {
  rebuild(3, true);
  std::vector<RequestStream> streams;
  for (uint64_t i = 0; i < 3; ++i) streams.push_back(add(str_cat("r", i), 2, i));
  EXPECT_EQ(engine_->num_queued(), 3);
  const Status refused = engine_->add_request(make_spec("x", 2, 9, 9)).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(error_message(refused), HasSubstr("3 requests wait, and the limit is 3"));
  EXPECT_EQ(engine_->snapshot().counts.refused, 1);
  EXPECT_EQ(engine_->snapshot().num_queued, 3);
  open();
  for (RequestStream& stream : streams) EXPECT_TRUE(stream.next().ok());
  EXPECT_TRUE(add("x", 2, 9).next().ok());
}

TEST_F(ReplicasTest, DeadlinesPassInEachReplica) {
  std::vector<RequestStream> streams;
  for (uint64_t i = 0; i < 4; ++i) {
    RequestSpec hasty = make_spec(str_cat("r", i), 9, i, static_cast<int32_t>(i));
    if (i < 2) hasty.deadline = clock_.now() + 1s;
    streams.push_back(add(std::move(hasty)));
  }
  wait_for_steps();
  clock_.advance(2s);
  open();
  for (const size_t i : {0u, 1u}) EXPECT_EQ(streams[i].next().status().code(), Code::kDeadlineExceeded);
  for (const size_t i : {2u, 3u}) EXPECT_EQ(streams[i].next()->outputs[0].token_ids, foretold(i, 9));
  EXPECT_EQ(engine_->snapshot().counts.expired, 2);
}

TEST_F(ReplicasTest, DrainingWaitsForAllOfThem) {
  RequestStream a = add("a", 2, 1), b = add("b", 2, 2);
  gates_[0]->open();
  const Status late = engine_->drain(20ms);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(error_message(late), HasSubstr("1 requests were not finished"));
  EXPECT_EQ(engine_->add_request(make_spec("c", 2, 3, 3)).status().code(), Code::kUnavailable);
  gates_[1]->open();
  EXPECT_TRUE(engine_->drain(60s).ok());
  EXPECT_TRUE(a.next().ok() && b.next().ok());
}

TEST_F(ReplicasTest, WhenOneFailsNothingNewIsTakenAndTheOthersFinish) {
  RequestStream a = add("a", 2, 1), b = add("b", 2, 2);
  wait_for_steps();
  EXPECT_TRUE(engine_->failure().ok());
  gates_[0]->fail();
  EXPECT_EQ(a.next().status().code(), Code::kInternal);
  EXPECT_EQ(engine_->failure().code(), Code::kInternal);
  EXPECT_EQ(engine_->add_request(make_spec("c", 2, 3, 3)).status().code(), Code::kInternal);
  gates_[1]->open();
  EXPECT_EQ(b.next()->outputs[0].token_ids, foretold(2, 2));
}

TEST_F(ReplicasTest, StoppingEndsWhatIsLeftInAllOfThem) {
  RequestStream a = add("a", 9, 1), b = add("b", 9, 2);
  wait_for_steps();
  open();
  const std::vector<std::unique_ptr<LLMEngine>> engines = engine_->stop_all();
  ASSERT_EQ(engines.size(), 2u);
  for (const auto& engine : engines) EXPECT_EQ(engine->num_unfinished_requests(), 0u);
  for (RequestStream* stream : {&a, &b}) {
    const StatusOr<RequestOutput> output = stream->next();
    EXPECT_TRUE(output.ok() || output.status().code() == Code::kUnavailable) << output.status();
  }
  engine_ = nullptr;
}

}  // namespace
}  // namespace transept
