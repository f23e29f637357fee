#include "disagg/inproc_bulk.h"

#include <utility>

namespace transept {

InprocBulk::InprocBulk(std::shared_ptr<InprocBulkNet> net, std::string address, std::shared_ptr<FrameWriter> writer)
    : net_(std::move(net)), address_(std::move(address)), writer_(std::move(writer)) {
  sender_ = std::thread([this] { run_sender(); });
}

InprocBulk::~InprocBulk() {
  {
    const MutexLock lock(net_->mutex_);
    is_stopped_ = true;
    net_->queues_.erase(address_);
    net_->changed_.notify_all();
  }
  sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

void InprocBulk::send(std::string_view to, Sending sending) {
  queue_.add(to, std::move(sending));
  const MutexLock lock(net_->mutex_);
  net_->changed_.notify_all();
}

void InprocBulk::receive(std::function<void(std::span<const std::byte> frame)> take) {
  {
    const MutexLock lock(net_->mutex_);
    net_->queues_[address_];
  }
  receiver_ = std::thread([this, take = std::move(take)] { run_receiver(take); });
}

void InprocBulk::run_sender() {
  while (true) {
    bool any = false;
    for (const std::string& to : queue_.destinations()) any = send_one(to) || any;
    const MutexLock lock(net_->mutex_);
    if (is_stopped_) return;
    if (!any) {
      net_->changed_.wait_until(net_->mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    }
  }
}

// Whether a chunk was handed over.
bool InprocBulk::send_one(const std::string& to) {
  const auto piece = queue_.begin(to);
  if (!piece.has_value()) return false;
  std::vector<std::byte> frame;
  const Status written = writer_->write(piece->chunk, frame);
  if (!written.ok()) {
    queue_.fail(written);
    return true;
  }
  {
    const MutexLock lock(net_->mutex_);
    const auto receiver = net_->queues_.find(to);
    // A peer that is not there looks like one that is slow, as it does in a network.
    if (receiver == net_->queues_.end() || receiver->second.size() >= InprocBulkNet::kMaxFrames) {
      queue_.keep();
      return false;
    }
    receiver->second.push_back(std::move(frame));
    net_->changed_.notify_all();
  }
  queue_.advance();
  return true;
}

void InprocBulk::run_receiver(const std::function<void(std::span<const std::byte> frame)>& take) {
  while (true) {
    std::vector<std::byte> frame;
    {
      const MutexLock lock(net_->mutex_);
      while (!is_stopped_ && net_->queues_[address_].empty()) net_->changed_.wait(net_->mutex_);
      if (is_stopped_) return;
      auto& queue = net_->queues_[address_];
      frame = std::move(queue.front());
      queue.pop_front();
      net_->changed_.notify_all();
    }
    take(frame);
  }
}

}  // namespace transept
