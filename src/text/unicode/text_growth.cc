#include "text/unicode/text_growth.h"

namespace transept {

bool grew_too_much(size_t original_size, size_t size) {
  constexpr size_t kFactor = 32;  // U+FDFA grows most, 11 times
  constexpr size_t kAlwaysAllowed = size_t{64} << 10;
  constexpr size_t kNeverAllowed = size_t{256} << 20;
  return size > kNeverAllowed || (size > kAlwaysAllowed && size / kFactor > original_size);
}

Status grew_too_much_error() {
  return resource_exhausted(
      "the tokenizer's normalisation makes this text more than 32 times as long, or longer than 256 MiB");
}

}  // namespace transept
