#include "disagg/ticket_taker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "base/check.h"
#include "disagg/inproc_broker.h"
#include "disagg/input_codec.h"
#include "net/fake_http_server_testing.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Inputs that are asked for, on a server of their own.
class Asker final {
 public:
  explicit Asker(std::shared_ptr<const EcSecret> secret = nullptr)
      : secret_(std::move(secret)), server_([this](FakeHttpServer::Connection& to) { serve(to); }) {}

  // Its ticket.
  Ticket keep(const std::string& name, std::vector<int32_t> ids) {
    EncoderItem item(std::move(ids));
    Ticket ticket;
    ticket.key = {name, 0, 0};
    ticket.digest = item_digest(item);
    ticket.num_positions = item.num_positions();
    ticket.num_bytes = item.token_ids.size() * 4;
    address(ticket);
    std::vector<std::byte> bytes;
    encode_input(item, bytes);
    const MutexLock lock(mutex_);
    inputs_[inputs_path(input_of(ticket.key))] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return ticket;
  }
  // The same of a prompt, which the encode instance reads.
  Ticket keep_prompt(const std::string& name, const std::string& prompt, uint32_t input_id = 0) {
    Ticket ticket;
    ticket.key = {name, input_id, 0};
    ticket.num_positions = 1;
    ticket.num_bytes = prompt.size();
    address(ticket);
    const MutexLock lock(mutex_);
    inputs_[inputs_path(input_of(ticket.key))] = prompt;
    prompts_.insert(inputs_path(input_of(ticket.key)));
    return ticket;
  }
  void forget() {
    const MutexLock lock(mutex_);
    inputs_.clear();
  }
  void be_busy(int times) { num_busy_ = times; }
  void be_deaf(int times) { num_deaf_ = times; }
  // What was told, by paths.
  std::map<std::string, std::string> told() const {
    const MutexLock lock(mutex_);
    return told_;
  }

 private:
  void serve(FakeHttpServer::Connection& to) {
    while (const auto text = to.read_request()) {
      HttpRequest request;
      request.method = text->substr(0, text->find(' '));
      const size_t path = request.method.size() + 1;
      request.path = text->substr(path, text->find(' ', path) - path);
      request.body = text->substr(text->find("\r\n\r\n") + 4);
      request.peer_is_loopback = true;
      if (const size_t at = text->find(kInstanceCodeHeader); at != std::string::npos) {
        request.headers.emplace_back(kInstanceCodeHeader, text->substr(at + kInstanceCodeHeader.size() + 2, 32));
      }
      if (!is_from_instance(secret_.get(), request)) {
        to.respond(401, "{}");
      } else if (num_busy_ > 0) {
        --num_busy_;
        to.respond(503, "{}");
      } else {
        answer(to, request);
      }
    }
  }
  void answer(FakeHttpServer::Connection& to, const HttpRequest& request) {
    const MutexLock lock(mutex_);
    const auto input = inputs_.find(request.path);
    if (input == inputs_.end()) return to.respond(404, "{}");
    if (request.method == "GET") {
      return to.respond(200, input->second,
                        prompts_.contains(request.path) ? "application/json" : kFeaturesContentType);
    }
    if (num_deaf_ > 0) {
      --num_deaf_;
      return to.respond(503, "{}");
    }
    told_[request.path] = request.body;
    to.respond(200, "{}");
  }

  void address(Ticket& ticket) const {
    ticket.time_left = seconds(100);
    ticket.consumer = {"p0", 22};
    ticket.asker_url = server_.url();
  }

  const std::shared_ptr<const EcSecret> secret_;
  std::atomic<int> num_busy_ = 0, num_deaf_ = 0;
  mutable Mutex mutex_;
  std::map<std::string, std::string> inputs_, told_;
  std::set<std::string> prompts_;
  FakeHttpServer server_;
};

