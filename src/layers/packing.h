// How the matrices of a model are packed while it is loaded, and what came of it. Used on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ops/packed_matrix.h"
#include "tensor/dtype.h"

namespace transept {

// What a layer's inputs are like, for storages that round them too (int8).
enum class LayerInputs : uint8_t {
  kUsual,
  kOutliers,  // a few entries dwarf the others (T5's wo, convolutions over features): rounded to 15 bits
  kRaw,       // raw samples: such a layer is not quantised, and its inputs are not rounded to bfloat16
};

struct PackedLayer {
  std::string name;  // of its first matrix in the checkpoint
  WeightFormat format;
  size_t bytes = 0;
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
  std::vector<PackedLayer>* report = nullptr;                                      // null: nobody asks
  std::shared_ptr<PagePool> pool = std::make_shared<PagePool>(size_t{256} << 20);  // of all the model's matrices
};

// Memory for a matrix that the checkpoint stores as `stored`, and its line in the report.
PackedMatrix make_packed(const PackOptions& options, const std::string& name, int64_t n, int64_t k, DType stored,
                         LayerInputs inputs);

}  // namespace transept
