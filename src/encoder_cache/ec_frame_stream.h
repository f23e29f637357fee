// Frames out of bytes that come in pieces, as a socket gives them. Keeps the bytes of one frame and no more than have
// come; a head that is refused is refused before its body is kept. Owned by a connection; used by one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "encoder_cache/ec_frame.h"

namespace transept {

class EcFrameStream final {
 public:
  // Borrows the secret, which may be null.
  explicit EcFrameStream(const EcSecret* secret) : secret_(secret) {}

  // Takes bytes off the front of `piece`, until a frame has ended or none are left. Returns the frame, whose chunk is
  // valid until the next call, or nothing: more bytes are needed. Errors: those of decode_ec_frame(). After one about
  // the head the place of the next frame is unknown: is_broken(), and later calls return the same error. After any
  // other the next call reads the next frame.
  StatusOr<std::optional<EcFrame>> take(std::span<const std::byte>& piece);

  bool is_broken() const { return is_broken_; }
  // Of a frame that has not ended: not 0 where a connection ends is a frame that was cut.
  size_t num_kept() const { return is_whole() ? 0 : kept_.size(); }
  size_t capacity() const { return kept_.capacity(); }  // bytes of memory; at most kMaxEcFrameBytes

 private:
  bool is_whole() const { return is_head_known_ && kept_.size() == num_frame_bytes_; }
  // Keeps bytes until there are `size` of them. Returns whether there are.
  bool fill(size_t size, std::span<const std::byte>& piece);

  const EcSecret* secret_;
  std::vector<std::byte> kept_;
  bool is_head_known_ = false;
  size_t num_frame_bytes_ = 0;  // once the head is known
  bool is_broken_ = false;
};

}  // namespace transept
