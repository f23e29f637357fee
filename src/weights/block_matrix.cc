#include "weights/block_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/mmap_file.h"
#include "tensor/dtype.h"
#include "weights/k_blocks.h"
#include "weights/weight_map.h"

namespace transept {
namespace {

struct Layout {
  BlockType type;
  std::string_view name;
  int64_t ggml_type;
  int64_t bytes;
  int32_t bits;
  int32_t offset;  // what is taken from a code
  bool has_minimum;
};
constexpr Layout kLayouts[] = {
    {BlockType::kQ4_0, "Q4_0", 2, 18, 4, 8, false},  {BlockType::kQ4_1, "Q4_1", 3, 20, 4, 0, true},
    {BlockType::kQ5_0, "Q5_0", 6, 22, 5, 16, false}, {BlockType::kQ5_1, "Q5_1", 7, 24, 5, 0, true},
    {BlockType::kQ8_0, "Q8_0", 8, 34, 8, 0, false},  {BlockType::kQ2_K, "Q2_K", 10, 84, 2, 0, true},
    {BlockType::kQ3_K, "Q3_K", 11, 110, 3, 0, true}, {BlockType::kQ4_K, "Q4_K", 12, 144, 4, 0, true},
    {BlockType::kQ5_K, "Q5_K", 13, 176, 5, 0, true}, {BlockType::kQ6_K, "Q6_K", 14, 210, 6, 0, true},
};

const Layout& layout_of(BlockType type) { return kLayouts[static_cast<size_t>(type)]; }

float half_at(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return float16_to_float(bits);
}

std::optional<BlockType> block_type_of_name(std::string_view name) {
  for (const Layout& layout : kLayouts) {
    if (layout.name == name) return layout.type;
  }
  return std::nullopt;
}

using BlockCodes = std::array<int8_t, kBlockWeights>;

// The codes of a block, less its offset.
BlockCodes unpack(const Layout& layout, const std::byte* block) {
  BlockCodes codes;
  const std::byte* at = block + (layout.has_minimum ? 4 : 2);
  if (layout.bits == 8) {
    std::memcpy(codes.data(), at, codes.size());
    return codes;
  }
  uint32_t fifth = 0;
  if (layout.bits == 5) {
    std::memcpy(&fifth, at, sizeof fifth);
    at += sizeof fifth;
  }
  constexpr size_t kHalf = kBlockWeights / 2;
  for (size_t j = 0; j < kHalf; ++j) {
    const auto both = std::to_integer<uint32_t>(at[j]);
    const uint32_t low = (both & 15) | ((fifth >> j) & 1) << 4, high = both >> 4 | ((fifth >> (j + kHalf)) & 1) << 4;
    codes[j] = static_cast<int8_t>(static_cast<int32_t>(low) - layout.offset);
    codes[j + kHalf] = static_cast<int8_t>(static_cast<int32_t>(high) - layout.offset);
  }
  return codes;
}

// Rows of blocks.
class Blocks {
 public:
  Blocks(const Layout& layout, std::span<const std::byte> bytes, int64_t n, int64_t k, const MmapFile* file)
      : layout_(layout), bytes_(bytes), row_bytes_(k / kBlockWeights * layout.bytes), file_(file) {
    CHECK(k % kBlockWeights == 0 && std::ssize(bytes) == n * row_bytes_);
  }

  const std::byte* block(int64_t row, int64_t input) const {
    return bytes_.data() + row * row_bytes_ + input / kBlockWeights * layout_.bytes;
  }
  const Layout& layout() const { return layout_; }
  void release(int64_t begin, int64_t count) const {
    if (file_ == nullptr) return;
    file_->release_pages(
        bytes_.subspan(static_cast<size_t>(begin * row_bytes_), static_cast<size_t>(count * row_bytes_)));
  }
  // Calls take(block, first input of it that is wanted, one past the last) for each block with inputs of `columns`.
  template <typename Take>
  void each(int64_t row, IndexRange columns, Take take) const {
    for (int64_t from = columns.begin; from < columns.end;) {
      const int64_t end = std::min(columns.end, (from / kBlockWeights + 1) * kBlockWeights);
      take(block(row, from), from, end);
      from = end;
    }
  }

 private:
  const Layout& layout_;
  std::span<const std::byte> bytes_;
  int64_t row_bytes_;
  const MmapFile* file_;
};

class CodeBlocks final : public CodedMatrix {
 public:
  CodeBlocks(const Blocks& blocks, int64_t n, int64_t k)
      : CodedMatrix(n, k,
                    {.layout = WeightLayout::kCodes,
                     .bits = blocks.layout().bits,
                     .group = static_cast<int32_t>(kBlockWeights)}),
        blocks_(blocks) {}

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override {
    int8_t* to = codes.data();
    blocks_.each(row, columns, [&](const std::byte* block, int64_t begin, int64_t end) {
      const BlockCodes all = unpack(blocks_.layout(), block);
      to = std::copy_n(all.data() + begin % kBlockWeights, end - begin, to);
    });
  }
  void read_scales(int64_t row, std::span<float> scales, std::span<int16_t> /*zeros*/) const override {
    for (size_t group = 0; group < scales.size(); ++group) {
      scales[group] = half_at(blocks_.block(row, static_cast<int64_t>(group) * kBlockWeights));
    }
  }
  void release_rows(int64_t begin, int64_t count) const override { blocks_.release(begin, count); }

