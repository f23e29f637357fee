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
#include <span>
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

// Hidden rows between two layers of a stack: what a stage of a pipeline hands to the next one. (Encodes that stand
// still between decode steps do so within a layer: base/sliced_call.h.) The memory is the caller's.
struct Activations {
  TensorView x;            // [num_tokens, width] float32
  int32_t next_layer = 0;  // layers below it have run; encode() and decode() set it to range.end
};

// A model may be one part of a checkpoint (ModelSpec::part). encode() REQUIRES a part that has the encoder, all other
// methods but spec() one that has the decoder. Executors refuse plans that want more (rank/executor.h).
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelSpec& spec() const = 0;

  // Runs layers [range.begin, range.end) of the encoder of batch.consumers on state.x in place: [batch.num_tokens(),
  // spec().width_of(batch.consumers)]. A range from layer 0 first overwrites it with the embedded inputs; one to the
  // last layer (spec().num_encoder_layers) normalises at the end, and leaves the rows that consumers get. An encoder
  // whose rows change in number or width inside is one layer. REQUIRES: state.next_layer == range.begin.
  virtual void encode(Context& context, const EncodeBatch& batch, LayerRange range, Activations& state) const = 0;

  // Projects `rows` [num_rows, width_of(kCross)], the encoder's, to cross K and V of decoder layers `range`, and writes
  // row i to slot writes[s].slot_mapping[i] of spec s of each layer. A cross spec whose slot_mapping is empty is
  // written already: its layers are skipped. writes: [spec().kv.size()]. Not called for models without a cross spec.
  virtual void write_cross_kv(Context& context, const TensorView& rows, std::span<const AttentionMetadata> writes,
                              const KvCaches& kv, LayerRange range) const = 0;

  // A decode is embed(), then decode() over all layers in order, in one call or several, then finish(). Any cut gives
  // the same bits, and state.x may move to other memory between two calls.
  //
  // embed: overwrites x [batch.num_tokens(), d_model] float32 with the embedded ids, or spliced rows, at their
  // positions.
  virtual void embed(Context& context, const ForwardBatch& batch, const TensorView& x) const = 0;

  // Runs decoder layers [range.begin, range.end) on state.x in place, and writes K and V of the new rows to
  // batch.kv. REQUIRES: state.next_layer == range.begin.
  virtual void decode(Context& context, const ForwardBatch& batch, LayerRange range, Activations& state) const = 0;

  // Overwrites hidden [batch.logits_rows.size(), d_model] float32 with the input of lm_head(), of the rows
  // batch.logits_rows. REQUIRES: all layers have run.
  virtual void finish(Context& context, const ForwardBatch& batch, const Activations& state,
                      const TensorView& hidden) const = 0;

  virtual const LmHead& lm_head() const = 0;
};

struct ModelLoadOptions {
  PackOptions packing;                // made of a thread pool alone: every matrix as the checkpoint stores it
  const AttentionBackend& attention;  // must outlive the model
  // Tensors of the other part are not read, and need not be there.
  ModelPart part = ModelPart::kWhole;
};

}  // namespace transept
