// The inputs of requests that a proxy holds: a ticket for each, in the broker's shared queue, until an encode instance
// says that the rows are at the decode instance that the request goes to. The encode instances fetch what is to be
// encoded from here (GET /v1/inputs/..), and say what has come of it (POST).
//
// Each time has a name of its own, NAME.INCARNATION.NUMBER, as with what a decode instance asks for (decision 37).
// Thread-safe. Callers' threads wait in hold().
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/instance_calls.h"
#include "disagg/ticket_offers.h"
#include "encoder_cache/ec_secret.h"
#include "net/http.h"
#include "proxy/held_request.h"

namespace transept {

class HeldInputs final {
 public:
  struct Options {
    InstanceId self;                         // no other's
    std::string url;                         // of the proxy, as encode instances reach it
    std::shared_ptr<const EcSecret> secret;  // null: none
    TicketOffers::Options offers{.wait_for_encoders = std::chrono::seconds(1)};
    Duration max_wait = std::chrono::seconds(60);   // of a request
    Duration max_stall = std::chrono::seconds(5);   // since rows of one of its inputs came, until others follow
    Duration look = std::chrono::milliseconds(50);  // between two calls of `check`
  };

  HeldInputs(const Options& options, std::shared_ptr<Broker> broker);

  struct Consumer {
    InstanceId id;
    ModelFingerprint model;
    TraceContext trace = {};  // of the client's request, for the logs of encode instances
  };
  struct Result {
    Status status;            // ok: all rows are at the consumer
    InjectedInputs injected;  // those that are, in order of the prompts
  };
  // Returns when the rows of all prompts are at the consumer. Errors: what `check` says, which is called while it
  // waits; of the first input that fails, why; kDeadlineExceeded, max_wait or max_stall is over; kPermissionDenied, an
  // encode instance has another secret. What is missing is withdrawn then.
  Result hold(const std::vector<HeldPrompt>& prompts, const Consumer& consumer, const std::function<Status()>& check);

  // Answers GET and POST of kInputsPath. 401: of no instance, and what is held for it fails; 404: the input is not
  // asked for (any longer).
  HttpResponse answer(const HttpRequest& request);

  // The headers by which a decode instance knows that the request is a proxy's. `target`: path and query.
  HttpHeaders proof(std::string_view method, std::string_view target, std::string_view body) const;

  size_t num_held() const;  // inputs

 private:
  struct Holding {
    CondVar changed;
    InjectedInputs injected;
    size_t num_missing = 0;
    TimePoint stalled_at = TimePoint::max();
    Status failure;
  };
  struct Held {
    std::shared_ptr<const std::string> prompt;
    std::shared_ptr<Holding> holding;  // guarded by mutex_
    size_t index = 0;
  };

  std::vector<EcInput> offer(const std::vector<HeldPrompt>& prompts, const Consumer& consumer,
                             const std::shared_ptr<Holding>& holding);
  Status wait(Holding& holding, const std::function<Status()>& check);
  bool report(const EcInput& input, TicketReport told);
  std::shared_ptr<const std::string> find(const EcInput& input) const;

  const Options options_;
  std::atomic<uint64_t> num_names_{0};
  mutable Mutex mutex_;
  std::map<EcInput, Held> held_ ABSL_GUARDED_BY(mutex_);
  TicketOffers offers_;  // the last: its thread calls report()
};

}  // namespace transept
