// Reads the switches of image processors: preprocessor_config.json, or the object "image_processor" of
// processor_config.json, which wins. Absent and null are the same: the class's own value. Immutable: thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "core/model_config.h"
#include "media/resize_options.h"
#include "multimodal/image_sizes.h"

namespace transept {

// Sides of what a processor makes, and its values: a request must not take more than half a gigabyte. Qwen2-VL's
// published 12,845,056 pixels are 77,070,336 values.
inline constexpr int64_t kMaxImageSide = 65535;
inline constexpr int64_t kMaxImageValues = int64_t{1} << 27;

// The forms of "size", "crop_size" and "pad_size" (SizeDict).
struct SizeSpec {
  enum class Kind : uint8_t {
    kNone,
    kExact,         // {height, width}
    kShortestEdge,  // {shortest_edge}
    kBoundedEdge,   // {shortest_edge, longest_edge}
    kWithin,        // {max_height, max_width}
    kOther,         // {longest_edge} or {min_pixels, max_pixels}: valid for other classes
  };
  Kind kind = Kind::kNone;
  ImageSize size;  // of kExact and kWithin
  int64_t shortest = 0, longest = 0;
};

// How the three channels become values: level * rescale_factor, then (x - mean) / std.
struct PixelOptions {
  bool do_rescale = true, do_normalize = true;
  double rescale_factor = 1.0 / 255;
  std::array<double, 3> mean = {}, std = {};
};

inline constexpr std::array<double, 3> kHalf = {0.5, 0.5, 0.5};  // IMAGENET_STANDARD_MEAN and _STD
inline constexpr std::array<double, 3> kImagenetMean = {0.485, 0.456, 0.406}, kImagenetStd = {0.229, 0.224, 0.225};
inline constexpr std::array<double, 3> kClipMean = {0.48145466, 0.4578275, 0.40821073};
inline constexpr std::array<double, 3> kClipStd = {0.26862954, 0.26130258, 0.27577711};

class ImageProcessorConfig final {
 public:
  // Errors name the file: neither file is there (kNotFound); not readable, over 8 MiB, not JSON, or not an object.
  static StatusOr<ImageProcessorConfig> load(const std::string& model_dir);
  // The object that `file` holds. REQUIRES (CHECK): an object.
  ImageProcessorConfig(Json object, std::string file);

  const ConfigReader& reader() const { return *reader_; }

  // "ViT", "Donut", ...: image_processor_type, or feature_extractor_type of old files, without "ImageProcessor" or
  // "FeatureExtractor" and what follows; "": neither is there. Errors: another form.
  StatusOr<std::string> class_name() const;

  // Errors for a key that the class does not know: it may change pixels. Null and false change none; `known` is the
  // class's own, to which those are added that all classes have, and those that change no pixels.
  Status check_keys(std::string_view class_name, std::span<const std::string_view> known) const;

  // A number is a square, or the shortest edge if not `default_to_square`; a list is [height, width].
  StatusOr<SizeSpec> size(std::string_view key, bool default_to_square, const SizeSpec& fallback) const;
  StatusOr<ResizeFilter> resample(ResizeFilter fallback) const;
  // `defaults`: the class's.
  StatusOr<PixelOptions> pixels(const PixelOptions& defaults) const;
  const Json& object() const { return *object_; }

 private:
  StatusOr<std::array<double, 3>> channels(std::string_view key, double least,
                                           const std::array<double, 3>& fallback) const;

  std::unique_ptr<const Json> object_;  // on the heap: the reader borrows it, and the config can be moved
  std::unique_ptr<const ConfigReader> reader_;
};

}  // namespace transept
