// How what a request holds becomes the first hidden rows of an encoder: a part of a model, where families of one
// arithmetic differ. Owned by the model. Immutable after loading.
#pragma once

#include "core/forward_batch.h"
#include "tensor/context.h"

namespace transept {

class EncoderInput {
 public:
  virtual ~EncoderInput() = default;

  // x: [batch.num_tokens(), d_model] float32, overwritten. REQUIRES of media: shapes as the family's multimodal/ makes
  // them, that give attention.seq_lens[i] positions. A dry run has none: it goes by seq_lens.
  virtual void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const = 0;
};

}  // namespace transept
