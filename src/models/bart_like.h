// The families that are BART in all but a few choices: encoder and decoder of one width, attention with biases on all
// projections, a feed-forward of two matrices, layer norms of epsilon 1e-5, an output layer tied to the token
// embedding. A family's file names its choices as a BartLikeTraits and calls load_bart_like; it computes nothing.
#pragma once

#include <memory>

#include "models/bart_like_traits.h"
#include "models/model.h"

namespace transept {

struct BartLikeConfig;
struct BartLikeParts;
class EncoderInput;

// Reads sizes and switches of config.json, every one range-checked, and every weight by name and shape. Tensors may
// stand with the prefix "model." or without it, and the tied table under any of its names. Switches of config.json that
// contradict the family's arithmetic (normalize_before and its like) are warned of and have no effect, as in
// transformers, whose published checkpoints hold some. Errors name file and field, or tensor.
StatusOr<std::unique_ptr<Model>> load_bart_like(const BartLikeTraits& traits, const ModelConfig& config,
                                                std::shared_ptr<WeightMap> weights, const ModelLoadOptions& options);

// Reads every layer by BART's names. encoder_input: of a family that encodes media; null: tokens and positions.
StatusOr<BartLikeParts> load_bart_like_parts(const BartLikeTraits& traits, const BartLikeConfig& config,
                                             std::unique_ptr<EncoderInput> encoder_input, WeightMap& weights,
                                             const ModelLoadOptions& options);

}  // namespace transept
