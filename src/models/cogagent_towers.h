// The two towers of CogAgent. The small picture's is EVA-CLIP's largest (Sun et al. 2023), whose norms stand within the
// sums; a gated adapter makes its rows as wide as the decoder's, between a row that begins the picture and one that
// ends it. The large picture's is EVA-02's (Fang et al. 2023): positions that turn by row and column, norms within
// attention and feed-forward, and a table of positions behind it; its last layer and its last norm are not run. Source:
// the checkpoint's remote code, visual.py, cross_visual.py. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "core/model_config.h"
#include "models/encoder_decoder_model.h"
#include "multimodal/cogagent_pictures.h"

namespace transept {

struct CogAgentSmallTowerConfig {
  CogAgentPictures pictures;
  int64_t dim = 0, hidden_dim = 0, layers = 0, heads = 0;
  Activation activation = Activation::kGelu;
  float epsilon = 1e-6f;
  int64_t out_dim = 0, adapter_dim = 0;  // the decoder's width, and that of its feed-forward
};

struct CogAgentLargeTowerConfig {
  CogAgentPictures pictures;
  int64_t dim = 0, hidden_dim = 0, heads = 0;
  int64_t layers = 0;         // that are run: one less than there are
  double positions_wide = 0;  // positions that the grid's places are spread over (pt_hw_seq_len)
};

// Reads vision_config. Errors, naming file and field: those of read_cogagent_pictures; a value of the wrong type or
// range, or two that contradict each other.
StatusOr<CogAgentSmallTowerConfig> read_cogagent_small_tower(const ModelConfig& config, int64_t out_dim,
                                                             int64_t adapter_dim);
// Reads cross_vision_config, or takes the class's values. dim: of the rows that are crossed. Errors: as above.
StatusOr<CogAgentLargeTowerConfig> read_cogagent_large_tower(const ModelConfig& config, int64_t dim);

// Read every tensor below `prefix` ("model.vision.", "model.cross_vision."). Errors: a missing or misshapen tensor by
// name; kUnimplemented for heads that the attention backend does not support, and for several ranks.
StatusOr<Encoder> load_cogagent_small_tower(const CogAgentSmallTowerConfig& config, const std::string& prefix,
                                            WeightMap& weights, const ModelLoadOptions& options);
StatusOr<Encoder> load_cogagent_large_tower(const CogAgentLargeTowerConfig& config, const std::string& prefix,
                                            WeightMap& weights, const ModelLoadOptions& options);

}  // namespace transept
