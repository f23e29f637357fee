// The document is held to the field table and to the routes: what a build takes is in it, with the limits of its flags.
#include "server/openapi.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "request/field_table.h"
#include "server/openapi_fields.h"
#include "server/realtime_session_testing.h"
#include "server/routes.h"
#include "server/server_testing.h"

namespace transept {
namespace {

using testing::ServerHouse;
namespace at = field_routes;

const Json& member(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  EXPECT_NE(found, nullptr) << key << " is missing in " << object.dump().substr(0, 300);
  static const Json none = Json::object();
  return found == nullptr ? none : *found;
}

const Json& schema_of(const Json& document, std::string_view name) {
  return member(member(member(document, "components"), "schemas"), name);
}

// The schemas that a document refers to, and that must be there.
void collect_refs(const Json& value, std::set<std::string>& refs) {
  if (value.is_array()) {
    for (const Json& item : value.as_array()) collect_refs(item, refs);
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.as_object()) {
      key == "$ref" ? (void)refs.insert(item.as_string()) : collect_refs(item, refs);
    }
  }
}

struct Body {
  std::string_view path, schema;
  FieldRoutes route;
  bool is_form = false;
};
constexpr Body kBodies[] = {
    {"/v1/completions", "CompletionRequest", at::kCompletions},
    {"/v1/chat/completions", "ChatCompletionRequest", at::kChat},
    {"/v1/score", "ScoreRequest", at::kScore},
    {"/v1/translate", "TranslationRequest", at::kTranslate},
    {"/tokenize", "TokenizationRequest", at::kTokenize},
    {"/detokenize", "DetokenizationRequest", at::kDetokenize},
    {"/v1/audio/transcriptions", "TranscriptionRequest", at::kTranscriptions, true},
    {"/v1/audio/translations", "AudioTranslationRequest", at::kAudioTranslations, true},
};

class OpenApiTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ServerOptions options = testing::default_server_options();
    options.limits.max_outputs = 3;
    options.limits.max_stop_strings = 2;
    options.limits.max_bad_words = 5;
    house_ = std::make_unique<ServerHouse>(options, testing::speech_model());
    static const SteadyClock clock;
    hub_ = std::make_unique<RealtimeHub>(std::make_unique<testing::FakeSpeech>(), RealtimeHub::Options(),
                                         house_->metrics(), clock);
    house_->set_realtime(hub_.get());
    document_ = std::make_unique<Json>(openapi_document(house_->context()));
  }
  static void TearDownTestSuite() {
    document_.reset();
    hub_.reset();
    house_.reset();
  }

  static const Json& document() { return *document_; }
  static const RequestLimits& limits() { return house_->options().limits; }

 private:
  static inline std::unique_ptr<ServerHouse> house_;
  static inline std::unique_ptr<RealtimeHub> hub_;
  static inline std::unique_ptr<Json> document_;
};

TEST_F(OpenApiTest, EveryRowOfTheTableIsAPropertyOfItsRoutesAndNothingElseIs) {
  for (const Body& body : kBodies) {
    std::set<std::string> wanted, required;
    for (const FieldSpec* field : fields_of(body.route)) {
      const bool is_list = field->kind == FieldKind::kWords || field->kind == FieldKind::kStrings;
      const std::string name = str_cat(field->name, body.is_form && is_list ? "[]" : "");
      wanted.insert(name);
      if (field->is_required) required.insert(name);
    }
    ASSERT_GT(wanted.size(), 3u) << body.path;
    const Json& schema = schema_of(document(), body.schema);
    std::set<std::string> found, found_required;
    for (const auto& [name, value] : member(schema, "properties").as_object()) found.insert(name);
    for (const Json& name : member(schema, "required").as_array()) found_required.insert(name.as_string());
    EXPECT_EQ(found, wanted) << body.path;
    EXPECT_EQ(found_required, required) << body.path;
  }
}

