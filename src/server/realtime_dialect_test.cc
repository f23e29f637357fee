// What each dialect reads and writes. Names of events and fields are those of openai-python 3.54 (types/realtime,
// types/beta/realtime) and of vLLM's entrypoints/openai/realtime/protocol.py.
#include "server/realtime_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "speech/speech_testing.h"

namespace transept {
namespace {

using testing::parse_json;

const std::vector<std::string> kModels = {"first", "second"};
const RealtimeServed kServed = {.models = kModels, .max_text_bytes = 100};

RealtimeMessage message_of(std::string_view text) {
  RealtimeMessage message;
  const RealtimeFailure error = parse_message(text, {}, message);
  EXPECT_FALSE(error.has_value()) << text;
  return message;
}

RealtimeFailure update(const RealtimeDialect& dialect, std::string_view text, RealtimeConfig& config) {
  return dialect.read_update(message_of(text), kServed, config);
}
// Of the GA form, what "input" is.
RealtimeFailure update_input(std::string_view input, RealtimeConfig& config) {
  return update(openai_dialect(),
                str_cat(R"({"type": "session.update", "session": {"audio": {"input": )", input, "}}}"), config);
}

ClientEvent read(const RealtimeDialect& dialect, std::string_view text) {
  ClientEvent event;
  const RealtimeFailure error = dialect.read(message_of(text), event);
  EXPECT_FALSE(error.has_value()) << text;
  return event;
}
RealtimeError refused_by(const RealtimeDialect& dialect, std::string_view text) {
  ClientEvent event;
  const RealtimeFailure error = dialect.read(message_of(text), event);
  EXPECT_TRUE(error.has_value()) << text;
  return error.value_or(RealtimeError{});
}

std::vector<std::string> written(const std::function<void(RealtimeEvents&)>& write) {
  RealtimeIds ids("k");
  RealtimeEvents events(ids);
  write(events);
  std::vector<std::string> texts;
  for (const auto& event : events.events()) {
    EXPECT_EQ(parse_json(event.text).find("type")->as_string(), event.type);
    texts.push_back(event.text);
  }
  return texts;
}

RealtimeView view() {
  RealtimeView session{.id = "sess_k", .created_at = 7, .expires_at = 9, .config = {}};
  session.config.model = "first";
  return session;
}

TEST(OpenAiDialect, ReadsWhatItServes) {
  using Kind = ClientEvent::Kind;
  const RealtimeDialect& dialect = openai_dialect();
  EXPECT_EQ(read(dialect, R"({"type": "session.update"})").kind, Kind::kUpdate);
  EXPECT_EQ(read(dialect, R"({"type": "input_audio_buffer.commit"})").kind, Kind::kCommit);
  EXPECT_FALSE(read(dialect, R"({"type": "input_audio_buffer.commit", "final": true})").may_be_empty);
  EXPECT_EQ(read(dialect, R"({"type": "input_audio_buffer.clear"})").kind, Kind::kClear);
  const ClientEvent append = read(dialect, R"({"type": "input_audio_buffer.append", "audio": "AAEC"})");
  EXPECT_EQ(append.kind, Kind::kAppend);
  EXPECT_EQ(append.audio.size(), 3u);
}

TEST(OpenAiDialect, TheOthersOfOpenAiAreUnsupportedAndTheRestIsUnknown) {
  for (const char* type : {"response.create", "response.cancel", "conversation.item.create", "conversation.item.delete",
                           "conversation.item.retrieve", "conversation.item.truncate", "output_audio_buffer.clear"}) {
    EXPECT_EQ(refused_by(openai_dialect(), str_cat(R"({"type": ")", type, "\"}")).code, "unsupported_event") << type;
    EXPECT_EQ(refused_by(beta_dialect(), str_cat(R"({"type": ")", type, "\"}")).code, "unsupported_event") << type;
    EXPECT_EQ(refused_by(vllm_dialect(), str_cat(R"({"type": ")", type, "\"}")).code, "unknown_event") << type;
  }
  EXPECT_EQ(refused_by(openai_dialect(), R"({"type": "transcription_session.update"})").code, "unsupported_event");
  const RealtimeError error = refused_by(openai_dialect(), R"({"type": "session.updated"})");
  EXPECT_EQ(error.code, "unknown_event");
  EXPECT_EQ(error.param, "type");
  EXPECT_EQ(refused_by(vllm_dialect(), R"({"type": "input_audio_buffer.clear"})").code, "unknown_event");
}

