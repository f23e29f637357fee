// The tensors of a checkpoint by name, mapped from safetensors files or files of torch.save: viewed, and not copied. A
// layer asks for a tensor, or for a matrix in whatever form the checkpoint has it, by name and shape, and converts or
// packs it straight from the mapping. Afterwards the map tells which tensors are unused. A tensor of torch.save whose
// elements do not lie in row-major order is gathered into memory of the map when it is asked for, except a matrix that
// is packed, whose rows are gathered on their way, and a large transposed table, whose rows are gathered when they are
// first read.
//
// Owns the mappings: views and sources live as long as the map. Not thread-safe (asking for a tensor marks it as read).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "tensor/device.h"
#include "tensor/weight_format.h"
#include "weights/checkpoint_files.h"
#include "weights/found_tensors.h"
#include "weights/matrix_reader.h"
#include "weights/matrix_source.h"
#include "weights/pack_tag.h"
#include "weights/safetensors.h"
#include "weights/weight_view.h"

namespace transept {

class WeightMap final {
 public:
  // Opens the files of find_checkpoint(): safetensors, or files of torch.save. Errors name file, tensor and reason:
  // those of find_checkpoint(), parse_safetensors() and parse_torch_file(); over kMaxCheckpointTensors tensors; a
  // tensor that stands in two files; one that its shard lacks; a packed file whose tag tells another rank than its
  // name.
  static StatusOr<std::unique_ptr<WeightMap>> open(const std::string& dir, const ReadingRank& reader = {});
  // Of what a reader of another format found. Errors: a name that is there twice.
  static StatusOr<std::unique_ptr<WeightMap>> of(FoundTensors found);
  ~WeightMap();

  // The memory that layers put in what they read here. Not the files' own: views and sources are the host's.
  DeviceMemory& memory() const;
  void set_memory(DeviceMemory& memory);  // before anything is loaded; the default is the host's

  // What gathers tensors from here on. Borrowed; null, the default: the calling thread alone.
  void set_threads(ThreadPool* threads);

  // From here on, a name matches with or without this prefix in the files (BART: "model.").
  void set_optional_prefix(std::string prefix);

  // How this checkpoint stores matrices that are no tensors of floats. At most one, before the first matrix is asked
  // for.
  void set_matrix_reader(std::unique_ptr<MatrixReader> reader);

  // Whether there is a tensor or a matrix of this name, in any form.
  bool contains(std::string_view name) const;
  // Whether the matrix reader has this matrix.
  bool is_quantized(std::string_view name) const;
  // Whether there is a tensor of this name, of any type.
  bool has_tensor(std::string_view name) const;

  // A tensor as its file has it.
  struct Form {
    std::string_view name;   // as the file spells it
    std::string_view dtype;  // as safetensors spells it
    std::span<const int64_t> shape;
    std::span<const std::byte> data;  // of a dense tensor; where its file maps it
    const MmapFile* file = nullptr;   // never null
  };
  // Returns what a tensor is, for who decides by it which tensors to ask for. Unset: there is none. Marks nothing.
  std::optional<Form> form_of(std::string_view name) const;
  // kInvalidArgument "FILE: tensor "NAME": REASON", of a tensor or of one that is missing.
  Status tensor_error(std::string_view name, std::string_view reason) const;

  // Marks the tensor as read. Errors: missing (names it); another shape (gives both); not a floating-point type.
  StatusOr<WeightView> get(std::string_view name, std::initializer_list<int64_t> shape,
                           WeightUse use = WeightUse::kRead);

  // A matrix as a source: of the matrix reader if it has this name, else of the tensor. shape: the tensor's, whose
  // first axis is n and whose others are together k. Marks the tensors that it reads. Errors: those of get(), or the
  // reader's.
  StatusOr<std::unique_ptr<MatrixSource>> matrix(std::string_view name, std::initializer_list<int64_t> shape,
                                                 WeightUse use);

  // What the checkpoint rounds the k inputs of the product with this matrix to: its matrix reader says it, unless
  // inputs are not rounded; or the packed folder, always, as its matrices are divided by it. Nothing for a matrix of
  // floats. Errors: the reader's.
  StatusOr<InputQuantization> inputs_of(std::string_view name, int64_t k);
  // Whether inputs are rounded as the checkpoint says; true by default. Set before anything is loaded.
  bool rounds_inputs() const;
  void set_rounds_inputs(bool follows_checkpoint);

  // What the folder says of the matrices that it holds packed (decision 14); null: an ordinary checkpoint. Only the
  // form of the tag is checked: sizes are checked when the tensors are asked for.
  const PackTag* pack_tag() const;
  // Returns a tensor of any type as it lies: a part of a packed matrix, codes. Marks the tensor as read. dtype: as
  // safetensors spells it ("I32"). Errors: missing; another dtype or shape.
  StatusOr<std::span<const std::byte>> get_bytes(std::string_view name, std::string_view dtype,
                                                 std::span<const int64_t> shape, WeightUse use = WeightUse::kPacked);

  // A matrix of the matrix reader that was asked for with WeightUse::kRead.
  struct ReadMatrix {
    std::string name;  // as it was asked for
    std::unique_ptr<MatrixSource> source;
  };
  // All of them, by name, opened once more. Errors: those of matrix().
  StatusOr<std::vector<ReadMatrix>> read_matrices();

  // Every tensor that was asked for with WeightUse::kRead, by name, but those that a matrix reader asked for. All of
  // them are gathered.
  std::vector<SafetensorsTensor> read_tensors();

  // The file or index that was opened, for messages.
  const std::string& source() const;

  // Marks a known tensor that published checkpoints contain and nothing needs, so that unread() omits it.
  void ignore(std::string_view name);

  // The same for every tensor that is `wanted`, by the file's spelling.
  void ignore_where(FunctionRef<bool(std::string_view name)> wanted);

  // The same for every tensor whose name begins with `beginning`, with the optional prefix before it or not: those of a
  // part of the model that is not loaded. A tensor that is asked for is read all the same.
  void ignore_below(std::string_view beginning);

  // Tensors that were neither read nor ignored, sorted: each deserves a warning.
  std::vector<std::string> unread() const;

  // A tensor of any type, and the first of its bytes, its elements in row-major order.
  struct Sample {
    std::string_view name;
    std::string_view dtype;  // as safetensors spells it
    std::span<const int64_t> shape;
    std::span<const std::byte> bytes;
  };
  // Calls `take` for each tensor whose name is `wanted`, in order of names, with at most `max_bytes` of it. Reads no
  // more of the files than that, and marks nothing as read. A sample is valid during the call.
  void visit_samples(size_t max_bytes, FunctionRef<bool(std::string_view name)> wanted,
                     FunctionRef<void(const Sample&)> take) const;

  size_t total_bytes() const;

  // Of the formats that get() serves, the one with the most bytes; float32 if it has as many, or none has any.
  WeightFormat main_format() const;

 private:
  struct Impl;
  explicit WeightMap(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept
