#include "multimodal/preprocessor_config.h"

#include <filesystem>

#include "core/config_file.h"

namespace transept {

StatusOr<PreprocessorConfig> PreprocessorConfig::load(const std::string& model_dir) {
  const std::string path = model_dir + "/preprocessor_config.json";
  PreprocessorConfig config;
  std::error_code ignored;
  Json object{Json::Object()};
  if (std::filesystem::exists(path, ignored)) {
    ASSIGN_OR_RETURN(object, read_json_object(path));
  }
  config.object_ = std::make_unique<const Json>(std::move(object));
  config.reader_ = std::make_unique<const ConfigReader>(*config.object_, path);
  return config;
}

}  // namespace transept