TEST(OpenAiDialect, AnUpdateChangesWhatIsPresent) {
  RealtimeConfig config;
  EXPECT_FALSE(update_input(R"({"format": {"type": "audio/pcm", "rate": 16000}, "transcription": {"model": "second",
      "language": "de", "languages": ["de", "en"], "prompt": "p", "keywords": ["a", "b c"], "delay": "xhigh"},
      "turn_detection": {"type": "server_vad", "threshold": 0.25, "prefix_padding_ms": 0, "silence_duration_ms": 10000,
      "create_response": true, "interrupt_response": false, "idle_timeout_ms": null}})",
                            config)
                   .has_value());
  EXPECT_EQ(config.format.rate, 16000);
  EXPECT_EQ(config.model, "second");
  LiveOptions options = config.live_options();
  EXPECT_EQ(options.sampling_rate, 16000);
  EXPECT_EQ(options.language, "de");
  EXPECT_EQ(options.languages, (std::vector<std::string>{"de", "en"}));
  EXPECT_EQ(options.prompt, "p");
  EXPECT_EQ(options.hotwords, "a, b c");
  EXPECT_EQ(options.delay, LiveDelay::kXhigh);
  EXPECT_EQ(options.turn_detection, (LiveTurnDetection{0.25, 0, 10000}));
  const RealtimeConfig before = config;

  EXPECT_FALSE(update(openai_dialect(), R"({"type": "session.update", "session": {}})", config).has_value());
  EXPECT_FALSE(update_input("{}", config).has_value());
  EXPECT_FALSE(update_input(R"({"transcription": {}, "turn_detection": {"type": "server_vad"}})", config).has_value());
  EXPECT_EQ(config.live_options(), before.live_options());
  EXPECT_EQ(config.format, before.format);
  EXPECT_EQ(config.model, "second");

  EXPECT_FALSE(
      update_input(R"({"transcription": {"prompt": "q"}, "turn_detection": {"threshold": 1}})", config).has_value());
  EXPECT_EQ(config.prompt, "q");
  EXPECT_EQ(config.language, "de");
  EXPECT_EQ(config.turn_detection, (LiveTurnDetection{1, 0, 10000}));
}

TEST(OpenAiDialect, NullClears) {
  RealtimeConfig config;
  const RealtimeConfig defaults;
  const auto fill = [&] {
    EXPECT_FALSE(
        update_input(R"({"format": {"type": "audio/pcma"}, "transcription": {"model": "second", "language": "de",
        "languages": ["de"], "prompt": "p", "keywords": ["a"], "delay": "low"}, "turn_detection": {"threshold": 1,
        "silence_duration_ms": 20, "prefix_padding_ms": 1}})",
                     config)
            .has_value());
    EXPECT_EQ(config.format, (RealtimeFormat{RealtimeFormat::Kind::kPcma, 8000}));
  };
  fill();
  EXPECT_FALSE(update_input(R"({"transcription": {"model": null, "language": null, "languages": null, "prompt": null,
      "keywords": null, "delay": null}, "turn_detection": {"threshold": null, "silence_duration_ms": null,
      "prefix_padding_ms": null}, "format": null, "noise_reduction": null})",
                            config)
                   .has_value());
  EXPECT_EQ(config.live_options(), defaults.live_options());
  EXPECT_EQ(config.model, "");
  fill();
  EXPECT_FALSE(update_input(R"({"transcription": null, "turn_detection": null})", config).has_value());
  EXPECT_EQ(config.language, "");
  EXPECT_EQ(config.model, "");
  EXPECT_EQ(config.turn_detection, std::nullopt);
  EXPECT_EQ(config.format.rate, 8000);
  EXPECT_FALSE(update_input(R"({"turn_detection": {"type": "server_vad"}})", config).has_value());
  EXPECT_EQ(config.turn_detection, LiveTurnDetection{});
  for (const char* audio : {"null", R"({"input": null})"}) {
    fill();
    EXPECT_FALSE(
        update(openai_dialect(), str_cat(R"({"type": "session.update", "session": {"audio": )", audio, "}}"), config)
            .has_value());
    EXPECT_EQ(config.live_options(), defaults.live_options()) << audio;
    EXPECT_EQ(config.format, defaults.format);
  }
}

