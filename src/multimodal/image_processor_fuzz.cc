// Any switches over a small picture: an answer of the shape that it tells, or an error with a message. The first three
// bytes are the picture's sides and what is in it; the rest is preprocessor_config.json.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "multimodal/image_processors.h"

namespace transept {
namespace {

constexpr int64_t kMostNumber = 200;  // of switches that are run: what they make stays small

void require(bool condition) {
  if (!condition) std::abort();
}

Json with_small_numbers(const Json& json) {
  if (json.is_int()) return std::min(json.as_int(), kMostNumber);
  if (json.is_array()) {
    Json::Array list;
    for (const Json& item : json.as_array()) list.push_back(with_small_numbers(item));
    return list;
  }
  if (json.is_object()) {
    Json::Object object;
    for (const auto& [key, value] : json.as_object()) object.emplace_back(key, with_small_numbers(value));
    return object;
  }
  return json;
}

void run(const ImageProcessor& processor, RgbImage image) {
  const auto features = processor.features(std::move(image));
  if (!features.ok()) return require(!features.status().message().empty());
  int64_t count = 1;
  for (const int64_t size : (*features)->shape) count *= size;
  require(count >= 1 && count == static_cast<int64_t>((*features)->values.size()));
  require((*features)->modality == Modality::kImage);
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  if (size < 3) return 0;
  const auto json = Json::parse(std::string_view(reinterpret_cast<const char*>(data) + 3, size - 3));
  if (!json.ok() || !json->is_object()) return 0;
  const auto whole = make_image_processor(ImageProcessorConfig(*json, "file"), "", {detect_isa()});
  if (!whole.ok()) require(!whole.status().message().empty());
  const ImageProcessorConfig small(with_small_numbers(*json), "file");
  const auto processor = make_image_processor(small, "", {detect_isa()});
  if (!processor.ok()) return 0;
  RgbImage image{1 + data[0] % 64, 1 + data[1] % 64, {}};
  uint32_t state = data[2];
  for (int32_t i = 0; i < image.width * image.height * RgbImage::kNumChannels; ++i) {
    state = state * 1664525 + 1013904223;
    image.pixels.push_back(static_cast<uint8_t>(state >> 24));
  }
  run(**processor, std::move(image));
  return 0;
}
