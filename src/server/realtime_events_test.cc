#include "server/realtime_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace transept {
namespace {

using ::testing::HasSubstr;

RealtimeError refused(std::string_view text, std::string* event_id = nullptr) {
  RealtimeMessage message;
  const RealtimeFailure error = parse_message(text, {}, message);
  EXPECT_TRUE(error.has_value()) << text;
  if (event_id != nullptr) *event_id = message.event_id;
  return error.value_or(RealtimeError{});
}

TEST(RealtimeEvents, AMessageHasATypeAndMayHaveAnId) {
  RealtimeMessage message;
  EXPECT_FALSE(parse_message(R"({"type": "a.b", "event_id": "mine", "x": [1]})", {}, message).has_value());
  EXPECT_EQ(message.type, "a.b");
  EXPECT_EQ(message.event_id, "mine");
  EXPECT_FALSE(parse_message(R"({"type": "a", "event_id": null})", {}, message).has_value());
  EXPECT_EQ(message.event_id, "");
  // RFC 8259 leaves it open; here as everywhere the last value counts.
  EXPECT_FALSE(parse_message(R"({"type": "a", "type": "b"})", {}, message).has_value());
  EXPECT_EQ(message.type, "b");
}

TEST(RealtimeEvents, WhatIsNoMessageIsNamed) {
  EXPECT_EQ(refused("").code, "invalid_json");
  EXPECT_EQ(refused("{").code, "invalid_json");
  EXPECT_EQ(refused(R"({"type": "a"} x)").code, "invalid_json");
  EXPECT_EQ(refused(R"({"type": NaN})").code, "invalid_json");
  EXPECT_EQ(refused("[]").code, "invalid_event");
  EXPECT_EQ(refused("7").code, "invalid_event");
  EXPECT_THAT(refused("\"type\"").message, HasSubstr("a string"));
  EXPECT_EQ(refused("{}").code, "missing_required_parameter");
  EXPECT_EQ(refused(R"({"type": null})").param, "type");
  EXPECT_EQ(refused(R"({"type": 7})").param, "type");
  EXPECT_EQ(refused(R"({"type": "a", "event_id": 7})").param, "event_id");
  EXPECT_EQ(refused(R"({"type": "a", "event_id": ")" + std::string(kMaxEventIdBytes + 1, 'x') + "\"}").param,
            "event_id");
}

TEST(RealtimeEvents, AnErrorKnowsTheIdOfItsMessage) {
  std::string id;
  refused(R"({"event_id": "mine", "type": 7})", &id);
  EXPECT_EQ(id, "mine");
  refused(R"({"event_id": "mine")", &id);
  EXPECT_EQ(id, "");
}

