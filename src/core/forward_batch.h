// What a model sees in one step. Views of buffers at fixed addresses, filled once a step by the model runner; valid
// until the next step. Sequences are packed end to end without padding. There is no "prefill" and no "decode": every
// sequence brings new rows after old rows (a prompt after nothing, one token after many, a tail after a shared prefix).
#pragma once

#include <cstdint>
#include <span>

#include "core/encoder_features.h"
#include "tensor/tensor.h"

namespace transept {

// One each for encoder, self and cross attention. Which fields hold for which type is said on each.
struct AttentionMetadata {
  int32_t num_seqs = 0;
  int32_t max_query_len = 0;
  int32_t max_kv_len = 0;
  View<int32_t> query_start_loc;  // [num_seqs + 1] rows of q; sequence s owns rows [s, s + 1). Writing cross KV: empty
  View<int32_t> context_lens;     // [num_seqs] keys before row 0 (self only; others: empty)
  View<int32_t> seq_lens;         // [num_seqs] keys in all: self: context + new rows; cross, encoder: encoder length
  View<int32_t> block_tables;     // [num_seqs, max_blocks_per_seq] block ids (self, cross); unused places hold -1
  int32_t max_blocks_per_seq = 0;
  int32_t block_size = 0;  // slots (tokens) a block
  // Of the blocks (self, cross). Encoder: what keys and values are rounded to first, kFloat32 (not at all) or kInt8.
  DType kv_dtype = DType::kFloat32;
  View<int32_t> kv_start_loc;  // [num_seqs + 1] rows of dense k, v (encoder)
  View<int64_t> slot_mapping;  // [num_new_kv] block * block_size + offset: where the rows of new k, v go (self; writing
                               // cross); decode's cross: empty
  View<int32_t> group_start_loc;  // [num_groups + 1] runs of sequences that share one cross table (cross only)
  const void* planned = nullptr;  // the attention backend's, of its plan(): in step memory (self, cross)
};

// Where the KV bytes of each decoder layer lie: [num_blocks, layer_block_bytes] of uint8, stride[0] = bytes of a whole
// block. A block belongs to one owner (a sequence's self table or a group's cross table) and holds all layers of it.
struct KvCaches {
  std::span<const TensorView> self_layers;
  std::span<const TensorView> cross_layers;
};

// A head of a decoder layer's cross-attention.
struct LayerHead {
  int32_t layer = 0;
  int32_t head = 0;
};

// Cross-attention probabilities of chosen heads, for chosen rows of a step.
struct CrossCapture {
  std::span<const LayerHead> heads;  // ascending by layer
  View<int32_t> rows;                // [num_tokens] the place of each in `out`, or -1: not wanted
  TensorView out;                    // [heads.size(), wanted rows, cross.max_kv_len] float32
};

struct ForwardBatch {
  View<int32_t> input_ids;    // [num_tokens]
  View<int32_t> positions;    // [num_tokens] (models with several position axes: [axes, num_tokens])
  View<int32_t> logits_rows;  // [num_logits] rows that are sampled or scored, ascending
  AttentionMetadata self;
  AttentionMetadata cross;
  KvCaches kv;
  const CrossCapture* capture = nullptr;  // null: not asked for

  int64_t num_tokens() const { return static_cast<int64_t>(input_ids.size()); }
};

// The encoder's share of a step: the encoder inputs of num_seqs groups, ids or media, packed in positions of the
// encoder's layers.
struct EncodeBatch {
  View<int32_t> input_ids;      // [num_tokens]; of media: empty
  View<FeaturesView> features;  // [num_seqs], of ids: empty. Not read in a dry run: seq_lens say all there is
  View<int32_t> positions;      // [num_tokens]
  AttentionMetadata attention;

  int64_t num_tokens() const { return static_cast<int64_t>(positions.size()); }
};

// Layers [begin, end): a pipeline stage, or all.
struct LayerRange {
  int32_t begin = 0;
  int32_t end = 0;
};

}  // namespace transept
