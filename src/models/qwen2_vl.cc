// Qwen2-VL and Qwen2.5-VL: a tower whose rows are spliced into the prompt of a decoder that crosses nothing.
// Checkpoints: Qwen/Qwen2-VL-*-Instruct, Qwen/Qwen2.5-VL-*-Instruct, and what transformers 4 and 5 write of them.
// Source: transformers, models/{qwen2_vl,qwen2_5_vl}/modeling_*.py.
#include "models/families.h"
#include "models/qwen2_decoder.h"
#include "models/qwen2_vl_tower.h"
#include "multimodal/qwen2_vl_pictures.h"

namespace transept {
namespace {

// How a file begins the names of the two sides.
struct Names {
  const char *tower, *decoder;
};
constexpr Names kPublished = {"visual.", "model."};
constexpr Names kByClass = {"model.visual.", "model.language_model."};  // of 5.x
constexpr Names kBare = {"visual.", "language_model."};                 // of the class without an output layer

Names names_in(const WeightMap& weights) {
  for (const Names& names : {kByClass, kBare}) {
    if (weights.contains(str_cat(names.decoder, "embed_tokens.weight"))) return names;
  }
  // The decoder's tensors need not be there.
  return weights.contains(str_cat(kByClass.tower, "merger.mlp.2.weight")) ? kByClass : kPublished;
}

ModelSpec make_spec(std::string_view family, const VisionTowerSizes& tower, const Qwen2DecoderConfig& decoder) {
  ModelSpec spec;
  spec.family = family;
  spec.d_model = static_cast<int32_t>(decoder.dim);
  spec.vocab_size = static_cast<int32_t>(decoder.vocab_size);
  spec.position_axes = Qwen2DecoderConfig::kNumAxes;
  spec.max_encoder_positions = tower.num_positions;
  spec.max_decoder_positions = static_cast<int32_t>(decoder.max_positions);
  spec.max_item_rows = tower.num_rows;
  spec.encoded_for = Consumers::kNone;  // but spliced
  spec.modalities = {"image"};
  return spec;
}

StatusOr<std::unique_ptr<Model>> load(const ModelConfig& config, Qwen2VlKind kind, std::string_view family,
                                      std::shared_ptr<WeightMap> weights, const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const Qwen2DecoderConfig decoder, read_qwen2_decoder(config));
  ASSIGN_OR_RETURN(const std::unique_ptr<VisionTower> tower, make_qwen2_vl_tower(config, kind));
  RETURN_IF_ERROR(read_qwen2_vl_tokens(config).status());
  const VisionTowerSizes sizes = tower->sizes();
  if (sizes.width != decoder.dim) {
    const char* const key = kind == Qwen2VlKind::kQwen2 ? "hidden_size" : "out_hidden_size";
    return ConfigReader(config.raw, config.path + "/config.json: vision_config")
        .error(key, str_cat("rows of ", sizes.width, " do not fit among the decoder's of ", decoder.dim));
  }
  const Names names = names_in(*weights);
  EncoderDecoderParts parts{.spec = make_spec(family, sizes, decoder), .splices_rows = true};
  if (has_encoder(options.part)) {
    ASSIGN_OR_RETURN(parts.encoder, tower->load(names.tower, *weights, options));
  } else {
    weights->ignore_below(names.tower);
  }
  if (has_decoder(options.part)) {
    ASSIGN_OR_RETURN(parts.decoder, load_qwen2_decoder(decoder, names.decoder, *weights, options));
  } else {
    weights->ignore_below(names.decoder);
    weights->ignore_below("lm_head.");
  }
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace

StatusOr<std::unique_ptr<Model>> load_qwen2_vl(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                               const ModelLoadOptions& options) {
  return load(config, Qwen2VlKind::kQwen2, "qwen2_vl", std::move(weights), options);
}

StatusOr<std::unique_ptr<Model>> load_qwen2_5_vl(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                                 const ModelLoadOptions& options) {
  return load(config, Qwen2VlKind::kQwen2_5, "qwen2_5_vl", std::move(weights), options);
}

}  // namespace transept
