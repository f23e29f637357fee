// What the answers of a model that reads pictures have beside those of others: how pictures were taken, and their
// positions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multimodal/multimodal_testing.h"
#include "net/sse.h"
#include "server/served_model_testing.h"

namespace transept {
namespace {

using testing::at;
using ::testing::HasSubstr;
using testing::ServedModel;

// A picture of raw pixels.
std::string picture(int32_t width, int32_t height) {
  std::string pixels;
  for (int32_t i = 0; i < width * height * 3; ++i) pixels += static_cast<char>(i * 37);
  return str_cat(R"({"rgb": ")", testing::base64_of(pixels), R"(", "width": )", width, R"(, "height": )", height, "}");
}

std::string prompt(const std::string& image) { return str_cat(R"({"multi_modal_data": {"image": )", image, "}}"); }

class ImageAnswers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    served_ = std::make_unique<ServedModel>(testing::default_server_options(),
                                            str_cat(source_dir(), "/tests/models/donut-float16"));
    served_->load();
  }
  static void TearDownTestSuite() { served_.reset(); }

  static HttpClient::Reply complete(const std::string& fields) {
    return served_->post("/v1/completions", str_cat("{", fields, R"(, "max_tokens": 2})"));
  }

  static std::unique_ptr<ServedModel> served_;
};
std::unique_ptr<ServedModel> ImageAnswers::served_;

TEST_F(ImageAnswers, SayHowPicturesWereTaken) {
  const HttpClient::Reply reply =
      complete(str_cat(R"("prompt": [)", prompt(picture(7, 9)), ", ", prompt(picture(20, 12)), "]"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json answer = ServedModel::json(reply);
  // As preprocessor_config.json has it: 21 wide, 30 high; one stage of patches of 4 and one that halves them.
  const int64_t positions = at(answer, "images", 0, "positions").as_int();
  EXPECT_GT(positions, 1);
  EXPECT_EQ(at(answer, "images").dump(),
            str_cat(R"([{"width": 7, "height": 9, "used_width": 21, "used_height": 30, "tiles": 1, "positions": )",
                    positions, R"(}, {"width": 20, "height": 12, "used_width": 21, "used_height": 30, "tiles": 1, )",
                    R"("positions": )", positions, "}]"));
  EXPECT_EQ(at(answer, "usage", "prompt_tokens_details", "image_tokens").as_int(), 2 * positions);
}

TEST_F(ImageAnswers, OfAStreamAreInItsLastChunk) {
  const HttpClient::Reply reply = complete(str_cat(R"("prompt": )", prompt(picture(7, 9)),
                                                   R"(, "stream": true, "stream_options": {"include_usage": true})"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  int count = 0;
  Json last;
  SseReader reader;
  const auto take = [&](std::string_view, std::string_view data) {
    if (data == "[DONE]") return;
    last = Json::parse(data).value();
    count += last.find("images") != nullptr ? 1 : 0;
  };
  EXPECT_TRUE(reader.push(reply.body, take));
  EXPECT_EQ(count, 1);
  EXPECT_EQ(at(last, "images", 0, "height").as_int(), 9);
  EXPECT_GT(at(last, "usage", "prompt_tokens_details", "image_tokens").as_int(), 1);
}

TEST(CachedPicture, IsNoPartOfThePromptsTokens) {
  ServedModel served(testing::default_server_options(), str_cat(source_dir(), "/tests/models/donut-float16"), true);
  served.load();
  for (const bool again : {false, true}) {
    const HttpClient::Reply reply =
        served.post("/v1/completions", str_cat(R"({"prompt": )", prompt(picture(7, 9)), R"(, "max_tokens": 2})"));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Json usage = at(ServedModel::json(reply), "usage");
    const Json details = at(usage, "prompt_tokens_details");
    EXPECT_LE(at(details, "cached_tokens").as_int(), at(usage, "prompt_tokens").as_int());
    const Json* media = details.find("cached_media_tokens");
    EXPECT_EQ(media == nullptr ? 0 : media->as_int(), again ? at(details, "image_tokens").as_int() : 0);
  }
}

TEST_F(ImageAnswers, HaveAFormOnlyWhereATokenizerGivesTexts) {
  const HttpClient::Reply reply =
      complete(str_cat(R"("prompt": )", prompt(picture(7, 9)), R"(, "return_structured": true)"));
  EXPECT_EQ(reply.status, 400) << reply.body;
  EXPECT_EQ(at(ServedModel::json(reply), "error", "param").as_string(), "return_structured");
  EXPECT_THAT(reply.body, HasSubstr("tokenizer"));
}

TEST(TextAnswers, HaveNoForm) {
  ServedModel served;
  served.load();
  for (const std::string_view path : {"/v1/completions", "/v1/chat/completions"}) {
    const HttpClient::Reply reply =
        served.post(path, path == "/v1/completions"
                              ? R"({"prompt": "hello", "return_structured": true})"
                              : R"({"messages": [{"role": "user", "content": "hello"}], "return_structured": true})");
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(at(ServedModel::json(reply), "error", "param").as_string(), "return_structured");
    EXPECT_THAT(reply.body, HasSubstr("text alone"));
  }
  const Json answer = ServedModel::json(served.post("/v1/completions", R"({"prompt": "hello"})"));
  EXPECT_EQ(answer.find("images"), nullptr);
}

}  // namespace
}  // namespace transept
