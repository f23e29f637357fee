#include "async/request_channel.h"

#include "base/check.h"
#include "engine/stream_deltas.h"

namespace transept {

void RequestChannel::push(RequestOutput&& output) {
  {
    const MutexLock lock(mutex_);
    if (given_up_) return;
    CHECK(!ended_, "request ", request_id_, " got an output after its end");
    ended_ = output.finished;
    if (closed_) return;
    const bool had_news = pending_.has_value();
    if (had_news) {
      merge_delta(*pending_, std::move(output));
    } else {
      pending_ = std::move(output);
    }
    if (had_news && !ended_) return;
    announce();
  }
  call_reader();
}

void RequestChannel::fail(const Status& error) {
  {
    const MutexLock lock(mutex_);
    if (given_up_) return;
    CHECK(!ended_ && !error.ok(), "request ", request_id_, " got an error after its end");
    ended_ = true;
    error_ = error;
    if (closed_) return;
    announce();
  }
  call_reader();
}

void RequestChannel::give_up(const Status& error) {
  {
    const MutexLock lock(mutex_);
    await_reader();
    if (ended_) return;
    given_up_ = ended_ = true;
    error_ = error;
    if (closed_) return;
    announce();
  }
  call_reader();
}

void RequestChannel::announce() {
  changed_.notify_all();
  if (on_ready_) notifier_ = std::this_thread::get_id();
}

// announce() was called, and the mutex is free: on_ready may call what takes it.
void RequestChannel::call_reader() {
  if (!on_ready_) return;
  on_ready_();
  const MutexLock lock(mutex_);
  notifier_ = {};
  changed_.notify_all();  // close() may wait for this
}

std::optional<StatusOr<RequestOutput>> RequestChannel::take(std::optional<Duration> timeout) {
  const TimePoint end = timeout.has_value() ? SteadyClock().now() + *timeout : TimePoint::max();
  const MutexLock lock(mutex_);
  if (end_was_taken_) return absl::FailedPreconditionError(str_cat("request ", request_id_, ": its stream has ended"));
  while (!has_news() && changed_.wait_until(mutex_, end)) {
  }
  if (!has_news()) return std::nullopt;
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
  const MutexLock lock(mutex_);
  return end_was_taken_;
}

bool RequestChannel::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  pending_.reset();
  await_reader();
  return !ended_;
}

void RequestChannel::await_reader() {
  while (notifier_ != std::thread::id() && notifier_ != std::this_thread::get_id()) changed_.wait(mutex_);
}

}  // namespace transept
