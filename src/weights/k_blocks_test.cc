// k-quants against ggml's definition, written out here once more in its order, and against what PyPI's gguf makes of
// the same bytes (testdata/k_quants.bin, tools/make_k_quants.py).
#include "weights/k_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "tensor/dtype.h"

namespace transept {
namespace {

struct Kind {
  KBlockType type;
  size_t bytes;
};
constexpr Kind kKinds[] = {{KBlockType::kQ2, 84},
                           {KBlockType::kQ3, 110},
                           {KBlockType::kQ4, 144},
                           {KBlockType::kQ5, 176},
                           {KBlockType::kQ6, 210}};

float half(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return float16_to_float(bits);
}

// As dequantize_row_qN_K goes through a block: by halves of 128 or quarters of 64 weights, pointers moving on.
using Weights = std::vector<float>;

Weights defined_q2(const uint8_t* block) {
  Weights y;
  const uint8_t *scales = block, *q = block + 16;
  const float d = half(block + 80), min = half(block + 82);
  size_t is = 0;
  for (int n = 0; n < 256; n += 128, q += 32) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int part = 0; part < 2; ++part) {
        const uint8_t sc = scales[is++];
        const float dl = d * static_cast<float>(sc & 0xF), ml = min * static_cast<float>(sc >> 4);
        for (int l = 0; l < 16; ++l) {
          const float product = dl * static_cast<float>((q[l + 16 * part] >> shift) & 3);
          y.push_back(product - ml);
        }
      }
    }
  }
  return y;
}

Weights defined_q3(const uint8_t* block) {
  constexpr uint32_t kMask1 = 0x03030303, kMask2 = 0x0f0f0f0f;
  Weights y;
  const uint8_t *hm = block, *q = block + 32;
  std::array<uint32_t, 4> aux = {};
  std::memcpy(aux.data(), block + 96, 12);
  const uint32_t tmp = aux[2];
  aux[2] = ((aux[0] >> 4) & kMask2) | (((tmp >> 4) & kMask1) << 4);
  aux[3] = ((aux[1] >> 4) & kMask2) | (((tmp >> 6) & kMask1) << 4);
  aux[0] = (aux[0] & kMask2) | (((tmp >> 0) & kMask1) << 4);
  aux[1] = (aux[1] & kMask2) | (((tmp >> 2) & kMask1) << 4);
  std::array<int8_t, 16> scales;
  std::memcpy(scales.data(), aux.data(), scales.size());
  const float d = half(block + 108);
  size_t is = 0;
  int m = 1;
  for (int n = 0; n < 256; n += 128, q += 32) {
    for (int shift = 0; shift < 8; shift += 2, m <<= 1) {
      for (int part = 0; part < 2; ++part) {
        const float dl = d * static_cast<float>(scales[is++] - 32);
        for (int l = 16 * part; l < 16 * (part + 1); ++l) {
          y.push_back(dl * static_cast<float>(((q[l] >> shift) & 3) - ((hm[l] & m) != 0 ? 0 : 4)));
        }
      }
    }
  }
  return y;
}

void scale_min(int j, const uint8_t* q, uint8_t& d, uint8_t& m) {
  if (j < 4) {
    d = q[j] & 63;
    m = q[j + 4] & 63;
  } else {
    d = static_cast<uint8_t>((q[j + 4] & 0xF) | ((q[j - 4] >> 6) << 4));
    m = static_cast<uint8_t>((q[j + 4] >> 4) | ((q[j] >> 6) << 4));
  }
}

