// Encoder inputs packed end to end, as the encoder and the writer of cross KV read them. Owns all but the values of
// media. Buffers grow to the largest use. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/forward_batch.h"
#include "kv/block.h"
#include "scheduling/scheduler_outputs.h"

namespace transept {

class EncodeInputs final {
 public:
  struct Limits {
    int32_t max_num_tokens = 0;
    int32_t block_size = 0;
    DType kv_dtype = DType::kFloat32;          // of the cross cache
    DType encoder_kv_dtype = DType::kFloat32;  // AttentionMetadata::kv_dtype of encoder attention
  };

  explicit EncodeInputs(const Limits& limits);

  void clear();
  // `bulk`: SchedulerOutputs::bulk, or values that stand for it; borrowed until clear().
  void add(const EncoderSequenceData& input, std::span<const float> bulk, const BlockTable& cross_block_table);
  // Fills the views below. Call after the last add().
  void finish();

  bool empty() const { return seq_lens_.empty(); }
  const EncodeBatch& batch() const { return batch_; }
  // Where the cross K and V of the inputs go: slot_mapping by packed encoder row.
  const AttentionMetadata& cross_write() const { return cross_write_; }
  // The cross tables of the inputs, one after another.
  const BlockTable& cross_blocks() const { return cross_blocks_; }

 private:
  Limits limits_;
  std::vector<int32_t> ids_, positions_, seq_lens_, start_loc_;
  std::vector<int64_t> slot_mapping_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::span<const float>> values_;
  std::vector<FeaturesView> features_;
  BlockTable cross_blocks_;
  EncodeBatch batch_;
  AttentionMetadata cross_write_;
};

}  // namespace transept
