// The metadata of a file of packed matrices (decision 14): the version of the layout, the storage requested when it was
// packed, and the size and format of every matrix. The matrix NAME is stored as the tensor NAME.packed, in int8
// also NAME.packed_scales and NAME.packed_sums. A value. The text is untrusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/input_quantization.h"
#include "tensor/weight_format.h"
#include "weights/safetensors.h"

namespace transept {

struct PackTag {
  struct Matrix {
    int64_t n = 0, k = 0;                  // of the whole matrix
    WeightFormat stored = kFloat32Format;  // in the checkpoint that was packed
    PackedFormat format = {};

    friend bool operator==(const Matrix&, const Matrix&) = default;
  };

  int64_t layout = 0;
  std::optional<WeightFormat> storage;  // requested for all matrices; unset: as the checkpoint stored each
  // Of whose parts of the matrices the file is. Whole matrices: rank 0 of 1.
  int32_t rank = 0, num_ranks = 1;
  // The digest of the checkpoint, 64 hexadecimal digits: files of one model tell others by it. "": not said.
  std::string source = {};
  std::map<std::string, Matrix, std::less<>> matrices;  // by the name that the layer asks for
  // What the inputs of products are rounded to, by the name that the checkpoint has for a matrix; without those that
  // are not.
  std::map<std::string, InputQuantization, std::less<>> inputs = {};

  friend bool operator==(const PackTag&, const PackTag&) = default;
};

inline constexpr int32_t kMaxPackedRanks = 1024;

inline constexpr std::string_view kPackedPanels = ".packed", kPackedScales = ".packed_scales",
                                  kPackedSums = ".packed_sums";

// The matrix that a tensor of a packed file is of: "NAME" of "NAME.packed_sums". nullopt: of none.
std::optional<std::string_view> packed_matrix_of(std::string_view tensor);

// Unset: the metadata of an ordinary checkpoint. Errors: a malformed tag, by its key.
StatusOr<std::optional<PackTag>> parse_pack_tag(const SafetensorsMetadata& metadata);
SafetensorsMetadata pack_tag_metadata(const PackTag& tag);

}  // namespace transept
