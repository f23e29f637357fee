#include "rank/input_batch.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/rows.h"
#include "rank/row_buckets.h"

namespace transept {
namespace {

int32_t size32(size_t size) { return static_cast<int32_t>(size); }

// A table padded with -1 to `stride` places.
void append_table(const BlockTable& table, int32_t stride, std::vector<int32_t>& out) {
  out.insert(out.end(), table.begin(), table.end());
  out.insert(out.end(), static_cast<size_t>(stride) - table.size(), -1);
}

int64_t slot(const BlockTable& table, int32_t position, int32_t block_size) {
  return static_cast<int64_t>(table[static_cast<size_t>(position / block_size)]) * block_size + position % block_size;
}

}  // namespace

InputBatch::InputBatch(const Limits& limits)
    : limits_(limits), encodes_(limits.encodes()), tables_(limits.tables.size()), attention_(limits.tables.size()) {
  const int64_t seqs = limits.max_num_seqs, rows = limits.max_num_tokens;
  std::array<size_t, kNumTableOwners> num_of_owner = {};
  for (size_t spec = 0; spec < tables_.size(); ++spec) {
    const auto& [owner, block_size] = limits.tables[spec];
    tables_[spec].index = num_of_owner[static_cast<size_t>(owner)]++;
    if (owner == TableOwner::kItem) {
      if (rows_block_size_ == 0) rows_block_size_ = block_size;
      continue;
    }
    const bool is_self = owner == TableOwner::kSequence;
    const int64_t most_blocks = ceil_div(is_self ? limits.max_decoder_len : limits.max_encoder_len, block_size);
    tables_[spec].block_tables.reserve(static_cast<size_t>(seqs * most_blocks));
    if (is_self) tables_[spec].slot_mapping.reserve(static_cast<size_t>(rows));
  }
  for (std::vector<int32_t>* list : {&query_start_loc_, &context_lens_, &self_lens_, &cross_lens_, &group_start_loc_}) {
    list->reserve(static_cast<size_t>(seqs) + 1);
  }
  captured_rows_.reserve(static_cast<size_t>(std::max(rows, seqs)));
  for (std::vector<int32_t>* list : {&input_ids_, &logits_rows_}) list->reserve(static_cast<size_t>(rows));
  positions_.reserve(static_cast<size_t>(rows * limits.position_axes));
  first_rows_.reserve(static_cast<size_t>(seqs));
  first_seq_.reserve(static_cast<size_t>(seqs));
  row_requests_.reserve(static_cast<size_t>(std::max(rows, seqs)));
}

void InputBatch::build(const StepPlan& plan, const KvCaches& kv, const GroupShortlists* shortlists) {
  encodes_.build(plan.scheduled);
  build_rows(plan.scheduled);
  forward_.kv = kv;
  build_requests(plan, shortlists);
  build_captures(plan);
}

void InputBatch::build_rows(const SchedulerOutputs& scheduled) {
  input_ids_.clear();
  positions_.clear();
  first_rows_.clear();
  first_seq_.clear();
  for (std::vector<int32_t>* list : {&query_start_loc_, &context_lens_, &self_lens_, &cross_lens_, &group_start_loc_}) {
    list->clear();
  }
  max_query_len_ = max_self_len_ = max_cross_len_ = 0;
  for (std::vector<int32_t>* list : {&key_begin_, &key_end_, &splice_rows_}) list->clear();
  row_kinds_.clear();
  splice_slots_.clear();
  set_strides(scheduled);
  size_t num_rows = 0;
  bool has_ranges = false;
  for (const SequenceGroupMetadata& group : scheduled.groups) {
    for (const SequenceData& seq : group.seq_data) num_rows += seq.token_ids.size();
    has_ranges |= !group.ranges.empty();
  }
  // Rows of a kind or with keys of their own are seldom twice the same.
  is_filled_ = limits_.fills_rows && !has_ranges && num_rows > 0 && num_rows <= kMostRowsOfBucket;
  if (is_filled_) {
    const int64_t most =
        std::min<int64_t>(limits_.max_num_tokens, int64_t{limits_.max_num_seqs} * limits_.max_decoder_len);
    num_rows =
        static_cast<size_t>(bucket_of_rows(size32(num_rows), std::max(size32(num_rows), static_cast<int32_t>(most))));
  }
  positions_.resize(num_rows * static_cast<size_t>(limits_.position_axes));
  query_start_loc_.push_back(0);
  group_start_loc_.push_back(0);
  const SequenceGroupMetadata* previous = nullptr;
  for (const SequenceGroupMetadata& group : scheduled.groups) {
    first_seq_.push_back(size32(self_lens_.size()));
    for (size_t i = 0; i < group.seq_data.size(); ++i) {
      const int32_t first_row = size32(input_ids_.size());
      add_sequence(group, i);
      add_positions(group.seq_data[i], first_row, num_rows);
      if (has_ranges) add_ranges(group, group.seq_data[i]);
      if (i == 0) add_splices(group, first_row);
    }
    // Neighbours that share their cross tables read them together.
    const bool shares =
        previous != nullptr && !group.group_tables.empty() && group.group_tables == previous->group_tables;
    if (shares) group_start_loc_.pop_back();
    group_start_loc_.push_back(size32(self_lens_.size()));
    previous = &group;
  }
  if (is_filled_) fill_rows(size32(num_rows));
  for (size_t spec = 0; spec < attention_.size(); ++spec) attention_[spec] = view(spec);
  forward_.input_ids = input_ids_;
  forward_.positions = positions_;
  forward_.attention = attention_;
  forward_.row_kinds = row_kinds_;
  forward_.splices = {splice_rows_, splice_slots_, rows_block_size_};
}

// As wide as the longest table of the step.
void InputBatch::set_strides(const SchedulerOutputs& scheduled) {
  for (size_t spec = 0; spec < tables_.size(); ++spec) {
    SpecTables& tables = tables_[spec];
    tables.block_tables.clear();
    tables.slot_mapping.clear();
    size_t most = 0;
    for (const SequenceGroupMetadata& group : scheduled.groups) {
      if (limits_.tables[spec].owner == TableOwner::kGroup && !group.group_tables.empty()) {
        most = std::max(most, group.group_tables[tables.index].size());
      }
      if (limits_.tables[spec].owner != TableOwner::kSequence) continue;
      for (size_t i = 0; i < group.seq_data.size(); ++i) {
        most = std::max(most, group.sequence_table(i, tables.index).size());
      }
    }
    tables.stride = size32(most);
  }
}

// Axis by axis: [position_axes, rows of the step].
void InputBatch::add_positions(const SequenceData& seq, int32_t first_row, size_t num_rows_of_step) {
  const auto num_axes = static_cast<size_t>(limits_.position_axes);
  const size_t num_given = seq.positions.size() / num_axes;
  for (size_t axis = 0; axis < num_axes; ++axis) {
    int32_t* out = positions_.data() + axis * num_rows_of_step + first_row;
    for (size_t i = 0; i < seq.token_ids.size(); ++i) {
      out[i] = i < num_given ? seq.positions[axis * num_given + i]
                             : seq.context_len + static_cast<int32_t>(i) + seq.position_delta;
    }
  }
}

// Sequences of one row that sees no key and has no place: whatever comes of it is read by nothing.
void InputBatch::fill_rows(int32_t num_rows) {
  static const BlockTable kNoTable;
  while (size32(input_ids_.size()) < num_rows) {
    input_ids_.push_back(0);
    query_start_loc_.push_back(size32(input_ids_.size()));
    for (std::vector<int32_t>* lengths : {&context_lens_, &self_lens_, &cross_lens_}) lengths->push_back(0);
    for (size_t spec = 0; spec < tables_.size(); ++spec) {
      if (limits_.tables[spec].owner == TableOwner::kItem) continue;
      append_table(kNoTable, tables_[spec].stride, tables_[spec].block_tables);
      if (limits_.tables[spec].owner == TableOwner::kSequence) tables_[spec].slot_mapping.push_back(kNoSlot);
    }
  }
  if (group_start_loc_.back() < size32(self_lens_.size())) group_start_loc_.push_back(size32(self_lens_.size()));
}

// Of a step in which some group has ranges, every row has one.
void InputBatch::add_ranges(const SequenceGroupMetadata& group, const SequenceData& seq) {
  size_t next = 0;
  RowRange range{0, 0, group.num_cross_tokens, 0};
  for (size_t i = 0; i < seq.token_ids.size(); ++i) {
    const int32_t token = seq.context_len + size32(i);
    while (next < group.ranges.size() && group.ranges[next].first_token <= token) range = group.ranges[next++];
    key_begin_.push_back(range.key_begin);
    key_end_.push_back(range.key_end);
    row_kinds_.push_back(range.kind);
  }
}

void InputBatch::add_splices(const SequenceGroupMetadata& group, int32_t first_row) {
  for (const PlannedSplice& splice : group.splices) {
    for (int32_t i = 0; i < splice.num_rows; ++i) {
      splice_rows_.push_back(first_row + splice.first_row + i);
      splice_slots_.push_back(slot(splice.item_tables[0], splice.first_slot + i, rows_block_size_));
    }
  }
}

void InputBatch::add_sequence(const SequenceGroupMetadata& group, size_t seq_idx) {
  const SequenceData& seq = group.seq_data[seq_idx];
  const int32_t first_row = size32(input_ids_.size());
  const int32_t num_rows = size32(seq.token_ids.size());
  first_rows_.push_back(first_row);
  input_ids_.insert(input_ids_.end(), seq.token_ids.begin(), seq.token_ids.end());
  context_lens_.push_back(seq.context_len);
  self_lens_.push_back(seq.context_len + num_rows);
  query_start_loc_.push_back(first_row + num_rows);
  cross_lens_.push_back(group.num_cross_tokens);
  add_tables(group, seq_idx);
  max_query_len_ = std::max(max_query_len_, num_rows);
  max_self_len_ = std::max(max_self_len_, seq.context_len + num_rows);
  max_cross_len_ = std::max(max_cross_len_, group.num_cross_tokens);
}

void InputBatch::add_tables(const SequenceGroupMetadata& group, size_t seq_idx) {
  const SequenceData& seq = group.seq_data[seq_idx];
  for (size_t spec = 0; spec < tables_.size(); ++spec) {
    SpecTables& tables = tables_[spec];
    const auto& [owner, block_size] = limits_.tables[spec];
    if (owner == TableOwner::kSequence) {
      const BlockTable& table = group.sequence_table(seq_idx, tables.index);
      append_table(table, tables.stride, tables.block_tables);
      for (int32_t i = 0; i < size32(seq.token_ids.size()); ++i) {
        tables.slot_mapping.push_back(slot(table, seq.context_len + i, block_size));
      }
    } else if (owner == TableOwner::kGroup) {
      static const BlockTable kNoTable;
      append_table(group.group_tables.empty() ? kNoTable : group.group_tables[tables.index], tables.stride,
                   tables.block_tables);
    }
  }
}

void InputBatch::build_requests(const StepPlan& plan, const GroupShortlists* shortlists) {
  row_requests_.clear();
  logits_rows_.clear();
  capture_rows_.clear();
  captured_rows_.clear();
  num_captured_rows_ = 0;
  for (const RowPlan& row : plan.rows) {
    const int32_t packed_row = first_row(row.group_idx, row.seq_idx) + row.row;
    CHECK(logits_rows_.empty() || logits_rows_.back() <= packed_row, "the rows of a plan must ascend");
    if (logits_rows_.empty() || logits_rows_.back() != packed_row) logits_rows_.push_back(packed_row);
    RowRequest request;
    request.hidden_row = size32(logits_rows_.size()) - 1;
    request.target_token = row.target_token;
    request.target_vocab = row.target_vocab;
    request.edits = row.edits.empty() && !row.edits.renormalize ? nullptr : &row.edits;
    request.subset = shortlists == nullptr ? nullptr : shortlists->subset(row.group_idx);
    request.temperature = row.temperature;
    request.top_k = row.top_k;
    request.top_p = row.top_p;
    request.min_p = row.min_p;
    request.seed = row.seed;
    request.seq_index = static_cast<uint32_t>(row.sample_idx);
    request.position = row.position;
    request.wants_logprob = row.wants_logprob;
    request.num_logprobs = row.num_logprobs;
    request.num_candidates = row.num_candidates;
    row_requests_.push_back(request);
    captured_rows_.push_back(row.align ? capture_row(packed_row) : -1);
  }
  if (is_filled_) {
    const int32_t num_rows = bucket_of_rows(size32(logits_rows_.size()), size32(input_ids_.size()));
    logits_rows_.resize(static_cast<size_t>(num_rows), kNoRow);
  }
  forward_.logits_rows = logits_rows_;
}

void InputBatch::build_captures(const StepPlan& plan) {
  for (const CapturePlan& capture : plan.captures) {
    const int32_t first = first_row(capture.group_idx, capture.seq_idx);
    for (int32_t row = capture.row_begin; row < capture.row_end; ++row) capture_row(first + row);
  }
}

// The place of a row among those that are captured; several requests may want the same one.
int32_t InputBatch::capture_row(int32_t packed_row) {
  if (capture_rows_.empty()) capture_rows_.resize(input_ids_.size(), -1);
  int32_t& place = capture_rows_[static_cast<size_t>(packed_row)];
  if (place < 0) place = num_captured_rows_++;
  return place;
}

AttentionMetadata InputBatch::view(size_t spec) const {
  const auto& [owner, block_size] = limits_.tables[spec];
  AttentionMetadata metadata;
  if (owner == TableOwner::kItem) return metadata;
  metadata.num_seqs = size32(self_lens_.size());
  metadata.max_query_len = max_query_len_;
  metadata.query_start_loc = query_start_loc_;
  metadata.block_tables = tables_[spec].block_tables;
  metadata.max_blocks_per_seq = tables_[spec].stride;
  metadata.block_size = block_size;
  metadata.kv_dtype = limits_.kv_dtype;
  if (owner == TableOwner::kSequence) {
    metadata.max_kv_len = max_self_len_;
    metadata.context_lens = context_lens_;
    metadata.seq_lens = self_lens_;
    metadata.slot_mapping = tables_[spec].slot_mapping;
  } else {
    metadata.max_kv_len = max_cross_len_;
    metadata.seq_lens = cross_lens_;
    metadata.group_start_loc = group_start_loc_;
    metadata.key_begin = key_begin_;
    metadata.key_end = key_end_;
  }
  return metadata;
}

}  // namespace transept
