// The part of the encoder's attention of encoder_int8.h that is done for each row by itself, for any way to multiply:
// integers of q, scores to probabilities, sums under their maxima. Included with TRANSEPT_AVX512_LEVEL set
// (ops/vec_avx512.h).
//
// In a step, a chunk of rows is multiplied with one tile of keys. P is the type that multiplies (VnniProducts of
// encoder_avx512_vnni.cc, TileProducts of encoder_tiles.h). It has kRows, the rows of a chunk, at most 16; kOffsets,
// the number of neighbouring copies of a row's offset; Sums, its memory of a step until values are added up; and
//   query_end(head_dim)                     the end of the integers of q that it reads, zeros past head_dim
//   put_query(q, row, d, head_dim, bytes)   stores sixteen of them, from dimension d on
//   start_scores(step, work), scores<kWhole>(step, work)    to work.scores and work.most; kWhole: the tile is full
//   start_values(step, work), values<kNewMax>(step, work)   to the chunk's sums
// kLate 1: a step's values are added up in the next step, and the next step's scores are started before this step's
// probabilities are found, so that tiles multiply while vectors are busy. kLate 0: the start functions do nothing.
#pragma once

#include <immintrin.h>
#include <string.h>

#include "attention/encoder_softmax.h"

namespace transept::TRANSEPT_AVX512_LEVEL {

// ---- chunks

// The range of floats: the largest magnitudes, and NaN if one is not finite.
struct Range {
  __m512 most = _mm512_setzero_ps();
  __m512 strange = _mm512_setzero_ps();

  void add(__m512 a) {
    most = _mm512_maskz_max_ps(kAll, most, _mm512_abs_ps(a));
    strange = _mm512_fmadd_ps(a, _mm512_setzero_ps(), strange);  // infinity x 0 is NaN
  }
};

static inline Range range_of(const float* x, int64_t n) {
  Range range;
  for (int64_t i = 0; i < n; i += kLanes) range.add(_mm512_maskz_loadu_ps(first_lanes(n - i), x + i));
  return range;
}

// Stores row r of q as bytes, 127 steps on either side of 0; zeros if the chunk has no such row.
template <class P>
static void prepare_row(const AttentionTask& task, const EncoderChunk& chunk, int r) {
  const bool is_there = r < chunk.count;
  const float* q = chunk.rows[is_there ? r : 0].q;  // loads of no lanes from null take 80 ns each
  const int64_t dim = task.head_dim, count = is_there ? dim : 0;
  const Range range = range_of(q, count);
  const float scale = Vec::reduce_max(range.most) / kMaxInt8, strange = Vec::reduce_add(range.strange);
  const bool counts = scale >= kLeastScale && strange == 0;
  const __m512 inverse = _mm512_set1_ps(counts ? 1 / scale : 0.0f);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t d = 0; d < P::query_end(dim); d += kLanes) {
    const __mmask16 lanes = first_lanes(counts ? count - d : 0);
    const __m512i a = to_int(_mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, q + d), inverse));
    sum = _mm512_add_epi32(sum, a);
    P::put_query(chunk.q, r, d, dim, _mm512_maskz_cvtepi32_epi8(kAll, a));
  }
  const int32_t offset = -128 * static_cast<int32_t>(Vec::reduce_add(to_float(sum)));  // exact: below 2^24
  for (int i = 0; i < P::kOffsets; ++i) chunk.offsets[r * P::kOffsets + i] = offset;
  chunk.scale[r] = (counts ? scale : 0.0f) * task.scale + strange;
}

template <class P>
static void prepare_chunk(const AttentionTask& task, const EncoderChunk& chunk) {
  for (int r = 0; r < P::kRows; ++r) prepare_row<P>(task, chunk, r);
  for (int r = 0; r < kLanes; ++r) chunk.max[r] = kLowest;
  for (int r = P::kRows; r < kLanes; ++r) chunk.scale[r] = 0;
  memset(chunk.totals, 0, P::kRows * kLanes * sizeof(float));
  memset(chunk.sums, 0, static_cast<size_t>(chunk.count * task.sums_stride) * sizeof(float));
}

// ---- sums

// Adds a row's product with sixteen values to its sums, under their new maximum.
template <bool kNewMax>
static inline void add_product(__m512i product, __m512 v_scale, __m512 new_factor, __m512 old_factor, float* sums) {
  __m512 old_sums = _mm512_loadu_ps(sums);
  if (kNewMax) old_sums = _mm512_mul_ps(old_sums, old_factor);
  _mm512_storeu_ps(sums, _mm512_fmadd_ps(to_float(product), _mm512_mul_ps(v_scale, new_factor), old_sums));
}

static inline void finish_rows(const AttentionTask& task, const EncoderChunk& chunk) {
  for (int r = 0; r < chunk.count; ++r) {
    const float total = Vec::reduce_add(_mm512_load_ps(chunk.totals + r * kLanes));
    const __m512 divisor = _mm512_set1_ps(total == 0 ? 1.0f : total);  // 0: no keys, and sums are 0
    const float* sums = chunk.sums + r * task.sums_stride;
    for (int d = 0; d < task.head_dim; d += kLanes) {
      _mm512_mask_storeu_ps(chunk.rows[r].out + d, first_lanes(task.head_dim - d),
                            _mm512_div_ps(_mm512_loadu_ps(sums + d), divisor));
    }
  }
}

