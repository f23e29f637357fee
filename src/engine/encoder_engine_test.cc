// An encode instance announces, encodes and sends, and answers each request once: after all its rows are there, or with
// the first error. Here the peer is a script; engine/epd_property_test.cc has both sides over a network that fails.
#include "engine/encoder_engine.h"
#include "base/sanitized_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "engine/encoder_engine_testing.h"
#include "engine/family_requests_testing.h"
#include "rank/encoder_model_runner.h"

namespace transept {
namespace {

using namespace std::chrono_literals;
using testing::Circumstances;
using ::testing::ElementsAre;
using testing::FakeEncoder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::KeepingConnector;
using ::testing::SizeIs;

const InstanceId kConsumer{"p0", 22};
constexpr EcSenderEvent kTransportEvents[] = {EcSenderEvent::kSendProgress, EcSenderEvent::kSendDone,
                                              EcSenderEvent::kSendFailed, EcSenderEvent::kOutboxFull};

std::vector<EcRows> rows_sent(const KeepingConnector& connector) {
  std::vector<EcRows> rows;
  for (const KeepingConnector::Rows& sent : connector.sent_rows) rows.push_back(sent.rows);
  return rows;
}

std::vector<float> floats_of(const EcRows& rows) {
  std::vector<float> values(rows->size() / sizeof(float));
  std::memcpy(values.data(), rows->data(), rows->size());
  return values;
}

class EncoderEngineTest : public ::testing::Test {
 protected:
  EncoderEngineTest() { make(); }

  static EncoderEngine::Options options() {
    EncoderEngine::Options options;
    options.scheduler = {.max_num_encoder_tokens = 20, .max_num_seqs = 4, .max_output_bytes = 4096};
    options.max_requests = 40;
    options.model.bytes[0] = std::byte{9};
    return options;
  }
  void make(const EncoderEngine::Options& wanted = options()) {
    auto executor = std::make_unique<FakeEncoder>();
    executor_ = executor.get();
    connector_ = std::make_unique<KeepingConnector>();
    engine_ = std::make_unique<EncoderEngine>(wanted, std::move(executor), *connector_, clock_);
    engine_->start([this] { ++num_wakes_; });
  }

  static EncoderItem item(int32_t first, int32_t size = 2) {
    return EncoderItem(std::vector<int32_t>(static_cast<size_t>(size), first));
  }
  Status add(const std::string& id, std::vector<EncoderItem> items, Duration time_left = 30s) {
    return engine_->add_request(id, std::move(items), {kConsumer, 0, time_left});
  }
  std::vector<RequestOutput> step() {
    std::vector<RequestOutput> outputs;
    const Status stepped = engine_->step(outputs);
    EXPECT_TRUE(stepped.ok()) << stepped;
    return outputs;
  }
  void grant(const EcKey& key, uint64_t reservation = 5) {
    connector_->put(EcPeerMessage{kConsumer, EcAllocation{key, EcVerdict::kAllocated, reservation, "bulk"}});
  }
  void say(const EcKey& key, EcVerdict verdict) {
    connector_->put(EcPeerMessage{kConsumer, EcAllocation{key, verdict}});
  }
  void inject(const EcKey& key) { connector_->put(EcPeerMessage{kConsumer, EcInjection{key, EcVerdict::kAllocated}}); }
  static EcKey key(const std::string& id, uint32_t input = 0, uint32_t attempt = 0) { return {id, input, attempt}; }

  void expect_nothing_left() {
    EXPECT_EQ(engine_->num_unfinished_requests(), 0u);
    EXPECT_EQ(engine_->senders().num_transfers(), 0u);
    EXPECT_EQ(engine_->scheduler().num_items(), 0u);
    EXPECT_EQ(engine_->scheduler().outputs().used_bytes(), 0u);
    step();
    EXPECT_EQ(engine_->next_step_time(), TimePoint::max()) << "it would wake for nothing";
  }

