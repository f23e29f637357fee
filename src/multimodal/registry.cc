#include "multimodal/registry.h"

#include <algorithm>

#include "base/strings.h"
#include "multimodal/input_families.h"

namespace transept {
namespace {

constexpr std::string_view kParam = "multi_modal_data";
constexpr size_t kMaxShownName = 100;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds);
  return text;
}

}  // namespace

StatusOr<std::unique_ptr<MultiModalRegistry>> MultiModalRegistry::create(const ModelConfig& config) {
  auto registry = std::make_unique<MultiModalRegistry>();
  registry->family_ = config.model_type;
  const InputFamily* family = find_input_family(config);
  if (family != nullptr && family->make_audio != nullptr) {
    ASSIGN_OR_RETURN(registry->audio_, family->make_audio(config));
  }
  return registry;
}

// The one audio item. Null is the same as absent.
StatusOr<const Json*> MultiModalRegistry::audio_item(const Json& multi_modal_data) const {
  if (!multi_modal_data.is_object()) {
    return field_error(kParam, str_cat("multi_modal_data must be an object that names a modality, not ",
                                       multi_modal_data.kind_name()));
  }
  const Json* item = nullptr;
  for (const auto& [modality, value] : multi_modal_data.as_object()) {
    if (value.is_null()) continue;
    if (modality != "audio" || audio_ == nullptr) {
      const std::string_view name = std::string_view(modality).substr(0, kMaxShownName);
      return field_error(kParam, str_cat("this model (", family_, ") takes no ", name, " input"));
    }
    item = &value;
  }
  if (item != nullptr && item->is_array()) {
    const size_t count = item->as_array().size();
    if (count != 1)
      return field_error(kParam, str_cat("multi_modal_data: audio: ", count, " items, this model takes 1"));
    item = &item->as_array().front();
  }
  if (item == nullptr || item->is_null()) return field_error(kParam, "multi_modal_data holds no audio");
  return item;
}

StatusOr<std::shared_ptr<const EncoderFeatures>> MultiModalRegistry::process(const Json& multi_modal_data,
                                                                             const MediaAccess& access,
                                                                             const MediaLimits& limits) const {
  ASSIGN_OR_RETURN(const Json* const item, audio_item(multi_modal_data));
  ASSIGN_OR_RETURN(const std::unique_ptr<AudioReader> reader,
                   open_audio(*item, audio_->sampling_rate(), access, limits));
  // One sample more than fits tells that it does not.
  const int64_t rate = audio_->sampling_rate();
  int64_t most = static_cast<int64_t>(limits.max_audio_seconds * static_cast<double>(rate));
  if (audio_->max_samples().has_value()) most = std::min(most, *audio_->max_samples());
  if (limits.max_positions.has_value()) most = std::min(most, audio_->max_samples_of(*limits.max_positions));
  std::vector<float> samples;
  std::vector<float> piece(static_cast<size_t>(rate));
  while (static_cast<int64_t>(samples.size()) <= most) {
    StatusOr<size_t> count = reader->read(piece);
    if (!count.ok()) return with_param(with_prefix(count.status(), "multi_modal_data: audio"), kParam);
    if (*count == 0) break;
    samples.insert(samples.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*count));
  }
  if (static_cast<int64_t>(samples.size()) > most && limits.first_window_alone) {
    samples.resize(static_cast<size_t>(most));
  } else if (static_cast<int64_t>(samples.size()) > most) {
    const double limit = static_cast<double>(most) / static_cast<double>(rate);
    const double stated = reader->info().duration_seconds;
    return with_param(
        absl::OutOfRangeError(str_cat("the audio is ", stated > limit ? seconds_text(stated) : "longer",
                                      stated > limit ? " s long, more" : "", " than the ", seconds_text(limit),
                                      " s of one window of this model; `transept transcribe` takes any length")),
        kParam);
  }
  return audio_->features(samples);
}

}  // namespace transept
