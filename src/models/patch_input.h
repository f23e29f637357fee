// How a picture becomes the first rows of a ViT: patches behind tokens of their own (of the class; DeiT's of
// distillation), and learned positions of all of them. Pictures have one size. Owned by the model. Immutable after
// loading, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/picture_size_field.h"
#include "layers/embedding.h"
#include "layers/patch_embedding.h"
#include "models/encoder_input.h"

namespace transept {

class PatchInput final : public EncoderInput {
 public:
  static constexpr int64_t kChannels = 3;

  struct Options {
    PictureSize picture, patch;
    int64_t dim = 0;
    std::string projection;           // prefix of the convolution
    std::string positions;            // [1, tokens + patches, dim]
    std::vector<std::string> tokens;  // [1, 1, dim] each, before the patches

    int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
    int64_t num_positions() const {
      return num_tokens() + (picture.height / patch.height) * (picture.width / patch.width);
    }
  };

  // Errors: a missing or misshapen tensor, by name.
  static StatusOr<std::unique_ptr<EncoderInput>> load(const Options& options, WeightMap& weights,
                                                      const PackOptions& packing);

  // Features are [3, height, width].
  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override;

 private:
  PatchInput(const Options& options, PatchEmbedding patches, Embedding table)
      : picture_(options.picture),
        num_tokens_(options.num_tokens()),
        num_positions_(options.num_positions()),
        patches_(std::move(patches)),
        table_(std::move(table)) {}

  PictureView checked(const FeaturesView& features, int32_t num_positions) const;

  const PictureSize picture_;
  const int64_t num_tokens_, num_positions_;
  PatchEmbedding patches_;
  Embedding table_;  // of positions; the tokens stand in the first of them
};

}  // namespace transept
