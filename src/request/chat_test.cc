// Bodies of chats: OpenAI's names as the fields of a completion, messages as templates read them, and prompts.
#include "request/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json json(std::string_view text) {
  const auto value = Json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Json();
}

StatusOr<ParsedChat> parse(std::string_view body) { return parse_chat(json(body), {}); }

// A body of these messages.
std::string of(std::string_view messages, std::string_view fields = "") {
  return str_cat(R"({"messages": )", messages, fields.empty() ? "" : ", ", fields, "}");
}
std::string of_parts(std::string_view parts) { return of(str_cat(R"([{"role": "user", "content": [)", parts, "]}]")); }

constexpr std::string_view kHello = R"([{"role": "user", "content": "hello"}])";
constexpr std::string_view kImage = R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})";
constexpr std::string_view kOther = R"({"type": "image_url", "image_url": {"url": "DATA:,B", "detail": "low"}})";
constexpr std::string_view kSound = R"({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}})";

std::string param(std::string_view body) {
  const auto parsed = parse(body);
  EXPECT_FALSE(parsed.ok()) << body;
  return error_param(parsed.status());
}

TEST(ParseChat, ReadsOpenAisNamesAsThoseOfACompletion) {
  const auto parsed = parse(of(kHello, R"("model": "m", "max_completion_tokens": 7, "logprobs": true, "top_logprobs": 3,
      "stream": true, "stream_options": {"include_usage": true}, "num_beams": 2, "top_k": 5, "user": "u", "n": 2,
      "repetition_penalty": 1.5, "stop": "x", "logit_bias": {"5": 1}, "source_lang": "en", "add_special_tokens": true)"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const RequestOverrides& sampling = parsed->request.sampling;
  EXPECT_EQ(sampling.max_tokens, 7);
  EXPECT_EQ(sampling.logprobs, 3);
  EXPECT_EQ(sampling.num_beams, 2);
  EXPECT_EQ(sampling.top_k, 5);
  EXPECT_EQ(sampling.n, 2);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.stop->front(), "x");
  EXPECT_EQ(parsed->request.stream, true);
  EXPECT_EQ(parsed->request.body.include_usage, true);
  EXPECT_EQ(parsed->request.body.model, "m");
  EXPECT_EQ(parsed->request.prompt_options.source_lang, "en");
  EXPECT_EQ(parsed->request.prompt_options.add_special_tokens, true);
  EXPECT_EQ(parsed->request.num_unknown_fields, 0);
}

TEST(ParseChat, LogprobsAreOffUnlessTrue) {
  EXPECT_EQ(parse(of(kHello))->request.sampling.logprobs, std::nullopt);
  EXPECT_EQ(parse(of(kHello, R"("logprobs": false, "top_logprobs": 0)"))->request.sampling.logprobs, std::nullopt);
  EXPECT_EQ(parse(of(kHello, R"("logprobs": true)"))->request.sampling.logprobs, 0);
  EXPECT_EQ(param(of(kHello, R"("logprobs": 3)")), "logprobs");
  EXPECT_EQ(param(of(kHello, R"("top_logprobs": 3)")), "top_logprobs");
  EXPECT_EQ(param(of(kHello, R"("top_logprobs": 3, "logprobs": false)")), "top_logprobs");
  EXPECT_EQ(param(of(kHello, R"("top_logprobs": 21, "logprobs": true)")), "top_logprobs");
}

TEST(ParseChat, TheTwoNamesOfTheLimitMustAgree) {
  EXPECT_EQ(parse(of(kHello, R"("max_tokens": 5)"))->request.sampling.max_tokens, 5);
  EXPECT_EQ(parse(of(kHello, R"("max_tokens": 5, "max_completion_tokens": 5)"))->request.sampling.max_tokens, 5);
  EXPECT_EQ(param(of(kHello, R"("max_tokens": 5, "max_completion_tokens": 6)")), "max_completion_tokens");
  EXPECT_EQ(param(of(kHello, R"("max_completion_tokens": 0)")), "max_completion_tokens");
}

TEST(ParseChat, WhatIsNotSupportedIsRefusedByNameUnlessItAsksForNothing) {
  for (const char* field :
       {R"("tools": [{"type": "function"}])", R"("tools": [])", R"("functions": [{}])", R"("tool_choice": "auto")",
        R"("tool_choice": {"type": "function"})", R"("function_call": "auto")",
        R"("response_format": {"type": "json_object"})", R"("response_format": {"type": "text", "x": 1})",
        R"("modalities": ["text", "audio"])", R"("modalities": [])", R"("audio": {"voice": "alloy"})",
        R"("web_search_options": {})", R"("prompt": "x")", R"("decoder_prompt": "x")", R"("chat_template": "x")",
        R"("chat_template_kwargs": {"a": 1})", R"("guided_json": {})", R"("num_beam_groups": 2)"}) {
    const auto parsed = parse(of(kHello, field));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kUnimplemented) << field;
    EXPECT_EQ(str_cat("\"", error_param(parsed.status()), "\""),
              std::string_view(field).substr(0, std::string_view(field).find(':')));
  }
  EXPECT_TRUE(parse(of(kHello, R"("tools": null, "tool_choice": "none", "function_call": "none", "audio": null,
      "response_format": {"type":"text"}, "modalities": ["text"], "parallel_tool_calls": true)"))
                  .ok());
}

