// One audio item of multi_modal_data, from wherever it comes.
#include <cmath>
#include <limits>

#include "base/base64.h"
#include "base/strings.h"
#include "multimodal/media_path.h"
#include "multimodal/registry.h"

namespace transept {
namespace {

constexpr std::string_view kName = "audio";
constexpr std::string_view kForms = "a path, {\"base64\": \"..\"} or {\"samples\": [..], \"sampling_rate\": 16000}";

Status audio_error(std::string_view reason) { return media_error(kName, reason); }

StatusOr<AudioBytes> from_path(const std::string& path, const MediaAccess& access) {
  ASSIGN_OR_RETURN(const std::string file, media_path(path, access, kName));
  StatusOr<AudioBytes> bytes = AudioBytes::from_file(file);
  // Of a server's folders its clients learn nothing: its errors name the resolved path.
  if (!bytes.ok() && !access.allowed_path.empty()) return not_below_error(kName);
  if (!bytes.ok()) return with_param(bytes.status(), kMediaParam);
  return bytes;
}

StatusOr<RawAudio> read_samples(const Json& samples, const Json* sampling_rate) {
  if (!samples.is_array()) return audio_error("samples must be a list of numbers");
  if (sampling_rate == nullptr || !sampling_rate->is_number()) {
    return audio_error("samples need a sampling_rate, in hertz");
  }
  const double rate = sampling_rate->as_double();
  if (!(rate >= kMinSamplingRate && rate <= kMaxSamplingRate) || rate != std::floor(rate)) {
    return audio_error(str_cat("sampling_rate ", sampling_rate->dump(), " is not a whole number from ",
                               kMinSamplingRate, " to ", kMaxSamplingRate));
  }
  RawAudio raw;
  raw.sampling_rate = static_cast<int32_t>(rate);
  raw.samples.reserve(samples.as_array().size());
  for (const Json& sample : samples.as_array()) {
    if (!sample.is_number()) return audio_error(str_cat("samples[", raw.samples.size(), "] is not a number"));
    const double value = sample.as_double();
    // The reader refuses what is not finite; a number beyond float's range must not become that unseen.
    raw.samples.push_back(std::abs(value) <= std::numeric_limits<float>::max()
                              ? static_cast<float>(value)
                              : std::numeric_limits<float>::infinity());
  }
  return raw;
}

// The member of an object, where null is the same as absent.
const Json* present(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

StatusOr<std::unique_ptr<AudioReader>> open_object(const Json& item, const AudioReader::Options& options,
                                                   const MediaLimits& limits) {
  const Json* base64 = present(item, "base64");
  const Json* samples = present(item, "samples");
  if ((base64 != nullptr) == (samples != nullptr)) return audio_error(str_cat("expected ", kForms));
  if (samples != nullptr) {
    ASSIGN_OR_RETURN(RawAudio raw, read_samples(*samples, present(item, "sampling_rate")));
    return AudioReader::from_samples(std::move(raw), options);
  }
  if (!base64->is_string()) return audio_error("base64 must be a string");
  if (base64->as_string().size() / 4 * 3 > limits.max_bytes) {
    return audio_error(
        str_cat(base64->as_string().size() / 4 * 3, " bytes are more than the ", limits.max_bytes, " allowed"));
  }
  std::optional<std::string> bytes = decode_base64(base64->as_string());
  if (!bytes.has_value()) return audio_error("base64 does not hold base64 (RFC 4648)");
  return AudioReader::open(AudioBytes::from_string(std::move(*bytes)), options);
}

}  // namespace

StatusOr<std::unique_ptr<AudioReader>> open_audio(const Json& item, int32_t sampling_rate, const MediaAccess& access,
                                                  const MediaLimits& limits) {
  const AudioReader::Options options{sampling_rate, limits.max_audio_seconds};
  std::string prefix = "multi_modal_data: audio";
  StatusOr<std::unique_ptr<AudioReader>> reader = audio_error(str_cat("expected ", kForms));
  if (item.is_string()) {
    prefix = item.as_string();
    ASSIGN_OR_RETURN(AudioBytes bytes, from_path(prefix, access));
    if (bytes.size() > limits.max_bytes) {
      return audio_error(str_cat(bytes.size(), " bytes are more than the ", limits.max_bytes, " allowed"));
    }
    reader = AudioReader::open(std::move(bytes), options);
  } else if (item.is_object()) {
    reader = open_object(item, options, limits);
  }
  if (reader.ok()) return reader;
  return media_status(reader.status(), prefix);
}

}  // namespace transept
