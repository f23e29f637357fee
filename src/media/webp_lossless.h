// What libwebp takes for the prefix codes of a lossless picture. Their number stands behind the head, in a picture of
// its own: a file of 200 kB can ask for 1.3 GB of tables, whatever its size in pixels. So this reads the bits up to
// there, with no memory but a few codes'. Source: RFC 9649, 3.4 to 3.7; sizes: libwebp 1.2.4, vp8l_dec.c,
// ReadHuffmanCodes. Pure function: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace transept {

// A true bound, for any bytes for which libwebp takes memory. `bits`: of a picture of width x height, from its
// transforms on: behind the 5 bytes of VP8L's header, or the byte of ALPH's. Errors: kInvalidArgument for bits that end
// or contradict themselves before the last code's number is known.
StatusOr<size_t> lossless_code_bytes(std::span<const uint8_t> bits, int32_t width, int32_t height);

}  // namespace transept
