#include "models/vision_tower.h"

namespace transept {

bool is_of_encoder(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {"encoder.",         "vision_model.",       "visual.",
                                              "model.visual.",    "vision_tower.",       "multi_modal_projector.",
                                              "image_projection", "model.vision_model.", "model.multi_modal_projector.",
                                              "model.vision.",    "model.cross_vision."};
  for (const std::string_view beginning : kBeginnings) {
    if (name.starts_with(beginning)) return true;
  }
  return false;
}

}  // namespace transept
