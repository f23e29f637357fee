// The growing text of one output: detokenised, searched for stop strings, and cut where a stop string stood. A value:
// copied when a beam forks. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/sampling_params.h"
#include "sampling/stop_checker.h"
#include "text/detokenizer.h"

namespace transept {

class OutputText final {
 public:
  // Borrows the tokenizer; null: the text stays empty, and stop strings are not searched for.
  OutputText(const Tokenizer* tokenizer, std::span<const int32_t> prompt_token_ids, const SamplingParams& params);

  // Takes the `num_generated`-th token. Returns why it ends the text, if it does; nothing may be appended after that.
  FinishReason append(const SamplingParams& params, int32_t token_id, int32_t num_generated);
  // Ends the text: bytes of an incomplete character become U+FFFD.
  void finish();

  // The text that the user sees, so far or whole. Valid until the text grows.
  std::string_view text() const;
  const std::variant<std::monostate, int32_t, std::string>& stop_reason() const { return stop_reason_; }

 private:
  void look_for_stops(const SamplingParams& params, int32_t num_generated, StopDecision& decision);

  std::optional<IncrementalDetokenizer> detokenizer_;
  size_t num_checked_ = 0;             // bytes of the text, searched for stop strings
  std::optional<size_t> text_length_;  // where a stop string cut it
  std::variant<std::monostate, int32_t, std::string> stop_reason_;
};

}  // namespace transept
