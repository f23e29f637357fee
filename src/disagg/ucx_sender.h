// The sending side of a transport over UCX: a thread with a worker, and a connection to each peer for whom there is
// something. A chunk is one active message by rendezvous: the receiver fetches it when it reads, so a peer that reads
// nothing holds kMaxInFlight chunks of its sender's memory, and its sender sees no progress.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "disagg/frame_writer.h"
#include "disagg/send_queue.h"
#include "disagg/ucx_address.h"
#include "disagg/ucx_worker.h"

namespace transept {

class UcxSender final {
 public:
  static constexpr size_t kMaxInFlight = 8;

  UcxSender(std::unique_ptr<UcxWorker> worker, std::shared_ptr<FrameWriter> writer);
  ~UcxSender();
  UcxSender(const UcxSender&) = delete;
  UcxSender& operator=(const UcxSender&) = delete;

  // As BulkTransport::send() and cancel().
  void send(std::string_view to, BulkTransport::Sending sending);
  void cancel(const EcInput& input) { queue_.cancel(input); }

 private:
  struct Flight {  // UCX reads both until the request is over
    void* request;
    std::vector<std::byte> front;
    EcRows rows;
  };
  // A connection. It is made again when it breaks.
  struct Peer {
    ucp_ep_h endpoint = nullptr;
    void* hello = nullptr;   // the first message, which is over when there is a connection
    bool is_ready = false;   // there is
    bool is_broken = false;  // UCX says so
    std::deque<Flight> flights;
    TimePoint used;
    TimePoint again_at = TimePoint::min();  // not to be tried before
  };

  void run();
  bool send_one(const std::string& to);
  StatusOr<bool> is_connected(Peer& peer, const std::string& to);
  Status connect(Peer& peer, const std::string& to);
  StatusOr<bool> hand_over(Peer& peer, const SendQueue::Piece& piece);
  void end_flights(Peer& peer);
  void close(Peer& peer);
  void close_idle(const std::vector<std::string>& destinations);

  std::deque<Flight> stuck_;  // of connections that have not ended in time: the worker goes before them
  const std::unique_ptr<UcxWorker> worker_;
  const std::shared_ptr<FrameWriter> writer_;
  SendQueue queue_;
  std::atomic<bool> is_stopped_{false};
  std::map<std::string, std::unique_ptr<Peer>> peers_;  // where they are does not change: UCX has their addresses
  std::thread thread_;
};

}  // namespace transept
