// Blocked attention for processors: online softmax over tiles of 64 keys, counted from a sequence's first. It has no
// mask, and scores of one tile only in memory. K is stored transposed, so that a vector holds one dimension of several
// keys. The keys of a sequence, or of a group that shares a cross table, are read once for every 96 rows of q.
// Immutable, thread-safe.
//
// KV in float32, float16, bfloat16 or int8: kv_format.h has the layout of blocks. 16-bit values are widened when
// loaded, and arithmetic is float32. With int8, products are exact integers, and softmax is float32. Encoders over int8
// keys have kernels of their own (encoder_int8.h).
#pragma once

#include <span>

#include "attention/backend.h"
#include "attention/items.h"

namespace transept {

// Result of plan(), for every layer of a step; in that step's memory.
struct PlannedItems {
  std::span<const AttentionItem> items;
};

class CpuBackend final : public AttentionBackend {
 public:
  std::string_view name() const override { return "cpu"; }
  bool supports(const AttentionCapabilities& wanted, std::string* why) const override;
  size_t block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const override;
  void plan(Context& context, ForwardBatch& batch) const override;
  void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
           const AttentionArgs& args) const override;
};

}  // namespace transept
