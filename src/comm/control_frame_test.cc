#include "comm/control_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

HelloFrame hello() {
  HelloFrame frame{.rank = 3, .size = 4, .member = {"host", 77}, .settings = {{"--dtype", "auto"}, {"", ""}}};
  frame.nonce.fill(std::byte{1});
  frame.proof.fill(std::byte{2});
  return frame;
}

std::vector<std::byte> without_size(const ControlFrame& frame) {
  std::vector<std::byte> bytes = encode_frame(frame);
  bytes.erase(bytes.begin(), bytes.begin() + 4);
  return bytes;
}

TEST(ControlFrame, EachKindComesBack) {
  const StatusOr<ControlFrame> said = decode_frame(without_size(hello()));
  ASSERT_TRUE(said.ok()) << said.status();
  const HelloFrame& back = std::get<HelloFrame>(*said);
  EXPECT_EQ(back.rank, 3);
  EXPECT_EQ(back.size, 4);
  EXPECT_EQ(back.nonce, hello().nonce);
  EXPECT_EQ(back.proof, hello().proof);
  EXPECT_EQ(back.member, hello().member);
  EXPECT_EQ(back.settings, hello().settings);
  WelcomeFrame welcome{.members = {{"a", 1}, {"b", 2}}};
  welcome.secret.fill(std::byte{9});
  const StatusOr<ControlFrame> welcomed = decode_frame(without_size(welcome));
  ASSERT_TRUE(welcomed.ok()) << welcomed.status();
  EXPECT_EQ(std::get<WelcomeFrame>(*welcomed).members, welcome.members);
  EXPECT_EQ(std::get<WelcomeFrame>(*welcomed).secret, welcome.secret);
  const Status why = absl::UnavailableError("rank 1 has ended");
  EXPECT_EQ(std::get<FailureFrame>(*decode_frame(without_size(FailureFrame{why}))).why, why);
  const std::vector<std::vector<std::byte>> values = {{std::byte{1}}, {}};
  EXPECT_EQ(std::get<ValuesFrame>(*decode_frame(without_size(ValuesFrame{values}))).values, values);
  EXPECT_EQ(std::get<ValueFrame>(*decode_frame(without_size(ValueFrame{values[0]}))).bytes, values[0]);
  EXPECT_TRUE(std::holds_alternative<GoodbyeFrame>(*decode_frame(without_size(GoodbyeFrame{}))));
  EXPECT_TRUE(std::holds_alternative<ChallengeFrame>(*decode_frame(without_size(ChallengeFrame{}))));
}

TEST(ControlFrame, EveryCutIsAnError) {
  const std::vector<std::byte> bytes = without_size(hello());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_frame(std::span(bytes).first(size)).ok()) << size;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THAT(error_message(decode_frame(longer).status()), HasSubstr("comes too late"));
}

TEST(ControlFrame, AnotherVersionIsNamed) {
  std::vector<std::byte> bytes = without_size(ChallengeFrame{});
  bytes[16] = std::byte{9};  // behind the kind, and 14 letters with their number
  EXPECT_THAT(error_message(decode_frame(bytes).status()), HasSubstr("is 9, and this build has 1"));
}

TEST(ControlFrame, FramesAreTakenOffAStreamOneByOne) {
  std::vector<std::byte> stream = encode_frame(GoodbyeFrame{});
  const std::vector<std::byte> more = encode_frame(ValueFrame{{std::byte{5}}});
  stream.insert(stream.end(), more.begin(), more.end() - 1);
  StatusOr<std::optional<ControlFrame>> frame = take_frame(stream, 100);
  ASSERT_TRUE(frame.ok() && frame->has_value());
  EXPECT_TRUE(std::holds_alternative<GoodbyeFrame>(**frame));
  frame = take_frame(stream, 100);
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame->has_value()) << "a byte is missing";
  stream.push_back(more.back());
  frame = take_frame(stream, 100);
  ASSERT_TRUE(frame.ok() && frame->has_value());
  EXPECT_EQ(std::get<ValueFrame>(**frame).bytes, std::vector{std::byte{5}});
  EXPECT_TRUE(stream.empty());
}

TEST(ControlFrame, ASizeBeyondTheLimitIsRefusedBeforeItsBytesCome) {
  std::vector<std::byte> stream = {std::byte{101}, std::byte{0}, std::byte{0}, std::byte{0}};
  EXPECT_THAT(error_message(take_frame(stream, 100).status()), HasSubstr("says that it has 101 bytes"));
}

TEST(ControlFrame, ALongErrorIsCut) {
  const Status why = invalid_argument(std::string(100'000, 'x'));
  EXPECT_LT(encode_frame(FailureFrame{why}).size(), 5000u);
}

}  // namespace
}  // namespace transept
