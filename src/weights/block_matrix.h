// Matrices in ggml's blocks of 32 or 256 weights, as whisper.cpp and llama.cpp write them: rows of blocks, each with
// scales of its own. Values and pure functions: thread-safe.
// Source: ggml-common.h and dequantize_row_* of ggml-quants.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "weights/matrix_reader.h"
#include "weights/matrix_source.h"

namespace transept {

class MmapFile;

// A block: a float16 scale d; q4_1 and q5_1: a float16 minimum m; q5_0 and q5_1: the fifth bits of 32 codes in 4 bytes,
// little-endian; then 16 bytes whose lower halves are the first 16 codes and whose upper ones the others (q8_0: 32
// signed codes of a byte).
enum class BlockType : uint8_t {
  kQ4_0,  // (q - 8) d
  kQ4_1,  // q d + m
  kQ5_0,  // (q - 16) d
  kQ5_1,  // q d + m
  kQ8_0,  // q d
  kQ2_K,  // weights/k_blocks.h, and those that follow
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};
inline constexpr int64_t kBlockWeights = 32;  // of the types above kQ2_K

// 32 or 256.
int64_t block_weights(BlockType type);

// "Q5_1": what a WeightMap calls the type.
std::string_view block_type_name(BlockType type);
// ggml_type. nullopt: another type.
std::optional<BlockType> block_type_of_ggml(int64_t type);
int64_t block_bytes(BlockType type);

// A matrix [n, k] whose rows lie one after the other in `bytes`. Types without a minimum are codes with groups of 32.
// Borrows the bytes, and `file` that maps them (null: other memory). REQUIRES: k is a multiple of block_weights();
// bytes.size() is that of n rows.
std::unique_ptr<MatrixSource> make_block_matrix(BlockType type, std::span<const std::byte> bytes, int64_t n, int64_t k,
                                                const MmapFile* file);

// Finds such matrices among the tensors of a WeightMap, by their types.
class BlockMatrixReader final : public MatrixReader {
 public:
  bool has(const WeightMap& weights, std::string_view name) const override;
  // Errors: another shape.
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;
};

}  // namespace transept
