#include "rank/encode_inputs.h"

#include <algorithm>

namespace transept {

EncodeInputs::EncodeInputs(const Limits& limits) : limits_(limits) {
  const auto num_tokens = static_cast<size_t>(limits.max_num_tokens);
  for (std::vector<int32_t>* list : {&ids_, &positions_, &seq_lens_, &start_loc_}) list->reserve(num_tokens + 1);
  cross_slots_.reserve(num_tokens);
  clear();
}

void EncodeInputs::clear() {
  for (std::vector<int32_t>* list : {&ids_, &positions_, &seq_lens_, &start_loc_}) list->clear();
  cross_slots_.clear();
  row_slots_.clear();
  features_.clear();
  values_.clear();
  groups_.clear();
  blocks_.clear();
  writes_ = Consumers::kNone;
  batch_.num_rows = 0;
  start_loc_.push_back(0);
}

void EncodeInputs::add(const PlannedEncode& encode, std::span<const float> bulk) {
  batch_.consumers = encode.consumers;
  batch_.num_rows += encode.num_rows;
  writes_ = encode.writes;
  groups_.push_back(encode.group_id);
  ids_.insert(ids_.end(), encode.token_ids.begin(), encode.token_ids.end());
  if (!encode.features.empty()) {
    features_.push_back(encode.features);
    values_.push_back(bulk.subspan(static_cast<size_t>(encode.features.begin), encode.features.num_values()));
  }
  const auto add_slots = [&](const BlockTable& table, int32_t first, int32_t block_size, std::vector<int64_t>& slots) {
    for (int32_t i = first; i < first + encode.num_positions; ++i) {
      const int64_t block = table[static_cast<size_t>(i / block_size)];
      slots.push_back(block * block_size + i % block_size);
    }
    blocks_.insert(blocks_.end(), table.begin(), table.end());
  };
  if (has(writes_, Consumers::kCross)) {
    add_slots(encode.cross_block_table, encode.cross_begin, limits_.cross_block_size, cross_slots_);
  }
  if (has(writes_, Consumers::kSplice)) add_slots(encode.rows_block_table, 0, limits_.rows_block_size, row_slots_);
  for (int32_t i = 0; i < encode.num_positions; ++i) positions_.push_back(i);
  seq_lens_.push_back(encode.num_positions);
  start_loc_.push_back(static_cast<int32_t>(positions_.size()));
}

void EncodeInputs::finish() {
  const int32_t max_len = seq_lens_.empty() ? 0 : *std::max_element(seq_lens_.begin(), seq_lens_.end());
  batch_.input_ids = ids_;
  views_.clear();
  for (size_t i = 0; i < features_.size(); ++i) {
    views_.emplace_back(features_[i].shape, values_[i], features_[i].extras);
  }
  batch_.features = views_;
  batch_.positions = positions_;
  AttentionMetadata& attention = batch_.attention;
  attention.num_seqs = static_cast<int32_t>(seq_lens_.size());
  attention.query_start_loc = attention.kv_start_loc = start_loc_;
  attention.seq_lens = seq_lens_;
  attention.block_size = limits_.cross_block_size;
  attention.kv_dtype = limits_.encoder_kv_dtype;
  attention.max_query_len = attention.max_kv_len = max_len;
  cross_write_.block_size = limits_.cross_block_size;
  cross_write_.kv_dtype = limits_.kv_dtype;
  cross_write_.slot_mapping = cross_slots_;
  cross_write_.max_kv_len = max_len;
}

}  // namespace transept
