// Several steps in flight, as over a pipeline: how well its stages are used, how long a token takes, and what becomes
// of requests that are aborted while their step runs. Stages are fake, and so is the clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "engine/llm_engine.h"
#include "rank/executor.h"

namespace transept {
namespace {

constexpr int32_t kVocabSize = 50;
constexpr Duration kStageTime = std::chrono::microseconds(1000), kHopTime = std::chrono::microseconds(10);

// Stages, each of which works on one step at a time, in their order; tokens that the request alone determines.
class FakePipeline final : public Executor {
 public:
  FakePipeline(int32_t num_stages, double jitter, FakeClock& clock)
      : jitter_(jitter), clock_(clock), free_at_(static_cast<size_t>(num_stages)) {
    info_.spec.vocab_size = kVocabSize;
    info_.spec.kv = {{KvKind::kSelf}, {KvKind::kCross}};
    info_.tables = {{TableOwner::kSequence}, {TableOwner::kGroup}};
    info_.max_steps_in_flight = num_stages;
  }

  const ExecutorInfo& info() const override { return info_; }

  Status submit(const StepPlan& plan) override {
    TimePoint at = clock_.now();
    for (TimePoint& free_at : free_at_) {
      const double share = 1 + jitter_ * (2 * uniform_(random_) - 1);
      const auto taken = std::chrono::duration_cast<Duration>(kStageTime * share);
      free_at = std::max(free_at, at) + taken;
      busy_ += taken;
      at = free_at + kHopTime;
    }
    in_flight_.push_back({&plan, at});
    most_in_flight_ = std::max(most_in_flight_, in_flight_.size());
    return fails_ ? absl::InternalError("a rank is gone") : ok_status();
  }

  Status collect(uint64_t step, StepOutput& output) override {
    const auto [plan, done] = in_flight_.front();
    in_flight_.erase(in_flight_.begin());
    CHECK(plan->step == step);
    if (done > clock_.now()) clock_.advance(done - clock_.now());
    output.samples.rows.assign(plan->rows.size(), RowSample{});
    for (size_t i = 0; i < plan->rows.size(); ++i) {
      output.samples.rows[i].token_id = static_cast<int32_t>((plan->rows[i].seed * 31 + plan->rows[i].position) % 50);
    }
    return ok_status();
  }

  ExecutorStats stats() const override { return {}; }

  void fail() { fails_ = true; }
  size_t most_in_flight() const { return most_in_flight_; }
  double utilisation() const {
    return seconds(busy_) / (seconds(clock_.now() - TimePoint()) * static_cast<double>(free_at_.size()));
  }

 private:
  struct Step {
    const StepPlan* plan;
    TimePoint done;
  };

  double jitter_;
  FakeClock& clock_;
  ExecutorInfo info_;
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> uniform_;
  std::vector<TimePoint> free_at_;  // of each stage
  std::vector<Step> in_flight_;
  Duration busy_{};
  size_t most_in_flight_ = 0;
  bool fails_ = false;
};

class StepsInFlightTest : public ::testing::Test {
 protected:
  void start(int32_t num_stages, double jitter = 0, int32_t num_blocks = 5000) {
    engine_.reset();
    clock_ = std::make_unique<FakeClock>();
    auto pipeline = std::make_unique<FakePipeline>(num_stages, jitter, *clock_);
    pipeline_ = pipeline.get();
    LLMEngine::Options options;
    options.scheduler.max_steps_in_flight = num_stages;
    options.blocks = {.block_size = 4, .num_device_blocks = num_blocks, .watermark = 0};
    engine_ = std::make_unique<LLMEngine>(options, std::move(pipeline), nullptr, *clock_);
  }

  void add(const std::string& id, int32_t num_tokens, bool has_input = true) {
    EncoderDecoderInputs inputs;
    if (has_input) inputs.set_encoder_ids({1, 2, 3});
    inputs.prompt_token_ids = {1};
    SamplingParams params;
    params.max_tokens = num_tokens;
    params.ignore_eos = true;
    params.seed = 5;
    ASSERT_TRUE(engine_->add_request(id, inputs, params).ok());
  }

  void step() {
    ASSERT_TRUE(engine_->step(outputs_).ok());
    const Status status = engine_->scheduler().check_invariants();
    ASSERT_TRUE(status.ok()) << status;
  }

