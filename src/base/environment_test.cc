// Errors about flags name the environment variable where that gave the value, and nothing else changes.
#include "base/environment.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

std::string blamed(std::string_view message) {
  return error_message(blame_environment(invalid_argument(message), {"block-size", "input", "dtype"}));
}

TEST(Environment, NamesAreUpperCaseWithUnderscores) {
  EXPECT_EQ(environment_name("block-size"), "TRANSEPT_BLOCK_SIZE");
}

TEST(Environment, TheVariableIsBlamedWithItsValue) {
  EXPECT_EQ(blamed("--block-size 0: expected more"), "TRANSEPT_BLOCK_SIZE=0: expected more");
  EXPECT_EQ(blamed("--block-size=x: expected more"), "TRANSEPT_BLOCK_SIZE=x: expected more");
  EXPECT_EQ(blamed("--input: /no/file: No such file"), "TRANSEPT_INPUT: /no/file: No such file");
  EXPECT_EQ(blamed("--dtype"), "TRANSEPT_DTYPE");
}

TEST(Environment, OtherErrorsStayAsTheyAre) {
  for (const char* message :
       {"--threads 0: expected more", "config.json: --block-size 0", "--", "", "--block-sizes 3"}) {
    EXPECT_EQ(blamed(message), message);
  }
  EXPECT_TRUE(blame_environment(ok_status(), {"dtype"}).ok());
}

TEST(Environment, CodeAndFieldStay) {
  const Status status = blame_environment(with_param(unimplemented("--dtype x: no"), "dtype"), {"dtype"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(error_param(status), "dtype");
  EXPECT_EQ(error_message(status), "TRANSEPT_DTYPE=x: no");
}

}  // namespace
}  // namespace transept
