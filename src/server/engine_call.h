// Runs the engine requests of one HTTP request: tokenises its prompts, adds them to the engine, and passes the outputs
// to the hooks of a route. If the client goes, the engine aborts them within one step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "disagg/injected_input.h"
#include "prompts/prepare_request.h"
#include "server/server_context.h"

namespace transept {

// The hooks of a route. They run on threads of context.answers, one at a time, and not after on_end. The run of the
// requests owns the EngineCall until on_end, or until the client has gone.
class EngineCall {
 public:
  virtual ~EngineCall() = default;
  // Receives the processed prompt `index` before its outputs, on the thread of start_engine_call.
  virtual void on_prompt(size_t /*index*/, const EncoderDecoderInputs& /*inputs*/) {}
  // Receives the new part of prompt `index` (if streamed), or its finished answer.
  virtual void on_output(size_t index, RequestOutput output) = 0;
  // Receives ok when all have finished, or the first error; the others are then aborted. Not called if the client goes
  // while the engine has the requests.
  virtual void on_end(const Status& status) = 0;
};

struct EngineCallOptions {
  // on_output receives pieces. Refuses (kInvalidArgument) beams that the request asks for, and best_of above n.
  bool stream = false;
  bool score_only = false;
  // Where the rows of the prompts are (encoded_inputs.h): one for each, or empty.
  InjectedInputs injected = {};
};

// Prepares each of `prompts` (the sampling fields of `parsed` hold for all), charges them to call->charge, and adds
// them to the engine. `route` receives the outputs. call->more_places takes the places of the prompts after the first;
// all places are released once the engine counts the requests. Errors before that go to on_end, on this thread: those
// of prepare_request and of Admission, kDeadlineExceeded, kCancelled (the client has gone).
void start_engine_call(const ServerContext& context, const ApiCallPtr& call, const ParsedRequest& parsed,
                       std::vector<EncoderDecoderPrompt> prompts, const EngineCallOptions& options,
                       std::shared_ptr<EngineCall> route);

// Where the media of a request may lie.
MediaAccess media_access(const ServerContext& context);
// An error of a prompt's field, with the prompt's place in a list of `count`: "prompt[1]".
Status at_prompt(const Status& status, size_t index, size_t count);

// Adds requests that are ready to the engine; the rest is as above. Errors of the engine go to on_end.
void run_requests(const ServerContext& context, const ApiCallPtr& call, std::vector<RequestSpec> specs,
                  std::shared_ptr<EngineCall> route);

// Counts the tokens of an answer.
struct Usage {
  int64_t encoder_tokens = 0, decoder_tokens = 0, completion_tokens = 0;
  int64_t image_tokens = 0;  // the encoder's positions of images; those that are spliced are tokens of a prompt, too
  int64_t cached_tokens =
      0;  // of both prompts, so no more than these: of RequestMetrics::num_cached_tokens, without media
  int64_t cached_media_tokens = 0;                                         // RequestMetrics::num_cached_media
  int64_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;  // guesses that were run
  double audio_seconds = 0;

  void add(const RequestOutput& finished);          // a whole answer, not pieces
  void add_request(const RequestOutput& finished);  // the same without tokens of outputs, of which a last piece has few
  // prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details; completion_tokens_details if guesses were
  // run
  Json to_json() const;
};

}  // namespace transept
