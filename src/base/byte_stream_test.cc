// What is written is read back; what is not there, too large, or written in another form than the one it has, fails the
// reader by the value's name, and everything after it is empty.
#include "base/byte_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(ByteStream, VarintsAreThoseOfProtocolBuffers) {
  std::vector<std::byte> bytes;
  {
    ByteWriter writer(bytes);
    for (const uint64_t value : {0, 127, 128, 300}) writer.varint(value);
    for (const int64_t value : {0, -1, 1, -2}) writer.zigzag(value);
  }
  EXPECT_EQ(bytes, bytes_of({0, 127, 0x80, 1, 0xAC, 2, 0, 1, 2, 3}));
}

TEST(ByteStream, NumbersComeBack) {
  const uint64_t unsigned_numbers[] = {0, 1, 127, 128, 1u << 31, std::numeric_limits<uint64_t>::max()};
  const int64_t signed_numbers[] = {
      0, -1, 63, -64, 64, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  std::vector<std::byte> bytes;
  {
    ByteWriter writer(bytes);
    for (const uint64_t value : unsigned_numbers) writer.varint(value);
    for (const int64_t value : signed_numbers) writer.zigzag(value);
    writer.flag(true);
    writer.flag(false);
    writer.float32(-0.0f);
    writer.float64(1e300);
  }
  ByteReader reader(bytes, "x");
  for (const uint64_t value : unsigned_numbers) EXPECT_EQ(reader.varint("n"), value);
  for (const int64_t value : signed_numbers) EXPECT_EQ(reader.zigzag("n"), value);
  EXPECT_TRUE(reader.flag("f"));
  EXPECT_FALSE(reader.flag("f"));
  EXPECT_TRUE(std::signbit(reader.float32("r")));
  EXPECT_EQ(reader.float64("r"), 1e300);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.num_left(), 0u);
}

TEST(ByteStream, ListsTakeTheNarrowestForm) {
  const std::vector<std::pair<std::vector<int32_t>, size_t>> lists = {
      {{}, 1},          {{0, 255}, 2 + 2}, {{256, 1}, 2 + 4},    {{65535}, 2 + 2},
      {{65536}, 2 + 4}, {{-1, 3}, 2 + 8},  {{0x7FFFFFFF}, 2 + 4}};
  for (const auto& [list, size] : lists) {
    std::vector<std::byte> bytes;
    {
      ByteWriter writer(bytes);
      writer.ints(list);
    }
    EXPECT_EQ(bytes.size(), size);
    ByteReader reader(bytes, "x");
    std::vector<int32_t> read = {9, 9, 9};
    reader.ints("list", read);
    EXPECT_THAT(read, ElementsAreArray(list));
    EXPECT_TRUE(reader.ok() && reader.num_left() == 0);
  }
  std::vector<std::byte> bytes;
  {
    ByteWriter writer(bytes);
    writer.floats(std::vector<float>{1.5f, -2});
  }
  ByteReader reader(bytes, "x");
  std::vector<float> floats;
  reader.floats("list", floats);
  EXPECT_THAT(floats, ElementsAre(1.5f, -2));
}

TEST(ByteStream, ABufferIsUsedAgain) {
  std::vector<std::byte> bytes = bytes_of({7});
  {
    ByteWriter writer(bytes);
    for (int i = 0; i < 1000; ++i) writer.varint(300);
  }
  EXPECT_EQ(bytes.size(), 2001u);
  EXPECT_EQ(bytes[0], std::byte{7}) << "what was there stays";
}

TEST(ByteStream, WhatIsNoNumberFailsByItsName) {
  const auto error_of = [](std::vector<std::byte> bytes, auto read) {
    ByteReader reader(bytes, "message");
    read(reader);
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(reader.varint("later"), 0u);
    EXPECT_FALSE(reader.flag("later"));
    return error_message(reader.status());
  };
  const auto varint = [](ByteReader& reader) { EXPECT_EQ(reader.varint("n"), 0u); };
  EXPECT_EQ(error_of({}, varint), "message: byte 0: n is cut off");
  EXPECT_EQ(error_of(bytes_of({0x80}), varint), "message: byte 1: n is cut off");
  EXPECT_THAT(error_of(bytes_of({0x80, 0}), varint), HasSubstr("n is no number"));  // 0 in two bytes
  EXPECT_THAT(error_of(bytes_of({255, 255, 255, 255, 255, 255, 255, 255, 255, 2}), varint), HasSubstr("no number"));
  EXPECT_THAT(error_of(bytes_of({2}), [](ByteReader& reader) { reader.flag("f"); }), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(error_of(bytes_of({1, 2, 3}), [](ByteReader& reader) { reader.float32("r"); }), HasSubstr("cut off"));
  EXPECT_THAT(error_of(bytes_of({0xFF, 0xFF, 0xFF, 0xFF, 0x1F}),
                       [](ByteReader& reader) { EXPECT_EQ(reader.integer<int32_t>("n"), 0); }),
              HasSubstr("n is out of range"));
}

TEST(ByteStream, ListsThatCannotBeThereTakeNoMemory) {
  const auto error_of = [](std::vector<std::byte> bytes) {
    ByteReader reader(bytes, "message");
    std::vector<int32_t> list = {1};
    reader.ints("list", list);
    EXPECT_THAT(list, IsEmpty());
    EXPECT_LT(list.capacity(), 100u);
    return error_message(reader.status());
  };
  EXPECT_THAT(error_of(bytes_of({0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 0})), HasSubstr("list has more elements than"));
  EXPECT_THAT(error_of(bytes_of({2, 4, 1, 0, 0, 0, 2})), HasSubstr("list has more elements than"));
  EXPECT_THAT(error_of(bytes_of({1, 3, 0, 0, 0})), HasSubstr("no known width"));
}

TEST(ByteStream, AListHasOneForm) {
  const std::vector<std::byte> bytes = bytes_of({1, 2, 9, 0});  // 9 in two bytes
  ByteReader reader(bytes, "message");
  std::vector<int32_t> list;
  reader.ints("list", list);
  EXPECT_THAT(error_message(reader.status()), HasSubstr("packed wider"));
}

TEST(ByteStream, BytesAreBorrowed) {
  std::vector<std::byte> bytes;
  {
    ByteWriter writer(bytes);
    writer.bytes(bytes_of({7, 8, 9}));
    writer.bytes({});
    writer.flag(true);
  }
  EXPECT_EQ(bytes, bytes_of({3, 7, 8, 9, 0, 1}));
  ByteReader reader(bytes, "message");
  const auto value = reader.bytes("value");
  EXPECT_EQ(value.data(), bytes.data() + 1);
  EXPECT_EQ(value.size(), 3u);
  EXPECT_TRUE(reader.bytes("empty").empty());
  EXPECT_TRUE(reader.flag("flag"));
  const std::vector<std::byte> cut = bytes_of({3, 7, 8});
  ByteReader cut_reader(cut, "message");
  EXPECT_TRUE(cut_reader.bytes("value").empty());
  EXPECT_THAT(error_message(cut_reader.status()), HasSubstr("value has more elements than"));
}

}  // namespace
}  // namespace transept
