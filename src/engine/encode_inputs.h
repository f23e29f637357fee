// Encoder inputs packed end to end, as the encoder and the writer of cross KV read them. Owns what it is made of, so it
// may outlive the plan that it came from. Buffers grow to the largest use. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
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
  void add(const EncoderSequenceData& input, const BlockTable& cross_block_table);
  // After the last add(): fills the views below.
  void finish();

  bool empty() const { return seq_lens_.empty(); }
  const EncodeBatch& batch() const { return batch_; }
  // Where their cross K and V go: slot_mapping by packed encoder row.
  const AttentionMetadata& cross_write() const { return cross_write_; }
  // Their cross tables, one after another.
  const BlockTable& cross_blocks() const { return cross_blocks_; }

 private:
  Limits limits_;
  std::vector<int32_t> ids_, positions_, seq_lens_, start_loc_;
  std::vector<int64_t> slot_mapping_;
  std::vector<std::shared_ptr<const EncoderFeatures>> features_;
  std::vector<const EncoderFeatures*> feature_views_;
  BlockTable cross_blocks_;
  EncodeBatch batch_;
  AttentionMetadata cross_write_;
};

}  // namespace transept
