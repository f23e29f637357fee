// Generated from the table: every field refuses every wrong type and out-of-range value by its exact name, takes its
// bounds, and takes null as absent.
#include "request/field_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace transept {
namespace {

using ::testing::HasSubstr;

// The request {"prompt": "x", NAME: VALUE}.
StatusOr<ParsedRequest> parse_with(std::string_view name, Json value) {
  Json line = Json::object();
  line.set("prompt", "x");
  line.set(name, std::move(value));
  return parse_request(line, 1);
}

Json json(std::string_view text) {
  const auto value = Json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Json();
}

Json list_of(size_t count, const Json& item) { return Json(Json::Array(count, item)); }

// One value of every JSON kind.
std::vector<Json> all_kinds() {
  return {Json(true),          Json(7),       Json(0.5),           Json("text"),         Json("7"),
          json("[]"),          json("[1.5]"), json("[[]]"),        json("[null]"),       json("[true]"),
          json(R"(["7", 7])"), json("{}"),    json(R"({"a": 1})"), json(R"({"7": "1"})")};
}

bool is_whole(const Json& value) { return value.is_int(); }

// Whether a value of all_kinds() has the right type for the kind (ranges aside: 7 and 0.5 lie in every range but some).
bool is_right_type(const FieldSpec& field, const Json& value) {
  switch (field.kind) {
    case FieldKind::kId: return value.is_number() || value.is_string();
    case FieldKind::kPrompt: return value.is_string();
    case FieldKind::kInt:
    case FieldKind::kTokenId: return is_whole(value);
    case FieldKind::kNumber: return value.is_number();
    case FieldKind::kBool: return value.is_bool();
    case FieldKind::kString: return value.is_string();
    case FieldKind::kStrings: return value.is_string() || (value.is_array() && value.as_array().empty());
    case FieldKind::kTokenIds:
    case FieldKind::kTokenIdLists: return value.is_array() && value.as_array().empty();
    case FieldKind::kTokenIdOrList: return is_whole(value) || (value.is_array() && value.as_array().empty());
    case FieldKind::kLogitBias: return value.is_object() && value.as_object().empty();
    case FieldKind::kEarlyStopping: return value.is_bool();
    default: return true;  // of bodies alone: parse_body_test.cc
  }
}

// Values of the right type that are out of range.
std::vector<Json> out_of_range(const FieldSpec& field) {
  const double max_int = std::numeric_limits<int32_t>::max();
  switch (field.kind) {
    case FieldKind::kInt:
      if (field.name == "seed") return {Json(1e19), Json(-1e19), Json(1.5)};
      return {Json(static_cast<int64_t>(field.min) - 1),
              Json(static_cast<int64_t>(field.max) + 1),
              Json(1e18),
              Json(1e300),
              Json(field.min + 0.5),
              Json(std::numeric_limits<int64_t>::min())};
    case FieldKind::kNumber: {
      std::vector<Json> values = {Json(field.min - 0.001), Json(field.max * 1.001 + 0.001), Json(1e300), Json(-1e300)};
      if (field.min_excluded) values.insert(values.end(), {Json(field.min), Json(1e-60)});  // 0 as a float
      return values;
    }
    case FieldKind::kString: return {Json("")};
    case FieldKind::kStrings:
      return {Json(""), json(R"(["a", ""])"), list_of(field.max_items + 1, Json("a")),
              Json(std::string(kMaxStringBytes + 1, 'a'))};
    case FieldKind::kTokenId: return {Json(-1), Json(max_int + 1), Json(0.5)};
    case FieldKind::kTokenIdOrList: return {Json(-1), json("[1, -1]"), list_of(field.max_items + 1, Json(1))};
    case FieldKind::kTokenIds: return {json("[-1]"), json("[2147483648]"), list_of(field.max_items + 1, Json(1))};
    case FieldKind::kTokenIdLists:
      return {json("[[1], []]"), json("[[-1]]"), json("[1]"), list_of(field.max_items + 1, json("[1]")),
              Json(Json::Array{list_of(kMaxBadWordTokens + 1, Json(1))})};
    case FieldKind::kLogitBias: {
      Json many = Json::object();
      for (size_t i = 0; i <= field.max_items; ++i) many.set(str_cat(i), 1);
      return {json(R"({"abc": 1})"),         json(R"({"": 1})"),    json(R"({"-1": 1})"),
              json(R"({"01": 1})"),          json(R"({"1.0": 1})"), json(R"({" 1": 1})"),
              json(R"({"1": null})"),        json(R"({"1": 101})"), json(R"({"1": -1e9})"),
              json(R"({"99999999999": 1})"), std::move(many)};
    }
    case FieldKind::kEarlyStopping: return {Json("maybe"), Json("")};
    default: return {};
  }
}

// Values that must be taken: both bounds, and whole numbers as 3.0.
std::vector<Json> in_range(const FieldSpec& field) {
  switch (field.kind) {
    case FieldKind::kId: return {Json("a"), Json(""), Json(5), Json(1.5)};
    case FieldKind::kPrompt: return {Json("a"), Json(""), json("[1]")};
    case FieldKind::kInt:
      if (field.name == "seed") return {Json(std::numeric_limits<int64_t>::min()), Json(3.0), Json(-3)};
      return {Json(static_cast<int64_t>(field.min)), Json(static_cast<int64_t>(field.max)), Json(1.0)};
    case FieldKind::kNumber: return {Json(field.max), Json(field.min_excluded ? 1e-6 : field.min), Json(1)};
    case FieldKind::kBool: return {Json(false)};
    case FieldKind::kString: return {Json("a")};
    case FieldKind::kStrings:
      return {Json("a"), json("[]"), list_of(field.max_items, Json("a")), Json(std::string(kMaxStringBytes, 'a'))};
    case FieldKind::kTokenId: return {Json(0), Json(3.0), Json(std::numeric_limits<int32_t>::max())};
    case FieldKind::kTokenIdOrList: return {Json(0), json("[3.0]"), list_of(field.max_items, Json(1))};
    case FieldKind::kTokenIds: return {json("[]"), json("[0, 3.0]")};
    case FieldKind::kTokenIdLists: return {json("[]"), json("[[0], [1, 2.0]]")};
    case FieldKind::kLogitBias: return {json("{}"), json(R"({"0": -100, "17": 100, "5": 0.5})")};
    case FieldKind::kEarlyStopping: return {Json(true), Json(false), Json("never")};
    case FieldKind::kPrediction:
      return {json(R"({"type": "content", "content": "a"})"),
              json(R"({"type": "content", "content": [{"type": "text", "text": "a"}]})")};
    case FieldKind::kAny: return {Json(false), Json(field.min)};
    default: return {};  // of bodies alone: parse_body_test.cc
  }
}

TEST(FieldTable, RefusesEveryWrongTypeByName) {
  for (const FieldSpec& field : request_fields()) {
    if (field.kind == FieldKind::kAny) continue;
    for (const Json& value : all_kinds()) {
      if (is_right_type(field, value)) continue;
      const auto request = parse_with(field.name, value);
      ASSERT_FALSE(request.ok()) << field.name << ": " << value.dump();
      EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument) << field.name << ": " << value.dump();
      EXPECT_EQ(error_param(request.status()), field.name) << value.dump();
      EXPECT_THAT(error_message(request.status()), HasSubstr(std::string(field.name))) << value.dump();
    }
  }
}

