// The attention backend of the Vulkan device (attention/backend.h): KV in the blocks of the cpu backend.
// Immutable: thread-safe.
#pragma once

#include "attention/backend.h"

namespace transept {

class VulkanAttention final : public AttentionBackend {
 public:
  std::string_view name() const override { return "vulkan"; }
  bool supports(const AttentionCapabilities& wanted, std::string* why) const override;
  size_t block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const override;
  // Nothing: what depends on lengths goes to the device with each run().
  void plan(Context& context, ForwardBatch& batch) const override;
  void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
           const AttentionArgs& args) const override;
};

}  // namespace transept
