// For tests: the tiles of ops/tile.h in software, as Intel's manual defines them (palette 1: eight tiles of at most 16
// rows of 64 bytes). What the processor would refuse ends the program. V makes it a type of its own for each level (the
// rule in ops/kernels.h). Signed is the type that signed bytes are read as: another type than int8_t reproduces an
// emulator that errs (tools/amx_emulator). Used by one thread.
#pragma once

#include <math.h>
#include <string.h>

#include "ops/tile.h"

namespace transept {

template <class V, class Signed = int8_t>
class SoftwareTiles {
 public:
  explicit SoftwareTiles(const TileConfig& config) : config_(config) {
    require(config.palette == 1 && config.start_row == 0);
    for (const uint8_t byte : config.reserved) require(byte == 0);
    for (int i = 0; i < 16; ++i) {
      require(config.row_bytes[i] <= (i < 8 ? 64 : 0) && config.rows[i] <= (i < 8 ? 16 : 0));
      require((config.row_bytes[i] == 0) == (config.rows[i] == 0));
    }
    memset(tiles_, 0, sizeof tiles_);
  }

  template <int kTile>
  void zero() {
    check<kTile>();
    memset(tiles_[kTile], 0, sizeof tiles_[kTile]);
  }
  template <int kTile>
  void load(const void* from, int64_t stride) {
    zero<kTile>();
    for (int r = 0; r < config_.rows[kTile]; ++r)
      memcpy(tiles_[kTile][r], static_cast<const char*>(from) + r * stride, config_.row_bytes[kTile]);
  }
  template <int kTile>
  void store(void* to, int64_t stride) const {
    check<kTile>();
    for (int r = 0; r < config_.rows[kTile]; ++r)
      memcpy(static_cast<char*>(to) + r * stride, tiles_[kTile][r], config_.row_bytes[kTile]);
  }

  // TDPBUSD: sums[m][n] += a[m][4 k + i] b[k][4 n + i], in 32 bits that wrap. TDPBSUD: the same, with a signed and b
  // unsigned.
  template <int kSum, int kA, int kB>
  void dot_u8s8() {
    dot_bytes<kSum, kA, kB, uint8_t, Signed>();
  }
  template <int kSum, int kA, int kB>
  void dot_s8u8() {
    dot_bytes<kSum, kA, kB, Signed, uint8_t>();
  }

  // TDPBF16PS: adds up the even and the odd inputs of a tile separately, each by fused multiply-add, then adds both,
  // then adds them to the sum. Every step rounds to nearest even and takes subnormal inputs and results as zero.
  template <int kSum, int kA, int kB>
  void dot_bfloat16() {
    check_product<kSum, kA, kB>();
    for (int m = 0; m < config_.rows[kSum]; ++m) {
      float sums[16];
      memcpy(sums, tiles_[kSum][m], sizeof sums);
      float parts[16][2] = {};
      for (int k = 0; k < config_.row_bytes[kA] / 4; ++k) {
        for (int n = 0; n < config_.row_bytes[kSum] / 4; ++n) {
          for (int i = 0; i < 2; ++i) {
            const float a = value(tiles_[kA][m] + 4 * k + 2 * i), b = value(tiles_[kB][k] + 4 * n + 2 * i);
            parts[n][i] = flushed(__builtin_fmaf(a, b, parts[n][i]));
          }
        }
      }
      for (int n = 0; n < config_.row_bytes[kSum] / 4; ++n)
        sums[n] = flushed(flushed(sums[n]) + flushed(parts[n][0] + parts[n][1]));
      finish_row<kSum>(m, sums);
    }
  }

 private:
  static void require(bool is_so) {
    if (!is_so) __builtin_trap();
  }
  template <int kTile>
  void check() const {
    static_assert(kTile >= 0 && kTile < 8, "");
    require(config_.rows[kTile] > 0);
  }
  template <int kSum, int kA, int kB>
  void check_product() const {
    static_assert(kSum != kA && kSum != kB && kA != kB, "");
    check<kSum>(), check<kA>(), check<kB>();
    require(config_.rows[kSum] == config_.rows[kA] && config_.row_bytes[kSum] == config_.row_bytes[kB]);
    require(config_.row_bytes[kA] == 4 * config_.rows[kB]);
    require(config_.row_bytes[kSum] % 4 == 0);
  }
  template <int kSum, int kA, int kB, class A, class B>
  void dot_bytes() {
    check_product<kSum, kA, kB>();
    for (int m = 0; m < config_.rows[kSum]; ++m) {
      uint32_t sums[16];
      memcpy(sums, tiles_[kSum][m], sizeof sums);
      for (int k = 0; k < config_.row_bytes[kA] / 4; ++k) {
        for (int n = 0; n < config_.row_bytes[kSum] / 4; ++n) {
          for (int i = 0; i < 4; ++i) {
            const int product = static_cast<A>(tiles_[kA][m][4 * k + i]) * static_cast<B>(tiles_[kB][k][4 * n + i]);
            sums[n] += static_cast<uint32_t>(product);
          }
        }
      }
      finish_row<kSum>(m, sums);
    }
  }
  template <int kSum, class T>
  void finish_row(int m, const T (&sums)[16]) {
    memset(tiles_[kSum][m], 0, sizeof tiles_[kSum][m]);
    memcpy(tiles_[kSum][m], sums, config_.row_bytes[kSum]);
  }
  static float flushed(float x) { return __builtin_fabsf(x) < 1.17549435e-38f ? __builtin_copysignf(0, x) : x; }
  static float value(const char* bfloat16) {
    uint16_t half;
    memcpy(&half, bfloat16, sizeof half);
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return flushed(x);
  }

  TileConfig config_;
  char tiles_[8][16][64];
};

}  // namespace transept
