#include "multimodal/registry.h"

#include <algorithm>

#include "base/strings.h"
#include "multimodal/input_families.h"
#include "multimodal/media_path.h"

namespace transept {
namespace {

constexpr size_t kMaxShownName = 100;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds);
  return text;
}

}  // namespace

StatusOr<std::shared_ptr<const HeaderFont>> load_header_font(const std::string& path) {
  if (path.empty()) return std::shared_ptr<const HeaderFont>();
  StatusOr<std::shared_ptr<const HeaderFont>> font = HeaderFont::load(path);
  if (!font.ok()) return with_prefix(font.status(), "--header-font");
  return font;
}

StatusOr<std::unique_ptr<MultiModalRegistry>> MultiModalRegistry::create(
    const ModelConfig& config, Isa isa, const std::shared_ptr<const HeaderFont>& header_font) {
  auto registry = std::make_unique<MultiModalRegistry>();
  registry->family_ = config.model_type;
  const InputFamily* family = find_input_family(config);
  if (family != nullptr && family->make_audio != nullptr) {
    ASSIGN_OR_RETURN(registry->audio_, family->make_audio(config));
  }
  if (family != nullptr && family->make_image != nullptr) {
    ASSIGN_OR_RETURN(registry->image_, family->make_image(config, {isa, header_font}));
    registry->max_items_ = family->max_images;
    if (family->make_image_rows != nullptr) {
      ASSIGN_OR_RETURN(registry->image_rows_, family->make_image_rows(config));
    }
  }
  if (header_font != nullptr && !registry->draws_question()) {
    return invalid_argument("--header-font: this model (", config.model_type,
                            ") draws no question above its pictures (is_vqa of preprocessor_config.json)");
  }
  if (family != nullptr && family->make_structured != nullptr) {
    ASSIGN_OR_RETURN(registry->structured_, family->make_structured(config));
  }
  return registry;
}

// What stands under the one modality that a request may bring. Null is the same as absent; null: there is none.
StatusOr<const Json*> MultiModalRegistry::only_modality(const Json& multi_modal_data) const {
  if (!multi_modal_data.is_object()) {
    return field_error(kMediaParam, str_cat("multi_modal_data must be an object that names a modality, not ",
                                            multi_modal_data.kind_name()));
  }
  const Json* item = nullptr;
  for (const auto& [name, value] : multi_modal_data.as_object()) {
    if (value.is_null()) continue;
    const bool is_taken = (audio_ != nullptr && name == modality_name(Modality::kAudio)) ||
                          (image_ != nullptr && name == modality_name(Modality::kImage));
    if (!is_taken) {
      const std::string_view shown = std::string_view(name).substr(0, kMaxShownName);
      return field_error(kMediaParam, str_cat("this model (", family_, ") takes no ", shown, " input"));
    }
    item = &value;
  }
  return item;
}

StatusOr<MultiModalRegistry::Items> MultiModalRegistry::process(const Json& multi_modal_data, const MediaAccess& access,
                                                                const MediaLimits& limits,
                                                                const std::optional<std::string>& question) const {
  const std::string_view modality = modality_name(audio_ != nullptr ? Modality::kAudio : Modality::kImage);
  ASSIGN_OR_RETURN(const Json* const given, only_modality(multi_modal_data));
  const bool is_list = given != nullptr && given->is_array();
  const size_t count = is_list ? given->as_array().size() : given != nullptr ? 1 : 0;
  if (count == 0) return field_error(kMediaParam, str_cat("multi_modal_data holds no ", modality));
  if (count > static_cast<size_t>(max_items_)) {
    return media_error(modality, str_cat(count, " items, this model takes ", max_items_));
  }
  if (image_ != nullptr && count > static_cast<size_t>(limits.max_images)) {
    return media_error(modality, str_cat(count, " items are more than the ", limits.max_images, " allowed"));
  }
  if (draws_question() && !question.has_value()) {
    return field_error("prompt", "a question is missing, which is drawn above the picture");
  }
  int64_t held = 0;  // bytes of the features so far
  MediaAccess counted = access;
  if (access.charge) counted.charge = [&](int64_t bytes) { return access.charge(held + bytes); };
  Items items;
  for (size_t i = 0; i < count; ++i) {
    const Json& item = is_list ? given->as_array()[i] : *given;
    if (item.is_null() && count == 1) return field_error(kMediaParam, str_cat("multi_modal_data holds no ", modality));
    const std::string name = is_list ? str_cat(modality, "[", i, "]") : std::string(modality);
    if (audio_ != nullptr) {
      ASSIGN_OR_RETURN(items.emplace_back(), audio_features(item, access, limits));
      continue;
    }
    ASSIGN_OR_RETURN(const Items forms, image_features(item, counted, limits, question, name));
    for (const std::shared_ptr<const EncoderFeatures>& form : forms) {
      held += static_cast<int64_t>(form->values.size() * sizeof(float));
      items.push_back(form);
    }
  }
  return items;
}

