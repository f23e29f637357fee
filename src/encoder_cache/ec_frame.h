// A message between instances as bytes: a frame, which is a head of 48 bytes and a body. docs/formats/ec_wire.md has
// the tables. Frames come from peers and may be anything: every number is checked before it is used, and a frame is
// either refused or taken whole. With a secret, a frame that a stranger made or changed is refused; a frame that is
// sent again is not, and must do no harm (the handshake's states see to that).
//
// Values and pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "encoder_cache/ec_body.h"
#include "encoder_cache/ec_secret.h"

namespace transept {

inline constexpr uint16_t kEcWireVersion = 1;
inline constexpr size_t kEcHeadBytes = 48;
inline constexpr size_t kMaxEcMessageBody = 65536;                  // bytes, channels 0 to 2
inline constexpr size_t kMaxEcCacheBody = (size_t{1} << 20) + 256;  // bytes, channel 3
inline constexpr size_t kMaxEcFrameBytes = kEcHeadBytes + kMaxEcCacheBody;

struct EcFrame {
  uint64_t incarnation = 0;  // of the sender (InstanceId)
  uint64_t sequence = 0;     // of the sender's frames; names a frame in logs
  EcMessage message;
};

// Why a frame is refused: the label of a counter. All but kChecksum, kCode and kField are about the head, or that bytes
// are missing or left over.
enum class EcFrameFault : uint8_t { kCut, kMagic, kVersion, kChannel, kSize, kChecksum, kCode, kField };
std::string_view name(EcFrameFault fault);  // "cut", "magic", ..

// Of an error of decode_ec_head(), decode_ec_frame() or EcFrameStream.
EcFrameFault ec_frame_fault(const Status& refused);
// The version of a frame that was refused for it (kVersion), which is answered with EcVerdict::kIncompatible.
uint16_t ec_frame_version(const Status& refused);

// What the head says, as far as it is known without the body.
struct EcHead {
  EcChannel channel = EcChannel::kAllocation;
  EcKind kind = EcKind::kMessage;
  uint32_t num_body_bytes = 0;  // within the channel's limit
  uint32_t checksum = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;
  EcMac mac{};
};

// Reads the first kEcHeadBytes of a frame; later ones are not looked at. Errors: those of decode_ec_frame() about a
// head.
StatusOr<EcHead> decode_ec_head(std::span<const std::byte> bytes);

// Reads a whole frame. A chunk's bytes are borrowed from `bytes`. `secret` may be null: then the frame must have no
// code. Errors, which name the offset in the frame and the field: kFailedPrecondition, another version, with both
// numbers; kPermissionDenied, the code is wrong, or only one side has a secret; kInvalidArgument, all else.
StatusOr<EcFrame> decode_ec_frame(std::span<const std::byte> bytes, const EcSecret* secret);

// Replaces `bytes`, whose memory is reused. `secret` may be null. Errors: kInvalidArgument, a field that the peer would
// refuse, as error_param(); `bytes` is not to be used then.
Status encode_ec_frame(const EcFrame& frame, const EcSecret* secret, std::vector<std::byte>& bytes);
// The same without the bytes of the chunk, which are the rest of the frame: a transport that sends in pieces need not
// copy them. REQUIRES: the message is a chunk.
Status encode_ec_chunk_front(const EcFrame& frame, const EcSecret* secret, std::vector<std::byte>& bytes);

}  // namespace transept
