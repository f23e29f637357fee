#include "multimodal/preprocessor_config.h"

#include "core/config_file.h"

namespace transept {

StatusOr<PreprocessorConfig> PreprocessorConfig::load(const ModelFolder& folder) {
  constexpr std::string_view kFile = "preprocessor_config.json";
  PreprocessorConfig config;
  Json object{Json::Object()};
  if (folder.has(kFile)) {
    ASSIGN_OR_RETURN(object, read_json_object(folder, kFile));
  }
  config.object_ = std::make_unique<const Json>(std::move(object));
  config.reader_ = std::make_unique<const ConfigReader>(*config.object_, folder.name_of(kFile));
  return config;
}

}  // namespace transept
