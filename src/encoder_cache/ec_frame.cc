#include "encoder_cache/ec_frame.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "absl/strings/cord.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/little_endian.h"

namespace transept {
namespace {

constexpr std::array<std::byte, 4> kMagic = {std::byte{'T'}, std::byte{'E'}, std::byte{'P'}, std::byte{'D'}};
constexpr char kFaultPayload[] = "transept/ec_frame_fault";

// Offsets of the head's fields. The code covers what is before it.
constexpr size_t kVersionAt = 4, kChannelAt = 6, kKindAt = 7, kSizeAt = 8, kChecksumAt = 12, kIncarnationAt = 16;
constexpr size_t kSequenceAt = 24, kMacAt = 32;
static_assert(kMacAt + sizeof(EcMac) == kEcHeadBytes);

// With the fault, and the version that was read, as three bytes.
Status refusal(EcFrameFault fault, absl::StatusCode code, std::string_view why, uint16_t version = kEcWireVersion) {
  Status status(code, str_cat("frame: ", why));
  const std::string payload = {static_cast<char>(fault), static_cast<char>(version & 0xFF),
                               static_cast<char>(version >> 8)};
  status.SetPayload(kFaultPayload, absl::Cord(payload));
  return status;
}

Status invalid(EcFrameFault fault, size_t at, std::string_view why) {
  return refusal(fault, absl::StatusCode::kInvalidArgument, str_cat("byte ", at, ": ", why));
}

uint8_t payload_byte(const Status& refused, size_t at) {
  const auto payload = refused.GetPayload(kFaultPayload);
  CHECK(payload.has_value() && payload->size() == 3, "a status that is no refusal of a frame");
  return static_cast<uint8_t>(std::string(*payload)[at]);
}

// Queries go to the receiver; both sides cancel.
bool is_known(EcChannel channel, EcKind kind) {
  switch (kind) {
    case EcKind::kMessage: return true;
    case EcKind::kQuery: return channel == EcChannel::kMetadata;
    case EcKind::kCancel: return channel == EcChannel::kMetadata || channel == EcChannel::kAllocation;
  }
  return false;
}

size_t max_body(EcChannel channel) { return channel == EcChannel::kCache ? kMaxEcCacheBody : kMaxEcMessageBody; }

// What the code covers beside the head: the body without the bytes of a chunk, which may be large, and which a
// reservation's number already ties to an authentic allocation.
struct Covered {
  std::span<const std::byte> front, back;
};

Covered covered(EcChannel channel, std::span<const std::byte> body) {
  if (channel != EcChannel::kCache) return {body, {}};
  const auto [begin, size] = find_ec_chunk_bytes(body);
  return {body.first(begin), body.subspan(begin + size)};
}

Status check_mac(const EcHead& head, std::span<const std::byte> bytes, const EcSecret* secret) {
  const auto denied = [](std::string_view why) {
    return refusal(EcFrameFault::kCode, absl::StatusCode::kPermissionDenied, str_cat("byte ", kMacAt, ": code: ", why));
  };
  const bool has_none = head.mac == EcMac{};
  if (secret == nullptr) return has_none ? ok_status() : denied("the sender has a secret, and this instance has none");
  const Covered body = covered(head.channel, bytes.subspan(kEcHeadBytes));
  if (secret->verifies(head.mac, {bytes.first(kMacAt), body.front, body.back})) return ok_status();
  return denied(has_none ? "the sender has no secret, and this instance has one" : "is not that of the frame");
}

template <typename T>
void put(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

std::string_view name(EcFrameFault fault) {
  switch (fault) {
    case EcFrameFault::kCut: return "cut";
    case EcFrameFault::kMagic: return "magic";
    case EcFrameFault::kVersion: return "version";
    case EcFrameFault::kChannel: return "channel";
    case EcFrameFault::kSize: return "size";
    case EcFrameFault::kChecksum: return "checksum";
    case EcFrameFault::kCode: return "code";
    case EcFrameFault::kField: return "field";
  }
  return "";
}

EcFrameFault ec_frame_fault(const Status& refused) { return static_cast<EcFrameFault>(payload_byte(refused, 0)); }

uint16_t ec_frame_version(const Status& refused) {
  return static_cast<uint16_t>(payload_byte(refused, 1) | payload_byte(refused, 2) << 8);
}

StatusOr<EcHead> decode_ec_head(std::span<const std::byte> bytes) {
  // Bytes that are no frame are called so, however few they are.
  const size_t num_magic = std::min(bytes.size(), kMagic.size());
  if (!std::equal(bytes.begin(), bytes.begin() + num_magic, kMagic.begin())) {
    return invalid(EcFrameFault::kMagic, 0, "magic: is not TEPD");
  }
  if (bytes.size() >= kChannelAt) {
    const auto version = little_endian<uint16_t>(bytes.data() + kVersionAt);
    if (version != kEcWireVersion) {
      const std::string why =
          str_cat("byte ", kVersionAt, ": version ", version, "; this instance speaks version ", kEcWireVersion);
      return refusal(EcFrameFault::kVersion, absl::StatusCode::kFailedPrecondition, why, version);
    }
  }
  if (bytes.size() < kEcHeadBytes) {
    return invalid(EcFrameFault::kCut, bytes.size(), str_cat("head: is cut off; it has ", kEcHeadBytes, " bytes"));
  }
  const auto channel = static_cast<uint8_t>(bytes[kChannelAt]), kind = static_cast<uint8_t>(bytes[kKindAt]);
  if (channel >= kNumEcChannels) {
    return invalid(EcFrameFault::kChannel, kChannelAt, str_cat("channel: ", channel, " is none of 0 to 3"));
  }
  EcHead head;
  head.channel = static_cast<EcChannel>(channel);
  head.kind = static_cast<EcKind>(kind);
  if (!is_known(head.channel, head.kind)) {
    return invalid(EcFrameFault::kChannel, kKindAt, str_cat("kind: channel ", channel, " has no kind ", kind));
  }
  head.num_body_bytes = little_endian<uint32_t>(bytes.data() + kSizeAt);
  if (head.num_body_bytes > max_body(head.channel)) {
    return invalid(
        EcFrameFault::kSize, kSizeAt,
        str_cat("body size: ", head.num_body_bytes, " bytes; channel ", channel, " allows ", max_body(head.channel)));
  }
  head.checksum = little_endian<uint32_t>(bytes.data() + kChecksumAt);
  head.incarnation = little_endian<uint64_t>(bytes.data() + kIncarnationAt);
  head.sequence = little_endian<uint64_t>(bytes.data() + kSequenceAt);
  std::memcpy(head.mac.data(), bytes.data() + kMacAt, head.mac.size());
  return head;
}

StatusOr<EcFrame> decode_ec_frame(std::span<const std::byte> bytes, const EcSecret* secret) {
  ASSIGN_OR_RETURN(const EcHead head, decode_ec_head(bytes));
  const auto body = bytes.subspan(kEcHeadBytes);
  if (body.size() < head.num_body_bytes) {
    return invalid(EcFrameFault::kCut, bytes.size(),
                   str_cat("body: is cut off; it has ", head.num_body_bytes, " bytes"));
  }
  if (body.size() > head.num_body_bytes) {
    return invalid(EcFrameFault::kSize, kEcHeadBytes + head.num_body_bytes,
                   str_cat("body: is followed by ", body.size() - head.num_body_bytes, " bytes"));
  }
  if (crc32c(body) != head.checksum) {
    return invalid(EcFrameFault::kChecksum, kChecksumAt, "checksum: is not that of the body");
  }
  RETURN_IF_ERROR(check_mac(head, bytes, secret));
  auto message = decode_ec_body(head.channel, head.kind, body, kEcHeadBytes);
  if (!message.ok()) {
    const std::string param = error_param(message.status());
    return with_param(
        refusal(EcFrameFault::kField, absl::StatusCode::kInvalidArgument, error_message(message.status())), param);
  }
  return EcFrame{head.incarnation, head.sequence, std::move(message).value()};
}

namespace {

// Head and body, without `rest`, the bytes of the chunk, which follow.
Status encode_front(const EcFrame& frame, std::span<const std::byte> rest, const EcSecret* secret,
                    std::vector<std::byte>& bytes) {
  RETURN_IF_ERROR(check_ec_message(frame.message));
  const EcChannel channel = channel_of(frame.message);
  bytes.assign(kEcHeadBytes, std::byte{0});
  append_ec_body(frame.message, bytes);
  const auto front = std::span<const std::byte>(bytes).subspan(kEcHeadBytes);
  const size_t num_body_bytes = front.size() + rest.size();
  CHECK(num_body_bytes <= max_body(channel), "a message that is larger than its channel's limit");
  std::ranges::copy(kMagic, bytes.begin());
  put(bytes, kVersionAt, kEcWireVersion);
  put(bytes, kChannelAt, static_cast<uint8_t>(channel));
  put(bytes, kKindAt, static_cast<uint8_t>(kind_of(frame.message)));
  put(bytes, kSizeAt, static_cast<uint32_t>(num_body_bytes));
  put(bytes, kChecksumAt, crc32c(rest, crc32c(front)));
  put(bytes, kIncarnationAt, frame.incarnation);
  put(bytes, kSequenceAt, frame.sequence);
  if (secret == nullptr) return ok_status();
  put(bytes, kMacAt, secret->mac({std::span(bytes).first(kMacAt), front}));
  return ok_status();
}

}  // namespace

Status encode_ec_frame(const EcFrame& frame, const EcSecret* secret, std::vector<std::byte>& bytes) {
  const auto* const chunk = std::get_if<EcChunk>(&frame.message);
  const auto rest = chunk == nullptr ? std::span<const std::byte>() : chunk->bytes;
  RETURN_IF_ERROR(encode_front(frame, rest, secret, bytes));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return ok_status();
}

Status encode_ec_chunk_front(const EcFrame& frame, const EcSecret* secret, std::vector<std::byte>& bytes) {
  return encode_front(frame, std::get<EcChunk>(frame.message).bytes, secret, bytes);
}

}  // namespace transept