TEST(FieldTable, RefusesEveryValueOutOfRangeByName) {
  for (const FieldSpec& field : request_fields()) {
    for (const Json& value : out_of_range(field)) {
      const auto request = parse_with(field.name, value);
      ASSERT_FALSE(request.ok()) << field.name << ": " << value.dump().substr(0, 100);
      EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(error_param(request.status()), field.name) << value.dump().substr(0, 100);
      EXPECT_LT(request.status().message().size(), 400u) << field.name;
    }
  }
}

TEST(FieldTable, SaysTheLimitAndTheValueOfEveryWholeNumberPastIt) {
  for (const FieldSpec& field : request_fields()) {
    if (field.kind != FieldKind::kInt) continue;
    const bool is_seed = field.name == "seed";
    const std::string max = is_seed ? "9223372036854775807" : str_cat(static_cast<int64_t>(field.max));
    const std::string min = is_seed ? "-9223372036854775808" : str_cat(static_cast<int64_t>(field.min));
    const std::string above = is_seed ? "9223372036854775808" : str_cat(static_cast<int64_t>(field.max) + 1);
    const std::string below = is_seed ? "-9223372036854775809" : str_cat(static_cast<int64_t>(field.min) - 1);
    for (const std::string& value : {above, below, std::string("123456789012345678901234567890")}) {
      const auto request = parse_with(field.name, json(value));
      ASSERT_FALSE(request.ok()) << field.name << ": " << value;
      EXPECT_EQ(error_message(request.status()),
                str_cat(field.name, " must be a whole number from ", min, " to ", max, ", not ", value));
    }
  }
  for (const char* name :
       {"stop_token_ids", "suppress_tokens", "begin_suppress_tokens", "allowed_token_ids", "forced_eos_token_id"}) {
    EXPECT_EQ(error_message(parse_with(name, json("[2147483648]")).status()),
              str_cat(name, ": 2147483648 is not a token id (a whole number from 0 to 2147483647)"));
  }
  for (const char* name : {"forced_bos_token_id", "forced_eos_token_id"}) {
    EXPECT_EQ(error_message(parse_with(name, json("2147483648")).status()),
              str_cat(name, ": 2147483648 is not a token id (a whole number from 0 to 2147483647)"));
  }
  EXPECT_THAT(error_message(parse_with("bad_words_ids", json("[[99999999999999999999]]")).status()),
              HasSubstr("99999999999999999999 is not a token id (a whole number from 0 to 2147483647)"));
  EXPECT_THAT(error_message(parse_with("prompt", json("[2147483648]")).status()),
              HasSubstr("2147483648 is not a token id (a whole number from 0 to 2147483647)"));
  EXPECT_THAT(error_message(parse_with("n", json("1" + std::string(200, '0'))).status()),
              HasSubstr("not a number of 201 digits"));
  const std::string shown = "1" + std::string(59, '0');  // as many bytes as a message quotes
  EXPECT_THAT(error_message(parse_with("n", json(shown)).status()), HasSubstr("not " + shown));
}

