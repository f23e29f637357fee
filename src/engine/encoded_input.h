// A handle of an encoder input: a list of items. While a handle lives, the requests over it (LLMEngine::add_request)
// share one encode of each item and its tables, even those that come after the first has ended. For language detection,
// temperature fallback, word alignment and best-of: several decoder sequences, one encoder input. A handle says nothing
// of the decoder's prompt: where an item's rows are spliced, and which tokens see which rows, each request says itself.
//
// The pin is soft: the handle keeps the input itself, and the engine keeps its tables (cross KV, rows that are spliced)
// until it needs the room. A request over a handle whose tables were evicted encodes again. When the last copy is
// dropped, they are freed as soon as no request reads them, unless the engine caches inputs.
//
// Reference-counted, copyable and movable. Any thread may make and drop copies, and copies may outlive the engine; two
// threads must not use the same object at once. LLMEngine makes and uses handles on its own thread, AsyncEngine on any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/content_digest.h"
#include "core/encoder_item.h"

namespace transept {

class EncodedInput final {
 public:
  EncodedInput() = default;  // holds nothing

  bool has_value() const { return pin_ != nullptr; }
  // REQUIRES: has_value().
  const std::vector<EncoderItem>& items() const;   // as they were given
  const std::optional<std::string>& text() const;  // unset: the input was given as ids, or is media
  // Identifies the engine that made the handle (LLMEngine::input_owner).
  const void* owner() const;

 private:
  friend class SharedInputs;
  struct DroppedPins;
  struct Pin;

  explicit EncodedInput(std::shared_ptr<const Pin> pin) : pin_(std::move(pin)) {}

  std::shared_ptr<const Pin> pin_;
};

}  // namespace transept
