// For tests: what every broker must do. A broker's test defines a fixture that makes brokers of one hub or server:
//
//   struct World { std::unique_ptr<Broker> broker(); void go_away(); void come_back_empty(); };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Inproc, BrokerConformance, World);
//
// Queues of the world hold 4 frames a mailbox and 4 tickets.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/content_digest_testing.h"
#include "base/mutex.h"
#include "base/sanitized_testing.h"
#include "encoder_cache/broker.h"

namespace transept::testing {

inline constexpr size_t kWorldFrames = 4, kWorldTickets = 4;

// Whether it comes true within ten seconds, a minute under a sanitizer: long enough for a busy machine.
inline bool becomes(const std::function<bool()>& is_true) {
  const TimePoint end = std::chrono::steady_clock::now() + std::chrono::seconds(kSanitized ? 60 : 10);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline std::vector<std::byte> frame_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline InstanceRecord record_of(std::string name, uint64_t incarnation) {
  InstanceRecord record;
  record.id = {std::move(name), incarnation};
  record.role = InstanceRole::kDecode;
  record.url = "http://127.0.0.1:8000";
  record.bulk_address = "ipc:///run/b";
  record.model = digest_of(9);
  record.load = {1, 2, 3, 4, 5};
  record.is_draining = true;
  record.last_error = "an input\nwas refused";
  record.last_error_age = std::chrono::seconds(7);
  record.secret_mark = "0123456789abcdef0123456789abcdef";
  return record;
}

inline const ModelFingerprint kModel = digest_of(8);  // of all tickets
inline Ticket ticket_of(std::string request, Duration time_left = std::chrono::minutes(1)) {
  Ticket ticket;
  ticket.key = {std::move(request), 2, 5};
  ticket.digest = digest_of(3);
  ticket.model = kModel;
  ticket.num_positions = 1500;
  ticket.num_bytes = 480000;
  ticket.time_left = time_left;
  ticket.consumer = {"d0", 77};
  ticket.asker_url = "http://127.0.0.1:8001";
  ticket.time_offered = std::chrono::minutes(2);
  ticket.trace = {"client/7", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"};
  return ticket;
}

// What a subscription took, as texts.
class Taken final {
 public:
  std::function<void(std::span<const std::byte>)> taker() {
    return [this](std::span<const std::byte> frame) {
      const MutexLock lock(mutex_);
      frames_.emplace_back(reinterpret_cast<const char*>(frame.data()), frame.size());
    };
  }
  std::vector<std::string> frames() const {
    const MutexLock lock(mutex_);
    return frames_;
  }
  size_t count() const { return frames().size(); }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> frames_ ABSL_GUARDED_BY(mutex_);
};

template <typename World>
class BrokerConformance : public ::testing::Test {
 protected:
  static constexpr Duration kTtl = std::chrono::seconds(30);
  const InstanceRecord record_ = record_of("d0", 77);
  const InstanceId other_{"e0", 5};
  World world_;
};
TYPED_TEST_SUITE_P(BrokerConformance);

TYPED_TEST_P(BrokerConformance, CarriesFramesOfEachChannelInOrder) {
  Taken taken[2];
  const auto receiver = this->world_.broker(), sender = this->world_.broker();
  ASSERT_TRUE(receiver->announce(this->record_, this->kTtl).ok());
  ASSERT_TRUE(receiver->subscribe(this->record_.id, EcChannel::kMetadata, taken[0].taker()).ok());
  ASSERT_TRUE(receiver->subscribe(this->record_.id, EcChannel::kInjection, taken[1].taker()).ok());
  for (int i = 0; i < 100; ++i) {
    Status status;  // a full queue says so, and has room again
    ASSERT_TRUE(becomes([&] {
      status = sender->publish(this->record_.id, EcChannel::kMetadata, frame_of(std::to_string(i)));
      return !absl::IsResourceExhausted(status);
    }));
    ASSERT_TRUE(status.ok()) << status;
  }
  ASSERT_TRUE(sender->publish(this->record_.id, EcChannel::kInjection, frame_of("other")).ok());
  ASSERT_TRUE(becomes([&] { return taken[0].count() >= 100 && taken[1].count() >= 1; }));
  const auto frames = taken[0].frames();
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(frames[i], std::to_string(i));
  EXPECT_EQ(taken[1].frames().front(), "other");
}

TYPED_TEST_P(BrokerConformance, KeepsFramesUntilSomebodySubscribes) {
  Taken taken;
  const auto broker = this->world_.broker();
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  ASSERT_TRUE(broker->publish(this->record_.id, EcChannel::kMetadata, frame_of("early")).ok());
  ASSERT_TRUE(broker->subscribe(this->record_.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(becomes([&] { return taken.count() == 1; }));
}

// A subscriber that ends while it takes a frame has not acknowledged it, if the process is killed; one that only stops
// has. What was not given to it is given to the next.
TYPED_TEST_P(BrokerConformance, GivesAFrameToTheNextSubscriberOfTheSameInstance) {
  Taken first, second;
  const auto sender = this->world_.broker();
  {
    const auto receiver = this->world_.broker();
    ASSERT_TRUE(receiver->announce(this->record_, this->kTtl).ok());
    ASSERT_TRUE(receiver->subscribe(this->record_.id, EcChannel::kMetadata, first.taker()).ok());
    ASSERT_TRUE(sender->publish(this->record_.id, EcChannel::kMetadata, frame_of("1")).ok());
    ASSERT_TRUE(becomes([&] { return first.count() >= 1; }));
  }
  ASSERT_TRUE(sender->publish(this->record_.id, EcChannel::kMetadata, frame_of("2")).ok());
  const auto receiver = this->world_.broker();
  ASSERT_TRUE(receiver->subscribe(this->record_.id, EcChannel::kMetadata, second.taker()).ok());
  ASSERT_TRUE(becomes([&] { return second.count() >= 1 && second.frames().back() == "2"; }));
}

TYPED_TEST_P(BrokerConformance, SaysThatAQueueIsFull) {
  const auto broker = this->world_.broker();
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  for (size_t i = 0; i < kWorldFrames; ++i) {
    ASSERT_TRUE(broker->publish(this->record_.id, EcChannel::kMetadata, frame_of("x")).ok());
  }
  const Status full = broker->publish(this->record_.id, EcChannel::kMetadata, frame_of("x"));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_NE(full.message().find("4"), std::string::npos) << full;
  EXPECT_TRUE(broker->publish(this->record_.id, EcChannel::kInjection, frame_of("x")).ok()) << "it has its own queue";
}

TYPED_TEST_P(BrokerConformance, KnowsNoInstanceThatDidNotComeOrHasLeft) {
  const auto broker = this->world_.broker();
  const auto publish = [&](const InstanceId& to) {
    return broker->publish(to, EcChannel::kMetadata, frame_of("x")).code();
  };
  EXPECT_EQ(publish(this->record_.id), absl::StatusCode::kNotFound);
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  EXPECT_EQ(publish(this->record_.id), absl::StatusCode::kOk);
  EXPECT_EQ(publish({"d0", 78}), absl::StatusCode::kNotFound) << "another incarnation";
  ASSERT_TRUE(broker->leave(this->record_.id).ok());
  EXPECT_EQ(publish(this->record_.id), absl::StatusCode::kNotFound);
  EXPECT_TRUE(broker->leave(this->record_.id).ok()) << "once more";
}

TYPED_TEST_P(BrokerConformance, ListsRecordsUntilTheirTimeIsOver) {
  const auto broker = this->world_.broker(), other = this->world_.broker();
  InstanceRecord brief = record_of("a1", 3);
  brief.role = InstanceRole::kEncode;
  brief.bulk_address = "";
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  ASSERT_TRUE(broker->announce(brief, std::chrono::milliseconds(700)).ok());
  const auto peers = [&] { return other->peers().value_or(std::vector<InstanceRecord>()); };
  ASSERT_TRUE(becomes([&] { return peers().size() == 2; }));
  EXPECT_EQ(peers(), (std::vector<InstanceRecord>{brief, this->record_})) << "in order of names";
  ASSERT_TRUE(becomes([&] { return peers().size() == 1; }));
  InstanceRecord busy = this->record_;
  busy.load.num_running = 99;
  ASSERT_TRUE(broker->announce(busy, this->kTtl).ok());
  EXPECT_TRUE(becomes([&] { return peers() == std::vector<InstanceRecord>{busy}; }));
}

TYPED_TEST_P(BrokerConformance, ReplacesAnIncarnation) {
  const auto broker = this->world_.broker();
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  ASSERT_TRUE(broker->publish(this->record_.id, EcChannel::kMetadata, frame_of("for the old one")).ok());
  InstanceRecord next = this->record_;
  next.id.incarnation = 78;
  ASSERT_TRUE(broker->announce(next, this->kTtl).ok());
  EXPECT_TRUE(becomes([&] { return *broker->peers() == std::vector<InstanceRecord>{next}; }));
  EXPECT_EQ(broker->publish(this->record_.id, EcChannel::kMetadata, frame_of("x")).code(), absl::StatusCode::kNotFound);
  Taken taken;
  ASSERT_TRUE(broker->subscribe(next.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(broker->publish(next.id, EcChannel::kMetadata, frame_of("for the new one")).ok());
  ASSERT_TRUE(becomes([&] { return taken.count() >= 1; }));
  EXPECT_EQ(taken.frames().front(), "for the new one");
}

TYPED_TEST_P(BrokerConformance, RefusesRecordsThatAreOutOfRange) {
  const auto broker = this->world_.broker();
  InstanceRecord wrong = this->record_;
  wrong.id.name = "a b";
  EXPECT_EQ(broker->announce(wrong, this->kTtl).code(), absl::StatusCode::kInvalidArgument);
  wrong = this->record_;
  wrong.url = std::string(257, 'u');
  EXPECT_EQ(broker->announce(wrong, this->kTtl).code(), absl::StatusCode::kInvalidArgument);
}

TYPED_TEST_P(BrokerConformance, GivesTicketsInOrderToOneTakerEach) {
  const auto asker = this->world_.broker(), taker = this->world_.broker();
  ASSERT_TRUE(asker->offer(ticket_of("r1")).ok());
  ASSERT_TRUE(asker->offer(ticket_of("r2")).ok());
  EXPECT_EQ(asker->offer(ticket_of("r1")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*asker->num_tickets(), 2);
  auto first = taker->take(this->other_, kModel, Duration::zero());
  ASSERT_TRUE(first.ok() && first->has_value()) << first.status();
  EXPECT_LE((*first)->time_left, std::chrono::minutes(1));
  EXPECT_GT((*first)->time_left, std::chrono::seconds(30));
  (*first)->time_left = std::chrono::minutes(1);
  EXPECT_EQ(**first, ticket_of("r1"));
  EXPECT_EQ(asker->offer(ticket_of("r1")).code(), absl::StatusCode::kAlreadyExists) << "it is taken";
  const auto second = taker->take(this->other_, kModel, Duration::zero());
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->key.request_id, "r2");
  EXPECT_FALSE(taker->take(this->other_, kModel, std::chrono::milliseconds(20))->has_value());
  EXPECT_EQ(*asker->num_tickets(), 0);
  EXPECT_TRUE(taker->done(this->other_, (*first)->key).ok());
  EXPECT_EQ(taker->done(this->other_, (*first)->key).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(taker->renew({"e1", 1}, (*second)->key).code(), absl::StatusCode::kNotFound) << "it is another's";
  EXPECT_TRUE(asker->offer(ticket_of("r1")).ok()) << "it was done";
}

TYPED_TEST_P(BrokerConformance, GivesTicketsToInstancesOfTheirModelAlone) {
  const auto broker = this->world_.broker();
  const ModelFingerprint other = digest_of(9);
  Ticket ticket = ticket_of("r1");
  ticket.model = other;
  ASSERT_TRUE(broker->offer(ticket).ok());
  ASSERT_TRUE(broker->offer(ticket_of("r2")).ok());
  EXPECT_EQ((*broker->take(this->other_, kModel, Duration::zero()))->key.request_id, "r2");
  EXPECT_FALSE(broker->take(this->other_, kModel, std::chrono::milliseconds(20))->has_value());
  EXPECT_EQ(*broker->num_tickets(), 1);
  EXPECT_EQ((*broker->take({"e1", 1}, other, Duration::zero()))->model, other);
  // Of two that are idle each finds its own.
  EXPECT_EQ((*broker->take({"e2", 2}, other, std::chrono::seconds(10)))->key.request_id, "r1");
  EXPECT_EQ((*broker->take({"e2", 2}, kModel, std::chrono::seconds(10)))->key.request_id, "r2");
}

TYPED_TEST_P(BrokerConformance, WakesATakerThatWaits) {
  const auto asker = this->world_.broker(), taker = this->world_.broker();
  std::thread offers([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(asker->offer(ticket_of("r1")).ok());
  });
  const auto ticket = taker->take(this->other_, kModel, std::chrono::seconds(20));
  offers.join();
  ASSERT_TRUE(ticket.ok() && ticket->has_value()) << ticket.status();
}

TYPED_TEST_P(BrokerConformance, GivesAnIdleTicketToTheNextTaker) {
  const auto broker = this->world_.broker();
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  const auto first = broker->take(this->other_, kModel, Duration::zero());
  ASSERT_TRUE(first.ok() && first->has_value());
  const InstanceId next{"e1", 6};
  // Renewed after a second, it is not idle after two.
  EXPECT_FALSE(broker->take(next, kModel, std::chrono::milliseconds(1200))->has_value());
  ASSERT_TRUE(broker->renew(this->other_, (*first)->key).ok());
  EXPECT_FALSE(broker->take(next, kModel, std::chrono::milliseconds(1200))->has_value());
  const auto second = broker->take(next, kModel, std::chrono::seconds(10));
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->key.attempt, (*first)->key.attempt + 1);
  EXPECT_EQ(broker->renew(this->other_, (*first)->key).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(broker->done(this->other_, (*first)->key).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(broker->done(next, (*second)->key).ok());
}

TYPED_TEST_P(BrokerConformance, DropsTicketsWhoseTimeIsOverOrThatAreWithdrawn) {
  const auto broker = this->world_.broker();
  ASSERT_TRUE(broker->offer(ticket_of("late", std::chrono::milliseconds(50))).ok());
  ASSERT_TRUE(broker->offer(ticket_of("unwanted")).ok());
  ASSERT_TRUE(broker->withdraw({"unwanted", 2}).ok());
  ASSERT_TRUE(broker->withdraw({"unknown", 0}).ok());
  EXPECT_TRUE(becomes([&] { return *broker->num_tickets() == 0; }));
  EXPECT_FALSE(broker->take(this->other_, kModel, Duration::zero())->has_value());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  const auto taken = broker->take(this->other_, kModel, Duration::zero());
  ASSERT_TRUE(taken.ok() && taken->has_value());
  ASSERT_TRUE(broker->withdraw({"r1", 2}).ok());
  EXPECT_EQ(broker->renew(this->other_, (*taken)->key).code(), absl::StatusCode::kNotFound) << "its taker hears it";
}

TYPED_TEST_P(BrokerConformance, SaysThatTooManyEncodesAreAskedFor) {
  const auto broker = this->world_.broker();
  for (size_t i = 0; i < kWorldTickets; ++i) ASSERT_TRUE(broker->offer(ticket_of(str_cat("r", i))).ok());
  const Status full = broker->offer(ticket_of("more"));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
}

TYPED_TEST_P(BrokerConformance, TellsThatItIsAwayAndForgets) {
  const auto broker = this->world_.broker();
  std::atomic<int> num_away{0}, num_back{0};
  broker->on_path([&](bool is_away) { ++(is_away ? num_away : num_back); });
  Taken taken;
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  ASSERT_TRUE(broker->subscribe(this->record_.id, EcChannel::kMetadata, taken.taker()).ok());
  this->world_.go_away();
  ASSERT_TRUE(becomes([&] { return num_away == 1; }));
  EXPECT_EQ(num_back, 0);
  const Status away = broker->publish(this->record_.id, EcChannel::kMetadata, frame_of("x"));
  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable) << away;
  EXPECT_EQ(broker->offer(ticket_of("r1")).code(), absl::StatusCode::kUnavailable);
  this->world_.come_back_empty();
  ASSERT_TRUE(becomes([&] { return num_back == 1; }));
  // Subscriptions are there again by themselves; records with their next renewal.
  ASSERT_TRUE(becomes([&] { return broker->publish(this->record_.id, EcChannel::kMetadata, frame_of("again")).ok(); }));
  ASSERT_TRUE(becomes([&] { return taken.count() >= 1; }));
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  EXPECT_TRUE(becomes([&] { return broker->peers().value_or(std::vector<InstanceRecord>()).size() == 1; }));
  EXPECT_EQ(num_away, 1);
}

TYPED_TEST_P(BrokerConformance, ServesManyThreads) {
  const auto broker = this->world_.broker();
  Taken taken;
  ASSERT_TRUE(broker->announce(this->record_, this->kTtl).ok());
  ASSERT_TRUE(broker->subscribe(this->record_.id, EcChannel::kMetadata, taken.taker()).ok());
  std::atomic<int> num_failed{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const auto frame = frame_of(str_cat(t, "/", i));
        if (!becomes([&] { return broker->publish(this->record_.id, EcChannel::kMetadata, frame).ok(); })) ++num_failed;
        if (!broker->peers().ok()) ++num_failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_failed, 0);
  EXPECT_TRUE(becomes([&] {
    const auto frames = taken.frames();
    return std::set<std::string>(frames.begin(), frames.end()).size() == 100;
  }));
}

REGISTER_TYPED_TEST_SUITE_P(BrokerConformance, CarriesFramesOfEachChannelInOrder, KeepsFramesUntilSomebodySubscribes,
                            GivesAFrameToTheNextSubscriberOfTheSameInstance, SaysThatAQueueIsFull,
                            KnowsNoInstanceThatDidNotComeOrHasLeft, ListsRecordsUntilTheirTimeIsOver,
                            ReplacesAnIncarnation, RefusesRecordsThatAreOutOfRange, GivesTicketsInOrderToOneTakerEach,
                            GivesTicketsToInstancesOfTheirModelAlone, WakesATakerThatWaits,
                            GivesAnIdleTicketToTheNextTaker, DropsTicketsWhoseTimeIsOverOrThatAreWithdrawn,
                            SaysThatTooManyEncodesAreAskedFor, TellsThatItIsAwayAndForgets, ServesManyThreads);

}  // namespace transept::testing