  std::unique_ptr<FakeClock> clock_;
  std::unique_ptr<LLMEngine> engine_;
  FakePipeline* pipeline_ = nullptr;
  std::vector<RequestOutput> outputs_;
};

TEST_F(StepsInFlightTest, StagesAreUsedWhereTwiceAsManyRequestsRunAsThereAreStages) {
  for (const int32_t num_stages : {2, 4, 8}) {
    for (const int32_t times : {2, 4}) {
      start(num_stages, 0.1);
      for (int32_t i = 0; i < times * num_stages; ++i) add(str_cat("r", i), 400);
      while (engine_->has_unfinished_requests()) step();
      EXPECT_GE(pipeline_->utilisation(), 0.9) << num_stages << " stages, " << times << " times as many requests";
      EXPECT_EQ(pipeline_->most_in_flight(), static_cast<size_t>(num_stages));
    }
  }
}

// One request more than stages is in a plan with another, and does not make all plans those of two.
TEST_F(StepsInFlightTest, StagesAreUsedByOneRequestMore) {
  for (const int32_t num_requests : {8, 9, 12, 17}) {
    start(8, 0.1);
    for (int32_t i = 0; i < num_requests; ++i) add(str_cat("r", i), 400);
    while (engine_->has_unfinished_requests()) step();
    EXPECT_GE(pipeline_->utilisation(), 0.85) << num_requests;
  }
}

// Requests come and go at their own times, and each has an encode.
TEST_F(StepsInFlightTest, StagesAreUsedByRequestsThatTrickleIn) {
  for (const int32_t num_stages : {2, 4}) {
    start(num_stages, 0.1);
    std::mt19937_64 random(3);
    const auto num_clients = 4 * static_cast<size_t>(num_stages);
    for (size_t next = 0; next < 400 || engine_->has_unfinished_requests(); step()) {
      while (next < 400 && engine_->num_unfinished_requests() < num_clients) {
        add(str_cat("r", next++), 20 + static_cast<int32_t>(random() % 20));
      }
    }
    EXPECT_EQ(outputs_.size(), 400u);
    EXPECT_GE(pipeline_->utilisation(), 0.9) << num_stages;
    outputs_.clear();
  }
}

TEST_F(StepsInFlightTest, ARequestAloneWaitsForEachStageOnce) {
  for (const int32_t num_stages : {1, 2, 4, 8}) {
    start(num_stages);
    add("alone", 50, false);
    while (engine_->has_unfinished_requests()) step();
    const Duration expected = 50 * num_stages * (kStageTime + kHopTime);
    EXPECT_EQ(clock_->now() - TimePoint(), expected) << num_stages;
    EXPECT_EQ(pipeline_->most_in_flight(), 1u);
  }
}

TEST_F(StepsInFlightTest, PlansShareTheRequestsThatRun) {
  start(2);
  for (int32_t i = 0; i < 7; ++i) add(str_cat("r", i), 100, false);
  for (int32_t i = 0; i < 20; ++i) step();
  EXPECT_EQ(engine_->scheduler().running().size(), 7u);
  int32_t num_busy = 0;
  for (const SequenceGroup* group : engine_->scheduler().running()) num_busy += group->is_busy() ? 1 : 0;
  EXPECT_GE(num_busy, 3);
  EXPECT_LE(num_busy, 4) << "one plan is in flight between two steps, and has half of them";
}

TEST_F(StepsInFlightTest, AnAbortIsAnsweredAtOnceAndItsBlocksComeBackWithItsStep) {
  start(2);
  add("a", 100, false);
  add("b", 100, false);
  for (int32_t i = 0; i < 6; ++i) step();
  const auto free_blocks = [&] { return engine_->scheduler().blocks().get_num_free_device_blocks(); };
  std::string busy;
  for (const SequenceGroup* group : engine_->scheduler().running()) {
    if (group->is_busy()) busy = group->request_id();
  }
  ASSERT_NE(busy, "");
  const int32_t before = free_blocks();
  const StatusOr<RequestOutput> aborted = engine_->abort_request(busy);
  ASSERT_TRUE(aborted.ok());
  EXPECT_EQ(aborted->outputs.at(0).finish_reason, FinishReason::kAbort);
  EXPECT_FALSE(aborted->outputs.at(0).token_ids.empty());
  EXPECT_FALSE(engine_->abort_request(busy).ok());
  EXPECT_EQ(free_blocks(), before) << "its step is in flight";
  add(busy, 3, false);  // the id is free again
  step();
  EXPECT_GE(free_blocks(), before) << "it was collected: what came back is as much as the new request took";
  while (engine_->has_unfinished_requests()) step();
  ASSERT_EQ(outputs_.size(), 2u);
  EXPECT_EQ(outputs_[0].request_id, busy);
  EXPECT_EQ(outputs_[0].outputs.at(0).token_ids.size(), 3u);
  EXPECT_EQ(free_blocks(), engine_->scheduler().blocks().num_device_blocks());
}

TEST_F(StepsInFlightTest, AFailureLeavesNothingInFlight) {
  start(4);
  for (int32_t i = 0; i < 8; ++i) add(str_cat("r", i), 100);
  for (int32_t i = 0; i < 5; ++i) step();
  ASSERT_TRUE(engine_->abort_request("r2").ok());
  pipeline_->fail();
  EXPECT_FALSE(engine_->step(outputs_).ok());
  EXPECT_EQ(engine_->scheduler().num_steps_in_flight(), 0);
  const Status status = engine_->scheduler().check_invariants();
  EXPECT_TRUE(status.ok()) << status;
  for (int32_t i = 0; i < 8; ++i) {
    const bool is_here = engine_->abort_request(str_cat("r", i)).ok();
    EXPECT_EQ(is_here, i != 2);
  }
  EXPECT_FALSE(engine_->has_unfinished_requests());
  EXPECT_EQ(engine_->scheduler().blocks().get_num_free_device_blocks(), 5000);
}

// What looks at the step before has one in flight.
TEST_F(StepsInFlightTest, CutEncodesHaveOneStepInFlight) {
  FakeClock clock;
  auto pipeline = std::make_unique<FakePipeline>(2, 0, clock);
  const FakePipeline& stages = *pipeline;
  LLMEngine::Options options;
  options.scheduler.max_steps_in_flight = 2;
  options.blocks = {.block_size = 4, .num_device_blocks = 100, .watermark = 0};
  options.encode_slice.mode = EncodeSliceOptions::Mode::kAuto;
  LLMEngine engine(options, std::move(pipeline), nullptr, clock);
  EXPECT_EQ(engine.scheduler().options().max_steps_in_flight, 1);
  EXPECT_EQ(stages.most_in_flight(), 0u);
}

}  // namespace
}  // namespace transept
