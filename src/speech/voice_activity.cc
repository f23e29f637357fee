#include "speech/voice_activity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"

namespace transept {
namespace {

// Frames. Speech dips to the noise in every bin within some hundred milliseconds.
constexpr int64_t kNoiseReach = 150;
// A side with fewer frames (the beginning, the end) says nothing about noise: it may be all speech.
constexpr int64_t kLeastNoiseReach = 75;
constexpr int64_t kNoiseSmoothing = 5;   // on both sides
constexpr int64_t kSpeechSmoothing = 2;  // on both sides
constexpr int64_t kNoiseInterval = 5;    // noise is estimated anew every so many frames
constexpr int64_t kRingFrames = 512;     // > 2 x (kNoiseReach + kNoiseSmoothing)
constexpr int64_t kRunFrames = 16;       // of which the minimum is kept
static_assert(kRingFrames % kRunFrames == 0);

// Smoothed frames that a causal decision waits for, itself included.
constexpr int64_t kCausalReach = 4;
// Sound whose level stays within this ratio for so long is noise, however new: voices rise and fall.
constexpr int64_t kSteadyFrames = 50;
constexpr float kSteadyRatio = 1.5f;
// Mean power of a frame of digital silence, and a little.
constexpr float kDigitalSilence = 1.1e-10f;
// What the noise of a quiet room has at most in a bin: -57 dB of full scale.
constexpr float kQuietNoise = 1e-5f;

// A minimum lies below the mean; measured on white noise.
constexpr float kMinimumBias = 1.8f;
constexpr float kLeastNoise = 1e-9f;
constexpr float kMostPosteriorSnr = 1e3f;
constexpr float kLeastPriorSnr = 0.03162278f;  // -15 dB
constexpr float kPriorMemory = 0.9f;           // of the decision-directed estimate (Ephraim and Malah, 1984)
constexpr float kMostLogRatio = 20;

// Of the two-state Markov model that makes the hang-over: speech begins, speech ends (per frame).
constexpr double kBegins = 0.01, kEnds = 0.1;

float power_of(float log10_power) {
  if (!(log10_power > -10)) return 1e-10f;
  return std::exp(std::min(log10_power, 10.0f) * std::numbers::ln10_v<float>);
}

}  // namespace

class VoiceActivityDetector::State final {
 public:
  State(int num_bins, VoiceMode mode)
      : num_bins_(num_bins),
        is_causal_(mode == VoiceMode::kCausal),
        powers_(kRingFrames * num_bins),
        smoothed_(kRingFrames * num_bins),
        run_minima_(kRingFrames / kRunFrames * num_bins),
        noise_(num_bins),
        speech_(num_bins),
        row_(num_bins),
        minima_(num_bins),
        exponents_(num_bins),
        priors_(num_bins),
        prior_(is_causal_ ? num_bins : 0, kQuietNoise / kMinimumBias),
        levels_(is_causal_ ? kRingFrames : 0) {}

  void push(std::span<const float> log10_mel, std::vector<FrameVoice>& out) {
    CHECK(static_cast<int64_t>(log10_mel.size()) == num_bins_, log10_mel.size(), " bins, not ", num_bins_);
    float* power = row(powers_, num_frames_++);
    for (int64_t k = 0; k < num_bins_; ++k) power[k] = power_of(log10_mel[k]);
    if (num_frames_ > kNoiseSmoothing) smooth_next();
    const int64_t reach = is_causal_ ? kCausalReach : kNoiseReach;
    while (next_ + reach <= num_smoothed_) out.push_back(decide_next());
  }

  void finish(std::vector<FrameVoice>& out) {
    while (num_smoothed_ < num_frames_) smooth_next();
    while (next_ < num_frames_) out.push_back(decide_next());
  }

 private:
  float* row(std::vector<float>& ring, int64_t frame) const { return ring.data() + frame % kRingFrames * num_bins_; }

  // Mean power of [frame - reach, frame + reach], as far as there are such frames.
  void mean_power(int64_t frame, int64_t reach, float* out) {
    const int64_t begin = std::max<int64_t>(frame - reach, 0), end = std::min(frame + reach + 1, num_frames_);
    const float scale = 1 / static_cast<float>(end - begin);
    constexpr int64_t kLanes = 16;  // sums that stay in registers
    int64_t k = 0;
    for (; k + kLanes <= num_bins_; k += kLanes) {
      std::array<float, kLanes> sums{};
      for (int64_t i = begin; i < end; ++i) {
        const float* power = row(powers_, i) + k;
        for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += power[lane];
      }
      for (size_t lane = 0; lane < kLanes; ++lane) out[k + static_cast<int64_t>(lane)] = sums[lane] * scale;
    }
    for (; k < num_bins_; ++k) {
      float sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += row(powers_, i)[k];
      out[k] = sum * scale;
    }
  }

