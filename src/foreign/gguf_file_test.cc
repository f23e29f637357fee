// GGUF files: what they hold, and files that are none.
#include "foreign/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foreign/gguf_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;
using ::testing::StartsWith;

GgufWriter small_gguf_file() {
  GgufWriter file;
  file.text("general.architecture", "t5");
  file.number("t5.block_count", 2);
  file.real("t5.epsilon", 0.5f);
  file.raw("flag", GgufWriter::kBool, static_cast<uint8_t>(1));
  file.texts("words", {"a", "", "bc"});
  file.numbers<float>("scores", GgufWriter::kFloat32, {1, -2});
  file.numbers<int32_t>("types", 5, {3, -1});
  file.numbers<uint8_t>("map", 0, {1, 2, 3});
  file.tensor("x", {2, 3}, 0, std::string(24, '\1'));
  file.tensor("y", {2, 64}, 8, std::string(136, '\2'));
  file.tensor("z", {4}, 30, std::string(8, '\3'));
  return file;
}

std::span<const std::byte> gguf_span(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string gguf_error(std::string_view bytes) {
  const auto parsed = GgufFile::parse(gguf_span(bytes), "m.gguf");
  EXPECT_FALSE(parsed.ok());
  return parsed.ok() ? "" : error_message(parsed.status());
}

TEST(GgufFile, IsReadWhole) {
  for (const uint32_t version : {2, 3}) {
    const std::string bytes = small_gguf_file().bytes(version);
    const auto file = GgufFile::parse(gguf_span(bytes), "m.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*file->text("general.architecture"), "t5");
    EXPECT_EQ(*file->integer("t5.block_count", 1, 10), 2);
    EXPECT_EQ(*file->integer("flag", 0, 1), 1);
    EXPECT_EQ(*file->number("t5.epsilon", 0, 1), 0.5);
    EXPECT_THAT(**file->texts("words"), ElementsAre("a", "", "bc"));
    EXPECT_THAT(**file->numbers("scores"), ElementsAre(1, -2));
    EXPECT_THAT(**file->integers("types"), ElementsAre(3, -1));
    EXPECT_EQ(file->bytes("map")->size(), 3u);
    ASSERT_EQ(file->tensors().size(), 3u);
    EXPECT_THAT(file->tensors()[0].shape, ElementsAre(2, 3));
    EXPECT_EQ(file->tensors()[0].data.front(), std::byte{1});
    EXPECT_EQ(file->tensors()[1].blocks, BlockType::kQ8_0);
    EXPECT_EQ(file->tensors()[1].data.size(), 136u);
    EXPECT_EQ(file->tensors()[2].dtype, "BF16");
    EXPECT_EQ(gguf_architecture(gguf_span(bytes).first(80)), "t5");
  }
}

TEST(GgufFile, ValuesHaveKindsAndRanges) {
  const std::string bytes = small_gguf_file().bytes();
  const GgufFile file = *GgufFile::parse(gguf_span(bytes), "m.gguf");
  EXPECT_EQ(*file.integer("missing", 0, 9, 4), 4);
  EXPECT_EQ(*file.texts("missing"), nullptr);
  EXPECT_TRUE(file.bytes("missing")->empty());
  EXPECT_THAT(error_message(file.integer("missing", 0, 9).status()), HasSubstr("m.gguf: missing: is missing"));
  EXPECT_THAT(error_message(file.integer("t5.block_count", 3, 9).status()), HasSubstr("2 is not from 3 to 9"));
  EXPECT_THAT(error_message(file.integer("words", 0, 9).status()), HasSubstr("is no whole number"));
  EXPECT_THAT(error_message(file.text("t5.block_count").status()), HasSubstr("is no text"));
  EXPECT_THAT(error_message(file.numbers("words").status()), HasSubstr("is no list of numbers"));
}

TEST(GgufFile, CutAnywhereIsAnErrorThatNamesThePlace) {
  const std::string whole = small_gguf_file().bytes();
  // Behind the last tensor's bytes there is padding alone.
  for (size_t size = 0; size < whole.size() - 24; ++size) {
    EXPECT_THAT(gguf_error(whole.substr(0, size)), StartsWith("m.gguf: ")) << size;
    (void)gguf_architecture(gguf_span(whole).first(size));
  }
}

TEST(GgufFile, SizesAreChecked) {
  const auto with = [](size_t at, uint64_t value) {
    std::string bytes = small_gguf_file().bytes();
    bytes.replace(at, 8, reinterpret_cast<const char*>(&value), 8);
    return gguf_error(bytes);
  };
  EXPECT_THAT(with(8, uint64_t{1} << 60), HasSubstr("number of tensors"));
  EXPECT_THAT(with(16, uint64_t{1} << 60), HasSubstr("number of keys"));
  EXPECT_THAT(with(24, uint64_t{1} << 63), HasSubstr("length of a text"));
  EXPECT_THAT(gguf_error(small_gguf_file().bytes(1)), HasSubstr("version: 1 is not supported"));
  GgufWriter twice = small_gguf_file();
  twice.number("t5.block_count", 2);
  EXPECT_THAT(gguf_error(twice.bytes()), AllOf(HasSubstr("\"t5.block_count\""), HasSubstr("is there twice")));
  GgufWriter lists = small_gguf_file();
  lists.numbers<uint32_t>("nested", GgufWriter::kList, {1});
  EXPECT_THAT(gguf_error(lists.bytes()), HasSubstr("is a list of lists"));
  GgufWriter unknown = small_gguf_file();
  unknown.raw("odd", 13, uint32_t{0});
  EXPECT_THAT(gguf_error(unknown.bytes()), HasSubstr("type 13 is not known"));
  GgufWriter large = small_gguf_file();
  large.raw("large", GgufWriter::kUint64, UINT64_MAX);
  EXPECT_THAT(gguf_error(large.bytes()), HasSubstr("is too large"));
  for (const uint32_t alignment : {0u, 7u, 48u, 1u << 20}) {
    GgufWriter file = small_gguf_file();
    file.number("general.alignment", alignment);
    EXPECT_THAT(gguf_error(file.bytes()), HasSubstr("general.alignment")) << alignment;
  }
}

TEST(GgufFile, TensorsLieInsideAndApart) {
  const auto with = [](const std::vector<int64_t>& shape, uint32_t type, uint64_t offset) {
    GgufWriter file = small_gguf_file();
    file.place("last", shape, type, offset);
    return gguf_error(file.bytes());
  };
  EXPECT_THAT(with({8}, 0, 1 << 20), HasSubstr("tensor \"last\": lies outside the file"));
  EXPECT_THAT(with({8}, 0, UINT64_MAX - 31), HasSubstr("lies outside the file"));
  EXPECT_THAT(with({8}, 0, 16), HasSubstr("no multiple of 32"));
  EXPECT_THAT(with({8}, 0, 0), HasSubstr("lie over each other at offset 0"));
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0, 0), HasSubstr("5 dimensions"));
  EXPECT_THAT(with({0}, 0, 0), HasSubstr("a dimension is 0"));
  EXPECT_THAT(with({1 << 30, 1 << 30, 1 << 30, 1 << 30}, 0, 0), HasSubstr("larger than the file"));
  EXPECT_THAT(with({2, 33}, 8, 0), HasSubstr("no whole blocks"));
  EXPECT_THAT(with({2, 256}, 16, 0), AllOf(HasSubstr("ggml type 16 is not supported"), HasSubstr("q8_0")));
}

}  // namespace
}  // namespace transept
