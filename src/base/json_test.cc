// Json: what is parsed and refused, and that dump() reads back as the same value.
#include "base/json.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

Json parsed(std::string_view text) {
  StatusOr<Json> value = Json::parse(text);
  EXPECT_TRUE(value.ok()) << text << ": " << error_message(value.status());
  return value.ok() ? *std::move(value) : Json();
}

std::string refusal(std::string_view text) {
  const StatusOr<Json> value = Json::parse(text);
  EXPECT_FALSE(value.ok()) << text;
  return error_message(value.status());
}

TEST(JsonParse, EveryKind) {
  const Json value = parsed(R"({"a": [1, -2.5, "x\u00e9\n", true, false, null], "b": {}})");
  ASSERT_TRUE(value.is_object());
  const Json::Array& a = value.find("a")->as_array();
  EXPECT_EQ(a[0].as_int(), 1);
  EXPECT_EQ(a[1].as_double(), -2.5);
  EXPECT_EQ(a[2].as_string(), "x\xC3\xA9\n");
  EXPECT_TRUE(a[3].as_bool());
  EXPECT_FALSE(a[4].as_bool());
  EXPECT_TRUE(a[5].is_null());
  EXPECT_EQ(value.find("b")->kind_name(), "an object");
  EXPECT_EQ(value.find("c"), nullptr);
}

TEST(JsonParse, WholeNumbersStayExact) {
  EXPECT_EQ(parsed("9223372036854775807").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parsed("-9223372036854775808").as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_FALSE(parsed("9223372036854775808").is_int());
  EXPECT_TRUE(parsed("9223372036854775808").is_number());
  EXPECT_EQ(parsed("9223372036854775808").as_double(), 9223372036854775808.0);
  EXPECT_FALSE(parsed("3.0").is_int());
  EXPECT_EQ(parsed("3.0").as_double(), 3.0);
}

TEST(JsonParse, WholeNumbersPast64BitsKeepTheirDigits) {
  for (const char* text : {"9223372036854775808", "18446744073709551615", "18446744073709551616",
                           "-9223372036854775809", "123456789012345678901234567890"}) {
    Json value = parsed(text);
    EXPECT_TRUE(value.is_big_int()) << text;
    EXPECT_EQ(value.dump(), text);
    EXPECT_EQ(value.as_double(), std::stod(text));
    EXPECT_EQ(value.kind_name(), "a number");
    const Json copy = value, moved = std::move(value);
    EXPECT_EQ(copy.dump(), text);
    EXPECT_EQ(moved.dump(), text);
  }
  EXPECT_FALSE(parsed("1e30").is_big_int());
  EXPECT_FALSE(parsed("9223372036854775808.0").is_big_int());
  EXPECT_FALSE(parsed("-9223372036854775808").is_big_int());
  EXPECT_EQ(Json(std::numeric_limits<uint64_t>::max()).dump(), "18446744073709551615");
  refusal("1" + std::string(400, '0'));  // no double is near
}

TEST(JsonParse, KeysStayInOrderAndTheLastOfTwoHolds) {
  const Json value = parsed(R"({"z": 1, "a": 2, "z": 3})");
  ASSERT_EQ(value.as_object().size(), 2u);
  EXPECT_EQ(value.as_object()[0].first, "z");
  EXPECT_EQ(value.find("z")->as_int(), 3);
}

TEST(JsonParse, TheLastOfTwoHoldsInLargeObjectsToo) {
  std::string text = "{";
  for (int i = 0; i < 100; ++i) text += str_cat("\"k", i, "\": ", i, ", ");
  const Json value = parsed(text + "\"k3\": -3, \"k99\": -99}");
  ASSERT_EQ(value.as_object().size(), 100u);
  EXPECT_EQ(value.find("k3")->as_int(), -3);
  EXPECT_EQ(value.find("k98")->as_int(), 98);
  EXPECT_EQ(value.find("k99")->as_int(), -99);
}

TEST(JsonParse, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nul", "01", "1 2", "'a'", "\"a\nb\"", "[NaN]", "+1",
                           "\"\\x\"", "\"\\ud800\"", "\"\xFF\"", "// c\n1"}) {
    refusal(text);
  }
  using namespace std::string_view_literals;
  for (const std::string_view text : {"\0"sv, "{}\0"sv, "{}\0\0 more"sv, "[\0]"sv, "\"a\0b\""sv}) {
    const Status status = Json::parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(error_message(status), HasSubstr(str_cat("a zero byte at offset ", text.find('\0'))));
  }
}

TEST(JsonParse, ErrorsNamePlaceAndKey) {
  const StatusOr<Json> value = Json::parse("{\"good\": 1,\n\"bad\": tru}");
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(error_message(value.status()), HasSubstr("line 2"));
  EXPECT_EQ(error_param(value.status()), "bad");
}

