// Follows the frames of one direction of a WebSocket (RFC 6455, 5.2), from their headers alone: how many frames and
// bytes the message that is on its way has. What reads the frames says whether they are allowed; this says how long a
// message takes, since fragments of no bytes can go on for ever. Not thread-safe: owned by one connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace transept {

class WebSocketFrameCounter final {
 public:
  // Takes the next bytes of the connection.
  void feed(std::string_view bytes);

  // Whether a message has begun and its last frame's end has not come.
  bool is_in_message() const { return num_frames_ > 0; }
  // Of that message, so far: frames whose header is whole; control frames in between do not count.
  uint64_t num_frames() const { return num_frames_; }
  uint64_t num_payload_bytes() const { return num_payload_bytes_; }
  // Of the message with the most frames, the one on its way among them.
  uint64_t most_frames() const { return most_frames_; }
  // Messages whose ends have come.
  uint64_t num_messages() const { return num_messages_; }

 private:
  static constexpr size_t kMaxHeaderBytes = 14;

  size_t header_bytes() const;  // of the header that begins in header_: as far as its first two bytes tell
  void begin_payload();
  void end_frame();

  std::array<uint8_t, kMaxHeaderBytes> header_{};
  size_t num_header_bytes_ = 0;
  uint64_t payload_bytes_left_ = 0;
  bool is_in_payload_ = false, is_control_ = false, is_final_ = false;
  uint64_t num_frames_ = 0, most_frames_ = 0, num_payload_bytes_ = 0, num_messages_ = 0;
};

}  // namespace transept
