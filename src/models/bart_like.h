// Loads the families that differ from BART in a few choices only: encoder and decoder of one width, attention with
// biases on the projections (Whisper: not of K), a feed-forward of two matrices, layer norms of epsilon 1e-5, an output
// layer that is usually tied to the token embedding. A family's file states its choices as a BartLikeTraits and calls
// load_bart_like; it has no arithmetic of its own. Loading belongs to one thread.
#pragma once

#include <memory>

#include "models/bart_like_traits.h"
#include "models/model.h"

namespace transept {

struct BartLikeConfig;
struct Decoder;
struct EncoderDecoderParts;
class EncoderInput;

// Loads a text model: reads the sizes and switches of config.json, all range-checked, and every weight by name and
// shape. Tensors may have the prefix "model." or not, and the tied table any of its names. Warns of switches of
// config.json that contradict the family's arithmetic (normalize_before and its like); they have no effect, as in
// transformers: published checkpoints have some. Errors: those of read_bart_like_config() and load_bart_like_parts().
// REQUIRES: !traits.encodes_media.
StatusOr<std::unique_ptr<Model>> load_bart_like(const BartLikeTraits& traits, const ModelConfig& config,
                                                std::shared_ptr<WeightMap> weights, const ModelLoadOptions& options);

// Reads every layer of options.part by BART's names. encoder_input: of a family whose encoder reads something else than
// tokens and positions, where the part has the encoder; else null. REQUIRES: one, of a family with traits.encodes_media
// where the part has the encoder. Errors:
// kUnimplemented: the attention backend does not support the heads; kNotFound: a missing tensor; kInvalidArgument: a
// misshapen one (both by name).
StatusOr<EncoderDecoderParts> load_bart_like_parts(const BartLikeTraits& traits, const BartLikeConfig& config,
                                                   std::unique_ptr<EncoderInput> encoder_input, WeightMap& weights,
                                                   const ModelLoadOptions& options);

// Reads what an encoder reads tokens with: for an input of the family's own, which puts media among them.
StatusOr<TokenInput> load_bart_like_encoder_tokens(const BartLikeTraits& traits, const BartLikeConfig& config,
                                                   WeightMap& weights, const ModelLoadOptions& options);

// Reads a decoder alone, by BART's names below "decoder.". Errors: as above.
StatusOr<Decoder> load_bart_like_decoder(const BartLikeTraits& traits, const BartLikeConfig& config, WeightMap& weights,
                                         const ModelLoadOptions& options);

}  // namespace transept
