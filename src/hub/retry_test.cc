#include "hub/retry.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

using std::chrono::seconds;

TEST(RetryTest, Statuses) {
  for (const int status : {408, 429, 500, 502, 503, 504, 599}) EXPECT_TRUE(is_retryable_status(status)) << status;
  for (const int status : {200, 302, 400, 401, 403, 404, 416, 501, 505, 600})
    EXPECT_FALSE(is_retryable_status(status)) << status;
}

TEST(RetryTest, RetryAfter) {
  const auto wait = [](std::string value) { return requested_wait({{"retry-after", std::move(value)}}, 784887151); };
  EXPECT_EQ(wait("0"), seconds(0));
  EXPECT_EQ(wait("120"), seconds(120));
  // RFC 9110's example of a date is 784111777.
  EXPECT_EQ(requested_wait({{"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}}, 784111770), seconds(7));
  EXPECT_EQ(wait("Sun, 06 Nov 1994 08:49:37 GMT"), seconds(0)) << "past";
  for (const char* value : {"", "-1", "1.5", "soon", "1 s", "Sun, 06 Nov 1994"})
    EXPECT_EQ(wait(value), std::nullopt) << value;
  EXPECT_LE(*wait("9223372036854775807"), seconds(10'000'000));
  EXPECT_EQ(requested_wait({}, 0), std::nullopt);
}

TEST(RetryTest, RateLimit) {
  const auto wait = [](std::string value) { return requested_wait({{"RateLimit", std::move(value)}}, 0); };
  EXPECT_EQ(wait("\"api\";r=0;t=55"), seconds(55));
  EXPECT_EQ(wait("\"api\"; r=0; t=55"), seconds(55));
  EXPECT_EQ(wait("\"api\";r=3;t=55"), std::nullopt) << "not the reason";
  EXPECT_EQ(wait("\"api\";t=55"), std::nullopt);
  EXPECT_EQ(wait("r=0;t=x"), std::nullopt);
  EXPECT_EQ(requested_wait({{"RateLimit", "r=0;t=55"}, {"Retry-After", "3"}}, 0), seconds(3));
}

TEST(RetryTest, Backoff) {
  EXPECT_EQ(backoff(1).count(), 250);
  EXPECT_EQ(backoff(2).count(), 500);
  EXPECT_EQ(backoff(6).count(), 8000);
  EXPECT_EQ(backoff(1000).count(), 8000);
  EXPECT_EQ(backoff(0).count(), 250);
}

}  // namespace
}  // namespace transept