 private:
  Blocks blocks_;
};

class MinimumBlocks final : public MatrixSource {
 public:
  MinimumBlocks(const Blocks& blocks, int64_t n, int64_t k) : MatrixSource(n, k, kFloat32Format), blocks_(blocks) {}

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override {
    float* to = out.data();
    for (int64_t row = begin; row < begin + count; ++row) {
      blocks_.each(row, columns, [&](const std::byte* block, int64_t from, int64_t end) {
        const BlockCodes codes = unpack(blocks_.layout(), block);
        const float scale = half_at(block), minimum = half_at(block + 2);
        for (int64_t j = from; j < end; ++j) {
          const float product = static_cast<float>(codes[static_cast<size_t>(j % kBlockWeights)]) * scale;
          *to++ = product + minimum;
        }
      });
    }
  }
  void release_rows(int64_t begin, int64_t count) const override { blocks_.release(begin, count); }
  bool is_quantized() const override { return true; }

 private:
  Blocks blocks_;
};

// Rows of k-quants.
class KBlocks final : public MatrixSource {
 public:
  KBlocks(const Layout& layout, std::span<const std::byte> bytes, int64_t n, int64_t k, const MmapFile* file)
      : MatrixSource(n, k, kFloat32Format),
        type_(static_cast<KBlockType>(static_cast<int>(layout.type) - static_cast<int>(BlockType::kQ2_K))),
        block_bytes_(layout.bytes),
        bytes_(bytes),
        file_(file) {
    CHECK(k % kKBlockWeights == 0 && std::ssize(bytes) == n * row_bytes());
  }

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override {
    std::array<float, kKBlockWeights> weights;
    float* to = out.data();
    for (int64_t row = begin; row < begin + count; ++row) {
      for (int64_t from = columns.begin; from < columns.end;) {
        const int64_t block = from / kKBlockWeights, end = std::min(columns.end, (block + 1) * kKBlockWeights);
        read_k_block(type_, bytes_.data() + row * row_bytes() + block * block_bytes_, weights);
        to = std::copy_n(weights.data() + from % kKBlockWeights, end - from, to);
        from = end;
      }
    }
  }
  void release_rows(int64_t begin, int64_t count) const override {
    if (file_ == nullptr) return;
    file_->release_pages(
        bytes_.subspan(static_cast<size_t>(begin * row_bytes()), static_cast<size_t>(count * row_bytes())));
  }
  bool is_quantized() const override { return true; }

 private:
  int64_t row_bytes() const { return k() / kKBlockWeights * block_bytes_; }

  KBlockType type_;
  int64_t block_bytes_;
  std::span<const std::byte> bytes_;
  const MmapFile* file_;
};

}  // namespace

int64_t block_weights(BlockType type) { return type >= BlockType::kQ2_K ? kKBlockWeights : kBlockWeights; }

std::string_view block_type_name(BlockType type) { return layout_of(type).name; }

std::optional<BlockType> block_type_of_ggml(int64_t type) {
  for (const Layout& layout : kLayouts) {
    if (layout.ggml_type == type) return layout.type;
  }
  return std::nullopt;
}

int64_t block_bytes(BlockType type) { return layout_of(type).bytes; }

std::unique_ptr<MatrixSource> make_block_matrix(BlockType type, std::span<const std::byte> bytes, int64_t n, int64_t k,
                                                const MmapFile* file) {
  if (type >= BlockType::kQ2_K) return std::make_unique<KBlocks>(layout_of(type), bytes, n, k, file);
  const Blocks blocks(layout_of(type), bytes, n, k, file);
  if (layout_of(type).has_minimum) return std::make_unique<MinimumBlocks>(blocks, n, k);
  return std::make_unique<CodeBlocks>(blocks, n, k);
}

bool BlockMatrixReader::has(const WeightMap& weights, std::string_view name) const {
  const std::optional<WeightMap::Form> form = weights.form_of(name);
  return form.has_value() && block_type_of_name(form->dtype).has_value();
}

StatusOr<std::unique_ptr<MatrixSource>> BlockMatrixReader::open(WeightMap& weights, std::string_view name, int64_t n,
                                                                int64_t k, WeightUse use) const {
  const WeightMap::Form form = *weights.form_of(name);
  const BlockType type = *block_type_of_name(form.dtype);
  const int64_t shape[] = {n, k};
  ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, weights.get_bytes(name, block_type_name(type), shape, use));
  return make_block_matrix(type, bytes, n, k, form.file);
}

}  // namespace transept
