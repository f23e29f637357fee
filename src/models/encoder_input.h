// Computes the first hidden rows of an encoder from ids or media: the part in which families of one arithmetic differ.
// Owned by the model. Immutable after loading; thread-safe as Model is.
#pragma once

#include "core/forward_batch.h"
#include "tensor/context.h"

namespace transept {

class EncoderInput {
 public:
  virtual ~EncoderInput() = default;

  // x: [batch.num_tokens(), d_model] float32, overwritten. REQUIRES: batch.features[i] has a shape that multimodal/
  // makes for the family, and gives attention.seq_lens[i] positions. A dry run has no features: seq_lens gives the
  // sizes.
  virtual void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const = 0;
};

}  // namespace transept
