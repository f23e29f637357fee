// Requests over content that this instance does not encode: it asks encode instances itself, as often as rows are
// missing.
#include "engine/remote_requests_testing.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class AskedRequests : public RemoteRequests {
 protected:
  void make_asking(const std::function<void(LLMEngine::Options&)>& change = [](auto&) {}) {
    make([&](LLMEngine::Options& options) {
      options.remote.asker = &asker_;
      change(options);
    });
  }
  static EncoderDecoderInputs content(int32_t num_positions, uint64_t which) {
    EncoderDecoderInputs inputs;
    inputs.set_encoder_ids(ids(num_positions, which));
    inputs.prompt_token_ids = {1, 2};
    return inputs;
  }
  Status add_content(const std::string& id, int32_t num_positions, uint64_t which,
                     const SamplingParams& params = greedy()) {
    return engine_->add_request(id, content(num_positions, which), params);
  }
  EcMeta meta_of(const std::string& id, int32_t num_positions, uint64_t which) const {
    EcMeta sent = meta(id, num_positions, which);
    sent.digest = item_digest(content(num_positions, which).items[0]);
    return sent;
  }
  // What a proxy asks for: it comes under the request's id, before the request.
  void send_held(const std::string& id, int32_t num_positions, uint64_t which) {
    encoders_.encode(meta_of(id, num_positions, which), fake_rows(ids(num_positions, which)));
    for (int i = 0; i < 1000 && !engine_->remote_inputs()->cache().is_written({id, 0}); ++i) step();
    ASSERT_TRUE(engine_->remote_inputs()->cache().is_written({id, 0}));
  }
  Status add_over(const EncodedInput& handle, const std::string& id) {
    EncoderDecoderInputs inputs;
    inputs.prompt_token_ids = {1, 2};
    return engine_->add_request(id, handle, inputs, greedy());
  }
  // "outside" waits for an encode of 9 positions of its own, "inside" is a group of the scheduler that does.
  void add_outside_and_inside() {
    ASSERT_EQ(add_content("outside", 9, 1), ok_status());
    ASSERT_EQ(add_over(engine_->encode(content(9, 2)).value(), "inside"), ok_status());
  }
  // As an engine answers that encodes itself.
  void expect_as_encoded_here(const std::string& id, const EncoderDecoderInputs& inputs) {
    EXPECT_EQ(outputs_.at(id).error, "");
    LLMEngine::Options options;
    options.blocks.block_size = 4;
    options.blocks.num_device_blocks = 40;
    LLMEngine whole(options, std::make_unique<FakeModelExecutor>(options.blocks), nullptr, clock_);
    ASSERT_EQ(whole.add_request(id, inputs, greedy()), ok_status());
    std::vector<RequestOutput> outputs;
    while (whole.has_unfinished_requests()) ASSERT_EQ(whole.step(outputs), ok_status());
    EXPECT_EQ(outputs_.at(id).outputs.at(0).token_ids, outputs.at(0).outputs.at(0).token_ids);
  }
  void make_falling_back(const std::function<void(LLMEngine::Options&)>& change = [](auto&) {}) {
    make_asking([&](LLMEngine::Options& options) {
      options.remote.falls_back = true;
      options.scheduler.may_encode = true;
      change(options);
    });
  }
  void fail_all() {
    for (const EncodeAsk& ask : asker_.asks) asker_.fail(ask, absl::UnavailableError("no encode instance is there"));
  }
  void expect_nothing_held(int64_t num_local_encodes = 0) {
    EXPECT_EQ(engine_->remote_inputs()->cache().num_uses(), 0);
    EXPECT_EQ(engine_->remote_inputs()->num_asking_groups(), 0u);
    EXPECT_EQ(engine_->stats().num_local_encodes, num_local_encodes);
    EXPECT_EQ(engine_->executor_stats().num_encoder_runs, num_local_encodes);
  }
};

