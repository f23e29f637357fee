// A bulk transport within a process, for tests. Transports of one net reach each other by name. A receiver has a queue
// of a few frames; a sender whose receiver's queue is full waits.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/frame_writer.h"
#include "disagg/send_queue.h"

namespace transept {

// Thread-safe. Shared by its transports.
class InprocBulkNet final {
 private:
  friend class InprocBulk;
  static constexpr size_t kMaxFrames = 4;  // of a receiver's queue
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::deque<std::vector<std::byte>>> queues_ ABSL_GUARDED_BY(mutex_);
};

class InprocBulk final : public BulkTransport {
 public:
  // REQUIRES: the net has no transport of this address.
  InprocBulk(std::shared_ptr<InprocBulkNet> net, std::string address, std::shared_ptr<FrameWriter> writer);
  ~InprocBulk() override;
  InprocBulk(const InprocBulk&) = delete;
  InprocBulk& operator=(const InprocBulk&) = delete;

  std::string address() const override { return address_; }
  void send(std::string_view to, Sending sending) override;
  void cancel(const EcInput& input) override { queue_.cancel(input); }
  void receive(std::function<void(std::span<const std::byte> frame)> take) override;

 private:
  void run_sender();
  void run_receiver(const std::function<void(std::span<const std::byte> frame)>& take);
  bool send_one(const std::string& to);

  const std::shared_ptr<InprocBulkNet> net_;
  const std::string address_;
  const std::shared_ptr<FrameWriter> writer_;
  SendQueue queue_;
  bool is_stopped_ ABSL_GUARDED_BY(net_->mutex_) = false;
  std::thread sender_, receiver_;
};

}  // namespace transept
