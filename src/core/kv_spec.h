// What one kind of KV of a model looks like. KV is a list of specs: cross heads may differ from self heads, only some
// layers may cross, a draft model brings its own.
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