TEST(FieldTable, TakesBoundsAndNull) {
  for (const FieldSpec& field : request_fields()) {
    for (const Json& value : in_range(field)) {
      const auto request = parse_with(field.name, value);
      EXPECT_TRUE(request.ok()) << field.name << ": " << value.dump().substr(0, 100) << ": " << request.status();
      if (request.ok()) {
        EXPECT_TRUE(request->warnings.empty()) << field.name;
      }
    }
    if (field.name != "prompt") {
      EXPECT_TRUE(parse_with(field.name, nullptr).ok()) << field.name;
    }
  }
}

TEST(FieldTable, PutsValuesWhereTheyBelong) {
  for (const FieldSpec& field : request_fields()) {
    const auto values = in_range(field);
    auto given = parse_with(field.name, values.front());
    auto absent = parse_with("id", 1);
    ASSERT_TRUE(given.ok() && absent.ok()) << field.name;
    const auto is_set = [](const FieldSlot& slot) {
      return std::visit(
          [](auto place) {
            if constexpr (std::is_same_v<decltype(place), std::monostate>) {
              return false;
            } else {
              return place->has_value();
            }
          },
          slot);
    };
    const bool has_slot = !std::holds_alternative<std::monostate>(field.slot(*given));
    EXPECT_EQ(is_set(field.slot(*given)), has_slot) << field.name;
    EXPECT_FALSE(is_set(field.slot(*absent))) << field.name;
  }
}

TEST(FieldTable, RefusesByNameWhatIsNotSupported) {
  int count = 0;
  for (const FieldSpec& field : request_fields()) {
    if (field.refusal.empty()) continue;
    ++count;
    const auto request = parse_with(field.name, field.kind == FieldKind::kBool ? Json(true) : Json("x"));
    ASSERT_FALSE(request.ok()) << field.name;
    EXPECT_EQ(request.status().code(), absl::StatusCode::kUnimplemented) << field.name;
    EXPECT_EQ(error_param(request.status()), field.name);
  }
  EXPECT_GT(count, 4);
}

TEST(FieldTable, RowsAreDocumentedAndUnique) {
  std::set<std::string_view> names;
  for (const FieldSpec& field : request_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(field.doc.ends_with('.')) << field.name;
    EXPECT_FALSE(describe(field).empty()) << field.name;
    EXPECT_EQ(find_field(field.name), &field);
  }
  EXPECT_EQ(find_field("no_such_field"), nullptr);
  // The sampling fields of docs/api.md, and the limits of docs/server.md.
  for (const char* name : {"max_tokens",
                           "min_tokens",
                           "n",
                           "best_of",
                           "temperature",
                           "top_p",
                           "top_k",
                           "min_p",
                           "seed",
                           "stop",
                           "stop_token_ids",
                           "ignore_eos",
                           "logprobs",
                           "prompt_logprobs",
                           "return_alignments",
                           "presence_penalty",
                           "frequency_penalty",
                           "repetition_penalty",
                           "no_repeat_ngram_size",
                           "encoder_no_repeat_ngram_size",
                           "logit_bias",
                           "bad_words",
                           "skip_special_tokens",
                           "include_stop_str_in_output",
                           "use_beam_search",
                           "num_beams",
                           "length_penalty",
                           "early_stopping",
                           "num_return_sequences",
                           "forced_bos_token_id",
                           "forced_eos_token_id",
                           "suppress_tokens",
                           "begin_suppress_tokens",
                           "allowed_token_ids",
                           "bad_words_ids",
                           "decoder_prompt",
                           "truncate_prompt_tokens",
                           "add_special_tokens",
                           "source_lang",
                           "target_lang",
                           "stream",
                           "language",
                           "task",
                           "timestamps"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(describe(*find_field("n")), "a whole number from 1 to 16");
  EXPECT_EQ(describe(*find_field("num_beams")), "a whole number from 1 to 64");
  EXPECT_EQ(describe(*find_field("logprobs")), "a whole number from 0 to 20");
  EXPECT_EQ(describe(*find_field("max_tokens")), "a whole number from 1 on");
  EXPECT_EQ(describe(*find_field("seed")), "a whole number");
  EXPECT_EQ(describe(*find_field("top_p")), "a number above 0 and up to 1");
  EXPECT_EQ(describe(*find_field("stop")), "a string or a list of at most 4 strings, none of them empty");
  EXPECT_EQ(find_field("bad_words")->max_items, 128u);
}

}  // namespace
}  // namespace transept
