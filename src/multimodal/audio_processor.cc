#include "multimodal/audio_processor.h"

#include "base/check.h"

namespace transept {

std::shared_ptr<const EncoderFeatures> AudioProcessor::features_of_frames(std::span<const float> /*frames*/,
                                                                          float /*max*/, double /*seconds*/) const {
  CHECK(false, "an encoder of samples takes no frames");
  return nullptr;
}

}  // namespace transept