TEST(ParseChat, MessagesAreWhatTemplatesRead) {
  const auto parsed = parse(of(str_cat(R"([{"role": "developer", "content": "be brief", "name": "d"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, )",
                                       kImage, R"(, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": "c", "refusal": null, "tool_calls": [], "function_call": null, "audio": null},
      {"role": "user", "content": [)",
                                       kOther, ", ", kSound, "]}]")));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(
      parsed->chat.messages.dump(),
      R"([{"role": "system", "content": "be brief", "name": "d"}, )"
      R"({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}, )"
      R"({"role": "assistant", "content": "c"}, )"
      R"({"role": "user", "content": [{"type": "image"}, {"type": "audio"}]}])");
  ASSERT_EQ(parsed->chat.media.size(), 3u);
  EXPECT_EQ(parsed->chat.media[1].modality, "image");
  EXPECT_EQ(parsed->chat.media[1].item.dump(), R"("DATA:,B")");
  EXPECT_EQ(parsed->chat.media[1].param, "messages[3].content[0].image_url.url");
  EXPECT_EQ(parsed->chat.media[2].item.dump(), R"({"base64": "UklG"})");
  EXPECT_EQ(parsed->chat.media[2].param, "messages[3].content[1].input_audio.data");
}

TEST(ParseChat, ErrorsHaveTheirPlace) {
  EXPECT_EQ(param("{}"), "messages");
  EXPECT_EQ(param(R"({"messages": null})"), "messages");
  EXPECT_EQ(param(of("[]")), "messages");
  EXPECT_EQ(param(of(R"("hello")")), "messages");
  EXPECT_EQ(param(of(R"(["hello"])")), "messages[0]");
  EXPECT_EQ(param(of(R"([{"content": "a"}])")), "messages[0].role");
  EXPECT_EQ(param(of(R"([{"role": 5, "content": "a"}])")), "messages[0].role");
  EXPECT_EQ(param(of(R"([{"role": "poet", "content": "a"}])")), "messages[0].role");
  EXPECT_EQ(param(of(R"([{"role": "user"}])")), "messages[0].content");
  EXPECT_EQ(param(of(R"([{"role": "user", "content": null}])")), "messages[0].content");
  EXPECT_EQ(param(of(R"([{"role": "user", "content": 5}])")), "messages[0].content");
  EXPECT_EQ(param(of(R"([{"role": "user", "content": []}])")), "messages[0].content");
  EXPECT_EQ(param(of(R"([{"role": "user", "content": "a", "name": 5}])")), "messages[0].name");
  EXPECT_EQ(param(of_parts("5")), "messages[0].content[0]");
  EXPECT_EQ(param(of_parts(R"({"type": "text", "text": "a"}, {})")), "messages[0].content[1].type");
  EXPECT_EQ(param(of_parts(R"({"type": "text"})")), "messages[0].content[0].text");
  EXPECT_EQ(param(of_parts(R"({"type": "file", "file": {}})")), "messages[0].content[0].type");
  EXPECT_EQ(param(of_parts(R"({"type": "image_url"})")), "messages[0].content[0].image_url");
  EXPECT_EQ(param(of_parts(R"({"type": "image_url", "image_url": "data:,A"})")), "messages[0].content[0].image_url");
  EXPECT_EQ(param(of_parts(R"({"type": "image_url", "image_url": {}})")), "messages[0].content[0].image_url.url");
  EXPECT_EQ(param(of_parts(R"({"type": "image_url", "image_url": {"url": "data:,A", "detail": 1}})")),
            "messages[0].content[0].image_url.detail");
  EXPECT_EQ(param(of_parts(R"({"type": "input_audio", "input_audio": {"format": "wav"}})")),
            "messages[0].content[0].input_audio.data");
  for (const char* role : {"system", "assistant"}) {
    EXPECT_EQ(param(of(str_cat(R"([{"role": ")", role, R"(", "content": [)", kImage, "]}]"))),
              "messages[0].content[0].type");
  }
}

TEST(ParseChat, ToolsInMessagesAreRefused) {
  for (const char* role : {"tool", "function"}) {
    const auto parsed = parse(of(str_cat(R"([{"role": ")", role, R"(", "content": "a"}])")));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(error_param(parsed.status()), "messages[0].role");
  }
  for (const char* member : {R"("tool_calls": [{}])", R"("function_call": {})", R"("audio": {"id": "a"})"}) {
    const auto parsed = parse(of(str_cat(R"([{"role": "assistant", "content": "a", )", member, "}]")));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kUnimplemented) << member;
    EXPECT_THAT(error_param(parsed.status()), HasSubstr("messages[0].")) << member;
  }
}