  FakeClock clock_;
  FakeEncoder* executor_ = nullptr;
  std::unique_ptr<KeepingConnector> connector_;
  std::unique_ptr<EncoderEngine> engine_;
  int num_wakes_ = 0;
};

TEST_F(EncoderEngineTest, AnnouncesThenEncodesThenSendsThenAnswers) {
  ASSERT_TRUE(add("a", {item(7)}).ok());
  EXPECT_THAT(connector_->sent, IsEmpty());
  EXPECT_EQ(engine_->next_step_time(), TimePoint::min());
  EXPECT_THAT(step(), IsEmpty());
  const auto metas = connector_->all_sent<EcMeta>();
  ASSERT_THAT(metas, SizeIs(1));
  EXPECT_EQ(metas[0].key, key("a"));
  EXPECT_EQ(metas[0].digest, item_digest(item(7)));
  EXPECT_EQ(metas[0].model, options().model);
  EXPECT_EQ(metas[0].num_positions, 2);
  EXPECT_EQ(metas[0].width, FakeEncoder::kWidth);
  EXPECT_EQ(metas[0].place, (PlaceholderRange{0, 2, {}}));
  EXPECT_EQ(connector_->sent[0].to, kConsumer);
  EXPECT_THAT(executor_->batches, ElementsAre(1)) << "it encodes while the answer is on its way";
  EXPECT_THAT(connector_->sent_rows, IsEmpty()) << "no byte without a grant";
  EXPECT_EQ(engine_->next_step_time(), engine_->senders().next_time()) << "until then there is nothing to do";

  grant(key("a"), 77);
  EXPECT_EQ(num_wakes_, 1);
  EXPECT_EQ(engine_->next_step_time(), TimePoint::min());
  EXPECT_THAT(step(), IsEmpty());
  ASSERT_THAT(connector_->sent_rows, SizeIs(1));
  EXPECT_EQ(connector_->sent_rows[0].reservation, 77u);
  EXPECT_EQ(connector_->sent_rows[0].address, "bulk");
  EXPECT_EQ(floats_of(connector_->sent_rows[0].rows), FakeEncoder::rows_of({7, 7}));

  connector_->put(EcSendEvent{EcSenderEvent::kSendDone, key("a")});
  EXPECT_THAT(step(), IsEmpty()) << "sent is not injected";
  clock_.advance(3s);
  inject(key("a"));
  const auto outputs = step();
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].request_id, "a");
  EXPECT_TRUE(outputs[0].finished);
  EXPECT_EQ(outputs[0].error, "");
  EXPECT_THAT(outputs[0].outputs, IsEmpty());
  ASSERT_THAT(outputs[0].encoded_items, SizeIs(1));
  EXPECT_EQ(outputs[0].encoded_items[0].digest, item_digest(item(7)));
  EXPECT_EQ(outputs[0].encoded_items[0].num_positions, 2);
  EXPECT_EQ(outputs[0].encoded_items[0].seconds, 3);
  expect_nothing_left();
}

TEST_F(EncoderEngineTest, AGrantBeforeTheEncodeIsUsedWhenItEnds) {
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(add(std::to_string(i), {item(i)}).ok());
  step();  // encodes four
  for (int i = 0; i < 11; ++i) grant(key(std::to_string(i)), static_cast<uint64_t>(i) + 1);
  step();
  EXPECT_THAT(connector_->sent_rows, SizeIs(8));
  step();
  EXPECT_THAT(connector_->sent_rows, SizeIs(11));
  EXPECT_THAT(executor_->batches, ElementsAre(4, 4, 3)) << "as large as the budget";
  for (int i = 0; i < 11; ++i)
    EXPECT_EQ(floats_of(rows_sent(*connector_)[static_cast<size_t>(i)])[0], 10.0F * static_cast<float>(i));
}

TEST_F(EncoderEngineTest, AHitSavesTheEncode) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(add(std::to_string(i), {item(i)}).ok());
  step();
  say(key("4"), EcVerdict::kHit);
  const auto outputs = step();
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].request_id, "4");
  EXPECT_THAT(executor_->batches, ElementsAre(4)) << "the fifth was not encoded";
}

TEST_F(EncoderEngineTest, ARequestIsFinishedWhenAllItsItemsAre) {
  ASSERT_TRUE(add("a", {item(1), item(2, 3), item(1)}).ok());
  step();
  EXPECT_THAT(executor_->batches, ElementsAre(2)) << "two items are equal";
  for (uint32_t i = 0; i < 3; ++i) grant(key("a", i), i + 1);
  step();
  EXPECT_THAT(connector_->sent_rows, SizeIs(3));
  inject(key("a", 2));
  inject(key("a", 2));  // told twice
  inject(key("a", 0));
  EXPECT_THAT(step(), IsEmpty());
  inject(key("a", 1));
  const auto outputs = step();
  ASSERT_THAT(outputs, SizeIs(1));
  ASSERT_THAT(outputs[0].encoded_items, SizeIs(3));
  EXPECT_EQ(outputs[0].encoded_items[1].num_positions, 3);
  expect_nothing_left();
}