TEST_F(AskedRequests, WaitForWhatTheyAskFor) {
  make_asking();
  ASSERT_EQ(add_content("a", 9, 1), ok_status());
  EXPECT_TRUE(engine_->remote_inputs()->awaits("a"));
  EXPECT_TRUE(engine_->scheduler().waiting().empty());
  ASSERT_THAT(asker_.asks, SizeIs(1));
  EXPECT_EQ(asker_.asks[0].digest, item_digest(content(9, 1).items[0]));
  EXPECT_EQ(asker_.asks[0].num_positions, 9);
  EXPECT_EQ(asker_.asks[0].time_left, seconds(60));
  EXPECT_NE(asker_.asks[0].input.request_id, "a") << "ids of requests are unique in one instance alone";
  EXPECT_EQ(check_ec_name("request id", asker_.asks[0].input.request_id), ok_status());
  run();
  expect_right("a", 9, 1);
  EXPECT_EQ(outputs_.at("a").encoder_prompt_token_ids, ids(9, 1));
  EXPECT_THAT(asker_.withdrawn, SizeIs(1));
  expect_nothing_held();
}

TEST_F(AskedRequests, AreAskedForAgainWhenTheBrokerIsBack) {
  make_asking();
  asker_.keeps = true;
  ASSERT_EQ(add_content("a", 9, 1), ok_status());
  asker_.tell_path(true);
  step();
  EXPECT_EQ(asker_.num_asked_again, 0);
  asker_.tell_path(false);
  step();
  EXPECT_EQ(asker_.num_asked_again, 1);
  asker_.encode(asker_.asks.at(0));
  run();
  expect_right("a", 9, 1);
}

TEST_F(AskedRequests, AskForNothingThatIsHere) {
  make_asking();
  ASSERT_EQ(add_content("a", 9, 1), ok_status());
  run();
  encode("held", 5, 2);  // a proxy's
  run(milliseconds(1));
  for (int i = 0; i < 100; ++i) step();
  ASSERT_EQ(add("held", 5, 2), ok_status());
  ASSERT_EQ(add_content("b", 9, 1), ok_status());
  EXPECT_THAT(asker_.asks, SizeIs(1)) << "its rows are idle in the pool";
  run();
  expect_right("held", 5, 2);
  expect_right("b", 9, 1);
  expect_nothing_held();
}

// A proxy has had the rows sent under the request's id.
TEST_F(AskedRequests, AskForNothingThatAProxyHadSent) {
  make_asking();
  send_held("a", 9, 1);
  ASSERT_EQ(engine_->remote_inputs()->cache().num_uses(), 1);
  ASSERT_EQ(add_content("a", 9, 1), ok_status());
  EXPECT_FALSE(engine_->remote_inputs()->awaits("a"));
  run();
  expect_right("a", 9, 1);
  EXPECT_EQ(outputs_.at("a").encoder_prompt_token_ids, ids(9, 1));
  EXPECT_THAT(asker_.asks, SizeIs(0));
  expect_nothing_held();
}

TEST_F(AskedRequests, OfRowsThatAreOthersOrGoneAsk) {
  make_asking();
  send_held("other", 9, 1);
  send_held("longer", 7, 3);
  ASSERT_EQ(add_content("other", 9, 2), ok_status());
  ASSERT_EQ(add_content("longer", 9, 3), ok_status());
  EXPECT_TRUE(engine_->remote_inputs()->awaits("other"));
  EXPECT_THAT(asker_.asks, SizeIs(2));
  run();
  expect_right("other", 9, 2);
  expect_right("longer", 9, 3);
  // They waited for their request for too long, and were given up when room was wanted.
  send_held("late", 9, 4);
  clock_.advance(seconds(200));
  step();
  for (uint64_t i = 0; i < uint64_t{kFakeVocabSize}; ++i) {
    ASSERT_EQ(add_content(std::to_string(i), 11, i), ok_status());
    run();
  }
  const size_t num_before = asker_.asks.size();
  ASSERT_EQ(add_content("late", 9, 4), ok_status());
  run();
  expect_right("late", 9, 4);
  EXPECT_THAT(asker_.asks, SizeIs(num_before + 1));
  // And rows that are on their way are not waited for: who sends them may never do so.
  encoders_.encode(meta_of("begun", 9, 5), fake_rows(ids(9, 5)));
  while (engine_->remote_inputs()->receivers().find_receiver({"begun", 0}) == nullptr) step();
  ASSERT_FALSE(engine_->remote_inputs()->cache().is_written({"begun", 0}));
  ASSERT_EQ(add_content("begun", 9, 5), ok_status());
  EXPECT_THAT(asker_.asks, SizeIs(num_before + 2));
  run();
  expect_right("begun", 9, 5);
  expect_nothing_held();
}

