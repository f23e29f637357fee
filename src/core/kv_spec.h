// The shape of one kind of KV of a model. A model has one spec per kind (ModelSpec::kv), since cross-attention may have
// other layers and heads than self-attention. A value.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/table_spec.h"

namespace transept {

enum class KvKind : uint8_t {
  kSelf,         // of the decoder's own rows
  kCross,        // of the encoder's output, projected by each layer that crosses
  kEncoderRows,  // the encoder's output itself, for models that splice it: one "layer", one head, no values
};

struct KvSpec {
  KvKind kind = KvKind::kSelf;
  TableOwner owner = TableOwner::kSequence;
  std::vector<int32_t> layers = {};  // of the decoder that have it, ascending
  int32_t num_kv_heads = 0;          // of K and V; queries may have more
  int32_t head_dim = 0;              // of one head; kEncoderRows: the width of a row

  int32_t num_layers() const { return static_cast<int32_t>(layers.size()); }
};

}  // namespace transept