TEST(ParseChat, UrlsAreNotFetchedAndFilesAreNotRead) {
  for (const char* url : {"http://127.0.0.1/a.png", "https://example.org/a.png", "HTTP://x", "hTTps://x"}) {
    const auto parsed = parse(of_parts(str_cat(R"({"type": "image_url", "image_url": {"url": ")", url, "\"}}")));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_EQ(error_param(parsed.status()), "messages[0].content[0].image_url.url");
    EXPECT_THAT(error_message(parsed.status()), HasSubstr("URLs are not fetched: send a data: URL"));
  }
  for (const char* url : {"file:///etc/passwd", "/etc/passwd", "a.png", "", "ftp://x", " data:,A", "dat", "//x"}) {
    const auto parsed = parse(of_parts(str_cat(R"({"type": "image_url", "image_url": {"url": ")", url, "\"}}")));
    EXPECT_EQ(error_param(parsed.status()), "messages[0].content[0].image_url.url") << url;
    EXPECT_THAT(error_message(parsed.status()), HasSubstr("must be a data: URL")) << url;
  }
}

TEST(PlainChatPrompt, AnOnlyTurnIsAsPromptOfACompletion) {
  const auto text = plain_chat_prompt(parse(of(kHello))->chat, "bart");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(std::get<TextPrompt>(text->encoder.content).text, "hello");
  EXPECT_EQ(text->encoder_param, "messages[0].content");
  EXPECT_FALSE(text->decoder.has_value());

  const auto several = plain_chat_prompt(
      parse(of_parts(R"({"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "text", "text": "b"})"))
          ->chat,
      "bart");
  EXPECT_EQ(std::get<TextPrompt>(several->encoder.content).text, "a\n\nb");
  const auto empty = plain_chat_prompt(parse(of(R"([{"role": "user", "content": ""}])"))->chat, "bart");
  EXPECT_EQ(std::get<TextPrompt>(empty->encoder.content).text, "");
}

TEST(PlainChatPrompt, TextBesideMediaIsTheDecoders) {
  const auto both =
      plain_chat_prompt(parse(of_parts(str_cat(R"({"type": "text", "text": "a"}, )", kImage)))->chat, "x");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->encoder.multi_modal_data->dump(), R"({"image": "data:image/png;base64,AAAA"})");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(both->encoder.content));
  EXPECT_EQ(both->encoder_param, "messages[0].content[1].image_url.url");
  EXPECT_EQ(std::get<TextPrompt>(both->decoder->content).text, "a");
  EXPECT_EQ(both->decoder_param, "messages[0].content");
  EXPECT_TRUE(both->decoder_beside_media);

  const auto alone = plain_chat_prompt(parse(of_parts(kSound))->chat, "x");
  EXPECT_EQ(alone->encoder.multi_modal_data->dump(), R"({"audio": {"base64": "UklG"}})");
  EXPECT_FALSE(alone->decoder.has_value());
}

TEST(PlainChatPrompt, FurtherMessagesAreRefusedWithTheFamily) {
  const auto refusal = [](std::string_view messages) {
    return plain_chat_prompt(parse(of(messages))->chat, "bart").status();
  };
  const auto system = refusal(R"([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}])");
  EXPECT_EQ(error_param(system), "messages[0]");
  EXPECT_THAT(error_message(system), AllOf(HasSubstr("messages[0]: "), HasSubstr("(bart)"), HasSubstr("system")));
  EXPECT_EQ(error_param(refusal(R"([{"role": "assistant", "content": "a"}])")), "messages[0]");
  const auto further = refusal(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                                   {"role": "user", "content": "c"}])");
  EXPECT_EQ(error_param(further), "messages[1]");
  EXPECT_EQ(error_param(refusal(R"([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])")),
            "messages[1]");
}

TEST(RenderedChatPrompt, MediaOfAllTurnsStandInOrder) {
  const auto chat = parse(of(str_cat(R"([{"role": "user", "content": [)", kImage, R"(]},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": [)",
                                     kSound, ", ", kOther, "]}]")));
  ASSERT_TRUE(chat.ok()) << chat.status();
  const EncoderDecoderPrompt prompt = rendered_chat_prompt(chat->chat, "rendered");
  EXPECT_EQ(prompt.encoder.multi_modal_data->dump(),
            R"({"image": ["data:image/png;base64,AAAA", "DATA:,B"], "audio": {"base64": "UklG"}})");
  EXPECT_EQ(std::get<TextPrompt>(prompt.decoder->content).text, "rendered");
  EXPECT_TRUE(prompt.decoder_beside_media);
  EXPECT_EQ(prompt.encoder_param, "messages");
  const EncoderDecoderPrompt text = rendered_chat_prompt(parse(of(kHello))->chat, "rendered");
  EXPECT_EQ(std::get<TextPrompt>(text.encoder.content).text, "rendered");
  EXPECT_EQ(text.encoder_param, "messages");
}

}  // namespace
}  // namespace transept
