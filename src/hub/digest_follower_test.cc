#include "hub/digest_follower.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/folder_testing.h"

namespace transept {
namespace {

class DigestFollowerTest : public ::testing::Test {
 protected:
  DigestFollowerTest() : fd_(::open((folder_.path() + "/f").c_str(), O_RDWR | O_CREAT, 0600)) {}
  ~DigestFollowerTest() override { ::close(fd_); }

  void append(std::string_view text) {
    ASSERT_EQ(::pwrite(fd_, text.data(), text.size(), size_), static_cast<ssize_t>(text.size()));
    size_ += static_cast<int64_t>(text.size());
  }

  testing::TestFolder folder_;
  int fd_;
  int64_t size_ = 0;
};

TEST_F(DigestFollowerTest, NothingIsTheDigestOfNothing) {
  DigestFollower follower(fd_);
  EXPECT_EQ(*follower.finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// FIPS 180-4's example of a million "a".
TEST_F(DigestFollowerTest, FollowsAFileThatGrows) {
  append(std::string(300'000, 'a'));  // what an earlier run left
  DigestFollower follower(fd_);
  follower.advance(size_);
  for (int i = 0; i < 700; ++i) {
    append(std::string(1000, 'a'));
    follower.advance(size_);
  }
  EXPECT_EQ(*follower.finish(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_F(DigestFollowerTest, MayBeAbandoned) {
  append("abc");
  DigestFollower follower(fd_);
  follower.advance(size_);
}

TEST_F(DigestFollowerTest, AFileThatBecomesShorterIsAnError) {
  DigestFollower follower(fd_);
  follower.advance(10);
  EXPECT_FALSE(follower.finish().ok());
}

}  // namespace
}  // namespace transept
