#include "async/engine_mailbox.h"

#include <cstdio>
#include <utility>

namespace transept {

Status id_is_taken(const std::string& request_id) {
  return field_error("id", str_cat("a request \"", request_id, "\" is in flight already"));
}

std::string seconds_text(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds(duration));
  return text;
}

Status EngineMailbox::add(NewRequest request, int32_t num_queued_elsewhere) {
  const MutexLock lock(mutex_);
  if (!closed_.ok()) return closed_;
  const std::string& id = request.channel->request_id();
  if (in_flight_.contains(id)) return id_is_taken(id);
  const int64_t num_queued = int64_t{num_queued_locked()} + num_queued_elsewhere;
  if (!request.is_continuation && num_queued >= max_queued_) {
    ++num_refused_;
    return resource_exhausted("the queue is full: ", num_queued, " requests wait, and the limit is ", max_queued_);
  }
  in_flight_.emplace(id, InFlight{request.channel, request.load});
  num_tokens_ += request.load.num_tokens;
  if (request.load.content.has_value()) {
    ++contents_[*request.load.content];
    recent_.insert(*request.load.content);
  }
  added_.push_back(std::move(request));
  wake_engine_.notify_one();
  return ok_status();
}

bool EngineMailbox::has(const std::string& request_id) const {
  const MutexLock lock(mutex_);
  return in_flight_.contains(request_id);
}

ReplicaLoad EngineMailbox::load(const std::optional<ContentDigest>& content) const {
  const MutexLock lock(mutex_);
  return {num_tokens_, content.has_value() && (contents_.contains(*content) || recent_.contains(*content))};
}

bool EngineMailbox::abort(const std::string& request_id) {
  const MutexLock lock(mutex_);
  const auto found = in_flight_.find(request_id);
  if (found == in_flight_.end()) return false;
  aborted_.push_back(found->second.channel);
  wake_engine_.notify_one();
  return true;
}

void EngineMailbox::abort(const std::shared_ptr<RequestChannel>& channel) {
  const MutexLock lock(mutex_);
  // By identity: the id may be another request's by now.
  const auto found = in_flight_.find(channel->request_id());
  if (found == in_flight_.end() || found->second.channel != channel) return;
  aborted_.push_back(channel);
  wake_engine_.notify_one();
}

void EngineMailbox::encode(EncodeCall call) {
  const MutexLock lock(mutex_);
  if (!closed_.ok()) return call.handle.set_value(closed_);
  encodes_.push_back(std::move(call));
  wake_engine_.notify_one();
}

std::future<int64_t> EngineMailbox::clear_cache() {
  const MutexLock lock(mutex_);
  recent_.clear();
  std::promise<int64_t> promise;
  std::future<int64_t> num_blocks = promise.get_future();
  if (closed_.ok()) {
    cache_clearings_.push_back(std::move(promise));
    wake_engine_.notify_one();
  } else {
    promise.set_value(0);
  }
  return num_blocks;
}

void EngineMailbox::input_dropped() {
  const MutexLock lock(mutex_);
  inputs_dropped_ = true;
  wake_engine_.notify_one();
}

void EngineMailbox::wake() {
  const MutexLock lock(mutex_);
  is_woken_ = true;
  wake_engine_.notify_one();
}

void EngineMailbox::refuse_new_requests() {
  const MutexLock lock(mutex_);
  close_locked();
}

void EngineMailbox::close_locked() {
  if (closed_.ok()) closed_ = absl::UnavailableError("the engine is shutting down and takes no new requests");
}

bool EngineMailbox::wait_until_idle(Duration timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (!is_at_rest() && became_idle_.wait_until(mutex_, end)) {
  }
  return is_at_rest();
}

void EngineMailbox::stop() {
  const MutexLock lock(mutex_);
  close_locked();
  stop_ = true;
  wake_engine_.notify_one();
}

void EngineMailbox::give_up(const Status& error) {
  std::vector<std::shared_ptr<RequestChannel>> channels;
  std::vector<EncodeCall> encodes;
  {
    const MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = closed_ = error;  // its own error says more
    for (const auto& [id, request] : in_flight_) channels.push_back(request.channel);
    encodes = std::exchange(encodes_, {});
  }
  // Without the mutex: their readers may ask for more.
  for (const auto& channel : channels) channel->give_up(error);
  for (EncodeCall& call : encodes) call.handle.set_value(error);
}

int32_t EngineMailbox::num_queued() const {
  const MutexLock lock(mutex_);
  return num_queued_locked();
}

int32_t EngineMailbox::num_in_flight() const {
  const MutexLock lock(mutex_);
  return static_cast<int32_t>(in_flight_.size());
}

Status EngineMailbox::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

EngineSnapshot EngineMailbox::snapshot() const {
  const MutexLock lock(mutex_);
  EngineSnapshot snapshot = published_;
  for (const NewRequest& request : added_) snapshot.waiting.push_back(request.channel->request_id());
  snapshot.num_queued = num_queued_locked();
  snapshot.max_queued = max_queued_;
  snapshot.counts.refused = num_refused_;
  return snapshot;
}

bool EngineMailbox::has_work() const {
  return stop_ || inputs_dropped_ || is_woken_ || !added_.empty() || !aborted_.empty() || !encodes_.empty() ||
         !cache_clearings_.empty();
}

void EngineMailbox::take(std::optional<Duration> max_sleep, Work& work) {
  work.added.clear();
  work.aborted.clear();
  work.encodes.clear();
  work.cache_clearings.clear();
  const MutexLock lock(mutex_);
  if (max_sleep != Duration::zero() && !has_work()) {
    is_idle_ = true;
    became_idle_.notify_all();
    if (!max_sleep.has_value()) {
      while (!has_work()) wake_engine_.wait(mutex_);
    } else {
      const auto end = std::chrono::steady_clock::now() + *max_sleep;
      while (!has_work() && wake_engine_.wait_until(mutex_, end)) {
      }
    }
    is_idle_ = false;
  }
  is_woken_ = false;
  std::swap(added_, work.added);
  std::swap(aborted_, work.aborted);
  std::swap(encodes_, work.encodes);
  std::swap(cache_clearings_, work.cache_clearings);
  work.inputs_dropped = std::exchange(inputs_dropped_, false);
  work.stop = stop_;
  num_taken_ += static_cast<int32_t>(work.added.size());
}

void EngineMailbox::forget(const std::vector<std::string>& request_ids) {
  if (request_ids.empty()) return;
  const MutexLock lock(mutex_);
  for (const std::string& id : request_ids) {
    const auto found = in_flight_.find(id);
    const RequestLoad& load = found->second.load;
    num_tokens_ -= load.num_tokens;
    if (load.content.has_value()) {
      const auto content = contents_.find(*load.content);
      if (--content->second == 0) contents_.erase(content);
    }
    in_flight_.erase(found);
  }
  if (in_flight_.empty()) became_idle_.notify_all();
}

void EngineMailbox::fail(const Status& error) {
  const MutexLock lock(mutex_);
  failure_ = closed_ = error;
}

void EngineMailbox::publish(EngineSnapshot& next) {
  const MutexLock lock(mutex_);
  std::swap(published_, next);
  num_taken_ = 0;
}

}  // namespace transept
