#include "multimodal/image_processor_config.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/check.h"
#include "core/config_file.h"

namespace transept {
namespace {

// Keys of any class, and keys that change no pixels. do_convert_rgb: pictures are RGB here. The others are what a
// checkpoint remembers of its making, of its texts, or of batches.
constexpr std::string_view kCommonKeys[] = {"image_processor_type",
                                            "feature_extractor_type",
                                            "processor_class",
                                            "auto_map",
                                            "_processor_class",
                                            "_valid_processor_keys",
                                            "_valid_kwargs_names",
                                            "do_convert_rgb",
                                            "data_format",
                                            "input_data_format",
                                            "return_tensors",
                                            "device",
                                            "disable_grouping",
                                            "image_seq_length",
                                            "image_seq_len",
                                            "transformers_version",
                                            "backend",
                                            "use_fast",
                                            "name_or_path",
                                            "default_to_square",
                                            "do_resize",
                                            "size",
                                            "resample",
                                            "do_center_crop",
                                            "crop_size",
                                            "do_rescale",
                                            "rescale_factor",
                                            "do_normalize",
                                            "image_mean",
                                            "image_std",
                                            "do_pad",
                                            "pad_size"};

bool is_absent(const Json* value) { return value == nullptr || value->is_null(); }

bool is_off(const Json& value) { return value.is_null() || (value.is_bool() && !value.as_bool()); }

// The object's keys are exactly these.
bool has_exactly(const Json& object, std::vector<std::string_view> keys) {
  for (const auto& [key, value] : object.as_object()) {
    const auto found = std::ranges::find(keys, key);
    if (found == keys.end()) return false;
    keys.erase(found);
  }
  return keys.empty();
}

StatusOr<SizeSpec> size_of_object(const Json& object, const ConfigReader& reader, std::string_view key) {
  SizeSpec spec;
  const ConfigReader sides(object, str_cat(reader.file(), ": ", key));
  const auto pair = [&](std::string_view height, std::string_view width) -> Status {
    ASSIGN_OR_RETURN(spec.size.height, sides.integer(height, 1, kMaxImageSide));
    ASSIGN_OR_RETURN(spec.size.width, sides.integer(width, 1, kMaxImageSide));
    return ok_status();
  };
  if (has_exactly(object, {"height", "width"})) {
    spec.kind = SizeSpec::Kind::kExact;
    RETURN_IF_ERROR(pair("height", "width"));
  } else if (has_exactly(object, {"max_height", "max_width"})) {
    spec.kind = SizeSpec::Kind::kWithin;
    RETURN_IF_ERROR(pair("max_height", "max_width"));
  } else if (has_exactly(object, {"shortest_edge"}) || has_exactly(object, {"shortest_edge", "longest_edge"})) {
    const bool is_bounded = object.as_object().size() == 2;
    spec.kind = is_bounded ? SizeSpec::Kind::kBoundedEdge : SizeSpec::Kind::kShortestEdge;
    // Pixels of the whole picture for Qwen2-VL.
    ASSIGN_OR_RETURN(spec.shortest, sides.integer("shortest_edge", 1, kMaxImageValues));
    if (is_bounded) {
      ASSIGN_OR_RETURN(spec.longest, sides.integer("longest_edge", 1, kMaxImageValues));
    }
  } else if (has_exactly(object, {"longest_edge"})) {
    spec.kind = SizeSpec::Kind::kOther;
    ASSIGN_OR_RETURN(spec.longest, sides.integer("longest_edge", 1, kMaxImageValues));
  } else if (has_exactly(object, {"min_pixels", "max_pixels"})) {
    spec.kind = SizeSpec::Kind::kOther;
  } else {
    return reader.error(key,
                        "expected {height, width}, {shortest_edge}, {shortest_edge, longest_edge} or "
                        "{max_height, max_width}");
  }
  return spec;
}

// "ViTImageProcessorFast": "ViT".
std::optional<std::string> stem(std::string_view name) {
  for (const std::string_view end : {"Fast", "Pil"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  for (const std::string_view end : {"ImageProcessor", "FeatureExtractor"}) {
    if (name.ends_with(end) && name.size() > end.size()) return std::string(name.substr(0, name.size() - end.size()));
  }
  return std::nullopt;
}

}  // namespace

ImageProcessorConfig::ImageProcessorConfig(Json object, std::string file)
    : object_(std::make_unique<const Json>(std::move(object))),
      reader_(std::make_unique<const ConfigReader>(*object_, std::move(file))) {
  CHECK(object_->is_object(), "switches that are no object");
}

StatusOr<ImageProcessorConfig> ImageProcessorConfig::load(const std::string& model_dir) {
  const std::string nested = model_dir + "/processor_config.json", plain = model_dir + "/preprocessor_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(nested, ignored)) {
    ASSIGN_OR_RETURN(const Json processor, read_json_object(nested));
    if (const Json* inner = processor.find("image_processor"); !is_absent(inner)) {
      const std::string file = str_cat(nested, ": image_processor");
      if (!inner->is_object()) return invalid_argument(file, ": expected an object, got ", inner->kind_name());
      return ImageProcessorConfig(*inner, file);
    }
  }
  ASSIGN_OR_RETURN(Json object, read_json_object(plain));
  return ImageProcessorConfig(std::move(object), plain);
}

StatusOr<std::string> ImageProcessorConfig::class_name() const {
  for (const std::string_view key : {"image_processor_type", "feature_extractor_type"}) {
    ASSIGN_OR_RETURN(const std::string name, reader_->string(key, ""));
    if (name.empty()) continue;
    std::optional<std::string> found = stem(name);
    if (!found.has_value()) return reader_->error(key, str_cat("\"", name, "\" is not the name of an image processor"));
    return *std::move(found);
  }
  return std::string();
}

Status ImageProcessorConfig::check_keys(std::string_view class_name, std::span<const std::string_view> known) const {
  for (const auto& [key, value] : object_->as_object()) {
    const bool is_known =
        std::ranges::find(kCommonKeys, key) != std::end(kCommonKeys) || std::ranges::find(known, key) != known.end();
    if (is_known || is_off(value)) continue;
    const std::string shown = key.substr(0, 100);
    return reader_->error(shown, str_cat(class_name, "ImageProcessor has no such switch here; it may change pixels"));
  }
  return ok_status();
}

StatusOr<SizeSpec> ImageProcessorConfig::size(std::string_view key, bool default_to_square,
                                              const SizeSpec& fallback) const {
  const Json* value = object_->find(key);
  if (is_absent(value)) return fallback;
  if (value->is_object()) return size_of_object(*value, *reader_, key);
  SizeSpec spec{.kind = SizeSpec::Kind::kExact};
  if (value->is_array()) {
    const Json::Array& sides = value->as_array();
    const auto is_side = [](const Json& side) {
      return side.is_int() && side.as_int() >= 1 && side.as_int() <= kMaxImageSide;
    };
    if (sides.size() != 2 || !is_side(sides[0]) || !is_side(sides[1])) {
      return reader_->error(key, str_cat("expected two sides of 1 to ", kMaxImageSide, " pixels"));
    }
    spec.size = {sides[0].as_int(), sides[1].as_int()};
    return spec;
  }
  ASSIGN_OR_RETURN(const int64_t side, reader_->integer(key, 1, kMaxImageSide));
  spec.size = {side, side};
  if (!default_to_square) return SizeSpec{.kind = SizeSpec::Kind::kShortestEdge, .shortest = side};
  return spec;
}

StatusOr<ResizeFilter> ImageProcessorConfig::resample(ResizeFilter fallback) const {
  ASSIGN_OR_RETURN(const int64_t number,
                   reader_->integer("resample", 0, kNumResizeFilters - 1, static_cast<int64_t>(fallback)));
  return static_cast<ResizeFilter>(number);
}

// A number counts for all three channels.
StatusOr<std::array<double, 3>> ImageProcessorConfig::channels(std::string_view key, double least,
                                                               const std::array<double, 3>& fallback) const {
  constexpr double kMost = 1e6;
  const Json* value = object_->find(key);
  if (is_absent(value)) return fallback;
  if (value->is_number()) {
    ASSIGN_OR_RETURN(const double number, reader_->number(key, least, kMost));
    return std::array<double, 3>{number, number, number};
  }
  const auto is_fitting = [&](const Json& number) {
    return number.is_number() && number.as_double() >= least && number.as_double() <= kMost;
  };
  if (!value->is_array() || value->as_array().size() != 3 || !std::ranges::all_of(value->as_array(), is_fitting)) {
    return reader_->error(key, str_cat("expected three numbers from ", least, " to ", kMost));
  }
  const Json::Array& list = value->as_array();
  return std::array<double, 3>{list[0].as_double(), list[1].as_double(), list[2].as_double()};
}

StatusOr<PixelOptions> ImageProcessorConfig::pixels(const PixelOptions& defaults) const {
  PixelOptions options = defaults;
  ASSIGN_OR_RETURN(options.do_rescale, reader_->boolean("do_rescale", defaults.do_rescale));
  ASSIGN_OR_RETURN(options.do_normalize, reader_->boolean("do_normalize", defaults.do_normalize));
  ASSIGN_OR_RETURN(options.rescale_factor, reader_->number("rescale_factor", -1e6, 1e6, defaults.rescale_factor));
  ASSIGN_OR_RETURN(options.mean, channels("image_mean", -1e6, defaults.mean));
  ASSIGN_OR_RETURN(options.std, channels("image_std", 1e-6, defaults.std));
  return options;
}

}  // namespace transept