// Encodes until it is told the outcome.
class FakeIntake final : public EncodeIntake {
 public:
  // A prompt is as many ids as it has bytes.
  StatusOr<EncoderItem> read(const Ticket& /*ticket*/, const std::string& prompt) override {
    if (prompt.empty()) return field_error("prompt", "is empty");
    return EncoderItem(std::vector<int32_t>(prompt.begin(), prompt.end()));
  }
  Status encode(const Ticket& ticket, EncoderItem item) override {
    const MutexLock lock(mutex_);
    EXPECT_TRUE(is_of_prompt(ticket) || *item.digest == ticket.digest);
    EXPECT_EQ(item_digest(item), *item.digest);
    begun_.insert(ticket.key.request_id);
    most_ = std::max(most_, begun_.size());
    changed_.notify_all();
    while (!outcomes_.contains(ticket.key.request_id) && !all_.has_value()) changed_.wait(mutex_);
    begun_.erase(ticket.key.request_id);
    const auto outcome = outcomes_.find(ticket.key.request_id);
    return outcome == outcomes_.end() ? *all_ : outcome->second;
  }
  void abort(const EcInput& input) override {
    const MutexLock lock(mutex_);
    aborted_.insert(input.request_id);
    outcomes_[input.request_id] = absl::AbortedError("aborted");
    changed_.notify_all();
  }

  void finish_all(const Status& status) {
    const MutexLock lock(mutex_);
    all_ = status;
    changed_.notify_all();
  }
  void finish(const std::string& request, const Status& status) {
    const MutexLock lock(mutex_);
    outcomes_[request] = status;
    changed_.notify_all();
  }
  bool wait_for_begun(size_t count) {
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    const MutexLock lock(mutex_);
    while (begun_.size() < count) {
      if (!changed_.wait_until(mutex_, end)) return false;
    }
    return true;
  }
  size_t most() const {
    const MutexLock lock(mutex_);
    return most_;
  }
  std::set<std::string> aborted() const {
    const MutexLock lock(mutex_);
    return aborted_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::set<std::string> begun_, aborted_;
  std::map<std::string, Status> outcomes_;
  std::optional<Status> all_;
  size_t most_ = 0;
};

class TicketTakerTest : public ::testing::Test {
 protected:
  void expect_left_to_others() {
    EXPECT_TRUE(wait_until([&] { return taker_->counts().num_left == 1; }));
    EXPECT_TRUE(taker_->drain(seconds(10)));
    EXPECT_TRUE(InprocBroker(hub_).take({"e1", 12}, {}, seconds(10)).value().has_value());
  }
  TicketTakerTest() {
    options_.self = {"e0", 11};
    options_.take_wait = milliseconds(20);
    options_.retry = milliseconds(5);
    options_.renew_every = milliseconds(50);
    InstanceRecord record;
    record.id = {"p0", 22};
    record.role = InstanceRole::kDecode;
    CHECK(asking_.announce(record, seconds(100)).ok());
  }

  void start() { taker_ = std::make_unique<TicketTaker>(options_, std::make_shared<InprocBroker>(hub_), intake_); }
  void offer(const Ticket& ticket) { ASSERT_EQ(asking_.offer(ticket), ok_status()); }
  template <typename Condition>
  static bool wait_until(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }

  TicketTaker::Options options_;
  InprocHub::Options hub_options_;
  std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>(hub_options_);
  InprocBroker asking_{hub_};
  Asker asker_;
  FakeIntake intake_;
  std::unique_ptr<TicketTaker> taker_;
};

TEST_F(TicketTakerTest, FetchesEncodesAndAcknowledges) {
  intake_.finish_all(ok_status());
  start();
  for (int i = 0; i < 20; ++i) offer(asker_.keep("r" + std::to_string(i), {7, 8, i}));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 20; }));
  EXPECT_TRUE(taker_->drain(seconds(10)));
  // The broker has forgotten them: each may be asked for again.
  offer(asker_.keep("r3", {1}));
  EXPECT_EQ(asking_.num_tickets().value(), 1);  // who drains takes nothing
}

