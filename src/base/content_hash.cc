#include "base/content_hash.h"

#include <bit>
#include <cstring>
#include <random>

namespace transept {
namespace {

class SipState final {
 public:
  explicit SipState(const ContentHashKey& key)
      : v0_(key.words[0] ^ 0x736f6d6570736575u),
        v1_(key.words[1] ^ 0x646f72616e646f6du ^ kLongOutput),
        v2_(key.words[0] ^ 0x6c7967656e657261u),
        v3_(key.words[1] ^ 0x7465646279746573u) {}

  void absorb(uint64_t word) {
    v3_ ^= word;
    for (int i = 0; i < 2; ++i) round();
    v0_ ^= word;
  }
  uint64_t first_half() {
    v2_ ^= kLongOutput;
    return squeeze();
  }
  uint64_t second_half() {
    v1_ ^= 0xdd;
    return squeeze();
  }

 private:
  static constexpr uint64_t kLongOutput = 0xee;

  uint64_t squeeze() {
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }
  void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32) + v3_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
};

// The bytes as a little-endian number (x86-64 is the only processor we build for).
uint64_t word_of(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return word;
}

}  // namespace

ContentHashKey ContentHashKey::random() {
  std::random_device source;
  ContentHashKey key;
  for (uint64_t& word : key.words) word = uint64_t{source()} << 32 | source();
  return key;
}

ContentHash content_hash(const ContentHashKey& key, std::span<const std::byte> content) {
  SipState state(key);
  const size_t num_whole = content.size() / 8 * 8;
  for (size_t i = 0; i < num_whole; i += 8) state.absorb(word_of(content.subspan(i, 8)));
  uint64_t last = uint64_t{content.size()} << 56;
  if (num_whole < content.size()) last |= word_of(content.subspan(num_whole));
  state.absorb(last);
  ContentHash hash;
  hash.words[0] = state.first_half();
  hash.words[1] = state.second_half();
  hash.words[2] = content.size();
  return hash;
}

}  // namespace transept