// The rows have been used: what they were is asked for under a name of this instance.
TEST_F(AskedRequests, OfAProxyAskAfterARecompute) {
  size_t num_asked = 0;
  for (const int32_t num_blocks : {24, 26, 28, 30, 32}) {
    outputs_.clear();
    asker_.asks.clear();
    make_asking([&](auto& options) {
      options.blocks.num_device_blocks = num_blocks;
      options.blocks.max_reserved_blocks = 12;  // of all three
      options.scheduler.preemption_mode = PreemptionMode::kRecompute;
    });
    for (uint64_t i = 1; i <= 3; ++i) send_held(str_cat(num_blocks, ".", i), 9, i);
    for (uint64_t i = 1; i <= 3; ++i) {
      ASSERT_EQ(add_content(str_cat(num_blocks, ".", i), 9, i, greedy(30)), ok_status());
    }
    ASSERT_THAT(asker_.asks, SizeIs(0));
    run();
    for (uint64_t i = 1; i <= 3; ++i) expect_right(str_cat(num_blocks, ".", i), 9, i, greedy(30));
    num_asked += asker_.asks.size();
    expect_nothing_held();
    engine_.reset();
  }
  EXPECT_GT(num_asked, 0u);
}

// An encode instance that was slow announces what its request no longer wants: it takes no room.
TEST_F(AskedRequests, WhatWasWithdrawnTakesNoRoom) {
  make_asking();
  asker_.keeps = true;
  ASSERT_EQ(add_content("gone", 9, 1), ok_status());
  ASSERT_TRUE(engine_->abort_request("gone").ok());
  asker_.encode(asker_.asks[0]);
  for (int i = 0; i < 2000; ++i) step();
  expect_nothing_held();
  EXPECT_EQ(encoders_.stats().num_failed, 1) << "it hears that its rows are not wanted";
  EXPECT_EQ(encoders_.stats().num_done, 0);
  // The next one has all the room.
  asker_.keeps = false;
  ASSERT_EQ(add_content("next", 30, 2), ok_status());
  run();
  expect_right("next", 30, 2);
  expect_nothing_held();
}

// A handle is asked for once, when a request over it has its turn.
TEST_F(AskedRequests, OverOneHandleAskOnce) {
  make_asking();
  const EncodedInput handle = engine_->encode(content(9, 1)).value();
  EXPECT_THAT(asker_.asks, SizeIs(0));
  for (int i = 0; i < 3; ++i) {
    const std::string id = str_cat("r", i);
    ASSERT_EQ(add_over(handle, id), ok_status());
    run();
    expect_right(id, 9, 1);
  }
  EXPECT_THAT(asker_.asks, SizeIs(1));
  expect_nothing_held();
}

