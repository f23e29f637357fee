// What the tests of resize.h share: pictures by a rule that tools/make_resize_fixtures.py has too, the resampler by its
// definition, and a level in plain loops of any width, so that the kernels for 64 bytes run on every processor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "media/image_types.h"
#include "media/resize_kernels.h"
#include "media/resize_options.h"

namespace transept::testing {

// Ramps that differ by channel, with noise of all levels on every other tile of 4 x 4 pixels.
inline RgbImage make_picture(int32_t width, int32_t height, uint32_t seed) {
  RgbImage image{width, height, {}};
  uint32_t state = seed;
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      for (int32_t c = 0; c < RgbImage::kNumChannels; ++c) {
        state = state * 1664525 + 1013904223;
        const bool is_noise = (x / 4 + y / 4) % 2 == 1;
        const int32_t ramp = 255 * (x * (c + 1) + y * (3 - c)) / (width * (c + 1) + height * (3 - c));
        image.pixels.push_back(static_cast<uint8_t>(is_noise ? state >> 24 : static_cast<uint32_t>(ramp)));
      }
    }
  }
  return image;
}

inline double obvious_filter(ResizeFilter filter, double x) {
  const double d = std::abs(x), pi = 3.14159265358979323846;
  const auto sinc = [&](double t) { return t == 0 ? 1.0 : std::sin(t * pi) / (t * pi); };
  switch (filter) {
    case ResizeFilter::kNearest: break;
    case ResizeFilter::kBox: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case ResizeFilter::kBilinear: return d < 1 ? 1 - d : 0;
    case ResizeFilter::kHamming: return d < 1 ? sinc(d) * (0.54f + 0.46f * std::cos(d * pi)) : 0;
    case ResizeFilter::kBicubic:
      return d < 1 ? ((1.5 * d) - 2.5) * d * d + 1 : d < 2 ? (((d - 5) * d + 8) * d - 4) * -0.5 : 0;
    case ResizeFilter::kLanczos: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
  return 0;
}

// One axis of a line of values: the definition, a value at a time. `begin`, `end`: the part that is resampled.
inline std::vector<uint8_t> obvious_line(const std::vector<uint8_t>& line, ResizeFilter filter, float begin, float end,
                                         int32_t out_size) {
  const auto in_size = static_cast<int32_t>(line.size());
  const double scale = static_cast<double>(end - begin) / out_size, stretch = std::max(scale, 1.0);
  const double support = resize_filter_support(filter) * stretch;
  std::vector<uint8_t> out;
  for (int32_t i = 0; i < out_size; ++i) {
    const double center = begin + (i + 0.5) * scale;
    const double low = center - support + 0.5, high = center + support + 0.5;  // cut, not rounded
    const int32_t first = std::max(0, static_cast<int32_t>(low));
    const int32_t last = std::min(in_size, static_cast<int32_t>(high));
    double total = 0;
    for (int32_t at = first; at < last; ++at) total += obvious_filter(filter, (at - center + 0.5) * (1.0 / stretch));
    int64_t sum = 1 << 21;
    for (int32_t at = first; at < last; ++at) {
      const double weight = obvious_filter(filter, (at - center + 0.5) * (1.0 / stretch)) / (total == 0 ? 1 : total);
      sum += static_cast<int64_t>(weight * (1 << 22) + (weight < 0 ? -0.5 : 0.5)) * line[static_cast<size_t>(at)];
    }
    out.push_back(static_cast<uint8_t>(std::clamp<int64_t>(sum >> 22, 0, 255)));
  }
  return out;
}

// The whole of it without reducing_gap, for pictures that are not tall: columns, then rows.
inline RgbImage obvious_resize(const RgbImage& image, int32_t width, int32_t height, ResizeFilter filter) {
  constexpr size_t kChannels = RgbImage::kNumChannels;
  const auto resample = [&](const RgbImage& from, int32_t size, bool is_x) {
    RgbImage to{is_x ? size : from.width, is_x ? from.height : size, {}};
    to.pixels.resize(static_cast<size_t>(to.width) * static_cast<size_t>(to.height) * kChannels);
    const auto in_width = static_cast<size_t>(from.width), out_width = static_cast<size_t>(to.width);
    const auto length = static_cast<size_t>(is_x ? from.width : from.height);
    for (size_t i = 0; i < static_cast<size_t>(is_x ? from.height : from.width); ++i) {
      for (size_t c = 0; c < kChannels; ++c) {
        std::vector<uint8_t> line;
        for (size_t j = 0; j < length; ++j)
          line.push_back(from.pixels[(is_x ? i * in_width + j : j * in_width + i) * kChannels + c]);
        if (static_cast<size_t>(size) != length) line = obvious_line(line, filter, 0, static_cast<float>(length), size);
        for (size_t j = 0; j < line.size(); ++j)
          to.pixels[(is_x ? i * out_width + j : j * out_width + i) * kChannels + c] = line[j];
      }
    }
    return to;
  };
  return resample(resample(image, width, true), height, false);
}

// A level of resize_kernel.h by the definitions of the instructions (Intel's manual: PMADDWD, PUNPCKLBW, PACKSSDW,
// ...).
template <int kWidth>
struct SoftwareResizeLevel {
  static constexpr int kBytes = kWidth;
  static constexpr int kParts = kWidth / 16;
  static constexpr int kTaps = 2 * kParts;

  struct Reg {
    std::array<uint8_t, static_cast<size_t>(kWidth)> bytes;

    template <typename T>
    T get(int i) const {
      T value;
      std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
      return value;
    }
    template <typename T>
    void set(int i, T value) {
      std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  };

  static Reg load_pixels(const uint8_t* p) {
    Reg out = zero();
    for (int pixel = 0; pixel < kTaps; ++pixel) {
      for (int c = 0; c < 3; ++c) out.template set<int16_t>(pixel / 2 * 8 + 2 * c + pixel % 2, p[3 * pixel + c]);
    }
    return out;
  }
  static Reg load_weights(const int16_t* w) {
    Reg out;
    for (int i = 0; i < kBytes / 2; ++i) out.template set<int16_t>(i, w[i / 8 * 2 + i % 2]);
    return out;
  }
  static uint32_t fold(const Reg& a) {
    uint32_t pixel = 0;
    for (int c = 0; c < 3; ++c) {
      uint32_t sum = 0;
      for (int part = 0; part < kParts; ++part) sum += a.template get<uint32_t>(4 * part + c);
      pixel |= uint32_t{resize_clip(sum)} << (8 * c);
    }
    return pixel;
  }

  static Reg zero() { return Reg{}; }
  static Reg load(const uint8_t* p) {
    Reg out;
    std::memcpy(out.bytes.data(), p, static_cast<size_t>(kWidth));
    return out;
  }
  static void store(uint8_t* p, const Reg& a) { std::memcpy(p, a.bytes.data(), static_cast<size_t>(kWidth)); }
  static Reg set1(const int16_t* two) {
    Reg out;
    for (int i = 0; i < kBytes / 2; ++i) out.template set<int16_t>(i, two[i % 2]);
    return out;
  }
  static Reg add(const Reg& a, const Reg& b) {
    Reg out;
    for (int i = 0; i < kBytes / 4; ++i)
      out.template set<uint32_t>(i, a.template get<uint32_t>(i) + b.template get<uint32_t>(i));
    return out;
  }
  static Reg shift_left(const Reg& a) {
    Reg out;
    for (int i = 0; i < kBytes / 4; ++i) out.template set<uint32_t>(i, a.template get<uint32_t>(i) << kResizeLowBits);
    return out;
  }
  static Reg madd(const Reg& a, const Reg& b) {
    Reg out;
    for (int i = 0; i < kBytes / 4; ++i) {
      uint32_t sum = 0;
      for (int j = 2 * i; j < 2 * i + 2; ++j)
        sum += static_cast<uint32_t>(a.template get<int16_t>(j) * b.template get<int16_t>(j));
      out.template set<uint32_t>(i, sum);
    }
    return out;
  }
  static Reg unpack_low(const Reg& a, const Reg& b) { return unpack(a, b, 0); }
  static Reg unpack_high(const Reg& a, const Reg& b) { return unpack(a, b, 8); }
  static Reg round(const Reg& a) {
    Reg out;
    for (int i = 0; i < kBytes / 4; ++i)
      out.template set<int32_t>(i, static_cast<int32_t>(a.template get<uint32_t>(i) + (1u << 21)) >> 22);
    return out;
  }
  // Four registers of 32 bits to one of 8, part by part, saturated at each step.
  static Reg pack(const Reg* a) {
    Reg out;
    for (int i = 0; i < kBytes; ++i) {
      const int32_t value = a[i % 16 / 4].template get<int32_t>(i / 16 * 4 + i % 4);
      out.template set<uint8_t>(i, static_cast<uint8_t>(std::clamp(std::clamp(value, -32768, 32767), 0, 255)));
    }
    return out;
  }

 private:
  static Reg unpack(const Reg& a, const Reg& b, int from) {
    Reg out;
    for (int i = 0; i < kBytes; ++i) {
      const int at = i / 16 * 16 + from + i % 16 / 2;
      out.template set<uint8_t>(i, i % 2 == 0 ? a.template get<uint8_t>(at) : b.template get<uint8_t>(at));
    }
    return out;
  }
};

}  // namespace transept::testing
