// Whole sessions on a server with a tiny model: audio in, transcripts out, equal to those of files.
#include "server/realtime_live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/websocket_testing.h"
#include "server/realtime_audio.h"
#include "server/realtime_session_testing.h"
#include "server/served_model_testing.h"
#include "server/transcription_testing.h"
#include "speech/characters.h"

namespace transept {
namespace {

using testing::append_event;
using testing::ClientFrame;
using testing::form_body;
using testing::member;
using testing::parse_json;
using testing::read_frame;
using testing::ServedModel;
using testing::speech_model;
using testing::text_frame;

// One client's socket.
class Speaker final {
 public:
  explicit Speaker(uint16_t port, std::string_view query = "", std::string_view more = "") : client_(port) {
    client_.send(str_cat("GET /v1/realtime", query, " HTTP/1.1\r\nHost: localhost\r\n", testing::kHandshakeHeaders,
                         more, "\r\n"));
    EXPECT_TRUE(client_.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  }

  void send(std::string text) { client_.send(text_frame(std::move(text))); }
  void send_binary(std::string bytes) {
    client_.send(ClientFrame{.opcode = testing::kBinary, .payload = std::move(bytes)}.bytes());
  }
  // Without audio, fields of "input".
  void configure(std::string_view input) {
    send(str_cat(R"({"type": "session.update", "session": {"type": "transcription", "audio": {"input": )", input,
                 "}}}"));
  }
  // The next event; an empty object: the socket has closed, with code().
  Json next() {
    while (true) {
      const auto frame = read_frame(client_);
      if (!frame.has_value()) return Json::object();
      if (frame->opcode == testing::kClose) {
        code_ = frame->code();
        return Json::object();
      }
      if (frame->opcode == testing::kText) return parse_json(frame->payload);
    }
  }
  std::string next_type() { return type_of(next()); }
  static std::string type_of(const Json& event) {
    const Json* type = event.find("type");
    return type == nullptr ? "" : type->as_string();
  }
  // Up to an event whose type ends so.
  std::vector<Json> events_until(std::string_view end) {
    std::vector<Json> events;
    while (events.empty() || !type_of(events.back()).ends_with(end)) {
      events.push_back(next());
      if (type_of(events.back()).empty()) {
        ADD_FAILURE() << "the socket closed before " << end;
        break;
      }
    }
    return events;
  }
  int code() const { return code_; }
  void close() { client_.close(); }

 private:
  RawClient client_;
  int code_ = 0;
};

std::string text_of(const std::vector<Json>& events) {
  std::string text;
  for (const Json& event : events) {
    if (const Json* delta = event.find("delta")) text += delta->as_string();
  }
  return std::string(strip_space(text));
}

class RealtimeLiveTest : public ::testing::Test {
 protected:
  void SetUp() override { served.load(); }

  static ServerOptions options() {
    ServerOptions options = testing::default_server_options();
    options.api_keys = {};
    return options;
  }
  static std::string pcm(uint32_t seed, double length, int32_t rate = 16000) {
    return bytes_of(testing::synthetic_audio(seed, static_cast<size_t>(length * rate)));
  }
  uint16_t port() { return served.server().http().port(); }
  std::string offline(const std::string& bytes, const WavHeader& header = {}) {
    const auto reply =
        served.client().post("/v1/audio/transcriptions", str_cat("multipart/form-data; boundary=", testing::kBoundary),
                             form_body({{"language", "en"}, {"file", make_wav(header, bytes)}}), {});
    if (!reply.ok()) return error_message(reply.status());
    EXPECT_EQ(reply->status, 200) << reply->body;
    return member(parse_json(reply->body), "text").as_string();
  }

