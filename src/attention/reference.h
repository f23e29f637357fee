// Attention by its definition, and the oracle of the other backends: all scores of a row in memory, with its bias
// materialised, masked, softmax in double precision, times V. A block has the plainest layout: K [block_size, heads,
// head_dim], then V the same; int8: before them float32 scales of K [block_size, heads], then of V. Immutable,
// thread-safe.
#pragma once

#include "attention/backend.h"

namespace transept {

class ReferenceBackend final : public AttentionBackend {
 public:
  std::string_view name() const override { return "reference"; }
  bool supports(const AttentionCapabilities& wanted, std::string* why) const override;
  size_t block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const override;
  void plan(Context&, ForwardBatch&) const override {}
  void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
           const AttentionArgs& args) const override;
};

}  // namespace transept