// Inputs of one request of the decode instance, as tickets bring them: each is a request here.
TEST_F(EncoderEngineTest, RequestsMayShareAName) {
  const auto add_input = [&](const std::string& id, uint32_t first, std::vector<EncoderItem> items) {
    return engine_->add_request(id, std::move(items), {kConsumer, 0, 30s, "a", first});
  };
  ASSERT_TRUE(add_input("a", 0, {item(1)}).ok());
  ASSERT_TRUE(add_input("a/3", 3, {item(4), item(5)}).ok());
  const Status taken = add_input("a/4", 4, {item(6)});
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_THAT(taken.message(), HasSubstr("input 4 of a request \"a\""));
  EXPECT_EQ(error_param(add_input("a/5", ~uint32_t{0}, {item(6)})), "input_id");
  step();
  grant(key("a", 0), 1);
  grant(key("a", 3), 2);
  grant(key("a", 4), 3);
  step();
  ASSERT_THAT(connector_->sent_rows, SizeIs(3));
  EXPECT_EQ(floats_of(rows_sent(*connector_)[0])[0], 10.0F);
  EXPECT_EQ(floats_of(rows_sent(*connector_)[1])[0], 40.0F);
  EXPECT_EQ(floats_of(rows_sent(*connector_)[2])[0], 50.0F);
  // The end of one leaves the other.
  ASSERT_TRUE(engine_->abort_request("a").ok());
  inject(key("a", 0));
  inject(key("a", 4));
  EXPECT_THAT(step(), IsEmpty());
  inject(key("a", 3));
  const auto outputs = step();
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].request_id, "a/3");
  ASSERT_THAT(outputs[0].encoded_items, SizeIs(2));
  EXPECT_EQ(outputs[0].encoded_items[1].digest, item_digest(item(5)));
  expect_nothing_left();
}

TEST_F(EncoderEngineTest, TheFirstErrorEndsTheWholeRequest) {
  ASSERT_TRUE(add("a", {item(1), item(2)}).ok());
  ASSERT_TRUE(add("b", {item(3)}).ok());
  step();
  grant(key("a", 0));
  say(key("a", 1), EcVerdict::kNever);
  const auto outputs = step();
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].request_id, "a");
  EXPECT_EQ(outputs[0].error_code, absl::StatusCode::kResourceExhausted);
  EXPECT_NE(outputs[0].error, "");
  EXPECT_THAT(connector_->all_sent<EcCancel>(), ElementsAre(EcCancel{key("a", 0), EcChannel::kMetadata}))
      << "the other item's room is given back";
  inject(key("a", 0));
  EXPECT_THAT(step(), IsEmpty()) << "it was answered";
  EXPECT_EQ(engine_->num_unfinished_requests(), 1u) << "the other request goes on";
  say(key("b"), EcVerdict::kHit);
  EXPECT_THAT(step(), SizeIs(1));
  expect_nothing_left();
}

TEST_F(EncoderEngineTest, EachEndHasItsError) {
  const auto ends_with = [&](const std::string& id) {
    const auto outputs = step();
    EXPECT_THAT(outputs, SizeIs(1)) << id;
    if (outputs.empty()) return absl::StatusCode::kOk;
    EXPECT_EQ(outputs[0].request_id, id);
    EXPECT_NE(outputs[0].error, "");
    return outputs[0].error_code;
  };
  const auto begin = [&](const std::string& id, Duration time_left = 30s) {
    ASSERT_TRUE(add(id, {item(1)}, time_left).ok());
    step();
  };
  begin("model");
  say(key("model"), EcVerdict::kIncompatible);
  EXPECT_EQ(ends_with("model"), absl::StatusCode::kFailedPrecondition);
  begin("gone");
  connector_->put(EcPeerGone{kConsumer});
  EXPECT_EQ(ends_with("gone"), absl::StatusCode::kUnavailable);
  begin("cancelled");
  connector_->put(EcPeerMessage{kConsumer, EcCancel{key("cancelled"), EcChannel::kAllocation}});
  EXPECT_EQ(ends_with("cancelled"), absl::StatusCode::kCancelled);
  begin("outbox");
  connector_->put(EcSendEvent{EcSenderEvent::kOutboxFull, key("outbox")});
  EXPECT_EQ(ends_with("outbox"), absl::StatusCode::kAborted);
  begin("late", 100ms);
  clock_.advance(101ms);
  EXPECT_EQ(ends_with("late"), absl::StatusCode::kDeadlineExceeded);
  begin("silent", 10min);
  absl::StatusCode silent = absl::StatusCode::kOk;
  for (int i = 0; i < 100 && silent == absl::StatusCode::kOk; ++i) {
    clock_.advance(1s);
    const auto outputs = step();
    if (!outputs.empty()) silent = outputs[0].error_code;
  }
  EXPECT_EQ(silent, absl::StatusCode::kUnavailable);
  expect_nothing_left();
  EXPECT_EQ(engine_->stats().num_failed, 6);
}

