#include "load/load_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace transept {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

Json parsed(const LoadRequest& request) { return Json::parse(request.body).value(); }

TEST(LoadRequestsTest, ACompletionOfAMadeUpPrompt) {
  LoadRequests::Options options{.model = "m", .seed = 9, .ignore_eos = true, .input_len = 4};
  options.min_output_len = options.max_output_len = 20;
  options.extra_body.set("target_lang", "de");
  const LoadRequests requests(std::move(options));
  const LoadRequest request = requests.request(3);
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_EQ(request.body, str_cat(R"({"prompt": ")", unique_prompt(9, 3, 4),
                                  R"(", "model": "m", "stream": true, "max_tokens": 20, "ignore_eos": true, )",
                                  R"("stream_options": {"include_usage": true}, "target_lang": "de"})"));
  EXPECT_TRUE(requests.are_unique());
}

TEST(LoadRequestsTest, WhatIsNotAskedForIsNotSent) {
  const LoadRequests requests({.model = "m", .stream = false});
  const Json body = parsed(requests.request(0));
  EXPECT_FALSE(body.find("stream")->as_bool());
  for (const char* name : {"max_tokens", "ignore_eos", "stream_options"}) EXPECT_EQ(body.find(name), nullptr) << name;
}

TEST(LoadRequestsTest, OutputLengthsAreDrawn) {
  const LoadRequests requests({.min_output_len = 5, .max_output_len = 7});
  std::set<int64_t> lengths;
  for (int64_t i = 0; i < 100; ++i) lengths.insert(parsed(requests.request(i)).find("max_tokens")->as_int());
  EXPECT_EQ(lengths, (std::set<int64_t>{5, 6, 7}));
}

TEST(LoadRequestsTest, TextsComeInTurnAndEachTimeWithAnotherNumber) {
  const LoadRequests requests({.texts = {"one", "two"}});
  std::set<std::string> prompts;
  for (int64_t i = 0; i < 6; ++i) {
    const std::string prompt = parsed(requests.request(i)).find("prompt")->as_string();
    EXPECT_THAT(prompt, MatchesRegex(i % 2 == 0 ? "[0-9]+ one" : "[0-9]+ two"));
    prompts.insert(prompt);
  }
  EXPECT_EQ(prompts.size(), 6u);
}

TEST(LoadRequestsTest, BodiesKeepTheirFields) {
  LoadRequests::Options options{.model = "m"};
  options.bodies.push_back(Json::parse(R"({"prompt": "text", "model": "old", "stream": false, "n": 2})").value());
  options.bodies.push_back(
      Json::parse(R"({"prompt": {"encoder_prompt": {"prompt": "x"}, "decoder_prompt": "y"}})").value());
  const LoadRequests requests(std::move(options));
  EXPECT_TRUE(requests.are_unique());
  const Json first = parsed(requests.request(2));
  EXPECT_THAT(first.find("prompt")->as_string(), MatchesRegex("[0-9]+ text"));
  EXPECT_EQ(first.find("model")->as_string(), "m");
  EXPECT_TRUE(first.find("stream")->as_bool());
  EXPECT_EQ(first.find("n")->as_int(), 2);
  const Json second = parsed(requests.request(1));
  const Json* prompt = second.find("prompt");
  EXPECT_THAT(prompt->find("encoder_prompt")->find("prompt")->as_string(), MatchesRegex("[0-9]+ x"));
  EXPECT_EQ(prompt->find("decoder_prompt")->as_string(), "y");
}

TEST(LoadRequestsTest, BodiesThatCannotBeMadeUniqueAreTold) {
  for (const char* body : {R"({"prompt": [1, 2]})", R"({"prompt": {"prompt_token_ids": [1]}})", R"({"n": 1})",
                           R"({"prompt": {"prompt": "", "multi_modal_data": {}}})"}) {
    LoadRequests::Options options;
    options.bodies.push_back(Json::parse(body).value());
    const LoadRequests requests(std::move(options));
    EXPECT_FALSE(requests.are_unique()) << body;
    const Json* before = nullptr;
    const Json original = Json::parse(body).value();
    if ((before = original.find("prompt")) == nullptr) continue;
    EXPECT_EQ(parsed(requests.request(0)).find("prompt")->dump(), before->dump());
  }
}

TEST(LoadRequestsTest, ATranscriptionIsAForm) {
  LoadRequests::Options options{.endpoint = LoadEndpoint::kTranscriptions, .model = "w"};
  options.extra_body.set("language", "en");
  options.extra_body.set("response_format", "text");
  options.audio.push_back({"a \"b\"\r\n.mp3", "sound\r\n"});
  const LoadRequests requests(std::move(options));
  EXPECT_FALSE(requests.are_unique()) << "no WAVE file";
  const LoadRequest request = requests.request(0);
  const std::string boundary = request.content_type.substr(request.content_type.find('=') + 1);
  EXPECT_EQ(request.content_type, "multipart/form-data; boundary=" + boundary);
  for (const char* field :
       {"model\"\r\n\r\nw", "stream\"\r\n\r\ntrue", "response_format\"\r\n\r\ntext", "language\"\r\n\r\nen"}) {
    EXPECT_THAT(request.body,
                HasSubstr(str_cat("--", boundary, "\r\nContent-Disposition: form-data; name=\"", field, "\r\n--")));
  }
  EXPECT_THAT(request.body, HasSubstr("name=\"file\"; filename=\"a %22b%22%0D%0A.mp3\"\r\nContent-Type: "));
  EXPECT_THAT(request.body, EndsWith(str_cat("\r\n\r\nsound\r\n\r\n--", boundary, "--\r\n")));
  EXPECT_THAT(request.body, Not(HasSubstr("stream_options")));
}

}  // namespace
}  // namespace transept