// A format without a rate has OpenAI's, whatever was before.
TEST(OpenAiDialect, AFormatIsReplacedAsAWhole) {
  RealtimeConfig config;
  for (const int rate : {8000, 48000}) {
    EXPECT_FALSE(
        update_input(str_cat(R"({"format": {"rate": )", rate, R"(, "type": "audio/pcm"}})"), config).has_value());
    EXPECT_EQ(config.format.rate, rate);
  }
  EXPECT_FALSE(update_input(R"({"format": {"type": "audio/pcm", "rate": null}})", config).has_value());
  EXPECT_EQ(config.format.rate, 24000);
  EXPECT_FALSE(update_input(R"({"format": {"type": "audio/pcmu", "rate": 8000}})", config).has_value());
  EXPECT_EQ(config.format, (RealtimeFormat{RealtimeFormat::Kind::kPcmu, 8000}));
}

struct WrongInput {
  const char* input;
  const char* param;  // behind session.audio.input
  const char* code = "invalid_value";
};

TEST(OpenAiDialect, WhatIsWrongIsNamed) {
  const WrongInput cases[] = {
      {R"({"format": "audio/pcm"})", ".format"},
      {R"({"format": {"rate": 24000}})", ".format.type", "missing_required_parameter"},
      {R"({"format": {"type": "pcm16"}})", ".format.type"},
      {R"({"format": {"type": "audio/pcm", "rate": 7999}})", ".format.rate"},
      {R"({"format": {"type": "audio/pcm", "rate": 48001}})", ".format.rate"},
      {R"({"format": {"type": "audio/pcm", "rate": 1e300}})", ".format.rate"},
      {R"({"format": {"type": "audio/pcm", "rate": 16000.5}})", ".format.rate"},
      {R"({"format": {"type": "audio/pcm", "rate": "16000"}})", ".format.rate"},
      {R"({"format": {"rate": 16000, "type": "audio/pcmu"}})", ".format.rate"},
      {R"({"format": {"type": "audio/pcm", "bits": 16}})", ".format.bits", "unknown_parameter"},
      {R"({"transcription": {"model": "third"}})", ".transcription.model", "not_found"},
      {R"({"transcription": {"model": 1}})", ".transcription.model"},
      {R"({"transcription": {"language": 1}})", ".transcription.language"},
      {R"({"transcription": {"languages": "de"}})", ".transcription.languages"},
      {R"({"transcription": {"languages": ["de", 1]}})", ".transcription.languages[1]"},
      {R"({"transcription": {"prompt": ["p"]}})", ".transcription.prompt"},
      {R"({"transcription": {"keywords": [null]}})", ".transcription.keywords[0]"},
      {R"({"transcription": {"delay": "none"}})", ".transcription.delay"},
      {R"({"transcription": {"delay": 1}})", ".transcription.delay"},
      {R"({"transcription": {"temperature": 0}})", ".transcription.temperature", "unknown_parameter"},
      {R"({"transcription": "whisper"})", ".transcription"},
      {R"({"noise_reduction": {"type": "near_field"}})", ".noise_reduction", "unsupported"},
      {R"({"turn_detection": {"type": "semantic_vad"}})", ".turn_detection.type", "unsupported"},
      {R"({"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}})", ".turn_detection.idle_timeout_ms",
       "unsupported"},
      {R"({"turn_detection": {"type": "server_vad", "eagerness": "low"}})", ".turn_detection.eagerness", "unsupported"},
      {R"({"turn_detection": {"type": "none"}})", ".turn_detection.type"},
      {R"({"turn_detection": {"type": null}})", ".turn_detection.type"},
      {R"({"turn_detection": {"threshold": -0.01}})", ".turn_detection.threshold"},
      {R"({"turn_detection": {"threshold": 1.01}})", ".turn_detection.threshold"},
      {R"({"turn_detection": {"threshold": "0.5"}})", ".turn_detection.threshold"},
      {R"({"turn_detection": {"prefix_padding_ms": -1}})", ".turn_detection.prefix_padding_ms"},
      {R"({"turn_detection": {"prefix_padding_ms": 10001}})", ".turn_detection.prefix_padding_ms"},
      {R"({"turn_detection": {"silence_duration_ms": 19}})", ".turn_detection.silence_duration_ms"},
      {R"({"turn_detection": {"silence_duration_ms": 10001}})", ".turn_detection.silence_duration_ms"},
      {R"({"turn_detection": {"silence_duration_ms": 1000000000}})", ".turn_detection.silence_duration_ms"},
      {R"({"turn_detection": {"create_response": 1}})", ".turn_detection.create_response"},
      {R"({"turn_detection": false})", ".turn_detection"},
      {R"({"voice": "alloy"})", ".voice", "unknown_parameter"},
      {R"([])", ""},
  };
  for (const WrongInput& wrong : cases) {
    RealtimeConfig config;
    const RealtimeFailure error = update_input(wrong.input, config);
    ASSERT_TRUE(error.has_value()) << wrong.input;
    EXPECT_EQ(error->param, str_cat("session.audio.input", wrong.param)) << wrong.input;
    EXPECT_EQ(error->code, wrong.code) << wrong.input;
    EXPECT_TRUE(error->message.starts_with("session.audio.input")) << error->message;
  }
}

