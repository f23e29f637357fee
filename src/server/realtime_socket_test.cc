// A session on its socket: what a client's messages make of a fake session, and what its calls make of the socket.
#include "server/realtime_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "net/http_server_testing.h"
#include "server/realtime_output.h"
#include "server/realtime_session_testing.h"

namespace transept {
namespace {

using testing::append_event;
using testing::FakeSocket;
using testing::FakeSpeaker;
using testing::FakeSpeech;
using ::testing::HasSubstr;
using testing::member;

constexpr std::string_view kCommit = R"({"type": "input_audio_buffer.commit"})";
constexpr std::string_view kFinal = R"({"type": "input_audio_buffer.commit", "final": true})";

std::string text(const Json& json, std::string_view name) { return member(json, name).as_string(); }
std::string type_of(const Json& event) { return text(event, "type"); }
std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> types;
  types.reserve(events.size());
  for (const Json& event : events) types.push_back(type_of(event));
  return types;
}

class RealtimeSocketTest : public ::testing::Test {
 protected:
  RealtimeSocketTest() {
    auto fake = std::make_unique<FakeSpeech>();
    speech = fake.get();
    hub_ = std::make_unique<RealtimeHub>(std::move(fake), hub_options, metrics, clock);
  }
  ~RealtimeSocketTest() override { close(); }

  RealtimeHub& hub() { return *hub_; }
  void open(const RealtimeDialect& dialect = openai_dialect()) {
    RealtimeSocketOptions options;
    options.dialect = &dialect;
    options.config.model = "first";
    options.served = {.models = models};
    options.cache_salt = "salt";
    options.long_workers = &workers;
    auto place = hub().take_place();
    ASSERT_TRUE(place.ok()) << place.status();
    handler = make_realtime_socket(hub(), *std::move(place), std::move(options));
    handler->on_open(socket);
  }
  void close() {
    if (handler != nullptr) handler->on_closed(WebSocketCode::kNormal);
    handler.reset();
  }
  void send(std::string_view message) { handler->on_message(std::string(message), true); }
  // The one event that answers.
  Json ask(std::string_view message) {
    socket->take();
    send(message);
    const std::vector<Json> events = socket->take();
    EXPECT_EQ(events.size(), 1u) << message;
    return events.empty() ? Json::object() : events.front();
  }
  Json error_of(std::string_view message) {
    const Json event = ask(message);
    EXPECT_EQ(type_of(event), "error") << message;
    return member(event, "error");
  }
  FakeSpeaker& speaker() { return *speech->last; }
  LiveObserver& observer() { return *speech->last->observer; }

  const std::vector<std::string> models = {"first", "second"};
  RealtimeHub::Options hub_options{.max_sessions = 2, .session_seconds = 100, .max_item_seconds = 7};
  FakeClock clock;
  ServerMetrics metrics{"first"};
  WorkPool workers{1};
  FakeSpeech* speech = nullptr;
  std::shared_ptr<FakeSocket> socket = std::make_shared<FakeSocket>();

 private:
  std::unique_ptr<RealtimeHub> hub_;