// As Whisper's language: a pass of its own over the same rows.
TEST_F(AskedRequests, WithAnOpenTokenAskOnce) {
  make_asking();
  EncoderDecoderInputs inputs = content(9, 1);
  inputs.prompt_token_ids = {1, 2, 3};
  inputs.open_token = OpenToken{.index = 1, .choices = {4, 5, 6}};
  ASSERT_EQ(engine_->add_request("a", inputs, greedy()), ok_status());
  run();
  ASSERT_EQ(outputs_.at("a").error, "");
  EXPECT_THAT(asker_.asks, SizeIs(1));
  EncoderDecoderInputs truth = content(9, 1);
  truth.prompt_token_ids = outputs_.at("a").prompt_token_ids;
  EXPECT_THAT((std::vector<int32_t>{4, 5, 6}), ::testing::Contains(truth.prompt_token_ids.at(1)));
  EXPECT_EQ(outputs_.at("a").outputs.at(0).token_ids,
            decode_obviously(truth, greedy(), fake_scores).outputs.at(0).token_ids);
  expect_nothing_held();
}

// Without an asker some of these are lost (RemoteRequests.AfterARecomputeFindTheirRowsOrSaySo).
TEST_F(AskedRequests, AfterARecomputeAskAgain) {
  size_t num_again = 0;
  for (const int32_t num_blocks : {20, 22, 24, 26, 28, 30, 32}) {
    outputs_.clear();
    asker_.asks.clear();
    make_asking([&](auto& options) {
      options.blocks.num_device_blocks = num_blocks;
      options.scheduler.preemption_mode = PreemptionMode::kRecompute;
    });
    for (uint64_t i = 1; i <= 3; ++i)
      ASSERT_EQ(add_content(str_cat(num_blocks, ".", i), 9, i, greedy(30)), ok_status());
    run();
    for (uint64_t i = 1; i <= 3; ++i) expect_right(str_cat(num_blocks, ".", i), 9, i, greedy(30));
    num_again += asker_.asks.size() - 3;
    expect_nothing_held();
    engine_.reset();
  }
  EXPECT_GT(num_again, 0u);
}

// Two items, crossed one behind the other.
TEST_F(AskedRequests, OfSeveralItemsAskForThoseThatAreMissing) {
  make_asking();
  ASSERT_EQ(add_content("first", 5, 1), ok_status());
  run();
  asker_.asks.clear();
  asker_.keeps = true;
  EncoderDecoderInputs inputs = content(5, 1);
  inputs.items.push_back(content(9, 2).items[0]);
  inputs.items.push_back(content(7, 3).items[0]);
  ASSERT_EQ(engine_->add_request("outside", inputs, greedy()), ok_status());
  ASSERT_THAT(asker_.asks, SizeIs(2));
  EXPECT_EQ(asker_.asks[0].input.input_id, 1u);
  EXPECT_EQ(asker_.asks[0].num_positions, 9);
  asker_.encode(asker_.asks[0]);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_TRUE(engine_->remote_inputs()->awaits("outside")) << "one is missing";
  asker_.encode(asker_.asks[1]);
  run(seconds(2));
  ASSERT_TRUE(outputs_.contains("outside"));
  expect_as_encoded_here("outside", inputs);
  expect_nothing_held();
}

TEST_F(AskedRequests, OverAHandleOfSeveralItemsWaitForAll) {
  make_asking();
  asker_.keeps = true;
  EncoderDecoderInputs inputs = content(5, 1);
  inputs.items.push_back(content(9, 2).items[0]);
  const EncodedInput handle = engine_->encode(inputs).value();
  ASSERT_EQ(add_over(handle, "inside"), ok_status());
  step();
  ASSERT_THAT(asker_.asks, SizeIs(2));
  asker_.encode(asker_.asks[0]);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(engine_->remote_inputs()->num_asking_groups(), 1u);
  EXPECT_THAT(asker_.asks, SizeIs(2)) << "no name but the first";
  asker_.encode(asker_.asks[1]);
  run(seconds(2));
  ASSERT_TRUE(outputs_.contains("inside"));
  expect_as_encoded_here("inside", inputs);
  expect_nothing_held();
}

