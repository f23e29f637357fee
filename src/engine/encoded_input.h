// An encoder input that stays usable: while a handle of it lives, requests over it (LLMEngine::add_request) share one
// encode and one cross table, those that come after the first has ended too. For language detection, temperature
// fallback, word alignment, best-of: several decoder sequences, one encoder input.
//
// The pin is soft: the handle keeps the input itself, and the engine keeps its cross KV until its blocks are wanted.
// Using a handle whose cross KV was given up encodes again. When the last copy is dropped, the cross KV goes with it
// (once no request reads it).
//
// Counted, copied and moved at will. Copies may be made and dropped on any thread, and may outlive the engine; one
// object is not to be used by two threads at once. LLMEngine makes and uses them on its own thread, AsyncEngine on any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/content_digest.h"
#include "core/encoder_features.h"

namespace transept {

class EncodedInput final {
 public:
  EncodedInput() = default;  // holds nothing

  bool has_value() const { return pin_ != nullptr; }
  // REQUIRES: has_value().
  const EncoderContent& content() const;
  const std::optional<std::string>& text() const;  // null: the input was given as ids, or is media
  // Which engine it is of (LLMEngine::input_owner).
  const void* owner() const;

 private:
  friend class SharedInputs;
  struct DroppedPins;
  struct Pin;

  explicit EncodedInput(std::shared_ptr<const Pin> pin) : pin_(std::move(pin)) {}

  std::shared_ptr<const Pin> pin_;
};

}  // namespace transept
