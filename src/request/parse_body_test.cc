// HTTP bodies: the rows that only they have, required fields, lists of prompts, forms, and limits that a flag moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/quoted.h"
#include "request/field_table.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace at = field_routes;

constexpr FieldRoutes kRoutes[] = {at::kCompletions,       at::kScore,    at::kTranslate,  at::kTranscriptions,
                                   at::kAudioTranslations, at::kTokenize, at::kDetokenize, at::kChat};

Json json(std::string_view text) {
  const auto value = Json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Json();
}

// A body with everything that the route requires.
Json whole_body(FieldRoutes route) {
  Json body = Json::object();
  if (route == at::kDetokenize) {
    body.set("tokens", json("[1]"));
  } else if (route == at::kTranslate) {
    body.set("text", "x");
  } else if (route == at::kChat) {
    body.set("messages", json(R"([{"role": "user", "content": "x"}])"));
  } else if ((route & at::kAudio) == 0) {
    body.set("prompt", "x");
  }
  return body;
}

StatusOr<ParsedRequest> parse_with(FieldRoutes route, std::string_view name, Json value) {
  Json body = whole_body(route);
  body.set(name, std::move(value));
  return parse_body(body, route, RequestLimits());
}

// What the kind never takes.
std::vector<Json> wrong_values(const FieldSpec& field) {
  switch (field.kind) {
    case FieldKind::kInt: return {Json("7"), Json(true), json("[]"), json("{}"), Json(field.max * 4 + 1), Json(1.5)};
    case FieldKind::kNumber: return {Json("7"), Json(true), json("[]"), json("{}"), Json(field.max * 4 + 1)};
    case FieldKind::kBool: return {Json("true"), Json(1), json("[]"), json("{}")};
    case FieldKind::kString: return {Json(1), Json(true), json("[]"), json("{}"), Json("")};
    case FieldKind::kText: return {Json(1), Json(true), json("[]"), json("{}")};
    case FieldKind::kTexts: return {Json(1), Json(true), json("[]"), json("{}"), json("[1]"), json(R"(["a", null])")};
    case FieldKind::kWord: return {Json(1), Json(true), json("[]"), json("{}"), Json(""), Json("no such word")};
    case FieldKind::kWords: return {Json(1), json("{}"), Json("x"), json(R"(["x"])"), json("[1]"), json("[[]]")};
    case FieldKind::kStrings: return {Json(1), Json(true), json("{}"), json("[1]"), json(R"([""])")};
    case FieldKind::kTokenIds: return {Json(1), Json("x"), json("{}"), json(R"(["a"])"), json("[-1]"), json("[0.5]")};
    case FieldKind::kStreamOptions: return {Json(1), Json("x"), json("[]"), Json(true)};
    case FieldKind::kPrediction: return {Json(1), Json("x"), json("[]"), Json(true)};
    default: return {};
  }
}

TEST(ParseBody, RefusesEveryWrongValueOfEveryFieldOfEveryRouteByName) {
  int count = 0;
  for (const FieldRoutes route : kRoutes) {
    for (const FieldSpec* field : fields_of(route)) {
      for (const Json& value : wrong_values(*field)) {
        const auto request = parse_with(route, field->name, value);
        ASSERT_FALSE(request.ok()) << field->name << ": " << value.dump();
        EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument) << field->name;
        EXPECT_EQ(error_param(request.status()), field->name) << value.dump();
        ++count;
      }
    }
  }
  EXPECT_GT(count, 500);
}

TEST(ParseBody, TakesNullAsAbsentAndMissesWhatIsRequired) {
  for (const FieldRoutes route : kRoutes) {
    ASSERT_TRUE(parse_body(whole_body(route), route, RequestLimits()).ok()) << route;
    for (const FieldSpec* field : fields_of(route)) {
      const auto request = parse_with(route, field->name, nullptr);
      const bool is_missed = field->is_required && field->kind != FieldKind::kFile;
      EXPECT_EQ(request.ok(), !is_missed) << field->name;
      if (!is_missed) continue;
      EXPECT_EQ(error_message(request.status()), str_cat(field->name, " is missing"));
      EXPECT_EQ(error_param(request.status()), field->name);
    }
  }
}

