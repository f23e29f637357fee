// Items packed end to end, as the encoder and the writers of its rows read them: all of one source, with the same
// consumers, and with rows that go to tables of the same specs. Owns all but the values of media. Buffers grow to the
// largest use. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/forward_batch.h"
#include "kv/block.h"
#include "kv/table_spec.h"
#include "scheduling/scheduler_outputs.h"

namespace transept {

class EncodeInputs final {
 public:
  struct Limits {
    int32_t max_num_tokens = 0;
    std::vector<TableSpec> tables = {};        // of each spec, with its tokens a block
    DType kv_dtype = DType::kFloat32;          // of the cross cache
    DType encoder_kv_dtype = DType::kFloat32;  // AttentionMetadata::kv_dtype of encoder attention
    int32_t rows_spec = -1;                    // of `tables`: of PlannedEncode::row_blocks; -1: there are none
  };

  explicit EncodeInputs(const Limits& limits);

  void clear();
  // Whether add() may take the item beside those that are here.
  bool takes(const PlannedEncode& encode) const;
  // `bulk`: SchedulerOutputs::bulk, or values that stand for it; borrowed until clear(). REQUIRES: takes(encode).
  void add(const PlannedEncode& encode, std::span<const float> bulk);
  // Fills the views below. Call after the last add().
  void finish();

  bool empty() const { return seq_lens_.empty(); }
  // Of injected and resident items the rows are given, and no encoder reads the batch.
  const EncodeBatch& batch() const { return batch_; }
  RowSource source() const { return source_; }
  // Of injected items: the rows of each, [positions, width]. A dry run has none.
  std::span<const std::span<const float>> injected_rows() const {
    return source_ == RowSource::kInjected ? values_ : std::span<const std::span<const float>>();
  }
  // Of resident items: the slot of each packed row, and that row.
  View<int64_t> row_slots() const { return row_slots_; }
  View<int32_t> packed_rows() const { return packed_rows_; }
  // Whether some table of the owner is written.
  bool writes(TableOwner owner) const;
  // [s]: where what becomes of the rows goes in tables of spec s, cross K and V or the rows themselves: slot_mapping by
  // packed row. Empty slot_mapping: no table of this spec is written.
  std::span<const AttentionMetadata> table_writes() const { return table_writes_; }
  // The tables that are written, one after another.
  const BlockTable& blocks() const { return blocks_; }
  // Whose item each is, in the order of the batch.
  std::span<const GroupId> groups() const { return groups_; }

 private:
  template <typename F>
  void for_each_spec(const PlannedEncode& encode, F then) const;

  Limits limits_;
  RowSource source_ = RowSource::kEncode;
  std::vector<int32_t> ids_, positions_, seq_lens_, start_loc_;
  std::vector<std::vector<int64_t>> slots_;  // of each spec
  std::vector<int64_t> row_slots_;           // of resident items
  std::vector<int32_t> packed_rows_;
  std::vector<PlannedFeatures> features_;
  std::vector<std::span<const float>> values_;
  std::vector<FeaturesView> views_;
  std::vector<GroupId> groups_;
  BlockTable blocks_;
  EncodeBatch batch_;
  std::vector<AttentionMetadata> table_writes_;  // of each spec
};

// The items of a step that are encoded or taken whole, in batches of one kind each, of at most Limits::max_num_tokens
// rows. Keeps its memory from step to step.
// Not thread-safe.
class EncodeBatches final {
 public:
  explicit EncodeBatches(const EncodeInputs::Limits& limits) : limits_(limits) { batches_.emplace_back(limits); }

  // Borrows scheduled.bulk until the next build().
  void build(const SchedulerOutputs& scheduled);

  std::span<const EncodeInputs> all() const { return std::span(batches_).first(num_in_use_); }

 private:
  EncodeInputs& batch_for(const PlannedEncode& encode);

  EncodeInputs::Limits limits_;
  std::vector<EncodeInputs> batches_;  // the first num_in_use_ are in use
  size_t num_in_use_ = 0;
};

}  // namespace transept
