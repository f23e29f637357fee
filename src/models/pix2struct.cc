// Pix2Struct (Lee et al. 2023): a tower over patches of pictures of any proportions, and a decoder with T5's layers.
// Checkpoints: google/pix2struct-*; google/deplot and google/matcha-*, which are of the same class, draw their
// questions over the picture. Source: transformers, models/pix2struct/modeling_pix2struct.py.
#include "models/composite.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_pix2struct(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                                 const ModelLoadOptions& options) {
  const std::string file = config.path + "/config.json";
  ASSIGN_OR_RETURN(const Json vision, side_of(config, "vision_config"));
  ASSIGN_OR_RETURN(const Json text, side_of(config, "text_config"));
  ASSIGN_OR_RETURN(const std::unique_ptr<VisionTower> tower, make_pix2struct_tower(vision, file + ": vision_config"));
  // That of the top level holds, whatever text_config says.
  DecoderContext context{.tower_width = tower->sizes().width};
  ASSIGN_OR_RETURN(context.is_tied, ConfigReader(config.raw, file).boolean("tie_word_embeddings", false));
  ASSIGN_OR_RETURN(const std::unique_ptr<TextDecoder> decoder,
                   make_pix2struct_decoder(text, file + ": text_config", context));
  ModelSpec spec = composite_spec("pix2struct", tower->sizes(), decoder->sizes());
  ASSIGN_OR_RETURN(EncoderDecoderParts parts,
                   load_sides(std::move(spec), *tower, *decoder, {"encoder.", "decoder."}, *weights, options));
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
