// The interface of a model family. A model is weights and arithmetic: it knows no request, no scheduler, no sampler.
//
// Owned jointly by the model runner of its rank and the replicas of that runner. Immutable after loading; methods write
// only through their arguments, so several threads may call them concurrently, each with its own context (pool and
// arena).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/status.h"
#include "core/forward_batch.h"
#include "core/kv_spec.h"
#include "core/model_config.h"
#include "layers/lm_head.h"
#include "layers/packing.h"
#include "models/model_spec.h"
#include "tensor/context.h"
#include "weights/weight_map.h"

namespace transept {

// The encoder's result for one EncodeBatch: [num_tokens, d_model] float32. A reference-counted handle: `owner` keeps
// the memory; null: the caller keeps it.
struct EncoderOutput {
  TensorView hidden;
  std::shared_ptr<void> owner;
};

// The activations of an encode between two calls of Model::encode: [num_tokens, d_model] float32. The model runner
// makes it, outside the step arena. (A long encode pauses within a layer instead: base/sliced_call.h.)
struct EncodeState {
  TensorView hidden;
  int32_t next_layer = 0;  // encode() sets it to range.end
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelSpec& spec() const = 0;

  // Runs encoder layers [range.begin, range.end) on state.hidden. A range from layer 0 first overwrites it with the
  // embedded inputs; one to the last layer normalises at the end. REQUIRES: range.begin == state.next_layer.
  virtual void encode(Context& context, const EncodeBatch& batch, LayerRange range, EncodeState& state) const = 0;

  // Projects the encoder output to cross K and V of decoder layers `range`, and writes row i to slot
  // cross.slot_mapping[i] of kv.cross_layers.
  virtual void write_cross_kv(Context& context, const EncoderOutput& output, const AttentionMetadata& cross,
                              const KvCaches& kv, LayerRange range) const = 0;

  // Runs the decoder over the batch's rows, and writes K and V of the new rows to batch.kv.self_layers. hidden:
  // [batch.logits_rows.size(), d_model] float32, overwritten with the input of lm_head(). REQUIRES: `range` is all
  // decoder layers (no family splits the decoder yet).
  virtual void decode(Context& context, const ForwardBatch& batch, LayerRange range,
                      const TensorView& hidden) const = 0;

  virtual const LmHead& lm_head() const = 0;
};

struct ModelLoadOptions {
  PackOptions packing;                // made of a thread pool alone: every matrix as the checkpoint stores it
  const AttentionBackend& attention;  // must outlive the model
};

}  // namespace transept
