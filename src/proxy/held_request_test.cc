#include "proxy/held_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

HttpRequest request_of(std::string path, std::string body) {
  HttpRequest request{.method = "POST", .path = std::move(path), .body = std::move(body)};
  request.headers.emplace_back("Content-Type", "application/json; charset=utf-8");
  return request;
}

// What is to be encoded, as JSON; empty: it is not held.
std::vector<std::string> prompts_of(const HttpRequest& request) {
  const auto prompts = split_prompts(request, 4);
  std::vector<std::string> texts;
  if (prompts.ok()) {
    for (const HeldPrompt& prompt : *prompts) texts.push_back(prompt.body.dump());
  }
  return texts;
}
std::vector<std::string> prompts_of(std::string path, std::string body) {
  return prompts_of(request_of(std::move(path), std::move(body)));
}

TEST(HeldRequest, EachPromptIsAnInput) {
  EXPECT_THAT(prompts_of("/v1/completions", R"({"prompt": "a", "max_tokens": 3, "model": "m"})"),
              ElementsAre(R"({"prompt": "a"})"));
  EXPECT_THAT(prompts_of("/v1/completions", R"({"prompt": ["a", {"encoder_prompt": "b", "decoder_prompt": "c"}]})"),
              ElementsAre(R"({"prompt": "a"})", R"({"prompt": {"encoder_prompt": "b", "decoder_prompt": "c"}})"));
  EXPECT_THAT(prompts_of("/v1/completions", R"({"prompt": [5, 6]})"), ElementsAre(R"({"prompt": [5, 6]})"));
  EXPECT_THAT(prompts_of("/v1/completions", R"({"prompt": [[5], [6, 7]]})"),
              ElementsAre(R"({"prompt": [5]})", R"({"prompt": [6, 7]})"));
  EXPECT_THAT(prompts_of("/v1/completions", R"({"prompt": {"multi_modal_data": {"audio": "AAAA"}}})"),
              ElementsAre(R"({"prompt": {"multi_modal_data": {"audio": "AAAA"}}})"));
  EXPECT_THAT(prompts_of("/v1/score", R"({"prompt": "a", "decoder_prompt": "b"})"), ElementsAre(R"({"prompt": "a"})"));
  EXPECT_THAT(prompts_of("/v1/translate", R"({"text": ["a", "b"], "source_lang": "de", "target_lang": "en"})"),
              ElementsAre(R"({"source_lang": "de", "prompt": "a"})", R"({"source_lang": "de", "prompt": "b"})"));
}

// All that an encode reads, and nothing else: what differs elsewhere is encoded once.
TEST(HeldRequest, WhatAnEncodeReadsGoesWithThePrompt) {
  EXPECT_THAT(prompts_of("/v1/completions", R"({"truncate_prompt_tokens": 7, "prompt": "a", "add_special_tokens": false,
                                                "source_lang": "de", "temperature": 0.5, "stream": true, "other": 1})"),
              ElementsAre(R"({"truncate_prompt_tokens": 7, "add_special_tokens": false, "source_lang": "de", )"
                          R"("prompt": "a"})"));
  // Fields of an encode that are none of a completion's are not the client's to give.
  EXPECT_THAT(prompts_of("/v1/completions", R"({"prompt": "a", "consumer": "p9", "request_id": "x", "timeout": 1})"),
              ElementsAre(R"({"prompt": "a"})"));
}

TEST(HeldRequest, WhatCannotBeHeldIsNot) {
  for (const char* body :
       {"", "{", "[]", "3", "{}", R"({"prompt": null})", R"({"prompt": []})", R"({"prompt": ["a", 3]})",
        R"({"prompt": "a", "temperature": "warm"})", R"({"prompt": "a", "encoded_inputs": []})",
        R"({"prompt": ["1", "2", "3", "4", "5"]})", R"({"prompt": {"audio": 3}})"}) {
    EXPECT_THAT(prompts_of("/v1/completions", body), IsEmpty()) << body;
  }
  using namespace std::string_literals;
  EXPECT_THAT(prompts_of("/v1/completions", "{\"prompt\": \"a\"}\0\0{}"s), IsEmpty());
  EXPECT_THAT(prompts_of("/v1/audio/transcriptions", R"({"prompt": "a"})"), IsEmpty());
  EXPECT_THAT(prompts_of("/tokenize", R"({"prompt": "a"})"), IsEmpty());
  HttpRequest request = request_of("/v1/completions", R"({"prompt": "a"})");
  request.method = "PUT";
  EXPECT_THAT(prompts_of(request), IsEmpty());
  request.method = "POST";
  request.headers = {{"Content-Type", "text/plain"}};
  EXPECT_THAT(prompts_of(request), IsEmpty());
  request.headers = {};
  EXPECT_THAT(prompts_of(request), IsEmpty());
}

TEST(HeldRequest, PositionsAreGuessed) {
  const auto hints = [](const std::string& prompt) {
    std::vector<int32_t> numbers;
    const auto held = split_prompts(request_of("/v1/completions", "{\"prompt\": " + prompt + "}"), 4);
    EXPECT_TRUE(held.ok()) << held.status();
    for (const HeldPrompt& one : held.value()) numbers.push_back(one.num_positions_hint);
    return numbers;
  };
  EXPECT_THAT(hints("\"\""), ElementsAre(16));
  EXPECT_THAT(hints("[1, 2, 3]"), ElementsAre(16));
  EXPECT_THAT(hints(R"(["12345678", {"multi_modal_data": {"audio": "A"}}])"), ElementsAre(16, 1504));
  EXPECT_THAT(hints("\"" + std::string(100000, 'x') + "\""), ElementsAre(1504));
}

TEST(HeldRequest, TheFieldIsAddedAndNothingElseChanges) {
  const InjectedInputs inputs = {InjectedInput{{"p.1.2", 0}, testing::digest_of(3), 4, {0, 4, {}}}};
  const std::string body = " {\"prompt\" : \"}\",\n\"n\":1 } \n";
  const std::string rewritten = with_encoded_inputs(body, inputs);
  EXPECT_EQ(rewritten,
            " {\"prompt\" : \"}\",\n\"n\":1 , \"encoded_inputs\": " + encoded_inputs_json(inputs).dump() + "} \n");
  EXPECT_EQ(read_encoded_inputs(*Json::parse(rewritten)->find("encoded_inputs"), 1).value(), inputs);
}

}  // namespace
}  // namespace transept
