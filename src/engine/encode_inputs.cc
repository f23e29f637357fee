#include "engine/encode_inputs.h"

#include <algorithm>

namespace transept {

EncodeInputs::EncodeInputs(const Limits& limits) : limits_(limits) {
  const auto num_tokens = static_cast<size_t>(limits.max_num_tokens);
  for (std::vector<int32_t>* list : {&ids_, &positions_, &seq_lens_, &start_loc_}) list->reserve(num_tokens + 1);
  slot_mapping_.reserve(num_tokens);
  clear();
}

void EncodeInputs::clear() {
  for (std::vector<int32_t>* list : {&ids_, &positions_, &seq_lens_, &start_loc_}) list->clear();
  slot_mapping_.clear();
  shapes_.clear();
  values_.clear();
  cross_blocks_.clear();
  start_loc_.push_back(0);
}

void EncodeInputs::add(const EncoderSequenceData& input, std::span<const float> bulk,
                       const BlockTable& cross_block_table) {
  ids_.insert(ids_.end(), input.token_ids.begin(), input.token_ids.end());
  if (!input.features.empty()) {
    shapes_.push_back(input.features.shape);
    values_.push_back(bulk.subspan(static_cast<size_t>(input.features.begin), input.features.num_values()));
  }
  for (int32_t i = 0; i < input.num_tokens; ++i) {
    const int64_t block = cross_block_table[static_cast<size_t>(i / limits_.block_size)];
    positions_.push_back(i);
    slot_mapping_.push_back(block * limits_.block_size + i % limits_.block_size);
  }
  seq_lens_.push_back(input.num_tokens);
  start_loc_.push_back(static_cast<int32_t>(positions_.size()));
  cross_blocks_.insert(cross_blocks_.end(), cross_block_table.begin(), cross_block_table.end());
}

void EncodeInputs::finish() {
  const int32_t max_len = seq_lens_.empty() ? 0 : *std::max_element(seq_lens_.begin(), seq_lens_.end());
  batch_.input_ids = ids_;
  features_.clear();
  for (size_t i = 0; i < shapes_.size(); ++i) features_.emplace_back(shapes_[i], values_[i]);
  batch_.features = features_;
  batch_.positions = positions_;
  AttentionMetadata& attention = batch_.attention;
  attention.num_seqs = static_cast<int32_t>(seq_lens_.size());
  attention.query_start_loc = attention.kv_start_loc = start_loc_;
  attention.seq_lens = seq_lens_;
  attention.block_size = limits_.block_size;
  attention.kv_dtype = limits_.encoder_kv_dtype;
  attention.max_query_len = attention.max_kv_len = max_len;
  cross_write_.block_size = limits_.block_size;
  cross_write_.kv_dtype = limits_.kv_dtype;
  cross_write_.slot_mapping = slot_mapping_;
  cross_write_.max_kv_len = max_len;
}

}  // namespace transept
