#include "encoder_cache/ec_frame_stream.h"

#include <algorithm>

namespace transept {

bool EcFrameStream::fill(size_t size, std::span<const std::byte>& piece) {
  const size_t num_taken = std::min(size - kept_.size(), piece.size());
  const size_t needed = kept_.size() + num_taken;
  // Memory follows what came, not what a head promises.
  if (needed > kept_.capacity()) kept_.reserve(std::min(size, std::max(needed, 2 * kept_.capacity())));
  kept_.insert(kept_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(num_taken));
  piece = piece.subspan(num_taken);
  return kept_.size() == size;
}

StatusOr<std::optional<EcFrame>> EcFrameStream::take(std::span<const std::byte>& piece) {
  if (is_whole()) {
    kept_.clear();
    is_head_known_ = false;
  }
  if (!is_head_known_) {
    if (!fill(kEcHeadBytes, piece)) return std::nullopt;
    auto head = decode_ec_head(kept_);
    if (!head.ok()) {
      is_broken_ = true;  // the head stays, so later calls refuse it again
      return head.status();
    }
    num_frame_bytes_ = kEcHeadBytes + head->num_body_bytes;
    is_head_known_ = true;
  }
  if (!fill(num_frame_bytes_, piece)) return std::nullopt;
  auto frame = decode_ec_frame(kept_, secret_);
  if (!frame.ok()) return frame.status();
  return std::optional<EcFrame>(std::move(frame).value());
}

}  // namespace transept
