#include "net/http.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(HttpTest, HeadersAreFoundWithoutRegardToCase) {
  HttpRequest request;
  request.headers = {{"Host", "a"}, {"X-Thing", "1"}, {"x-thing", "2"}};
  ASSERT_NE(request.header("X-THING"), nullptr);
  EXPECT_EQ(*request.header("X-THING"), "1");
  EXPECT_EQ(request.header("X-Thin"), nullptr);
  EXPECT_EQ(request.header("X-Things"), nullptr);
}

TEST(HttpTest, ReasonsAreKnown) {
  EXPECT_EQ(http_reason(200), "OK");
  EXPECT_EQ(http_reason(431), "Request Header Fields Too Large");
  EXPECT_EQ(http_reason(299), "Unknown");
}

TEST(HttpTest, DecodesPercentEscapes) {
  EXPECT_EQ(percent_decoded("/a%20b%2Fc+d%C3%a9"), "/a b/c+d\xC3\xA9");
  EXPECT_EQ(percent_decoded(""), "");
  for (const char* bad : {"%", "%4", "%4g", "%g4", "a%", "%%41", "%00", "% 41", "%+1"}) {
    EXPECT_EQ(percent_decoded(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(percent_decoded(std::string_view("a\0b", 3)), std::nullopt);
}

TEST(HttpTest, FindsQueryParameters) {
  const std::string query = "a=1&b=%41%26&c&&d=x=y&%65=5&bad=%zz&a=2";
  EXPECT_EQ(query_parameter(query, "a"), "1");
  EXPECT_EQ(query_parameter(query, "b"), "A&");
  EXPECT_EQ(query_parameter(query, "c"), "");
  EXPECT_EQ(query_parameter(query, "d"), "x=y");
  EXPECT_EQ(query_parameter(query, "e"), "5");
  EXPECT_EQ(query_parameter(query, "bad"), std::nullopt);
  EXPECT_EQ(query_parameter(query, "f"), std::nullopt);
  EXPECT_EQ(query_parameter("", "a"), std::nullopt);
}

}  // namespace
}  // namespace transept
