// An encode instance's engine on its thread: it sleeps while its peers have the word, and is woken by what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "async/async_engine.h"
#include "engine/encoder_engine_testing.h"

namespace transept {
namespace {

using namespace std::chrono_literals;
using testing::FakeEncoder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const InstanceId kConsumer{"p0", 22};

// A decode instance that has room for everything, and answers from a thread of its own after a while.
class AnsweringConnector final : public EncoderCacheConnector {
 public:
  explicit AnsweringConnector(Duration delay) : delay_(delay) {}
  ~AnsweringConnector() override {
    for (std::thread& thread : threads_) thread.join();
  }

  const InstanceId& self() const override { return self_; }
  std::string bulk_address() const override { return ""; }
  void start(std::shared_ptr<EcInbox> inbox) override { inbox_ = std::move(inbox); }
  void send(const InstanceId&, EcMessage message) override {
    if (const auto* meta = std::get_if<EcMeta>(&message)) {
      say({EcPeerMessage{kConsumer, EcAllocation{meta->key, EcVerdict::kAllocated, 1, "bulk"}}});
    }
  }
  void send_rows(const InstanceId&, const EcKey& key, uint64_t, const std::string&, EcRows) override {
    say({EcSendEvent{EcSenderEvent::kSendDone, key},
         EcPeerMessage{kConsumer, EcInjection{key, EcVerdict::kAllocated}}});
  }
  void stop_sending(const EcInput&) override {}
  void open_sink(uint64_t, const EcKey&, uint64_t, EcPlaces) override {}
  void close_sink(uint64_t) override {}

 private:
  void say(std::vector<EcEvent> events) {
    threads_.emplace_back([inbox = inbox_, delay = delay_, events = std::move(events)] {
      std::this_thread::sleep_for(delay);
      for (const EcEvent& event : events) inbox->put(event);
    });
  }

  const Duration delay_;
  const InstanceId self_{"e0", 1};
  std::shared_ptr<EcInbox> inbox_;
  std::vector<std::thread> threads_;
};

class EncoderThread : public ::testing::Test {
 protected:
  void start(Duration delay) {
    connector_ = std::make_unique<AnsweringConnector>(delay);
    EncoderEngine::Options options;
    options.scheduler = {.max_num_encoder_tokens = 20, .max_num_seqs = 4, .max_output_bytes = 1 << 20};
    auto engine = std::make_unique<EncoderEngine>(options, std::make_unique<FakeEncoder>(), *connector_, clock_);
    engine_ = std::make_unique<AsyncEngine>(std::move(engine), AsyncEngine::Options{}, clock_);
  }
  static RequestSpec spec(const std::string& id, int32_t first, Duration time_left = 30s) {
    RequestSpec spec;
    spec.id = id;
    spec.inputs.set_encoder_ids({first, first});
    spec.consumer = RowsConsumer{kConsumer, 0, time_left};
    return spec;
  }

  SteadyClock clock_;
  std::unique_ptr<AnsweringConnector> connector_;  // outlives the engine
  std::unique_ptr<AsyncEngine> engine_;
};

TEST_F(EncoderThread, AnswersManyRequests) {
  start(1ms);
  std::vector<RequestStream> streams;
  streams.reserve(50);
  for (int32_t i = 0; i < 50; ++i) streams.push_back(engine_->add_request(spec(std::to_string(i), i)).value());
  for (RequestStream& stream : streams) {
    const StatusOr<RequestOutput> output = stream.next();
    ASSERT_TRUE(output.ok()) << error_message(output.status());
    EXPECT_TRUE(output->finished);
    EXPECT_THAT(output->outputs, IsEmpty());
    EXPECT_THAT(output->encoded_items, SizeIs(1));
  }
  const EngineSnapshot snapshot = engine_->snapshot();
  EXPECT_EQ(snapshot.counts.finished, 50);
  EXPECT_EQ(snapshot.stats.num_encoder_tokens, 100);
  EXPECT_TRUE(engine_->drain(10s).ok());
}

TEST_F(EncoderThread, SleepsWhilePeersHaveTheWord) {
  start(300ms);
  RequestStream stream = engine_->add_request(spec("a", 1)).value();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  ASSERT_TRUE(stream.next().ok());
  getrusage(RUSAGE_SELF, &after);
  const auto used = [](const rusage& use) {
    return std::chrono::seconds(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           std::chrono::microseconds(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  };
  EXPECT_LT(used(after) - used(before), 150ms) << "of 600 ms";
}

TEST_F(EncoderThread, EndsAtDeadlinesThoughNothingComes) {
  start(2s);
  RequestSpec late = spec("a", 1);
  late.deadline = clock_.now() + 50ms;
  const auto begin = std::chrono::steady_clock::now();
  const Status error = engine_->add_request(late).value().next().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(error)) << error;
  const Status time_over = engine_->add_request(spec("b", 1, 50ms)).value().next().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(time_over)) << "the transfer's own: " << time_over;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1500ms);
}

TEST_F(EncoderThread, RefusesRequestsOfADecodeInstance) {
  start(1ms);
  RequestSpec other = spec("a", 1);
  other.consumer.reset();
  EXPECT_THAT(error_message(engine_->add_request(other).value().next().status()), HasSubstr("encode instance"));
  EncoderDecoderInputs inputs;
  inputs.set_encoder_ids({1});
  EXPECT_TRUE(absl::IsUnimplemented(engine_->encode(inputs).get().status()));
}

TEST_F(EncoderThread, StopsWithRequestsInFlight) {
  start(100ms);
  std::vector<RequestStream> streams;
  streams.reserve(5);
  for (int32_t i = 0; i < 5; ++i) streams.push_back(engine_->add_request(spec(std::to_string(i), i)).value());
  engine_.reset();
  for (RequestStream& stream : streams) EXPECT_TRUE(absl::IsUnavailable(stream.next().status()));
}

}  // namespace
}  // namespace transept