 protected:
  std::unique_ptr<WebSocketHandler> handler;
};

TEST_F(RealtimeSocketTest, BeginsWithWhatItIs) {
  open();
  const std::vector<Json> events = socket->take();
  ASSERT_EQ(types_of(events), std::vector<std::string>{"session.created"});
  const Json& session = member(events[0], "session");
  EXPECT_TRUE(text(session, "id").starts_with("sess_"));
  const int64_t created = member(events[0], "created").as_int();
  EXPECT_GT(created, 1'600'000'000);
  EXPECT_EQ(member(session, "expires_at").as_int(), created + 100);
  EXPECT_EQ(speaker().options.max_item_seconds, 7);
  EXPECT_EQ(speaker().options.cache_salt, "salt");
  EXPECT_EQ(speaker().options.sampling_rate, 24000);
  EXPECT_TRUE(speaker().options.turn_detection.has_value());
}

TEST_F(RealtimeSocketTest, AudioComesAsSamplesInTextAndInBinary) {
  open();
  socket->take();
  send(append_event(std::string("\x01\x00\x02", 3)));
  handler->on_message(std::string("\x01\x03\x00", 3), false);
  send(append_event(""));
  EXPECT_EQ(speaker().samples, (std::vector<int16_t>{1, 0x0102, 3}));
  EXPECT_TRUE(socket->take().empty());
}

TEST_F(RealtimeSocketTest, ACommitDropsHalfASample) {
  open();
  send(append_event(std::string(4801, '\0')));
  send(kCommit);
  EXPECT_EQ(speaker().num_commits, 1);
  send(append_event(std::string("\x01\x00", 2)));
  EXPECT_EQ(speaker().samples, std::vector<int16_t>{1});
  send(append_event("x"));
  send(R"({"type": "input_audio_buffer.clear"})");
  send(append_event(std::string("\x02\x00", 2)));
  EXPECT_EQ(speaker().samples, std::vector<int16_t>{2});
}

TEST_F(RealtimeSocketTest, AnItemsEventsComeInOrderWithIdsThatChain) {
  open();
  socket->take();
  observer().on_speech_started(0, 100);
  observer().on_delta(0, " one");
  observer().on_speech_stopped(0, 900);
  observer().on_committed(0);
  observer().on_delta(0, " two");
  observer().on_completed(0, {.text = "one two", .seconds = 0.8});
  observer().on_committed(3);
  observer().on_failed(3, absl::DeadlineExceededError("late"));
  observer().on_committed(4);
  const std::vector<Json> events = socket->take();
  const std::string transcription = "conversation.item.input_audio_transcription.";
  const std::vector<std::string> item = {"input_audio_buffer.committed", "conversation.item.added",
                                         "conversation.item.done"};
  std::vector<std::string> expected = {"input_audio_buffer.speech_started", transcription + "delta",
                                       "input_audio_buffer.speech_stopped"};
  expected.insert(expected.end(), item.begin(), item.end());
  expected.insert(expected.end(), {transcription + "delta", transcription + "completed"});
  expected.insert(expected.end(), item.begin(), item.end());
  expected.push_back(transcription + "failed");
  expected.insert(expected.end(), item.begin(), item.end());
  ASSERT_EQ(types_of(events), expected);
  const std::string first = text(events[0], "item_id"), second = text(events[8], "item_id");
  EXPECT_NE(first, second);
  for (const size_t i : {1, 2, 3, 6, 7}) EXPECT_EQ(text(events[i], "item_id"), first) << i;
  EXPECT_EQ(text(member(events[4], "item"), "id"), first);
  EXPECT_TRUE(member(events[3], "previous_item_id").is_null());
  EXPECT_TRUE(member(events[5], "previous_item_id").is_null());
  for (const size_t i : {8, 9, 10}) EXPECT_EQ(text(events[i], "previous_item_id"), first) << i;
  EXPECT_EQ(text(events[12], "previous_item_id"), second);
  EXPECT_EQ(text(member(events[11], "error"), "code"), "timeout");
  std::set<std::string> ids;
  for (const Json& event : events) ids.insert(text(event, "event_id"));
  EXPECT_EQ(ids.size(), events.size());
}

TEST_F(RealtimeSocketTest, SessionsShareNoIds) {
  open();
  const std::string session = text(member(socket->take()[0], "session"), "id");
  observer().on_committed(0);
  const std::string item = text(socket->take()[0], "item_id");
  close();
  open();
  EXPECT_NE(text(member(socket->take()[0], "session"), "id"), session);
  observer().on_committed(0);
  EXPECT_NE(text(socket->take()[0], "item_id"), item);
}

TEST_F(RealtimeSocketTest, AnUpdateIsWholeOrNotAtAll) {
  open();
  const Json updated = ask(R"({"type": "session.update", "session": {"type": "transcription", "audio": {"input":
      {"transcription": {"language": "de", "model": "second"}, "turn_detection": null}}}})");
  EXPECT_EQ(type_of(updated), "session.updated");
  const Json input = member(member(member(updated, "session"), "audio"), "input");
  EXPECT_EQ(text(member(input, "transcription"), "language"), "de");
  EXPECT_EQ(text(member(input, "transcription"), "model"), "second");
  EXPECT_TRUE(member(input, "turn_detection").is_null());
  EXPECT_EQ(speaker().options.language, "de");
  EXPECT_EQ(speaker().options.cache_salt, "salt");
  EXPECT_EQ(speaker().options.max_item_seconds, 7);

  for (
      const char* wrong : {
          R"({"type": "session.update", "event_id": "e", "session": {"audio": {"input": {"transcription": {"prompt": "p",
               "delay": "never"}}}}})",
          R"({"type": "session.update", "event_id": "e", "session": {"audio": {"input": {"transcription": {"prompt": "p",
               "language": "xx"}}}}})",
      }) {
    const Json error = error_of(wrong);
    EXPECT_THAT(text(error, "param"), HasSubstr("session.audio.input.transcription."));
    EXPECT_EQ(text(error, "event_id"), "e");
  }
  EXPECT_EQ(speaker().num_updates, 1);
  const Json same = ask(R"({"type": "session.update", "session": {}})");
  EXPECT_EQ(member(member(member(same, "session"), "audio"), "input").dump(), input.dump());

  speaker().update_error = with_param(absl::FailedPreconditionError("audio is buffered"), "sampling_rate");
  const Json error =
      error_of(R"({"type": "session.update", "session": {"audio": {"input": {"turn_detection": null}}}})");
  EXPECT_EQ(text(error, "param"), "session.audio.input.format.rate");
  EXPECT_EQ(text(error, "type"), "invalid_request_error");
  EXPECT_EQ(text(error, "message"), "audio is buffered");
}

