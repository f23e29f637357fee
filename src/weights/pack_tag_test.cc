// The tag of a packed file reads back as it was written, and is refused by its key where it is not one.
#include "weights/pack_tag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

TEST(PackTag, ReadsBackAsWritten) {
  for (const std::optional<WeightFormat> storage :
       {std::optional<WeightFormat>(), {kFloat32Format}, {kBFloat16Format}, {kFloat16Format}, {kInt8Format}}) {
    PackTag tag{.layout = 7, .storage = storage, .rank = 3, .num_ranks = 8, .matrices = {}};
    tag.matrices["a.weight"] = {51865, 384, kFloat16Format, {kInt8Format, InputRounding::kWide}};
    tag.matrices["a.coded"] = {8, 64, {WeightLayout::kCodes, 4, 32, true}, {kFloat32Format}};
    tag.matrices["b \"c\""] = {1, INT64_MAX, kBFloat16Format, {kFloat32Format}};
    tag.matrices[""] = {};
    const auto back = parse_pack_tag(pack_tag_metadata(tag));
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_TRUE(back->has_value());
    EXPECT_EQ(**back, tag);
  }
}

// The words are a promise: folders that have them must load.
TEST(PackTag, IsWrittenInTheWordsOfTheFirstVersion) {
  PackTag tag{.layout = 1, .storage = std::nullopt, .matrices = {}};
  tag.matrices["a"] = {3, 4, kFloat16Format, {kInt8Format, InputRounding::kOutliers}};
  tag.matrices["b"] = {3, 4, kFloat32Format, {kInt8Format, InputRounding::kWide}};
  tag.matrices["c"] = {3, 4, kFloat32Format, {kBFloat16Format, InputRounding::kBFloat16}};
  tag.matrices["d"] = {3, 4, kFloat32Format, {kFloat16Format}};
  tag.matrices["e"] = {3, 4, kFloat32Format, {int4_format(32), InputRounding::kGroups}};
  tag.matrices["f"] = {3, 4, float4_format(64), {float4_format(64)}};
  EXPECT_EQ(pack_tag_metadata(tag), (SafetensorsMetadata{{"transept.layout", "1"},
                                                         {"transept.storage", "stored"},
                                                         {"transept.matrix.a", "3 4 float16 int8 outliers"},
                                                         {"transept.matrix.b", "3 4 float32 int8 wide"},
                                                         {"transept.matrix.c", "3 4 float32 bfloat16 bfloat16"},
                                                         {"transept.matrix.d", "3 4 float32 float16"},
                                                         {"transept.matrix.e", "3 4 float32 int4-g32 groups"},
                                                         {"transept.matrix.f", "3 4 float4-g64 float4-g64"}}));
}

TEST(PackTag, NamesTheRankOfAPart) {
  PackTag tag{.layout = 2, .storage = std::nullopt, .rank = 1, .num_ranks = 4, .matrices = {}};
  EXPECT_EQ(pack_tag_metadata(tag).at("transept.ranks"), "1 of 4");
  tag = {.layout = 2, .storage = std::nullopt, .matrices = {}};
  EXPECT_FALSE(pack_tag_metadata(tag).contains("transept.ranks")) << "as the first version wrote it";
  for (const char* const text : {"", "1", "1 of", "1 of 1", "4 of 4", "-1 of 4", "1 of 4 ", "1 in 4", "0 of 0",
                                 "0 of 1", "0 of 1025", "1 of 4294967300", "0x1 of 4"}) {
    const SafetensorsMetadata metadata{{"transept.layout", "2"}, {"transept.ranks", text}};
    EXPECT_THAT(error_message(parse_pack_tag(metadata).status()), HasSubstr("transept.ranks")) << text;
  }
}

TEST(PackTag, KnowsTheCheckpoint) {
  const std::string digest(64, 'a');
  PackTag tag{.layout = 2, .source = digest, .matrices = {}};
  EXPECT_EQ(pack_tag_metadata(tag).at("transept.source"), digest);
  EXPECT_TRUE(**parse_pack_tag(pack_tag_metadata(tag)) == tag);
  tag.source = "";
  EXPECT_FALSE(pack_tag_metadata(tag).contains("transept.source")) << "as the first version wrote it";
  for (const std::string& text : {std::string(), digest.substr(1), digest + "a", digest.substr(1) + "A"}) {
    const SafetensorsMetadata metadata{{"transept.layout", "2"}, {"transept.source", text}};
    EXPECT_THAT(error_message(parse_pack_tag(metadata).status()), HasSubstr("transept.source")) << text;
  }
}

TEST(PackTag, TensorsNameTheirMatrix) {
  EXPECT_EQ(packed_matrix_of("a.weight.packed"), "a.weight");
  EXPECT_EQ(packed_matrix_of("a.weight.packed_scales"), "a.weight");
  EXPECT_EQ(packed_matrix_of("a.weight.packed_sums"), "a.weight");
  EXPECT_EQ(packed_matrix_of("a.weight"), std::nullopt);
  EXPECT_EQ(packed_matrix_of("a.packed.weight"), std::nullopt);
}

TEST(PackTag, FilesWithoutALayoutAreOrdinary) {
  EXPECT_FALSE(parse_pack_tag({})->has_value());
  EXPECT_FALSE(parse_pack_tag({{"transept.note", "1"}, {"transept.matrix.a", "nonsense"}})->has_value());
}

TEST(PackTag, WhatIsNotWrittenLikeOneIsRefused) {
  const auto error = [](std::string key, std::string value) {
    SafetensorsMetadata metadata{{"transept.layout", "1"}};
    metadata.insert_or_assign(std::move(key), std::move(value));
    return error_message(parse_pack_tag(metadata).status());
  };
  EXPECT_EQ(error("transept.matrix.a", "3 4 float32 int8 wide"), "");
  EXPECT_EQ(error("transept.matrix.a", "3 4 float32 int8 outliers"), "");
  EXPECT_EQ(error("transept.matrix.a", "3 4 float32 bfloat16 bfloat16"), "");
  EXPECT_EQ(error("transept.matrix.a", "3 4 int4-g128-zeros float32"), "");
  EXPECT_EQ(error("transept.matrix.a", "3 4 int4-g128-zeros int4-g128-zeros"), "");
  EXPECT_EQ(error("transept.matrix.a", "3 4 float32 int4-g32 groups"), "");
  EXPECT_EQ(error("transept.matrix.a", "3 4 float4-g64 float4-g64"), "");
  EXPECT_EQ(error("transept.later", "anything"), "");
  for (const char* layout : {"", "-1", "1.0", " 1", "one", "9223372036854775808"}) {
    EXPECT_THAT(error("transept.layout", layout), HasSubstr("transept.layout")) << layout;
  }
  EXPECT_THAT(error("transept.storage", "int3"), HasSubstr("transept.storage: \"int3\""));
  for (const char* matrix :
       {"", "3 4 float32", "3 4 float32 int8 wider", "3 4 float32 int8 wide wide", "3 4 float32 float16 wide",
        "3 4 float32 float16 outliers", "3 4 float32 float16 bfloat16", "-3 4 float32 int8", "3 4 int9 int8",
        "3 4 float32 int4-g32 wide", "3 4 float32 float4-g32 groups", "3 4 float32 int8-g32", "3 4 float32 int64",
        "3  4 float32 int8", "99999999999999999999 4 float32 int8", "3 4 F32 I8"}) {
    EXPECT_THAT(error("transept.matrix.a", matrix), HasSubstr("transept.matrix.a")) << matrix;
  }
}

}  // namespace
}  // namespace transept
