// Frames (encoder_cache/ec_frame.h) of one instance: its incarnation, its sequence of numbers and its secret. Shared by
// a connector and its bulk transport, so that numbers count all frames. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "encoder_cache/ec_frame.h"

namespace transept {

class FrameWriter final {
 public:
  // `secret` may be null.
  FrameWriter(uint64_t incarnation, std::shared_ptr<const EcSecret> secret)
      : incarnation_(incarnation), secret_(std::move(secret)) {}

  // Replaces `bytes` by the message's frame. Errors: as encode_ec_frame().
  Status write(EcMessage message, std::vector<std::byte>& bytes) {
    return encode_ec_frame({incarnation_, ++sequence_, std::move(message)}, secret_.get(), bytes);
  }
  // The same without the chunk's bytes, which follow.
  Status write_front(EcChunk chunk, std::vector<std::byte>& bytes) {
    return encode_ec_chunk_front({incarnation_, ++sequence_, std::move(chunk)}, secret_.get(), bytes);
  }
  const EcSecret* secret() const { return secret_.get(); }

 private:
  const uint64_t incarnation_;
  const std::shared_ptr<const EcSecret> secret_;
  std::atomic<uint64_t> sequence_{0};
};

}  // namespace transept
