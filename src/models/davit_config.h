// DaViT's configuration in config.json, native (transformers' Florence2VisionConfig) or as Microsoft published it. A
// value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/model_config.h"
#include "core/picture_convs.h"
#include "ops/activation_kind.h"

namespace transept {

struct DavitConfig {
  struct Stage {
    PictureConv conv;
    bool norm_is_first = false;  // in front of the convolution, else behind it
    int64_t dim = 0, hidden_dim = 0, num_blocks = 0, num_heads = 0, num_groups = 0;
  };
  std::vector<Stage> stages;
  int64_t window_side = 0;
  bool qkv_bias = true;
  Activation activation = Activation::kGelu;
  int64_t width = 0;         // of the rows that consumers get
  int64_t max_side = 0;      // of the last map: rows of the tables of positions
  int64_t max_temporal = 0;  // rows of the table of moments, of which a picture has the first
  bool has_original_names = false;

  std::vector<PictureConv> convs() const;
  // Rows of the first map of the largest picture whose last map has at most `most` rows.
  int64_t widest_rows(int64_t most) const;
};

// `object` is vision_config, of which `file` names in errors. Errors: kInvalidArgument for a value of the wrong type or
// range, or two that contradict each other; kUnimplemented by name for a switch that is not supported.
StatusOr<DavitConfig> read_davit_config(const Json& object, const std::string& file);

}  // namespace transept
