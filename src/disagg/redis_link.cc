#include "disagg/redis_link.h"

#include <algorithm>

#include "base/clock.h"

namespace transept {
namespace {

using std::chrono::milliseconds;

constexpr Duration kPing = milliseconds(250);
constexpr Duration kMayWait = milliseconds(5);  // for other calls, before a further connection is opened
constexpr Duration kFirstWait = milliseconds(50), kLongestWait = std::chrono::seconds(1);

}  // namespace

StatusOr<std::unique_ptr<RedisLink>> RedisLink::open(const RedisUrl& url, Duration answer) {
  ASSIGN_OR_RETURN(auto connection, RedisConnection::open(url, steady_now() + answer));
  std::unique_ptr<RedisLink> link(new RedisLink(url, answer, std::move(connection)));
  link->thread_ = std::thread([raw = link.get()] { raw->look_after(); });
  return link;
}

RedisLink::~RedisLink() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Status RedisLink::away() const {
  return absl::UnavailableError(str_cat("the broker is away: ", error_message(why_away_)));
}

void RedisLink::lose(const Status& why) {
  is_away_ = true;
  why_away_ = why;
  idle_.clear();
  changed_.notify_all();
}

RedisLink::RedisLink(RedisUrl url, Duration answer, std::unique_ptr<RedisConnection> connection)
    : url_(std::move(url)), answer_(answer) {
  idle_.push_back(std::move(connection));
}

// One that the server has not closed meanwhile; null: there is none.
std::unique_ptr<RedisConnection> RedisLink::take_idle() {
  while (!idle_.empty()) {
    std::unique_ptr<RedisConnection> connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->is_idle() || (idle_.empty() && num_turns_ == 0)) return connection;
  }
  return nullptr;
}

StatusOr<RedisLink::Turn> RedisLink::turn() {
  const TimePoint deadline = steady_now() + answer_;
  TimePoint open_at = steady_now() + kMayWait;
  while (true) {
    ASSIGN_OR_RETURN(auto connection, wait_for_idle(open_at, deadline));
    if (connection == nullptr) {
      auto opened = RedisConnection::open(url_, steady_now() + answer_);
      if (opened.ok()) connection = *std::move(opened);
    }
    // What has waited for others says nothing of the server.
    if (connection != nullptr) return Turn(this, std::move(connection), steady_now() + answer_);
    // It takes no more connections, for instance; if it is away, those that have one say so.
    open_at = TimePoint::max();
    const MutexLock lock(mutex_);
    --num_turns_;
    changed_.notify_all();
  }
}

// Null: the caller is to open one. Counts the turn.
StatusOr<std::unique_ptr<RedisConnection>> RedisLink::wait_for_idle(TimePoint open_at, TimePoint deadline) {
  const MutexLock lock(mutex_);
  while (true) {
    if (is_away_) return away();
    std::unique_ptr<RedisConnection> connection = take_idle();
    const bool may_open = num_turns_ < kMaxConnections && steady_now() >= open_at;
    if (connection != nullptr || may_open) {
      ++num_turns_;
      return connection;
    }
    if (steady_now() >= deadline) return absl::UnavailableError("the broker is busy with other calls");
    changed_.wait_until(mutex_, num_turns_ < kMaxConnections ? std::min(open_at, deadline) : deadline);
  }
}

RedisLink::Turn::~Turn() {
  if (link_ == nullptr) return;
  const MutexLock lock(link_->mutex_);
  --link_->num_turns_;
  if (!link_->is_away_) link_->idle_.push_back(std::move(connection_));
  link_->changed_.notify_all();
}

StatusOr<std::vector<RedisValue>> RedisLink::Turn::run(std::span<const RedisCommand> commands) {
  auto replies = connection_->run(commands, deadline_);
  const MutexLock lock(link_->mutex_);
  if (replies.ok()) {
    link_->heard_ = steady_now();
  } else {
    link_->lose(replies.status());
  }
  return replies;
}

StatusOr<std::vector<RedisValue>> RedisLink::run(std::initializer_list<RedisCommand> commands) {
  ASSIGN_OR_RETURN(Turn alone, turn());
  return alone.run(commands);
}

StatusOr<std::unique_ptr<RedisConnection>> RedisLink::connect() {
  {
    const MutexLock lock(mutex_);
    if (is_away_) return away();
  }
  return RedisConnection::open(url_, steady_now() + answer_);
}

void RedisLink::suspect() {
  const MutexLock lock(mutex_);
  is_suspect_ = true;
  changed_.notify_all();
}

void RedisLink::on_path(std::function<void(bool is_away)> tell) {
  const MutexLock lock(mutex_);
  tell_ = std::move(tell);
}

// ---- The thread

void RedisLink::look_after() {
  for (bool is_path_lost = true;; is_path_lost = !is_path_lost) {
    is_path_lost ? look() : come_back();
    std::function<void(bool)> tell;
    {
      const MutexLock lock(mutex_);
      if (is_stopped_) return;
      tell = tell_;
    }
    if (tell) tell(is_path_lost);
  }
}

void RedisLink::look() {
  while (true) {
    {
      const TimePoint end = steady_now() + kPing;
      const MutexLock lock(mutex_);
      while (!is_stopped_ && !is_away_ && !is_suspect_ && steady_now() < end) changed_.wait_until(mutex_, end);
      if (is_stopped_ || is_away_) return;
      if (!is_suspect_ && steady_now() < heard_ + kPing) continue;
      is_suspect_ = false;
    }
    // No turn in that time: other calls have it, and one without an answer says so.
    (void)run({{"PING"}});
  }
}

void RedisLink::come_back() {
  for (Duration wait = kFirstWait;; wait = std::min(2 * wait, kLongestWait)) {
    const auto begun = steady_now();
    StatusOr<std::unique_ptr<RedisConnection>> opened = RedisConnection::open(url_, begun + answer_);
    const MutexLock lock(mutex_);
    if (opened.ok()) {
      while (num_turns_ > 0 && !is_stopped_) changed_.wait(mutex_);
      if (is_stopped_) return;
      idle_.clear();
      idle_.push_back(*std::move(opened));
      is_away_ = is_suspect_ = false;
      changed_.notify_all();
      return;
    }
    why_away_ = opened.status();
    const TimePoint end = steady_now() + wait;
    while (!is_stopped_ && steady_now() < end) changed_.wait_until(mutex_, end);
    if (is_stopped_) return;
  }
}

}  // namespace transept