TEST_F(RealtimeSocketTest, AModelThatIsClearedIsTheFirst) {
  open();
  const auto model = [&](std::string_view name) {
    const Json updated = ask(str_cat(
        R"({"type": "session.update", "session": {"audio": {"input": {"transcription": {"model": )", name, "}}}}}"));
    return text(member(member(member(member(updated, "session"), "audio"), "input"), "transcription"), "model");
  };
  EXPECT_EQ(model("\"second\""), "second");
  EXPECT_EQ(model("null"), "first");
}

TEST_F(RealtimeSocketTest, TheFormatStaysWhileThereIsAudio) {
  open();
  constexpr std::string_view kTelephone =
      R"({"type": "session.update", "session": {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}})";
  constexpr std::string_view kSame =
      R"({"type": "session.update", "session": {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000}}}}})";
  for (const size_t bytes : {1, 2}) {
    send(append_event(std::string(bytes, 'x')));
    const Json error = error_of(kTelephone);
    EXPECT_EQ(text(error, "param"), "session.audio.input.format.rate") << bytes;
    EXPECT_EQ(type_of(ask(kSame)), "session.updated");
    EXPECT_EQ(type_of(ask(R"({"type": "input_audio_buffer.clear"})")), "input_audio_buffer.cleared");
  }
  send(append_event(""));  // is no audio
  EXPECT_EQ(type_of(ask(kTelephone)), "session.updated");
  EXPECT_EQ(speaker().options.sampling_rate, 8000);
  send(append_event("\xFF\x80"));
  EXPECT_EQ(speaker().samples, (std::vector<int16_t>{0, 32124}));
  send(append_event(std::string(800, '\0')));
  send(kCommit);
  EXPECT_EQ(type_of(ask(kSame)), "session.updated");
}