TEST(OpenAiDialect, TextsAreBounded) {
  RealtimeConfig config;
  const auto keywords = [](size_t count, size_t size) {
    std::string list;
    for (size_t i = 0; i < count; ++i) list += str_cat(i == 0 ? "" : ", ", "\"", std::string(size, 'k'), "\"");
    return str_cat(R"({"transcription": {"keywords": [)", list, "]}}");
  };
  EXPECT_FALSE(update_input(str_cat(R"({"transcription": {"prompt": ")", std::string(100, 'p'), "\"}}"), config));
  EXPECT_TRUE(update_input(str_cat(R"({"transcription": {"prompt": ")", std::string(101, 'p'), "\"}}"), config));
  EXPECT_FALSE(update_input(keywords(10, 10), config));
  EXPECT_TRUE(update_input(keywords(11, 10), config));
  EXPECT_FALSE(update_input(keywords(1024, 0), config));
  EXPECT_TRUE(update_input(keywords(1025, 0), config));
  EXPECT_TRUE(update_input(str_cat(R"({"transcription": {"language": ")", std::string(61, 'l'), "\"}}"), config));
}

TEST(OpenAiDialect, ASessionIsATranscription) {
  RealtimeConfig config;
  const auto failure = [&](std::string_view session) {
    return update(openai_dialect(), str_cat(R"({"type": "session.update", "session": )", session, "}"), config);
  };
  EXPECT_FALSE(failure(R"({"type": "transcription"})").has_value());
  EXPECT_EQ(failure(R"({"type": "realtime", "instructions": "x"})")->code, "unsupported");
  EXPECT_EQ(failure(R"({"type": "realtime"})")->param, "session.type");
  EXPECT_EQ(failure(R"({"type": 1})")->param, "session.type");
  EXPECT_EQ(failure(R"({"type": null})")->param, "session.type");
  EXPECT_EQ(failure(R"({"tools": []})")->param, "session.tools");
  EXPECT_EQ(failure(R"({"audio": {"output": {}}})")->param, "session.audio.output");
  EXPECT_EQ(failure("null")->param, "session");
  EXPECT_EQ(update(openai_dialect(), R"({"type": "session.update"})", config)->code, "missing_required_parameter");
}

