// Attention as it is written down: every score of a row in memory, its bias written out, masked, turned into
// probabilities in double precision, times V. The oracle of the other backends, with the plainest block: K [block_size,
// heads, head_dim], then V the same.
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
