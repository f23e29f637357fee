// The tower of Mllama (Llama 3.2 Vision): a ViT over the tiles of a picture, with tables by arrangement of tiles;
// layers whose rows of some are kept, layers with gates behind them, and a projector of all these to the decoder's
// width. A picture always has the rows of all tiles: those of tiles in use attend to all of them, padding attends to
// rows in use, and is left out at the end where no token sees it. Source: transformers,
// models/mllama/modeling_mllama.py, MllamaVisionModel. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/model_config.h"
#include "models/encoder_decoder_model.h"
#include "multimodal/mllama_pictures.h"

namespace transept {

struct MllamaTowerConfig {
  MllamaPictures pictures;
  int64_t dim = 0, hidden_dim = 0, heads = 0;
  int64_t layers = 0, global_layers = 0;
  std::vector<int32_t> kept;  // layers whose rows the projector reads beside the last ones, in its order
  Activation activation = Activation::kGelu;
  float epsilon = 1e-5f;
  int64_t out_dim = 0;  // of the projector

  int64_t wide_dim() const { return dim * (1 + std::ssize(kept)); }
};

// Reads vision_config; out_dim: the decoder's width. Errors, naming file and field: those of read_mllama_pictures; a
// value of the wrong type or range, or two that contradict each other.
StatusOr<MllamaTowerConfig> read_mllama_tower(const ModelConfig& config, int64_t out_dim);

// Reads every tensor below `prefix` ("vision_model.") and `projector` ("multi_modal_projector."). Errors: a missing or
// misshapen tensor by name; kUnimplemented for heads that the attention backend does not support.
StatusOr<Encoder> load_mllama_tower(const MllamaTowerConfig& config, const std::string& prefix,
                                    const std::string& projector, WeightMap& weights, const ModelLoadOptions& options);

}  // namespace transept