TEST_F(TicketTakerTest, CountsHowLongTicketsWaitedAndSaysWhatBecameOfThem) {
  Mutex mutex;
  std::vector<std::string> ends;
  options_.on_end = [&](const TicketEnd& end) {
    EXPECT_GE(end.seconds, 0);
    EXPECT_EQ(end.ticket.consumer.name, "p0");
    const MutexLock lock(mutex);
    ends.push_back(str_cat(end.ticket.key.request_id, " of ", end.ticket.trace.request_id, " ", end.outcome));
  };
  Ticket ticket = asker_.keep("r0", {1, 2});
  ticket.time_offered = ticket.time_left + milliseconds(300);  // its asker had offered it that long ago
  ticket.trace.request_id = "client-7";
  offer(ticket);
  offer(asker_.keep("r1", {3, 4}));  // of an asker that does not say when
  std::this_thread::sleep_for(milliseconds(30));
  intake_.finish("r0", ok_status());
  intake_.finish("r1", invalid_argument("no such id"));
  start();
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done + taker_->counts().num_refused == 2; }));
  EXPECT_TRUE(taker_->drain(seconds(10)));
  const TicketTaker::Counts counts = taker_->counts();
  EXPECT_EQ(counts.waited.count(), 1);
  EXPECT_GE(counts.waited.sum, 0.33);
  EXPECT_LT(counts.waited.sum, 10);
  EXPECT_EQ(counts.num_claimed, 0);
  EXPECT_THAT(taker_->last_error().message, HasSubstr("no such id"));
  taker_.reset();
  const MutexLock lock(mutex);
  EXPECT_THAT(ends, ::testing::UnorderedElementsAre("r0 of client-7 done", "r1 of  refused"));
}

TEST_F(TicketTakerTest, TakesNoMoreThanThereIsRoomFor) {
  options_.max_positions = 5;
  start();
  for (int i = 0; i < 4; ++i) offer(asker_.keep("r" + std::to_string(i), {1, 2, i}));
  ASSERT_TRUE(intake_.wait_for_begun(2));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(taker_->num_in_work(), 2u);  // 3 positions, then 6
  EXPECT_EQ(asking_.num_tickets().value(), 2);
  intake_.finish_all(ok_status());
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 4; }));
}

TEST_F(TicketTakerTest, OneThatIsLargerThanAllRoomIsTakenAlone) {
  options_.max_positions = 2;
  start();
  offer(asker_.keep("r0", {1, 2, 3}));
  offer(asker_.keep("r1", {1, 2, 4}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  intake_.finish_all(ok_status());
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 2; }));
  EXPECT_EQ(intake_.most(), 1u);
}

TEST_F(TicketTakerTest, AnIdleInstanceTakesWhatABusyOneCould) {
  options_.busy_look = milliseconds(200);
  options_.max_positions = 4;
  start();
  offer(asker_.keep("r0", {1}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  FakeIntake idle_intake;
  TicketTaker::Options options = options_;
  options.self = {"e1", 12};
  idle_intake.finish_all(ok_status());
  TicketTaker idle(options, std::make_shared<InprocBroker>(hub_), idle_intake);
  for (int i = 1; i <= 20; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    offer(asker_.keep(str_cat("r", i), {1}));
    ASSERT_TRUE(wait_until([&] { return taker_->counts().num_taken - 1 + idle.counts().num_done == i; }));
  }
  EXPECT_GE(idle.counts().num_done, 15) << "and the busy one what it finds at its looks";
  intake_.finish_all(ok_status());
}

TEST_F(TicketTakerTest, RenewsWhatIsInWork) {
  start();
  offer(asker_.keep("r0", {1}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  // Longer than a broker waits for one that was not renewed.
  InprocBroker other(hub_);
  EXPECT_EQ(other.take({"e1", 12}, {}, milliseconds(2500)).value(), std::nullopt);
  intake_.finish_all(ok_status());
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 1; }));
}

// It was not renewed in time, and no other instance is there.
TEST_F(TicketTakerTest, AnIdleTicketThatComesBackIsTheSameWork) {
  options_.renew_every = seconds(100);
  start();
  offer(asker_.keep("r0", {1, 2}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  // Of the second attempt alone the broker takes the end.
  EXPECT_TRUE(wait_until([&] { return asking_.renew(options_.self, {"r0", 0, 1}).ok(); }));
  EXPECT_TRUE(wait_until([&] { return taker_->num_in_work() == 1 && taker_->counts().num_taken == 1; }));
  // The broker has given the second attempt out, and nothing tells when the taker's thread has looked at it.
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_EQ(taker_->counts().num_taken, 1);
  intake_.finish_all(ok_status());
  EXPECT_TRUE(taker_->drain(seconds(10)));
  EXPECT_EQ(taker_->counts().num_done, 1);
  EXPECT_EQ(asking_.renew(options_.self, {"r0", 0, 1}).code(), absl::StatusCode::kNotFound);
}

TEST_F(TicketTakerTest, LeavesWhatIsWithdrawn) {
  start();
  offer(asker_.keep("r0", {1}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  ASSERT_EQ(asking_.withdraw({"r0", 0}), ok_status());
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_left == 1; }));
  EXPECT_EQ(intake_.aborted(), std::set<std::string>{"r0"});
}

TEST_F(TicketTakerTest, TellsWhyItRefuses) {
  intake_.finish_all(absl::InvalidArgumentError("ids: 99 is out of range"));
  start();
  offer(asker_.keep("r0", {99}));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_refused == 1; }));
  Status why;
  ASSERT_EQ(parse_refusal(asker_.told().at("/v1/inputs/r0/0"), why), ok_status());
  EXPECT_EQ(why, absl::InvalidArgumentError("ids: 99 is out of range"));
  EXPECT_TRUE(taker_->drain(seconds(10)));
  EXPECT_EQ(asking_.renew(options_.self, {"r0", 0, 0}).code(), absl::StatusCode::kNotFound);
}

