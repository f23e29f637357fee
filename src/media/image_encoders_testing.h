// Large images for tests and benchmarks, by the libraries' own encoders. The product encodes nothing.
#pragma once

#include <png.h>
#include <webp/encode.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <jpeglib.h>  // needs <cstdio>

#include "base/check.h"
#include "media/image_types.h"

namespace transept {

// Slopes, waves and some noise: about as many bits as a photograph.
inline RgbImage make_photo(int32_t width, int32_t height) {
  RgbImage image{.width = width, .height = height};
  image.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  uint32_t state = 1;
  uint8_t* to = image.pixels.data();
  for (int32_t y = 0; y < height; ++y) {
    const float wave = 60 * std::sin(0.013f * static_cast<float>(y));
    for (int32_t x = 0; x < width; ++x) {
      state = state * 1664525 + 1013904223;
      const auto noise = static_cast<int32_t>(state >> 28);
      const int32_t light = 90 + (x & 127) / 2 + static_cast<int32_t>(wave) + noise;
      *to++ = static_cast<uint8_t>(light);
      *to++ = static_cast<uint8_t>(light * 3 / 4 + (y & 31));
      *to++ = static_cast<uint8_t>(255 - light);
    }
  }
  return image;
}

struct JpegOptions {
  int quality = 85;
  int h_samples = 2, v_samples = 2;  // of luminance; colors have 1 x 1
  bool is_progressive = false;
  bool is_grey = false;
};

inline std::string encode_jpeg(const RgbImage& image, const JpegOptions& options = {}) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, options.is_grey ? JCS_GRAYSCALE : JCS_YCbCr);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (!options.is_grey) {
    jpeg.comp_info[0].h_samp_factor = options.h_samples;
    jpeg.comp_info[0].v_samp_factor = options.v_samples;
  }
  if (options.is_progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<uint8_t*>(image.pixels.data()) + size_t{jpeg.next_scanline} * 3 * jpeg.image_width;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string content(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return content;
}

inline std::string encode_png(const RgbImage& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string content(size, '\0');
  CHECK(png_image_write_to_memory(&png, content.data(), &size, 0, image.pixels.data(), 0, nullptr) != 0);
  content.resize(size);
  return content;
}

enum class WebpKind { kLossy, kLossless, kLossyAlpha, kLosslessAlpha };

// Alpha is the green channel.
inline std::string encode_webp(const RgbImage& image, WebpKind kind) {
  std::string rgba;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    for (const size_t c : {0, 1, 2, 1}) rgba += static_cast<char>(image.pixels[i + c]);
  }
  const auto* pixels = reinterpret_cast<const uint8_t*>(rgba.data());
  const int w = image.width, h = image.height;
  uint8_t* memory = nullptr;
  const size_t size = kind == WebpKind::kLossy        ? WebPEncodeRGB(image.pixels.data(), w, h, 3 * w, 75, &memory)
                      : kind == WebpKind::kLossless   ? WebPEncodeLosslessRGB(image.pixels.data(), w, h, 3 * w, &memory)
                      : kind == WebpKind::kLossyAlpha ? WebPEncodeRGBA(pixels, w, h, 4 * w, 75, &memory)
                                                      : WebPEncodeLosslessRGBA(pixels, w, h, 4 * w, &memory);
  CHECK(size > 0);
  std::string content(reinterpret_cast<const char*>(memory), size);
  WebPFree(memory);
  return content;
}

}  // namespace transept