  void smooth_next() {
    const float* smoothed = row(smoothed_, num_smoothed_);
    mean_power(num_smoothed_, kNoiseSmoothing, row(smoothed_, num_smoothed_));
    if (is_causal_) {
      levels_[static_cast<size_t>(num_smoothed_ % kRingFrames)] = std::accumulate(smoothed, smoothed + num_bins_, 0.0f);
    }
    float* run = run_minimum(num_smoothed_);
    if (num_smoothed_ % kRunFrames == 0) {
      std::copy_n(smoothed, num_bins_, run);
    } else {
      take_minimum(smoothed, run);
    }
    ++num_smoothed_;
  }

  // Of the smoothed frames from that run's first one on.
  float* run_minimum(int64_t frame) { return run_minima_.data() + frame % kRingFrames / kRunFrames * num_bins_; }

  void take_minimum(const float* from, float* out) const {
    for (int64_t k = 0; k < num_bins_; ++k) out[k] = std::min(out[k], from[k]);
  }

  // REQUIRES: begin < end <= num_smoothed_.
  void minimum(int64_t begin, int64_t end, std::vector<float>& out) {
    std::copy_n(row(smoothed_, begin), num_bins_, out.data());
    for (int64_t i = begin + 1; i < end;) {
      // The run that is not complete yet has the frames so far.
      const bool is_run = i % kRunFrames == 0 && std::min(i + kRunFrames, num_smoothed_) <= end;
      take_minimum(is_run ? run_minimum(i) : row(smoothed_, i), out.data());
      i += is_run ? kRunFrames : 1;
    }
  }

  // The least smoothed power of each side, and of the two the greater: where silence meets speech with a noise of its
  // own, that noise is none of the silence's. A side that is too short does not count while the other is not.
  void estimate_noise(int64_t frame) {
    const int64_t begin = std::max<int64_t>(frame - kNoiseReach + 1, 0);
    const int64_t end = std::min(frame + kNoiseReach, num_smoothed_);
    const bool has_past = frame >= kLeastNoiseReach, has_future = num_smoothed_ - 1 - frame >= kLeastNoiseReach;
    if (has_past == has_future) {
      minimum(begin, frame + 1, noise_);
      minimum(frame, end, minima_);
      for (int64_t k = 0; k < num_bins_; ++k) {
        noise_[k] = has_past ? std::max(noise_[k], minima_[k]) : std::min(noise_[k], minima_[k]);
      }
    } else {
      minimum(has_past ? begin : frame, has_past ? frame + 1 : end, noise_);
    }
    for (float& noise : noise_) noise = std::max(noise * kMinimumBias, kLeastNoise);
  }

  // The same from the past alone, since the last digital silence.
  void estimate_causal_noise(int64_t frame) {
    const int64_t first = sound_begin_ + kNoiseSmoothing + 1;  // smoothed without the silence before it
    const int64_t begin = std::max(first, frame - kNoiseReach + 1);
    const int64_t end = std::min(frame + kCausalReach, num_smoothed_);
    const bool is_new = frame - sound_begin_ < kLeastNoiseReach;
    if (begin < end) {
      minimum(begin, end, noise_);
    } else {
      noise_ = prior_;
    }
    const int64_t steady = end - kSteadyFrames;
    const bool is_steady = steady >= first && is_level_steady(steady, end);
    if (is_steady) minimum(steady, end, minima_);
    for (int64_t k = 0; k < num_bins_; ++k) {
      if (is_new) noise_[k] = std::min(noise_[k], prior_[k]);
      if (is_steady) noise_[k] = std::max(noise_[k], minima_[k]);
      if (!is_new) settled_[k] = noise_[k];
      noise_[k] = std::max(noise_[k] * kMinimumBias, kLeastNoise);
    }
  }

  bool is_level_steady(int64_t begin, int64_t end) const {
    float least = INFINITY, most = 0;
    for (int64_t frame = begin; frame < end; ++frame) {
      const float level = levels_[static_cast<size_t>(frame % kRingFrames)];
      least = std::min(least, level);
      most = std::max(most, level);
    }
    return most <= least * kSteadyRatio;
  }

  // Sound begins behind a frame of digital silence; what its noise was is what is known of the next one's.
  void note_silence(int64_t frame) {
    if (frame - sound_begin_ >= kLeastNoiseReach) prior_ = settled_;
    sound_begin_ = frame + 1;
  }

