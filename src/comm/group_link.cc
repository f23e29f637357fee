#include "comm/group_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace transept {
namespace {

constexpr Duration kSendTimeout = std::chrono::seconds(1);
// For the first rank to say what ended the group.
constexpr Duration kVerdictTimeout = std::chrono::seconds(1);

}  // namespace

GroupLink::~GroupLink() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
  }
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
  for (size_t i = 0; i < sockets_.size(); ++i) tell(static_cast<int>(i), GoodbyeFrame{});
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

std::string GroupLink::name_of(int rank) const {
  const GroupMember& other = member(rank);
  return str_cat("rank ", rank, " (host ", other.host, ", pid ", other.pid, ")");
}

// ---- While ranks load

StatusOr<std::vector<std::vector<std::byte>>> GroupLink::swap(std::vector<std::byte> own, TimePoint deadline) {
  CHECK(!thread_.joinable());
  const auto receive = [&](size_t i) -> StatusOr<ControlFrame> {
    StatusOr<ControlFrame> frame = sockets_[i].receive(deadline);
    if (!frame.ok()) return with_prefix(frame.status(), name_of(static_cast<int>(i)));
    if (const FailureFrame* failure = std::get_if<FailureFrame>(&*frame)) return failure->why;
    return frame;
  };
  if (rank_ != 0) {
    RETURN_IF_ERROR(sockets_[0].send(ValueFrame{std::move(own)}, deadline));
    ASSIGN_OR_RETURN(ControlFrame frame, receive(0));
    ValuesFrame* values = std::get_if<ValuesFrame>(&frame);
    if (values == nullptr || std::ssize(values->values) != size()) {
      return invalid_argument(name_of(0), " says something else than the ranks' values");
    }
    return std::move(values->values);
  }
  ValuesFrame all;
  all.values.push_back(std::move(own));
  for (size_t other = 1; other < sockets_.size(); ++other) {
    ASSIGN_OR_RETURN(ControlFrame frame, receive(other));
    ValueFrame* value = std::get_if<ValueFrame>(&frame);
    if (value == nullptr) return invalid_argument(name_of(static_cast<int>(other)), " has not said its value");
    all.values.push_back(std::move(value->bytes));
  }
  for (size_t other = 1; other < sockets_.size(); ++other) RETURN_IF_ERROR(sockets_[other].send(all, deadline));
  return all.values;
}

// ---- The group's end

void GroupLink::begin(std::function<void()> ended) {
  CHECK(!thread_.joinable());
  ended_ = std::move(ended);
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] { run(); });
}

void GroupLink::run() {
  std::vector<bool> is_left(sockets_.size());
  // Something may have come with the last value.
  for (size_t i = 0; i < sockets_.size(); ++i) {
    is_left[i] = sockets_[i].is_open() && look_after(static_cast<int>(i));
  }
  while (true) {
    std::vector<pollfd> fds = {{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (is_left[i]) fds.push_back({.fd = sockets_[i].fd(), .events = POLLIN, .revents = 0});
    }
    ::poll(fds.data(), fds.size(), -1);
    {
      const MutexLock lock(mutex_);
      if (is_ending_) return;
    }
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (is_left[i]) is_left[i] = look_after(static_cast<int>(i));
    }
  }
}

// What the other has said since. False: nothing more comes. `i`: of sockets_, which is the other's rank.
bool GroupLink::look_after(int i) {
  while (true) {
    const StatusOr<std::optional<ControlFrame>> frame = sockets_[static_cast<size_t>(i)].poll(kMaxControlFrameBytes);
    if (!frame.ok()) {
      end(absl::UnavailableError(str_cat(name_of(i), " has ended: ", error_message(frame.status()))));
      return false;
    }
    if (!frame->has_value()) return true;
    if (const FailureFrame* failure = std::get_if<FailureFrame>(&**frame)) {
      end(failure->why);
    } else if (std::holds_alternative<GoodbyeFrame>(**frame)) {
      if (i == 0) end(absl::CancelledError("the first rank has ended"));
      return false;
    } else {
      end(invalid_argument(name_of(i), " says something else than what ended the group"));
      return false;
    }
  }
}

// The first rank's word, or what ends this rank without it.
void GroupLink::end(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (failure_.has_value() || is_ending_) return;
    failure_ = why;
    changed_.notify_all();
  }
  if (rank_ == 0) {
    for (int other = 1; other < size(); ++other) tell(other, FailureFrame{why});
  }
  if (ended_) ended_();
}

void GroupLink::fail(const Status& why) {
  if (rank_ == 0) return end(why);
  if (failure().has_value()) return;
  tell(0, FailureFrame{why});
  if (!thread_.joinable() || !await_failure(kVerdictTimeout).has_value()) end(why);
}

std::optional<Status> GroupLink::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

std::optional<Status> GroupLink::await_failure(Duration timeout) const {
  const TimePoint until = steady_now() + timeout;
  const MutexLock lock(mutex_);
  while (!failure_.has_value() && steady_now() < until) changed_.wait_until(mutex_, until);
  return failure_;
}

void GroupLink::tell(int i, const ControlFrame& frame) {
  const ControlSocket& socket = sockets_[static_cast<size_t>(i)];
  const MutexLock lock(send_mutex_);
  if (socket.is_open()) socket.send(frame, steady_now() + kSendTimeout).IgnoreError();
}

void GroupLink::wake() const {
  const uint64_t one = 1;
  if (::write(wake_fd_, &one, sizeof one) < 0) return;  // it is awake already
}

}  // namespace transept
