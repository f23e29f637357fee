// The growing text of one output: detokenised, searched for stop strings, cut where one stood. A value: copied when a
// beam forks. Not thread-safe.
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
  // Borrows the tokenizer; null: the text stays empty, and stop strings are not looked for.
  OutputText(const Tokenizer* tokenizer, std::span<const int32_t> prompt_token_ids, const SamplingParams& params);

  // Takes the `num_generated`-th token; what it stops, if anything. After a stop nothing may be appended.
  FinishReason append(const SamplingParams& params, int32_t token_id, int32_t num_generated);
  // Nothing will follow: bytes of an incomplete character become U+FFFD.
  void finish();

  // What the user is shown; so far, if it has not ended. Valid until the text grows.
  std::string_view text() const;
  const std::variant<std::monostate, int32_t, std::string>& stop_reason() const { return stop_reason_; }

 private:
  void look_for_stops(const SamplingParams& params, int32_t num_generated, StopDecision& decision);

  std::optional<IncrementalDetokenizer> detokenizer_;
  size_t num_checked_ = 0;             // of the text: searched for stop strings
  std::optional<size_t> text_length_;  // where a stop string cut it
  std::variant<std::monostate, int32_t, std::string> stop_reason_;
};

}  // namespace transept
