// Mllama: a tower over the tiles of pictures, whose rows some layers of the decoder cross instead of attending to
// themselves. Checkpoints: meta-llama/Llama-3.2-11B-Vision, -90B-Vision and -Instruct, and what transformers 5 writes
// of them. Source: transformers, models/mllama/modeling_mllama.py.
#include "models/families.h"
#include "models/mllama_decoder.h"
#include "models/mllama_tower.h"

namespace transept {
namespace {

// How a file begins the names of the parts.
struct Names {
  const char *tower, *projector, *decoder, *head;
};
constexpr Names kPublished = {"vision_model.", "multi_modal_projector.", "language_model.model.",
                              "language_model.lm_head."};
constexpr Names kByClass = {"model.vision_model.", "model.multi_modal_projector.", "model.language_model.",
                            "lm_head."};  // of 5.x

Names names_in(const WeightMap& weights) {
  // The tensors of either side need not be there.
  const bool is_by_class = weights.contains(str_cat(kByClass.decoder, "norm.weight")) ||
                           weights.contains(str_cat(kByClass.projector, "bias"));
  return is_by_class ? kByClass : kPublished;
}

ModelSpec make_spec(const MllamaPictures& pictures, const MllamaDecoderConfig& decoder) {
  ModelSpec spec;
  spec.family = "mllama";
  spec.d_model = static_cast<int32_t>(decoder.sizes.dim);
  spec.vocab_size = static_cast<int32_t>(decoder.vocab_size);
  spec.prompt_vocab_size = static_cast<int32_t>(decoder.vocab_size + kMllamaPromptTokens);
  spec.max_encoder_positions = static_cast<int32_t>(MllamaPictures::kMaxPictures * pictures.num_positions());
  spec.max_decoder_positions = static_cast<int32_t>(decoder.max_positions);
  spec.max_item_rows = static_cast<int32_t>(pictures.num_rows());
  spec.modalities = {"image"};
  return spec;
}

}  // namespace

StatusOr<std::unique_ptr<Model>> load_mllama(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                             const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const MllamaDecoderConfig decoder, read_mllama_decoder(config));
  ASSIGN_OR_RETURN(const MllamaTowerConfig tower, read_mllama_tower(config, decoder.sizes.dim));
  RETURN_IF_ERROR(read_mllama_image_token(config).status());
  const Names names = names_in(*weights);
  EncoderDecoderParts parts{.spec = make_spec(tower.pictures, decoder)};
  if (has_encoder(options.part)) {
    ASSIGN_OR_RETURN(parts.encoder, load_mllama_tower(tower, names.tower, names.projector, *weights, options));
  } else {
    weights->ignore_below(names.tower);
    weights->ignore_below(names.projector);
  }
  if (has_decoder(options.part)) {
    ASSIGN_OR_RETURN(parts.decoder,
                     load_mllama_decoder(decoder, names.decoder, str_cat(names.head, "weight"), *weights, options));
  } else {
    weights->ignore_below(names.decoder);
    weights->ignore_below(names.head);
  }
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
