// The tensors that a quantised matrix consists of, asked for and checked while it is loaded. Used on one thread;
// borrows the WeightMap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/weight_map.h"

namespace transept {

// Bytes of a tensor as they lie, and the file that maps them (null: other memory).
struct StoredBytes {
  std::span<const std::byte> bytes;
  const MmapFile* file = nullptr;

  // Call when these bytes were read and are not read again: their pages leave this process's memory.
  void release(size_t begin, size_t count) const;
};

class MatrixParts final {
 public:
  MatrixParts(WeightMap& weights, WeightUse use) : weights_(weights), use_(use) {}

  bool has(std::string_view name) const { return weights_.has_tensor(name); }
  // Whether the tensor is there in this type.
  bool has(std::string_view name, std::string_view dtype) const;

  // Errors: those of WeightMap::get_bytes.
  StatusOr<StoredBytes> bytes(std::string_view name, std::string_view dtype, const std::vector<int64_t>& shape);
  // The bytes of a tensor of any type and shape. Errors: missing; another size.
  StatusOr<StoredBytes> any_bytes(std::string_view name, int64_t num_bytes);
  // float32, float16 or bfloat16, widened. Errors: missing; another type or shape; a number that is not finite.
  StatusOr<std::vector<float>> numbers(std::string_view name, const std::vector<int64_t>& shape);
  // The same for [outputs, columns], which may be written as one number for all, [1], [1, 1] or [], or with one column
  // as [outputs]. Returns [outputs, columns].
  StatusOr<std::vector<float>> scales(std::string_view name, int64_t outputs, int64_t columns);
  StatusOr<std::vector<int32_t>> words(std::string_view name, const std::vector<int64_t>& shape);  // I32
  // The group of each of k inputs, I32. Empty if the inputs lie in order, in groups of `group`. Errors: a group outside
  // [0, num_groups).
  StatusOr<std::vector<int32_t>> input_groups(std::string_view name, int64_t k, int64_t group, int64_t num_groups);

  // "FILE: tensor "NAME": REASON".
  Status error(std::string_view name, std::string_view reason) const { return weights_.tensor_error(name, reason); }

 private:
  StatusOr<WeightMap::Form> form(std::string_view name) const;

  WeightMap& weights_;
  WeightUse use_;
};

// The module of a matrix: "a.b.weight" is of "a.b". "": the name has another form.
std::string_view module_of(std::string_view name);

// The number of groups of k inputs. group 0: one. Errors: `name`'s, a group that does not divide k; more groups than
// CodedMatrix takes.
StatusOr<int64_t> count_groups(const MatrixParts& parts, std::string_view name, int64_t k, int64_t group);

}  // namespace transept
