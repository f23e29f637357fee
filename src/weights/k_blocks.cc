#include "weights/k_blocks.h"

#include <cstring>

#include "tensor/dtype.h"

namespace transept {
namespace {

float half_at(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return float16_to_float(bits);
}

uint32_t byte_at(const std::byte* at, size_t index) { return std::to_integer<uint32_t>(at[index]); }

// Codes of 2 bits lie in planes of 32: weight i of a half of the block is in byte i % 32, plane i / 32.
uint32_t two_bits(const std::byte* codes, size_t i) {
  return byte_at(codes, i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

// Codes of 4 bits: of each 64 weights the first 32 in the lower halves of 32 bytes.
uint32_t four_bits(const std::byte* codes, size_t i) {
  return byte_at(codes, i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) & 15;
}

// The 6-bit scale and minimum of weights [32 j, 32 j + 32).
struct ScaleAndMinimum {
  uint32_t scale, minimum;
};
ScaleAndMinimum six_bits(const std::byte* scales, size_t j) {
  if (j < 4) return {byte_at(scales, j) & 63, byte_at(scales, j + 4) & 63};
  return {(byte_at(scales, j + 4) & 15) | byte_at(scales, j - 4) >> 6 << 4,
          byte_at(scales, j + 4) >> 4 | byte_at(scales, j) >> 6 << 4};
}

void read_q2(const std::byte* block, std::span<float, kKBlockWeights> weights) {
  const std::byte *scales = block, *codes = block + 16;
  const float d = half_at(block + 80), least = half_at(block + 82);
  for (size_t i = 0; i < weights.size(); ++i) {
    const uint32_t both = byte_at(scales, i / 16);
    const float scale = d * static_cast<float>(both & 15), minimum = least * static_cast<float>(both >> 4);
    const float product = scale * static_cast<float>(two_bits(codes, i));
    weights[i] = product - minimum;
  }
}

void read_q3(const std::byte* block, std::span<float, kKBlockWeights> weights) {
  const std::byte *thirds = block, *codes = block + 32, *scales = block + 96;
  const float d = half_at(block + 108);
  for (size_t i = 0; i < weights.size(); ++i) {
    const size_t j = i / 16;  // of 16 scales: 8 bytes have the lower 4 bits, 4 the upper 2
    const uint32_t low = byte_at(scales, j % 8) >> (j / 8 * 4) & 15,
                   high = byte_at(scales, 8 + j % 4) >> (j / 4 * 2) & 3;
    const uint32_t third = byte_at(thirds, i % 32) >> (i / 32) & 1;
    const float scale = d * (static_cast<float>(low | high << 4) - 32);
    weights[i] = scale * (static_cast<float>(two_bits(codes, i) | third << 2) - 4);
  }
}

void read_q4_or_q5(bool has_fifth, const std::byte* block, std::span<float, kKBlockWeights> weights) {
  const std::byte *scales = block + 4, *fifths = block + 16, *codes = has_fifth ? block + 48 : block + 16;
  const float d = half_at(block), least = half_at(block + 2);
  for (size_t i = 0; i < weights.size(); ++i) {
    const ScaleAndMinimum both = six_bits(scales, i / 32);
    const uint32_t fifth = has_fifth ? byte_at(fifths, i % 32) >> (i / 32) & 1 : 0;
    const float scale = d * static_cast<float>(both.scale), minimum = least * static_cast<float>(both.minimum);
    const float product = scale * static_cast<float>(four_bits(codes, i) | fifth << 4);
    weights[i] = product - minimum;
  }
}

void read_q6(const std::byte* block, std::span<float, kKBlockWeights> weights) {
  const std::byte *lows = block, *highs = block + 128, *scales = block + 192;
  const float d = half_at(block + 208);
  for (size_t i = 0; i < weights.size(); ++i) {
    // Of each 128 weights the first 64 in the lower halves of 64 bytes.
    const uint32_t low = byte_at(lows, i / 128 * 64 + i % 64) >> (i / 64 % 2 * 4) & 15;
    const auto scale = static_cast<float>(static_cast<int8_t>(byte_at(scales, i / 16)));
    weights[i] = d * scale * (static_cast<float>(low | two_bits(highs, i) << 4) - 32);
  }
}

}  // namespace

void read_k_block(KBlockType type, const std::byte* block, std::span<float, kKBlockWeights> weights) {
  switch (type) {
    case KBlockType::kQ2: return read_q2(block, weights);
    case KBlockType::kQ3: return read_q3(block, weights);
    case KBlockType::kQ4: return read_q4_or_q5(false, block, weights);
    case KBlockType::kQ5: return read_q4_or_q5(true, block, weights);
    case KBlockType::kQ6: return read_q6(block, weights);
  }
}

}  // namespace transept
