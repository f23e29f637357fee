// The ops of the Vulkan device: each records one kernel. What an op computes is what the function of that name in ops/
// or attention/ computes; the arithmetic is float32, and the bits of a row depend on nothing but the row. Shapes that
// do not fit fail a CHECK: models call these, not users. Functions without state.
#pragma once

#include <array>
#include <cstdint>

#include "attention/bias_kind.h"
#include "attention/kv_format.h"
#include "ops/activation_kind.h"
#include "recording/recording.h"

namespace transept {

// Element types of weights, in the order of kProductKernels.
enum class DeviceFormat : uint8_t { kFloat32, kFloat16, kBFloat16 };

// Float32 rows in a buffer; strides count floats. Rows may lie in one another where they are only read: the windows of
// a convolution (ops/conv1d.h) are rows of `stride` times the channels.
struct DeviceMatrix {
  BufferId buffer = BufferId::kNone;
  uint64_t begin = 0;  // bytes
  uint32_t rows = 0, columns = 0, stride = 0;

  static DeviceMatrix dense(BufferId buffer, uint32_t rows, uint32_t columns, uint64_t begin = 0) {
    return {buffer, begin, rows, columns, columns};
  }
  DeviceMatrix slice(uint32_t first, uint32_t end) const {  // columns
    return {buffer, begin + uint64_t{first} * 4, rows, end - first, stride};
  }
  // From the first element to behind the last. REQUIRES: not empty.
  BufferRange range() const;
};

// Rows of x and y: one each. weight, bias: [n].
void record_layer_norm(Recorder& recorder, const DeviceMatrix& x, const BufferRange& weight, const BufferRange& bias,
                       float epsilon, const DeviceMatrix& y);
void record_rms_norm(Recorder& recorder, const DeviceMatrix& x, const BufferRange& weight, float epsilon,
                     const DeviceMatrix& y);

// The same with one mean and variance for all of x. scratch: so many floats, apart from the others.
constexpr uint64_t group_norm_scratch(uint64_t rows) { return rows + 32; }
void record_group_norm(Recorder& recorder, const DeviceMatrix& x, const BufferRange& weight, const BufferRange& bias,
                       float epsilon, const BufferRange& scratch, const DeviceMatrix& y);

// How matrix units multiply with weights (kernels/product_matrix.comp).
struct DeviceTiling {
  uint32_t rows = 0;           // of a tile, the device's; 0: shader cores multiply
  bool rounds_inputs = false;  // to one float16 each, not two; of float16 and bfloat16 weights
  uint32_t exponent = 127;     // of the power of two by which bfloat16 weights become float16, as a float32 has it

