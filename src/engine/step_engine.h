// What a thread drives: requests go in, results come out, one step at a time. LLMEngine decodes (and encodes, unless
// its model lacks that part); EncoderEngine only encodes, and sends the rows to another instance. Which one runs is
// decided by --role, and nowhere else.
//
// Not thread-safe: owned by one thread, but for what set_on_input_dropped() and start() say.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "core/prompt.h"
#include "core/request_output.h"
#include "core/sampling_params.h"
#include "encoder_cache/ec_types.h"
#include "engine/encoded_input.h"
#include "engine/engine_state.h"

namespace transept {

// Where the rows of a request that only encodes go.
struct RowsConsumer {
  InstanceId instance;
  uint32_t attempt = 0;  // the first one; a ticket that was claimed from another instance begins with a later one
  Duration time_left{};  // of the request, from now
  // Of the transfers: what EcKey::request_id is (empty: the id of the request), and input_id of the first item.
  std::string name = {};
  uint32_t first_input = 0;
};

struct RequestOptions {
  bool stream = false;  // step() gives what is new after each step (not for beams and best_of)
  std::optional<TimePoint> arrival_time = std::nullopt;  // on the engine's clock; unset: now
  // Until when it waits for inputs that are encoded elsewhere; unset: RemoteInputs::Options::max_wait from its arrival.
  std::optional<TimePoint> deadline = std::nullopt;
  int32_t priority = 0;                                 // SequenceGroup::Init::priority
  std::optional<RowsConsumer> consumer = std::nullopt;  // of an encode instance's request
  // Whose request it is, for those who encode for it; null: not known.
  std::shared_ptr<const TraceContext> trace = nullptr;
};

class StepEngine {
 public:
  struct Request {
    std::string id;
    EncodedInput encoded;  // if it has a value, it replaces the encoder side of `inputs`
    EncoderDecoderInputs inputs;
    SamplingParams params;
    RequestOptions options;
  };

  virtual ~StepEngine() = default;

  // Pins the thread that calls step() from here on, and lets events of other instances come in. `wake` is called, on
  // any thread, when one has come to an engine that had none; it must only pass that on. Call once, before the first
  // step.
  virtual void start(std::function<void()> wake) = 0;

  // Errors: those of the engine's add_request().
  virtual Status add(Request request) = 0;
  // Ends a request. Returns what it has so far, with finish_reason abort. Errors: no such request.
  virtual StatusOr<RequestOutput> abort_request(const std::string& request_id) = 0;

  // Runs one step. Appends to `outputs` the requests that finished, and the unfinished pieces of streamed ones. Errors:
  // the executor's; nothing is lost then.
  virtual Status step(std::vector<RequestOutput>& outputs) = 0;
  // When step() has something to do, unless a request or an event comes before. TimePoint::min(): now; max: never.
  virtual TimePoint next_step_time() const = 0;

  virtual size_t num_unfinished_requests() const = 0;
  // Replaces `state`, whose memory is reused.
  virtual void describe(EngineState& state) const = 0;

  // Frees the KV blocks that are kept for later requests, and keeps none of what is in use. Returns their number. An
  // engine without a decoder has none.
  virtual int64_t clear_cache() { return 0; }

  // ---- Handles (encoded_input.h). An engine without a decoder has none.
  virtual StatusOr<EncodedInput> encode(const EncoderDecoderInputs& inputs) {
    (void)inputs;
    return absl::UnimplementedError("an encode instance keeps no handles of inputs");
  }
  // EncodedInput::owner() of this engine's handles.
  virtual const void* input_owner() const { return nullptr; }
  virtual bool shares_identical_inputs() const { return false; }
  // Unpins the inputs of dropped handles, as every step does first. For an engine that is idle.
  virtual void collect_dropped_inputs() {}
  // Sets the callback for dropped handles; null: none. It runs on the thread that drops a handle's last copy. It may
  // outlive the engine, as handles do.
  virtual void set_on_input_dropped(std::shared_ptr<const std::function<void()>> on_drop) { on_drop.reset(); }
};

}  // namespace transept
