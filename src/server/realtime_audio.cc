#include "server/realtime_audio.h"

#include <array>

namespace transept {
namespace {

// G.711, table 2a: all bits are inverted on the wire; sign, three bits of segment, four of interval. The standard's 14
// bits are 2^segment * (2 * interval + 33) - 33.
constexpr int16_t mu_law(uint8_t code) {
  const int bits = ~code & 0xFF;
  const int magnitude = ((((bits & 15) << 1) + 33) << (bits >> 4 & 7)) - 33;
  return static_cast<int16_t>((bits & 0x80) != 0 ? -4 * magnitude : 4 * magnitude);
}

// G.711, table 1a: even bits are inverted on the wire; a sign of 1 is positive. The first two segments are one line.
constexpr int16_t a_law(uint8_t code) {
  const int bits = code ^ 0x55;
  const int segment = bits >> 4 & 7;
  const int interval = bits & 15;
  const int magnitude = segment == 0 ? 2 * interval + 1 : (2 * interval + 33) << (segment - 1);
  return static_cast<int16_t>((bits & 0x80) != 0 ? 8 * magnitude : -8 * magnitude);
}

using Table = std::array<int16_t, 256>;

constexpr Table table_of(int16_t (*sample)(uint8_t)) {
  Table table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = sample(static_cast<uint8_t>(i));
  return table;
}

constexpr Table kMuLaw = table_of(mu_law);
constexpr Table kALaw = table_of(a_law);

}  // namespace

int16_t sample_of_mu_law(uint8_t code) { return kMuLaw[code]; }
int16_t sample_of_a_law(uint8_t code) { return kALaw[code]; }

void RealtimeAudio::read(const RealtimeFormat& format, std::string_view bytes, std::vector<int16_t>& out) {
  if (format.kind != RealtimeFormat::Kind::kPcm) {
    const Table& table = format.kind == RealtimeFormat::Kind::kPcmu ? kMuLaw : kALaw;
    out.reserve(out.size() + bytes.size());
    for (const char byte : bytes) out.push_back(table[static_cast<uint8_t>(byte)]);
    return;
  }
  if (bytes.empty()) return;
  if (has_half_) {
    out.push_back(static_cast<int16_t>(static_cast<uint16_t>(half_ | static_cast<uint8_t>(bytes.front()) << 8)));
    bytes.remove_prefix(1);
  }
  const size_t begin = out.size(), count = bytes.size() / 2;
  out.resize(begin + count);
  for (size_t i = 0; i < count; ++i) {
    const auto low = static_cast<uint8_t>(bytes[2 * i]), high = static_cast<uint8_t>(bytes[2 * i + 1]);
    out[begin + i] = static_cast<int16_t>(static_cast<uint16_t>(low | high << 8));
  }
  has_half_ = bytes.size() % 2 != 0;
  if (has_half_) half_ = static_cast<uint8_t>(bytes.back());
}

}  // namespace transept
