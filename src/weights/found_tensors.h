// The tensors that the reader of another program's file found in it, under the names of transformers: what a WeightMap
// is made of where the folder has no checkpoint of transformers. A value.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap_file.h"
#include "weights/matrix_reader.h"
#include "weights/torch_file.h"

namespace transept {

struct FoundTensors {
  std::unique_ptr<MmapFile> file;
  // Views of `file`, or of `made`. No two of one name.
  std::vector<StoredTensor> tensors;
  // Bytes that the file does not have as they are wanted.
  std::vector<std::unique_ptr<const std::vector<std::byte>>> made;
  std::unique_ptr<MatrixReader> matrices;  // of tensors that are no floats; null: none are
  std::string quantization;                // how these are stored, for reports: "ggml q5_1"; "": there are none

  // Adds a tensor whose bytes, zeros at first, the caller writes; they stay where they are. REQUIRES: dtype is F32 or a
  // type of 16 bits, and the size has been checked.
  std::span<std::byte> make(std::string_view dtype, const std::string& name, std::vector<int64_t> shape);
};

}  // namespace transept
