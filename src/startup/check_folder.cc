#include "startup/check_folder.h"

#include <filesystem>

#include "core/config_file.h"
#include "models/registry.h"
#include "startup/engine_config.h"
#include "startup/features.h"
#include "startup/model_files.h"
#include "startup/recognise_model.h"
#include "weights/weight_map.h"

namespace transept {

namespace {

namespace fs = std::filesystem;

// A folder of CTranslate2 whose model.bin, which says what it is, has not come yet.
bool waits_for_ct2_model(const std::string& model_dir) {
  const fs::path dir = model_dir;
  std::error_code ignored;
  if (fs::exists(dir / "model.bin", ignored)) return false;
  const StatusOr<Json> config = read_json_object((dir / "config.json").string());
  if (!config.ok() || config->find("model_type") != nullptr || config->find("architectures") != nullptr) return false;
  for (const char* name : {"vocabulary", "shared_vocabulary", "target_vocabulary"}) {
    for (const char* ending : {".json", ".txt"}) {
      if (fs::exists(dir / str_cat(name, ending), ignored)) return true;
    }
  }
  return false;
}

Status check_config(const std::string& model_dir) {
  if (waits_for_ct2_model(model_dir)) return ok_status();
  ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::open(model_dir));
  ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::load(files.folder()));
  RETURN_IF_ERROR(check_family(config));
  EngineConfig defaults;
  defaults.model = model_dir;
  return check_features(defaults, config);
}

}  // namespace

Status check_model_config(const std::string& model_dir) {
  return explain_model_error(check_config(model_dir), model_dir);
}

Status check_model_folder(const std::string& model_dir) {
  RETURN_IF_ERROR(check_model_config(model_dir));
  StatusOr<ModelFiles> files = ModelFiles::open(model_dir);
  if (!files.ok()) return explain_model_error(files.status(), model_dir);
  RETURN_IF_ERROR(
      explain_model_error(std::move(files).value().open_weights({0, num_packed_ranks(model_dir)}).status(), model_dir));
  return check_no_adapter(model_dir);
}

}  // namespace transept
