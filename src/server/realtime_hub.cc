#include "server/realtime_hub.h"

#include <algorithm>
#include <utility>

namespace transept {

RealtimeHub::Place& RealtimeHub::Place::operator=(Place&& other) noexcept {
  if (this != &other) {
    release();
    hub_ = std::exchange(other.hub_, nullptr);
  }
  return *this;
}

void RealtimeHub::Place::release() {
  if (hub_ != nullptr) --hub_->counts_.num_sessions;
  hub_ = nullptr;
}

RealtimeHub::RealtimeHub(std::unique_ptr<RealtimeSpeech> speech, const Options& options, ServerMetrics& metrics,
                         const Clock& clock)
    : speech_(std::move(speech)), options_(options), metrics_(metrics), clock_(clock), thread_([this] { run(); }) {}

RealtimeHub::~RealtimeHub() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

StatusOr<RealtimeHub::Place> RealtimeHub::take_place() {
  if (++counts_.num_sessions > options_.max_sessions) {
    --counts_.num_sessions;
    return absl::UnavailableError(
        str_cat("all ", options_.max_sessions, " live sessions are taken (--max-live-sessions); try again later"));
  }
  ++counts_.num_opened;
  return Place(this);
}

void RealtimeHub::add(std::shared_ptr<Session> session) {
  {
    const MutexLock lock(mutex_);
    sessions_.push_back(std::move(session));
  }
  changed_.notify_all();
}

void RealtimeHub::remove(const Session* session) {
  const MutexLock lock(mutex_);
  std::erase_if(sessions_, [&](const auto& each) { return each.get() == session; });
}

void RealtimeHub::run() {
  while (true) {
    std::vector<std::shared_ptr<Session>> sessions;
    {
      const MutexLock lock(mutex_);
      while (sessions_.empty() && !stops_) changed_.wait(mutex_);
      const auto end = std::chrono::steady_clock::now() + kBetweenLooks;
      while (!stops_ && changed_.wait_until(mutex_, end)) {
      }
      if (stops_) return;
      sessions = sessions_;
    }
    for (const std::shared_ptr<Session>& session : sessions) session->look();
  }
}

}  // namespace transept
