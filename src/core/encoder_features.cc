#include "core/encoder_features.h"

namespace transept {

std::string_view modality_name(Modality modality) {
  switch (modality) {
    case Modality::kText: return "text";
    case Modality::kAudio: return "audio";
    case Modality::kImage: return "image";
  }
  return "";
}

}  // namespace transept
