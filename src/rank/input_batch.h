// Turns a step's plan into what models and kernels read: packed ids, positions and the two metadata blocks, in buffers
// whose addresses never change. Owned by the model runner. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/forward_batch.h"
#include "rank/encode_inputs.h"
#include "rank/group_shortlists.h"
#include "rank/step_plan.h"
#include "sampling/select.h"

namespace transept {

class InputBatch final {
 public:
  struct Limits {
    int32_t max_num_seqs = 0;
    int32_t max_num_tokens = 0;  // decoder rows per step
    int32_t max_num_encoder_tokens = 0;
    int32_t max_encoder_len = 0;   // of one input
    int32_t max_decoder_len = 0;   // of one sequence
    int32_t block_size = 0;        // of self tables
    int32_t cross_block_size = 0;  // of cross tables; 0: the same
    int32_t rows_block_size = 0;   // of items' own tables; 0: the model splices none
    int32_t position_axes = 1;
    DType kv_dtype = DType::kFloat32;          // of self and cross
    DType encoder_kv_dtype = DType::kFloat32;  // AttentionMetadata::kv_dtype of encoder attention

    int32_t tokens_per_cross_block() const { return cross_block_size > 0 ? cross_block_size : block_size; }
    EncodeInputs::Limits encodes() const {
      return {max_num_encoder_tokens, tokens_per_cross_block(), rows_block_size, kv_dtype, encoder_kv_dtype};
    }
  };

  explicit InputBatch(const Limits& limits);

  // Fills everything below. Passes `kv` on to the forward batch. If `shortlists` (of this step) is not null, row
  // requests have subsets.
  void build(const StepPlan& plan, const KvCaches& kv, const GroupShortlists* shortlists = nullptr);

  const ForwardBatch& forward() const { return forward_; }
  // The items that are encoded whole in this step, in batches of one kind each.
  std::span<const EncodeInputs> encodes() const { return std::span(encodes_).first(num_encodes_); }
  std::span<const RowRequest> row_requests() const { return row_requests_; }
  // Rows whose cross-attention is wanted (RowPlan::align, StepPlan::captures): their number, and for each packed row
  // its place among them or -1. Empty if there are none.
  int32_t num_captured_rows() const { return num_captured_rows_; }
  View<int32_t> capture_rows() const { return capture_rows_; }
  // The same for a RowPlan: its place, or -1.
  int32_t captured_row(size_t plan_row) const { return captured_rows_[plan_row]; }
  // Returns the packed row of a scheduled sequence's new row 0.
  int32_t first_row(int32_t group_idx, int32_t seq_idx) const {
    const int32_t seq = first_seq_[static_cast<size_t>(group_idx)] + seq_idx;
    return first_rows_[static_cast<size_t>(seq)];
  }

 private:
  // Memory of one AttentionMetadata.
  struct MetadataBuffers {
    std::vector<int32_t> query_start_loc, context_lens, seq_lens, block_tables, kv_start_loc, group_start_loc;
    std::vector<int64_t> slot_mapping;

    void reserve(int64_t max_seqs, int64_t max_tokens, int64_t max_blocks);
    void clear();
  };

  void build_encodes(const SchedulerOutputs& scheduled);
  EncodeInputs& batch_for(const PlannedEncode& encode);
  void build_rows(const SchedulerOutputs& scheduled);
  void add_sequence(const SequenceGroupMetadata& group, size_t seq_idx, int32_t self_stride, int32_t cross_stride);
  void add_positions(const SequenceData& seq, int32_t first_row, size_t num_rows_of_step);
  void add_ranges(const SequenceGroupMetadata& group, const SequenceData& seq);
  void add_splices(const SequenceGroupMetadata& group, int32_t first_row);
  void build_requests(const StepPlan& plan, const GroupShortlists* shortlists);
  void build_captures(const StepPlan& plan);
  int32_t capture_row(int32_t packed_row);
  AttentionMetadata view(const MetadataBuffers& buffers, int32_t max_blocks_per_seq, int32_t block_size) const;

  Limits limits_;
  std::vector<int32_t> input_ids_, positions_, logits_rows_;
  std::vector<EncodeInputs> encodes_;  // the first num_encodes_ are in use
  size_t num_encodes_ = 0;
  std::vector<int32_t> key_begin_, key_end_, splice_rows_;
  std::vector<uint8_t> row_kinds_;
  std::vector<int64_t> splice_slots_;
  std::vector<int32_t> first_rows_;  // [sequences] first packed row of each scheduled sequence, in plan order
  std::vector<int32_t> first_seq_;   // [groups] number of sequences before the group
  std::vector<RowRequest> row_requests_;
  std::vector<int32_t> capture_rows_, captured_rows_;
  int32_t num_captured_rows_ = 0;
  MetadataBuffers self_, cross_;
  int32_t max_query_len_ = 0, max_self_len_ = 0, max_cross_len_ = 0;
  ForwardBatch forward_;
};

}  // namespace transept
