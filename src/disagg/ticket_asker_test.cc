#include "disagg/ticket_asker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/content_digest_testing.h"
#include "disagg/inproc_broker.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class TicketAskerTest : public ::testing::Test {
 protected:
  TicketAskerTest() {
    options_.self = {"p0", 22};
    options_.url = "http://127.0.0.1:9";
    options_.retry = milliseconds(5);
    options_.look_for_encoders = milliseconds(5);
  }

  void start() {
    asker_ = std::make_unique<TicketAsker>(options_, std::make_shared<InprocBroker>(hub_));
    asker_->start(inbox_);
  }
  void encoder_is_there() {
    InstanceRecord record;
    record.id = encoder_;
    record.role = InstanceRole::kEncode;
    ASSERT_EQ(encoders_.announce(record, seconds(100)), ok_status());
  }
  static EncodeAsk ask_of(const std::string& name, Duration time_left = seconds(100)) {
    auto item = std::make_shared<EncoderItem>(std::vector<int32_t>{7, 8, 9});
    return {{name, 3}, digest_of(5), {}, 3, std::move(item), time_left};
  }
  std::optional<Ticket> take(Duration wait = seconds(10)) { return encoders_.take(encoder_, {}, wait).value(); }
  // The failure that comes within ten seconds.
  EcAskFailed failure() {
    std::vector<EcEvent> events;
    for (int i = 0; i < 2000; ++i) {
      inbox_->take(1, events);
      if (!events.empty()) return std::get<EcAskFailed>(events.at(0));
      std::this_thread::sleep_for(milliseconds(5));
    }
    ADD_FAILURE() << "nothing failed";
    return {};
  }

  TicketAsker::Options options_;
  InprocHub::Options hub_options_;
  std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>(hub_options_);
  InprocBroker encoders_{hub_};
  InstanceId encoder_{"e0", 11};
  std::shared_ptr<EcInbox> inbox_ = std::make_shared<EcInbox>(10, nullptr);
  std::unique_ptr<TicketAsker> asker_;
};

