// The Model of every family: an input and a stack for each side, and an output layer. A family loads one side or both
// and computes nothing. Immutable after loading, so thread-safe as far as Model is.
#pragma once

#include <memory>
#include <optional>

#include "layers/linear.h"
#include "layers/norm.h"
#include "models/encoder_input.h"
#include "models/model.h"
#include "models/token_input.h"
#include "models/transformer_stack.h"

namespace transept {

struct Encoder {
  std::unique_ptr<EncoderInput> input;
  TransformerStack stack;
};

// What stands between a decoder's last layer and its output layer: norm(activation(W x + b)) (BERT's).
struct HeadTransform {
  Linear dense;
  Activation activation = Activation::kGelu;
  Norm norm;
};

struct Decoder {
  TokenInput input;
  TransformerStack stack;
  LmHead lm_head;
  // From the encoder's rows to those that cross-attention reads, once for all layers (decision 42).
  std::optional<Linear> cross_projection = {};
  std::optional<HeadTransform> head_transform = {};
};

// A side that is absent is not loaded: at least one is there.
struct EncoderDecoderParts {
  ModelSpec spec;  // the part, numbers of layers and `kv` are those of what is here, whatever stands in it
  std::optional<Encoder> encoder = {};
  std::optional<Decoder> decoder = {};
  bool splices_rows = false;  // the decoder's prompt takes rows of items: `kv` gets a spec of kind kEncoderRows
  // Of items that are spliced, where they have an encoder of their own (CogAgent's small picture); none: `encoder`.
  // REQUIRES: `encoder` is there.
  std::optional<Encoder> splice_encoder = {};
  // Of items of media alone, where items have ids as well (ModelSpec::media_token_id): it gives the rows that are put
  // among the ids. REQUIRES: `encoder` is there.
  std::optional<Encoder> media_encoder = {};
};

// The model keeps `weights`, which the embeddings read.
std::unique_ptr<Model> make_encoder_decoder_model(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights);

}  // namespace transept
