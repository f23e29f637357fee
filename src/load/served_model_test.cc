// Proves that requests whose lengths nobody asked for fit the model that the server lists.
#include "load/served_model.h"

#include <gtest/gtest.h>

#include "load/unique_inputs.h"

namespace transept {
namespace {

Json parsed(std::string_view text) { return Json::parse(text).value(); }

LoadRequests::Options made_up() { return {.input_len = 32, .min_output_len = 128, .max_output_len = 128}; }

TEST(ServedModel, IsTheOneThatIsNamedOrTheFirst) {
  const Json list = parsed(R"({"data": [{"id": "a", "max_model_len": 2048}, 5, {"id": 6},
      {"id": "b", "max_model_len": 448, "transept": {"max_encoder_len": 1500, "max_decoder_len": 448}},
      {"id": "c", "max_model_len": null}]})");
  EXPECT_EQ(find_served_model(list, "")->id, "a");
  EXPECT_EQ(find_served_model(list, "a")->max_input_tokens, 2048);
  EXPECT_TRUE(find_served_model(list, "a")->is_shared);
  EXPECT_EQ(find_served_model(list, "b")->max_input_tokens, 1500);
  EXPECT_EQ(find_served_model(list, "b")->max_output_tokens, 448);
  EXPECT_FALSE(find_served_model(list, "b")->is_shared);
  EXPECT_TRUE(find_served_model(list, "b")->is_transept);
  EXPECT_FALSE(find_served_model(list, "a")->is_transept);
  EXPECT_EQ(find_served_model(list, "c")->max_input_tokens, std::nullopt);
  EXPECT_EQ(find_served_model(list, "d"), std::nullopt);
  for (const char* none : {"{}", R"({"data": 1})", R"({"data": []})"}) {
    EXPECT_EQ(find_served_model(parsed(none), ""), std::nullopt);
  }
}

TEST(ServedModel, WhatIsMadeUpFitsWhateverTheTokenizer) {
  for (const int64_t positions : {40, 64, 128, 200, 1024}) {
    LoadRequests::Options requests = made_up();
    fit_lengths({"m", positions, positions, false}, {}, requests);
    for (int64_t i = 0; i < 200; ++i) {
      EXPECT_LE(unique_prompt(7, i, requests.input_len).size() + 8, static_cast<size_t>(positions));
    }
    EXPECT_LE(requests.max_output_len + 8, positions);
    EXPECT_LE(requests.min_output_len, requests.max_output_len);
  }
  LoadRequests::Options requests = made_up();
  EXPECT_EQ(fit_lengths({"m", 128, 128, false}, {}, requests),
            "13 words instead of 32, 120 output tokens instead of 128");
  requests = made_up();
  EXPECT_EQ(fit_lengths({"m", 1024, 1024, false}, {}, requests), "");
  EXPECT_EQ(fit_lengths({"m", std::nullopt, std::nullopt, true}, {}, requests), "");
  EXPECT_EQ(requests.input_len, 32);
  EXPECT_EQ(requests.max_output_len, 128);
}

TEST(ServedModel, PromptAndAnswerOfADecoderShareItsPositions) {
  for (const int64_t positions : {40, 64, 128, 300, 2048}) {
    LoadRequests::Options requests = made_up();
    fit_lengths({"m", positions, positions, true}, {}, requests);
    EXPECT_LE(max_prompt_bytes(requests.input_len) + 8 + requests.max_output_len, positions);
  }
}

TEST(ServedModel, WhatWasAskedForStays) {
  LoadRequests::Options requests = made_up();
  EXPECT_EQ(fit_lengths({"m", 64, 64, false}, {.input = true, .output = true}, requests), "");
  EXPECT_EQ(requests.input_len, 32);
  EXPECT_EQ(requests.max_output_len, 128);
  fit_lengths({"m", 300, 300, true}, {.output = true}, requests);
  EXPECT_EQ(requests.max_output_len, 128);
  EXPECT_LE(max_prompt_bytes(requests.input_len) + 8 + 128, 300);
  requests = made_up();
  EXPECT_EQ(fit_lengths({"m", 64, 64, false}, {.input = true}, requests), "56 output tokens instead of 128");
  requests = made_up();
  requests.texts = {"a text of somebody's"};
  EXPECT_EQ(fit_lengths({"m", 64, 64, false}, {}, requests), "56 output tokens instead of 128");
  requests = made_up();
  requests.bodies = {parsed("{}")};
  EXPECT_EQ(fit_lengths({"m", 64, 64, false}, {}, requests), "") << "they say themselves";
}

}  // namespace
}  // namespace transept