TEST_F(TicketAskerTest, OffersATicketAndKeepsTheInputForWhoTakesIt) {
  start();
  EncodeAsk ask = ask_of("r1");
  ask.trace = {"client/7", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"};
  asker_->ask(ask);
  const std::optional<Ticket> ticket = take();
  ASSERT_TRUE(ticket.has_value());
  EXPECT_EQ(ticket->key, (EcKey{"r1", 3, 0}));
  EXPECT_EQ(ticket->digest, ask.digest);
  EXPECT_EQ(ticket->num_positions, 3);
  EXPECT_EQ(ticket->num_bytes, 12u);
  EXPECT_EQ(ticket->consumer, options_.self);
  EXPECT_EQ(ticket->asker_url, options_.url);
  EXPECT_GT(ticket->time_left, seconds(80));
  EXPECT_LE(ticket->time_left, seconds(100));
  EXPECT_GE(ticket->time_offered, ticket->time_left) << "so its taker knows how long it waited";
  EXPECT_LE(ticket->time_offered, seconds(100));
  EXPECT_EQ(ticket->trace, ask.trace);
  EXPECT_EQ(asker_->find({"r1", 3}), ask.content);
  EXPECT_EQ(asker_->find({"r1", 2}), nullptr);
  EXPECT_EQ(asker_->find({"r2", 3}), nullptr);
}

TEST_F(TicketAskerTest, WithdrawsWhatIsHereOrUnwanted) {
  start();
  asker_->ask(ask_of("r1"));
  asker_->ask(ask_of("r2"));
  while (encoders_.num_tickets().value() < 2) std::this_thread::sleep_for(milliseconds(1));
  asker_->withdraw({"r1", 3});
  asker_->withdraw({"unknown", 3});
  EXPECT_EQ(asker_->find({"r1", 3}), nullptr);
  while (encoders_.num_tickets().value() > 1) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(take()->key.request_id, "r2");
  asker_->ask(ask_of("r3"));
  while (encoders_.num_tickets().value() < 1) std::this_thread::sleep_for(milliseconds(1));
  asker_.reset();
  EXPECT_EQ(encoders_.num_tickets().value(), 0) << "nobody would give out its input";
}

TEST_F(TicketAskerTest, FailsWhenNoEncodeInstanceIsThere) {
  options_.wait_for_encoders = milliseconds(50);
  options_.offer_again = milliseconds(5);
  start();
  asker_->ask(ask_of("r1"));
  const EcAskFailed failed = failure();
  EXPECT_EQ(failed.input, (EcInput{"r1", 3}));
  EXPECT_TRUE(absl::IsUnavailable(failed.why)) << failed.why;
  EXPECT_THAT(error_message(failed.why), HasSubstr("no encode instance"));
  EXPECT_EQ(asker_->num_asked(), 0u);
  EXPECT_EQ(take(milliseconds(50)), std::nullopt) << "its ticket is withdrawn";
}

TEST_F(TicketAskerTest, AnEncodeInstanceThatDrainsTakesNothingNew) {
  options_.wait_for_encoders = milliseconds(100);
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  start();
  asker_->ask(ask_of("begun"));
  ASSERT_TRUE(take().has_value());
  InstanceRecord record;
  record.id = encoder_;
  record.role = InstanceRole::kEncode;
  record.is_draining = true;
  ASSERT_EQ(encoders_.announce(record, seconds(100)), ok_status());
  std::this_thread::sleep_for(milliseconds(150));
  asker_->ask(ask_of("new"));
  EXPECT_EQ(failure().input.request_id, "new");
  EXPECT_THAT(asker_->last_error().message, HasSubstr("no encode instance"));
  EXPECT_NE(asker_->find({"begun", 3}), nullptr) << "what it had taken before is still its work";
  ASSERT_EQ(encoders_.leave(encoder_), ok_status());
  EXPECT_EQ(failure().input.request_id, "begun");
}

TEST_F(TicketAskerTest, CountsWhatTheBrokerHadLost) {
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  start();
  asker_->ask(ask_of("r1"));
  ASSERT_TRUE(take().has_value());
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(asker_->num_offered_again(), 0) << "the broker had it all the time";
  hub_->go_away();
  hub_->come_back_empty();
  encoder_is_there();
  ASSERT_TRUE(take().has_value());
  for (int i = 0; i < 2000 && asker_->num_offered_again() == 0; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(asker_->num_offered_again(), 1);
}

TEST_F(TicketAskerTest, AnEncodeInstanceOfAnotherModelIsNone) {
  options_.wait_for_encoders = milliseconds(50);
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  start();
  EncodeAsk ask = ask_of("r1");
  ask.model = digest_of(1);
  asker_->ask(ask);
  const EcAskFailed failed = failure();
  EXPECT_TRUE(absl::IsUnavailable(failed.why)) << failed.why;
  EXPECT_THAT(error_message(failed.why), HasSubstr("no encode instance of this model is there"));
}

TEST_F(TicketAskerTest, SaysWhyAnotherModelIsAnotherOne) {
  options_.wait_for_encoders = milliseconds(50);
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  for (const bool is_known : {false, true}) {
    start();
    asker_->explain(is_known ? ModelFingerprint() : digest_of(2), "an encode instance has rows of clay");
    EncodeAsk ask = ask_of("r1");
    ask.model = digest_of(1);
    asker_->ask(ask);
    EXPECT_THAT(error_message(failure().why), is_known ? HasSubstr("is there: an encode instance has rows of clay")
                                                       : HasSubstr("--ec-transfer-dtype"));
  }
}

std::shared_ptr<const EcSecret> secret_of(std::string_view text) {
  return std::make_shared<const EcSecret>(std::as_bytes(std::span(text)));
}

TEST_F(TicketAskerTest, AnEncodeInstanceOfAnotherSecretIsNone) {
  options_.wait_for_encoders = milliseconds(50);
  options_.offer_again = milliseconds(5);
  const auto one = secret_of("0123456789abcdef"), other = secret_of("0123456789abcdeg");
  const struct {
    std::shared_ptr<const EcSecret> here, there;
    const char* message;
  } cases[] = {
      {one, other, "e0 has another --ec-secret-file than this instance"},
      {one, nullptr, "e0 has no --ec-secret-file, and this instance has one"},
      {nullptr, one, "e0 has an --ec-secret-file, and this instance has none"},
  };
  for (const auto& [here, there, message] : cases) {
    InstanceRecord record;
    record.id = encoder_;
    record.role = InstanceRole::kEncode;
    if (there != nullptr) record.secret_mark = there->mark();
    ASSERT_EQ(encoders_.announce(record, seconds(100)), ok_status());
    options_.secret = here;
    start();
    asker_->ask(ask_of("r1"));
    EXPECT_EQ(encoders_.take(encoder_, queue_of({}, there.get()), milliseconds(20)).value(), std::nullopt)
        << "it takes no ticket whose input it would not be given";
    const EcAskFailed failed = failure();
    EXPECT_TRUE(absl::IsUnavailable(failed.why)) << failed.why;
    EXPECT_THAT(error_message(failed.why), HasSubstr(message));
  }
}

TEST_F(TicketAskerTest, BesideAnEncodeInstanceOfAnotherSecretThatOfTheFleetTakesTheTicket) {
  options_.wait_for_encoders = milliseconds(50);
  options_.offer_again = milliseconds(5);
  options_.secret = secret_of("0123456789abcdef");
  encoder_is_there();
  InstanceRecord record;
  record.id = {"e1", 12};
  record.role = InstanceRole::kEncode;
  record.secret_mark = options_.secret->mark();
  ASSERT_EQ(encoders_.announce(record, seconds(100)), ok_status());
  start();
  asker_->ask(ask_of("r1"));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(asker_->num_asked(), 1u);
  EXPECT_EQ(take(milliseconds(5)), std::nullopt);
  EXPECT_TRUE(encoders_.take(record.id, queue_of({}, options_.secret.get()), seconds(10)).value().has_value());
}

TEST_F(TicketAskerTest, WaitsOnceIfToldSo) {
  options_.wait_for_encoders = seconds(1);
  options_.offer_again = milliseconds(5);
  start();
  asker_->wait_once();
  const auto seconds_to_fail = [&](const std::string& name) {
    const TimePoint begin = std::chrono::steady_clock::now();
    asker_->ask(ask_of(name));
    failure();
    return std::chrono::steady_clock::now() - begin;
  };
  EXPECT_GE(seconds_to_fail("r1"), milliseconds(900)) << "an encode instance may be starting";
  EXPECT_LT(seconds_to_fail("r2"), milliseconds(900));
  encoder_is_there();
  std::this_thread::sleep_for(milliseconds(10));
  asker_->ask(ask_of("r3"));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(asker_->num_asked(), 1u);
  EXPECT_TRUE(inbox_->is_empty());
}

TEST_F(TicketAskerTest, WaitsWhileAnEncodeInstanceIsKnown) {
  options_.wait_for_encoders = milliseconds(20);
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  start();
  asker_->ask(ask_of("r1"));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(asker_->num_asked(), 1u);
  EXPECT_TRUE(inbox_->is_empty());
}

TEST_F(TicketAskerTest, WaitsAgainForEncodeInstancesWhenTheBrokerIsBack) {
  options_.wait_for_encoders = seconds(1);
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  start();
  asker_->ask(ask_of("r1"));
  while (encoders_.num_tickets().value() < 1) std::this_thread::sleep_for(milliseconds(1));
  hub_->go_away();
  std::this_thread::sleep_for(milliseconds(1200));
  hub_->come_back_empty();
  std::this_thread::sleep_for(milliseconds(200));  // until the instance says again that it is there
  encoder_is_there();
  EXPECT_EQ(asker_->num_asked(), 1u);
  EXPECT_TRUE(inbox_->is_empty());
  // One that does not come back is waited for as long as any.
  ASSERT_EQ(encoders_.leave(encoder_), ok_status());
  EXPECT_THAT(error_message(failure().why), HasSubstr("no encode instance"));
}

TEST_F(TicketAskerTest, AsksABrokerThatIsBackAgainAtOnce) {
  options_.offer_again = seconds(100);
  encoder_is_there();
  start();
  for (const char* name : {"r1", "r2"}) asker_->ask(ask_of(name));
  while (encoders_.num_tickets().value() < 2) std::this_thread::sleep_for(milliseconds(1));
  asker_->ask_again();
  hub_->go_away();
  hub_->come_back_empty();
  encoder_is_there();
  asker_->ask_again();
  for (const char* name : {"r1", "r2"}) EXPECT_EQ(take()->key.request_id, name);
  EXPECT_EQ(take(milliseconds(50)), std::nullopt) << "each is there once";
}

TEST_F(TicketAskerTest, WaitsForABrokerThatIsAwayUntilItDrains) {
  options_.wait_for_encoders = milliseconds(50);
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  start();
  asker_->ask(ask_of("r1"));
  while (encoders_.num_tickets().value() < 1) std::this_thread::sleep_for(milliseconds(1));
  hub_->go_away();
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(asker_->num_asked(), 1u) << "a broker may start again";
  EXPECT_TRUE(inbox_->is_empty());
  asker_->begin_drain();
  const EcAskFailed failed = failure();
  EXPECT_TRUE(absl::IsUnavailable(failed.why)) << failed.why;
  EXPECT_THAT(error_message(failed.why), HasSubstr("the broker"));
  EXPECT_EQ(asker_->num_asked(), 0u);
}

TEST_F(TicketAskerTest, WhileItDrainsABrokerMayBeAwayForAMoment) {
  options_.wait_for_encoders = seconds(2);
  options_.offer_again = milliseconds(5);
  encoder_is_there();
  start();
  asker_->begin_drain();
  for (int i = 0; i < 3; ++i) {
    hub_->go_away();
    asker_->ask(ask_of(str_cat("r", i)));
    std::this_thread::sleep_for(milliseconds(800));
    hub_->come_back_empty();
    encoder_is_there();
    ASSERT_TRUE(take().has_value());
  }
  EXPECT_TRUE(inbox_->is_empty()) << "it was away for 2.4 s, but not at once";
}

TEST_F(TicketAskerTest, OffersAgainWhatABrokerHasForgotten) {
  options_.offer_again = milliseconds(10);
  start();
  asker_->ask(ask_of("r1"));
  while (encoders_.num_tickets().value() < 1) std::this_thread::sleep_for(milliseconds(1));
  hub_->go_away();
  asker_->ask(ask_of("r2"));
  std::this_thread::sleep_for(milliseconds(30));
  hub_->come_back_empty();
  std::vector<std::string> taken{take()->key.request_id, take()->key.request_id};
  std::ranges::sort(taken);
  EXPECT_EQ(taken, (std::vector<std::string>{"r1", "r2"}));
  EXPECT_TRUE(inbox_->is_empty());
  // One that is taken is offered again to no effect.
  EXPECT_EQ(take(milliseconds(60)), std::nullopt);
}

TEST_F(TicketAskerTest, SaysThatTheQueueIsFull) {
  hub_options_.max_tickets = 1;
  hub_ = std::make_shared<InprocHub>(hub_options_);
  start();
  asker_->ask(ask_of("r1"));
  while (asker_->num_asked() < 1) std::this_thread::sleep_for(milliseconds(1));
  asker_->ask(ask_of("r2"));
  const EcAskFailed failed = failure();
  EXPECT_TRUE(absl::IsResourceExhausted(failed.why)) << failed.why;
  EXPECT_EQ(asker_->num_asked(), 1u);
}

TEST_F(TicketAskerTest, PassesOnWhatAnEncodeInstanceRefuses) {
  start();
  asker_->ask(ask_of("r1"));
  ASSERT_TRUE(take().has_value());
  EXPECT_TRUE(asker_->refuse({"r1", 3}, invalid_argument("ids out of range")));
  const EcAskFailed failed = failure();
  EXPECT_EQ(failed.input, (EcInput{"r1", 3}));
  EXPECT_EQ(error_message(failed.why), "ids out of range");
  EXPECT_FALSE(asker_->refuse({"r1", 3}, invalid_argument("again")));
  EXPECT_TRUE(inbox_->is_empty());
}

TEST_F(TicketAskerTest, InstancesThatDoNotFitAreNoFaultOfTheRequest) {
  start();
  asker_->ask(ask_of("r1"));
  ASSERT_TRUE(take().has_value());
  EXPECT_TRUE(asker_->refuse({"r1", 3}, absl::FailedPreconditionError("--ec-bulk differs")));
  EXPECT_EQ(failure().why, absl::UnavailableError("--ec-bulk differs"));
}

TEST_F(TicketAskerTest, OffersNothingThatIsOver) {
  start();
  asker_->ask(ask_of("late", Duration::zero()));
  asker_->ask(ask_of("r1"));
  EXPECT_EQ(take()->key.request_id, "r1");
  EXPECT_EQ(take(milliseconds(30)), std::nullopt);
}

}  // namespace
}  // namespace transept::testing
