// What a file of packed matrices says of itself in its metadata (decision 14): the version of the layout, what was
// asked for when it was packed, and of every matrix its size and format. The matrix NAME is the tensors NAME.packed,
// and for int8 NAME.packed_scales and NAME.packed_sums. A value; the text is untrusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/dtype.h"
#include "weights/safetensors.h"

namespace transept {

struct PackTag {
  struct Matrix {
    int64_t n = 0, k = 0;
    DType stored = DType::kFloat32;  // by the checkpoint that was packed
    DType storage = DType::kFloat32;
    bool wide_inputs = false, only_outliers = false, bfloat16_inputs = false;  // ops/packed_matrix.h: WeightFormat

    friend bool operator==(const Matrix&, const Matrix&) = default;
  };

  int64_t layout = 0;
  std::optional<DType> storage;  // what all matrices were asked to be; unset: as the checkpoint stored each
  std::map<std::string, Matrix, std::less<>> matrices;  // by the name that its layer knows

  friend bool operator==(const PackTag&, const PackTag&) = default;
};

inline constexpr std::string_view kPackedPanels = ".packed", kPackedScales = ".packed_scales",
                                  kPackedSums = ".packed_sums";

// Unset: the metadata of an ordinary checkpoint. Errors: a tag that is not written like one, by its key.
StatusOr<std::optional<PackTag>> parse_pack_tag(const SafetensorsMetadata& metadata);
SafetensorsMetadata pack_tag_metadata(const PackTag& tag);

}  // namespace transept
