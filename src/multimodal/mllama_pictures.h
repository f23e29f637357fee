// What the files of a Mllama folder say of pictures: preprocessor_config.json, how they become tiles; config.json,
// which tiles the tower takes. Pure functions: thread-safe. Source: transformers, models/mllama/modeling_mllama.py,
// image_processing_pil_mllama.py.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "core/model_config.h"
#include "multimodal/image_rows.h"
#include "multimodal/image_sizes.h"

namespace transept {

struct MllamaPictures {
  // Pictures of a request: each has 6,404 positions in published files, and the lists of a step grow with all of them.
  static constexpr int32_t kMaxPictures = 8;
  static constexpr int64_t kRowMultiple = 8;  // rows of a tile are padded to multiples of it

  int64_t image = 448, patch = 14;           // sides of a tile and of a patch, in pixels
  int64_t max_tiles = 4;                     // the tower has as many, whatever the picture
  int64_t num_ratios = 8;                    // rows of its tables are ids of arrangements, from 1 on; 0 is no picture
  std::vector<ImageSize> arrangements = {};  // of tiles: id - 1
  bool is_strict = false;                    // read_mllama_strict_mask()

  int64_t num_patches() const { return (image / patch) * (image / patch); }
  int64_t rows_a_tile() const { return num_patches() + 1; }
  // A tile always has rows of padding, as transformers' mask assumes: a square and one is no multiple of 4.
  int64_t padded_rows_a_tile() const { return (rows_a_tile() + kRowMultiple - 1) / kRowMultiple * kRowMultiple; }
  // Of all tiles: what a picture has at most.
  int64_t num_positions() const { return max_tiles * rows_a_tile(); }
  // Rows that the tower gives of a picture of so many tiles. Where no token sees padding, it is left out.
  int64_t num_positions_of(int64_t num_tiles) const { return is_strict ? num_tiles * rows_a_tile() : num_positions(); }
  int64_t num_rows() const { return max_tiles * padded_rows_a_tile(); }
  // Tiles of an arrangement; 0: there is none with this id.
  int64_t num_tiles(int64_t id) const {
    if (id < 1 || id > std::ssize(arrangements)) return 0;
    const ImageSize& tiles = arrangements[static_cast<size_t>(id - 1)];
    return tiles.height * tiles.width;
  }
};

// Whether masks are those of Meta's code (llama-models) and not of transformers: tokens before the first picture see no
// rows and pass layers that cross as they are, and tiles that are not in use are seen by none. The key of
// config.json, which no published file has, or --mllama-strict-mask, which sets it. Errors, naming file and field: it
// is no boolean.
inline constexpr const char* kMllamaStrictMask = "mllama_strict_mask";
StatusOr<bool> read_mllama_strict_mask(const ModelConfig& config);

// Reads vision_config, and preprocessor_config.json if it is there. Errors, naming file and field: kInvalidArgument: a
// value of the wrong type or range, tiles that the two files do not agree on; kUnimplemented: other channels than
// three.
StatusOr<MllamaPictures> read_mllama_pictures(const ModelConfig& config);

// The id that marks a picture in a prompt: below the vocabulary, or one of the 8 behind it that only prompts have.
// Errors, naming file and field: another id.
StatusOr<int32_t> read_mllama_image_token(const ModelConfig& config);
inline constexpr int32_t kMllamaPromptTokens = 8;

// All tiles of the tower, of which those that are not in use stand last, or are left out. Errors: those of
// read_mllama_pictures.
StatusOr<std::unique_ptr<ImageRows>> make_mllama_image_rows(const ModelConfig& config);

}  // namespace transept
