// Requests as written: ids, every prompt form of docs/api.md, warnings, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "request/request.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StatusOr<ParsedRequest> parse(std::string_view text) {
  const auto line = Json::parse(text);
  return line.ok() ? parse_request(*line, Json(7)) : line.status();
}

StatusOr<ParsedRequest> parse_prompt(std::string_view prompt) { return parse(str_cat("{\"prompt\": ", prompt, "}")); }

std::string text_of(const SingletonPrompt& side) {
  const auto* text = std::get_if<TextPrompt>(&side.content);
  return text == nullptr ? "(no text)" : text->text;
}
std::vector<int32_t> ids_of(const SingletonPrompt& side) {
  const auto* tokens = std::get_if<TokensPrompt>(&side.content);
  return tokens == nullptr ? std::vector<int32_t>() : tokens->token_ids;
}
bool is_empty(const SingletonPrompt& side) { return std::holds_alternative<std::monostate>(side.content); }

TEST(ParseRequest, TakesIdsAndFallsBackToTheLine) {
  EXPECT_EQ(parse(R"({"id": "r1", "prompt": "x"})")->id.as_string(), "r1");
  EXPECT_EQ(parse(R"({"id": 12, "prompt": "x"})")->id.as_int(), 12);
  EXPECT_EQ(parse(R"({"id": null, "prompt": "x"})")->id.as_int(), 7);
  EXPECT_EQ(parse(R"({"prompt": "x"})")->id.as_int(), 7);
  EXPECT_EQ(error_param(parse(R"({"id": [], "prompt": "x"})").status()), "id");
  EXPECT_EQ(request_id(*Json::parse(R"({"id": {}})"), 3).as_int(), 3);
  EXPECT_EQ(request_id(*Json::parse("5"), 3).as_int(), 3);
  for (const char* text : {"5", "[]", "\"x\"", "null"}) EXPECT_FALSE(parse(text).ok()) << text;
}

TEST(ParseRequest, IdsPast64BitsComeBackDigitForDigit) {
  for (const char* id : {"18446744073709551615", "-9223372036854775809", "123456789012345678901234567890"}) {
    const auto request = parse(str_cat("{\"id\": ", id, ", \"prompt\": \"x\"}"));
    ASSERT_TRUE(request.ok()) << id << request.status();
    EXPECT_EQ(request->id.dump(), id);
  }
}

TEST(ParseRequest, ReadsSingletons) {
  for (const char* prompt : {R"("abc")", R"({"prompt": "abc"})", R"({"prompt": "abc", "multi_modal_data": null})",
                             R"({"prompt": "abc", "encoder_prompt": null, "decoder_prompt": null})"}) {
    const auto request = parse_prompt(prompt);
    ASSERT_TRUE(request.ok()) << prompt << request.status();
    EXPECT_EQ(text_of(request->prompt.encoder), "abc");
    EXPECT_EQ(request->prompt.encoder_param, "prompt");
    EXPECT_FALSE(request->prompt.decoder.has_value());
  }
  EXPECT_EQ(text_of(parse_prompt(R"("")")->prompt.encoder), "");
  for (const char* prompt :
       {"[0, 31414, 2]", R"({"prompt_token_ids": [0, 31414, 2.0]})", R"({"prompt_tokens": [0, 31414, 2]})"}) {
    const auto request = parse_prompt(prompt);
    ASSERT_TRUE(request.ok()) << prompt << request.status();
    EXPECT_THAT(ids_of(request->prompt.encoder), ElementsAre(0, 31414, 2));
  }
}