TEST(OpenAiDialect, HypothesesAndLogprobsMayBeIncluded) {
  RealtimeConfig config;
  const auto failure = [&](std::string_view include) {
    return update(openai_dialect(), str_cat(R"({"type": "session.update", "session": {"include": )", include, "}}"),
                  config);
  };
  EXPECT_FALSE(failure(R"(["item.input_audio_transcription.logprobs"])").has_value());
  EXPECT_TRUE(config.live_options().wants_logprobs);
  EXPECT_FALSE(config.live_options().wants_hypotheses);
  EXPECT_EQ(failure(R"(["transept.hypothesis", "x"])")->param, "session.include[1]");
  EXPECT_FALSE(failure(R"(["transept.hypothesis"])").has_value());
  EXPECT_TRUE(config.live_options().wants_hypotheses);
  EXPECT_FALSE(config.live_options().wants_logprobs);
  EXPECT_FALSE(failure("[]").has_value());
  EXPECT_FALSE(config.live_options().wants_hypotheses);
  EXPECT_FALSE(failure(R"(["transept.hypothesis"])").has_value());
  EXPECT_FALSE(failure("null").has_value());
  EXPECT_FALSE(config.includes_hypotheses);
}

TEST(OpenAiDialect, NamesOfUnknownFieldsAreShortened) {
  RealtimeConfig config;
  const RealtimeFailure error = update_input(str_cat(R"({")", std::string(100000, 'x'), R"(": 1})"), config);
  ASSERT_TRUE(error.has_value());
  EXPECT_LT(error->message.size(), 300u);
  EXPECT_LT(error->param.size(), 100u);
}

TEST(OpenAiDialect, PathsOfOptions) {
  const std::string input = "session.audio.input";
  EXPECT_EQ(openai_dialect().path_of("language"), input + ".transcription.language");
  EXPECT_EQ(openai_dialect().path_of("hotwords"), input + ".transcription.keywords");
  EXPECT_EQ(openai_dialect().path_of("sampling_rate"), input + ".format.rate");
  EXPECT_EQ(openai_dialect().path_of("turn_detection.threshold"), input + ".turn_detection.threshold");
  EXPECT_EQ(beta_dialect().path_of("turn_detection.threshold"), "session.turn_detection.threshold");
  EXPECT_EQ(beta_dialect().path_of("hotwords"), "session.input_audio_transcription.keywords");
  EXPECT_EQ(beta_dialect().path_of("sampling_rate"), "session.input_audio_format");
  EXPECT_EQ(vllm_dialect().path_of("language"), "language");
}

TEST(OpenAiDialect, WritesASession) {
  const std::string input =
      R"({"format": {"type": "audio/pcm", "rate": 24000}, "transcription": {"model": "first", "language": null, )"
      R"("languages": null, "prompt": null, "keywords": null, "delay": "medium"}, "noise_reduction": null, )"
      R"("turn_detection": {"type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, )"
      R"("silence_duration_ms": 500}})";
  const std::string session = str_cat(
      R"({"id": "sess_k", "object": "realtime.transcription_session", "type": "transcription", "audio": {"input": )",
      input, R"(}, "include": null, "expires_at": 9})");
  EXPECT_EQ(written([](auto& out) { openai_dialect().created(view(), out); }),
            std::vector<std::string>{str_cat(R"({"type": "session.created", "event_id": "event_k_0", "session": )",
                                             session, R"(, "id": "sess_k", "created": 7})")});
  EXPECT_EQ(written([](auto& out) { openai_dialect().updated(view(), out); }),
            std::vector<std::string>{
                str_cat(R"({"type": "session.updated", "event_id": "event_k_0", "session": )", session, "}")});
  RealtimeView other = view();
  other.config.format = {RealtimeFormat::Kind::kPcmu, 8000};
  other.config.turn_detection = std::nullopt;
  other.config.keywords = {"a"};
  other.config.includes_hypotheses = other.config.includes_logprobs = true;
  const std::string text = written([&](auto& out) { openai_dialect().updated(other, out); }).front();
  EXPECT_NE(text.find(R"("format": {"type": "audio/pcmu"})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("turn_detection": null)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("keywords": ["a"])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("include": ["item.input_audio_transcription.logprobs", "transept.hypothesis"])"),
            std::string::npos)
      << text;
}

