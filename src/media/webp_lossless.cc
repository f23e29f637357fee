#include "media/webp_lossless.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace transept {
namespace {

constexpr int kMaxCodeLength = 15;
constexpr int kNumLengthPrefixes = 24;
constexpr int kMaxCacheBits = 11;
constexpr int kMaxSymbols = 256 + kNumLengthPrefixes + (1 << kMaxCacheBits);
// libwebp's bytes: of a group of five codes its structure and its tables without those of a color cache, and more.
constexpr size_t kGroupBytes = 568 + 4 * (630 * 3 + 410 + 654);
constexpr size_t kFixedBytes = size_t{320} << 10;  // a map of group numbers, code lengths, one picture's codes

// Bits of a stream, the lowest of a byte first. Behind the end come zeros, and is_over().
class Bits {
 public:
  explicit Bits(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t read(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++position_) {
      if (position_ / 8 < bytes_.size()) value |= (bytes_[position_ / 8] >> (position_ % 8) & 1u) << i;
    }
    return value;
  }

  bool is_over() const { return position_ > bytes_.size() * 8; }

 private:
  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
};

// A canonical prefix code, decoded a bit at a time: the pictures that it is for are small.
class PrefixCode {
 public:
  // Returns false for lengths that are no complete code.
  bool build(std::span<const uint8_t> lengths) {
    counts_.fill(0);
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<int, kMaxCodeLength + 2> starts{};
    int open = 1;
    bool is_crowded = false;
    for (int length = 1; length <= kMaxCodeLength; ++length) {
      starts[length + 1] = starts[length] + counts_[length];
      open = 2 * open - counts_[length];
      is_crowded |= open < 0;
      open = std::max(open, 0);  // it stays crowded
    }
    const int num_used = starts[kMaxCodeLength + 1];
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0) symbols_[starts[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
    }
    is_single_ = num_used == 1;
    return is_single_ || (num_used > 0 && open == 0 && !is_crowded);
  }

  // A single symbol has no bits.
  int read(Bits& bits) const {
    if (is_single_) return symbols_[0];
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kMaxCodeLength; ++length) {
      code |= static_cast<int>(bits.read(1));
      if (code - first < counts_[length]) return symbols_[index + code - first];
      index += counts_[length];
      first = (first + counts_[length]) << 1;
      code <<= 1;
    }
    return 0;  // not reached: the code is complete
  }

 private:
  std::array<int, kMaxCodeLength + 1> counts_{};
  std::array<uint16_t, kMaxSymbols> symbols_{};
  bool is_single_ = false;
};

int32_t subsampled(int32_t size, uint32_t bits) { return (size + (1 << bits) - 1) >> bits; }