  uint32_t rows_of_group() const { return rows == 0 ? 8 : rows; }  // kernels/product.comp
};

// y = activation(x w^T + bias) + residual; residual may be y. w: the panels of a PackedMatrix (ops/packed_matrix.h) of
// n outputs and k inputs. bias, residual: of no buffer, none. x and y are apart. REQUIRES: float32 weights have no
// tiling.
struct DeviceWeights {
  BufferRange panels;
  uint32_t n = 0, k = 0;
  DeviceFormat format = DeviceFormat::kFloat32;
  DeviceTiling tiling = {};
};
struct DeviceEpilogue {
  BufferRange bias = {};
  Activation activation = Activation::kNone;
  DeviceMatrix residual = {};
};
void record_product(Recorder& recorder, const DeviceMatrix& x, const DeviceWeights& w, const DeviceEpilogue& epilogue,
                    const DeviceMatrix& y);

// The range of bfloat16 numbers. found: DeviceWeightRange [weight_range_groups(words)].
struct DeviceWeightRange {
  uint32_t largest = 0;  // bits without sign
  uint32_t depth = 0;  // 384 less the exponent, as a float32 has it, of the lowest bit that is set in any; 0: all are 0
};
static_assert(sizeof(DeviceWeightRange) == 8);
constexpr uint64_t weight_range_groups(uint64_t words) { return (words + 8191) / 8192; }
void record_weight_range(Recorder& recorder, const BufferRange& numbers, const BufferRange& found);

// y = activation(gate) * x; y may be either.
void record_gated_activation(Recorder& recorder, Activation activation, const DeviceMatrix& gate, const DeviceMatrix& x,
                             const DeviceMatrix& y);
// y += gate * x. gate: n or 1 floats, or of no buffer: the factor is 1.
void record_add(Recorder& recorder, const DeviceMatrix& x, const BufferRange& gate, const DeviceMatrix& y);

// y[i] = scale * table[rows[i]]; zeros for what is no row of the table (kNoRow). rows: [y.rows] int32. An embedding,
// or a choice of rows. table: `columns` elements a row, of 16 bits two in a word.
struct DeviceTable {
  BufferRange data;
  uint32_t rows = 0, columns = 0;
  DeviceFormat format = DeviceFormat::kFloat32;
};
void record_gather_rows(Recorder& recorder, const DeviceTable& table, const BufferRange& rows, float scale,
                        const DeviceMatrix& y);
// y[i] += table[rows[i]].
void record_add_gathered_rows(Recorder& recorder, const DeviceTable& table, const BufferRange& rows,
                              const DeviceMatrix& y);

// Rotates x [rows, heads, head_dim] in place. cosines, sines: [rows, pairs].
void record_rope(Recorder& recorder, const DeviceMatrix& cosines, const DeviceMatrix& sines, bool halves,
                 uint32_t heads, const DeviceMatrix& x);

// y[t][c] = x[c][t]. x: [y.columns, y.rows], dense.
void record_transpose(Recorder& recorder, const BufferRange& x, const DeviceMatrix& y);

// Blocks of one layer's K and V, as the cpu backend lays them out (attention/kv_format.h).
struct DeviceKv {
  BufferRange cache;  // from the layer's part of the first block on
  uint32_t num_blocks = 0;
  uint32_t block_size = 0;    // tokens
  uint32_t block_stride = 0;  // words of 4 bytes from one block to the next
  uint32_t kv_heads = 0, head_dim = 0;
  KvType type = KvType::kFloat32;
};
// k, v: [rows, kv_heads * head_dim], which are rounded as the cpu backend rounds them; slots: [rows] uint32, no two
// equal, one beyond the blocks is left out.
void record_write_kv(Recorder& recorder, const DeviceMatrix& k, const DeviceMatrix& v, const BufferRange& slots,
                     const DeviceKv& kv);

// A row of attention, as plan() writes it to an upload buffer.
struct AttentionRow {
  uint32_t table = 0;  // where the row's block table begins in `tables`; dense: its sequence's first key
  uint32_t key_begin = 0, key_end = 0;  // the keys that it sees
  int32_t position = 0;                 // of the query, counted as keys are
  uint32_t place = 0;                   // in its sequence's new rows
  uint32_t sequence = 0;
  uint32_t unused[2] = {0, 0};
};
static_assert(sizeof(AttentionRow) == 32);

struct DeviceBias {
  BiasKind kind = BiasKind::kNone;
  BufferRange values;  // kMaterialized: the tensor. kByDistance: tables of a head, one behind the other. kAlibi: slopes
  std::array<uint32_t, 4> strides{};  // kMaterialized: sequence, head, row, key; kByDistance: [1] of a head
  uint32_t max_distance = 0;          // kByDistance
  uint32_t origin = 0;                // kByDistance: of distance 0 in a head's table
};

// out = softmax(scale q.k + bias) v of each row and head. q, out: [rows, heads * head_dim], apart.
struct DeviceAttention {
  DeviceMatrix q, out;
  uint32_t heads = 0;
  float scale = 1;
  BufferRange rows;  // AttentionRow [q.rows]
  DeviceBias bias;
};
// Over keys in blocks. tables: uint32 block ids.
void record_attention(Recorder& recorder, const DeviceAttention& args, const DeviceKv& kv, const BufferRange& tables);
// Over dense keys [any, kv_heads * head_dim].
void record_attention(Recorder& recorder, const DeviceAttention& args, const DeviceMatrix& k, const DeviceMatrix& v,
                      uint32_t kv_heads);

// The probabilities themselves, of chosen rows and heads; `args.out` is not written. wanted: DeviceWanted of num_rows
// rows of q and their places in `out`, then of num_heads heads and their indices in `out`. out: [index][place][key]
// float32 of num_keys keys; index_stride and row_stride count floats.
struct DeviceWanted {
  uint32_t from = 0, to = 0;
};
struct DeviceCapture {
  BufferRange wanted;
  uint32_t num_rows = 0, num_heads = 0;
  BufferRange out;
  uint32_t index_stride = 0, row_stride = 0, num_keys = 0;
};
void record_capture(Recorder& recorder, const DeviceAttention& args, const DeviceKv& kv, const BufferRange& tables,
                    const DeviceCapture& capture);

// Of each row of logits. What the device writes: 12 bytes a row.
struct DeviceChoice {
  int32_t id = -1;  // the largest entry, the lowest on ties, never NaN; -1: there is none
  float value = 0;  // that entry
  float log_sum_exp = 0;
};
static_assert(sizeof(DeviceChoice) == 12);
// choices: DeviceChoice [x.rows].
void record_choose(Recorder& recorder, const DeviceMatrix& x, const BufferRange& choices);

// Edits rows of scores, and writes what is found of each to a row of words (ops/score_looks.h). looks: ScoreLook
// [x.rows].
void record_look_at_scores(Recorder& recorder, const DeviceMatrix& x, const BufferRange& looks,
                           const BufferRange& edits, uint32_t most_listed, const DeviceMatrix& found);

}  // namespace transept
