// How the matrices of a model are packed while it is loaded, and what came of it. Used on one thread.
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
#include "tensor/dtype.h"
#include "weights/weight_map.h"

namespace transept {

// What a layer's inputs are like, for storages that round them too (int8).
enum class LayerInputs : uint8_t {
  kUsual,
  kConvolution,  // over features, where everything begins: rounded to 15 bits
  kOutliers,     // in some rows a few entries dwarf the others (T5's wo): those rows are rounded to 15 bits
  kRaw,          // raw samples: such a layer is not quantised, and its inputs are not rounded to bfloat16
};

struct PackedLayer {
  std::string name;  // of its first matrix in the checkpoint
  WeightFormat format;
  size_t bytes = 0;
  int64_t n = 0, k = 0;
  DType stored = DType::kFloat32;  // by the checkpoint
  bool is_mapped = false;          // the folder held it packed: no memory of this process alone
  PackedBytes views = {};          // of the options' pool, or of the mapped file: they live as long as the model
};

struct PackOptions {
  // Every matrix as the checkpoint stores it: what a test wants.
  PackOptions(ThreadPool& workers) : threads(workers) {}  // NOLINT(google-explicit-constructor)
  PackOptions(ThreadPool& workers, std::optional<DType> matrices, std::vector<PackedLayer>* log)
      : threads(workers), storage(matrices), report(log) {}

  ThreadPool& threads;
  // What matrices are kept in: kFloat32, kBFloat16 (inputs too, where products in it are fast: WeightFormat), kFloat16,
  // kInt8. Unset: as the checkpoint stores each, which loses nothing and costs no byte more.
  std::optional<DType> storage;
  // Layers with fewer inputs or outputs than this are never int8: rounding errors do not average out over so few, and
  // there are few bytes to save.
  int64_t least_int8_width = 0;
  // Of a folder that holds matrices packed: each is taken as it is, whatever `storage` would make of it.
  bool as_packed = false;
  std::vector<PackedLayer>* report = nullptr;                                      // null: no report
  std::shared_ptr<PagePool> pool = std::make_shared<PagePool>(size_t{256} << 20);  // of all the model's matrices
};

// A matrix on its way into memory.
struct MatrixToPack {
  std::string name;  // of its first part in the checkpoint
  int64_t n = 0, k = 0;
  LayerInputs inputs = LayerInputs::kUsual;
};

// Memory for a matrix that the checkpoint stores as `stored`, and its line in the report.
PackedMatrix make_packed(const PackOptions& options, const MatrixToPack& matrix, DType stored);

// The matrix where the folder holds it packed: a view of the mapped file where the format is the one wanted, else
// packed anew, which gives what the checkpoint would have given. Null: the folder has none of this name. Errors, by
// file and tensor: another layout or size; a tensor is missing or misshapen; the values that were rounded away are
// wanted.
StatusOr<std::unique_ptr<PackedMatrix>> find_packed(const PackOptions& options, WeightMap& weights,
                                                    const MatrixToPack& matrix);

}  // namespace transept