class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, int32_t width, int32_t height)
      : bits_(bytes), width_(width), height_(height) {}

  // Transforms, the color cache and the picture of groups.
  StatusOr<size_t> code_bytes() {
    if (!skip_transforms()) return flaw();
    int cache_bits = 0;
    if (!read_cache_bits(cache_bits)) return flaw();
    size_t num_groups = 1;
    if (bits_.read(1) != 0) {
      const uint32_t precision = bits_.read(3) + 2;
      const int64_t num_pixels = int64_t{subsampled(width_, precision)} * subsampled(height_, precision);
      if (!read_picture(num_pixels)) return flaw();
      num_groups = static_cast<size_t>(max_group_) + 1;
      // Numbers that no pixel has get no tables, where libwebp looks.
      if (num_groups > 1000) num_groups = std::min(num_groups, static_cast<size_t>(num_pixels));
    }
    if (bits_.is_over()) return flaw();
    const size_t cache_bytes = cache_bits == 0 ? 0 : size_t{4} << cache_bits;
    // Twice: where a code does not fit at the end of the tables, others of the same size are taken.
    return 2 * num_groups * (kGroupBytes + cache_bytes) + kFixedBytes;
  }

 private:
  Status flaw() const {
    return invalid_argument(bits_.is_over() ? "ends early, in the codes of its lossless data"
                                            : "is damaged: the codes of its lossless data contradict themselves");
  }

  bool skip_transforms() {
    enum Transform { kPredictor, kCrossColor, kSubtractGreen, kColorIndexing };
    uint32_t seen = 0;
    while (bits_.read(1) != 0) {
      const uint32_t type = bits_.read(2);
      if ((seen & 1u << type) != 0) return false;
      seen |= 1u << type;
      if (type == kPredictor || type == kCrossColor) {
        const uint32_t precision = bits_.read(3) + 2;
        if (!read_picture(int64_t{subsampled(width_, precision)} * subsampled(height_, precision))) return false;
      } else if (type == kColorIndexing) {
        const uint32_t num_colors = bits_.read(8) + 1;
        if (!read_picture(num_colors)) return false;
        // Several pixels of few colors are one.
        width_ = subsampled(width_, num_colors > 16 ? 0 : num_colors > 4 ? 1 : num_colors > 2 ? 2 : 3);
      }
    }
    return true;
  }

  bool read_cache_bits(int& cache_bits) {
    cache_bits = 0;
    if (bits_.read(1) == 0) return true;
    cache_bits = static_cast<int>(bits_.read(4));
    return cache_bits >= 1 && cache_bits <= kMaxCacheBits;
  }

  // A picture within the stream, of one group of codes. Leaves the highest group number that it has, which is in a
  // pixel's red and green, in max_group_: copies and the cache only repeat pixels.
  bool read_picture(int64_t num_pixels) {
    int cache_bits = 0;
    if (!read_cache_bits(cache_bits)) return false;
    const int num_greens = 256 + kNumLengthPrefixes + (cache_bits == 0 ? 0 : 1 << cache_bits);
    const int num_symbols[] = {num_greens, 256, 256, 256, 40};
    for (size_t i = 0; i < codes_.size(); ++i) {
      if (!read_code(num_symbols[i], codes_[i])) return false;
    }
    max_group_ = 0;
    for (int64_t done = 0; done < num_pixels;) {
      if (bits_.is_over()) return false;
      const int green = codes_[0].read(bits_);
      if (green < 256) {
        const int red = codes_[1].read(bits_);
        codes_[2].read(bits_);
        codes_[3].read(bits_);
        max_group_ = std::max(max_group_, red << 8 | green);
        ++done;
      } else if (green < 256 + kNumLengthPrefixes) {
        done += read_prefixed(green - 256);
        read_prefixed(codes_[4].read(bits_));
        if (done > num_pixels) return false;
      } else {
        ++done;
      }
    }
    return !bits_.is_over();
  }

  // The length or distance of a copy.
  int64_t read_prefixed(int prefix) {
    if (prefix < 4) return prefix + 1;
    const int extra_bits = (prefix - 2) >> 1;
    return (int64_t{2 + (prefix & 1)} << extra_bits) + bits_.read(extra_bits) + 1;
  }

  bool read_code(int num_symbols, PrefixCode& code) {
    std::array<uint8_t, kMaxSymbols> storage{};
    const std::span<uint8_t> lengths = std::span(storage).first(static_cast<size_t>(num_symbols));
    if (bits_.read(1) != 0) {  // one symbol, or two
      const bool has_two = bits_.read(1) != 0;
      storage[bits_.read(bits_.read(1) != 0 ? 8 : 1)] = 1;
      if (has_two) storage[bits_.read(8)] = 1;
    } else if (!read_code_lengths(lengths)) {
      return false;
    }
    return !bits_.is_over() && code.build(lengths);
  }

  bool read_code_lengths(std::span<uint8_t> lengths) {
    static constexpr uint8_t kOrder[] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    std::array<uint8_t, std::size(kOrder)> lengths_of_lengths{};
    const uint32_t num_lengths = bits_.read(4) + 4;  // 19 at most
    for (uint32_t i = 0; i < num_lengths; ++i) lengths_of_lengths[kOrder[i]] = static_cast<uint8_t>(bits_.read(3));
    if (!length_code_.build(lengths_of_lengths)) return false;

    uint32_t num_left = static_cast<uint32_t>(lengths.size());
    if (bits_.read(1) != 0) {
      const int num_bits = 2 + 2 * static_cast<int>(bits_.read(3));
      num_left = 2 + bits_.read(num_bits);
      if (num_left > lengths.size()) return false;
    }
    uint8_t previous = 8;
    for (size_t symbol = 0; symbol < lengths.size() && num_left > 0; --num_left) {
      const int length = length_code_.read(bits_);
      if (bits_.is_over()) return false;
      if (length < 16) {
        lengths[symbol++] = static_cast<uint8_t>(length);
        if (length != 0) previous = static_cast<uint8_t>(length);
        continue;
      }
      const size_t repeat = length == 16 ? 3 + bits_.read(2) : length == 17 ? 3 + bits_.read(3) : 11 + bits_.read(7);
      if (repeat > lengths.size() - symbol) return false;
      std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(symbol), repeat, length == 16 ? previous : uint8_t{0});
      symbol += repeat;
    }
    return true;
  }

  Bits bits_;
  int32_t width_, height_;
  int max_group_ = 0;
  std::array<PrefixCode, 5> codes_;
  PrefixCode length_code_;
};

}  // namespace

StatusOr<size_t> lossless_code_bytes(std::span<const uint8_t> bits, int32_t width, int32_t height) {
  return Reader(bits, width, height).code_bytes();
}

}  // namespace transept
