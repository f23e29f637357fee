// OpenAI's `prediction` through a real server: guesses are run and counted, and change no text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/served_model_testing.h"
#include "server/server_testing.h"

namespace transept {
namespace {

using testing::at;
using ::testing::HasSubstr;
using testing::ServedModel;

// 47 tokens: the first steps of an answer are measured without guesses.
constexpr std::string_view kWords = "internationalization interoperability characterization";

class Predictions : public ::testing::Test {
 protected:
  void SetUp() override { served_.load(); }

  HttpClient::Reply ask(std::string_view prediction, std::string_view more = "") {
    HttpClient::Reply reply = served_.post(
        "/v1/completions",
        str_cat(R"({"prompt": ")", kWords, R"(", "max_tokens": 100, "prediction": {"type": "content", "content": ")",
                prediction, R"("})", more, "}"));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply;
  }
  static std::string text_of(const HttpClient::Reply& reply) {
    return std::string(at(ServedModel::json(reply), "choices", 0, "text").as_string());
  }
  // Guesses of the answer that were right, and those that were not; none were run: 0 and 0.
  static std::pair<int64_t, int64_t> counts_of(const Json& usage) {
    const Json* details = usage.find("completion_tokens_details");
    if (details == nullptr) return {0, 0};
    return {at(*details, "accepted_prediction_tokens").as_int(), at(*details, "rejected_prediction_tokens").as_int()};
  }
  static std::pair<int64_t, int64_t> counts_of(const HttpClient::Reply& reply) {
    return counts_of(at(ServedModel::json(reply), "usage"));
  }

  ServedModel served_{testing::default_server_options(), testing::bundled_model(), true};
};

TEST_F(Predictions, ARightOneIsAcceptedAndChangesNothing) {
  const HttpClient::Reply none = ask("");
  EXPECT_EQ(counts_of(none), std::pair(int64_t{0}, int64_t{0}));
  const std::string text = text_of(none);
  const HttpClient::Reply right = ask(text);
  EXPECT_EQ(text_of(right), text);
  const auto num_tokens = [](const HttpClient::Reply& reply) {
    return at(ServedModel::json(reply), "usage", "completion_tokens").as_int();
  };
  EXPECT_EQ(num_tokens(right), num_tokens(none));
  EXPECT_GT(counts_of(right).first, 0) << "how many, its cost decides";
  EXPECT_EQ(counts_of(right).second, 0);
  EXPECT_THAT(served_.get("/metrics").body, HasSubstr("transept:spec_decode_num_accepted_tokens_total"));
}

TEST_F(Predictions, AWrongOneIsRejectedAndChangesNothing) {
  const std::string text = text_of(ask(""));
  // The second half is another text's.
  const HttpClient::Reply wrong = ask(text.substr(0, text.find(' ')) + " " + std::string(60, 'z'));
  EXPECT_EQ(text_of(wrong), text);
  EXPECT_GT(counts_of(wrong).first, 0);
}

TEST_F(Predictions, OfAStreamAreInItsUsage) {
  const std::string text = text_of(ask(""));
  const HttpClient::Reply stream = ask(text, R"(, "stream": true, "stream_options": {"include_usage": true})");
  const size_t begin = stream.body.rfind(R"("usage":)");
  ASSERT_NE(begin, std::string::npos) << stream.body;
  EXPECT_THAT(stream.body.substr(begin), HasSubstr(R"("accepted_prediction_tokens":)"));
}

}  // namespace
}  // namespace transept
