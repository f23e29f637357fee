// The connections of a group's processes with its first rank (control_frame.h), for ranks on several hosts: how they
// meet, agree on what must be the same, and learn that the group has ended. Data goes elsewhere (gloo_communicator.h).
//
// The first rank listens; each other one connects, and shows that it knows the group's token. A connection that does
// not is closed, and start-up goes on. When all are there, their settings are compared: a difference is the error
// of all ranks. From then on the first rank keeps the group's end: what one reports first is what all are told.
//
// Thread-safe after it was made; swap() and begin() are called by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "comm/control_frame.h"
#include "comm/control_socket.h"

namespace transept {

class GroupLink final {
 public:
  struct Options {
    int rank = 0, size = 1;
    std::string host = "127.0.0.1";  // the first rank's
    uint16_t port = 0;
    std::string token;                   // "": all know it
    std::vector<GroupSetting> settings;  // of the same names in the same order on all
    Duration join_timeout = std::chrono::minutes(5);
    Duration hello_timeout = std::chrono::seconds(5);  // of those who have connected
    std::function<Status()> check;                     // asked while others are missing; an error ends that; null: none
  };

  // Of the first rank: returns when all have joined. Errors: a rank has not joined in time; settings differ; another
  // number of ranks (kInvalidArgument, on all ranks).
  static StatusOr<std::unique_ptr<GroupLink>> host(const ControlListener& listener, const Options& options);
  // Of the others: tries until the first rank listens. Errors: as above; it has not listened in time; it knows another
  // token; it says why it does not take this rank.
  static StatusOr<std::unique_ptr<GroupLink>> join(const Options& options);
  // Says goodbye: the others' group ends with kCancelled, unless it has failed.
  ~GroupLink();
  GroupLink(const GroupLink&) = delete;
  GroupLink& operator=(const GroupLink&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  const ControlBytes& secret() const { return secret_; }
  // "rank 1 (host b, pid 77)"
  std::string name_of(int rank) const;
  const GroupMember& member(int rank) const { return members_[static_cast<size_t>(rank)]; }
  // Of this rank, as the others reach it.
  const std::string& local_address() const { return local_address_; }

  // Gives every rank's bytes to all, by rank. All call it. REQUIRES: begin() was not called.
  StatusOr<std::vector<std::vector<std::byte>>> swap(std::vector<std::byte> own, TimePoint deadline);

  // From now on the group's end is looked for. `ended` is called once when there is one, by the thread that finds it,
  // and must not call this object but for failure().
  void begin(std::function<void()> ended);
  // What has ended the group; nullopt: nothing.
  std::optional<Status> failure() const;
  // The same, waiting for it.
  std::optional<Status> await_failure(Duration timeout) const;
  // Ends the group with `why`, unless it has ended. Returns when failure() is what all ranks are told.
  void fail(const Status& why);

 private:
  friend class GroupMeeting;
  GroupLink() = default;

  void run();
  bool look_after(int rank);
  void end(const Status& why);
  void tell(int rank, const ControlFrame& frame);
  void wake() const;

  int rank_ = 0;
  std::vector<GroupMember> members_;
  ControlBytes secret_{};
  std::string local_address_;
  // By rank: of the first rank all but its own; of the others the first's alone. Read by the thread, once it runs.
  std::vector<ControlSocket> sockets_;
  int wake_fd_ = -1;
  std::function<void()> ended_;
  std::thread thread_;

  Mutex send_mutex_;  // one frame after the other
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::optional<Status> failure_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept
