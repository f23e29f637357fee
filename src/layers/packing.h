// How to load the matrices of a model into panels, and the report of the results. Owned by the loader; used on
// one thread, which runs tasks on the options' threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "layers/split.h"
#include "ops/packed_matrix.h"
#include "tensor/input_quantization.h"
#include "tensor/weight_format.h"
#include "weights/matrix_source.h"
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
  // What its inputs are rounded to before the product, by the names of those of its matrices that have it.
  std::vector<std::pair<std::string, InputQuantization>> inputs = {};
  PackedBytes views = {};            // in the options' pool or the mapped file: live as long as the model
  int64_t whole_n = 0, whole_k = 0;  // of the matrix before ranks divided it
};

// Narrower layers are never int8. Keys and values of narrower models are int8 only on request: rounding errors do not
// average out over so few entries, and there are few bytes to save. In int8, bart-g2p (128 wide) kept 97 % of its
// greedy answers, the bundled model (160 wide) 99.0 %: decision 12.
inline constexpr int64_t kLeastInt8Width = 192;

// Layers of a model that other stages of a pipeline have. Linear::load() gives them their shape and no weights, so that
// a stage's model has all layers, and may run its own alone.
struct LayersElsewhere {
  std::function<bool(std::string_view name)> has;  // by the name of the layer's first matrix
  bool has_output_layer = false;                   // the output layer is one of them
  std::vector<PackedLayer> layers = {};            // as PackOptions::report
  // Of address space alone.
  std::shared_ptr<PagePool> pool = std::make_shared<PagePool>(size_t{256} << 20);
};

struct PackOptions {
  // Every matrix as the checkpoint stores it, for tests.
  PackOptions(ThreadPool& workers) : threads(workers) {}  // NOLINT(google-explicit-constructor)
  PackOptions(ThreadPool& workers, std::optional<WeightFormat> matrices, std::vector<PackedLayer>* log)
      : threads(workers), storage(matrices), report(log) {}

  ThreadPool& threads;
  // What matrices are stored as: a format that has_panels(). Floats apply to matrices that are not quantised in the
  // checkpoint; of these 4-bit codes stay beside 16-bit floats, and others become float32. kBFloat16Format rounds
  // inputs too, where such products are fast (InputRounding). int4 rounds inputs in groups too; 4-bit codes of the
  // checkpoint stay, and what int4 does not hold, convolutions and narrow layers are what int8 makes of them. Unset: as
  // the checkpoint stores each, without loss; a fused product of different formats is float32.
  std::optional<WeightFormat> storage;
  // Layers with fewer inputs or outputs are never int8, and never int4 by rounding (kLeastInt8Width).
  int64_t least_int8_width = 0;
  // Take the matrices of a packed folder as they are, whatever `storage` says.
  bool as_packed = false;
  // Choose formats and take address space, and read no weight: every matrix is zero, and its pages are not in memory.
  bool sizes_only = false;
  LayersElsewhere* elsewhere = nullptr;        // null: this process has all layers
  Ranks ranks = {};                            // divide the layers that say how (LinearSpec::split)
  std::vector<PackedLayer>* report = nullptr;  // null: no report
  std::shared_ptr<PagePool> pool = std::make_shared<PagePool>(size_t{256} << 20);  // of all the model's matrices

  // Of a layer that is elsewhere. REQUIRES: elsewhere is not null.
  PackOptions of_elsewhere() const;
};

// A matrix to load: n outputs of k inputs, of which this rank keeps some.
struct MatrixToLoad {
  std::string name;      // of its first source in the checkpoint; packed folders have it by this name
  int64_t n = 0, k = 0;  // of the whole
  LayerInputs inputs = LayerInputs::kUsual;
  std::vector<IndexRange> rows = {{0, n}};  // outputs to keep, ascending, side by side in the result
  IndexRange columns = {0, k};              // inputs to keep
};

// Returns what a matrix that the checkpoint stores as `stored` is packed as. The whole decides, so that all ranks
// agree.
PackedFormat choose_format(const PackOptions& options, const MatrixToLoad& matrix, const WeightFormat& stored);

// The sources of a matrix: their outputs side by side are its.
using MatrixSources = std::vector<std::unique_ptr<MatrixSource>>;

// The numbers of sources, in order, that are one product each: 4-bit codes that stay share the groups of their inputs
// and the meaning of their codes, and where sources do not, the product is divided. One number if any is kept
// otherwise.
std::vector<size_t> divide_by_codes(const PackOptions& options, const MatrixToLoad& matrix,
                                    const MatrixSources& sources);

// Returns the matrix, packed, and reports it. Of a packed folder that has it: a view of the mapped file if its format
// is the wanted one and all of it is kept; else packed again, with the result that the original checkpoint would give.
// Of a folder that was packed for ranks: a view of this rank's part.
// Else packs the sources, on the options' threads; `open` is called for them. Sources of different formats are kept in
// float32, unless the options name a storage, and so are 4-bit codes that mean different things. int8 codes with one
// scale an output stay as they are where int8 is wanted. Weights that are rounded to int8 have the scale of the whole
// output, whatever inputs are kept. Errors: those of `open`; of a packed folder, by file and tensor: kNotFound: a
// tensor is missing; kInvalidArgument: another layout version or size, a misshapen tensor, or the wanted format needs
// values that were rounded away, or that other ranks have; kUnimplemented: ranks would divide a group of inputs that
// are rounded together.
StatusOr<PackedMatrix> load_matrix(const PackOptions& options, WeightMap& weights, const MatrixToLoad& matrix,
                                   FunctionRef<StatusOr<MatrixSources>()> open);

// "int8 58.1 MiB in 97 matrices, float32 0.1 MiB in 2 matrices; 58.2 MiB of them mapped; widened from int4-g32: 2
// matrices, 12.5 KiB to 0.1 MiB; inputs rounded as the checkpoint says: int8-token in 12 matrices".
std::string storage_text(const std::vector<PackedLayer>& layers);

}  // namespace transept
