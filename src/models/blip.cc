// BLIP (Li et al. 2022) that writes captions: a ViT and a BERT decoder that crosses its rows. Checkpoints:
// Salesforce/blip-image-captioning-base, -large. Source: transformers, models/blip/modeling_blip.py
// (BlipForConditionalGeneration).
#include "models/composite.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_blip(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                           const ModelLoadOptions& options) {
  const std::string file = config.path + "/config.json";
  ASSIGN_OR_RETURN(const Json vision, side_of(config, "vision_config"));
  ASSIGN_OR_RETURN(const Json text, side_of(config, "text_config"));
  ASSIGN_OR_RETURN(const std::unique_ptr<VisionTower> tower, make_blip_tower(vision, file + ": vision_config"));
  DecoderContext context{.tower_width = tower->sizes().width};
  ASSIGN_OR_RETURN(context.is_tied, ConfigReader(config.raw, file).boolean("tie_word_embeddings", true));
  ASSIGN_OR_RETURN(const std::unique_ptr<TextDecoder> decoder,
                   make_blip_decoder(text, file + ": text_config", context));
  ASSIGN_OR_RETURN(EncoderDecoderParts parts,
                   load_sides(composite_spec("blip", tower->sizes(), decoder->sizes()), *tower, *decoder,
                              {"vision_model.", "text_decoder."}, *weights, options));
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
