// The form of whisper.cpp's models (ggml-*.bin): 11 sizes, mel filters, the tokens of the base vocabulary, tensors. The
// bytes are untrusted: everything is checked before it is used. A pure function: thread-safe.
// Source: whisper.cpp 1.8.5, whisper_model_load; models/convert-pt-to-ggml.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/block_matrix.h"

namespace transept {

struct GgmlFile {
  // As the file names them.
  int32_t n_vocab = 0, n_audio_ctx = 0, n_audio_state = 0, n_audio_head = 0, n_audio_layer = 0;
  int32_t n_text_ctx = 0, n_text_state = 0, n_text_head = 0, n_text_layer = 0, n_mels = 0;
  int32_t ftype = 0;  // plus 1000 for each version of quantisation
  int32_t num_bins = 0;
  std::vector<float> filters;            // [n_mels, num_bins]
  std::vector<std::string_view> tokens;  // by id; bytes, not always whole characters

  struct Tensor {
    std::string_view name;
    std::vector<int64_t> shape;  // row-major: the file's dimensions in reverse
    std::string_view dtype;      // "F32", "F16", or that of its blocks
    std::optional<BlockType> blocks;
    std::span<const std::byte> data;
  };
  std::vector<Tensor> tensors;
};

// Whether the bytes begin as such a file does.
bool begins_as_ggml_file(std::span<const std::byte> bytes);

// Views live as long as `bytes`. Errors begin with `file` and name the field or tensor and the reason: no such file; a
// file that ends early; a size out of range; a token or a name of over 4096 bytes; over 10,000 tensors; a tensor of
// another type, of over 4 dimensions, or whose rows are no whole blocks.
StatusOr<GgmlFile> parse_ggml_file(std::span<const std::byte> bytes, std::string_view file);

}  // namespace transept
