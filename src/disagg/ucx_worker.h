// A worker of UCX with a context of its own: one side of a transport, which one thread drives. Used by that thread
// alone, but for wake().
#pragma once

#include <memory>

#include "base/clock.h"
#include "disagg/ucx_library.h"

namespace transept {

inline constexpr unsigned kUcxChunk = 3;  // the id of a chunk's message: its header is the frame's front

class UcxWorker final {
 public:
  // Errors: as load_ucx(); kUnavailable, UCX cannot begin (UCX_TLS names no transport that is there, ..).
  static StatusOr<std::unique_ptr<UcxWorker>> create();
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h get() const { return worker_; }
  // Whether anything has happened.
  bool progress() const { return ucx().ucp_worker_progress(worker_) != 0; }
  // Until something may have happened, or the time is over.
  void wait(Duration longest) const;
  void wake() const { ucx().ucp_worker_signal(worker_); }

  // Whether a request is over, which frees it. Null is one that ended at once.
  static bool is_over(void*& request, ucs_status_t& status);
  // Ends a connection without its peer's agreement, and waits for it, a second at most.
  void close(ucp_ep_h endpoint) const;

 private:
  UcxWorker() = default;
  Status start();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;  // the worker's
};

}  // namespace transept