TEST(OpenAiDialect, WritesLogprobsOfTokensWithTheirBytes) {
  LiveTranscript transcript;
  transcript.text = "a é";
  transcript.tokens = {{" a", -0.25f}, {" \xC3", -std::numeric_limits<float>::infinity()}, {"\xA9", 0}};
  const std::string text = written([&](auto& out) { openai_dialect().completed("i", transcript, out); }).front();
  EXPECT_NE(text.find(R"("logprobs": [{"token": " a", "logprob": -0.25, "bytes": [32, 97]}, )"
                      "{\"token\": \" \xEF\xBF\xBD\", \"logprob\": -9999.0, \"bytes\": [32, 195]}, "
                      "{\"token\": \"\xEF\xBF\xBD\", \"logprob\": 0.0, \"bytes\": [169]}]"),
            std::string::npos)
      << text;
}

TEST(OpenAiDialect, WritesAnItemsEvents) {
  const RealtimeDialect& dialect = openai_dialect();
  LiveTranscript transcript;
  transcript.text = "a b";
  transcript.seconds = 1.5;
  transcript.language = "en";
  transcript.was_revised = true;
  const std::vector<std::string> events = written([&](auto& out) {
    dialect.speech_started("i", 10, out);
    dialect.delta("i", " a", out);
    dialect.hypothesis("i", " b", out);
    dialect.speech_stopped("i", 20, out);
    dialect.committed("i", "", out);
    dialect.completed("i", transcript, out);
    dialect.completed("j", LiveTranscript(), out);
    dialect.failed("i", {.type = "server_error", .code = "timeout", .message = "late"}, out);
    dialect.cleared(out);
    dialect.error({.message = "m", .param = "p"}, "theirs", out);
    dialect.error({.message = "m"}, "", out);
  });
  const std::string item =
      R"("previous_item_id": null, "item": {"id": "i", "object": "realtime.item", "type": "message", )"
      R"("status": "completed", "role": "user", "content": [{"type": "input_audio", "transcript": null}]}})";
  const std::string transcription = R"({"type": "conversation.item.input_audio_transcription.)";
  const std::vector<std::string> expected = {
      R"({"type": "input_audio_buffer.speech_started", "event_id": "event_k_0", "audio_start_ms": 10, "item_id": "i"})",
      str_cat(transcription, R"(delta", "event_id": "event_k_1", "item_id": "i", "content_index": 0, "delta": " a"})"),
      R"({"type": "transept.hypothesis", "event_id": "event_k_2", "item_id": "i", "content_index": 0, "text": " b"})",
      R"({"type": "input_audio_buffer.speech_stopped", "event_id": "event_k_3", "audio_end_ms": 20, "item_id": "i"})",
      R"({"type": "input_audio_buffer.committed", "event_id": "event_k_4", "previous_item_id": null, "item_id": "i"})",
      str_cat(R"({"type": "conversation.item.added", "event_id": "event_k_5", )", item),
      str_cat(R"({"type": "conversation.item.done", "event_id": "event_k_6", )", item),
      str_cat(transcription, R"(completed", "event_id": "event_k_7", "item_id": "i", "content_index": 0, )",
              R"("transcript": "a b", "usage": {"type": "duration", "seconds": 1.5}, "languages": [{"code": "en"}], )",
              R"("transept_revised": true})"),
      str_cat(transcription, R"(completed", "event_id": "event_k_8", "item_id": "j", "content_index": 0, )",
              R"("transcript": "", "usage": {"type": "duration", "seconds": 0.0}})"),
      str_cat(transcription, R"(failed", "event_id": "event_k_9", "item_id": "i", "content_index": 0, )",
              R"("error": {"type": "server_error", "code": "timeout", "message": "late", "param": null}})"),
      R"({"type": "input_audio_buffer.cleared", "event_id": "event_k_10"})",
      str_cat(R"({"type": "error", "event_id": "event_k_11", "error": {"type": "invalid_request_error", )",
              R"("code": "invalid_value", "message": "m", "param": "p", "event_id": "theirs"}})"),
      str_cat(R"({"type": "error", "event_id": "event_k_12", "error": {"type": "invalid_request_error", )",
              R"("code": "invalid_value", "message": "m", "param": null, "event_id": null}})"),
  };
  EXPECT_EQ(events, expected);
}

