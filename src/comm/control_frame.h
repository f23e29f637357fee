// What the processes of a group over hosts say to its first rank on their connection with it (group_link.h): who they
// are, where their data goes, what ended the group. A frame is its size (4 bytes, little-endian, of what follows), its
// kind (1 byte) and the kind's values as base/byte_stream.h writes them. Values; functions are pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"

namespace transept {

inline constexpr uint64_t kControlVersion = 1;
// Before the sender has shown that it is of the group, and after.
inline constexpr size_t kMaxStrangersFrameBytes = size_t{16} << 10, kMaxControlFrameBytes = size_t{256} << 10;

using ControlBytes = std::array<std::byte, 32>;

// What must be the same on all ranks, by the name that errors have for it.
struct GroupSetting {
  std::string name, value;
  bool operator==(const GroupSetting&) const = default;
};

struct GroupMember {
  std::string host;
  int64_t pid = 0;
  bool operator==(const GroupMember&) const = default;
};

// The first rank's first word: what the other's proof is of.
struct ChallengeFrame {
  ControlBytes nonce{};
};
struct HelloFrame {
  int32_t rank = 0, size = 0;
  ControlBytes nonce{}, proof{};  // of the first rank's nonce
  GroupMember member;
  std::vector<GroupSetting> settings;
};
// All have joined.
struct WelcomeFrame {
  ControlBytes proof{};  // of the joiner's nonce
  ControlBytes secret{};
  std::vector<GroupMember> members;  // by rank
};
// To the first rank, and what all gave it, by rank, back.
struct ValueFrame {
  std::vector<std::byte> bytes;
};
struct ValuesFrame {
  std::vector<std::vector<std::byte>> values;
};
struct FailureFrame {
  Status why;  // not OK
};
// The sender ends, and all is well.
struct GoodbyeFrame {};

using ControlFrame =
    std::variant<ChallengeFrame, HelloFrame, WelcomeFrame, ValueFrame, ValuesFrame, FailureFrame, GoodbyeFrame>;

// Errors' texts are cut at 4 KiB.
std::vector<std::byte> encode_frame(const ControlFrame& frame);
// Decodes what follows the size. Errors: kInvalidArgument, which name the value.
StatusOr<ControlFrame> decode_frame(std::span<const std::byte> bytes);
// Takes the first frame off `bytes`, if it is whole. Errors: it has more than `max_bytes`, or is none.
StatusOr<std::optional<ControlFrame>> take_frame(std::vector<std::byte>& bytes, size_t max_bytes);

}  // namespace transept
