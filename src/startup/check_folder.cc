#include "startup/check_folder.h"

#include "models/registry.h"
#include "startup/engine_config.h"
#include "startup/features.h"
#include "startup/load_engine.h"
#include "weights/weight_map.h"

namespace transept {

Status check_model_config(const std::string& model_dir) {
  ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(model_dir));
  RETURN_IF_ERROR(check_family(config));
  EngineConfig defaults;
  defaults.model = model_dir;
  return check_features(defaults, config);
}

Status check_model_folder(const std::string& model_dir) {
  RETURN_IF_ERROR(check_model_config(model_dir));
  return WeightMap::open(model_dir).status();
}

}  // namespace transept