// A group of the scheduler that waits: nobody stands behind it, and no step is made for it.
TEST_F(AskedRequests, InTheSchedulerHoldNobodyUp) {
  make_asking();
  asker_.keeps = true;
  const EncodedInput handle = engine_->encode(content(9, 1)).value();
  ASSERT_EQ(add_over(handle, "waits"), ok_status());
  EXPECT_EQ(engine_->next_step_time(), TimePoint::min());
  step();
  ASSERT_THAT(asker_.asks, SizeIs(1));
  EXPECT_GT(engine_->next_step_time(), clock_.now());
  encode("held", 5, 2);
  for (int i = 0; i < 100; ++i) step();
  ASSERT_EQ(add("held", 5, 2), ok_status());
  EXPECT_EQ(engine_->next_step_time(), TimePoint::min()) << "something has come";
  for (int i = 0; i < 100; ++i) step();
  expect_right("held", 5, 2);
  EXPECT_FALSE(outputs_.contains("waits"));
  EXPECT_THAT(asker_.asks, SizeIs(1)) << "once is enough";
  asker_.encode(asker_.asks[0]);
  run(seconds(1));
  expect_right("waits", 9, 1);
  expect_nothing_held();
}

TEST_F(AskedRequests, EndWhenNothingComes) {
  make_asking([](auto& options) { options.remote.max_wait = seconds(2); });
  asker_.keeps = true;
  add_outside_and_inside();
  run(seconds(4));
  for (const char* id : {"outside", "inside"}) {
    ASSERT_TRUE(outputs_.contains(id)) << id;
    EXPECT_THAT(outputs_.at(id).error, HasSubstr("1 of 1 encoder inputs did not come")) << id;
    EXPECT_EQ(outputs_.at(id).error_code, absl::StatusCode::kUnavailable) << id;
    EXPECT_EQ(outputs_.at(id).error_param, "") << id << ": its client has named no such field";
  }
  EXPECT_THAT(asker_.withdrawn, SizeIs(2));
  EXPECT_EQ(engine_->num_unfinished_requests(), 0u);
  expect_nothing_held();
}

TEST_F(AskedRequests, EndWithWhatTheAskerSays) {
  make_asking();
  asker_.keeps = true;
  add_outside_and_inside();
  ASSERT_EQ(add_content("other", 9, 3), ok_status());
  step();
  ASSERT_THAT(asker_.asks, SizeIs(3));
  for (const EncodeAsk& ask : asker_.asks) {
    if (ask.digest == item_digest(content(9, 3).items[0])) continue;
    asker_.fail(ask, absl::ResourceExhaustedError("4096 inputs wait already"));
    asker_.fail(ask, absl::ResourceExhaustedError("4096 inputs wait already"));
  }
  EXPECT_EQ(engine_->next_step_time(), TimePoint::min());
  step();
  for (const char* id : {"outside", "inside"}) {
    ASSERT_TRUE(outputs_.contains(id)) << id;
    EXPECT_EQ(outputs_.at(id).error, "4096 inputs wait already");
    EXPECT_EQ(outputs_.at(id).error_code, absl::StatusCode::kResourceExhausted);
  }
  EXPECT_FALSE(outputs_.contains("other"));
  EXPECT_TRUE(engine_->remote_inputs()->awaits("other"));
}

TEST_F(AskedRequests, AreAbortedAndAskNoMore) {
  make_asking();
  asker_.keeps = true;
  add_outside_and_inside();
  step();
  for (const char* id : {"outside", "inside"}) {
    ASSERT_EQ(engine_->abort_request(id).status(), ok_status());
    asker_.fail(asker_.asks[0], absl::UnavailableError("too late"));
  }
  EXPECT_THAT(asker_.withdrawn, SizeIs(2));
  step();
  EXPECT_TRUE(outputs_.empty());
  EXPECT_EQ(engine_->num_unfinished_requests(), 0u);
  expect_nothing_held();
  // The same id again: what is said of the earlier ask is not about it.
  ASSERT_EQ(add_content("outside", 9, 1), ok_status());
  asker_.fail(asker_.asks[0], absl::UnavailableError("much too late"));
  step();
  EXPECT_TRUE(outputs_.empty());
  asker_.encode(asker_.asks.back());
  run(seconds(1));
  expect_right("outside", 9, 1);
}

