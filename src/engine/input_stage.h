// A request's way to being a group of the scheduler: what its items share with other requests, and the pass of its own
// in which the model chooses an open token of its prompt (Whisper's language). Requests whose items come from elsewhere
// have waited for them before (remote_inputs.h).
//
// Owned by the engine. Not thread-safe (engine thread).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/status.h"
#include "core/prompt.h"
#include "core/request_output.h"
#include "core/sampling_params.h"
#include "engine/encoded_input.h"
#include "engine/shared_inputs.h"
#include "engine/step_engine.h"
#include "rank/executor.h"
#include "scheduling/scheduler.h"

namespace transept {

class InputStage final {
 public:
  // request.encoded: the handle that the items come from; empty: they are the request's own.
  using Request = StepEngine::Request;

  // Borrows the scheduler. `info` is copied.
  InputStage(Scheduler& scheduler, bool share_identical, const ExecutorInfo& info);

  // Checks what no parser of requests has: callers inside the program are told all the same. Errors: a probe outside
  // the prompt; cross-attention of a model without alignment heads, or of more than 256 MiB; items, or a layout of the
  // decoder's rows, that the model cannot have, by name.
  Status check(const EncoderDecoderInputs& inputs, const SamplingParams& params) const;

  // Keeps a request with an open token, and replaces it by the pass that chooses this token: the prompt before it, and
  // one token of the choices. No-op for other requests. Errors: a request that could never fit; the request is not kept
  // then.
  Status open(Request& request);
  // Takes the outputs from index `first` on that only say what an open token is out of the list, and calls add(request,
  // output of its pass) for the requests that they were chosen for. An error of `add` is put into the output, which
  // stays.
  void close(size_t first, std::vector<RequestOutput>& outputs,
             const std::function<Status(Request request, const RequestOutput& opened)>& add);
  // Whether the open token of a request is being chosen.
  bool is_open(const std::string& request_id) const { return open_.contains(request_id); }
  // Forgets a request whose pass was aborted; nullopt: none is open. Returns whether it only scores.
  std::optional<bool> abort(const std::string& request_id);

  // Makes the items of a handle those of a request over it; `inputs` says where in its prompt they are spliced. Errors:
  // an empty handle, or one of another engine; spliced items, of which the request has another number.
  Status take_held(const EncodedInput& encoded, EncoderDecoderInputs& inputs) const;

  // Returns a new handle of the encoder side of `inputs`. Errors: no encoder input; an input that could never fit;
  // items that the model cannot have.
  StatusOr<EncodedInput> hold(const EncoderDecoderInputs& inputs);

  SharedInputs& shared() { return shared_; }
  const SharedInputs& shared() const { return shared_; }

 private:
  Status check_items(std::span<const EncoderItem> items) const;
  Status check_splices(const EncoderDecoderInputs& inputs) const;
  Status check_layout(const EncoderDecoderInputs& inputs) const;
  Status check_scored(std::span<const int32_t> ids) const;
  Status check_capture(const EncoderDecoderInputs& inputs) const;

  Scheduler& scheduler_;
  SharedInputs shared_;
  ExecutorInfo info_;
  // Requests whose open token is being chosen, by id. The handle keeps what was encoded for them.
  absl::flat_hash_map<std::string, Request> open_;
};

// A request that can never fit could run with less of either, or with more memory.
Status with_advice(const Status& refusal, const SamplingParams& params);

}  // namespace transept