// ---- tasks

// Divides a task's memory among its chunks, and prepares them; returns their number.
template <class P>
static int make_chunks(const AttentionTask& task, EncoderChunk* chunks) {
  const int64_t bytes = encoder_chunk_bytes(P::kRows, task.head_dim);
  auto* room = static_cast<unsigned char*>(task.words);
  int num_chunks = 0;
  for (int64_t row = 0; row < task.num_rows; row += P::kRows, room += bytes) {
    EncoderChunk& chunk = chunks[num_chunks++];
    chunk.rows = task.rows + row;
    chunk.count = static_cast<int>(task.num_rows - row < P::kRows ? task.num_rows - row : P::kRows);
    chunk.sums = task.sums + row * task.sums_stride;
    chunk.totals = reinterpret_cast<float*>(room);
    chunk.max = chunk.totals + P::kRows * kLanes;
    chunk.scale = chunk.max + kLanes;
    chunk.offsets = reinterpret_cast<int32_t*>(chunk.scale + kLanes);
    chunk.q = reinterpret_cast<signed char*>(chunk.offsets + P::kRows * kLanes);
    prepare_chunk<P>(task, chunk);
  }
  return num_chunks;
}

template <class P>
static inline void find_probabilities(P& products, const EncoderStep& step, EncoderWork<P>& work) {
  const EncoderChunk& chunk = *step.chunk;
  const bool is_whole = step.count == kTileKeys, has_bias = chunk.rows[0].bias.kind != BiasKind::kNone;
  if (is_whole) {
    products.template scores<true>(step, work);
  } else {
    products.template scores<false>(step, work);
  }
  if (has_bias) add_bias(step, work);
  update_max(chunk, has_bias, work);
  if (is_whole) {
    update_softmax<P, true>(chunk, kTileKeys, work);
  } else {
    update_softmax<P, false>(chunk, step.count, work);
  }
}

template <class P>
static inline void add_values(P& products, const EncoderStep& step, EncoderWork<P>& work) {
  if (work.has_new_max) {
    products.template values<true>(step, work);
  } else {
    products.template values<false>(step, work);
  }
}

// The steps of a task: every chunk is multiplied with a tile before any chunk with the next.
class EncoderSteps {
 public:
  EncoderSteps(const AttentionTask& task, const EncoderChunk* chunks, int num_chunks)
      : task_(task), chunks_(chunks), num_chunks_(num_chunks) {}

  int64_t count() const { return (task_.num_keys + kTileKeys - 1) / kTileKeys * num_chunks_; }
  EncoderStep next() {
    const int64_t left = task_.num_keys - first_key_;
    const unsigned char* part = task_.cache + task_.blocks[first_key_ / kTileKeys] * task_.block_stride;
    const EncoderStep step = {chunks_ + chunk_, part, first_key_,
                              left < kTileKeys ? static_cast<int>(left) : kTileKeys};
    if (++chunk_ == num_chunks_) chunk_ = 0, first_key_ += kTileKeys;
    return step;
  }

 private:
  const AttentionTask& task_;
  const EncoderChunk* chunks_;
  int num_chunks_, chunk_ = 0;
  int64_t first_key_ = 0;
};

// Computes at most kEncoderItemRows rows.
template <class P>
static void attend_item(P& products, const AttentionTask& task) {
  EncoderChunk chunks[(kEncoderItemRows + P::kRows - 1) / P::kRows];
  const int num_chunks = make_chunks<P>(task, chunks);
  constexpr int kWorks = P::kLate + 1;
  EncoderWork<P> works[kWorks];
  for (EncoderWork<P>& work : works) {  // for the rows that the last chunk lacks
    memset(work.most, 0, sizeof work.most);
    memset(work.probabilities, 0, sizeof work.probabilities);
  }
  EncoderSteps steps(task, chunks, num_chunks);
  const int64_t count = steps.count();
  EncoderStep last = {}, step = {}, next = {};
  if (count > 0) products.start_scores(next = steps.next(), works[0]);
  for (int64_t i = 0; i < count; ++i) {
    EncoderWork<P>&work = works[i % kWorks], &other = works[(i + 1) % kWorks];
    last = step, step = next;
    if (i + 1 < count) products.start_scores(next = steps.next(), other);
    find_probabilities(products, step, work);
    products.start_values(step, work);
    if (P::kLate == 0) {
      add_values(products, step, work);
    } else if (i > 0) {
      add_values(products, last, other);
    }
  }
  if (P::kLate > 0 && count > 0) add_values(products, step, works[(count - 1) % kWorks]);
  for (int i = 0; i < num_chunks; ++i) finish_rows(task, chunks[i]);
}

// Implements attend_encoder() of encoder_int8.h.
template <class P>
static void attend_encoder_rows(const AttentionTask& task) {
  P products(task);
  AttentionTask some = task;  // more rows than an item's if heads share the keys
  for (int64_t row = 0; row < task.num_rows; row += kEncoderItemRows) {
    const int64_t left = task.num_rows - row;
    some.rows = task.rows + row;
    some.num_rows = left < kEncoderItemRows ? left : kEncoderItemRows;
    attend_item(products, some);
  }
}

}  // namespace transept::TRANSEPT_AVX512_LEVEL
