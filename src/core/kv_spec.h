// The shape of one kind of KV of a model. A model has one spec per kind (ModelSpec::kv), since cross-attention may have
// other layers and heads than self-attention. A value.
#pragma once

#include <cstdint>

namespace transept {

enum class KvKind : uint8_t { kSelf, kCross };

struct KvSpec {
  KvKind kind = KvKind::kSelf;
  int32_t num_layers = 0;
  int32_t num_heads = 0;
  int32_t head_dim = 0;
};

}  // namespace transept
