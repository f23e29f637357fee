#include "base/status.h"

#include "gtest/gtest.h"

namespace transept {
namespace {

Status refuse(int value) { return value > 3 ? field_error("n", str_cat(value, " is more than 3")) : ok_status(); }

StatusOr<int> doubled(int value) {
  RETURN_IF_ERROR(refuse(value));
  return 2 * value;
}

StatusOr<int> doubled_twice(int value) {
  ASSIGN_OR_RETURN(const int once, doubled(value));
  ASSIGN_OR_RETURN(const int twice, doubled(once));
  return twice;
}

TEST(StatusMacros, HandOnErrorsAndValues) {
  EXPECT_EQ(*doubled_twice(1), 4);
  const StatusOr<int> refused = doubled_twice(2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(error_message(refused.status()), "4 is more than 3");
  EXPECT_EQ(error_param(refused.status()), "n");
}

TEST(StatusParam, TheInnermostFieldHolds) {
  const Status inner = field_error("stop[0]", "is empty");
  EXPECT_EQ(error_param(with_param(inner, "stop")), "stop[0]");
  EXPECT_EQ(error_param(with_param(invalid_argument("bad"), "stop")), "stop");
  EXPECT_EQ(error_param(invalid_argument("bad")), "");
  EXPECT_TRUE(with_param(ok_status(), "stop").ok());
}

TEST(StatusPrefix, KeepsCodeAndField) {
  const Status status = with_prefix(with_param(resource_exhausted("full: ", 3), "n"), "pool");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(error_message(status), "pool: full: 3");
  EXPECT_EQ(error_param(status), "n");
  EXPECT_TRUE(with_prefix(ok_status(), "pool").ok());
}

}  // namespace
}  // namespace transept