TEST_F(EncoderEngineTest, ALaterAttemptSendsTheKeptRows) {
  ASSERT_TRUE(add("a", {item(1)}).ok());
  step();
  grant(key("a"));
  step();
  connector_->put(EcSendEvent{EcSenderEvent::kSendFailed, key("a")});
  step();
  EXPECT_EQ(connector_->all_sent<EcMeta>().back().key, key("a", 0, 1));
  grant(key("a", 0, 1), 6);
  step();
  EXPECT_THAT(connector_->sent_rows, SizeIs(2));
  EXPECT_THAT(executor_->batches, ElementsAre(1)) << "without a second encode";
  inject(key("a", 0, 1));
  EXPECT_THAT(step(), SizeIs(1));
  // And so does another request for the same input.
  ASSERT_TRUE(add("b", {item(1)}).ok());
  step();
  grant(key("b"));
  step();
  EXPECT_THAT(connector_->sent_rows, SizeIs(3));
  EXPECT_THAT(executor_->batches, ElementsAre(1));
}

TEST_F(EncoderEngineTest, AbortEndsARequestInEveryState) {
  EXPECT_TRUE(absl::IsNotFound(engine_->abort_request("a").status()));
  for (int state = 0; state < 5; ++state) {
    SCOPED_TRACE(state);
    ASSERT_TRUE(add("a", {item(state + 1)}).ok());
    if (state > 0) step();
    if (state > 1) grant(key("a"));
    if (state > 2) step();
    if (state > 3) connector_->put(EcSendEvent{EcSenderEvent::kSendDone, key("a")});
    const StatusOr<RequestOutput> output = engine_->abort_request("a");
    ASSERT_TRUE(output.ok());
    EXPECT_THAT(output->outputs, IsEmpty());
    // Its name is free at once, and what was said of it does not end the new one.
    ASSERT_TRUE(add("a", {item(state + 1)}).ok());
    EXPECT_THAT(step(), IsEmpty());
    EXPECT_EQ(engine_->num_unfinished_requests(), 1u);
    ASSERT_TRUE(engine_->abort_request("a").ok());
    step();
    expect_nothing_left();
  }
}

