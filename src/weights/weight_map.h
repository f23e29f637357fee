// The tensors of a checkpoint by name, mapped from safetensors files: never copied, only viewed. A layer asks for what
// it needs by name and shape and converts or packs straight from the mapping; afterwards the map says which tensors
// were not asked for.
//
// Owns the mappings: views live as long as the map. Not thread-safe (asking marks a tensor as read).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"
#include "weights/pack_tag.h"

namespace transept {

// A tensor inside a file. Data is little-endian and may be unaligned for its type: read it with the helpers below.
class MmapFile;

struct WeightView {
  std::string name;  // as the file spells it
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  const MmapFile* file = nullptr;  // whose bytes `data` views; null: memory of another owner

  int64_t num_elements() const;
};

// What a tensor is asked for.
enum class WeightUse : uint8_t {
  kRead,    // its values, now or in every step
  kPacked,  // to be packed: unused afterwards
};

class WeightMap final {
 public:
  // DIR/model.safetensors, or the shards of DIR/model.safetensors.index.json. Errors name file, tensor and reason:
  // no such file; a header over 100 MB, not JSON, or not beginning with '{'; over 100,000 tensors; offsets that are not
  // contiguous from 0 or do not end with the file; a size that is not shape x dtype; a dtype that is not
  // supported; a tensor twice; an index that names a missing shard or a tensor that its shard lacks; a shard path that
  // leaves the folder.
  static StatusOr<std::unique_ptr<WeightMap>> open(const std::string& dir);
  ~WeightMap();

  // From here on every name may also stand with this prefix in the files (BART: "model."), or without it.
  void set_optional_prefix(std::string prefix);

  // As a tensor, or as a packed matrix.
  bool contains(std::string_view name) const;

  // Marks the tensor as read. Errors: missing (names it); another shape (gives both); not a floating-point type.
  StatusOr<WeightView> get(std::string_view name, std::initializer_list<int64_t> shape,
                           WeightUse use = WeightUse::kRead);

  // What the folder says of matrices that it holds packed (decision 14); null: it is an ordinary checkpoint. The tag is
  // checked for form alone: sizes are those of tensors when they are asked for.
  const PackTag* pack_tag() const;
  // A part of one, by its exact name, as bytes. Marks the tensor as read. Errors: missing; another dtype or shape.
  StatusOr<std::span<const std::byte>> get_packed(std::string_view name, std::string_view dtype,
                                                  std::span<const int64_t> shape);

  // Every tensor that was asked for with kRead, by name.
  std::vector<WeightView> read_tensors() const;

  // The file or index that was opened, for messages.
  const std::string& source() const;

  // Elements [begin, begin + out.size()) widened to float32, read from the file and not from its mapping: for tables of
  // which a step needs a few rows. Thread-safe. REQUIRES: in range.
  void read(const WeightView& weight, int64_t begin, std::span<float> out) const;

  // The tensor was packed into memory of its own: its pages of the file leave this process's memory until a caller
  // reads them again (an embedding that shares the table).
  void release_pages(const WeightView& weight) const;

  // Knows the name without reading it: published checkpoints contain it and nothing needs it.
  void ignore(std::string_view name);

  // Tensors that nothing has read or ignored, sorted: each deserves a warning.
  std::vector<std::string> unread() const;

  size_t total_bytes() const;

  // Of the types that get() serves the one with most of the bytes; float32 where it has as many, or none has any.
  DType main_dtype() const;

 private:
  struct Impl;
  explicit WeightMap(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Widens `count` elements from element `begin` on to float32 (float32, bfloat16, float16). REQUIRES: in range.
void widen_to_float(const WeightView& weight, int64_t begin, std::span<float> out);

// The same, read from the file and not from its mapping, so that no page of it counts for this process: for tables of
// which a step needs a few rows. REQUIRES: weight.file != nullptr.
void read_to_float(const WeightView& weight, int64_t begin, std::span<float> out);

// Elements [begin, begin + count) were packed into memory of their own: their pages of the file leave this process's
// memory until they are read again.
void release_pages(const WeightView& weight, int64_t begin, int64_t count);

// Widens out.size() elements that lie at `in`, unaligned; `in` may be the last bytes of `out`.
void widen_bytes(DType dtype, const std::byte* in, std::span<float> out);

// The whole tensor as float32.
std::vector<float> to_floats(const WeightView& weight);

}  // namespace transept
