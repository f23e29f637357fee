// What config.json of a CogAgent folder says of pictures: a picture is read twice, small and large; the rows of the
// small one stand in the decoder's prompt, and every layer crosses those of the large one. Pure functions: thread-safe.
// Source: the checkpoint's remote code, modeling_cogagent.py, visual.py, cross_visual.py.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "core/model_config.h"
#include "multimodal/image_rows.h"

namespace transept {

struct CogAgentPictures {
  static constexpr int64_t kEnds = 2;  // rows around the small picture's: where it begins, and where it ends

  int64_t small_side = 224, small_patch = 14;  // in pixels
  int64_t large_side = 1120, large_patch = 14;

  int64_t small_grid() const { return small_side / small_patch; }
  int64_t large_grid() const { return large_side / large_patch; }
  int64_t num_patches() const { return small_grid() * small_grid(); }
  int64_t num_spliced() const { return num_patches() + kEnds; }
  int64_t num_crossed() const { return large_grid() * large_grid(); }
  // Of the widest layer: the large tower has a row of the class.
  int64_t num_large_rows() const { return num_crossed() + 1; }
};

// Reads vision_config, cross_image_size and cross_vision_config (which published files leave to the class). Errors,
// naming file and field: kInvalidArgument: a value of the wrong type or range, sides without a patch or with too many;
// kUnimplemented: other channels than three; two forms of one size.
StatusOr<CogAgentPictures> read_cogagent_pictures(const ModelConfig& config);

// The object cross_vision_config, or an empty one: the class's own values. Errors: it is no object.
StatusOr<Json> cogagent_large_tower(const ModelConfig& config);

// Words of the published prompt around a question.
struct CogAgentTemplate {
  std::string before, behind;
};

// By template_version. Errors, naming file and field: an unknown version.
StatusOr<CogAgentTemplate> read_cogagent_template(const ModelConfig& config);

// Of both forms, which their sizes tell apart. Errors: those of read_cogagent_pictures.
StatusOr<std::unique_ptr<ImageRows>> make_cogagent_image_rows(const ModelConfig& config);

}  // namespace transept