TEST_F(TicketTakerTest, AConsumerThatRowsCannotReachIsRefused) {
  intake_.finish_all(ok_status());
  options_.bulk_address = "ipc:///run/f/e0";
  InstanceRecord record;
  record.id = {"p0", 22};
  record.role = InstanceRole::kDecode;
  record.bulk_address = "redis:p0:22";
  ASSERT_TRUE(asking_.announce(record, seconds(100)).ok());
  start();
  offer(asker_.keep("r0", {1}));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_refused == 1; }));
  EXPECT_THAT(asker_.told().at("/v1/inputs/r0/0"),
              HasSubstr("p0 takes rows at redis:p0:22, and this instance at ipc:///run/f/e0: --ec-bulk differs"));
  record.bulk_address = "tcp://10.0.0.7:1";
  ASSERT_TRUE(asking_.announce(record, seconds(100)).ok());
  offer(asker_.keep("r1", {1}));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 1; }));
}

InjectedInput told_of(const Asker& asker, const std::string& path) {
  const StatusOr<TicketReport> report = parse_report(asker.told().at(path));
  CHECK(report.ok() && std::holds_alternative<InjectedInput>(*report), path);
  return std::get<InjectedInput>(*report);
}

TEST_F(TicketTakerTest, OfAPromptItTellsWhatItWas) {
  intake_.finish_all(ok_status());
  start();
  offer(asker_.keep_prompt("r0", "abc"));
  offer(asker_.keep_prompt("r0", "de", 7));  // another input of the same request
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 2; }));
  const InjectedInput first = told_of(asker_, "/v1/inputs/r0/0"), second = told_of(asker_, "/v1/inputs/r0/7");
  EXPECT_EQ(first, (InjectedInput{{"r0", 0}, item_digest(EncoderItem({'a', 'b', 'c'})), 3, {0, 3, {}}}));
  EXPECT_EQ(second, (InjectedInput{{"r0", 7}, item_digest(EncoderItem({'d', 'e'})), 2, {0, 2, {}}}));
}

TEST_F(TicketTakerTest, APromptThatIsNoInputIsRefused) {
  start();
  offer(asker_.keep_prompt("r0", ""));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_refused == 1; }));
  const StatusOr<TicketReport> report = parse_report(asker_.told().at("/v1/inputs/r0/0"));
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(error_message(std::get<Status>(*report)), HasSubstr("is empty"));
}

// The rows are there. Another instance finds them, and says so.
TEST_F(TicketTakerTest, APromptWhoseAskerDoesNotHearIsLeftToOthers) {
  intake_.finish_all(ok_status());
  asker_.be_deaf(2);
  start();
  offer(asker_.keep_prompt("r0", "abc"));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 1; })) << "the third time it hears";
  asker_.be_deaf(1000);
  offer(asker_.keep_prompt("r1", "abc"));
  expect_left_to_others();
}

// Its decode instance does not answer: who has asked may choose another one.
TEST_F(TicketTakerTest, OfAPromptAConsumerThatIsSilentIsTold) {
  intake_.finish_all(absl::UnavailableError("p0 does not answer"));
  start();
  offer(asker_.keep("r0", {1}));
  offer(asker_.keep_prompt("r1", "abc"));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_left == 2; }));
  EXPECT_FALSE(asker_.told().contains("/v1/inputs/r0/0"));
  EXPECT_THAT(asker_.told().at("/v1/inputs/r1/0"), HasSubstr("p0 does not answer"));
}