Status MultiModalRegistry::check(const EncoderFeatures& features) const {
  const bool is_audio = features.modality == Modality::kAudio && audio_ != nullptr;
  const bool is_image = features.modality == Modality::kImage && image_rows_ != nullptr;
  if (!is_audio && !is_image) {
    return field_error("modality",
                       str_cat("this model (", family_, ") takes no ", modality_name(features.modality), " input"));
  }
  std::optional<ImageRowCounts> rows;
  if (is_audio) {
    const std::optional<int64_t> positions = audio_->positions_of(features.shape);
    if (positions.has_value() && *positions <= INT32_MAX) rows = {static_cast<int32_t>(*positions), 0};
  } else if (const auto counted = image_rows_->count(features.shape, features.extras); counted.ok()) {
    rows = *counted;
  }
  if (!rows.has_value()) {
    return field_error("shape", str_cat("this model (", family_, ") makes no ", modality_name(features.modality),
                                        " features of this shape"));
  }
  if (features.num_positions != rows->num_positions || features.num_rows != rows->num_rows) {
    return field_error("num_positions",
                       str_cat("features of this shape have ", rows->num_positions, " positions and ", rows->num_rows,
                               " rows, not ", features.num_positions, " and ", features.num_rows));
  }
  if (is_audio) return ok_status();
  return with_param(image_rows_->check_places(features.shape, features.values), "values");
}

StatusOr<MultiModalRegistry::Items> MultiModalRegistry::image_features(const Json& item, const MediaAccess& access,
                                                                       const MediaLimits& limits,
                                                                       const std::optional<std::string>& question,
                                                                       std::string_view name) const {
  ASSIGN_OR_RETURN(RgbImage image, open_image(item, access, limits, name));
  StatusOr<Items> forms = forms_of(std::move(image), question, access, name);
  if (!forms.ok() || !access.charge) return forms;
  int64_t bytes = 0;
  for (const std::shared_ptr<const EncoderFeatures>& form : *forms) {
    bytes += static_cast<int64_t>(form->values.size() * sizeof(float));
  }
  RETURN_IF_ERROR(access.charge(bytes));
  return forms;
}

StatusOr<MultiModalRegistry::Items> MultiModalRegistry::forms_of(RgbImage image,
                                                                 const std::optional<std::string>& question,
                                                                 const MediaAccess& access,
                                                                 std::string_view name) const {
  const auto named = [&](const Status& status) { return media_status(status, str_cat(kMediaParam, ": ", name)); };
  StatusOr<std::vector<std::shared_ptr<EncoderFeatures>>> made = std::vector<std::shared_ptr<EncoderFeatures>>();
  if (draws_question()) {
    auto features = image_->features_below(*question, std::move(image), access.charge);
    if (!features.ok()) return named(features.status());
    made->push_back(*std::move(features));
  } else {
    made = image_->forms(std::move(image));
  }
  if (!made.ok()) return named(made.status());
  Items items;
  for (const std::shared_ptr<EncoderFeatures>& features : *made) {
    if (image_rows_ != nullptr) {
      const StatusOr<ImageRowCounts> rows = image_rows_->count(features->shape, features->extras);
      if (!rows.ok()) return named(rows.status());
      const Status placed = image_rows_->check_places(features->shape, features->values);
      if (!placed.ok()) return named(placed);
      features->num_positions = rows->num_positions;
      features->num_rows = rows->num_rows;
      features->num_last_positions = rows->num_last_positions;
    }
    items.push_back(features);
  }
  return items;
}

StatusOr<std::shared_ptr<const EncoderFeatures>> MultiModalRegistry::audio_features(const Json& item,
                                                                                    const MediaAccess& access,
                                                                                    const MediaLimits& limits) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<AudioReader> reader,
                   open_audio(item, audio_->sampling_rate(), access, limits));
  // One sample more than fits tells that it does not.
  const int64_t rate = audio_->sampling_rate();
  int64_t most = static_cast<int64_t>(limits.max_audio_seconds * static_cast<double>(rate));
  if (audio_->max_samples().has_value()) most = std::min(most, *audio_->max_samples());
  if (limits.max_positions.has_value()) most = std::min(most, audio_->max_samples_of(*limits.max_positions));
  std::vector<float> samples;
  std::vector<float> piece(static_cast<size_t>(rate));
  while (static_cast<int64_t>(samples.size()) <= most) {
    StatusOr<size_t> count = reader->read(piece);
    if (!count.ok()) return with_param(with_prefix(count.status(), "multi_modal_data: audio"), kMediaParam);
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
        kMediaParam);
  }
  return audio_->features(samples);
}

}  // namespace transept
