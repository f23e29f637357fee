// The first file that has not ended speaks; the others are heard when their turn comes.
#include "apps/ordered_console.h"

#include <gtest/gtest.h>

#include <memory>

namespace transept {
namespace {

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class OrderedConsoleTest : public ::testing::Test {
 protected:
  std::string shown() {
    std::string text(static_cast<size_t>(std::ftell(out_.get())), '\0');
    std::rewind(out_.get());
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out_.get()), text.size());
    return text;
  }

  std::unique_ptr<std::FILE, Closer> out_{std::tmpfile()};
  OrderedConsole console_{out_.get(), out_.get()};
};

TEST_F(OrderedConsoleTest, KeepsTheOrderOfFiles) {
  console_.result(1, "b1 ");
  console_.result(0, "a1 ");
  EXPECT_EQ(shown(), "a1 ");
  console_.note(2, "c1 ");
  console_.end(2);
  console_.result(0, "a2 ");
  console_.end(0);
  EXPECT_EQ(shown(), "a1 a2 b1 ");
  console_.result(1, "b2 ");
  EXPECT_EQ(shown(), "a1 a2 b1 b2 ");
  console_.end(1);
  console_.result(3, "d1 ");
  EXPECT_EQ(shown(), "a1 a2 b1 b2 c1 d1 ");
}

TEST_F(OrderedConsoleTest, LosesNothingAtTheEnd) {
  console_.result(2, "c ");
  console_.end(2);
  console_.result(1, "b ");
  console_.end_all();
  console_.note("all ");
  EXPECT_EQ(shown(), "b c all ");
  EXPECT_TRUE(console_.is_ok());
}

TEST(OrderedConsole, NoticesThatNobodyCanBeWrittenTo) {
  const std::unique_ptr<std::FILE, Closer> full(std::fopen("/dev/full", "w"));
  if (full == nullptr) GTEST_SKIP() << "no device /dev/full";
  OrderedConsole console(full.get(), stderr);
  console.result(0, "text\n");
  EXPECT_FALSE(console.is_ok());
}

}  // namespace
}  // namespace transept