TEST_F(TicketTakerTest, AnotherInputThanTheTicketSaysIsRefused) {
  start();
  Ticket ticket = asker_.keep("r0", {1, 2});
  ticket.digest.bytes[5] ^= std::byte{1};
  offer(ticket);
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_refused == 1; }));
  EXPECT_THAT(asker_.told().at("/v1/inputs/r0/0"), HasSubstr("is not what its ticket says"));
  Ticket longer = asker_.keep("r1", {1, 2});
  longer.num_positions = 3;
  offer(longer);
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_refused == 2; }));
}

TEST_F(TicketTakerTest, InputsOfAnySizeAreNotTaken) {
  options_.client.max_input_bytes = 8;
  start();
  offer(asker_.keep("r0", {1, 2, 3}));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_refused == 1; }));
  EXPECT_THAT(asker_.told().at("/v1/inputs/r0/0"), HasSubstr("an input of 12 bytes: at most 8"));
}

TEST_F(TicketTakerTest, WhatIsAskedForNoLongerIsOver) {
  start();
  Ticket ticket = asker_.keep("r0", {1, 2});
  asker_.forget();
  offer(ticket);
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_left == 1; }));
  EXPECT_TRUE(wait_until([&] {
    return asking_.renew(options_.self, {"r0", 0, 0}).code() == absl::StatusCode::kNotFound;  // acknowledged
  }));
}

TEST_F(TicketTakerTest, AsksAnAskerThatIsAwayAgain) {
  intake_.finish_all(ok_status());
  asker_.be_busy(2);
  start();
  offer(asker_.keep("r0", {1, 2}));
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 1; }));
}

TEST_F(TicketTakerTest, AnAskerThatStaysAwayIsLeftToOthers) {
  asker_.be_busy(1000);
  start();
  offer(asker_.keep("r0", {1, 2}));
  expect_left_to_others();
}

TEST_F(TicketTakerTest, WhatABrokerThatIsFullDidNotTakeIsLeftToOthers) {
  intake_.finish_all(absl::AbortedError("the broker, or the queue to it, is full"));
  start();
  offer(asker_.keep("r0", {1, 2}));
  expect_left_to_others();
}

TEST_F(TicketTakerTest, TicketsOfAnAskerThatHasEndedAreOver) {
  start();
  Ticket ticket = asker_.keep("r0", {1, 2});
  ticket.asker_url = "http://127.0.0.1:1";
  ticket.consumer.incarnation = 23;
  offer(ticket);
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_left == 1; }));
  InprocBroker other(hub_);
  EXPECT_EQ(other.take({"e1", 12}, {}, milliseconds(2500)).value(), std::nullopt);
}

TEST_F(TicketTakerTest, ATicketThatComesWhileItIsDestroyedIsLeftToOthers) {
  options_.take_wait = milliseconds(300);
  start();
  std::this_thread::sleep_for(milliseconds(50));  // it waits for a ticket
  std::thread offers([&] {
    std::this_thread::sleep_for(milliseconds(50));
    offer(asker_.keep("r0", {1}));
  });
  taker_.reset();
  offers.join();
  intake_.finish_all(ok_status());
  options_.self = {"e1", 12};
  start();
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 1; }));
}

