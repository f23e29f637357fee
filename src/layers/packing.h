// How to pack the matrices of a model while it is loaded, and the report of the results. Owned by the loader; used on
// one thread, which runs tasks on the options' threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "ops/packed_matrix.h"
#include "tensor/weight_format.h"
#include "weights/weight_map.h"

namespace transept {

// The kind of inputs that a layer has, for storages that round them too (int8).
enum class LayerInputs : uint8_t {
  kUsual,
  kConvolution,  // over features, the first layers: inputs are rounded to 15 bits
  kOutliers,     // in some rows a few entries dwarf the others (T5's wo): those rows are rounded to 15 bits
  kRaw,          // raw samples: the layer is not quantised, and its inputs are not rounded to bfloat16
};

struct PackedLayer {
  std::string name;  // of its first matrix in the checkpoint
  PackedFormat format;
  size_t bytes = 0;
  int64_t n = 0, k = 0;
  WeightFormat stored = {};  // in the checkpoint
  bool is_mapped = false;    // a view of the packed folder's file: memory that processes share
  PackedBytes views = {};    // in the options' pool or the mapped file: live as long as the model
};

struct PackOptions {
  // Every matrix as the checkpoint stores it, for tests.
  PackOptions(ThreadPool& workers) : threads(workers) {}  // NOLINT(google-explicit-constructor)
  PackOptions(ThreadPool& workers, std::optional<WeightFormat> matrices, std::vector<PackedLayer>* log)
      : threads(workers), storage(matrices), report(log) {}

  ThreadPool& threads;
  // What matrices are stored as: a format that has_panels(). kBFloat16Format rounds inputs too, where such products
  // are fast (InputRounding). Unset: as the checkpoint stores each, without loss; a fused product of different formats
  // is float32.
  std::optional<WeightFormat> storage;
  // Layers with fewer inputs or outputs than this are never int8: rounding errors do not average out over so few, and
  // few bytes are saved.
  int64_t least_int8_width = 0;
  // Take the matrices of a packed folder as they are, whatever `storage` says.
  bool as_packed = false;
  std::vector<PackedLayer>* report = nullptr;                                      // null: no report
  std::shared_ptr<PagePool> pool = std::make_shared<PagePool>(size_t{256} << 20);  // of all the model's matrices
};

// A matrix [n, k] to pack: n outputs of k inputs.
struct MatrixToPack {
  std::string name;  // of its first part in the checkpoint
  int64_t n = 0, k = 0;
  LayerInputs inputs = LayerInputs::kUsual;
};

// Returns zeroed memory for a matrix that the checkpoint stores as `stored`, and reports it.
PackedMatrix make_packed(const PackOptions& options, const MatrixToPack& matrix, const WeightFormat& stored);

// Returns the matrix of a packed folder, and reports it: a view of the mapped file if its format is the wanted one,
// else packed again, with the result that the original checkpoint would give. Null: the checkpoint has no packed matrix
// of this name. Errors, by file and tensor: kNotFound: a tensor is missing; kInvalidArgument: another layout version or
// size, a misshapen tensor, or the wanted format needs values that were rounded away.
StatusOr<std::unique_ptr<PackedMatrix>> find_packed(const PackOptions& options, WeightMap& weights,
                                                    const MatrixToPack& matrix);

}  // namespace transept
