#include "disagg/redis_line.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace transept {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50), kLongestPause = std::chrono::seconds(1);

}  // namespace

StatusOr<std::vector<RedisValue>> RedisLine::run(std::span<const RedisCommand> commands, Duration wait) {
  RETURN_IF_ERROR(connect());
  RedisConnection* connection = nullptr;
  {
    const MutexLock lock(mutex_);
    if (is_stopped_) return absl::UnavailableError("stopped");
    connection = connection_.get();
  }
  auto replies = connection->run(commands, steady_now() + wait + answer_);
  if (replies.ok()) {
    pause_ = Duration::zero();
  } else {
    lose(replies.status());
  }
  return replies;
}

Status RedisLine::connect() {
  {
    const MutexLock lock(mutex_);
    if (connection_ != nullptr) return ok_status();
  }
  if (steady_now() < again_at_) return why_away_;
  auto opened = RedisConnection::open(url_, steady_now() + answer_);
  if (!opened.ok()) {
    lose(opened.status());
    return why_away_;
  }
  const MutexLock lock(mutex_);
  connection_ = *std::move(opened);
  return ok_status();
}

void RedisLine::lose(const Status& why) {
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  again_at_ = steady_now() + pause_;
  why_away_ = absl::UnavailableError(str_cat("the broker is away: ", error_message(why)));
  const MutexLock lock(mutex_);
  connection_ = nullptr;
}

void RedisLine::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  if (connection_ != nullptr) connection_->interrupt();
}

}  // namespace transept
