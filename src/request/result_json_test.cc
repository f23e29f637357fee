// Result and error lines: keys, their order, nulls, numbers.
#include "request/result_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace transept {
namespace {

const auto token_text = [](int32_t id) { return str_cat("<", id, ">"); };

TEST(ResultJson, WritesAPlainResult) {
  RequestOutput output;
  output.encoder_prompt = "in";
  output.encoder_prompt_token_ids = {0, 5, 2};
  output.prompt_token_ids = {2, 0};
  CompletionOutput one;
  one.text = "out";
  one.token_ids = {7, 2};
  one.cumulative_logprob = -1.25;
  one.finish_reason = FinishReason::kStop;
  output.outputs.push_back(one);
  output.metrics = {.queue_s = 0, .encode_s = 0.5, .first_token_s = -1, .total_s = 2};
  EXPECT_EQ(to_json("r1", output, token_text).dump(),
            R"({"id": "r1", "encoder_prompt": "in", "encoder_prompt_token_ids": [0, 5, 2], "prompt": null, )"
            R"("prompt_token_ids": [2, 0], "outputs": [{"index": 0, "text": "out", "token_ids": [7, 2], )"
            R"("cumulative_logprob": -1.25, "logprobs": null, "finish_reason": "stop", "stop_reason": null}], )"
            R"("metrics": {"queue_s": 0.0, "encode_s": 0.5, "first_token_s": null, "total_s": 2.0}})");
}

TEST(ResultJson, BeamsHaveTheScoreThatRanksThem) {
  RequestOutput output;
  CompletionOutput& one = output.outputs.emplace_back();
  EXPECT_EQ(to_json("r1", output, token_text).dump().find("beam_score"), std::string::npos);
  one.cumulative_logprob = -3;
  one.beam_score = -0.75;
  EXPECT_NE(to_json("r1", output, token_text).dump().find(R"("cumulative_logprob": -3.0, "beam_score": -0.75, )"),
            std::string::npos);
}

TEST(ResultJson, SaysHowPicturesWereTakenAndWhatAnswersSay) {
  RequestOutput output;
  output.images = {{{640, 480, 384, 384, 1}, 577}, {{10, 20, 56, 28, 2}, 34}};
  CompletionOutput& one = output.outputs.emplace_back();
  one.text = "<s_a>1</s_a>";
  one.structured = Json(Json::Object{{"a", "1"}});
  const std::string json = to_json("r1", output, token_text).dump();
  EXPECT_NE(json.find(R"("prompt_token_ids": [], "images": [{"width": 640, "height": 480, "used_width": 384, )"
                      R"("used_height": 384, "tiles": 1, "positions": 577}, {"width": 10, "height": 20, )"
                      R"("used_width": 56, "used_height": 28, "tiles": 2, "positions": 34}], "outputs")"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("text": "<s_a>1</s_a>", "structured": {"a": "1"}, "token_ids")"), std::string::npos) << json;
}

TEST(ResultJson, WritesLogprobsAndStopReasons) {
  RequestOutput output;
  output.prompt_logprobs = {std::nullopt, PositionLogprobs{{4, -0.1f, 1}}};
  output.score = -0.5;
  CompletionOutput one;
  one.logprobs = {PositionLogprobs{{9, -0.25f, 1}, {3, -std::numeric_limits<float>::infinity(), 30}}, {}};
  one.stop_reason = 9;
  one.finish_reason = FinishReason::kStop;
  CompletionOutput two;
  two.index = 1;
  two.stop_reason = std::string("END");
  two.finish_reason = FinishReason::kLength;
  output.outputs = {one, two};
  const Json json = to_json(5, output, token_text);
  EXPECT_EQ(json.find("id")->as_int(), 5);
  EXPECT_EQ(json.find("prompt_logprobs")->dump(),
            R"([null, {"4": {"logprob": -0.1, "rank": 1, "decoded_token": "<4>"}}])");
  EXPECT_EQ(json.find("score")->as_double(), -0.5);
  const Json& first = json.find("outputs")->as_array()[0];
  EXPECT_EQ(first.find("logprobs")->dump(), R"([{"9": {"logprob": -0.25, "rank": 1, "decoded_token": "<9>"}, )"
                                            R"("3": {"logprob": null, "rank": 30, "decoded_token": "<3>"}}, {}])");
  EXPECT_EQ(first.find("stop_reason")->as_int(), 9);
  const Json& second = json.find("outputs")->as_array()[1];
  EXPECT_EQ(second.find("stop_reason")->as_string(), "END");
  EXPECT_EQ(second.find("finish_reason")->as_string(), "length");
}

TEST(ResultJson, ErrorsHaveAllFourKeys) {
  EXPECT_EQ(error_json("r1", field_error("n", "n must be 1")).dump(),
            R"({"id": "r1", "error": {"message": "n must be 1", "type": "invalid_request_error", "param": "n", )"
            R"("code": "invalid_value"}})");
  EXPECT_EQ(error_json(3, invalid_argument("not valid JSON")).dump(),
            R"({"id": 3, "error": {"message": "not valid JSON", "type": "invalid_request_error", "param": null, )"
            R"("code": "invalid_value"}})");
  EXPECT_STREQ(error_kind(unimplemented("x")).code, "unsupported");
  EXPECT_STREQ(error_kind(absl::OutOfRangeError("x")).code, "context_length_exceeded");
  EXPECT_EQ(error_kind(resource_exhausted("x")).http_status, 429);
  EXPECT_EQ(error_kind(absl::InternalError("x")).http_status, 500);
  EXPECT_STREQ(error_kind(absl::InternalError("x")).type, "server_error");
}

}  // namespace
}  // namespace transept