TEST(JsonParse, ErrorsEchoNothingLong) {
  const std::string many(100'000, '9');
  for (const std::string& text :
       {str_cat("{\"prompt\": \"", many), str_cat("{\"", many, "\" 1}"), str_cat("[", many, "e9999]"),
        str_cat("[\"", many, "\\q\"]"), str_cat("[", many, ".x]")}) {
    const Status status = Json::parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(error_message(status).size(), 300u) << error_message(status).substr(0, 300);
    EXPECT_LT(error_param(status).size(), 100u);
    EXPECT_THAT(error_message(status), Not(HasSubstr("json.exception")));
  }
  EXPECT_THAT(error_message(Json::parse("[tru]").status()), HasSubstr("last read: '[tru]'"));
}

TEST(JsonParse, DepthIsLimited) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(Json::parse(nested(64)).ok());
  EXPECT_THAT(refusal(nested(65)), HasSubstr("64"));
  EXPECT_FALSE(Json::parse(nested(1000000)).ok());
  EXPECT_TRUE(Json::parse(nested(100), {.max_depth = 100}).ok());
}

TEST(JsonParse, SizeIsLimited) {
  const Json::ParseLimits limits{.max_bytes = 10};
  EXPECT_TRUE(Json::parse("\"12345678\"", limits).ok());
  const StatusOr<Json> value = Json::parse("\"123456789\"", limits);
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(error_message(value.status()), HasSubstr("11"));
  EXPECT_THAT(error_message(value.status()), HasSubstr("10"));
}

TEST(JsonDump, ReadsBackAsTheSameText) {
  const std::string text =
      R"({"s": "a\"\\\n\t\u0001é😀", "i": -7, "d": 0.1, "e": 1e+300, "l": [[], {}], "t": true, "n": null})";
  EXPECT_EQ(parsed(text).dump(), text);
}

TEST(JsonDump, NumbersThatJsonCannotSayAreNull) {
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(JsonDump, InvalidUtf8IsReplaced) { EXPECT_EQ(Json("a\xFF").dump(), "\"a\xEF\xBF\xBD\""); }

// What Python 3.11's json.dumps gives for these.
TEST(JsonDump, DoublesAreWrittenAsPythonWritesThem) {
  for (const auto& [value, text] :
       std::vector<std::pair<double, std::string>>{{0.0, "0.0"},
                                                   {-0.0, "-0.0"},
                                                   {3.0, "3.0"},
                                                   {-2.5, "-2.5"},
                                                   {100000.0, "100000.0"},
                                                   {123456.75, "123456.75"},
                                                   {0.1 + 0.2, "0.30000000000000004"},
                                                   {0.0001, "0.0001"},
                                                   {0.00001, "1e-05"},
                                                   {1.5e-7, "1.5e-07"},
                                                   {9007199254740993.0, "9007199254740992.0"},
                                                   {1e15, "1000000000000000.0"},
                                                   {1e16, "1e+16"},
                                                   {1.2345678901234568e17, "1.2345678901234568e+17"},
                                                   {1e300, "1e+300"},
                                                   {5e-324, "5e-324"}}) {
    EXPECT_EQ(Json(value).dump(), text);
  }
}

TEST(JsonDump, DoublesStayDoubles) {
  EXPECT_EQ(parsed(Json(0.1).dump()).as_double(), 0.1);
  EXPECT_EQ(parsed(Json(1e22).dump()).as_double(), 1e22);
  EXPECT_EQ(parsed(Json(-5.5e-12).dump()).as_double(), -5.5e-12);
}

TEST(JsonValue, CopiesAreDeepAndMovesLeaveNull) {
  Json original = parsed(R"({"a": [1]})");
  const Json copy = original;
  original.set("a", 2);
  EXPECT_EQ(copy.dump(), R"({"a": [1]})");
  const Json moved = std::move(original);
  EXPECT_EQ(moved.dump(), R"({"a": 2})");
  EXPECT_TRUE(original.is_null());  // NOLINT: reading a moved-from value is what is tested
}

TEST(JsonValue, AMemberCanReplaceItsOwner) {
  Json value = parsed(R"({"inner": {"x": [1, 2]}})");
  value = Json(*value.find("inner"));
  EXPECT_EQ(value.dump(), R"({"x": [1, 2]})");
  Json list = parsed("[[1, [2]]]");
  list = std::move(list.as_array()[0]);
  EXPECT_EQ(list.dump(), "[1, [2]]");
}

TEST(JsonValue, Building) {
  Json value = Json::object();
  value.set("list", Json::array()).push_back("x");
  value.set("n", uint64_t{1} << 63);
  EXPECT_EQ(value.dump(), R"({"list": ["x"], "n": 9223372036854775808})");
}

TEST(JsonValueDeathTest, TheWrongKindIsABug) { EXPECT_DEATH((void)Json(1).as_string(), "kString"); }

// Python's splitlines, for one, cuts at all of these.
TEST(Json, NoStringHoldsAnyLineEnd) {
  const std::string text = "a\xC2\x85\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA\xC2\x86\v";
  EXPECT_EQ(Json(text).dump(), "\"a\\u0085\\u2028\\u2029\xE2\x80\xAA\xC2\x86\\u000b\"");
  EXPECT_EQ(Json::parse(Json(text).dump())->as_string(), text);
}

}  // namespace
}  // namespace transept
