// The broker of one machine (--epd, --broker local:): a ROUTER socket over ipc://, in one process, which is the
// launcher. It keeps everything in memory; one that starts again is empty, and hears of instances when they renew their
// records and subscriptions.
//
// Every process that can open the socket can do everything: it belongs in a folder of mode 700. Owned by the launcher.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "disagg/local_codec.h"
#include "disagg/ticket_queue.h"
#include "disagg/zmq_socket.h"

namespace transept {

class LocalServer final {
 public:
  struct Options {
    InstanceBook::Options instances;
    size_t max_tickets = 4096;
    size_t max_takers = 4096;  // that wait for tickets
  };

  // `path`: of its socket, in the file system. `id`: drawn at random, so that clients see another start. Errors: as
  // load_zmq(); kInvalidArgument, a path that is too long; kUnavailable, it cannot be bound.
  static StatusOr<std::unique_ptr<LocalServer>> start(const std::string& path, uint64_t id, const Options& options);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  int64_t num_refused() const { return num_refused_; }  // messages that were none

 private:
  using Client = std::string;  // its routing id
  struct Taker {               // who waits for a ticket
    Client client;
    uint64_t request = 0;
    InstanceId self;
    ModelFingerprint model;
    TimePoint end;
  };
  struct Subscription {
    Client client;
    InstanceId self;
    EcChannel channel = EcChannel::kAllocation;
    TimePoint until;
  };

  LocalServer(std::unique_ptr<ZmqContext> context, ZmqSocket socket, uint64_t id, const Options& options);
  void run();
  void receive(TimePoint now);
  void handle(const Client& client, const LocalRequest& request, TimePoint now);
  LocalReply answer(const Client& client, const LocalRequest& request, TimePoint now);
  Status subscribe(const Client& client, const LocalRequest& request, TimePoint now);
  void serve_takers(TimePoint now);
  void deliver(TimePoint now);
  bool send(const Client& client, LocalReply reply);
  int64_t milliseconds_to_wait(TimePoint now) const;

  const uint64_t id_;
  const Options options_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int64_t> num_refused_{0};
  ZmqWaker waker_;
  std::unique_ptr<ZmqContext> context_;
  ZmqSocket socket_;
  InstanceBook instances_;
  TicketQueue tickets_;
  std::list<Taker> takers_;
  std::map<std::tuple<std::string, EcChannel>, Subscription> subscriptions_;  // by the instance's name
  std::vector<std::byte> bytes_;
  std::thread thread_;
};

}  // namespace transept
