#include "rank/encode_inputs.h"

#include <algorithm>

namespace transept {

EncodeInputs::EncodeInputs(const Limits& limits)
    : limits_(limits), slots_(limits.tables.size()), table_writes_(limits.tables.size()) {
  const auto num_tokens = static_cast<size_t>(limits.max_num_tokens);
  for (std::vector<int32_t>* list : {&ids_, &positions_, &seq_lens_, &start_loc_}) list->reserve(num_tokens + 1);
  for (size_t spec = 0; spec < slots_.size(); ++spec) {
    if (limits.tables[spec].owner == TableOwner::kGroup) slots_[spec].reserve(num_tokens);
  }
  clear();
}

void EncodeInputs::clear() {
  for (std::vector<int32_t>* list : {&ids_, &positions_, &seq_lens_, &start_loc_}) list->clear();
  for (std::vector<int64_t>& slots : slots_) slots.clear();
  row_slots_.clear();
  packed_rows_.clear();
  features_.clear();
  values_.clear();
  groups_.clear();
  blocks_.clear();
  batch_.num_rows = 0;
  start_loc_.push_back(0);
}

// Calls then(spec, table) for each spec: the table that the item is written to, empty if there is none.
template <typename F>
void EncodeInputs::for_each_spec(const PlannedEncode& encode, F then) const {
  static const BlockTable kNoTable;
  size_t num_group_specs = 0, num_item_specs = 0;
  for (size_t spec = 0; spec < limits_.tables.size(); ++spec) {
    const TableOwner owner = limits_.tables[spec].owner;
    if (owner == TableOwner::kSequence) continue;
    const Recycled<BlockTable>& tables = owner == TableOwner::kGroup ? encode.group_tables : encode.item_tables;
    const size_t index = owner == TableOwner::kGroup ? num_group_specs++ : num_item_specs++;
    then(spec, index < tables.size() ? tables[index] : kNoTable);
  }
}

bool EncodeInputs::takes(const PlannedEncode& encode) const {
  if (empty()) return true;
  if (std::ssize(positions_) + encode.num_positions > limits_.max_num_tokens) return false;
  bool is_alike = encode.consumers == batch_.consumers && encode.source == source_ &&
                  encode.token_ids.empty() == ids_.empty() && encode.features.empty() == features_.empty();
  for_each_spec(encode,
                [&](size_t spec, const BlockTable& table) { is_alike &= table.empty() == slots_[spec].empty(); });
  return is_alike;
}

bool EncodeInputs::writes(TableOwner owner) const {
  for (size_t spec = 0; spec < slots_.size(); ++spec) {
    if (limits_.tables[spec].owner == owner && !slots_[spec].empty()) return true;
  }
  return false;
}

void EncodeInputs::add(const PlannedEncode& encode, std::span<const float> bulk) {
  batch_.consumers = encode.consumers;
  source_ = encode.source;
  batch_.num_rows += encode.num_rows;
  groups_.push_back(encode.group_id);
  ids_.insert(ids_.end(), encode.token_ids.begin(), encode.token_ids.end());
  if (!encode.features.empty()) {
    features_.push_back(encode.features);
    values_.push_back(bulk.subspan(static_cast<size_t>(encode.features.begin), encode.features.num_values()));
  }
  if (encode.source == RowSource::kResident) {
    const int32_t block_size = limits_.tables[static_cast<size_t>(limits_.rows_spec)].tokens_per_block;
    for (int32_t i = 0; i < encode.num_positions; ++i) {
      const int64_t block = encode.row_blocks[static_cast<size_t>(i / block_size)];
      row_slots_.push_back(block * block_size + i % block_size);
      packed_rows_.push_back(static_cast<int32_t>(packed_rows_.size()));
    }
  }
  for_each_spec(encode, [&](size_t spec, const BlockTable& table) {
    if (table.empty()) return;
    const int32_t block_size = limits_.tables[spec].tokens_per_block;
    const CrossPlace place = limits_.tables[spec].owner == TableOwner::kGroup ? encode.cross : CrossPlace();
    for (int32_t i = 0; i < encode.num_positions; ++i) {
      const int32_t position = place.position(i, encode.num_positions);
      const int64_t block = table[static_cast<size_t>(position / block_size)];
      slots_[spec].push_back(block * block_size + position % block_size);
    }
    blocks_.insert(blocks_.end(), table.begin(), table.end());
  });
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
  attention.kv_dtype = limits_.encoder_kv_dtype;
  attention.max_query_len = attention.max_kv_len = max_len;
  for (size_t spec = 0; spec < slots_.size(); ++spec) {
    AttentionMetadata& write = table_writes_[spec];
    write.block_size = limits_.tables[spec].tokens_per_block;
    write.kv_dtype = limits_.kv_dtype;
    write.slot_mapping = slots_[spec];
    write.max_kv_len = max_len;
  }
}

void EncodeBatches::build(const SchedulerOutputs& scheduled) {
  for (size_t i = 0; i < num_in_use_; ++i) batches_[i].clear();
  num_in_use_ = 0;
  for (const PlannedEncode& encode : scheduled.encodes) batch_for(encode).add(encode, scheduled.bulk);
  for (size_t i = 0; i < num_in_use_; ++i) batches_[i].finish();
}

EncodeInputs& EncodeBatches::batch_for(const PlannedEncode& encode) {
  for (size_t i = 0; i < num_in_use_; ++i) {
    if (batches_[i].takes(encode)) return batches_[i];
  }
  if (num_in_use_ == batches_.size()) batches_.emplace_back(limits_);
  return batches_[num_in_use_++];
}

}  // namespace transept
