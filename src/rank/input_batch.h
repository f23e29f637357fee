// Turns a step's plan into what models and kernels read: packed ids, positions and a metadata block for each spec, in
// buffers whose addresses never change. Owned by the model runner. Not thread-safe.
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
    int32_t max_encoder_len = 0;         // of one input
    int32_t max_decoder_len = 0;         // of one sequence
    std::vector<TableSpec> tables = {};  // of each spec, with its tokens a block
    int32_t position_axes = 1;
    DType kv_dtype = DType::kFloat32;          // of self and cross
    DType encoder_kv_dtype = DType::kFloat32;  // AttentionMetadata::kv_dtype of encoder attention
    int32_t rows_spec = -1;                    // EncodeInputs::Limits::rows_spec
    bool has_wide_layers = false;              // items have more rows inside the encoder than positions behind it
    bool fills_rows = false;                   // up to bucket_of_rows() (rank/row_buckets.h)

    EncodeInputs::Limits encodes() const {
      return {max_num_encoder_tokens, tables, kv_dtype, encoder_kv_dtype, rows_spec};
    }
  };

  explicit InputBatch(const Limits& limits);

  // Fills everything below. Passes `kv` on to the forward batch. If `shortlists` (of this step) is not null, row
  // requests have subsets.
  void build(const StepPlan& plan, const KvCaches& kv, const GroupShortlists* shortlists = nullptr);

  // AttentionBackend::plan() may fill what forward().attention refers to.
  const ForwardBatch& forward() const { return forward_; }
  // Whether another step of as many rows may have the same ops: its rows were filled up, and no op is of some rows.
  bool may_come_again() const { return is_filled_ && num_captured_rows_ == 0 && splice_rows_.empty(); }
  // The most positions that a sequence of the step crosses: max_kv_len of every cross spec. 0: none crosses any.
  int32_t max_cross_len() const { return max_cross_len_; }
  std::span<const EncodeInputs> encodes() const { return encodes_.all(); }
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
  // What the attentions of one spec do not have in common with others. Of owner kItem: unused.
  struct SpecTables {
    std::vector<int32_t> block_tables;
    std::vector<int64_t> slot_mapping;  // of owner kSequence
    int32_t stride = 0;                 // places of a sequence in block_tables
    size_t index = 0;                   // among the specs of the same owner
  };

  void build_rows(const SchedulerOutputs& scheduled);
  void set_strides(const SchedulerOutputs& scheduled);
  void add_sequence(const SequenceGroupMetadata& group, size_t seq_idx);
  void add_tables(const SequenceGroupMetadata& group, size_t seq_idx);
  void add_positions(const SequenceData& seq, int32_t first_row, size_t num_rows_of_step);
  void fill_rows(int32_t num_rows);
  void add_ranges(const SequenceGroupMetadata& group, const SequenceData& seq);
  void add_splices(const SequenceGroupMetadata& group, int32_t first_row);
  void build_requests(const StepPlan& plan, const GroupShortlists* shortlists);
  void build_captures(const StepPlan& plan);
  int32_t capture_row(int32_t packed_row);
  AttentionMetadata view(size_t spec) const;

  Limits limits_;
  int32_t rows_block_size_ = 0;  // of the first spec of items; 0: the model splices none
  std::vector<int32_t> input_ids_, positions_, logits_rows_;
  EncodeBatches encodes_;
  std::vector<int32_t> key_begin_, key_end_, splice_rows_;
  std::vector<uint8_t> row_kinds_;
  std::vector<int64_t> splice_slots_;
  std::vector<int32_t> first_rows_;  // [sequences] first packed row of each scheduled sequence, in plan order
  std::vector<int32_t> first_seq_;   // [groups] number of sequences before the group
  std::vector<RowRequest> row_requests_;
  std::vector<int32_t> capture_rows_, captured_rows_;
  int32_t num_captured_rows_ = 0;
  bool is_filled_ = false;
  std::vector<int32_t> query_start_loc_, context_lens_, self_lens_, cross_lens_, group_start_loc_;
  std::vector<SpecTables> tables_;            // of each spec
  std::vector<AttentionMetadata> attention_;  // of each spec: views of the above
  int32_t max_query_len_ = 0, max_self_len_ = 0, max_cross_len_ = 0;
  ForwardBatch forward_;
};

}  // namespace transept
