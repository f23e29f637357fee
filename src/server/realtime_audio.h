// Audio as /v1/realtime receives it: PCM of 16 bits (little endian, one channel), or G.711 (ITU-T G.711, mu-law and
// A-law), in pieces of any length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace transept {

struct RealtimeFormat {
  enum class Kind : uint8_t { kPcm, kPcmu, kPcma };
  static constexpr int32_t kTelephoneRate = 8000;

  Kind kind = Kind::kPcm;
  int32_t rate = 24000;  // samples a second; kTelephoneRate unless kPcm

  friend bool operator==(const RealtimeFormat&, const RealtimeFormat&) = default;
};

// The sample of a byte of G.711, in 16 bits: the standard's 14 (mu-law) or 13 (A-law) bits, shifted to the left.
int16_t sample_of_mu_law(uint8_t code);
int16_t sample_of_a_law(uint8_t code);

// Bytes to samples. The first half of a sample waits for its other half. Not thread-safe.
class RealtimeAudio final {
 public:
  // Appends the samples of `bytes` to `out`.
  void read(const RealtimeFormat& format, std::string_view bytes, std::vector<int16_t>& out);
  bool has_half_sample() const { return has_half_; }
  // Forgets half a sample.
  void reset() { has_half_ = false; }

 private:
  uint8_t half_ = 0;
  bool has_half_ = false;
};

}  // namespace transept
