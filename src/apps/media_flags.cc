#include "apps/media_flags.h"

#include <charconv>

#include "base/environment.h"
#include "base/json.h"
#include "base/strings.h"

namespace transept {
namespace {

constexpr const char* kMedia = "Images";
constexpr int64_t kMaxImages = 1024, kMostPixels = int64_t{1} << 30;

// "image=8,audio=1", or vLLM's {"image": 8}, as an object.
StatusOr<Json> read_counts(const std::string& text) {
  if (text.starts_with("{")) return Json::parse(text);
  Json counts = Json::object();
  for (const std::string_view part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return invalid_argument("\"", part, "\" is no MODALITY=N");
    int64_t count = 0;
    const char* const end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data() + equals + 1, end, count);
    if (error != std::errc() || rest != end) return invalid_argument("\"", part, "\": expected a whole number");
    counts.set(part.substr(0, equals), count);
  }
  return counts;
}

StatusOr<int32_t> read_max_images(const std::string& text, int32_t fallback) {
  ASSIGN_OR_RETURN(const Json counts, read_counts(text));
  if (!counts.is_object()) return invalid_argument("expected image=N, or an object");
  for (const auto& [name, value] : counts.as_object()) {
    const bool is_image = name == "image";
    if (!is_image && name != "audio") return invalid_argument("no limit of \"", name, "\"; image and audio have one");
    const int64_t most = is_image ? kMaxImages : 1;
    if (!value.is_int() || value.as_int() < 1 || value.as_int() > most) {
      return invalid_argument(name, ": expected a whole number from 1 to ", most);
    }
    if (is_image) fallback = static_cast<int32_t>(value.as_int());
  }
  return fallback;
}

}  // namespace

std::vector<FlagSpec> media_flags() {
  return {
      {"limit-mm-per-prompt", "image=N", "image=8", "images that a request may bring, if its model takes several",
       kMedia},
      {"max-image-pixels", "N", "67108864", "width times height of an image, checked before it is decoded", kMedia},
      {"image-alpha", "white|drop", "white",
       "what is below transparent pixels: white (as transformers' processors have it), or the colour that is stored",
       kMedia},
      {"header-font", "FILE", "",
       "Pix2Struct models that answer questions (DePlot, MatCha): the font that draws a question above its picture",
       kMedia},
      {"mllama-strict-mask", "", "",
       "Llama 3.2 Vision: masks as in Meta's code, and not as in transformers: tokens before the first picture read no "
       "picture, and nothing that fills a picture up is read",
       kMedia},
  };
}

StatusOr<MediaLimits> media_limits(const Flags& flags) {
  MediaLimits limits;
  const auto named = [&](std::string_view name, const std::string& value, std::string_view reason) {
    return blame_environment(invalid_argument("--", name, " ", value, ": ", reason), flags.from_environment());
  };
  if (const auto text = flags.text("limit-mm-per-prompt"); text.has_value()) {
    const StatusOr<int32_t> most = read_max_images(*text, limits.max_images);
    if (!most.ok()) return named("limit-mm-per-prompt", *text, error_message(most.status()));
    limits.max_images = *most;
  }
  ASSIGN_OR_RETURN(limits.image.max_pixels, flags.integer("max-image-pixels", 1, kMostPixels, limits.image.max_pixels));
  const std::string alpha = flags.text_or("image-alpha", "white");
  if (alpha != "white" && alpha != "drop") return named("image-alpha", alpha, "expected white or drop");
  limits.alpha = alpha == "drop" ? ImageAlpha::kDrop : ImageAlpha::kWhite;
  return limits;
}

}  // namespace transept
