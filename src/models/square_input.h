// What the towers of CogAgent have in common: a square picture, whose patches stand behind a row of the class with a
// table of positions, and layers over all of them; the input computes the whole tower, as rows change in number and
// width inside. Owned by the model. Immutable after loading, so thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/embedding.h"
#include "layers/patch_embedding.h"
#include "models/encoder_decoder_model.h"

namespace transept {

class SquareInput : public EncoderInput {
 public:
  struct Options {
    int64_t side = 0, patch = 0, dim = 0;
    std::string projection;   // prefix of the convolution
    std::string token;        // of the class
    std::string positions;    // of the class and the patches
    bool is_batched = false;  // the tensors of both have a first axis of 1 more: [1, 1, dim] and [1, rows, dim]
    int64_t num_out = 0;      // rows that consumers get

    int64_t grid() const { return side / patch; }
    int64_t num_rows() const { return grid() * grid() + 1; }
  };
  struct Parts {
    PatchEmbedding patches;
    Embedding positions;  // of the class and the patches; the first has the token of the class
  };

  // Errors: a missing or misshapen tensor, by name.
  static StatusOr<Parts> load(const Options& options, WeightMap& weights, const PackOptions& packing);
  // The stack of an encoder that its input computes.
  static StatusOr<TransformerStack> one_layer(const AttentionBackend& attention);

  // Features are [3, side, side].
  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override;

 protected:
  SquareInput(const Options& options, Parts parts, TransformerStack layers);

  // Rows 1 and following of the last layer are the patches': makes what consumers get of them. x: [rows, dim]; y:
  // [num_out, any].
  virtual void finish(Context& context, const TensorView& x, const TensorView& y) const = 0;

 private:
  void run(Context& context, DType kv_dtype, const FeaturesView* features, const TensorView& y) const;

  const Options options_;
  Parts parts_;
  TransformerStack layers_;
  std::vector<int32_t> rows_;       // [rows] 0, 1, ..: of the table of positions
  std::vector<int32_t> positions_;  // [2, rows] of each row of the grid: its row, and its column; 0 of the class
};

}  // namespace transept
