// The sizes to which image processors resize, by transformers' rules: each is a function of integers whose quotients
// are in double precision and rounded as Python's int(), round(), floor() and ceil() are. Sides may come out as 0 or
// huge: resize() refuses those. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace transept {

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// get_resize_output_image_size(default_to_square=False): the shorter side becomes `edge`.
ImageSize shortest_edge_size(const ImageSize& in, int64_t edge);

// get_size_with_aspect_ratio: the shorter side becomes `edge`, or less, so that the longer one is at most `longest`.
ImageSize bounded_edge_size(const ImageSize& in, int64_t edge, int64_t longest);

// get_image_size_for_max_height_width: the largest size of these proportions within `most`.
ImageSize inner_size(const ImageSize& in, const ImageSize& most);

// DonutImageProcessor.thumbnail: at most `most`. None: it stays as it is.
std::optional<ImageSize> thumbnail_size(const ImageSize& in, const ImageSize& most);

// Qwen2-VL's smart_resize. REQUIRES: proportions of at most 200.
ImageSize smart_size(const ImageSize& in, int64_t factor, int64_t min_pixels, int64_t max_pixels);

// Pix2Struct's grid of patches: rows and columns, at most max_patches together.
ImageSize patch_grid(const ImageSize& in, const ImageSize& patch, int64_t max_patches);

// Mllama's arrangements of tiles, (height, width) in tiles, in the order of their ids less 1.
std::vector<ImageSize> tile_arrangements(int64_t max_tiles);

struct TiledCanvas {
  ImageSize tiles;          // rows and columns
  ImageSize image;          // the picture's new size within it
  int32_t arrangement = 0;  // which of tile_arrangements()
};

// get_optimal_tiled_canvas and get_image_size_fit_to_canvas.
TiledCanvas tiled_canvas(const ImageSize& in, int64_t tile, const std::vector<ImageSize>& arrangements);

}  // namespace transept
