// CogAgent: a picture is read twice. The rows of a small form are spliced into the prompt, where experts of their own
// compute them; those of a large one are crossed by every layer. Checkpoints: THUDM/cogagent-chat-hf, -vqa-hf. Source:
// their remote code, modeling_cogagent.py, visual.py, cross_visual.py.
#include <algorithm>

#include "models/cogagent_decoder.h"
#include "models/cogagent_towers.h"
#include "models/families.h"

namespace transept {
namespace {

constexpr const char *kSmallTower = "model.vision.", *kLargeTower = "model.cross_vision.", *kDecoder = "model.";

ModelSpec make_spec(const CogAgentPictures& pictures, const CogAgentDecoderConfig& decoder) {
  ModelSpec spec;
  spec.family = "cogagent";
  spec.d_model = static_cast<int32_t>(decoder.sizes.dim);
  spec.vocab_size = static_cast<int32_t>(decoder.vocab_size);
  spec.encoder_width = static_cast<int32_t>(decoder.cross_dim);
  spec.max_encoder_positions = static_cast<int32_t>(pictures.num_spliced() + pictures.num_crossed());
  spec.max_decoder_positions = static_cast<int32_t>(decoder.max_positions);
  spec.max_item_rows = static_cast<int32_t>(std::max(pictures.num_large_rows(), pictures.num_spliced()));
  spec.modalities = {"image"};
  return spec;
}

}  // namespace

StatusOr<std::unique_ptr<Model>> load_cogagent(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                               const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const CogAgentDecoderConfig decoder, read_cogagent_decoder(config));
  ASSIGN_OR_RETURN(const CogAgentSmallTowerConfig small,
                   read_cogagent_small_tower(config, decoder.sizes.dim, decoder.sizes.hidden_dim));
  ASSIGN_OR_RETURN(const CogAgentLargeTowerConfig large, read_cogagent_large_tower(config, decoder.cross_dim));
  RETURN_IF_ERROR(read_cogagent_template(config).status());
  EncoderDecoderParts parts{.spec = make_spec(small.pictures, decoder), .splices_rows = true};
  if (has_encoder(options.part)) {
    ASSIGN_OR_RETURN(parts.encoder, load_cogagent_large_tower(large, kLargeTower, *weights, options));
    ASSIGN_OR_RETURN(parts.splice_encoder, load_cogagent_small_tower(small, kSmallTower, *weights, options));
  } else {
    weights->ignore_below(kSmallTower);
    weights->ignore_below(kLargeTower);
  }
  if (has_decoder(options.part)) {
    ASSIGN_OR_RETURN(parts.decoder, load_cogagent_decoder(decoder, kDecoder, *weights, options));
  } else {
    for (const char* name : {"model.embed_tokens.", "model.layers.", "model.norm.", "lm_head."}) {
      weights->ignore_below(name);
    }
  }
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
