#include "media/log_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "media/audio_types.h"
#include "media/log_mel_tables.h"

namespace transept {
namespace {

constexpr int32_t kMaxBins = 1024;
constexpr int32_t kMaxTransform = 4096;
constexpr float kDynamicRange = 8;  // of log10 values below the maximum
constexpr size_t kPieceSamples = size_t{1} << 14;

Status check_range(std::string_view name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return ok_status();
  return field_error(name, str_cat("must be ", least, " to ", most, ", is ", value));
}

// Position `i` of a signal of `size` samples that is mirrored at its first and its last one for ever.
int64_t mirrored(int64_t i, int64_t size) {
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t at = ((i % period) + period) % period;
  return std::min(at, period - at);
}

// In lanes that do not wait for each other; what is no number is passed over. REQUIRES: not empty.
float greatest(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = std::max(lanes[lane], values[i + lane]);
  }
  for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

}  // namespace

LogMel::LogMel(std::shared_ptr<const LogMelTables> tables) : tables_(std::move(tables)) {}

StatusOr<LogMel> LogMel::create(const LogMelOptions& options, Isa isa) {
  RETURN_IF_ERROR(check_range("feature_size", options.num_mel_bins, 1, kMaxBins));
  RETURN_IF_ERROR(check_range("n_fft", options.n_fft, 2, kMaxTransform));
  if (options.n_fft % 2 != 0) return field_error("n_fft", str_cat("must be even, is ", options.n_fft));
  RETURN_IF_ERROR(check_range("hop_length", options.hop_length, 1, options.n_fft));
  RETURN_IF_ERROR(check_range("sampling_rate", options.sampling_rate, kMinSamplingRate, kMaxSamplingRate));
  return LogMel(std::make_shared<const LogMelTables>(options, isa));
}

const LogMelOptions& LogMel::options() const { return tables_->options; }

int64_t LogMel::num_frames(int64_t num_samples) const { return num_samples / tables_->options.hop_length; }

void LogMel::window(std::span<const float> samples, int64_t num_samples, std::span<float> out) const {
  CHECK(num_samples >= 0);
  const auto kept = static_cast<int64_t>(std::min(samples.size(), static_cast<size_t>(num_samples)));
  std::vector<float> frames;
  frames.reserve(static_cast<size_t>(num_frames(num_samples) * tables_->options.num_mel_bins));
  LogMelStream stream(*this);
  stream.push(samples.first(static_cast<size_t>(kept)), frames);
  stream.finish(frames, num_samples - kept);
  normalize(frames, stream.max(), num_frames(num_samples), out);
}

void LogMel::normalize(std::span<const float> frames, float max, int64_t num_frames, std::span<float> out) const {
  const int64_t bins = tables_->options.num_mel_bins;
  const int64_t present = static_cast<int64_t>(frames.size()) / bins;
  CHECK(present * bins == static_cast<int64_t>(frames.size()) && present <= num_frames);
  CHECK(static_cast<int64_t>(out.size()) == num_frames * bins);
  if (present < num_frames) std::fill(out.begin(), out.end(), 0.0f);
  const float least = max - kDynamicRange;
  constexpr int64_t kTile = 16;  // frames: what is read of them stays in the nearest cache
  for (int64_t begin = 0; begin < present; begin += kTile) {
    const int64_t end = std::min(begin + kTile, present);
    for (int64_t bin = 0; bin < bins; ++bin) {
      for (int64_t t = begin; t < end; ++t) {
        out[static_cast<size_t>(bin * num_frames + t)] =
            (std::max(frames[static_cast<size_t>(t * bins + bin)], least) + 4.0f) / 4.0f;
      }
    }
  }
}

LogMelStream::LogMelStream(const LogMel& log_mel)
    : tables_(log_mel.tables_), scratch_(static_cast<size_t>(log_mel_scratch_floats(tables_->plan)) + 16) {}

void LogMelStream::push(std::span<const float> samples, std::vector<float>& frames) {
  CHECK(!finished_);
  for (size_t at = 0; at < samples.size(); at += kPieceSamples) {
    const auto piece = samples.subspan(at, std::min(kPieceSamples, samples.size() - at));
    pending_.insert(pending_.end(), piece.begin(), piece.end());
    num_samples_ += static_cast<int64_t>(piece.size());
    emit(frames);
  }
}

void LogMelStream::finish(std::vector<float>& frames, int64_t num_zeros) {
  CHECK(!finished_ && num_zeros >= 0);
  // Behind so many zeros no frame reaches back to another sample, not even by the mirrored end.
  const int64_t num_pushed = std::min(num_zeros, int64_t{2} * tables_->options.n_fft);
  push(std::vector<float>(static_cast<size_t>(num_pushed)), frames);
  finished_ = true;
  if (num_pushed == num_zeros) return emit(frames);
  num_samples_ += num_zeros - num_pushed;
  emit_silence(frames);
}

// Whether the edges that the pending samples need are in place: mirrors the first samples to the left as soon as there
// are enough, and the last ones to the right at the end.
bool LogMelStream::mirror_edges() {
  const int64_t pad = tables_->options.n_fft / 2;
  if (!started_) {
    if (num_samples_ == 0 || (num_samples_ <= pad && !finished_)) return false;
    std::vector<float> edge;
    for (int64_t i = -pad; i < 0; ++i) edge.push_back(pending_[static_cast<size_t>(mirrored(i, num_samples_))]);
    pending_.insert(pending_.begin(), edge.begin(), edge.end());
    started_ = true;
  }
  if (finished_) {
    // pending_ ends with the last sample; what it begins with is padded position num_frames_ * hop_length.
    const int64_t begin = num_frames_ * tables_->options.hop_length - pad;
    for (int64_t i = num_samples_; i < num_samples_ + pad; ++i) {
      const int64_t from = mirrored(i, num_samples_) - begin;
      pending_.push_back(pending_[static_cast<size_t>(std::max<int64_t>(0, from))]);
    }
  }
  return true;
}

// Appends the remaining frames, all of zeros: a short clip's window is nearly nothing else.
void LogMelStream::emit_silence(std::vector<float>& frames) {
  const LogMelOptions& options = tables_->options;
  std::vector<float> one;
  append_frames(std::vector<float>(static_cast<size_t>(options.n_fft)).data(), 1, one);
  const int64_t count = num_samples_ / options.hop_length - num_frames_;
  frames.reserve(frames.size() + static_cast<size_t>(count) * one.size());
  for (int64_t i = 0; i < count; ++i) frames.insert(frames.end(), one.begin(), one.end());
  num_frames_ += count;
}

void LogMelStream::append_frames(const float* samples, int64_t count, std::vector<float>& frames) {
  const LogMelOptions& options = tables_->options;
  const size_t before = frames.size();
  const int64_t num_samples = (count - 1) * options.hop_length + options.n_fft;
  // Silence that is digital, as of a microphone that is off, costs nothing.
  if (std::all_of(samples, samples + num_samples, [](float sample) { return sample == 0; })) {
    if (silent_frame_.empty()) {
      const std::vector<float> zeros(static_cast<size_t>(options.n_fft));
      silent_frame_.resize(static_cast<size_t>(options.num_mel_bins));
      transform(zeros.data(), 1, silent_frame_.data());
    }
    for (int64_t i = 0; i < count; ++i) frames.insert(frames.end(), silent_frame_.begin(), silent_frame_.end());
  } else {
    frames.resize(before + static_cast<size_t>(count * options.num_mel_bins));
    transform(samples, count, frames.data() + before);
  }
  max_ = std::max(max_, greatest(std::span(frames).subspan(before)));
}

void LogMelStream::transform(const float* samples, int64_t count, float* out) {
  float* scratch = scratch_.data();
  while (reinterpret_cast<uintptr_t>(scratch) % 64 != 0) ++scratch;
  tables_->frames(tables_->plan, samples, count, scratch, out);
}

// Appends the frames that are certain and lets go of the samples that no later frame needs.
void LogMelStream::emit(std::vector<float>& frames) {
  if (!mirror_edges()) return;
  const LogMelOptions& options = tables_->options;
  // A frame is certain when all its samples are there, and it is not the last of the transform, which is dropped.
  const int64_t there = static_cast<int64_t>(pending_.size()) - options.n_fft;
  const int64_t whole = there < 0 ? 0 : there / options.hop_length + 1;
  const int64_t count = std::min(whole, num_samples_ / options.hop_length - num_frames_);
  if (count <= 0) return;
  append_frames(pending_.data(), count, frames);
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(count * options.hop_length));
  num_frames_ += count;
}

}  // namespace transept
