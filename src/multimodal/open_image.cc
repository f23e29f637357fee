// One image item of multi_modal_data, from wherever it comes.
#include <span>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/input_file.h"
#include "base/strings.h"
#include "media/image_reader.h"
#include "multimodal/media_path.h"
#include "multimodal/registry.h"

namespace transept {
namespace {

constexpr std::string_view kForms =
    "a path, \"data:image/..;base64,..\", {\"base64\": \"..\"} or {\"rgb\": \"..\", \"width\": 1, \"height\": 1}";

struct Limited {
  const MediaAccess& access;
  const MediaLimits& limits;
  std::string_view name;
};

bool begins_with(std::string_view text, std::string_view scheme) {
  return text.size() >= scheme.size() && ascii_lower(text.substr(0, scheme.size())) == scheme;
}

StatusOr<RgbImage> decode(std::string_view bytes, const Limited& by, const std::string& prefix) {
  const std::span<const uint8_t> all(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const StatusOr<std::unique_ptr<ImageReader>> reader = ImageReader::open(all, by.limits.image);
  if (!reader.ok()) return media_status(reader.status(), prefix);
  if (by.access.charge) RETURN_IF_ERROR(by.access.charge(static_cast<int64_t>((*reader)->info().decode_bytes)));
  StatusOr<RgbImage> image = (*reader)->decode(by.limits.alpha);
  if (!image.ok()) return media_status(image.status(), prefix);
  return image;
}

StatusOr<std::string> from_base64(std::string_view text, std::string_view key, size_t max_bytes, const Limited& by) {
  const size_t size = text.size() / 4 * 3;
  if (size > max_bytes) {
    return media_error(by.name, str_cat(size, " bytes are more than the ", max_bytes, " allowed"));
  }
  std::optional<std::string> bytes = decode_base64(text);
  if (!bytes.has_value()) return media_error(by.name, str_cat(key, " does not hold base64 (RFC 4648)"));
  return *std::move(bytes);
}

// RFC 2397, of which base64 alone is taken. What the URL says of the format does not count.
StatusOr<RgbImage> from_data_url(std::string_view url, const Limited& by) {
  const size_t comma = url.find(',');
  if (comma == std::string_view::npos || !url.substr(0, comma).ends_with(";base64")) {
    return media_error(by.name, "a data: URL must be \"data:image/..;base64,..\"");
  }
  ASSIGN_OR_RETURN(const std::string bytes,
                   from_base64(url.substr(comma + 1), "the data: URL", by.limits.max_bytes, by));
  return decode(bytes, by, str_cat(kMediaParam, ": ", by.name));
}

StatusOr<RgbImage> from_string(const std::string& text, const Limited& by) {
  if (begins_with(text, "data:")) return from_data_url(text, by);
  for (const std::string_view scheme : {"http://", "https://", "file://"}) {
    if (begins_with(text, scheme)) return media_error(by.name, "URLs are not fetched: send a data: URL");
  }
  ASSIGN_OR_RETURN(const std::string file, media_path(text, by.access, by.name));
  const StatusOr<std::string> bytes = read_file(file, by.limits.max_bytes);
  // Of a server's folders its clients learn nothing: its errors name the resolved path.
  if (!bytes.ok() && !by.access.allowed_path.empty()) return not_below_error(by.name);
  if (!bytes.ok()) return with_param(bytes.status(), kMediaParam);
  return decode(*bytes, by, text);
}

// The member of an object, where null is the same as absent.
const Json* present(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

StatusOr<RgbImage> from_pixels(const Json& rgb, const Json& item, const Limited& by) {
  if (!rgb.is_string()) return media_error(by.name, "rgb must be a string");
  RgbImage image;
  for (const auto& [key, side] : {std::pair("width", &image.width), std::pair("height", &image.height)}) {
    const Json* const value = present(item, key);
    if (value == nullptr || !value->is_int() || value->as_int() < 1 || value->as_int() > by.limits.image.max_side) {
      return media_error(by.name, str_cat(key, " must be a whole number from 1 to ", by.limits.image.max_side));
    }
    *side = static_cast<int32_t>(value->as_int());
  }
  const int64_t num_pixels = int64_t{image.width} * image.height;
  if (num_pixels > by.limits.image.max_pixels) {
    return media_error(by.name, str_cat(image.width, " x ", image.height, " pixels are more than the ",
                                        by.limits.image.max_pixels, " allowed"));
  }
  const auto num_bytes = static_cast<size_t>(num_pixels) * RgbImage::kNumChannels;
  ASSIGN_OR_RETURN(const std::string bytes, from_base64(rgb.as_string(), "rgb", num_bytes + 2, by));
  if (bytes.size() != num_bytes) {
    return media_error(by.name, str_cat("rgb holds ", bytes.size(), " bytes, and ", image.width, " x ", image.height,
                                        " pixels are ", num_bytes));
  }
  image.pixels.assign(bytes.begin(), bytes.end());
  return image;
}

StatusOr<RgbImage> from_object(const Json& item, const Limited& by) {
  const Json* const base64 = present(item, "base64");
  const Json* const rgb = present(item, "rgb");
  if ((base64 != nullptr) == (rgb != nullptr)) return media_error(by.name, str_cat("expected ", kForms));
  if (rgb != nullptr) return from_pixels(*rgb, item, by);
  if (!base64->is_string()) return media_error(by.name, "base64 must be a string");
  ASSIGN_OR_RETURN(const std::string bytes, from_base64(base64->as_string(), "base64", by.limits.max_bytes, by));
  return decode(bytes, by, str_cat(kMediaParam, ": ", by.name));
}

}  // namespace

StatusOr<RgbImage> open_image(const Json& item, const MediaAccess& access, const MediaLimits& limits,
                              std::string_view name) {
  const Limited by{access, limits, name};
  if (item.is_string()) return from_string(item.as_string(), by);
  if (item.is_object()) return from_object(item, by);
  return media_error(name, str_cat("expected ", kForms));
}

}  // namespace transept
