// What a thread drives: requests go in, results come out, one step at a time. LLMEngine decodes (and encodes, unless
// its model lacks that part); EncoderEngine only encodes, and sends the rows to another instance. Which one runs is
// decided by --role, and nowhere else.
//
// Not thread-safe: owned by one thread, but for what start() says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "core/request_output.h"

namespace transept {

class StepEngine {
 public:
  virtual ~StepEngine() = default;

  // Pins the thread that calls step() from here on, and lets events of other instances come in. `wake` is called, on
  // any thread, when one has come to an engine that had none; it must only pass that on. Call once, before the first
  // step.
  virtual void start(std::function<void()> wake) = 0;

  // Runs one step. Appends to `outputs` the requests that finished, and pieces of streamed ones. Errors: the
  // executor's; nothing is lost then.
  virtual Status step(std::vector<RequestOutput>& outputs) = 0;

  // When step() has something to do, unless a request or an event comes before. TimePoint::min(): now; max: never.
  virtual TimePoint next_step_time() const = 0;

  // Ends a request. Returns what it has so far. Errors: no such request.
  virtual StatusOr<RequestOutput> abort_request(const std::string& request_id) = 0;

  virtual size_t num_unfinished_requests() const = 0;
};

}  // namespace transept
