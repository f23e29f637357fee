#include <algorithm>

#include "media/audio_reader.h"
#include "multimodal/audio_processor.h"
#include "multimodal/preprocessor_config.h"

namespace transept {
namespace {

constexpr int64_t kSamplingRate = 16000;

// The three convolutions of Moonshine's encoder (transformers, modeling_moonshine.py, MoonshineEncoder).
struct Convolution {
  int64_t kernel, stride;
};
constexpr Convolution kConvolutions[] = {{127, 64}, {7, 3}, {3, 2}};

// 0: too few for any.
int64_t convolved_length(int64_t num_samples) {
  int64_t length = num_samples;
  for (const Convolution& step : kConvolutions) {
    if (length < step.kernel) return 0;
    length = (length - step.kernel) / step.stride + 1;
  }
  return length;
}

// The fewest samples that give so many positions, at least one.
int64_t least_samples(int64_t num_positions) {
  int64_t length = num_positions;
  for (size_t i = std::size(kConvolutions); i-- > 0;) {
    length = (length - 1) * kConvolutions[i].stride + kConvolutions[i].kernel;
  }
  return length;
}

class WaveformProcessor final : public AudioProcessor {
 public:
  explicit WaveformProcessor(int32_t sampling_rate) : sampling_rate_(sampling_rate) {}

  int32_t sampling_rate() const override { return sampling_rate_; }
  int64_t max_samples_of(int32_t positions) const override { return least_samples(int64_t{positions} + 1) - 1; }

  int64_t num_positions(int64_t num_samples) const override {
    return std::max<int64_t>(convolved_length(num_samples), 1);
  }

  std::optional<int64_t> positions_of(std::span<const int64_t> shape) const override {
    if (shape.size() != 1 || shape[0] < least_samples(1)) return std::nullopt;
    return num_positions(shape[0]);
  }

  // Less than one position's worth is padded with silence.
  std::shared_ptr<const EncoderFeatures> features(std::span<const float> samples) const override {
    auto out = std::make_shared<EncoderFeatures>();
    out->values.assign(samples.begin(), samples.end());
    out->values.resize(std::max(samples.size(), static_cast<size_t>(least_samples(1))));
    out->shape = {static_cast<int64_t>(out->values.size())};
    out->num_positions = static_cast<int32_t>(num_positions(out->shape[0]));
    out->audio_seconds = static_cast<double>(samples.size()) / sampling_rate_;
    return out;
  }

 private:
  int32_t sampling_rate_;
};

}  // namespace

StatusOr<std::unique_ptr<AudioProcessor>> make_waveform_processor(const ModelConfig& config) {
  ASSIGN_OR_RETURN(const PreprocessorConfig file, PreprocessorConfig::load(config.folder));
  ASSIGN_OR_RETURN(const int64_t rate,
                   file.reader().integer("sampling_rate", kMinSamplingRate, kMaxSamplingRate, kSamplingRate));
  ASSIGN_OR_RETURN(const bool normalize, file.reader().boolean("do_normalize", false));
  if (normalize) return file.reader().error("do_normalize", "normalised samples are not supported");
  return std::unique_ptr<AudioProcessor>(std::make_unique<WaveformProcessor>(static_cast<int32_t>(rate)));
}

}  // namespace transept