TEST(ParseRequest, ReadsExplicitPrompts) {
  auto request = parse_prompt(R"({"encoder_prompt": "e", "decoder_prompt": null})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(text_of(request->prompt.encoder), "e");
  EXPECT_EQ(request->prompt.encoder_param, "encoder_prompt");
  EXPECT_FALSE(request->prompt.decoder.has_value());

  request = parse_prompt(R"({"encoder_prompt": [1], "decoder_prompt": {"prompt_tokens": [2, 3]}})");
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(ids_of(request->prompt.encoder), ElementsAre(1));
  EXPECT_THAT(ids_of(*request->prompt.decoder), ElementsAre(2, 3));

  request = parse_prompt(R"({"encoder_prompt": {"prompt": "e"}, "decoder_prompt": ""})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(text_of(*request->prompt.decoder), "");

  request = parse(R"({"prompt": {"encoder_prompt": "e"}, "decoder_prompt": [4]})");
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(ids_of(*request->prompt.decoder), ElementsAre(4));

  request = parse(R"({"decoder_prompt": {"prompt": "d"}, "prompt": [5]})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(text_of(*request->prompt.decoder), "d");
  EXPECT_EQ(request->prompt.decoder_param, "decoder_prompt");
}

TEST(ParseRequest, MediaGoToTheEncoderAndTextToTheDecoder) {
  auto request = parse_prompt(R"({"prompt": "d", "multi_modal_data": {"audio": "a.wav"}})");
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(is_empty(request->prompt.encoder));
  EXPECT_EQ(request->prompt.encoder.multi_modal_data->find("audio")->as_string(), "a.wav");
  EXPECT_EQ(request->prompt.encoder_param, "multi_modal_data");
  EXPECT_EQ(text_of(*request->prompt.decoder), "d");
  EXPECT_FALSE(request->prompt.decoder->multi_modal_data.has_value());

  request = parse_prompt(R"({"prompt_token_ids": [1], "multi_modal_data": {"audio": "a.wav"}})");
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(ids_of(*request->prompt.decoder), ElementsAre(1));

  request = parse_prompt(R"({"multi_modal_data": {"audio": "a.wav"}})");
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->prompt.decoder.has_value());

  request =
      parse_prompt(R"({"encoder_prompt": {"prompt": "e", "multi_modal_data": {"audio": "a"}}, "decoder_prompt": "d"})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(text_of(request->prompt.encoder), "e");
  EXPECT_TRUE(request->prompt.encoder.multi_modal_data.has_value());
  EXPECT_EQ(text_of(*request->prompt.decoder), "d");
}

TEST(ParseRequest, RefusesBadPromptsByName) {
  struct Case {
    const char *line, *param;
  };
  const Case cases[] = {
      {R"({})", "prompt"},
      {R"({"prompt": null})", "prompt"},
      {R"({"prompt": 5})", "prompt"},
      {R"({"prompt": true})", "prompt"},
      {R"({"prompt": {}})", "prompt"},
      {R"({"prompt": []})", "prompt"},
      {R"({"prompt": {"prompt": null}})", "prompt"},
      {R"({"prompt": {"prompt": 5}})", "prompt"},
      {R"({"prompt": {"prompt": [1]}})", "prompt"},
      {R"({"prompt": [1, "a"]})", "prompt"},
      {R"({"prompt": ["a", "b"]})", "prompt"},
      {R"({"prompt": [[1], [2]]})", "prompt"},
      {R"({"prompt": [1.5]})", "prompt"},
      {R"({"prompt": [true]})", "prompt"},
      {R"({"prompt": [null]})", "prompt"},
      {R"({"prompt": [1099511627776]})", "prompt"},
      {R"({"prompt": [-1]})", "prompt"},
      {R"({"prompt": {"prompt_token_ids": []}})", "prompt_token_ids"},
      {R"({"prompt": {"prompt_token_ids": "1 2"}})", "prompt_token_ids"},
      {R"({"prompt": {"prompt_tokens": [-1]}})", "prompt_tokens"},
      {R"({"prompt": {"prompt": "x", "prompt_token_ids": [1]}})", "prompt"},
      {R"({"prompt": {"decoder_prompt": "x"}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": null, "decoder_prompt": "x"}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": null}})", "encoder_prompt"},
      {R"({"prompt": {"decoder_prompt": null}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": 5}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": {}}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": {"prompt_token_ids": [-1]}}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": {"encoder_prompt": "x"}}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": {"prompt": "x", "decoder_prompt": "y"}}})", "encoder_prompt"},
      {R"({"prompt": {"encoder_prompt": "x", "decoder_prompt": {"prompt": "y", "encoder_prompt": "z"}}})",
       "decoder_prompt"},
      {R"({"prompt": {"encoder_prompt": "x", "decoder_prompt": 5}})", "decoder_prompt"},
      {R"({"prompt": {"encoder_prompt": "x", "decoder_prompt": []}})", "decoder_prompt"},
      {R"({"prompt": {"encoder_prompt": "x", "prompt": "y"}})", "prompt"},
      {R"({"prompt": "x", "decoder_prompt": true})", "decoder_prompt"},
      {R"({"prompt": "x", "decoder_prompt": {}})", "decoder_prompt"},
      {R"({"prompt": {"encoder_prompt": "x", "decoder_prompt": "y"}, "decoder_prompt": "z"})", "decoder_prompt"},
      {R"({"prompt": {"prompt": "x", "multi_modal_data": {"audio": "a"}}, "decoder_prompt": "z"})", "decoder_prompt"},
      {R"({"prompt": {"multi_modal_data": {}}})", "multi_modal_data"},
      {R"({"prompt": {"multi_modal_data": "a.wav"}})", "multi_modal_data"},
      {R"({"prompt": {"encoder_prompt": "x", "decoder_prompt": {"multi_modal_data": {"audio": "a"}}}})",
       "multi_modal_data"},
      {R"({"prompt_token_ids": [1]})", "prompt_token_ids"},
      {R"({"prompt": "x", "encoder_prompt": "y"})", "encoder_prompt"},
  };
  for (const Case& c : cases) {
    const auto request = parse(c.line);
    ASSERT_FALSE(request.ok()) << c.line;
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument) << c.line;
    EXPECT_EQ(error_param(request.status()), c.param) << c.line << ": " << request.status();
  }
}