  ServedModel served{options(), speech_model()};
};

constexpr std::string_view kManual = R"({"format": {"type": "audio/pcm", "rate": 16000}, "turn_detection": null,
    "transcription": {"language": "en"}})";

TEST_F(RealtimeLiveTest, AnItemIsTheFileHoweverItIsCut) {
  const std::string bytes = pcm(7, 3);
  const std::string expected = offline(bytes);
  ASSERT_FALSE(expected.empty());
  Speaker speaker(port());
  EXPECT_EQ(speaker.next_type(), "session.created");
  speaker.configure(kManual);
  EXPECT_EQ(speaker.next_type(), "session.updated");
  std::string previous;
  for (const size_t size : {bytes.size(), size_t{4801}, size_t{640}}) {
    for (size_t i = 0; i < bytes.size(); i += size) {
      size == 640 ? speaker.send_binary(bytes.substr(i, size)) : speaker.send(append_event(bytes.substr(i, size)));
    }
    speaker.send(R"({"type": "input_audio_buffer.commit"})");
    const std::vector<Json> events = speaker.events_until(".completed");
    EXPECT_EQ(member(events.back(), "transcript").as_string(), expected) << size;
    if (events.back().find("transept_revised") == nullptr) {
      EXPECT_EQ(text_of(events), expected) << size;
    }
    EXPECT_NEAR(member(member(events.back(), "usage"), "seconds").as_double(), 3, 0.001);
    for (const Json& event : events) {
      if (Speaker::type_of(event) != "input_audio_buffer.committed") continue;
      const Json& before = member(event, "previous_item_id");
      EXPECT_EQ(before.is_null() ? "" : before.as_string(), previous);
    }
    previous = member(events.back(), "item_id").as_string();
  }
}

TEST_F(RealtimeLiveTest, WhatWasClearedIsInNoItem) {
  const std::string bytes = pcm(7, 2), other = pcm(8, 1);
  Speaker speaker(port());
  speaker.next();
  speaker.configure(kManual);
  speaker.next();
  speaker.send(append_event(other));
  speaker.send(R"({"type": "input_audio_buffer.clear"})");
  speaker.events_until(".cleared");
  speaker.send(append_event(bytes));
  speaker.send(R"({"type": "input_audio_buffer.commit"})");
  EXPECT_EQ(member(speaker.events_until(".completed").back(), "transcript").as_string(), offline(bytes));
  speaker.send(R"({"type": "input_audio_buffer.commit"})");
  const Json error = member(speaker.events_until("error").back(), "error");
  EXPECT_EQ(member(error, "code").as_string(), "input_audio_buffer_commit_empty");
}

TEST_F(RealtimeLiveTest, ATelephonesItemIsTheFileOfItsSamples) {
  std::string codes, samples;
  for (int i = 0; i < 8000; ++i) {
    const auto code = static_cast<uint8_t>(i * i / 37 + i % 97);
    codes.push_back(static_cast<char>(code));
    samples += bytes_of(std::vector<int16_t>{sample_of_mu_law(code)});
  }
  Speaker speaker(port());
  speaker.next();
  speaker.configure(
      R"({"format": {"type": "audio/pcmu"}, "turn_detection": null, "transcription": {"language": "en"}})");
  EXPECT_EQ(speaker.next_type(), "session.updated");
  speaker.send(append_event(codes));
  speaker.send(R"({"type": "input_audio_buffer.commit"})");
  const Json completed = speaker.events_until(".completed").back();
  EXPECT_NEAR(member(member(completed, "usage"), "seconds").as_double(), 1, 0.001);
  EXPECT_EQ(member(completed, "transcript").as_string(), offline(samples, {.rate = 8000}));
}

TEST_F(RealtimeLiveTest, VllmsClientGetsDone) {
  const std::string bytes = pcm(9, 2);
  Speaker speaker(port());
  speaker.next();
  speaker.send(R"({"type": "session.update", "model": "g2p", "language": "en"})");
  speaker.send(R"({"type": "input_audio_buffer.commit"})");
  speaker.send(append_event(bytes));
  speaker.send(R"({"type": "input_audio_buffer.commit", "final": true})");
  const std::vector<Json> events = speaker.events_until(".done");
  EXPECT_EQ(member(events.back(), "text").as_string(), offline(bytes));
  for (size_t i = 0; i + 1 < events.size(); ++i) EXPECT_EQ(Speaker::type_of(events[i]), "transcription.delta");
  speaker.send(R"({"type": "input_audio_buffer.commit", "final": true})");
  EXPECT_EQ(member(speaker.events_until(".done").back(), "text").as_string(), "");
}

TEST_F(RealtimeLiveTest, SpeakersDoNotMix) {
  constexpr int kSpeakers = 4;
  std::vector<std::unique_ptr<Speaker>> speakers;
  std::vector<std::string> audio;
  for (int i = 0; i < kSpeakers; ++i) {
    speakers.push_back(std::make_unique<Speaker>(port()));
    speakers.back()->next();
    speakers.back()->configure(kManual);
    EXPECT_EQ(speakers.back()->next_type(), "session.updated");
    audio.push_back(pcm(static_cast<uint32_t>(20 + i), 2));
  }
  for (size_t at = 0; at < audio[0].size(); at += 6400) {
    for (int i = 0; i < kSpeakers; ++i) speakers[i]->send_binary(audio[i].substr(at, 6400));
  }
  for (const auto& speaker : speakers) speaker->send(R"({"type": "input_audio_buffer.commit"})");
  for (int i = 0; i < kSpeakers; ++i) {
    const std::vector<Json> events = speakers[i]->events_until(".completed");
    EXPECT_EQ(member(events.back(), "transcript").as_string(), offline(audio[i])) << i;
    for (const Json& event : events) {
      if (const Json* item = event.find("item_id")) {
        EXPECT_EQ(item->as_string(), member(events.back(), "item_id").as_string());
      }
    }
  }
}

TEST_F(RealtimeLiveTest, WhatIsCommittedIsAnsweredWhenTheServerGoes) {
  const std::string bytes = pcm(7, 3);
  const std::string expected = offline(bytes);
  Speaker speaker(port());
  speaker.next();
  speaker.configure(kManual);
  speaker.next();
  speaker.send(append_event(bytes));
  speaker.send(R"({"type": "input_audio_buffer.commit"})");
  speaker.events_until("conversation.item.done");
  std::thread drains([&] { served.server().drain(std::chrono::seconds(30), [] { return true; }); });
  const std::vector<Json> events = speaker.events_until(".completed");
  EXPECT_EQ(member(events.back(), "transcript").as_string(), expected);
  std::string type;
  do {
    type = speaker.next_type();
  } while (!type.empty());
  EXPECT_EQ(speaker.code(), 1001);
  speaker.close();
  drains.join();
}

// A client that goes in the middle leaves nothing behind.
TEST_F(RealtimeLiveTest, OneThatVanishesIsForgotten) {
  const ServerContext& context = *served.server().context();
  {
    Speaker speaker(port());
    speaker.next();
    speaker.configure(kManual);
    speaker.next();
    speaker.send(append_event(pcm(7, 20)));
    speaker.send(R"({"type": "input_audio_buffer.commit"})");
    speaker.events_until("committed");
  }
  EXPECT_TRUE(becomes_true([&] { return context.realtime->counts().num_sessions == 0; }));
  EXPECT_TRUE(becomes_true([&] { return context.engine.num_queued() == 0; }));
}

}  // namespace
}  // namespace transept
