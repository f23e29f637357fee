// The settings of Metaspace in a tokenizer.json, which writes spaces as a visible character, "▁". A value. Source:
// pre_tokenizers/metaspace.rs of Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "text/json_field.h"

namespace transept {

struct Metaspace {
  // When the replacement is put before a text that does not begin with it. kFirst: only at the front of the whole text.
  enum class Scheme : uint8_t { kAlways, kFirst, kNever };

  std::string replacement;  // one character
  Scheme scheme = Scheme::kAlways;
  bool split = true;  // a word begins at each replacement

  // Parses the pre-tokenizer or decoder of this type. Older files have add_prefix_space instead of prepend_scheme.
  // Errors name the field: a replacement that is not one character, an unknown scheme, two settings that contradict
  // each other.
  static StatusOr<Metaspace> parse(const JsonField& field);
};

}  // namespace transept
