// The tensors of a checkpoint by name, mapped from safetensors files: never copied, only viewed. A layer asks for a
// tensor by name and shape, and converts or packs it straight from the mapping. Afterwards the map tells which tensors
// are unused.
//
// Owns the mappings: views live as long as the map. Not thread-safe (asking for a tensor marks it as read).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/weight_format.h"
#include "weights/pack_tag.h"

namespace transept {

class MmapFile;

// A tensor inside a file. Data is little-endian and may be unaligned for its type: read it with the helpers below.
struct WeightView {
  std::string name;  // as the file spells it
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  const MmapFile* file = nullptr;  // owner of the bytes of `data`; null: other memory

  int64_t num_elements() const;
};

// The purpose of asking for a tensor.
enum class WeightUse : uint8_t {
  kRead,    // its values, now or in every step
  kPacked,  // to be packed: not read afterwards
};

class WeightMap final {
 public:
  // Opens DIR/model.safetensors, or the shards of DIR/model.safetensors.index.json. Errors name file, tensor and
  // reason: no such file; a header over 100 MB, not JSON, or not beginning with '{'; over 100,000 tensors; offsets that
  // are not contiguous from 0 or do not end with the file; a size that is not shape x dtype; an unsupported dtype; a
  // repeated tensor; an index that names a missing shard or a tensor that its shard lacks; a shard path that leaves the
  // folder.
  static StatusOr<std::unique_ptr<WeightMap>> open(const std::string& dir);
  ~WeightMap();

  // From here on, a name matches with or without this prefix in the files (BART: "model.").
  void set_optional_prefix(std::string prefix);

  // Whether there is a tensor or a packed matrix of this name.
  bool contains(std::string_view name) const;

  // Marks the tensor as read. Errors: missing (names it); another shape (gives both); not a floating-point type.
  StatusOr<WeightView> get(std::string_view name, std::initializer_list<int64_t> shape,
                           WeightUse use = WeightUse::kRead);

  // What the folder says of the matrices that it holds packed (decision 14); null: an ordinary checkpoint. Only the
  // form of the tag is checked: sizes are checked when the tensors are asked for.
  const PackTag* pack_tag() const;
  // Returns a part of a packed matrix, by its exact name, as bytes. Marks the tensor as read. Errors: missing; another
  // dtype or shape.
  StatusOr<std::span<const std::byte>> get_packed(std::string_view name, std::string_view dtype,
                                                  std::span<const int64_t> shape);

  // Every tensor that was asked for with WeightUse::kRead, by name.
  std::vector<WeightView> read_tensors() const;

  // The file or index that was opened, for messages.
  const std::string& source() const;

  // Marks a known tensor that published checkpoints contain and nothing needs, so that unread() omits it.
  void ignore(std::string_view name);

  // Tensors that were neither read nor ignored, sorted: each deserves a warning.
  std::vector<std::string> unread() const;

  size_t total_bytes() const;

  // Of the formats that get() serves, the one with the most bytes; float32 if it has as many, or none has any.
  WeightFormat main_format() const;

 private:
  struct Impl;
  explicit WeightMap(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Widens out.size() elements from element `begin` on to float32 (float32, bfloat16, float16). REQUIRES: in range.
void widen_to_float(const WeightView& weight, int64_t begin, std::span<float> out);

// The same, read from the file and not from its mapping, so that no page of it counts for this process: for tables of
// which a step needs a few rows. REQUIRES: weight.file != nullptr.
void read_to_float(const WeightView& weight, int64_t begin, std::span<float> out);

// Call when elements [begin, begin + count) were packed into memory of their own. Their pages of the file leave this
// process's memory until they are read again.
void release_pages(const WeightView& weight, int64_t begin, int64_t count);

// Widens out.size() unaligned elements at `in`; `in` may be the last bytes of `out`.
void widen_bytes(DType dtype, const std::byte* in, std::span<float> out);

// How a tensor of such elements stores weights. REQUIRES: float32, bfloat16 or float16.
WeightFormat weights_of(DType dtype);

// The whole tensor as float32.
std::vector<float> to_floats(const WeightView& weight);

}  // namespace transept