TEST(ParseBody, RowsAreDocumentedAndUniqueInEachRoute) {
  for (const FieldRoutes route : kRoutes) {
    std::vector<std::string_view> names;
    for (const FieldSpec* field : fields_of(route)) {
      EXPECT_THAT(names, ::testing::Not(::testing::Contains(field->name)));
      names.push_back(field->name);
      EXPECT_TRUE(field->doc.ends_with('.')) << field->name;
      EXPECT_FALSE(describe(*field).empty()) << field->name;
      EXPECT_EQ(find_field(field->name, route), field);
    }
  }
}

TEST(ParseBody, RefusesByNameWhatIsKnownAndNotSupported) {
  for (const auto& [route, name] : {std::pair{at::kCompletions, "suffix"},
                                    {at::kCompletions, "guided_json"},
                                    {at::kTranscriptions, "include"},
                                    {at::kTranslate, "decoder_prompt"}}) {
    const auto request = parse_with(route, name, "x");
    EXPECT_EQ(request.status().code(), absl::StatusCode::kUnimplemented) << name;
    EXPECT_EQ(error_param(request.status()), name);
  }
}

TEST(ParseBody, CountsUnknownFields) {
  const auto request = parse_body(json(R"({"prompt": "x", "temprature": 1, "foo": 2})"), at::kCompletions, {});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->num_unknown_fields, 2);
  EXPECT_THAT(request->warnings[0], HasSubstr("did you mean \"temperature\"?"));
}

