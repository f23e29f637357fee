#include "server/admission.h"

#include <algorithm>
#include <cmath>

namespace transept {
namespace {

constexpr auto kRateWindow = std::chrono::seconds(10);
constexpr size_t kMaxAnswers = 1024;

}  // namespace

Admission::Places& Admission::Places::operator=(Places&& other) noexcept {
  release();
  admission_ = std::exchange(other.admission_, nullptr);
  count_ = other.count_;
  return *this;
}

void Admission::Places::release() {
  Admission* admission = std::exchange(admission_, nullptr);
  if (admission == nullptr) return;
  const MutexLock lock(admission->mutex_);
  admission->num_arriving_ -= count_;
}

Admission::Charge& Admission::Charge::operator=(Charge&& other) noexcept {
  release();
  admission_ = std::exchange(other.admission_, nullptr);
  tokens_ = other.tokens_;
  seconds_ = other.seconds_;
  bytes_ = other.bytes_;
  return *this;
}

void Admission::Charge::release() {
  Admission* admission = std::exchange(admission_, nullptr);
  if (admission == nullptr) return;
  const MutexLock lock(admission->mutex_);
  admission->tokens_ -= tokens_;
  admission->body_bytes_ -= bytes_;
  admission->audio_seconds_ = std::max(0.0, admission->audio_seconds_ - seconds_);
}

StatusOr<Admission::Places> Admission::take_places(int32_t count) {
  if (count > options_.max_requests) {
    return invalid_argument(count, " prompts at once; the queue holds ", options_.max_requests);
  }
  const int32_t num_queued = num_queued_();  // the engine's lock is not taken under ours
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(check_places(count, num_queued));
  num_arriving_ += count;
  return Places(this, count);
}

Status Admission::check_places() const {
  const int32_t num_queued = num_queued_();
  const MutexLock lock(mutex_);
  return check_places(1, num_queued);
}

Status Admission::check_places(int32_t count, int32_t num_queued) const {
  const int32_t waiting = num_queued + num_arriving_;
  if (waiting + count <= options_.max_requests) return ok_status();
  return resource_exhausted("the queue is full: ", waiting, " requests wait, and at most ", options_.max_requests,
                            " may; try again later");
}

StatusOr<Admission::Charge> Admission::take_budget(int64_t tokens, double audio_seconds) {
  const MutexLock lock(mutex_);
  if (tokens_ > 0 && tokens_ + tokens > options_.max_tokens) {
    return resource_exhausted("prompts of ", tokens_, " tokens are in work; with the ", tokens,
                              " of this request that is more than ", options_.max_tokens, "; try again later");
  }
  if (audio_seconds_ > 0 && audio_seconds_ + audio_seconds > options_.max_audio_seconds) {
    return resource_exhausted("audio of ", std::llround(audio_seconds_), " s is in work; with the ",
                              std::llround(audio_seconds), " s of this request that is more than ",
                              std::llround(options_.max_audio_seconds), " s; try again later");
  }
  tokens_ += tokens;
  audio_seconds_ += audio_seconds;
  return Charge(this, tokens, audio_seconds, 0);
}

void Admission::charge_audio(Charge& charge, double audio_seconds) {
  if (charge.admission_ == nullptr) return;
  const MutexLock lock(mutex_);
  audio_seconds_ = std::max(0.0, audio_seconds_ - charge.seconds_ + audio_seconds);
  charge.seconds_ = audio_seconds;
}

Status Admission::check_body(int64_t bytes) const {
  const MutexLock lock(mutex_);
  return check_body_beside(body_bytes_, bytes);
}

Status Admission::charge_body(Charge& body, int64_t bytes, bool must) {
  const MutexLock lock(mutex_);
  const int64_t others = body_bytes_ - body.bytes_;
  if (!must) RETURN_IF_ERROR(check_body_beside(others, bytes));
  body_bytes_ = others + bytes;
  body.bytes_ = bytes;
  body.admission_ = this;
  return ok_status();
}

Status Admission::check_body_beside(int64_t others, int64_t bytes) const {
  if (others == 0 || others + bytes <= options_.max_body_bytes) return ok_status();
  return resource_exhausted("bodies of ", others, " bytes are in work; with the ", bytes,
                            " of this request that is more than ", options_.max_body_bytes, "; try again later");
}

void Admission::note_answer() {
  const TimePoint now = clock_.now();
  const MutexLock lock(mutex_);
  answers_.push_back(now);
  if (answers_.size() > kMaxAnswers) answers_.pop_front();
}

int Admission::retry_after_seconds() const {
  const TimePoint now = clock_.now();
  const int32_t waiting = num_waiting();
  const MutexLock lock(mutex_);
  while (!answers_.empty() && now - answers_.front() > kRateWindow) answers_.pop_front();
  if (answers_.empty()) return 30;
  const double elapsed = std::max(0.1, seconds(now - answers_.front()));
  const double rate = static_cast<double>(answers_.size()) / elapsed;
  return static_cast<int>(std::clamp(std::ceil(waiting / rate), 1.0, 30.0));
}

AdmissionLoad Admission::load() const {
  const int32_t num_queued = num_queued_();
  const MutexLock lock(mutex_);
  return {num_queued + num_arriving_, body_bytes_, options_.max_body_bytes};
}

}  // namespace transept
