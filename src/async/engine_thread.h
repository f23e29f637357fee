// One engine and the thread that runs it: one replica of an AsyncEngine. Other threads communicate with it only through
// its mailbox.
//
// Owned by the AsyncEngine. One thread constructs it and calls ask_to_stop() and stop().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "async/engine_mailbox.h"
#include "base/clock.h"
#include "base/status.h"
#include "engine/step_engine.h"

namespace transept {

class EngineThread final {
 public:
  // Starts the thread. Borrows the clock, and what the engine borrows (the tokenizer). `max_queued_requests`: see
  // AsyncEngine::Options.
  EngineThread(std::unique_ptr<StepEngine> engine, int32_t max_queued_requests, const Clock& clock);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  const std::shared_ptr<EngineMailbox>& mailbox() const { return mailbox_; }
  // Whether the handle is of this engine. Any thread.
  bool owns(const EncodedInput& handle) const { return handle.has_value() && handle.owner() == input_owner_; }

  // Ends the thread after its current step.
  void ask_to_stop() { mailbox_->stop(); }
  // Waits for the thread; the requests that are left end with kUnavailable. Returns the engine. Call once.
  std::unique_ptr<StepEngine> stop();

 private:
  struct InFlight {
    std::shared_ptr<RequestChannel> channel;
    TimePoint arrival{};
    std::optional<TimePoint> deadline;
  };
  struct Ending {
    std::shared_ptr<RequestChannel> channel;
    StatusOr<RequestOutput> result;
  };

  void run();
  std::optional<Duration> time_to_sleep() const;
  void admit(EngineMailbox::NewRequest& request);
  void abort_in_flight(const std::shared_ptr<RequestChannel>& channel);
  void expire();
  void step();
  void fail(const Status& error);
  void end_all(const Status& error, int64_t& count);
  void end(const std::string& request_id, StatusOr<RequestOutput> result);
  void deliver_endings();
  void publish();

  std::shared_ptr<EngineMailbox> mailbox_;
  const Clock& clock_;
  const void* const input_owner_;
  // Owned by the engine thread until it has ended:
  std::unique_ptr<StepEngine> engine_;
  absl::flat_hash_map<std::string, InFlight> in_flight_;
  int64_t num_deadlines_ = 0;  // of requests in flight
  std::vector<RequestOutput> outputs_;
  std::vector<Ending> endings_;
  std::vector<std::string> ended_ids_;
  EngineSnapshot snapshot_;  // the next one to be published
  EngineSnapshot::Counts counts_;
  std::thread thread_;
};

}  // namespace transept
