// Any JSON as multi_modal_data, for all front ends: an answer within bounds, or an error that names the field. The
// caller may not open paths, so nothing but the bytes given is read.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "multimodal/registry.h"

namespace transept {
namespace {

constexpr int32_t kMostPositions = 50;

void require(bool condition) {
  if (!condition) std::abort();
}

// Folders of models hold their front end in two files.
std::unique_ptr<MultiModalRegistry> make_registry(std::string_view config, std::string_view preprocessor) {
  std::string dir = (std::filesystem::temp_directory_path() / "transept-fuzz-XXXXXX").string();
  require(mkdtemp(dir.data()) != nullptr);
  std::ofstream(dir + "/config.json") << config;
  std::ofstream(dir + "/preprocessor_config.json") << preprocessor;
  auto model = ModelConfig::load(dir);
  require(model.ok());
  auto registry = MultiModalRegistry::create(*model);
  require(registry.ok());
  std::filesystem::remove_all(dir);
  return std::move(registry).value();
}

void run(const MultiModalRegistry& registry, const Json& data) {
  MediaLimits limits;
  limits.max_bytes = size_t{1} << 20;
  limits.max_audio_seconds = 20;
  limits.max_positions = kMostPositions;
  for (const bool first_window_alone : {false, true}) {
    limits.first_window_alone = first_window_alone;
    const auto features = registry.process(data, {}, limits);
    if (!features.ok()) {
      require(error_param(features.status()) == "multi_modal_data" && !features.status().message().empty());
      continue;
    }
    require(features->size() == 1);
    const EncoderFeatures& item = *features->front();
    require(item.num_positions >= 1 && item.num_positions <= kMostPositions);
    int64_t count = 1;
    for (const int64_t size : item.shape) count *= size;
    require(count == static_cast<int64_t>(item.values.size()));
    for (const float value : item.values) require(std::isfinite(value));
  }
}

void run_images(const MultiModalRegistry& registry, const Json& data) {
  MediaLimits limits;
  limits.max_bytes = size_t{1} << 20;
  limits.image.max_pixels = 1 << 16;
  const auto images = registry.process(data, {}, limits);
  if (!images.ok()) {
    return require(error_param(images.status()) == "multi_modal_data" && !images.status().message().empty());
  }
  require(!images->empty() && images->size() <= static_cast<size_t>(limits.max_images));
  for (const auto& image : *images) require(image->shape == std::vector<int64_t>{3, 8, 8});
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  static const auto whisper =
      make_registry(R"({"model_type": "whisper", "vocab_size": 10, "num_mel_bins": 5, "max_source_positions": 8})",
                    R"({"feature_size": 5, "n_samples": 2560})");
  static const auto moonshine = make_registry(R"({"model_type": "moonshine", "vocab_size": 10})", "{}");
  static const auto blip =
      make_registry(R"({"model_type": "blip"})", R"({"image_processor_type": "BlipImageProcessor", "size": 8})");
  const auto json = Json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!json.ok()) return 0;
  run(*whisper, *json);
  run(*moonshine, *json);
  run_images(*blip, *json);
  return 0;
}
