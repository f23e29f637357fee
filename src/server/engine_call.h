// The engine requests of one HTTP request, from the engine's answers to a route's hooks. A client that goes lets go of
// them within one step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/prepare_request.h"
#include "server/server_context.h"

namespace transept {

// Hooks run on threads of context.answers, one at a time; none after on_end.
class EngineCall {
 public:
  virtual ~EngineCall() = default;
  // What prompt `index` became; before anything else of it, on the thread of start_engine_call.
  virtual void on_prompt(size_t /*index*/, const EncoderDecoderInputs& /*inputs*/) {}
  // What is new of prompt `index` (streamed), or its finished answer.
  virtual void on_output(size_t index, RequestOutput output) = 0;
  // All have ended: ok; or the first error, upon which the others are given up. Not called if the client went.
  virtual void on_end(const Status& status) = 0;
};

struct EngineCallOptions {
  bool stream = false;
  bool score_only = false;
};

// Tokenises and settles each prompt of `parsed` (its sampling fields hold for all), charges them, hands them to the
// engine and gives `route` what comes back. An error before that is sent by on_end, on this thread. `call.places` are
// enlarged to as many as there are prompts, and given up once the engine counts them.
void start_engine_call(const ServerContext& context, const ApiCallPtr& call, const ParsedRequest& parsed,
                       std::vector<EncoderDecoderPrompt> prompts, const EngineCallOptions& options,
                       std::shared_ptr<EngineCall> route);

// prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details.
struct Usage {
  int64_t encoder_tokens = 0, decoder_tokens = 0, completion_tokens = 0;
  double audio_seconds = 0;

  void add(const RequestOutput& finished);
  Json to_json() const;
};

}  // namespace transept
