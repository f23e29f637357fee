// The messages that frames carry, and their bytes: the body of a frame (docs/formats/ec_wire.md has the tables).
// ec_frame.h puts the head before it. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "encoder_cache/ec_types.h"

namespace transept {

enum class EcChannel : uint8_t { kAllocation = 0, kInjection = 1, kMetadata = 2, kCache = 3 };
inline constexpr int kNumEcChannels = 4;
enum class EcKind : uint8_t { kMessage = 0, kQuery = 1, kCancel = 2 };
inline constexpr int kNumEcKinds = 3;

// Sender to receiver, channel 2: what has become of this transfer? The answer is an allocation or an injection.
struct EcQuery {
  EcKey key;
  bool operator==(const EcQuery&) const = default;
};

// This transfer has ended. Channel 2: the sender says so; channel 0: the receiver.
struct EcCancel {
  EcKey key;
  EcChannel channel = EcChannel::kMetadata;
  bool operator==(const EcCancel&) const = default;
};

using EcMessage = std::variant<EcAllocation, EcInjection, EcMeta, EcChunk, EcQuery, EcCancel>;

inline constexpr size_t kMaxEcAddressBytes = 256;            // of printable ASCII, without spaces
inline constexpr size_t kMaxEcChunkBytes = size_t{1} << 20;  // of one EcChunk

EcChannel channel_of(const EcMessage& message);
EcKind kind_of(const EcMessage& message);

// Errors: a field out of its range, as error_param().
Status check_ec_message(const EcMessage& message);

// Appends all fields, of a chunk without its bytes, which follow. REQUIRES: check_ec_message(message).
void append_ec_body(const EcMessage& message, std::vector<std::byte>& out);

// The chunk's bytes in the body of a frame of channel 3, as {begin, size}; {body.size(), 0} if the body is cut before
// their end. Checks nothing else.
std::pair<size_t, size_t> find_ec_chunk_bytes(std::span<const std::byte> body);

// Reads the message of a body; a chunk's bytes are borrowed from it. Bytes behind the known fields are ignored. Errors:
// kInvalidArgument, which names the field and its offset, counted from `begin`, the body's place in its frame.
StatusOr<EcMessage> decode_ec_body(EcChannel channel, EcKind kind, std::span<const std::byte> body, size_t begin);

}  // namespace transept
