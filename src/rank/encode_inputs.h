// Items packed end to end, as the encoder and the writers of its rows read them: all with the same consumers, and with
// rows that go to the same tables. Owns all but the values of media. Buffers grow to the largest use. Not thread-safe.
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
    int32_t cross_block_size = 0;
    int32_t rows_block_size = 0;               // of items' own tables
    DType kv_dtype = DType::kFloat32;          // of the cross cache
    DType encoder_kv_dtype = DType::kFloat32;  // AttentionMetadata::kv_dtype of encoder attention
  };

  explicit EncodeInputs(const Limits& limits);

  void clear();
  // Whether add() may take the item beside those that are here.
  bool takes(const PlannedEncode& encode) const {
    return empty() || (encode.consumers == batch_.consumers && encode.writes == writes_);
  }
  // `bulk`: SchedulerOutputs::bulk, or values that stand for it; borrowed until clear(). REQUIRES: takes(encode).
  void add(const PlannedEncode& encode, std::span<const float> bulk);
  // Fills the views below. Call after the last add().
  void finish();

  bool empty() const { return seq_lens_.empty(); }
  const EncodeBatch& batch() const { return batch_; }
  Consumers writes() const { return writes_; }
  // Where the cross K and V of the rows go: slot_mapping by packed row. REQUIRES: writes() has kCross.
  const AttentionMetadata& cross_write() const { return cross_write_; }
  // Where the rows themselves go, by packed row; empty unless writes() has kSplice.
  View<int64_t> row_slots() const { return row_slots_; }
  // The tables that are written, one after another.
  const BlockTable& blocks() const { return blocks_; }
  // Whose item each is, in the order of the batch.
  std::span<const GroupId> groups() const { return groups_; }

 private:
  Limits limits_;
  std::vector<int32_t> ids_, positions_, seq_lens_, start_loc_;
  std::vector<int64_t> cross_slots_, row_slots_;
  std::vector<PlannedFeatures> features_;
  std::vector<std::span<const float>> values_;
  std::vector<FeaturesView> views_;
  std::vector<GroupId> groups_;
  BlockTable blocks_;
  Consumers writes_ = Consumers::kNone;
  EncodeBatch batch_;
  AttentionMetadata cross_write_;
};

}  // namespace transept