TEST_F(OpenApiTest, ARowsDocIsItsDescriptionAndARefusalSaysWhy) {
  size_t num_refused = 0;
  for (const Body& body : kBodies) {
    const Json& properties = member(schema_of(document(), body.schema), "properties");
    for (const FieldSpec* field : fields_of(body.route)) {
      const Json* listed = properties.find(str_cat(field->name, "[]"));
      const Json& property = listed != nullptr ? *listed : member(properties, field->name);
      if (field->refusal.empty()) {
        EXPECT_EQ(member(property, "description").as_string(), field->doc) << field->name;
        EXPECT_EQ(property.find("x-transept-refused"), nullptr) << field->name;
      } else {
        ++num_refused;
        EXPECT_EQ(member(property, "description").as_string(), str_cat("not supported: ", field->refusal));
        EXPECT_EQ(member(property, "x-transept-refused").as_string(), field->refusal);
      }
    }
  }
  EXPECT_GT(num_refused, 10u);
}

// Each bound of each row stands in the schema's text, as the flags made it.
TEST_F(OpenApiTest, BoundsAreThoseOfTheRowsWithTheLimitsOfTheFlags) {
  for (const Body& body : kBodies) {
    if (body.is_form) continue;
    const Json& properties = member(schema_of(document(), body.schema), "properties");
    for (const FieldSpec* row : fields_of(body.route)) {
      const FieldSpec field = with_limits(*row, limits());
      const Json& property = member(properties, field.name);
      if (field.kind == FieldKind::kInt || field.kind == FieldKind::kNumber) {
        const char* minimum = field.min_excluded ? "exclusiveMinimum" : "minimum";
        EXPECT_EQ(member(property, minimum).as_double(), field.min) << field.name;
        EXPECT_EQ(member(property, "maximum").as_double(), field.max) << field.name;
        EXPECT_EQ(member(property, "maximum").is_int(), field.kind == FieldKind::kInt) << field.name;
      } else if (field.max_items > 0) {
        const std::string bound = field.kind == FieldKind::kLogitBias ? "maxProperties"
                                  : field.kind == FieldKind::kString  ? "maxLength"
                                                                      : "maxItems";
        const std::string wanted = str_cat('"', bound, "\": ", field.max_items);
        EXPECT_NE(property.dump().find(wanted), std::string::npos) << field.name << ": " << property.dump();
      }
      for (const std::string_view word : field.words) {
        EXPECT_NE(property.dump().find(str_cat('"', word, '"')), std::string::npos) << field.name;
      }
    }
  }
  const Json& completion = member(schema_of(document(), "CompletionRequest"), "properties");
  EXPECT_EQ(member(member(completion, "n"), "maximum").as_int(), 3) << "--max-outputs, not the table's 16";
  EXPECT_EQ(member(member(completion, "top_p"), "exclusiveMinimum").as_double(), 0);
  EXPECT_EQ(member(member(completion, "seed"), "maximum").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(member(member(completion, "seed"), "minimum").as_int(), std::numeric_limits<int64_t>::min());
}

TEST_F(OpenApiTest, NullIsTakenByWhatMayBeAbsentAndByNothingElse) {
  for (const Body& body : kBodies) {
    const Json& properties = member(schema_of(document(), body.schema), "properties");
    for (const FieldSpec* field : fields_of(body.route)) {
      if (body.is_form || field->kind == FieldKind::kIgnored) continue;
      const std::string text = member(properties, field->name).dump();
      const bool takes_null = text.find("\"null\"") != std::string::npos || text.find("[null, ") != std::string::npos ||
                              text.find(", null]") != std::string::npos;
      EXPECT_EQ(takes_null, !field->is_required) << field->name << ": " << text;
    }
  }
}

TEST(FieldSchema, AKindIsASchema) {
  constexpr std::string_view kWords[] = {"a", "b"};
  const auto schema = [](FieldSpec field) {
    field.name = "x";
    field.doc = "doc";
    field.max_items = 7;
    return field_schema(field).dump();
  };
  const std::string doc = R"(, "description": "doc"})";
  EXPECT_EQ(schema({.kind = FieldKind::kBool}), R"({"type": ["boolean", "null"])" + doc);
  EXPECT_EQ(schema({.kind = FieldKind::kBool, .is_required = true}), R"({"type": "boolean")" + doc);
  EXPECT_EQ(schema({.kind = FieldKind::kString}),
            R"({"type": ["string", "null"], "minLength": 1, "maxLength": 7)" + doc);
  EXPECT_EQ(schema({.kind = FieldKind::kInt, .min = 1, .max = 9}),
            R"({"type": ["integer", "null"], "minimum": 1, "maximum": 9)" + doc);
  EXPECT_EQ(schema({.kind = FieldKind::kWord, .words = kWords}),
            R"({"type": ["string", "null"], "enum": ["a", "b", null])" + doc);
  EXPECT_EQ(schema({.kind = FieldKind::kEarlyStopping}), R"({"enum": [true, false, "never", null])" + doc);
  EXPECT_EQ(schema({.kind = FieldKind::kTexts, .is_required = true}),
            R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1, )"
            R"("maxItems": 7}])" +
                doc);
  EXPECT_EQ(schema({.kind = FieldKind::kTokenIds}),
            R"({"type": ["array", "null"], "items": {"type": "integer", "minimum": 0, "maximum": 2147483647}, )"
            R"("maxItems": 7)" +
                doc);
}

