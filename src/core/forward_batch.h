// The inputs of a model in one step. All members are views. The model runner owns the buffers and fills them once per
// step; a view is valid until the next step (of a long encode: until the encode has ended). Sequences are packed end to
// end without padding. There is no "prefill" and no "decode": each sequence adds new rows after its old rows (a prompt
// after nothing, one token after many, a tail after a shared prefix). For a device that keeps steps, sequences of one
// row and without keys may fill the step behind all others (rank/row_buckets.h): no request reads what comes of them,
// and they write nothing. Not thread-safe while the runner fills it; threads of the pool read it concurrently.
#pragma once

#include <cstdint>
#include <span>

#include "core/encoder_item.h"
#include "tensor/tensor.h"

namespace transept {

// A row without a place in the cache.
inline constexpr int64_t kNoSlot = -1;

// One of an encoder, and one of each spec of a decoder's KV: self-attention and cross-attention have tables by spec.
// The comment of a field names the types that use it.
struct AttentionMetadata {
  int32_t num_seqs = 0;
  int32_t max_query_len = 0;
  int32_t max_kv_len = 0;
  // [num_seqs + 1] rows of q: sequence s owns rows [query_start_loc[s], query_start_loc[s + 1]). Writing cross KV:
  // empty.
  View<int32_t> query_start_loc;
  View<int32_t> context_lens;  // [num_seqs] keys before a sequence's first new row (self only; others: empty)
  View<int32_t> seq_lens;      // [num_seqs] all keys: self: context + new rows; cross, encoder: encoder length
  View<int32_t> block_tables;  // [num_seqs, max_blocks_per_seq] block ids (self, cross); unused entries are -1
  int32_t max_blocks_per_seq = 0;
  int32_t block_size = 0;  // slots (tokens) per block
  // Type of the blocks (self, cross). Encoder: keys and values are rounded to kInt8 first, or not at all (kFloat32).
  DType kv_dtype = DType::kFloat32;
  View<int32_t> kv_start_loc;  // [num_seqs + 1] rows of dense k, v (encoder)
  // [num_new_kv] block * block_size + offset: destination of each row of new k, v (self; writing cross KV or items'
  // rows). Reading cross KV: empty. kNoSlot: the row is not written (self, where the device keeps steps).
  View<int64_t> slot_mapping;
  View<int32_t> group_start_loc;  // [num_groups + 1] runs of sequences that share their cross tables (cross only)
  // [rows of q] keys that each row sees: [key_begin[r], key_end[r]), both within [0, its sequence's seq_len] (cross
  // only). Both empty: every row sees all keys of its sequence. A row with an empty range gives zeros. All keys of a
  // sequence are written, with finite values: a row may multiply those of keys that it does not see by 0.
  View<int32_t> key_begin;
  View<int32_t> key_end;
  const void* planned = nullptr;  // result of AttentionBackend::plan(), in step memory (self, cross)
};

// The KV bytes of each decoder layer: uint8 [num_blocks, layer_block_bytes], stride[0] = bytes of a whole block. A
// block holds all layers of one spec: it belongs to tables of that spec.
struct KvCaches {
  std::span<const std::span<const TensorView>> specs;  // [s][i]: layer ModelSpec::kv[s].layers[i]
};

// A head of a decoder layer's cross-attention.
struct LayerHead {
  int32_t layer = 0;
  int32_t head = 0;
};

// Requests the cross-attention probabilities of some heads for some rows of a step.
struct CrossCapture {
  std::span<const LayerHead> heads;  // ascending by layer
  View<int32_t> rows;                // [num_tokens] index of each row in `out`; -1: not requested
  TensorView out;                    // float32 [heads.size(), requested rows, max_kv_len of the cross specs]
};

// Decoder rows whose embedding is a row of an item (EncoderItem::splice_offset) instead of their token's.
struct Splices {
  View<int32_t> rows;      // packed decoder rows, ascending
  View<int64_t> slots;     // of each, in blocks of the first spec of kind kEncoderRows: block * block_size + offset
  int32_t block_size = 0;  // rows of a block

  bool empty() const { return rows.empty(); }
};

struct ForwardBatch {
  View<int32_t> input_ids;    // [num_tokens]
  View<int32_t> positions;    // [ModelSpec::position_axes, num_tokens] of each token, usually its index in its sequence
  View<int32_t> logits_rows;  // [num_logits] rows that are sampled or scored, ascending, distinct; behind them kNoRow
  // [s]: of the layers of ModelSpec::kv[s]. Specs of kind kEncoderRows: empty (num_seqs == 0). All have the same rows
  // of q; those of kind kCross have the same keys, in other blocks. AttentionBackend::plan() fills `planned`.
  std::span<AttentionMetadata> attention;
  KvCaches kv;
  const CrossCapture* capture = nullptr;  // null: not requested
  Splices splices;
  View<uint8_t> row_kinds;  // [num_tokens] RowRange::kind, which the family defines; empty: all 0

  int64_t num_tokens() const { return static_cast<int64_t>(input_ids.size()); }
};

// The encoder's part of a step: attention.num_seqs items with the same consumers. num_tokens counts rows of the
// encoder's output, which are those of its layers in most families.
struct EncodeBatch {
  // Items of a batch are alike: each has ids, or features, or both.
  View<int32_t> input_ids;      // [num_tokens]; media alone: empty. A dry run has ids
  View<FeaturesView> features;  // [num_seqs]; ids alone: empty. A dry run reads attention.seq_lens instead
  View<int32_t> positions;      // [num_tokens] of each row in its item
  AttentionMetadata attention;
  Consumers consumers = Consumers::kCross;  // of every item: which encoder runs, where a family has two
  int64_t num_rows = 0;                     // of the widest layer; 0: num_tokens()

  int64_t num_tokens() const { return static_cast<int64_t>(positions.size()); }
  int64_t num_widest_rows() const { return num_rows > 0 ? num_rows : num_tokens(); }
};

// Layers [begin, end).
struct LayerRange {
  int32_t begin = 0;
  int32_t end = 0;
};

}  // namespace transept