TEST_F(TicketTakerTest, DestroyedItAbortsWhatIsInWork) {
  start();
  offer(asker_.keep("r0", {1}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  EXPECT_FALSE(taker_->drain(milliseconds(20)));
  taker_.reset();
  EXPECT_EQ(intake_.aborted(), std::set<std::string>{"r0"});
  EXPECT_TRUE(InprocBroker(hub_).take({"e1", 12}, {}, seconds(10)).value().has_value());
}

TEST_F(TicketTakerTest, LeavesWhatIsInWorkWhenItDrainsAndTheBrokerIsGone) {
  options_.wait_for_broker = milliseconds(300);
  start();
  offer(asker_.keep("r0", {1}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  EXPECT_FALSE(taker_->drain(milliseconds(800))) << "the broker is there: it may take as long as it needs";
  EXPECT_TRUE(intake_.aborted().empty());
  hub_->go_away();
  EXPECT_TRUE(taker_->drain(seconds(10)));
  EXPECT_EQ(intake_.aborted(), std::set<std::string>{"r0"});
  EXPECT_EQ(taker_->counts().num_left, 1);
}

TEST_F(TicketTakerTest, GoesOnWhileTheBrokerIsAwayUnlessItDrains) {
  options_.wait_for_broker = milliseconds(50);
  start();
  offer(asker_.keep("r0", {1}));
  ASSERT_TRUE(intake_.wait_for_begun(1));
  hub_->go_away();
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_TRUE(intake_.aborted().empty());
  intake_.finish("r0", ok_status());
  EXPECT_TRUE(wait_until([&] { return taker_->counts().num_done == 1; }));
}

// ---- Who may call

TEST(InstanceCalls, ACodeIsOfTheWholeCall) {
  const EcSecret secret(std::as_bytes(std::span("0123456789abcdef", 16))),
      other(std::as_bytes(std::span("0123456789abcdeF", 16)));
  HttpRequest request{.method = "POST", .path = "/v1/inputs/r/0", .body = "body", .peer_is_loopback = true};
  EXPECT_TRUE(is_from_instance(nullptr, request));
  EXPECT_FALSE(is_from_instance(&secret, request));
  request.headers.emplace_back(kInstanceCodeHeader, instance_code(secret, "POST", "/v1/inputs/r/0", "body"));
  EXPECT_TRUE(is_from_instance(&secret, request));
  EXPECT_FALSE(is_from_instance(&other, request));
  request.peer_is_loopback = false;
  EXPECT_TRUE(is_from_instance(&secret, request));
  EXPECT_FALSE(is_from_instance(nullptr, request));
  for (const auto field : {&HttpRequest::method, &HttpRequest::path, &HttpRequest::body}) {
    HttpRequest changed = request;
    changed.*field += "x";
    EXPECT_FALSE(is_from_instance(&secret, changed));
  }
}

TEST(InstanceCalls, PathsOfInputs) {
  EXPECT_EQ(parse_inputs_path(inputs_path({"p0.22.7", 3})), (EcInput{"p0.22.7", 3}));
  for (const char* path : {"/v1/inputs/", "/v1/inputs/r", "/v1/inputs/r/", "/v1/inputs//1", "/v1/inputs/r/1/2",
                           "/v1/inputs/r/-1", "/v1/inputs/r/4294967296", "/v1/inputs/r q/1", "/v1/input/r/1"}) {
    EXPECT_EQ(parse_inputs_path(path), std::nullopt) << path;
  }
}

TEST(InstanceCalls, RefusalsThatAreNone) {
  for (const char* body : {"", "[]", "{}", R"({"error": 1})", R"({"error": {"status": "OK", "message": ""}})",
                           R"({"error": {"status": "UNAVAILABLE"}})", R"({"error": {"status": 3, "message": ""}})"}) {
    Status why;
    EXPECT_TRUE(absl::IsInvalidArgument(parse_refusal(body, why))) << body;
    EXPECT_TRUE(why.ok());
  }
}

TEST(InstanceCalls, ReportsThatAreNone) {
  EXPECT_TRUE(std::holds_alternative<Status>(parse_report(refusal_body(absl::UnavailableError("no"))).value()));
  const InjectedInput injected{{"r", 3}, item_digest(EncoderItem({1})), 5, {2, 5, {}}};
  EXPECT_EQ(std::get<InjectedInput>(parse_report(injection_body(injected)).value()), injected);
  for (const char* body : {"", "[]", "{}", R"({"encoded": 1})", R"({"encoded": {"request_id": "r"}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(parse_report(body).status())) << body;
  }
}

TEST(InstanceCalls, AClientProvesItself) {
  const auto secret = std::make_shared<const EcSecret>(std::as_bytes(std::span("0123456789abcdef", 16)));
  Asker asker(secret);
  const Ticket ticket = asker.keep("r0", {4, 5});
  InstanceClient with({.secret = secret});
  InstanceClient without({});
  EXPECT_EQ(std::get<EncoderItem>(with.fetch(ticket).value()).token_ids, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(with.refuse(ticket, absl::UnavailableError("no")), ok_status());
  EXPECT_THAT(asker.told().at("/v1/inputs/r0/0"), HasSubstr("UNAVAILABLE"));
  const Status refused = without.fetch(ticket).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(error_message(refused), HasSubstr("--ec-secret-file"));
}

}  // namespace
}  // namespace transept::testing
