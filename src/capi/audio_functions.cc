// Audio of transept.h: as an argument, and decoded to samples.
#include <memory>
#include <utility>
#include <vector>

#include "capi/audio_argument.h"
#include "capi/border.h"

namespace transept {
namespace {

constexpr size_t kAudioV1 = sizeof(transept_audio);
constexpr int32_t kDefaultRate = 16000;
constexpr double kDefaultSeconds = 4 * 60 * 60;

}  // namespace

StatusOr<transept_audio> read_audio_struct(const transept_audio* audio) {
  return read_struct(audio, kAudioV1, "audio");
}

StatusOr<AudioSource> audio_source(const transept_audio& audio) {
  if ((audio.path != nullptr) + (audio.bytes != nullptr) + (audio.samples != nullptr) != 1) {
    return field_error("audio", "audio: give one of path, bytes and samples");
  }
  if (audio.path != nullptr) {
    ASSIGN_OR_RETURN(AudioBytes bytes, AudioBytes::from_file(audio.path));
    return AudioSource(std::move(bytes));
  }
  if (audio.bytes != nullptr) {
    return AudioSource(AudioBytes(nullptr, {static_cast<const uint8_t*>(audio.bytes), audio.num_bytes}));
  }
  const int32_t rate = audio.sampling_rate == 0 ? kDefaultRate : audio.sampling_rate;
  return AudioSource(AudioSamples(nullptr, {audio.samples, audio.num_samples}, rate));
}

}  // namespace transept

using namespace transept;  // NOLINT: the function below is C's

transept_code transept_decode_audio(const transept_audio* audio, int32_t sampling_rate, double max_seconds,
                                    float** samples, size_t* num_samples, transept_error** error) {
  if (samples != nullptr) *samples = nullptr;
  if (num_samples != nullptr) *num_samples = 0;
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(samples, "samples"));
    RETURN_IF_ERROR(require(num_samples, "num_samples"));
    ASSIGN_OR_RETURN(const transept_audio given, read_audio_struct(audio));
    ASSIGN_OR_RETURN(const AudioSource source, audio_source(given));
    AudioReader::Options options;
    options.sampling_rate = sampling_rate == 0 ? kDefaultRate : sampling_rate;
    options.max_seconds = max_seconds == 0 ? kDefaultSeconds : max_seconds;
    ASSIGN_OR_RETURN(const std::unique_ptr<AudioReader> reader, source.open(options));
    ASSIGN_OR_RETURN(const std::vector<float> decoded, read_all(*reader));
    *samples = copy_samples(decoded);
    *num_samples = decoded.size();
    return ok_status();
  });
}
