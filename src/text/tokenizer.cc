#include "text/tokenizer.h"

#include "base/utf8.h"

namespace transept {

std::string Tokenizer::decode(std::span<const int32_t> token_ids, bool skip_special_tokens) const {
  std::vector<int32_t> shown;
  shown.reserve(token_ids.size());
  std::string bytes;
  for (const int32_t id : token_ids) {
    if (id < 0 || id >= vocab_size() || (skip_special_tokens && is_special(id))) continue;
    append_bytes(shown, id, bytes);
    shown.push_back(id);
  }
  append_end(shown, bytes);
  if (is_valid_utf8(bytes)) return bytes;
  return replaces_each_byte() ? sanitize_utf8_bytes(bytes) : sanitize_utf8(bytes);
}

}  // namespace transept
