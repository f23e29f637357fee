// What a model family implements. A model is weights and arithmetic: it knows no request, no scheduler, no sampler.
//
// Owned by its rank's model runner and that one's replicas together. Immutable after loading; methods write only
// through their arguments, so several threads may run them, each with a context of its own (its pool and arena).
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

// The encoder's result for the packed inputs of one EncodeBatch: [num_tokens, d_model]. A counted handle with any
// number of consumers; the memory returns to its maker when the last one lets go.
struct EncoderOutput {
  TensorView hidden;
  std::shared_ptr<void> owner;
};

// Activations of an unfinished encode, outside the step arena: what a stage of a pipeline hands to the next one.
// (Encodes that stand still between decode steps do so within a layer: base/sliced_call.h.) Made by the model runner,
// [num_tokens, d_model].
struct EncodeState {
  TensorView hidden;
  int32_t next_layer = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelSpec& spec() const = 0;

  // Runs encoder layers [range.begin, range.end) on state.hidden: the first slice embeds, the last one normalises.
  virtual void encode(Context& context, const EncodeBatch& batch, LayerRange range, EncodeState& state) const = 0;

  // Projects the encoder output to the cross K and V of decoder layers `range` and writes them at cross.slot_mapping.
  virtual void write_cross_kv(Context& context, const EncoderOutput& output, const AttentionMetadata& cross,
                              const KvCaches& kv, LayerRange range) const = 0;

  // Runs decoder layers `range` over the batch's rows; hidden: [batch.logits_rows.size(), d_model], ready for
  // lm_head().
  virtual void decode(Context& context, const ForwardBatch& batch, LayerRange range,
                      const TensorView& hidden) const = 0;

  virtual const LmHead& lm_head() const = 0;
};

struct ModelLoadOptions {
  PackOptions packing;                // a thread pool alone: every matrix as the checkpoint stores it
  const AttentionBackend& attention;  // outlives the model
};

}  // namespace transept