TEST(BetaDialect, HasFlatFields) {
  RealtimeConfig config;
  const RealtimeDialect& dialect = beta_dialect();
  EXPECT_EQ(read(dialect, R"({"type": "transcription_session.update"})").kind, ClientEvent::Kind::kUpdate);
  EXPECT_EQ(read(dialect, R"({"type": "session.update"})").kind, ClientEvent::Kind::kUpdate);
  const auto failure = [&](std::string_view session) {
    return update(dialect, str_cat(R"({"type": "transcription_session.update", "session": )", session, "}"), config);
  };
  EXPECT_FALSE(failure(R"({"input_audio_format": "g711_ulaw", "input_audio_transcription": {"model": "second",
      "language": "de", "prompt": "p"}, "input_audio_noise_reduction": null, "turn_detection": {"type": "server_vad",
      "silence_duration_ms": 700}, "include": [], "modalities": ["text"], "client_secret": {"expires_at": {}}})")
                   .has_value());
  EXPECT_EQ(config.format, (RealtimeFormat{RealtimeFormat::Kind::kPcmu, 8000}));
  EXPECT_EQ(config.model, "second");
  EXPECT_EQ(config.turn_detection->silence_duration_ms, 700);
  EXPECT_FALSE(failure(R"({"input_audio_format": "g711_alaw"})").has_value());
  EXPECT_EQ(config.format.kind, RealtimeFormat::Kind::kPcma);
  EXPECT_FALSE(failure(R"({"input_audio_format": "pcm16"})").has_value());
  EXPECT_EQ(config.format, RealtimeFormat());
  EXPECT_EQ(failure(R"({"input_audio_format": "audio/pcm"})")->param, "session.input_audio_format");
  EXPECT_EQ(failure(R"({"input_audio_noise_reduction": {"type": "far_field"}})")->code, "unsupported");
  EXPECT_EQ(failure(R"({"voice": "alloy"})")->param, "session.voice");
}

TEST(BetaDialect, WritesItsOwnEvents) {
  const std::string session =
      R"({"id": "sess_k", "object": "realtime.transcription_session", "expires_at": 9, "input_audio_format": "pcm16", )"
      R"("input_audio_transcription": {"model": "first", "language": null, "prompt": null}, )"
      R"("input_audio_noise_reduction": null, "turn_detection": {"type": "server_vad", "threshold": 0.5, )"
      R"("prefix_padding_ms": 300, "silence_duration_ms": 500}, "include": null, "client_secret": null}})";
  const std::vector<std::string> events = written([](auto& out) {
    beta_dialect().created(view(), out);
    beta_dialect().updated(view(), out);
    beta_dialect().committed("j", "i", out);
  });
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0],
            str_cat(R"({"type": "transcription_session.created", "event_id": "event_k_0", "session": )", session));
  EXPECT_EQ(events[1],
            str_cat(R"({"type": "transcription_session.updated", "event_id": "event_k_1", "session": )", session));
  EXPECT_EQ(events[2], R"({"type": "input_audio_buffer.committed", "event_id": "event_k_2", )"
                       R"("previous_item_id": "i", "item_id": "j"})");
  EXPECT_TRUE(events[3].starts_with(R"({"type": "conversation.item.created", "event_id": "event_k_3", )"
                                    R"("previous_item_id": "i", "item": {"id": "j", )"))
      << events[3];
}

