#include "disagg/injected_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

TEST(InjectedInput, IsReadAsItWasWritten) {
  const InjectedInputs inputs = {
      InjectedInput{{"proxy.77.1", 0}, testing::digest_of(~uint64_t{0}, 5), 1500, {0, 1500, {}}}, std::nullopt,
      InjectedInput{
          {"proxy.77.2", 4294967295}, testing::digest_of(0x0123456789abcdef), 2147483647, {7, 2147483647, {}}}};
  const Json json = encoded_inputs_json(inputs);
  EXPECT_EQ(read_encoded_inputs(Json::parse(json.dump()).value(), 3).value(), inputs);
  EXPECT_EQ(Json::parse(json.as_array()[2].dump()).value().find("digest")->as_string().substr(0, 16),
            "efcdab8967452301");
}

TEST(InjectedInput, WhatIsNoneIsRefusedByName) {
  const std::string digest(64, 'a');
  const auto element = [&](const std::string& from, const std::string& to) {
    std::string text = R"({"request_id": "r", "input_id": 1, "digest": ")" + digest +
                       R"(", "num_positions": 2, "place": {"offset": 0, "length": 2}})";
    const size_t at = text.find(from);
    return text.replace(at, from.size(), to);
  };
  const std::pair<std::string, std::string> cases[] = {
      {"7", "is no list"},
      {"[]", "a list of 0, and the request has 1"},
      {"[1]", "encoded_inputs[0] is no object"},
      {"[{}]", "encoded_inputs[0].request_id is missing"},
      {"[" + element("\"r\"", "\"a/b\"") + "]", "encoded_inputs[0].request_id"},
      {"[" + element("\"r\"", "3") + "]", "encoded_inputs[0].request_id is no text"},
      {"[" + element(": 1,", ": -1,") + "]", "encoded_inputs[0].input_id is no whole number from 0 to 4294967295"},
      {"[" + element(": 1,", ": 4294967296,") + "]", "encoded_inputs[0].input_id"},
      {"[" + element(": 1,", ": 1e300,") + "]", "encoded_inputs[0].input_id"},
      {"[" + element("aaaa", "aaa") + "]", "encoded_inputs[0].digest is not 64"},
      {"[" + element("aaaa", "aaaA") + "]", "encoded_inputs[0].digest is not 64"},
      {"[" + element(": 2,", ": 0,") + "]", "encoded_inputs[0].num_positions is no whole number from 1"},
      {"[" + element("{\"offset\": 0, \"length\": 2}", "3") + "]", "encoded_inputs[0].place is no object"},
      {"[" + element("\"length\": 2", "\"length\": 0") + "]", "encoded_inputs[0].place.length"},
      {"[" + element("\"offset\": 0, ", "") + "]", "encoded_inputs[0].place.offset is missing"},
  };
  for (const auto& [text, why] : cases) {
    const auto json = Json::parse(text);
    ASSERT_TRUE(json.ok()) << text << json.status();
    const Status status = read_encoded_inputs(*json, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(error_message(status), HasSubstr(why)) << text;
    EXPECT_EQ(error_param(status), "encoded_inputs");
  }
}

}  // namespace
}  // namespace transept