TEST(ParseBody, ReadsWhatHttpAloneHas) {
  const auto request = parse_body(
      json(R"({"prompt": "x", "model": "m", "stream": true, "stream_options": {"include_usage": true}, "echo": true})"),
      at::kCompletions, {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->body.model, "m");
  EXPECT_EQ(request->stream, true);
  EXPECT_EQ(request->body.echo, true);
  EXPECT_EQ(request->body.include_usage, true);
  const auto wrong = parse_with(at::kCompletions, "stream_options", json(R"({"include_usage": 1})"));
  EXPECT_EQ(error_param(wrong.status()), "stream_options.include_usage");
}

// What begins as a list and is none is refused as the text that it is.
// OpenAI's prediction.
TEST(ParseBody, APredictionIsATextOrPartsOfOne) {
  const auto parsed = [](std::string_view prediction) {
    return parse_with(at::kCompletions, "prediction", json(prediction));
  };
  EXPECT_EQ(parsed(R"({"type": "content", "content": "as before"})")->prompt_options.prediction, "as before");
  EXPECT_EQ(parsed(R"({"type": "content", "content": ""})")->prompt_options.prediction, "");
  EXPECT_EQ(
      parsed(R"({"type": "content", "content": [{"type": "text", "text": "as "}, {"type": "text", "text": "before"}]})")
          ->prompt_options.prediction,
      "as before");
  EXPECT_FALSE(parsed("null")->prompt_options.prediction.has_value());
  const std::pair<const char*, const char*> wrong[] = {
      {R"("as before")", "prediction"},
      {"7", "prediction"},
      {R"({"content": "x"})", "prediction.type"},
      {R"({"type": "audio", "content": "x"})", "prediction.type"},
      {R"({"type": "content"})", "prediction.content"},
      {R"({"type": "content", "content": 7})", "prediction.content"},
      {R"({"type": "content", "content": ["x"]})", "prediction.content"},
      {R"({"type": "content", "content": [{"type": "input_audio", "input_audio": {}}]})", "prediction.content"},
      {R"({"type": "content", "content": [{"type": "text"}]})", "prediction.content"},
  };
  for (const auto& [value, param] : wrong) EXPECT_EQ(error_param(parsed(value).status()), param) << value;
}

TEST(ParseBody, DraftIdsAreBounded) {
  Json ids = Json::array();
  for (int i = 0; i < 65536; ++i) ids.push_back(3);
  EXPECT_EQ(parse_with(at::kCompletions, "draft_token_ids", ids)->sampling.draft_token_ids->size(), 65536u);
  for (int i = 0; i < 1'000'000; ++i) ids.push_back(3);
  EXPECT_EQ(error_param(parse_with(at::kCompletions, "draft_token_ids", ids).status()), "draft_token_ids");
  for (const char* value : {"7", R"("7")", "[-1]", R"(["a"])", "[2147483648]", "[1.5]", "[[1]]"}) {
    EXPECT_EQ(error_param(parse_with(at::kCompletions, "draft_token_ids", json(value)).status()), "draft_token_ids")
        << value;
  }
}

TEST(ParseBody, ListsOfFormsThatAreBroken) {
  for (const char* text : {"[", "[\"word\"", "[word]"}) {
    const Json body = form_to_json({{"timestamp_granularities", text}}, at::kAudio);
    EXPECT_EQ(error_param(parse_body(body, at::kAudio, {}).status()), "timestamp_granularities") << text;
  }
}

// As an object's members come in forms, and as JSON.
TEST(ParseBody, StreamOptionsOfForms) {
  const auto parse = [](std::string name, std::string text) {
    return parse_body(form_to_json({{std::move(name), std::move(text)}}, at::kAudio), at::kAudio, {});
  };
  EXPECT_EQ(parse("stream_options[include_progress]", "true")->body.include_progress, true);
  EXPECT_EQ(parse("stream_options[include_progress]", "0")->body.include_progress, false);
  EXPECT_EQ(parse("stream_options", R"({"include_progress": true})")->body.include_progress, true);
  EXPECT_EQ(parse("stream_options[include_usage]", "true")->body.include_progress, std::nullopt);
  EXPECT_EQ(error_param(parse("stream_options[include_progress]", "x").status()), "stream_options.include_progress");
  // What is no object stays a text, also where it is no JSON at all.
  for (const char* text : {"true", "7", "[]", "{", "every"}) {
    const Status refused = parse("stream_options", text).status();
    EXPECT_EQ(error_param(refused), "stream_options") << text;
    EXPECT_THAT(error_message(refused), HasSubstr(in_quotes(text)));
  }
}

// As JSON while that is short; what is longer is cut.
TEST(ParseBody, WrongTextsAreQuoted) {
  const std::string whole = "\"" + std::string(kMaxQuotedBytes - 1, 'a');
  const auto message = [](const std::string& text) {
    return error_message(parse_with(at::kCompletions, "max_tokens", Json(text)).status());
  };
  EXPECT_THAT(message(whole), HasSubstr(", not " + Json(whole).dump()));
  EXPECT_THAT(message(whole + "a"), HasSubstr(", not " + in_quotes(whole + "a")));
}

TEST(ParseBody, HoldsLimitsThatWereMoved) {
  RequestLimits limits;
  limits.max_outputs = 2;
  limits.max_stop_strings = 1;
  const auto parse = [&](std::string_view text) { return parse_body(json(text), at::kCompletions, limits); };
  EXPECT_TRUE(parse(R"({"prompt": "x", "n": 2, "stop": ["a"]})").ok());
  EXPECT_EQ(error_message(parse(R"({"prompt": "x", "n": 3})").status()), "n must be a whole number from 1 to 2, not 3");
  EXPECT_THAT(error_message(parse(R"({"prompt": "x", "stop": ["a", "b"]})").status()), HasSubstr("at most 1"));
  limits.max_outputs = 100;
  EXPECT_TRUE(parse(R"({"prompt": "x", "n": 100})").ok());
}

TEST(ReadPrompts, TellsAListOfPromptsFromAListOfIds) {
  std::vector<std::string> warnings;
  const auto count = [&](std::string_view text) -> size_t {
    const auto prompts = read_prompts(json(text), 4, warnings);
    EXPECT_TRUE(prompts.ok()) << text << prompts.status();
    return prompts.ok() ? prompts->size() : 0;
  };
  EXPECT_EQ(count(R"({"prompt": "a"})"), 1u);
  EXPECT_EQ(count(R"({"prompt": [1, 2, 3]})"), 1u);
  EXPECT_EQ(count(R"({"prompt": ["a", "b"]})"), 2u);
  EXPECT_EQ(count(R"({"prompt": [[1, 2], [3]]})"), 2u);
  EXPECT_EQ(count(R"({"prompt": [{"prompt": "a"}, "b", [7]]})"), 3u);
  EXPECT_EQ(count(R"({"prompt": ["a", "b", "c", "d"]})"), 4u) << "as many as are taken";
  const auto with_decoders = read_prompts(json(R"({"prompt": ["a", "b"], "decoder_prompt": ["c", [4]]})"), 4, warnings);
  ASSERT_TRUE(with_decoders.ok());
  EXPECT_EQ(std::get<TextPrompt>((*with_decoders)[0].decoder->content).text, "c");
  EXPECT_THAT(std::get<TokensPrompt>((*with_decoders)[1].decoder->content).token_ids, ElementsAre(4));
}

TEST(ReadPrompts, NamesThePlaceOfAnError) {
  std::vector<std::string> warnings;
  const auto error = [&](std::string_view text) { return read_prompts(json(text), 4, warnings).status(); };
  EXPECT_EQ(error_param(error(R"({"prompt": ["a", 7]})")), "prompt[1]");
  EXPECT_EQ(error_param(error(R"({"prompt": [{"prompt": "a"}, {}]})")), "prompt[1]");
  EXPECT_EQ(error_param(error(R"({"prompt": ["a", "b"], "decoder_prompt": ["c", true]})")), "decoder_prompt[1]");
  EXPECT_EQ(error_param(error(R"({"prompt": ["a", "b"], "decoder_prompt": ["c"]})")), "decoder_prompt");
  EXPECT_EQ(error_param(error(R"({"prompt": []})")), "prompt");
  EXPECT_EQ(error_param(error(R"({"prompt": [1, "a"]})")), "prompt");
  EXPECT_THAT(error_message(error(R"({"prompt": ["a", "b", "c", "d", "e"]})")), HasSubstr("at most 4"));
}

TEST(Form, BecomesTheJsonThatItsFieldsMean) {
  const Json body = form_to_json({{"model", "m"},
                                  {"language", ""},
                                  {"prompt", ""},
                                  {"temperature", "0.5"},
                                  {"stream", "true"},
                                  {"timestamp_granularities[]", "word"},
                                  {"timestamp_granularities[]", "segment"},
                                  {"chunking_strategy[type]", "server_vad"},
                                  {"chunking_strategy[threshold]", "0.5"},
                                  {"what", "1"}},
                                 at::kTranscriptions);
  EXPECT_EQ(body.dump(), R"({"model": "m", "prompt": "", "temperature": 0.5, "stream": true, )"
                         R"("timestamp_granularities": ["word", "segment"], )"
                         R"("chunking_strategy": {"type": "server_vad", "threshold": "0.5"}, "what": "1"})");
  const auto request = parse_body(body, at::kTranscriptions, {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->body.cuts_at_pauses);
  EXPECT_THAT(*request->body.timestamp_granularities, ElementsAre("word", "segment"));
  const auto wrong = parse_body(form_to_json({{"temperature", "hot"}}, at::kTranscriptions), at::kTranscriptions, {});
  EXPECT_EQ(error_param(wrong.status()), "temperature");
}

}  // namespace
}  // namespace transept
