// The shape of the KV of some layers of a model. A model lists its specs (ModelSpec::kv): layers of one kind and of
// heads of one shape are one spec, so a model may have several of a kind. Each spec has tables of its own. A value.
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
  int32_t head_dim = 0;              // of one head; kEncoderRows: the width of the widest row

  int32_t num_layers() const { return static_cast<int32_t>(layers.size()); }
};

}  // namespace transept
