// Products of the encoder's attention of encoder_int8.h on tiles (ops/tile.h), for encoder_rows.h. Sixteen rows of q
// are a tile of A; fours of dimensions (of K) and of keys (of V) are rows of B. T is the type that multiplies tiles.
// Included with TRANSEPT_AVX512_LEVEL set (ops/vec_avx512.h).
//
// Vectors have most of the work (150 ns a step of 64 dimensions on a Zen 5; the eight products are 128 cycles by
// Intel's manual), so two strips of rows would gain little from shared loads. But neither waits for the other: the
// products of tiles are stored, and used a step later.
#pragma once

#include "attention/encoder_rows.h"
#include "ops/tile.h"

namespace transept::TRANSEPT_AVX512_LEVEL {

template <class T>
class TileProducts {
 public:
  static constexpr int kRows = kEncoderTileRows, kOffsets = kTileRows, kLate = 1;
  struct Sums {
    alignas(64) int32_t values[kMaxHeadDim / kLanes][kRows * kLanes];
  };
  typedef EncoderWork<TileProducts> Work;

  explicit TileProducts(const AttentionTask& task)
      : tiles_(whole_tiles()),
        tile_(encoder_tile(task.head_dim)),
        query_bytes_(query_end(task.head_dim)),
        width_(static_cast<int>(task.sums_stride)) {}

  // q: [kRows][head_dim rounded up to a multiple of 64].
  static int64_t query_end(int64_t head_dim) { return (head_dim + kTileRowBytes - 1) / kTileRowBytes * kTileRowBytes; }
  static void put_query(signed char* q, int row, int64_t d, int64_t head_dim, __m128i bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + row * query_end(head_dim) + d), bytes);
  }

  void start_scores(const EncoderStep& step, Work& work) {
    for_constants<0, kVecs>(
        [&](auto c) { tiles_.template load<decltype(c)::kValue>(step.chunk->offsets, kLanes * sizeof(int32_t)); });
    const unsigned char* k = step.part + tile_.k;
    for (int64_t d = 0; d < query_bytes_; d += kTileRowBytes, k += kTileRowBytes * kTileKeys) {
      tiles_.template load<kA>(step.chunk->q + d, query_bytes_);
      for_constants<0, kVecs>([&](auto c) {
        constexpr int kC = decltype(c)::kValue, kTile = kB + kC % kBTiles;
        tiles_.template load<kTile>(k + kC * kTileRowBytes, kTileKeys * 4);
        tiles_.template dot_s8u8<kC, kA, kTile>();
      });
    }
    for_constants<0, kVecs>([&](auto c) {
      constexpr int kC = decltype(c)::kValue;
      tiles_.template store<kC>(work.scores + kC * kLanes, kTileKeys * sizeof(int32_t));
    });
  }

  template <bool kWhole>
  void scores(const EncoderStep& step, Work& work) const {
    const KeyPair low(step, 0), high(step, 2);
    for (int r = 0; r < step.chunk->count; ++r) {
      float* scores = work.scores + r * kTileKeys;
      const __m512 most_low = store_pair<kWhole>(low, scores),
                   most_high = store_pair<kWhole>(high, scores + 2 * kLanes);
      _mm512_store_ps(work.most + r * kLanes, _mm512_maskz_max_ps(kAll, most_high, most_low));
    }
  }

  void start_values(const EncoderStep& step, Work& work) {
    tiles_.template load<kA>(work.probabilities, kTileKeys);
    const unsigned char* v = step.part + tile_.v;
    int column = 0;
    for (; column + 4 <= width_ / kLanes; column += 4) multiply_values<4>(v, column, work);
    for (; column < width_ / kLanes; ++column) multiply_values<1>(v, column, work);
  }

  template <bool kNewMax>
  void values(const EncoderStep& step, const Work& work) const {
    const float* scales = reinterpret_cast<const float*>(step.part + tile_.v_scales);
    // Locals, because the compiler assumes that stores of vectors change members.
    const int64_t width = width_, count = step.chunk->count;
    for (int64_t d = 0; d < width; d += kLanes) {
      const __m512 scale = _mm512_loadu_ps(scales + d);
      const int32_t* products = work.sums.values[d / kLanes];
      float* sums = step.chunk->sums + d;
#pragma GCC unroll 4
      for (int64_t r = 0; r < count; ++r) {
        add_product<kNewMax>(_mm512_load_si512(products + r * kLanes), scale, _mm512_set1_ps(work.new_factor[r]),
                             _mm512_set1_ps(work.old_factor[r]), sums + r * width);
      }
    }
  }

 private:
  // Sums are tiles 0 to 3; A's is one, and B's take turns.
  static constexpr int kA = 4, kB = 5, kBTiles = 3;

  template <bool kWhole>
  static __m512 store_pair(const KeyPair& keys, float* scores) {
    return store_scores<kWhole>(_mm512_load_si512(scores), _mm512_load_si512(scores + kLanes), keys, scores);
  }

  // Multiplies probabilities with kColumns times sixteen dimensions of V, from `column` on.
  template <int kColumns>
  void multiply_values(const unsigned char* v, int column, Work& work) {
    for_constants<0, kColumns>([&](auto c) {
      constexpr int kC = decltype(c)::kValue, kTile = kB + kC % kBTiles;
      tiles_.template zero<kC>();
      tiles_.template load<kTile>(v + (column + kC) * kTileRowBytes, int64_t{width_} * 4);
      tiles_.template dot_u8s8<kC, kA, kTile>();
    });
    for_constants<0, kColumns>([&](auto c) {
      constexpr int kC = decltype(c)::kValue;
      tiles_.template store<kC>(work.sums.values[column + kC], kLanes * sizeof(int32_t));
    });
  }

  T tiles_;
  EncoderTile tile_;
  int64_t query_bytes_;
  int width_;
};

}  // namespace transept::TRANSEPT_AVX512_LEVEL
