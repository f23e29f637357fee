// A whole proxy: listens, follows the broker's records, holds, forwards, drains, stops.
//
// One thread owns it and calls its functions: not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status.h"
#include "encoder_cache/broker.h"
#include "net/http_server.h"
#include "proxy/decoder_pool.h"
#include "proxy/proxy_service.h"

namespace transept {

class Proxy final {
 public:
  struct Options {
    HttpServer::Options http;
    ProxyService::Options service;
    DecoderPool::Options pool;
    Duration look_for_instances = std::chrono::milliseconds(250);
    // Of what is held (service.hold). self: a name is drawn if there is none; url: the server's, if it is empty.
    HeldInputs::Options held;
  };

  // Listens, and forwards to the decode instances that the broker knows. While the broker is away, to those that it
  // knew. Errors: those of HttpServer::start(). A proxy on all addresses has no URL of its own, and holds nothing
  // unless it is given one.
  static StatusOr<std::unique_ptr<Proxy>> start(const Options& options, std::shared_ptr<Broker> broker);
  ~Proxy() { stop(); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Takes no new requests from here on (503); those in work go on.
  void begin_drain();
  // The same, and waits for those in work. False: some are after `timeout`, or `keep_waiting` (called every 50 ms)
  // returned false.
  bool drain(Duration timeout, const std::function<bool()>& keep_waiting);
  // Closes all connections. Idempotent.
  void stop();

  const HttpServer& http() const { return *server_; }
  const DecoderPool& pool() const { return pool_; }
  const ProxyService& service() const { return *service_; }  // before stop()
  const HeldInputs* held() const { return held_.get(); }     // null: nothing is held

 private:
  Proxy(const Options& options, std::shared_ptr<Broker> broker)
      : options_(options), broker_(std::move(broker)), pool_(options.pool) {}
  void begin_holding();
  void follow_records();

  const Options options_;
  const std::shared_ptr<Broker> broker_;
  DecoderPool pool_;
  std::unique_ptr<HeldInputs> held_;
  std::unique_ptr<ProxyService> service_;
  std::unique_ptr<HttpServer> server_;
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread follower_;
};

}  // namespace transept
