// The convolutions of DaViT's tower (Ding et al. 2022; transformers' Florence2VisionConfig): each stage makes its map
// of the map before it, the first one of the picture. What a tower and what counts its rows read of config.json alike.
// Values. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "core/model_config.h"
#include "core/picture_size_field.h"

namespace transept {

struct PictureConv {
  int64_t kernel = 0, stride = 0, padding = 0;  // of both sides

  // floor((side + 2 padding - kernel) / stride) + 1; 0: the kernel does not fit.
  int64_t output(int64_t side) const {
    const int64_t room = side + 2 * padding - kernel;
    return room < 0 ? 0 : room / stride + 1;
  }
  // The longest side that gives such an output.
  int64_t longest_input(int64_t output) const { return (output - 1) * stride + kernel - 2 * padding + stride - 1; }
};

inline constexpr int64_t kMaxPictureConvs = 8;

// Reads `patch_size`, `patch_stride` and `patch_padding` of a tower's object, which `reader` is of. A list that is
// absent is that of the reference's class. Errors: kInvalidArgument, naming file and field: a number out of range,
// lists of unequal lengths, a padding from half of the kernel on (a map would have rows of nothing but zeros, and
// grow).
StatusOr<std::vector<PictureConv>> read_picture_convs(const Json& object, const ConfigReader& reader);

// A list of 1 to kMaxPictureConvs whole numbers from `min` to `max`; absent: `fallback`. Errors: as above.
StatusOr<std::vector<int64_t>> read_stage_list(const Json& object, const ConfigReader& reader, std::string_view key,
                                               int64_t min, int64_t max, std::vector<int64_t> fallback);

// Whether the object has the fields of Microsoft's files, some of which have other names and places: "dim_embed" in
// place of "embed_dim".
bool is_original_davit(const Json& object);

// Reads the most rows and columns of the last map, which tables of positions have: `max_position_embeddings`, or
// `image_pos_embed.max_pos_embeddings`. Errors: as above.
StatusOr<int64_t> read_max_map_side(const Json& object, const ConfigReader& reader);

// The map behind each stage. Empty: the picture is too small for a kernel.
std::vector<PictureSize> maps_of(const std::vector<PictureConv>& convs, const PictureSize& picture);

}  // namespace transept