TEST_F(OpenApiTest, AFormsFileIsBinaryAndItsListsHaveBrackets) {
  const Json& form = member(schema_of(document(), "TranscriptionRequest"), "properties");
  EXPECT_EQ(member(member(form, "file"), "format").as_string(), "binary");
  const Json& granularities = member(form, "timestamp_granularities[]");
  EXPECT_EQ(member(granularities, "type").as_string(), "array");
  EXPECT_EQ(member(member(granularities, "items"), "enum").dump(), R"(["word", "segment"])");
  const Json& content =
      member(member(member(member(member(document(), "paths"), "/v1/audio/transcriptions"), "post"), "requestBody"),
             "content");
  EXPECT_NE(content.find("multipart/form-data"), nullptr) << content.dump();
}

TEST_F(OpenApiTest, EveryRouteOfTheServerIsAPathByItsMethod) {
  const Json& paths = member(document(), "paths");
  std::set<std::string> known;
  for (const Route& route : routes()) {
    if (!is_served(route, std::nullopt)) continue;
    const Json& operation = member(member(paths, route.pattern), ascii_lower(route.method));
    const char* status = route.kind == RouteKind::kSocket ? "101" : "200";
    EXPECT_NE(member(operation, "responses").find(status), nullptr) << route.pattern;
    known.insert(std::string(route.pattern));
  }
  for (const auto& [path, methods] : paths.as_object()) EXPECT_TRUE(known.contains(path)) << path << " is no route";
}

// A reference that leads nowhere would break every tool that reads the document.
void expect_references_lead_somewhere(const Json& document) {
  std::set<std::string> refs;
  collect_refs(document, refs);
  EXPECT_GT(refs.size(), 20u);
  for (const std::string& ref : refs) {
    ASSERT_TRUE(ref.starts_with("#/")) << ref;
    const Json* at = &document;
    for (const std::string_view part : split(std::string_view(ref).substr(2), '/')) {
      at = at == nullptr ? nullptr : at->find(part);
    }
    EXPECT_NE(at, nullptr) << ref;
  }
}

TEST_F(OpenApiTest, EveryReferenceHasItsDefinition) { expect_references_lead_somewhere(document()); }