TEST_F(EncoderEngineTest, RefusesWhatItCannotTake) {
  const auto refused = [&](const std::string& id, std::vector<EncoderItem> items, Duration time_left = 30s) {
    return add(id, std::move(items), time_left);
  };
  EXPECT_EQ(error_param(refused("a b", {item(1)})), "request_id");
  EXPECT_TRUE(absl::IsInvalidArgument(refused("a", {})));
  EXPECT_THAT(error_message(refused("a", {item(1, 21)})), AllOf(HasSubstr("21"), HasSubstr("20")));
  EXPECT_THAT(error_message(refused("a", {item(1, 17)})), HasSubstr("16")) << "the model's positions";
  EXPECT_THAT(error_message(refused("a", {item(1000)})), HasSubstr("1000")) << "no such id";
  EXPECT_THAT(error_message(refused("a", {item(-1)})), HasSubstr("-1"));
  EncoderItem spliced = item(1);
  spliced.consumers = Consumers::kSplice;
  EXPECT_TRUE(absl::IsInvalidArgument(refused("a", {spliced})));
  EXPECT_FALSE(refused("a", {item(1)}, -1s).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(refused("a", {item(1), item(1, 30)}))) << "one bad item is enough";
  ASSERT_TRUE(refused("a", {item(1)}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(refused("a", {item(1)})));
  for (int i = 1; i < 40; ++i) ASSERT_TRUE(add(std::to_string(i), {item(1)}).ok());
  const Status full = refused("z", {item(1)});
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(error_message(full), HasSubstr("40"));
}

TEST_F(EncoderEngineTest, DoesNotSpinWhileItsOutputsFillTheRoom) {
  EncoderEngine::Options small = options();
  small.scheduler.max_output_bytes = 2 * 2 * FakeEncoder::kWidth * sizeof(float);
  make(small);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(add(std::to_string(i), {item(i)}).ok());
  step();
  step();
  EXPECT_THAT(executor_->batches, ElementsAre(2));
  EXPECT_GT(engine_->next_step_time(), clock_.now());
  say(key("0"), EcVerdict::kHit);
  EXPECT_THAT(step(), SizeIs(1));
  EXPECT_THAT(executor_->batches, ElementsAre(2, 1)) << "there is room now";
  EXPECT_GT(engine_->next_step_time(), clock_.now());
}

TEST_F(EncoderEngineTest, AFailedExecutorIsAnErrorOfTheStep) {
  ASSERT_TRUE(add("a", {item(1)}).ok());
  executor_->failure = absl::InternalError("broken");
  std::vector<RequestOutput> outputs;
  EXPECT_EQ(error_message(engine_->step(outputs)), "broken");
  EXPECT_TRUE(engine_->abort_request("a").ok()) << "its owner ends what is left";
}

TEST_F(EncoderEngineTest, AStepTakesABoundedNumberOfEvents) {
  ASSERT_TRUE(add("a", {item(1)}).ok());
  step();
  for (int i = 0; i < 200; ++i) connector_->put(EcPeerMessage{{"stranger", 1}, EcQuery{key("a")}});
  say(key("a"), EcVerdict::kHit);
  int num_steps = 1;
  while (step().empty()) ++num_steps;
  EXPECT_EQ(num_steps, 4);
}

TEST_F(EncoderEngineTest, SendsHalfTheBytesIfAskedTo) {
  EncoderEngine::Options halves = options();
  halves.dtype = DType::kBFloat16;
  make(halves);
  ASSERT_TRUE(add("a", {item(3)}).ok());
  step();
  EXPECT_EQ(connector_->all_sent<EcMeta>()[0].dtype, DType::kBFloat16);
  grant(key("a"));
  step();
  const EcRows& rows = connector_->sent_rows[0].rows;
  ASSERT_EQ(rows->size(), size_t{2} * FakeEncoder::kWidth * 2);
  uint16_t bits = 0;
  std::memcpy(&bits, rows->data() + 2, sizeof bits);
  EXPECT_EQ(bfloat16_to_float(bits), 31);
}

// Whatever peers say, in whatever order: each request is answered once, and nothing is left.
TEST_F(EncoderEngineTest, AnswersEachRequestOnceThroughRandomHistories) {
  for (uint64_t seed = 1; seed <= (kSanitized ? 30 : 150); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto draw = [&random](int high) { return static_cast<int>(random() % static_cast<uint64_t>(high)); };
    EncoderEngine::Options some = options();
    some.scheduler.max_output_bytes = uint64_t{320} + static_cast<uint64_t>(draw(900));
    make(some);
    std::map<std::string, int> answers;
    std::set<std::string> open;
    const auto note = [&](const std::vector<RequestOutput>& outputs) {
      for (const RequestOutput& output : outputs) {
        ++answers[output.request_id];
        EXPECT_EQ(open.erase(output.request_id), 1u);
      }
    };
    for (int i = 0; i < 400; ++i) {
      if (draw(3) == 0 && i < 300) {
        const std::string id = std::to_string(i);
        std::vector<EncoderItem> items;
        for (int k = draw(3); k >= 0; --k) items.push_back(item(draw(9), 1 + draw(16)));
        if (add(id, std::move(items), std::chrono::milliseconds(1 + draw(60000))).ok()) open.insert(id);
      }
      if (!open.empty() && draw(20) == 0) {
        const std::string id = *open.begin();
        ASSERT_TRUE(engine_->abort_request(id).ok());
        ++answers[id];
        open.erase(id);
      }
      if (const auto metas = connector_->all_sent<EcMeta>(); !metas.empty() && draw(2) == 0) {
        const EcKey any =
            metas[metas.size() - 1 - static_cast<size_t>(draw(static_cast<int>(std::min<size_t>(metas.size(), 9))))]
                .key;
        switch (draw(8)) {
          case 0: inject(any); break;
          case 1: say(any, static_cast<EcVerdict>(1 + draw(6))); break;
          case 2: connector_->put(EcSendEvent{kTransportEvents[draw(4)], any}); break;
          case 3: connector_->put(EcPathEvent{draw(2) == 0}); break;
          case 4: connector_->put(EcPeerMessage{kConsumer, EcCancel{any, EcChannel::kAllocation}}); break;
          default: grant(any, random() | 1); break;
        }
      }
      if (draw(200) == 0) connector_->put(EcPeerGone{kConsumer});
      clock_.advance(std::chrono::milliseconds(draw(100)));
      note(step());
    }
    connector_->put(EcPathEvent{false});
    for (int i = 0; i < 200; ++i) {
      clock_.advance(1s);
      note(step());
    }
    EXPECT_THAT(open, IsEmpty());
    for (const auto& [id, count] : answers) EXPECT_EQ(count, 1) << id;
    expect_nothing_left();
  }
}

// ---- Real encoders

class EncoderEngineFamilies : public testing::FamilyRequests {};

// What is sent is what the whole model's encoder makes, to the bit.
TEST_P(EncoderEngineFamilies, SendTheRowsOfTheWholeModel) {
  Circumstances setup{.name = "cpu"};
  const std::unique_ptr<LLMEngine> whole = make_engine(setup);
  const ModelSpec& spec = whole->executor().info().spec;
  setup.max_model_len = std::max(whole->executor().info().max_encoder_len, whole->executor().info().max_decoder_len);
  auto runner = EncoderModelRunner::create(config_, std::shared_ptr<WeightMap>(WeightMap::open(config_.path).value()),
                                           options_of(setup));
  ASSERT_TRUE(runner.ok()) << error_message(runner.status());
  EncoderEngine::Options options = EncoderEngine::Options::of((*runner)->info());
  options.scheduler.max_output_bytes = uint64_t{64} << 20;
  KeepingConnector connector;
  const FakeClock clock;
  EncoderEngine engine(options, std::move(*runner), connector, clock);
  engine.start(nullptr);

  std::map<std::string, std::vector<float>> expected, sent;
  std::map<EcInput, std::vector<float>> sent_items;
  int64_t num_items = 0;
  SamplingParams params;
  params.max_tokens = 1;
  params.capture_encoder_output = true;
  for (int32_t i = 0; i < 4; ++i) {
    const std::string id = std::to_string(i);
    ASSERT_TRUE(whole->add_request(id, inputs_of(spec, i), params).ok());
    std::vector<EncoderItem> items = inputs_of(spec, i).items;
    num_items += std::ssize(items);
    const Status added = engine.add_request(id, std::move(items), {kConsumer, 0, 30s});
    ASSERT_TRUE(added.ok()) << error_message(added);
  }
  std::vector<RequestOutput> outputs;
  while (whole->has_unfinished_requests()) ASSERT_TRUE(whole->step(outputs).ok());
  for (const RequestOutput& output : outputs) expected[output.request_id] = output.encoder_output;

  outputs.clear();
  for (int i = 0; i < 100 && engine.scheduler().num_waiting() > 0; ++i) ASSERT_TRUE(engine.step(outputs).ok());
  for (const EcMeta& meta : connector.all_sent<EcMeta>()) {
    connector.put(EcPeerMessage{kConsumer, EcAllocation{meta.key, EcVerdict::kAllocated, 1, "bulk"}});
  }
  ASSERT_TRUE(engine.step(outputs).ok());
  for (const auto& rows : connector.sent_rows) sent_items[input_of(rows.key)] = floats_of(rows.rows);
  for (const auto& [input, rows] : sent_items) {  // in order of items
    std::vector<float>& of_request = sent[input.request_id];
    of_request.insert(of_request.end(), rows.begin(), rows.end());
  }
  EXPECT_EQ(sent.size(), 4u);
  EXPECT_TRUE(sent == expected);
  EXPECT_EQ(engine.stats().num_encoded_items, num_items);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, EncoderEngineFamilies, ::testing::ValuesIn(testing::folders()),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
