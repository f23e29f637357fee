// Requests over remote items, one at a time: how they wait, end, and are refused, and what a step takes of its peers.
#include "base/allocation_count_testing.h"
#include "engine/remote_requests_testing.h"

namespace transept::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST_F(RemoteRequests, WaitForTheirRowsAndHoldNobodyUp) {
  make();
  ASSERT_EQ(add("late", 9, 1), ok_status());
  EXPECT_TRUE(engine_->remote_inputs()->awaits("late"));
  EXPECT_TRUE(engine_->scheduler().waiting().empty());
  EXPECT_EQ(engine_->num_unfinished_requests(), 1u);
  EngineState state;
  engine_->describe(state);
  EXPECT_EQ(state.awaiting_inputs, std::vector<std::string>{"late"});
  EXPECT_EQ(state.num_queued, 1) << "whoever chooses an instance sees it";
  EXPECT_GT(engine_->next_step_time(), clock_.now());
  EXPECT_THAT(error_message(add("late", 9, 1)), HasSubstr("in flight already"));
  encode("early", 5, 2);
  run(seconds(1));
  ASSERT_EQ(add("early", 5, 2), ok_status());
  EXPECT_FALSE(engine_->remote_inputs()->awaits("early")) << "its rows were here before it";
  run(seconds(1));
  expect_right("early", 5, 2);
  encode("late", 9, 1);
  run();
  expect_right("late", 9, 1);
  engine_->describe(state);
  EXPECT_TRUE(state.awaiting_inputs.empty());
  EXPECT_EQ(state.num_queued, 0);
  EXPECT_GT(outputs_.at("late").metrics.queue_s, 1) << "from its first arrival";
  EXPECT_EQ(engine_->remote_inputs()->cache().num_uses(), 0);
}

// Equal contents are sent once; the second request finds the rows of the first.
TEST_F(RemoteRequests, FindEqualRowsThatAreHere) {
  make();
  encode("a", 9, 1);
  ASSERT_EQ(add("a", 9, 1), ok_status());
  run();
  ASSERT_EQ(add("b", 9, 1), ok_status());
  EXPECT_FALSE(engine_->remote_inputs()->awaits("b"));
  run();
  expect_right("a", 9, 1);
  expect_right("b", 9, 1);
  EXPECT_EQ(encoders_.stats().num_done, 1);
}

TEST_F(RemoteRequests, EndByTheirDeadlines) {
  make([](auto& options) { options.remote.max_wait = seconds(5); });
  ASSERT_EQ(add("usual", 9, 1), ok_status());
  RequestOptions hurried;
  hurried.deadline = clock_.now() + seconds(1);
  ASSERT_EQ(add("hurried", 9, 2, greedy(), hurried), ok_status());
  run();
  EXPECT_EQ(order_, (std::vector<std::string>{"hurried", "usual"}));
  EXPECT_THAT(outputs_.at("usual").error, HasSubstr("1 of 1 encoder inputs did not come"));
  EXPECT_EQ(outputs_.at("usual").error_param, "encoded_inputs");
  EXPECT_NEAR(outputs_.at("usual").metrics.total_s, 5, 0.1);
}

TEST_F(RemoteRequests, AreAbortedInEveryState) {
  make();
  ASSERT_EQ(add("waits", 9, 1), ok_status());
  EXPECT_EQ(engine_->abort_request("waits")->outputs.at(0).finish_reason, FinishReason::kAbort);
  EXPECT_FALSE(engine_->abort_request("waits").ok());
  // While its rows are received, and when they are here.
  for (const int num_steps : {1, 2, 30, 60}) {
    SCOPED_TRACE(num_steps);
    const std::string id = str_cat("r", num_steps);
    encode(id, 30, 2);
    ASSERT_EQ(add(id, 30, 2, greedy(80)), ok_status());
    for (int i = 0; i < num_steps; ++i) step();
    ASSERT_TRUE(engine_->abort_request(id).ok());
    run();
    for (int i = 0; i < 100; ++i) step();
    EXPECT_EQ(engine_->remote_inputs()->cache().num_uses(), 0);
    EXPECT_EQ(encoders_.num_open_sinks(), 0u);
    EXPECT_FALSE(outputs_.contains(id));
  }
}

TEST_F(RemoteRequests, MustBeWhatWasAnnounced) {
  make();
  encode("a", 9, 1);
  for (int i = 0; i < 5; ++i) step();
  EXPECT_THAT(error_message(add("a", 9, 2)), HasSubstr("input 0 was announced with another digest"));
  EXPECT_THAT(error_message(add("a", 8, 1)), HasSubstr("announced with 9 positions, not 8"));
  ASSERT_EQ(add("a", 9, 1), ok_status()) << "a refusal takes nothing from the announcement";
  ASSERT_EQ(add("b", 9, 2), ok_status());
  encode("b", 9, 3);
  run();
  expect_right("a", 9, 1);
  EXPECT_THAT(outputs_.at("b").error, HasSubstr("another digest"));
}

// One digest, two lengths: the cross KV of one is there, and rows of the other come.
TEST_F(RemoteRequests, OfOneDigestAndTwoLengthsOnlyOneRuns) {
  make([](auto& options) { options.blocks.share_identical_inputs = true; });
  encode("a", 9, 1);
  ASSERT_EQ(add("a", 9, 1, greedy(80)), ok_status());
  run(std::chrono::milliseconds(100));
  // Its rows are given up for those of others; its cross KV stays.
  for (uint64_t digest = 2; digest < 40 && !engine_->scheduler().running().empty(); ++digest) {
    if (engine_->scheduler().blocks().find_written(digest_of(1), 2) == 0) break;
    encode(str_cat("x", digest), 32, digest);
    for (int i = 0; i < 2; ++i) step();
  }
  encode("b", 8, 1);
  ASSERT_EQ(add("b", 8, 1), ok_status());
  run();
  expect_right("a", 9, 1, greedy(80));
  EXPECT_NE(outputs_.at("b").error, "");
}