TEST(VllmDialect, ACommitBeginsAndAFinalOneEnds) {
  using Kind = ClientEvent::Kind;
  const RealtimeDialect& dialect = vllm_dialect();
  RealtimeConfig config;
  dialect.begin(config);
  EXPECT_EQ(config.format.rate, 16000);
  EXPECT_EQ(config.turn_detection, std::nullopt);
  EXPECT_FALSE(update(dialect, R"({"type": "session.update", "model": "second", "language": "de", "prompt": "p",
      "temperature": 0})",
                      config)
                   .has_value());
  EXPECT_EQ(config.model, "second");
  EXPECT_EQ(config.language, "de");
  EXPECT_EQ(config.prompt, "p");
  EXPECT_EQ(update(dialect, R"({"type": "session.update", "model": "third"})", config)->code, "not_found");
  EXPECT_EQ(update(dialect, R"({"type": "session.update", "language": 1})", config)->param, "language");
  EXPECT_EQ(update(dialect, R"({"type": "session.update", "prompt": 1, "z": 2})", config)->param, "prompt");
  EXPECT_EQ(read(dialect, R"({"type": "session.update"})").kind, Kind::kUpdate);
  EXPECT_EQ(read(dialect, R"({"type": "input_audio_buffer.append", "audio": ""})").kind, Kind::kAppend);
  for (const char* rest : {"", R"(, "final": false)", R"(, "final": null)"}) {
    EXPECT_EQ(read(dialect, str_cat(R"({"type": "input_audio_buffer.commit")", rest, "}")).kind, Kind::kNothing);
  }
  const ClientEvent end = read(dialect, R"({"type": "input_audio_buffer.commit", "final": true})");
  EXPECT_EQ(end.kind, Kind::kCommit);
  EXPECT_TRUE(end.may_be_empty);
  EXPECT_EQ(refused_by(dialect, R"({"type": "input_audio_buffer.commit", "final": 1})").param, "final");
}

TEST(VllmDialect, WritesDeltasAndDone) {
  LiveTranscript transcript;
  transcript.text = "a b";
  transcript.language = "en";
  const std::vector<std::string> events = written([&](auto& out) {
    const RealtimeDialect& dialect = vllm_dialect();
    dialect.created(view(), out);
    dialect.updated(view(), out);
    dialect.speech_started("i", 1, out);
    dialect.speech_stopped("i", 1, out);
    dialect.committed("i", "", out);
    dialect.cleared(out);
    dialect.hypothesis("i", "x", out);
    dialect.delta("i", "a", out);
    dialect.completed("i", transcript, out);
    dialect.error({.code = "unknown_event", .message = "m"}, "theirs", out);
    dialect.failed("i", {.code = "timeout", .message = "late"}, out);
  });
  const std::vector<std::string> expected = {
      R"({"type": "session.created", "id": "sess_k", "created": 7})",
      R"({"type": "transcription.delta", "delta": "a"})",
      R"({"type": "transcription.done", "text": "a b", "usage": null, "language": "en"})",
      R"({"type": "error", "error": "m", "code": "unknown_event"})",
      R"({"type": "error", "error": "late", "code": "timeout"})",
  };
  EXPECT_EQ(events, expected);
}

TEST(RealtimeDialect, IsChosenByTheFirstEvent) {
  const auto chosen = [](std::string_view text, const RealtimeDialect& current) {
    return &choose_dialect(message_of(text), current);
  };
  const RealtimeDialect &ga = openai_dialect(), &beta = beta_dialect(), &vllm = vllm_dialect();
  EXPECT_EQ(chosen(R"({"type": "transcription_session.update", "session": {}})", ga), &beta);
  EXPECT_EQ(chosen(R"({"type": "session.update", "model": "first"})", ga), &vllm);
  EXPECT_EQ(chosen(R"({"type": "session.update", "model": null})", beta), &vllm);
  EXPECT_EQ(chosen(R"({"type": "session.update", "model": "first", "session": {}})", ga), &ga);
  EXPECT_EQ(chosen(R"({"type": "session.update"})", ga), &ga);
  EXPECT_EQ(chosen(R"({"type": "input_audio_buffer.commit"})", ga), &ga);
  EXPECT_EQ(chosen(R"({"type": "session.update", "session": {"input_audio_format": "pcm16"}})", beta), &beta);
  EXPECT_EQ(chosen(R"({"type": "session.update", "session": {"audio": {}}})", beta), &ga);
  EXPECT_EQ(chosen(R"({"type": "session.update", "session": {"type": "transcription"}})", beta), &ga);
  EXPECT_EQ(chosen(R"({"type": "session.update", "session": 7})", beta), &beta);
}

}  // namespace
}  // namespace transept
