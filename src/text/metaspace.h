// How a tokenizer.json writes spaces as a visible character, "▁". A value.
// Source: pre_tokenizers/metaspace.rs of Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "text/json_field.h"

namespace transept {

struct Metaspace {
  // When a text that does not begin with the replacement gets one put before it.
  enum class Scheme : uint8_t { kAlways, kFirst, kNever };

  std::string replacement;  // one character
  Scheme scheme = Scheme::kAlways;
  bool split = true;  // a word begins at each replacement

  // The pre-tokenizer or decoder of that name; older files say add_prefix_space instead of prepend_scheme. Errors name
  // the field: a replacement that is not one character, another scheme, two settings that contradict each other.
  static StatusOr<Metaspace> parse(const JsonField& field);
};

}  // namespace transept