TEST_F(RealtimeSocketTest, ErrorsNameTheFieldAndTheEventAndTheSessionGoesOn) {
  open();
  const auto expect = [&](std::string_view message, std::string_view code, std::string_view param) {
    Json error = error_of(message);
    EXPECT_EQ(text(error, "code"), code) << message;
    EXPECT_EQ(member(error, "param").is_null() ? "" : text(error, "param"), param) << message;
    return error;
  };
  expect("{", "invalid_json", "");
  expect("[1]", "invalid_event", "");
  expect("{}", "missing_required_parameter", "type");
  const Json unsupported = expect(R"({"type": "response.create", "event_id": "mine"})", "unsupported_event", "type");
  EXPECT_EQ(text(unsupported, "event_id"), "mine");
  expect(R"({"type": "x"})", "unknown_event", "type");
  expect(R"({"type": "input_audio_buffer.append", "audio": "A"})", "invalid_value", "audio");
  expect(kCommit, "input_audio_buffer_commit_empty", "");
  speaker().append_error = absl::OutOfRangeError("8 s; the most is 7 s");
  const Json too_long = expect(append_event("xx"), "input_audio_buffer_too_long", "");
  EXPECT_EQ(text(too_long, "message"), "8 s; the most is 7 s");
  speaker().append_error = absl::InternalError("secret");
  ::testing::internal::CaptureStderr();
  const Json internal = expect(append_event("xx"), "internal_error", "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("secret"));
  EXPECT_THAT(text(internal, "message"), Not(HasSubstr("secret")));
  speaker().append_error = ok_status();
  send(append_event(std::string("\x01\x00", 2)));
  EXPECT_EQ(speaker().samples, std::vector<int16_t>{1});
  EXPECT_EQ(socket->code(), 0);
}

TEST_F(RealtimeSocketTest, AHundredErrorsInARowEndIt) {
  open();
  for (int i = 0; i < kMaxErrorsInRow - 1; ++i) send("{");
  send(append_event(""));  // is in order
  for (int i = 0; i < kMaxErrorsInRow - 1; ++i) send("{");
  EXPECT_FALSE(speaker().is_finished);
  socket->take();
  send("{");
  const std::vector<Json> events = socket->take();
  ASSERT_EQ(types_of(events), (std::vector<std::string>{"error", "error"}));
  EXPECT_EQ(text(member(events[1], "error"), "code"), "too_many_errors");
  EXPECT_TRUE(speaker().is_finished);
  EXPECT_EQ(socket->code(), 0);  // what it owes comes first
  send("{");
  EXPECT_TRUE(socket->take().empty());
  observer().on_finished();
  EXPECT_EQ(socket->code(), 1008);
}

TEST_F(RealtimeSocketTest, AudioThatComesFasterThanItIsHeardStopsTheSocket) {
  open();
  speaker().waiting_seconds = 60;
  send(append_event("xx"));
  EXPECT_FALSE(socket->is_paused());
  speaker().waiting_seconds = 60.1;
  send(append_event("xx"));
  EXPECT_TRUE(socket->is_paused());
  clock.advance(std::chrono::seconds(3));
  observer().on_audio_taken();
  EXPECT_FALSE(socket->is_paused());
  EXPECT_EQ(hub().counts().paused_us.load(), 3'000'000);
  observer().on_audio_taken();  // nobody waits for it
  EXPECT_FALSE(socket->is_paused());
  EXPECT_EQ(hub().counts().paused_us.load(), 3'000'000);
}

TEST_F(RealtimeSocketTest, AudioMayComeLateWhileNobodySpeaks) {
  const std::string audio = append_event(std::string(4800, '\0'));
  open();
  EXPECT_FALSE(socket->is_patient());
  send(audio);
  EXPECT_TRUE(socket->is_patient());
  observer().on_speech_started(0, 100);
  EXPECT_FALSE(socket->is_patient());
  send(audio);
  EXPECT_FALSE(socket->is_patient());
  observer().on_committed(0);
  send(audio);
  EXPECT_FALSE(socket->is_patient());  // its transcript is owed
  observer().on_completed(0, {});
  send(audio);
  EXPECT_TRUE(socket->is_patient());
  observer().on_speech_started(1, 900);
  observer().on_cleared();
  send(audio);
  EXPECT_TRUE(socket->is_patient());
  // Without turns, who commits wants his answer.
  ask(R"({"type": "session.update", "session": {"audio": {"input": {"turn_detection": null}}}})");
  send(audio);
  EXPECT_FALSE(socket->is_patient());
}

TEST_F(RealtimeSocketTest, DeltasOfASlowReaderAreJoined) {
  open();
  socket->take();
  observer().on_delta(0, "a");
  socket->set_unsent(RealtimeOutput::kSlowReaderBytes + 1);
  observer().on_delta(0, "b");
  observer().on_delta(0, "c");
  observer().on_hypothesis(0, "d");
  ASSERT_EQ(socket->take().size(), 1u);
  socket->set_unsent(0);
  ASSERT_TRUE(becomes_true([&] { return hub().counts().out[RealtimeCounts::kDelta] == 2; }));
  std::vector<Json> events = socket->take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(text(events[0], "delta"), "bc");
  // What ends an item lets none of its words behind.
  socket->set_unsent(RealtimeOutput::kSlowReaderBytes + 1);
  observer().on_committed(0);
  observer().on_delta(0, "d");
  observer().on_delta(0, "e");
  observer().on_completed(0, {.text = "abcde"});
  events = socket->take();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(text(events[3], "delta"), "de");
  EXPECT_EQ(text(events[4], "transcript"), "abcde");
}

TEST_F(RealtimeSocketTest, ADrainingServerAnswersWhatIsCommitted) {
  open();
  observer().on_committed(0);
  socket->take();
  handler->on_drain();
  std::vector<Json> events = socket->take();
  ASSERT_EQ(types_of(events), std::vector<std::string>{"error"});
  EXPECT_EQ(text(member(events[0], "error"), "code"), "server_draining");
  EXPECT_TRUE(speaker().is_finished);
  send(append_event(std::string("\x01\x00", 2)));
  EXPECT_TRUE(speaker().samples.empty());
  EXPECT_EQ(socket->code(), 0);
  observer().on_completed(0, {.text = "last"});
  observer().on_finished();
  events = socket->take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(text(events[0], "transcript"), "last");
  EXPECT_EQ(socket->code(), 1001);
}

TEST_F(RealtimeSocketTest, ASessionExpires) {
  open();
  socket->take();
  clock.advance(std::chrono::milliseconds(99'900));
  std::this_thread::sleep_for(3 * RealtimeHub::kBetweenLooks);
  EXPECT_EQ(hub().counts().num_expired, 0);
  clock.advance(std::chrono::milliseconds(100));
  ASSERT_TRUE(becomes_true([&] { return hub().counts().num_expired == 1; }));
  ASSERT_TRUE(becomes_true([&] { return hub().counts().out[RealtimeCounts::kOutError] == 1; }));
  EXPECT_EQ(text(member(socket->take()[0], "error"), "code"), "session_expired");
  observer().on_finished();
  EXPECT_EQ(socket->code(), 1000);
}

TEST_F(RealtimeSocketTest, ACloseEndsTheSessionAndFreesItsPlace) {
  open();
  EXPECT_EQ(hub().counts().num_sessions, 1);
  const std::shared_ptr<FakeSpeaker> last = speech->last;
  close();
  EXPECT_FALSE(last->is_alive);
  EXPECT_EQ(hub().counts().num_sessions, 0);
}

TEST_F(RealtimeSocketTest, WithoutASessionItSaysSoAndCloses) {
  speech->create_error = absl::ResourceExhaustedError("too many");
  ::testing::internal::CaptureStderr();
  open();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("too many"));
  EXPECT_EQ(types_of(socket->take()), (std::vector<std::string>{"session.created", "error"}));
  EXPECT_EQ(socket->code(), 1011);
  send(append_event("xx"));
  handler->on_drain();
  EXPECT_TRUE(socket->take().empty());
}

TEST_F(RealtimeSocketTest, TheBetaIsChosenByItsFirstEvent) {
  open();
  EXPECT_EQ(type_of(ask(R"({"type": "transcription_session.update", "session": {"turn_detection": null}})")),
            "transcription_session.updated");
  observer().on_committed(0);
  EXPECT_EQ(types_of(socket->take()),
            (std::vector<std::string>{"input_audio_buffer.committed", "conversation.item.created"}));
}

TEST_F(RealtimeSocketTest, ADialectIsChosenOnce) {
  open();
  send(append_event(""));
  EXPECT_EQ(text(error_of(R"({"type": "transcription_session.update", "session": {}})"), "code"), "unsupported_event");
}

TEST_F(RealtimeSocketTest, VllmsClientsGetDeltasAndDone) {
  open();
  EXPECT_TRUE(socket->take()[0].find("id") != nullptr);
  send(R"({"type": "session.update", "model": "second"})");
  send(kCommit);
  EXPECT_TRUE(socket->take().empty());
  EXPECT_EQ(speaker().options.sampling_rate, 16000);
  EXPECT_FALSE(speaker().options.turn_detection.has_value());
  send(append_event(std::string(3200, '\0')));
  send(kFinal);
  EXPECT_EQ(speaker().num_commits, 1);
  send(kFinal);  // twice: there is one answer
  EXPECT_TRUE(socket->take().empty());
  observer().on_committed(0);
  observer().on_delta(0, "a");
  observer().on_completed(0, {.text = "a"});
  EXPECT_EQ(types_of(socket->take()), (std::vector<std::string>{"transcription.delta", "transcription.done"}));
  send(kFinal);  // of nothing: an answer, too (vllm#33962)
  const std::vector<Json> events = socket->take();
  ASSERT_EQ(types_of(events), std::vector<std::string>{"transcription.done"});
  EXPECT_EQ(text(events[0], "text"), "");
  EXPECT_EQ(text(ask(R"({"type": "x"})"), "code"), "unknown_event");
}

TEST_F(RealtimeSocketTest, AWrongModelOfVllmsLeavesItsRate) {
  open();
  EXPECT_EQ(text(ask(R"({"type": "session.update", "model": "third"})"), "code"), "not_found");
  EXPECT_EQ(speaker().options.sampling_rate, 16000);
}

TEST_F(RealtimeSocketTest, EventsAreCounted) {
  open();
  send(append_event("xx"));
  handler->on_message("xx", false);
  send("{");
  send(R"({"type": "input_audio_buffer.clear"})");
  observer().on_committed(0);
  observer().on_completed(0, {.text = "a", .was_revised = true, .seconds = 2});
  const RealtimeCounts& counts = hub().counts();
  using C = RealtimeCounts;
  EXPECT_EQ(counts.in[C::kAppend], 1);
  EXPECT_EQ(counts.in[C::kBinary], 1);
  EXPECT_EQ(counts.in[C::kInError], 1);
  EXPECT_EQ(counts.in[C::kClear], 1);
  EXPECT_EQ(counts.out[C::kCommitted], 3);
  EXPECT_EQ(counts.out[C::kCompleted], 1);
  EXPECT_EQ(counts.ends[C::kEndCompleted], 1);
  EXPECT_EQ(counts.ends[C::kEndCleared], 1);
  EXPECT_EQ(counts.num_revised, 1);
  EXPECT_EQ(counts.audio_us, 2'000'000);
  EXPECT_EQ(counts.num_opened, 1);
}

TEST_F(RealtimeSocketTest, PlacesAreAsManyAsThereMayBe) {
  auto first = hub().take_place(), second = hub().take_place();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(hub().take_place().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hub().counts().num_sessions, 2);
  { const RealtimeHub::Place gone = *std::move(first); }
  EXPECT_TRUE(hub().take_place().ok());
}

// Order is kept, whichever thread takes a message; meanwhile the socket is not read.
TEST_F(RealtimeSocketTest, LongMessagesAreTakenElsewhereInTheirTurn) {
  open();
  socket->take();
  std::promise<void> may_go_on;
  workers.post([&] { may_go_on.get_future().wait(); });
  std::vector<int16_t> expected(kLongMessageBytes, 7);
  send(append_event(std::string("\x01\x00", 2)));
  handler->on_message(testing::bytes_of_samples(expected), false);
  EXPECT_TRUE(socket->is_paused());
  send(append_event(std::string("\x02\x00", 2)));
  EXPECT_EQ(speaker().samples, std::vector<int16_t>{1});
  speaker().waiting_seconds = 61;
  may_go_on.set_value();
  ASSERT_TRUE(becomes_true([&] { return hub().counts().in[RealtimeCounts::kAppend] == 2; }));
  workers.stop();
  EXPECT_TRUE(socket->is_paused());  // as it is not heard yet
  expected.insert(expected.begin(), 1);
  expected.push_back(2);
  EXPECT_EQ(speaker().samples, expected);
  observer().on_audio_taken();
  EXPECT_FALSE(socket->is_paused());
}

// What is queued when the client goes reaches no session.
TEST_F(RealtimeSocketTest, WhatIsQueuedWhenTheClientGoesIsDropped) {
  open();
  std::promise<void> may_go_on;
  workers.post([&] { may_go_on.get_future().wait(); });
  handler->on_message(std::string(kLongMessageBytes + 1, 'x'), false);
  const std::shared_ptr<FakeSpeaker> last = speech->last;
  close();
  may_go_on.set_value();
  workers.stop();
  EXPECT_TRUE(last->samples.empty());
}

// Tiny events cost microseconds, not milliseconds.
TEST_F(RealtimeSocketTest, TinyEventsAreCheap) {
  open();
  const std::string event = append_event("");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100'000; ++i) send(event);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(hub().counts().in[RealtimeCounts::kAppend], 100'000);
}

}  // namespace
}  // namespace transept
