// The Model of every family: an input and a stack for each side, and an output layer. A family loads the parts and
// computes nothing. Immutable after loading, so thread-safe as far as Model is.
#pragma once

#include <memory>
#include <optional>

#include "models/encoder_input.h"
#include "models/model.h"
#include "models/token_input.h"
#include "models/transformer_stack.h"

namespace transept {

struct Encoder {
  std::unique_ptr<EncoderInput> input;
  TransformerStack stack;
};

struct EncoderDecoderParts {
  ModelSpec spec;  // numbers of layers and `kv` are the stacks', whatever stands here
  std::unique_ptr<EncoderInput> encoder_input;
  TransformerStack encoder;
  TokenInput decoder_input;
  TransformerStack decoder;
  LmHead lm_head;
  bool splices_rows = false;  // the decoder's prompt takes rows of items: `kv` gets a spec of kind kEncoderRows
  // Of items that are spliced, where they have an encoder of their own (CogAgent's small picture); none: `encoder`.
  std::optional<Encoder> splice_encoder = {};
};

// The model keeps `weights`, which the embeddings read.
std::unique_ptr<Model> make_encoder_decoder_model(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights);

}  // namespace transept