TEST(ParseRequest, UnknownFieldsAreWarnings) {
  const auto request = parse(R"({"prompt": {"prompt": "x", "promt": 1}, "temprature": 1, "zzzzzzzz": {}})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->warnings, ElementsAre("unknown field \"temprature\" is ignored; did you mean \"temperature\"?",
                                             "unknown field \"zzzzzzzz\" is ignored",
                                             "unknown field \"promt\" in prompt is ignored; did you mean \"prompt\"?"));
  EXPECT_THAT(parse("{\"prompt\": \"x\", \"a\\n\\u001bb\": 1}")->warnings,
              ElementsAre("unknown field \"a\\n\\x1bb\" is ignored"))
      << "a log's line stays one";
  Json many = Json::object();
  many.set("prompt", "x");
  for (int i = 0; i < 1000; ++i) many.set(str_cat("field", i), i);
  EXPECT_LE(parse_request(many, 1)->warnings.size(), 20u);
  EXPECT_THAT(parse(R"({"id": 1, "prompt": "x", "stream": false})")->warnings, IsEmpty());
}

TEST(ParseRequest, ReadsTheOtherFields) {
  const auto request = parse(R"({"prompt": "x", "source_lang": "de", "target_lang": "fr", "add_special_tokens": false,
      "truncate_prompt_tokens": 9.0, "bad_words": ["a", "b"], "stop": "s", "logit_bias": {"3": 0.5},
      "early_stopping": "never", "seed": -4, "forced_eos_token_id": 2})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->prompt_options.source_lang, "de");
  EXPECT_EQ(request->prompt_options.target_lang, "fr");
  EXPECT_EQ(request->prompt_options.add_special_tokens, false);
  EXPECT_EQ(request->prompt_options.truncate_prompt_tokens, 9);
  EXPECT_THAT(*request->prompt_options.bad_words, ElementsAre("a", "b"));
  EXPECT_THAT(*request->sampling.stop, ElementsAre("s"));
  EXPECT_EQ(request->sampling.logit_bias->at(3), 0.5f);
  EXPECT_EQ(request->sampling.early_stopping, SamplingParams::EarlyStopping::kNever);
  EXPECT_EQ(request->sampling.seed, -4);
  EXPECT_THAT(*request->sampling.forced_eos_token_ids, ElementsAre(2));
}

// JSON knows no NaN and no infinity: the parser's error names the field that it stands in.
TEST(ParseRequest, NotANumberNamesItsField) {
  for (const char* text :
       {R"({"prompt": "x", "temperature": NaN})", R"({"prompt": "x", "temperature": Infinity})",
        R"({"prompt": "x", "temperature": -Infinity})", R"({"prompt": "x", "temperature": 1e999})"}) {
    const auto request = parse(text);
    ASSERT_FALSE(request.ok()) << text;
    EXPECT_EQ(error_param(request.status()), "temperature") << text << request.status();
  }
}

TEST(ParseRequest, WrongValuesComeBeforeWhatIsUnsupported) {
  const auto request = parse(R"({"stream": true, "prompt": "x", "max_tokens": 0})");
  EXPECT_EQ(error_param(request.status()), "max_tokens");
}

TEST(CheckTokenIds, NamesThePartThatIsOutside) {
  const auto check = [](std::string_view line, int64_t vocab) { return check_token_ids(parse(line)->prompt, vocab); };
  EXPECT_TRUE(check(R"({"prompt": [0, 559]})", 560).ok());
  const Status outside = check(R"({"prompt": {"prompt_token_ids": [0, 560]}})", 560);
  EXPECT_EQ(error_param(outside), "prompt_token_ids");
  EXPECT_THAT(error_message(outside), HasSubstr("token id 560 is outside the vocabulary of 560"));
  EXPECT_EQ(error_param(check(R"({"prompt": [560]})", 560)), "prompt");
  EXPECT_EQ(error_param(check(R"({"prompt": {"encoder_prompt": [560]}})", 560)), "encoder_prompt");
  EXPECT_EQ(error_param(check(R"({"prompt": "x", "decoder_prompt": [560]})", 560)), "decoder_prompt");
  EXPECT_TRUE(check(R"({"prompt": [560]})", 0).ok());
}

}  // namespace
}  // namespace transept
