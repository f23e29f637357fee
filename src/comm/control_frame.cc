#include "comm/control_frame.h"

#include <algorithm>
#include <cstring>

#include "base/byte_stream.h"
#include "base/communicator.h"
#include "base/little_endian.h"

namespace transept {
namespace {

constexpr std::string_view kMagic = "transept ranks";
constexpr size_t kMaxErrorBytes = 4096;
constexpr int kMaxStatusCode = 16;
enum Kind : uint8_t { kChallenge = 1, kHello, kWelcome, kValue, kValues, kFailure, kGoodbye };

// ---- Writing

void write(ByteWriter& to, std::string_view text) { to.bytes(std::as_bytes(std::span(text))); }

void write(ByteWriter& to, const GroupMember& member) {
  write(to, member.host);
  to.zigzag(member.pid);
}

struct Writer {
  std::vector<std::byte>& out;

  void kind(Kind kind) const { out.push_back(static_cast<std::byte>(kind)); }

  void operator()(const ChallengeFrame& frame) const {
    kind(kChallenge);
    ByteWriter to(out);
    write(to, kMagic);
    to.varint(kControlVersion);
    to.bytes(frame.nonce);
  }
  void operator()(const HelloFrame& frame) const {
    kind(kHello);
    ByteWriter to(out);
    write(to, kMagic);
    to.varint(kControlVersion);
    to.zigzag(frame.rank);
    to.zigzag(frame.size);
    to.bytes(frame.nonce);
    to.bytes(frame.proof);
    write(to, frame.member);
    to.varint(frame.settings.size());
    for (const GroupSetting& setting : frame.settings) {
      write(to, setting.name);
      write(to, setting.value);
    }
  }
  void operator()(const WelcomeFrame& frame) const {
    kind(kWelcome);
    ByteWriter to(out);
    to.bytes(frame.proof);
    to.bytes(frame.secret);
    to.varint(frame.members.size());
    for (const GroupMember& member : frame.members) write(to, member);
  }
  void operator()(const ValueFrame& frame) const {
    kind(kValue);
    ByteWriter(out).bytes(frame.bytes);
  }
  void operator()(const ValuesFrame& frame) const {
    kind(kValues);
    ByteWriter to(out);
    to.varint(frame.values.size());
    for (const std::vector<std::byte>& value : frame.values) to.bytes(value);
  }
  void operator()(const FailureFrame& frame) const {
    kind(kFailure);
    ByteWriter to(out);
    to.varint(static_cast<uint64_t>(frame.why.code()));
    write(to, error_message(frame.why).substr(0, kMaxErrorBytes));
  }
  void operator()(const GoodbyeFrame&) const { kind(kGoodbye); }
};

// ---- Reading

std::string read_text(ByteReader& from, std::string_view name) {
  const std::span<const std::byte> bytes = from.bytes(name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void read(ByteReader& from, std::string_view name, ControlBytes& to) {
  const std::span<const std::byte> bytes = from.bytes(name);
  if (bytes.size() != to.size()) return from.fail(name, "does not have 32 bytes");
  std::ranges::copy(bytes, to.begin());
}

GroupMember read_member(ByteReader& from) {
  GroupMember member;
  member.host = read_text(from, "host");
  member.pid = from.zigzag("pid");
  return member;
}

// The other's release may speak otherwise, and says so.
void read_version(ByteReader& from) {
  if (read_text(from, "magic") != kMagic) from.fail("magic", "is none of ranks");
  const uint64_t version = from.varint("version");
  if (from.ok() && version != kControlVersion) {
    from.fail("version", str_cat("is ", version, ", and this build has ", kControlVersion));
  }
}

HelloFrame read_hello(ByteReader& from) {
  HelloFrame frame;
  read_version(from);
  frame.rank = from.integer<int32_t>("rank");
  frame.size = from.integer<int32_t>("size");
  read(from, "nonce", frame.nonce);
  read(from, "proof", frame.proof);
  frame.member = read_member(from);
  const size_t count = from.count("settings", 2);
  for (size_t i = 0; i < count && from.ok(); ++i) {
    GroupSetting setting;
    setting.name = read_text(from, "setting");
    setting.value = read_text(from, "value");
    frame.settings.push_back(std::move(setting));
  }
  return frame;
}

WelcomeFrame read_welcome(ByteReader& from) {
  WelcomeFrame frame;
  read(from, "proof", frame.proof);
  read(from, "secret", frame.secret);
  const size_t count = from.count("members", 2);
  if (count > Communicator::kMaxRanks) from.fail("members", "are too many");
  for (size_t i = 0; i < count && from.ok(); ++i) frame.members.push_back(read_member(from));
  return frame;
}

ValuesFrame read_values(ByteReader& from) {
  ValuesFrame frame;
  const size_t count = from.count("values", 1);
  if (count > Communicator::kMaxRanks) from.fail("values", "are too many");
  for (size_t i = 0; i < count && from.ok(); ++i) {
    const std::span<const std::byte> value = from.bytes("value");
    frame.values.emplace_back(value.begin(), value.end());
  }
  return frame;
}

ControlFrame read_frame(ByteReader& from, uint8_t kind) {
  switch (kind) {
    case kChallenge: {
      ChallengeFrame frame;
      read_version(from);
      read(from, "nonce", frame.nonce);
      return frame;
    }
    case kHello: return read_hello(from);
    case kWelcome: return read_welcome(from);
    case kValue: {
      const std::span<const std::byte> value = from.bytes("value");
      return ValueFrame{{value.begin(), value.end()}};
    }
    case kValues: return read_values(from);
    case kFailure: {
      const uint64_t code = from.varint("code");
      if (code == 0 || code > kMaxStatusCode) from.fail("code", "is none of an error");
      const std::string text = read_text(from, "error");
      return FailureFrame{Status(static_cast<absl::StatusCode>(code), text)};
    }
    case kGoodbye: return GoodbyeFrame{};
    default: from.fail("kind", "is unknown");
  }
  return GoodbyeFrame{};
}

}  // namespace

std::vector<std::byte> encode_frame(const ControlFrame& frame) {
  std::vector<std::byte> out(sizeof(uint32_t));
  std::visit(Writer{out}, frame);
  const auto size = static_cast<uint32_t>(out.size() - sizeof(uint32_t));
  std::memcpy(out.data(), &size, sizeof size);
  return out;
}

StatusOr<ControlFrame> decode_frame(std::span<const std::byte> bytes) {
  if (bytes.empty()) return invalid_argument("a message of ranks is empty");
  ByteReader from(bytes.subspan(1), "a message of ranks");
  ControlFrame frame = read_frame(from, static_cast<uint8_t>(bytes[0]));
  if (from.ok() && from.num_left() > 0) from.fail("end", "comes too late");
  RETURN_IF_ERROR(from.status());
  return frame;
}

StatusOr<std::optional<ControlFrame>> take_frame(std::vector<std::byte>& bytes, size_t max_bytes) {
  if (bytes.size() < sizeof(uint32_t)) return std::nullopt;
  const auto size = little_endian<uint32_t>(bytes.data());
  if (size > max_bytes) return invalid_argument("a message of ranks says that it has ", size, " bytes");
  if (bytes.size() - sizeof(uint32_t) < size) return std::nullopt;
  ASSIGN_OR_RETURN(ControlFrame frame, decode_frame(std::span(bytes).subspan(sizeof(uint32_t), size)));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(sizeof(uint32_t) + size));
  return std::optional<ControlFrame>(std::move(frame));
}

}  // namespace transept
