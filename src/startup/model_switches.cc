#include "startup/model_switches.h"

#include "multimodal/input_families.h"
#include "multimodal/mllama_pictures.h"

namespace transept {

StatusOr<ModelConfig> load_switched_config(const EngineConfig& config, const ModelFolder& folder) {
  ASSIGN_OR_RETURN(ModelConfig model, load_family_config(folder));
  if (!config.mllama_strict_mask) return model;
  const InputFamily* const family = find_input_family(model);
  if (family == nullptr || family->model_type != "mllama") {
    return invalid_argument("--mllama-strict-mask: this model (", model.model_type, ") is no Mllama");
  }
  model.raw.set(kMllamaStrictMask, true);
  return model;
}

}  // namespace transept