Weights defined_q4_or_q5(const uint8_t* block, bool is_q5) {
  Weights y;
  const uint8_t *scales = block + 4, *qh = block + 16, *ql = is_q5 ? block + 48 : block + 16;
  const float d = half(block), min = half(block + 2);
  int is = 0;
  int u = 1;
  for (int j = 0; j < 256; j += 64, ql += 32) {
    for (int part = 0; part < 2; ++part, u <<= 1) {
      uint8_t sc = 0, m = 0;
      scale_min(is++, scales, sc, m);
      const float d1 = d * static_cast<float>(sc), m1 = min * static_cast<float>(m);
      for (int l = 0; l < 32; ++l) {
        const int code = (part == 0 ? ql[l] & 0xF : ql[l] >> 4) + (is_q5 && (qh[l] & u) != 0 ? 16 : 0);
        const float product = d1 * static_cast<float>(code);
        y.push_back(product - m1);
      }
    }
  }
  return y;
}

Weights defined_q6(const uint8_t* block) {
  Weights y(256);
  const uint8_t *ql = block, *qh = block + 128;
  std::array<int8_t, 16> scales;
  std::memcpy(scales.data(), block + 192, scales.size());
  const float d = half(block + 208);
  for (size_t n = 0; n < 256; n += 128, ql += 64, qh += 32) {
    for (size_t l = 0; l < 32; ++l) {
      const int codes[] = {(ql[l] & 0xF) | (((qh[l] >> 0) & 3) << 4), (ql[l + 32] & 0xF) | (((qh[l] >> 2) & 3) << 4),
                           (ql[l] >> 4) | (((qh[l] >> 4) & 3) << 4), (ql[l + 32] >> 4) | (((qh[l] >> 6) & 3) << 4)};
      for (size_t i = 0; i < 4; ++i) {
        y[n + l + 32 * i] = d * static_cast<float>(scales[n / 16 + l / 16 + 2 * i]) * static_cast<float>(codes[i] - 32);
      }
    }
  }
  return y;
}

Weights defined(KBlockType type, const uint8_t* block) {
  switch (type) {
    case KBlockType::kQ2: return defined_q2(block);
    case KBlockType::kQ3: return defined_q3(block);
    case KBlockType::kQ4: return defined_q4_or_q5(block, false);
    case KBlockType::kQ5: return defined_q4_or_q5(block, true);
    case KBlockType::kQ6: break;
  }
  return defined_q6(block);
}

Weights read(KBlockType type, const void* block) {
  Weights weights(kKBlockWeights);
  read_k_block(type, static_cast<const std::byte*>(block), std::span<float, kKBlockWeights>(weights));
  return weights;
}

TEST(KBlocks, AreReadAsGgmlDefinesThem) {
  std::mt19937 random(3);
  for (const Kind& kind : kKinds) {
    for (int round = 0; round < 50; ++round) {
      std::vector<uint8_t> block(kind.bytes);
      for (uint8_t& byte : block) byte = static_cast<uint8_t>(random());
      // Numbers that are finite: the upper exponents are left out.
      for (const size_t at : {size_t{0}, size_t{2}, kind.bytes - 2, kind.bytes - 4}) block[at + 1] &= 0xBF;
      EXPECT_EQ(read(kind.type, block.data()), defined(kind.type, block.data())) << static_cast<int>(kind.type);
    }
  }
}

TEST(KBlocks, AreReadAsGgufReadsThem) {
  const std::string file = *read_file(source_dir() + "/src/weights/testdata/k_quants.bin", size_t{1} << 20);
  constexpr size_t kBlocks = 4;
  const char* at = file.data();
  for (const Kind& kind : kKinds) {
    const char* const weights = at + kBlocks * kind.bytes;
    for (size_t i = 0; i < kBlocks; ++i) {
      Weights wanted(kKBlockWeights);
      std::memcpy(wanted.data(), weights + i * wanted.size() * sizeof(float), wanted.size() * sizeof(float));
      EXPECT_EQ(read(kind.type, at + i * kind.bytes), wanted) << static_cast<int>(kind.type) << ", " << i;
    }
    at = weights + kBlocks * kKBlockWeights * sizeof(float);
  }
  EXPECT_EQ(at, file.data() + file.size());
}

}  // namespace
}  // namespace transept