TEST_F(OpenApiTest, WhatAReplyMayHoldIsNamed) {
  const auto expect_members = [](const Json& schema, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) EXPECT_NE(member(schema, "properties").find(name), nullptr) << name;
  };
  for (const char* choice : {"CompletionChoice", "CompletionChunkChoice"}) {
    expect_members(schema_of(document(), choice), {"text", "logprobs", "stop_reason", "alignments", "prompt_logprobs"});
  }
  const Json& scores = member(member(schema_of(document(), "Score"), "properties"), "data");
  expect_members(member(scores, "items"), {"score", "prompt_token_ids", "prompt_logprobs", "prompt_alignments"});
  expect_members(member(member(schema_of(document(), "Model"), "properties"), "transept"),
                 {"modalities", "has_structured_answers", "has_word_timestamps", "can_translate_speech",
                  "max_encoder_len", "max_decoder_len"});
  const Json& audio = member(member(member(document(), "paths"), "/v1/audio/transcriptions"), "post");
  const Json& contents = member(member(member(audio, "responses"), "200"), "content");
  for (const char* type : {"application/json", "text/plain", "text/vtt", "application/x-subrip", "text/event-stream"}) {
    EXPECT_NE(contents.find(type), nullptr) << type;
  }
}

TEST_F(OpenApiTest, AChunkMayHaveNoReasonYetAndAnAnswerHasOne) {
  const auto reason = [&](std::string_view choice) {
    return member(member(schema_of(document(), choice), "properties"), "finish_reason").dump();
  };
  EXPECT_EQ(reason("CompletionChoice"), R"({"type": "string", "enum": ["stop", "length"]})");
  EXPECT_EQ(reason("CompletionChunkChoice"), R"({"type": ["string", "null"], "enum": ["stop", "length", null]})");
}

TEST_F(OpenApiTest, RoutesThatStreamSayWhatTheirEventsAre) {
  const auto contents = [&](std::string_view path) -> const Json& {
    const Json& post = member(member(member(document(), "paths"), path), "post");
    return member(member(member(post, "responses"), "200"), "content");
  };
  EXPECT_EQ(member(member(contents("/v1/completions"), "text/event-stream"), "schema").dump(),
            R"({"$ref": "#/components/schemas/CompletionChunk"})");
  EXPECT_EQ(contents("/tokenize").find("text/event-stream"), nullptr);
}

TEST_F(OpenApiTest, ErrorsHaveAllFourKeysAndTheStatusesOfApiMd) {
  const Json& error = member(member(schema_of(document(), "Error"), "properties"), "error");
  EXPECT_EQ(member(error, "required").dump(), R"(["message", "type", "param", "code"])");
  const Json& responses = member(member(member(member(document(), "paths"), "/v1/completions"), "post"), "responses");
  for (const char* status : {"400", "404", "413", "415", "429", "500", "503", "504"}) {
    EXPECT_NE(responses.find(status), nullptr) << status;
  }
  EXPECT_EQ(responses.find("401"), nullptr) << "no key is asked for";
  EXPECT_EQ(document().find("security"), nullptr);
}

TEST(OpenApi, KeysAreAsked) {
  ServerOptions options = testing::default_server_options();
  options.api_keys = {"secret-of-the-test"};
  const ServerHouse house(options);
  const Json document = openapi_document(house.context());
  EXPECT_EQ(member(document, "security").dump(), R"([{"bearer": []}])");
  const Json& schemes = member(member(document, "components"), "securitySchemes");
  EXPECT_EQ(member(schemes, "bearer").dump(), R"({"type": "http", "scheme": "bearer"})");
  const Json& paths = member(document, "paths");
  EXPECT_NE(member(member(member(paths, "/v1/score"), "post"), "responses").find("401"), nullptr);
  EXPECT_EQ(member(member(member(paths, "/health/live"), "get"), "security").dump(), "[]");
  EXPECT_EQ(document.dump().find("secret-of-the-test"), std::string::npos);
}

TEST(OpenApi, ATextModelHasNoAudioRoutes) {
  const ServerHouse house;
  ASSERT_EQ(house.context().speech, nullptr);
  const Json document = openapi_document(house.context());
  for (const auto& [path, methods] : member(document, "paths").as_object()) {
    EXPECT_FALSE(path.starts_with("/v1/audio/")) << path;
  }
  EXPECT_NE(member(document, "paths").find("/v1/completions"), nullptr);
  expect_references_lead_somewhere(document);
}

}  // namespace
}  // namespace transept
