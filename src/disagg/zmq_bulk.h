// Chunks over ZeroMQ, point to point: PUSH and PULL sockets over ipc:// or tcp://. A frame is a message of two parts,
// what is before the chunk's bytes, and the chunk's bytes, which are sent from where the rows lie. Each side queues a
// few frames for a connection and no more, so a peer that reads slowly, or not at all, costs that, and its sender sees
// no progress.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "disagg/frame_writer.h"
#include "disagg/send_queue.h"
#include "disagg/zmq_socket.h"

namespace transept {

class ZmqBulk final : public BulkTransport {
 public:
  // Takes chunks at `address`: ipc://PATH, tcp://HOST:PORT, or tcp://HOST:* for a free port. An ipc socket belongs in
  // a folder of mode 700. Errors: as load_zmq() and ZmqSocket::bind(); an address that is longer
  // than kMaxEcAddressBytes.
  static StatusOr<std::unique_ptr<ZmqBulk>> create(const std::string& address, std::shared_ptr<FrameWriter> writer);
  ~ZmqBulk() override;
  ZmqBulk(const ZmqBulk&) = delete;
  ZmqBulk& operator=(const ZmqBulk&) = delete;

  std::string address() const override { return address_; }
  void send(std::string_view to, Sending sending) override;
  void cancel(const EcInput& input) override { queue_.cancel(input); }
  void receive(std::function<void(std::span<const std::byte> frame)> take) override;

  int64_t num_cut() const { return num_cut_; }  // messages of another number of parts, or too large

 private:
  // A connection to a peer, of the sending thread. Closed when it was not used for a while: a peer that has died keeps
  // no rows.
  struct Peer {
    ZmqSocket socket;
    TimePoint used;
  };

  ZmqBulk(std::unique_ptr<ZmqContext> context, ZmqSocket in, std::string address, std::shared_ptr<FrameWriter> writer);
  void run_sender();
  void run_receiver(const std::function<void(std::span<const std::byte> frame)>& take);
  bool send_one(const std::string& to);
  StatusOr<Peer*> peer(const std::string& to);
  void close_idle(const std::vector<std::string>& destinations);
  void wait_for_peers(const std::vector<std::string>& full);

  const std::shared_ptr<FrameWriter> writer_;
  SendQueue queue_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int64_t> num_cut_{0};
  ZmqWaker wake_sender_, wake_receiver_;
  std::unique_ptr<ZmqContext> context_;
  ZmqSocket in_;
  std::string address_;
  std::map<std::string, Peer> peers_;
  std::vector<std::byte> front_;
  std::thread sender_, receiver_;
};

}  // namespace transept
