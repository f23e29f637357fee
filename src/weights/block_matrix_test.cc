// ggml's blocks against their definition.
#include "weights/block_matrix.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "weights/k_blocks.h"

namespace transept {
namespace {

// A matrix of random blocks, and what each weight means by ggml's definition, written out for each type.
struct RandomBlocks {
  std::string bytes;
  std::vector<float> weights;

  void half(float value) {
    const uint16_t bits = float_to_float16(value);
    bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
};

RandomBlocks random_blocks(BlockType type, int64_t num_blocks, uint32_t seed) {
  std::mt19937 random(seed);
  RandomBlocks made;
  for (int64_t i = 0; i < num_blocks; ++i) {
    const float scale = float16_to_float(float_to_float16(static_cast<float>(random() % 1000) / 777 - 0.6f));
    const float least = float16_to_float(float_to_float16(static_cast<float>(random() % 1000) / 555 - 0.9f));
    const bool has_minimum = type == BlockType::kQ4_1 || type == BlockType::kQ5_1;
    made.half(scale);
    if (has_minimum) made.half(least);
    if (type == BlockType::kQ8_0) {
      for (int j = 0; j < 32; ++j) {
        const auto code = static_cast<int8_t>(random());
        made.bytes.push_back(static_cast<char>(code));
        made.weights.push_back(scale * static_cast<float>(code));
      }
      continue;
    }
    const bool has_fifth = type == BlockType::kQ5_0 || type == BlockType::kQ5_1;
    const auto fifth = has_fifth ? static_cast<uint32_t>(random()) : 0;
    if (has_fifth) made.bytes.append(reinterpret_cast<const char*>(&fifth), sizeof fifth);
    std::vector<uint32_t> codes(32);
    for (size_t j = 0; j < 16; ++j) {
      const uint32_t both = random() % 256;
      made.bytes.push_back(static_cast<char>(both));
      codes[j] = both % 16;
      codes[j + 16] = both / 16;
    }
    for (size_t j = 0; j < 32; ++j) {
      if ((fifth >> j & 1) != 0) codes[j] += 16;
      const auto code = static_cast<float>(codes[j]);
      switch (type) {
        case BlockType::kQ4_0: made.weights.push_back((code - 8) * scale); break;
        case BlockType::kQ5_0: made.weights.push_back((code - 16) * scale); break;
        default: made.weights.push_back(code * scale + least); break;
      }
    }
  }
  return made;
}

constexpr BlockType kTypes[] = {BlockType::kQ4_0, BlockType::kQ4_1, BlockType::kQ5_0, BlockType::kQ5_1,
                                BlockType::kQ8_0};

TEST(BlockMatrix, GivesWhatTheBlocksMean) {
  constexpr int64_t kRows = 5, kInputs = 96;
  for (const BlockType type : kTypes) {
    SCOPED_TRACE(block_type_name(type));
    const RandomBlocks made = random_blocks(type, kRows * kInputs / kBlockWeights, 7);
    ASSERT_EQ(std::ssize(made.bytes), kRows * kInputs / kBlockWeights * block_bytes(type));
    const auto matrix = make_block_matrix(type, std::as_bytes(std::span(made.bytes)), kRows, kInputs, nullptr);
    std::vector<float> all(static_cast<size_t>(kRows * kInputs));
    matrix->read_rows(0, kRows, {0, kInputs}, all);
    EXPECT_EQ(all, made.weights);
    for (const IndexRange columns : {IndexRange{0, 1}, IndexRange{31, 33}, IndexRange{40, 40}, IndexRange{17, 96}}) {
      std::vector<float> some(static_cast<size_t>(2 * columns.size())), wanted;
      matrix->read_rows(3, 2, columns, some);
      for (int64_t row = 3; row < 5; ++row) {
        const auto at = made.weights.begin() + row * kInputs;
        wanted.insert(wanted.end(), at + columns.begin, at + columns.end);
      }
      EXPECT_EQ(some, wanted) << columns.begin << " to " << columns.end;
    }
  }
}

TEST(BlockMatrix, TypesWithoutAMinimumAreCodes) {
  for (const BlockType type : kTypes) {
    const RandomBlocks made = random_blocks(type, 4, 3);
    const auto matrix = make_block_matrix(type, std::as_bytes(std::span(made.bytes)), 2, 64, nullptr);
    const bool has_minimum = type == BlockType::kQ4_1 || type == BlockType::kQ5_1;
    ASSERT_EQ(matrix->coded() == nullptr, has_minimum) << block_type_name(type);
    if (has_minimum) continue;
    EXPECT_EQ(matrix->format().group, 32);
    EXPECT_EQ(matrix->coded()->num_groups(), 2);
    std::vector<int8_t> codes(5);
    std::vector<float> scales(2);
    matrix->coded()->read_codes(1, {30, 35}, codes);
    matrix->coded()->read_scales(1, scales, {});
    for (size_t i = 0; i < codes.size(); ++i) {
      EXPECT_EQ(static_cast<float>(codes[i]) * scales[(30 + i) / 32], made.weights[64 + 30 + i]);
      EXPECT_LT(codes[i], 1 << (matrix->format().bits - 1));
      EXPECT_GE(codes[i], -(1 << (matrix->format().bits - 1)));
    }
  }
}

TEST(BlockMatrix, TypesOfGgmlAreKnownByNumber) {
  EXPECT_EQ(block_type_of_ggml(2), BlockType::kQ4_0);
  EXPECT_EQ(block_type_of_ggml(8), BlockType::kQ8_0);
  for (const int64_t other : {-1, 0, 1, 4, 5, 9, 15, 16, 1000}) EXPECT_EQ(block_type_of_ggml(other), std::nullopt);
}

TEST(BlockMatrix, RowsOfKQuantsAreReadInParts) {
  constexpr int64_t kRows = 3, kInputs = 2 * kKBlockWeights;
  for (int64_t ggml_type = 10; ggml_type <= 14; ++ggml_type) {
    const BlockType type = *block_type_of_ggml(ggml_type);
    EXPECT_EQ(block_weights(type), 256);
    const auto of_blocks = static_cast<KBlockType>(ggml_type - 10);
    std::string bytes(static_cast<size_t>(kRows * 2 * block_bytes(type)), '\0');
    std::mt19937 random(7);
    for (char& byte : bytes) byte = static_cast<char>(random() & 0x3F);  // no exponent of all ones
    const std::span<const std::byte> span = std::as_bytes(std::span(bytes));
    std::vector<float> all;
    for (int64_t i = 0; i < 2 * kRows; ++i) {
      std::array<float, kKBlockWeights> block;
      read_k_block(of_blocks, span.data() + i * block_bytes(type), block);
      all.insert(all.end(), block.begin(), block.end());
    }
    const auto matrix = make_block_matrix(type, span, kRows, kInputs, nullptr);
    EXPECT_TRUE(matrix->is_quantized());
    for (const IndexRange columns : {IndexRange{0, kInputs}, {5, 9}, {250, 300}, {256, 512}, {511, 512}}) {
      std::vector<float> part(static_cast<size_t>(2 * columns.size()));
      matrix->read_rows(1, 2, columns, part);
      for (int64_t i = 0; i < std::ssize(part); ++i) {
        const int64_t row = 1 + i / columns.size(), column = columns.begin + i % columns.size();
        ASSERT_EQ(part[static_cast<size_t>(i)], all[static_cast<size_t>(row * kInputs + column)])
            << block_type_name(type) << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace transept
