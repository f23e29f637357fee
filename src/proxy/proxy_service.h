// The proxy of a fleet: forwards each request to a decode instance, and passes the answer on as it comes, bytes
// unchanged. A request is tried again at another instance before the first byte of its answer, and never after. A POST
// whose X-Request-Id is that of one in work is refused (409).
//
// A request with prompts of its own may be held first (Options::hold): its inputs are encoded for the decode instance
// that it goes to, which finds their rows then (held_inputs.h). Whatever comes in between, the request is forwarded as
// it came, and the decode instance asks for its encodes itself. So holding changes no answer.
//
// A WebSocket's handshake is forwarded as a request is; once an instance has opened it, its bytes go both ways as they
// are, without a thread, until one side ends (net/tunnel.h). It counts as a request of that instance, and drain() waits
// for it.
//
// /metrics are the proxy's own. /debug/state is forwarded to one instance for clients of this machine; what instances
// ask of each other (/v1/inputs, /v1/encode) is not forwarded, and answered by the proxy itself while it holds. Who may
// do what (keys, hosts, origins) is for decode instances to say, to which Host and Authorization go as they came.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "net/access_log.h"
#include "net/http_client.h"
#include "net/http_service.h"
#include "proxy/decoder_pool.h"
#include "proxy/held_inputs.h"
#include "proxy/held_request.h"
#include "proxy/idle_clients.h"
#include "proxy/proxy_metrics.h"

namespace transept {

class ProxyService final : public HttpService {
 public:
  // Which requests are held.
  enum class Hold : uint8_t {
    kNever,
    kSeveral,  // those of several prompts
    kAlways,   // all with prompts of their own
  };
  struct Options {
    Hold hold = Hold::kNever;
    size_t max_held_prompts = 64;               // of a request; one with more is not held
    size_t max_body_bytes = size_t{27} << 20;   // of one request: an audio file of 25 MiB, and a form's other fields
    size_t max_bodies_bytes = size_t{1} << 30;  // of all
    int32_t max_requests = 512;                 // in work, each on a thread; further ones are 429
    int32_t max_websockets = 1024;              // open; further ones are 503
    std::chrono::milliseconds max_silence{120'000};  // of the instance of a WebSocket, which pings every 20 s
    std::chrono::milliseconds max_half_open{5000};   // from the end of its client to that of its instance
    int32_t max_tries = 3;                           // of one request
    std::chrono::milliseconds connect_timeout{2000};
    std::chrono::milliseconds timeout{24 * 3600 * 1000};  // of an exchange; instances have deadlines of their own
    size_t max_unsent_bytes = size_t{1} << 20;  // of one answer: a client that reads slowly slows its instance down
    AccessLog::Options log = {.is_on = false};
  };

  // Borrows the pool.
  ProxyService(const Options& options, DecoderPool& pool)
      : options_(options),
        log_(options.log),
        pool_(pool),
        clients_(
            {.connect_timeout = options.connect_timeout, .timeout = options.timeout, .max_body_bytes = SIZE_MAX / 2}) {}
  // Waits for the requests in work; take the server down first, so that they end.
  ~ProxyService() override;

  // Holds requests from here on. Borrowed; outlives the service.
  void set_held(HeldInputs* held) { held_ = held; }

  // No request is forwarded from here on (503).
  void drain() { is_draining_ = true; }

  // Closes idle connections to instances that have left the pool, and those that instances have closed. Call now and
  // then.
  void close_idle() { clients_.prune(pool_.urls()); }

  ProxyCounts counts() const;

  Decision on_head(const HttpRequest& request) override;
  std::optional<HttpResponse> on_body_bytes(const std::shared_ptr<void>& ticket, size_t num_bytes) override;
  void on_request(HttpRequest request, std::shared_ptr<void> ticket, std::shared_ptr<Responder> responder) override;
  HttpResponse on_error(int status, const std::string& reason, const std::string& request_id) override;
  void on_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) override;

 private:
  // The bytes that a request holds.
  struct Body {
    explicit Body(std::atomic<size_t>& all) : sum(all) {}
    ~Body() { sum -= size; }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;
    void resize(size_t num_bytes) {
      sum += num_bytes - size;
      size = num_bytes;
    }
    std::atomic<size_t>& sum;
    size_t size = 0;
  };
  struct Work {
    HttpRequest request;
    std::shared_ptr<void> ticket;
    std::shared_ptr<Responder> responder;
  };
  struct Passing;  // one answer on its way
  class OpenWebSocket;

  std::optional<HttpResponse> refuse_now(const HttpRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Responder> name(const std::string& id, std::shared_ptr<Responder> responder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void add_thread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run();
  void forward(const Work& work);
  DecoderPool::Outcome try_one(const DecoderPool::Choice& choice, const HttpRequest& request, std::string_view body,
                               const HttpHeaders& more, Passing& passing);
  DecoderPool::Outcome pass(const DecoderPool::Choice& choice, const HttpRequest& request,
                            const InjectedInputs& injected, Passing& passing);
  // proxy_hold.cc
  std::vector<HeldPrompt> prompts_to_hold(const Work& work);
  Status hold(const DecoderPool::Choice& choice, const Work& work, std::vector<HeldPrompt>& prompts,
              InjectedInputs& injected);
  Status hold_in_room(const DecoderPool::Choice& choice, const Work& work, const std::vector<HeldPrompt>& prompts,
                      InjectedInputs& injected);
  void doubt(const std::string& name);
  bool is_welcome(const DecoderPool::Choice& choice, const HttpRequest& request);

  const Options options_;
  const AccessLog log_;
  DecoderPool& pool_;
  IdleClients clients_;
  std::atomic<bool> is_draining_{false};
  std::atomic<size_t> num_body_bytes_{0};
  std::atomic<int64_t> num_forwarded_{0}, num_again_{0}, num_failed_{0};
  std::atomic<int64_t> num_answered_{0}, num_given_up_{0}, num_held_{0}, num_let_go_{0};
  std::atomic<int64_t> num_opened_websockets_{0};
  std::atomic<int32_t> num_websockets_{0};  // open, or about to be
  std::atomic<HeldInputs*> held_{nullptr};
  std::atomic<TimePoint> hold_again_{TimePoint::min()};  // it is of no use before
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Work> waiting_ ABSL_GUARDED_BY(mutex_);
  int32_t num_idle_ ABSL_GUARDED_BY(mutex_) = 0;         // threads that wait for work
  int32_t num_in_work_ ABSL_GUARDED_BY(mutex_) = 0;      // requests, those that wait included
  std::set<std::string> named_ ABSL_GUARDED_BY(mutex_);  // ids of POSTs in work that came with one
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, TimePoint> welcome_ ABSL_GUARDED_BY(mutex_);  // who was let in, and until when that is believed
};

}  // namespace transept
