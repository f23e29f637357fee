// Proves how --max-connections and the limit of open descriptors go together.
#include "apps/serve_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Fitted {
  Status status;
  size_t max_connections = 0;
  std::string said;
};

Fitted fit(std::vector<std::string> arguments, uint64_t max_descriptors) {
  arguments.insert(arguments.begin(), "g2p");
  const Flags flags = Flags::parse(serve_flags(), arguments).value();
  ServerOptions options = serve_settings(flags)->options;
  ::testing::internal::CaptureStderr();
  const Status status = fit_connections(flags, max_descriptors, options);
  return {status, options.http.max_connections, ::testing::internal::GetCapturedStderr()};
}

// With 32 transcriptions, 64 refusals and 48 of the process's own.
constexpr uint64_t kOthers = 144;

TEST(ServeFlags, TheDefaultOfConnectionsIsWhatTheSystemAllows) {
  for (const auto& [limit, connections] : {std::pair(uint64_t{1} << 20, 4096), std::pair(4096 + kOthers, 4096),
                                           std::pair(4095 + kOthers, 4095), std::pair(1 + kOthers, 1)}) {
    const Fitted fitted = fit({}, limit);
    EXPECT_TRUE(fitted.status.ok()) << fitted.status;
    EXPECT_EQ(fitted.max_connections, static_cast<size_t>(connections));
    EXPECT_EQ(fitted.said.empty(), connections == 4096) << fitted.said;
  }
}

TEST(ServeFlags, MoreConnectionsThanTheSystemAllowsAreRefusedWithBothNumbers) {
  EXPECT_TRUE(fit({"--max-connections", "880"}, 1024).status.ok());
  EXPECT_THAT(
      error_message(fit({"--max-connections", "881"}, 1024).status),
      AllOf(HasSubstr("--max-connections 881"), HasSubstr("(ulimit -n) is 1024"), HasSubstr("at most 880 fit")));
  EXPECT_TRUE(fit({"--max-connections", "881", "--max-transcriptions", "31"}, 1024).status.ok());
  for (const uint64_t limit : {uint64_t{0}, uint64_t{20}, kOthers}) {
    EXPECT_THAT(error_message(fit({}, limit).status), HasSubstr("none is left for connections"));
  }
}

}  // namespace
}  // namespace transept