TEST_F(RemoteRequests, AreRefusedByName) {
  make();
  EncoderDecoderInputs local;
  local.set_encoder_ids({1, 2, 3});
  local.prompt_token_ids = {1};
  EXPECT_THAT(error_message(engine_->add_request("r", local, greedy())), HasSubstr("encodes nothing"));
  EncoderDecoderInputs mixed = inputs(3, 1);
  mixed.items.push_back(local.items[0]);
  EXPECT_THAT(error_message(engine_->add_request("r", mixed, greedy())), HasSubstr("and some are not"));
  EncoderDecoderInputs numbered = inputs(3, 1);
  numbered.items[0].remote->input_id = 1;
  EXPECT_THAT(error_message(engine_->add_request("r", numbered, greedy())), HasSubstr("has the number 1"));
  for (const int32_t wrong : {0, -1}) {
    EXPECT_THAT(error_message(add("r", wrong, 1)), HasSubstr("positions: expected 1 to"));
  }
  EXPECT_THAT(error_message(add("r", 5000, 1)), HasSubstr("max_num_encoder_tokens"));
  EncoderDecoderInputs counted = inputs(3, 1);
  counted.items[0].token_ids = {1};
  EXPECT_THAT(error_message(engine_->add_request("r", counted, greedy())), HasSubstr("1 ids for 3 positions"));
  SamplingParams bans = greedy();
  bans.encoder_no_repeat_ngram_size = 2;
  EXPECT_THAT(error_message(add("r", 3, 1, bans)), HasSubstr("did not come with its rows"));
  EXPECT_EQ(engine_->num_unfinished_requests(), 0u);
  // Where nothing is taken from elsewhere.
  BlockSpaceManager::Options blocks;
  blocks.num_device_blocks = 9;
  LLMEngine::Options options;
  options.blocks = blocks;
  LLMEngine whole(options, std::make_unique<FakeModelExecutor>(blocks), nullptr, clock_);
  EXPECT_THAT(error_message(whole.add_request("r", inputs(3, 1), greedy())), HasSubstr("takes no inputs"));
}

// Rows are taken again after a preemption by recompute, if they are still here; else the request says so.
TEST_F(RemoteRequests, AfterARecomputeFindTheirRowsOrSaySo) {
  int num_right = 0, num_lost = 0;
  for (const int32_t num_blocks : {20, 22, 24, 26, 28, 30, 32}) {
    outputs_.clear();
    make([&](auto& options) {
      options.blocks.num_device_blocks = num_blocks;
      options.scheduler.preemption_mode = PreemptionMode::kRecompute;
    });
    for (uint64_t i = 1; i <= 3; ++i) {
      const std::string id = str_cat(num_blocks, ".", i);
      encode(id, 9, i);
      ASSERT_EQ(add(id, 9, i, greedy(30)), ok_status());
    }
    run();
    for (uint64_t i = 1; i <= 3; ++i) {
      const std::string id = str_cat(num_blocks, ".", i);
      if (outputs_.at(id).error.empty()) {
        expect_right(id, 9, i, greedy(30));
        num_right += engine_->stats().num_preemptions > 0 ? 1 : 0;
      } else {
        EXPECT_THAT(outputs_.at(id).error, HasSubstr("no longer here"));
        ++num_lost;
      }
    }
    EXPECT_EQ(engine_->remote_inputs()->cache().num_uses(), 0);
    engine_.reset();
  }
  EXPECT_GT(num_right, 3);
  EXPECT_GT(num_lost, 0);
}

// A peer that announces without end costs a step 64 events.
TEST_F(RemoteRequests, AStepTakesAFewEventsOnly) {
  make([](auto& options) { options.remote.max_messages = 500; });
  for (int i = 0; i < 1000; ++i) encode(str_cat("r", i), 3, 1000 + static_cast<uint64_t>(i));
  clock_.advance(std::chrono::milliseconds(3));
  encoders_.run();
  const RemoteInputs& remote = *engine_->remote_inputs();
  EXPECT_GE(remote.num_dropped_messages(), 500);
  std::vector<RequestOutput> outputs;
  ASSERT_EQ(engine_->step(outputs), ok_status());
  EXPECT_EQ(remote.receivers().num_transfers(), RemoteInputs::kMaxEvents);
  EXPECT_EQ(engine_->next_step_time(), TimePoint::min()) << "more is there";
}

TEST_F(RemoteRequests, ASteadyStepAllocatesNothing) {
  make();
  encode("a", 9, 1);
  ASSERT_EQ(add("a", 9, 1, greedy(60)), ok_status());
  run(std::chrono::milliseconds(80));
  ASSERT_EQ(engine_->scheduler().running().size(), 1u);
  std::vector<EcEvent> none;
  std::vector<InputStage::Request> ready;
  std::vector<RequestOutput> ended;
  auto& remote = const_cast<RemoteInputs&>(*engine_->remote_inputs());  // NOLINT: what step() does
  const int64_t before = num_allocations();
  remote.maybe_allocate_recvd_metadata(ready, ended);
  EXPECT_EQ(num_allocations() - before, 0);
}

}  // namespace
}  // namespace transept::testing
