// Reads from an answer of OpenAI's API what a measurement needs: when text came, how many tokens, whether it is whole.
// One reader per answer. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "load/exchange.h"
#include "load/load_requests.h"
#include "net/sse.h"

namespace transept {

class AnswerReader final {
 public:
  explicit AnswerReader(LoadEndpoint endpoint) : endpoint_(endpoint) {}

  // Takes bytes of a stream, which came now. Returns false if reading on is useless.
  bool push(std::string_view bytes, TimePoint now);
  // Ends the stream: fills in what was seen, and in `failure` what is missing.
  void finish(Exchange& exchange);

  // Reads an answer that is not streamed.
  static void read_whole(std::string_view body, Exchange& exchange);

 private:
  void take_event(std::string_view data, TimePoint now);
  void take_completion(const Json& event, TimePoint now);
  void take_transcript(const Json& event, TimePoint now);

  LoadEndpoint endpoint_;
  SseReader events_;
  Exchange seen_;
  std::vector<TimePoint> token_times_;  // of events that stand for tokens, with or without text
  bool is_complete_ = false;
};

}  // namespace transept
