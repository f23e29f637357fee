#include "base/check.h"
#include "media/audio_reader.h"
#include "multimodal/audio_processor.h"
#include "multimodal/preprocessor_config.h"

namespace transept {
namespace {

// FACTS of Whisper's front end, where the folder has no preprocessor_config.json.
constexpr int64_t kSamplingRate = 16000, kHopLength = 160, kFft = 400, kChunkSeconds = 30;
constexpr int64_t kMaxChunkSeconds = 3600;
constexpr int64_t kMaxValues = int64_t{1} << 26;  // of a window's log-mel: a request must not take gigabytes
constexpr int64_t kConvolutionStride = 2;         // of the encoder's second convolution

class LogMelProcessor final : public AudioProcessor {
 public:
  LogMelProcessor(LogMel log_mel, int64_t num_samples)
      : log_mel_(std::move(log_mel)), num_samples_(num_samples), num_frames_(log_mel_.num_frames(num_samples)) {}

  int32_t sampling_rate() const override { return log_mel_.options().sampling_rate; }
  std::optional<int64_t> max_samples() const override { return num_samples_; }
  int64_t max_samples_of(int32_t /*num_positions*/) const override { return num_samples_; }
  int64_t num_positions(int64_t /*num_samples*/) const override { return (num_frames_ - 1) / kConvolutionStride + 1; }
  std::optional<int64_t> positions_of(std::span<const int64_t> shape) const override {
    if (shape.size() != 2 || shape[0] != log_mel_.options().num_mel_bins || shape[1] != num_frames_)
      return std::nullopt;
    return num_positions(num_samples_);
  }
  const LogMel* log_mel() const override { return &log_mel_; }

  std::shared_ptr<const EncoderFeatures> features(std::span<const float> samples) const override {
    CHECK(static_cast<int64_t>(samples.size()) <= num_samples_, "more than one window");
    auto out = make(static_cast<double>(samples.size()) / sampling_rate());
    log_mel_.window(samples, num_samples_, out->values);
    return out;
  }

  std::shared_ptr<const EncoderFeatures> features_of_frames(std::span<const float> frames, float max,
                                                            double seconds) const override {
    auto out = make(seconds);
    log_mel_.normalize(frames, max, num_frames_, out->values);
    return out;
  }

 private:
  std::shared_ptr<EncoderFeatures> make(double seconds) const {
    auto out = std::make_shared<EncoderFeatures>();
    const int64_t num_bins = log_mel_.options().num_mel_bins;
    out->shape = {num_bins, num_frames_};
    out->values.resize(static_cast<size_t>(num_bins * num_frames_));
    out->num_positions = static_cast<int32_t>(num_positions(num_samples_));
    out->audio_seconds = seconds;
    return out;
  }

  LogMel log_mel_;
  int64_t num_samples_, num_frames_;
};

}  // namespace

StatusOr<std::unique_ptr<AudioProcessor>> make_log_mel_processor(const ModelConfig& config) {
  const ConfigReader model(config.raw, config.path + "/config.json");
  ASSIGN_OR_RETURN(const int64_t num_mel_bins, model.integer("num_mel_bins", 1, 1024, 80));
  ASSIGN_OR_RETURN(const int64_t max_positions, model.integer("max_source_positions", 1, 1'000'000, 1500));
  ASSIGN_OR_RETURN(const PreprocessorConfig file, PreprocessorConfig::load(config.folder));
  const ConfigReader& reader = file.reader();
  ASSIGN_OR_RETURN(const int64_t feature_size, reader.integer("feature_size", 1, 1024, num_mel_bins));
  if (feature_size != num_mel_bins) {
    return reader.error("feature_size", str_cat(feature_size, ", but config.json has num_mel_bins ", num_mel_bins));
  }
  LogMelOptions options;
  options.num_mel_bins = static_cast<int32_t>(num_mel_bins);
  ASSIGN_OR_RETURN(const int64_t rate,
                   reader.integer("sampling_rate", kMinSamplingRate, kMaxSamplingRate, kSamplingRate));
  ASSIGN_OR_RETURN(const int64_t n_fft, reader.integer("n_fft", 2, 16384, kFft));
  ASSIGN_OR_RETURN(const int64_t hop, reader.integer("hop_length", 1, n_fft, kHopLength));
  ASSIGN_OR_RETURN(const int64_t seconds, reader.integer("chunk_length", 1, kMaxChunkSeconds, kChunkSeconds));
  ASSIGN_OR_RETURN(const int64_t num_samples, reader.integer("n_samples", 1, kMaxChunkSeconds * rate, seconds * rate));
  options.sampling_rate = static_cast<int32_t>(rate);
  options.n_fft = static_cast<int32_t>(n_fft);
  options.hop_length = static_cast<int32_t>(hop);
  const int64_t num_frames = num_samples / hop;
  if (num_frames > kMaxValues / num_mel_bins) {
    return reader.error("n_samples", str_cat(num_samples, " samples are ", num_frames, " frames of ", num_mel_bins,
                                             " mel bins: more than ", kMaxValues, " values are not supported"));
  }
  if (num_frames < 1 || (num_frames - 1) / kConvolutionStride + 1 != max_positions) {
    return reader.error("n_samples", str_cat(num_samples, " samples are ", num_frames, " frames, but config.json has ",
                                             "max_source_positions ", max_positions));
  }
  StatusOr<LogMel> made = LogMel::create(options);
  if (!made.ok()) return reader.error(error_param(made.status()), error_message(made.status()));
  LogMel log_mel = std::move(made).value();
  return std::unique_ptr<AudioProcessor>(std::make_unique<LogMelProcessor>(std::move(log_mel), num_samples));
}

}  // namespace transept