// The circle of decision 35. The oldest group needs rows that are idle, and the reservations of those behind it take
// all room that rows may have: they pass it, or nobody would get on until it has waited too long.
TEST_F(AskedRequests, AreNotInTheWayOfReservationsThatAreInTheirs) {
  make_asking([](auto& options) { options.blocks.num_device_blocks = 13; });
  ASSERT_EQ(add_content("first", 9, 1, greedy(2)), ok_status());
  run();
  for (const uint64_t which : {5, 6}) encode(str_cat("held", which), 16, which);
  for (int i = 0; i < 200; ++i) step();
  EXPECT_EQ(engine_->scheduler().blocks().num_reserved_blocks(), 8);
  EncoderDecoderInputs prompt;
  prompt.prompt_token_ids = {1, 2};
  ASSERT_EQ(engine_->add_request("oldest", engine_->encode(content(9, 1)).value(), prompt, greedy(2)), ok_status());
  step();
  EXPECT_FALSE(outputs_.contains("oldest"));
  EXPECT_EQ(engine_->remote_inputs()->num_asking_groups(), 1u);
  for (const uint64_t which : {5, 6}) ASSERT_EQ(add(str_cat("held", which), 16, which, greedy(2)), ok_status());
  run(seconds(5));
  EXPECT_THAT(order_, ::testing::ElementsAre("first", "held5", "held6", "oldest"));
  for (const uint64_t which : {5, 6}) expect_right(str_cat("held", which), 16, which, greedy(2));
  expect_right("oldest", 9, 1, greedy(2));
  expect_nothing_held();
}

// ---- --ec-fallback local

TEST_F(AskedRequests, FallBackWhenNoEncodeInstanceIsThere) {
  make_falling_back();
  asker_.keeps = true;
  add_outside_and_inside();
  step();
  ASSERT_THAT(asker_.asks, SizeIs(2));
  EXPECT_EQ(engine_->stats().num_local_encodes, 0);
  fail_all();
  fail_all();
  EXPECT_EQ(engine_->next_step_time(), TimePoint::min());
  run(seconds(1));
  expect_right("outside", 9, 1);
  expect_right("inside", 9, 2);
  EXPECT_EQ(outputs_.at("outside").encoder_prompt_token_ids, ids(9, 1));
  EXPECT_THAT(asker_.withdrawn, SizeIs(2));
  expect_nothing_held(2);
  // Rows that come all the same take no room.
  for (size_t i = 0; i < 2; ++i) asker_.encode(asker_.asks[i]);
  for (int i = 0; i < 2000; ++i) step();
  expect_nothing_held(2);
  EXPECT_EQ(encoders_.stats().num_done, 0);
  // One that is there is asked again.
  asker_.keeps = false;
  ASSERT_EQ(add_content("next", 9, 3), ok_status());
  run();
  expect_right("next", 9, 3);
  expect_nothing_held(2);
}

TEST_F(AskedRequests, FallBackWhenWaitingIsOver) {
  make_falling_back([](auto& options) { options.remote.max_wait = seconds(2); });
  asker_.keeps = true;
  add_outside_and_inside();
  run(seconds(4));
  ASSERT_THAT(outputs_, SizeIs(2));
  expect_right("outside", 9, 1);
  expect_right("inside", 9, 2);
  expect_nothing_held(2);
}

TEST_F(AskedRequests, FallBackForNothingElse) {
  make_falling_back();
  asker_.keeps = true;
  add_outside_and_inside();
  step();
  for (const EncodeAsk& ask : asker_.asks) asker_.fail(ask, absl::ResourceExhaustedError("the queue is full"));
  step();
  for (const char* id : {"outside", "inside"}) EXPECT_EQ(outputs_.at(id).error, "the queue is full");
  // Whose client waits no longer.
  RequestOptions options;
  options.deadline = clock_.now() + seconds(1);
  ASSERT_EQ(engine_->add_request("late", content(9, 3), greedy(), options), ok_status());
  run(seconds(2));
  EXPECT_THAT(outputs_.at("late").error, HasSubstr("did not come"));
  // Whose content another process has.
  ASSERT_EQ(add("held", 9, 4), ok_status());
  run();
  EXPECT_THAT(outputs_.at("held").error, HasSubstr("did not come"));
  expect_nothing_held();
}

