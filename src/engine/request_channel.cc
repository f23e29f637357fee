#include "engine/request_channel.h"

#include "base/check.h"
#include "engine/stream_deltas.h"

namespace transept {

void RequestChannel::push(RequestOutput&& output) {
  std::unique_lock lock(mutex_);
  CHECK(!ended_, "request ", request_id_, " got an output after its end");
  ended_ = output.finished;
  if (closed_) return;
  const bool had_news = pending_.has_value();
  if (had_news) {
    merge_delta(*pending_, std::move(output));
  } else {
    pending_ = std::move(output);
  }
  if (!had_news || ended_) notify(lock);
}

void RequestChannel::fail(const Status& error) {
  std::unique_lock lock(mutex_);
  CHECK(!ended_ && !error.ok(), "request ", request_id_, " got an error after its end");
  ended_ = true;
  error_ = error;
  if (!closed_) notify(lock);
}

void RequestChannel::notify(std::unique_lock<std::mutex>& lock) {
  changed_.notify_all();
  if (!on_ready_) return;
  notifier_ = std::this_thread::get_id();
  lock.unlock();
  on_ready_();
  lock.lock();
  notifier_ = {};
  changed_.notify_all();  // close() may wait for this
}

std::optional<StatusOr<RequestOutput>> RequestChannel::take(std::optional<Duration> timeout) {
  std::unique_lock lock(mutex_);
  if (end_was_taken_) return absl::FailedPreconditionError(str_cat("request ", request_id_, ": its stream has ended"));
  const auto ready = [this] { return has_news(); };
  if (!timeout.has_value()) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_for(lock, *timeout, ready)) {
    return std::nullopt;
  }
  if (pending_.has_value()) {
    StatusOr<RequestOutput> output = std::move(*pending_);
    pending_.reset();
    end_was_taken_ = output->finished;
    return output;
  }
  end_was_taken_ = true;
  return error_;
}

bool RequestChannel::has_ended() const {
  const std::lock_guard lock(mutex_);
  return end_was_taken_;
}

bool RequestChannel::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  pending_.reset();
  changed_.wait(lock, [this] { return notifier_ == std::thread::id() || notifier_ == std::this_thread::get_id(); });
  return !ended_;
}

}  // namespace transept
