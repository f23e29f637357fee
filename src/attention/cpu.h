// Blocked attention for processors: online softmax over tiles of 64 keys, counted from a sequence's first; no mask and
// no more scores in memory than one tile's. K is stored transposed, so that a vector holds one dimension of several
// keys. A sequence, or a group that shares a cross table, is read once for all of its rows.
//
// KV in float32, float16, bfloat16 or int8: kv_format.h has the layout of blocks. 16-bit values are widened as they are
// loaded and arithmetic is float32; of int8 the products are integers', exact, and softmax is float32.
#pragma once

#include <span>

#include "attention/backend.h"
#include "attention/items.h"

namespace transept {

// What plan() prepares for every layer of a step.
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