  // Mean over bins of the log of p(frame | speech) / p(frame | noise), both Gaussian. Logarithms are what it costs: of
  // products of several bins, where no bin's ratio can reach its limit.
  double log_ratio() {
    constexpr int kFactors = 8;  // of a product; each is at most 1 + kMostPosteriorSnr
    // What is of one bin alone, which vectors do at once, and then the sums in their order.
    const float *power = row_.data(), *noise = noise_.data();
    float *speech = speech_.data(), *priors = priors_.data(), *exponents = exponents_.data();
    for (int64_t k = 0; k < num_bins_; ++k) {
      const float posterior = std::min(power[k] / noise[k], kMostPosteriorSnr);
      const float prior =
          std::max(kPriorMemory * speech[k] + (1 - kPriorMemory) * std::max(posterior - 1, 0.0f), kLeastPriorSnr);
      const float gain = prior / (1 + prior);
      speech[k] = gain * gain * posterior;
      exponents[k] = posterior * gain;
      priors[k] = prior;
    }
    double sum = 0;
    float product = 1;
    int num_factors = 0;
    for (int64_t k = 0; k < num_bins_; ++k) {
      if (exponents[k] > kMostLogRatio) {
        sum += std::min(exponents[k] - std::log1p(priors[k]), kMostLogRatio);
        continue;
      }
      sum += exponents[k];
      product *= 1 + priors[k];
      if (++num_factors < kFactors) continue;
      sum -= std::log(product);
      product = 1;
      num_factors = 0;
    }
    return (sum - std::log(product)) / static_cast<double>(num_bins_);
  }

  FrameVoice decide_next() {
    const int64_t frame = next_++;
    double power = 0;
    const float* powers = row(powers_, frame);
    for (int64_t k = 0; k < num_bins_; ++k) power += powers[k];
    power /= static_cast<double>(num_bins_);
    if (is_causal_ && power < static_cast<double>(kDigitalSilence)) note_silence(frame);
    if (frame % kNoiseInterval == 0) is_causal_ ? estimate_causal_noise(frame) : estimate_noise(frame);
    mean_power(frame, kSpeechSmoothing, row_.data());
    odds_ = (kBegins + (1 - kEnds) * odds_) / ((1 - kBegins) + kEnds * odds_) * std::exp(log_ratio());
    return {.probability = static_cast<float>(odds_ / (1 + odds_)), .level = static_cast<float>(std::log10(power))};
  }

  int64_t num_bins_;
  bool is_causal_;
  std::vector<float> powers_, smoothed_;  // rings of kRingFrames
  std::vector<float> run_minima_;         // of kRunFrames smoothed frames each
  int64_t num_frames_ = 0, num_smoothed_ = 0, next_ = 0;
  std::vector<float> noise_;
  std::vector<float> speech_;  // power of speech over noise, as estimated in the frame before
  std::vector<float> row_, minima_, exponents_, priors_;
  // Causal: the first frame behind the last digital silence; minima before it, and the last ones that 0.75 s of sound
  // have given.
  int64_t sound_begin_ = 0;
  std::vector<float> prior_, settled_ = prior_;
  std::vector<float> levels_;      // a ring: sums over bins of the smoothed frames
  double odds_ = kBegins / kEnds;  // speech to noise
};

VoiceActivityDetector::VoiceActivityDetector(int num_bins, VoiceMode mode) {
  CHECK(num_bins >= 1 && num_bins <= 512, num_bins, " bins");
  state_ = std::make_unique<State>(num_bins, mode);
}
VoiceActivityDetector::~VoiceActivityDetector() = default;
VoiceActivityDetector::VoiceActivityDetector(VoiceActivityDetector&&) noexcept = default;
VoiceActivityDetector& VoiceActivityDetector::operator=(VoiceActivityDetector&&) noexcept = default;

void VoiceActivityDetector::push(std::span<const float> log10_mel, std::vector<FrameVoice>& out) {
  state_->push(log10_mel, out);
}
void VoiceActivityDetector::finish(std::vector<FrameVoice>& out) { state_->finish(out); }

std::vector<FrameVoice> detect_voice(std::span<const float> frames, int num_bins, VoiceMode mode) {
  VoiceActivityDetector detector(num_bins, mode);
  const auto bins = static_cast<size_t>(num_bins);
  std::vector<FrameVoice> voice;
  voice.reserve(frames.size() / bins);
  for (size_t i = 0; i + bins <= frames.size(); i += bins) detector.push(frames.subspan(i, bins), voice);
  detector.finish(voice);
  return voice;
}

}  // namespace transept
