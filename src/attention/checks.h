// Checks of arguments, and readings of metadata, that both backends share. Functions without state: thread-safe.
#pragma once

#include <algorithm>

#include "attention/backend.h"
#include "attention/kv_format.h"
#include "base/check.h"

namespace transept {

// A layer's part of a block begins at a multiple of this, if the block's memory does.
constexpr int64_t kBlockAlignment = 64;

// Returns whether both backends support `wanted`: head_dim up to kMaxHeadDim, heads a multiple of KV heads, KV of
// float32, float16, bfloat16 or int8. False: *why gives the reason.
bool supports_attention(const AttentionCapabilities& wanted, std::string* why);

// REQUIRES: one of these types.
inline KvType kv_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return KvType::kFloat32;
    case DType::kFloat16: return KvType::kFloat16;
    case DType::kBFloat16: return KvType::kBFloat16;
    case DType::kInt8: return KvType::kInt8;
    default: CHECK(false, "KV of ", dtype_name(dtype)); return KvType::kFloat32;
  }
}

// CHECKs shapes against each other: the caller builds them, and no request can make them wrong. A dry run has no cache
// and no lists yet: it checks only the tensors of the step.
void check_attention_args(const Context& context, AttentionType type, const AttentionMetadata& metadata,
                          const AttentionArgs& args, const AttentionBackend& backend);

// Returns whether k and v are written to the cache.
inline bool writes_cache(AttentionType type, const AttentionArgs& args) {
  return type != AttentionType::kEncoder && !args.k.empty();
}

// Returns the heads of k and v; of the cache if nothing is written.
inline int64_t num_kv_heads(const AttentionArgs& args) {
  if (!args.k.empty()) return args.k.dim(1);
  return args.num_kv_heads > 0 ? args.num_kv_heads : args.q.dim(1);
}

// Returns the position of the row_idx-th new row of a sequence among its keys.
inline int64_t row_position(const AttentionMetadata& metadata, int64_t seq, int64_t row_idx) {
  return row_idx + (metadata.context_lens.empty() ? 0 : metadata.context_lens[static_cast<size_t>(seq)]);
}

// Keys [begin, end) of a sequence. Without keys: [0, 0).
struct KeyRange {
  int64_t begin = 0, end = 0;

  bool empty() const { return begin >= end; }
};

// Returns the keys that the row_idx-th new row of a sequence sees.
inline KeyRange visible_keys(const AttentionMetadata& metadata, bool causal, int64_t seq, int64_t row_idx) {
  const auto s = static_cast<size_t>(seq);
  KeyRange range{0, metadata.seq_lens[s]};
  if (causal) range.end = std::min(range.end, row_position(metadata, seq, row_idx) + 1);
  if (metadata.key_begin.empty()) return range;
  const auto row = static_cast<size_t>(metadata.query_start_loc[s] + row_idx);
  const int32_t begin = metadata.key_begin[row], end = metadata.key_end[row];
  DCHECK(begin >= 0 && begin <= metadata.seq_lens[s] && end >= 0 && end <= metadata.seq_lens[s]);
  range = {begin, std::min<int64_t>(range.end, end)};
  return range.empty() ? KeyRange{} : range;
}

// Returns the start of one layer's part of block `slot / block_size`.
inline unsigned char* block_of_slot(const TensorView& kv_cache, int64_t slot, int64_t block_size) {
  const int64_t block = slot / block_size;
  DCHECK(slot >= 0 && block < kv_cache.dim(0));
  return static_cast<unsigned char*>(kv_cache.raw) + block * kv_cache.stride[0];
}

}  // namespace transept
