// The Model of every encoder/decoder family: an input and a stack for each side, and an output layer. A family loads
// the parts and computes nothing. Immutable after loading, so thread-safe as far as Model is.
#pragma once

#include <memory>

#include "models/encoder_input.h"
#include "models/model.h"
#include "models/token_input.h"
#include "models/transformer_stack.h"

namespace transept {

struct EncoderDecoderParts {
  ModelSpec spec;  // numbers of layers and `kv` are the stacks', whatever stands here
  std::unique_ptr<EncoderInput> encoder_input;
  TransformerStack encoder;
  TokenInput decoder_input;
  TransformerStack decoder;
  LmHead lm_head;
};

// The model keeps `weights`, which the embeddings read.
std::unique_ptr<Model> make_encoder_decoder_model(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights);

}  // namespace transept