// Of several items one has come: all are encoded here.
TEST_F(AskedRequests, FallBackWithAllTheirItems) {
  make_falling_back([](auto& options) { options.blocks.share_identical_inputs = true; });
  asker_.keeps = true;
  EncoderDecoderInputs inputs = content(5, 1);
  inputs.items.push_back(content(9, 2).items[0]);
  ASSERT_EQ(engine_->add_request("outside", inputs, greedy()), ok_status());
  ASSERT_EQ(add_over(engine_->encode(inputs).value(), "inside"), ok_status());
  step();
  ASSERT_THAT(asker_.asks, SizeIs(4));
  for (const size_t i : {0, 2}) asker_.encode(asker_.asks[i]);
  for (int i = 0; i < 200; ++i) step();
  for (const size_t i : {1, 3}) asker_.fail(asker_.asks[i], absl::UnavailableError("not injected in 3 attempts"));
  run(seconds(1));
  for (const char* id : {"outside", "inside"}) {
    ASSERT_TRUE(outputs_.contains(id));
    expect_as_encoded_here(id, inputs);
  }
  expect_nothing_held(2);
  EXPECT_EQ(engine_->stats().num_encoder_cache_hits, 1) << "the second one finds cross KV of the first";
}

TEST_F(AskedRequests, WithAnOpenTokenFallBackOnce) {
  make_falling_back();
  asker_.keeps = true;
  EncoderDecoderInputs inputs = content(9, 1);
  inputs.prompt_token_ids = {1, 2, 3};
  inputs.open_token = OpenToken{.index = 1, .choices = {4, 5, 6}};
  ASSERT_EQ(engine_->add_request("a", inputs, greedy()), ok_status());
  fail_all();
  run();
  ASSERT_EQ(outputs_.at("a").error, "");
  EncoderDecoderInputs truth = content(9, 1);
  truth.prompt_token_ids = outputs_.at("a").prompt_token_ids;
  EXPECT_EQ(outputs_.at("a").outputs.at(0).token_ids,
            decode_obviously(truth, greedy(), fake_scores).outputs.at(0).token_ids);
  expect_nothing_held(1);
}

// Those that have generated tokens already go on from there.
TEST_F(AskedRequests, AfterARecomputeFallBack) {
  int64_t num_local = 0;
  for (const int32_t num_blocks : {20, 22, 24, 26, 28, 30, 32}) {
    outputs_.clear();
    asker_.asks.clear();
    asker_.keeps = false;
    make_falling_back([&](auto& options) {
      options.blocks.num_device_blocks = num_blocks;
      options.scheduler.preemption_mode = PreemptionMode::kRecompute;
    });
    for (uint64_t i = 1; i <= 3; ++i)
      ASSERT_EQ(add_content(str_cat(num_blocks, ".", i), 9, i, greedy(30)), ok_status());
    asker_.keeps = true;
    while (engine_->has_unfinished_requests()) {
      const size_t num_before = asker_.asks.size();
      step();
      for (size_t i = num_before; i < asker_.asks.size(); ++i)
        asker_.fail(asker_.asks[i], absl::UnavailableError("no encode instance is there"));
    }
    for (uint64_t i = 1; i <= 3; ++i) expect_right(str_cat(num_blocks, ".", i), 9, i, greedy(30));
    num_local += engine_->stats().num_local_encodes;
    expect_nothing_held(engine_->stats().num_local_encodes);
    engine_.reset();
  }
  EXPECT_GT(num_local, 0);
}

}  // namespace
}  // namespace transept::testing
