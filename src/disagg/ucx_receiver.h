// The receiving side of a transport over UCX: a listener, and a thread with a worker. The chunks of a connection are
// fetched one after the other, those of several at once; no more is fetched until `take` has returned.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "disagg/ucx_address.h"
#include "disagg/ucx_worker.h"

namespace transept {

class UcxReceiver final {
 public:
  using Take = std::function<void(std::span<const std::byte> frame)>;

  // Listens at the address. Errors: those of UcxAddress; kUnavailable, the address cannot be had.
  static StatusOr<std::unique_ptr<UcxReceiver>> create(const UcxAddress& address);
  ~UcxReceiver();
  UcxReceiver(const UcxReceiver&) = delete;
  UcxReceiver& operator=(const UcxReceiver&) = delete;

  std::string address() const { return address_.text(); }
  // Call once.
  void start(Take take);

  int64_t num_cut() const { return num_cut_; }  // messages that are too large, too many, or of no connection

 private:
  struct Arrived {
    std::vector<std::byte> frame;  // its front, or all of it
    void* rest = nullptr;          // to be fetched; null: it is whole
    size_t num_rest_bytes = 0;
  };
  struct Fetch {
    std::vector<std::byte> frame;
    void* request = nullptr;
  };
  struct Connection {
    bool is_broken = false;
    std::deque<Arrived> arrived;
    std::optional<Fetch> fetch;
  };

  explicit UcxReceiver(std::unique_ptr<UcxWorker> worker) : worker_(std::move(worker)) {}
  Status listen(const UcxAddress& address);
  void run(const Take& take);
  ucs_status_t on_message(std::span<const std::byte> front, void* data, size_t num_bytes,
                          const ucp_am_recv_param_t& param);
  void accept();
  bool move_on(Connection& connection, const Take& take);
  void close(ucp_ep_h endpoint, Connection& connection);

  std::vector<Fetch> stuck_;  // of connections that have not ended in time: UCX may write there until the worker goes
  const std::unique_ptr<UcxWorker> worker_;
  ucp_listener_h listener_ = nullptr;
  UcxAddress address_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int64_t> num_cut_{0};
  // Of the thread.
  std::vector<ucp_conn_request_h> asking_;
  std::map<ucp_ep_h, std::unique_ptr<Connection>> connections_;
  std::thread thread_;
};

}  // namespace transept