TEST(RealtimeEvents, LevelsAndBytesAreLimited) {
  const auto nested = [](size_t levels) {
    return R"({"type": "a", "x": )" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  RealtimeMessage message;
  EXPECT_FALSE(parse_message(nested(64), {}, message).has_value());
  EXPECT_EQ(refused(nested(65)).code, "invalid_json");
  EXPECT_EQ(refused(nested(100000)).code, "invalid_json");
  EXPECT_TRUE(parse_message(R"({"type": "a"})", {.max_bytes = 12}, message).has_value());
}

TEST(RealtimeEvents, AudioIsStrictBase64) {
  const auto read = [](const std::string& audio) {
    RealtimeMessage message;
    message.json = Json(Json::Object{{"audio", audio}});
    ClientEvent event;
    const RealtimeFailure error = read_audio(message, event);
    if (!error.has_value()) return event.audio;
    EXPECT_EQ(error->param, "audio");
    return std::string("refused");
  };
  EXPECT_EQ(read("AAEC"), std::string("\0\1\2", 3));
  EXPECT_EQ(read("AAE="), std::string("\0\1", 2));
  EXPECT_EQ(read(""), "");
  for (const char* wrong :
       {"A", "AAEC=", "AAE", " AAEC", "AA EC", "AAEC\n", "AA-_", "A===", "AAF=", "\xC3\xA9==", "AAECAAE"}) {
    EXPECT_EQ(read(wrong), "refused") << wrong;
  }
}

// What read_audio makes of a message: its bytes, or the parameter in error.
std::string audio_of(const RealtimeMessage& message) {
  ClientEvent event;
  const RealtimeFailure error = read_audio(message, event);
  return error.has_value() ? error->param : event.audio;
}

TEST(RealtimeEvents, AnAppendThatIsWrittenPlainlyIsReadAtOnce) {
  const std::string bytes("\0\1\2\xFF", 4);
  for (const char* text : {
           R"({"type":"input_audio_buffer.append","audio":"AAEC/w==","event_id":"mine"})",
           R"({"event_id": "mine", "audio": "AAEC/w==", "type": "input_audio_buffer.append"})",
           " {\n\t\"audio\" : \"AAEC/w==\" ,\r\"type\":\"input_audio_buffer.append\" , \"event_id\":\"mine\" } \n",
       }) {
    RealtimeMessage message;
    EXPECT_FALSE(parse_message(text, {}, message).has_value()) << text;
    EXPECT_TRUE(message.audio.has_value()) << text;
    EXPECT_EQ(message.type, "input_audio_buffer.append");
    EXPECT_EQ(message.event_id, "mine");
    EXPECT_EQ(audio_of(message), bytes);
  }
  RealtimeMessage message;
  EXPECT_FALSE(parse_message(R"({"type":"input_audio_buffer.append","audio":""})", {}, message).has_value());
  EXPECT_EQ(message.audio, "");
  EXPECT_EQ(message.event_id, "");
}

TEST(RealtimeEvents, AnAppendThatIsWrittenOtherwiseSaysTheSame) {
  const std::string begin = R"({"type": "input_audio_buffer.append", "event_id": "mine", )";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("audio": "AAEC\/w=="})", std::string("\0\1\2\xFF", 4)},
      {R"("audio": "AA\u0045C"})", std::string("\0\1\2", 3)},
      {R"("audio": "AAEC", "audio": "AAE="})", std::string("\0\1", 2)},
      {R"("audio": "AAEC", "more": {"audio": 1}})", std::string("\0\1\2", 3)},
      {R"("aud\u0069o": "AAEC"})", std::string("\0\1\2", 3)},
      {R"("audio": "AAEC ="})", "audio"},
      {R"("audio": "AAE"})", "audio"},
      {"\"audio\": \"\xC3\xA9==\"}", "audio"},
      {R"("audio": null})", "audio"},
      {R"("audio": 7})", "audio"},
      {R"("more": "AAEC"})", "audio"},
  };
  for (const auto& [end, expected] : cases) {
    RealtimeMessage message;
    EXPECT_FALSE(parse_message(begin + end, {}, message).has_value()) << end;
    EXPECT_FALSE(message.audio.has_value()) << end;
    EXPECT_EQ(message.event_id, "mine");
    EXPECT_EQ(audio_of(message), expected) << end;
  }
  RealtimeMessage message;
  EXPECT_FALSE(parse_message(R"({"audio": "AAEC", "type": "another"})", {}, message).has_value());
  EXPECT_EQ(message.type, "another");
  EXPECT_NE(message.json.find("audio"), nullptr);
  for (const char* end : {"\"audio\": \"AAEC\"", "\"audio\": \"AAEC\"}}", "\"audio\": \"AAEC\",}", "\"audio\": \"AAEC",
                          "\"audio\" \"AAEC\"}", "\"audio\": \"AA\nEC\"}", "\"audio\": \"AAEC\"} x", "audio: \"AAEC\"}",
                          ",\"audio\": \"AAEC\"}"}) {
    EXPECT_EQ(refused(begin + end).code, "invalid_json") << end;
  }
  const std::string long_id = R"({"type": "input_audio_buffer.append", "audio": "AAEC", "event_id": ")";
  EXPECT_EQ(refused(long_id + std::string(kMaxEventIdBytes + 1, 'x') + "\"}").param, "event_id");
  const std::string text = begin + R"("audio": "AAEC"})";
  EXPECT_TRUE(parse_message(text, {.max_bytes = text.size() - 1}, message).has_value());
}

TEST(RealtimeEvents, AudioMustBeThereAndAString) {
  ClientEvent event;
  RealtimeMessage message;
  message.json = Json::object();
  EXPECT_EQ(read_audio(message, event)->code, "missing_required_parameter");
  for (Json value : {Json(), Json(7), Json(Json::array())}) {
    message.json.set("audio", std::move(value));
    EXPECT_EQ(read_audio(message, event)->param, "audio");
  }
}

TEST(RealtimeEvents, IdsDifferWithinASessionAndBetweenSessions) {
  std::set<std::string> ids;
  RealtimeIds first, second;
  for (RealtimeIds* session : {&first, &second}) {
    ids.insert(session->session());
    for (int i = 0; i < 3; ++i) {
      ids.insert(session->item(i));
      ids.insert(session->next_event());
    }
  }
  EXPECT_EQ(ids.size(), 14u);
  EXPECT_EQ(first.item(1), first.item(1));
  EXPECT_TRUE(first.session().starts_with("sess_"));
  EXPECT_TRUE(first.item(0).starts_with("item_"));
  EXPECT_TRUE(first.next_event().starts_with("event_"));
}

TEST(RealtimeEvents, AnEventBeginsWithItsTypeAndId) {
  RealtimeIds ids("k");
  RealtimeEvents events(ids);
  events.add("a", {{"x", 1}});
  events.add_without_id("b", {});
  events.add("c", {});
  ASSERT_EQ(events.events().size(), 3u);
  EXPECT_EQ(events.events()[0].text, R"({"type": "a", "event_id": "event_k_0", "x": 1})");
  EXPECT_EQ(events.events()[1].text, R"({"type": "b"})");
  EXPECT_EQ(events.events()[2].text, R"({"type": "c", "event_id": "event_k_1"})");
}

}  // namespace
}  // namespace transept
