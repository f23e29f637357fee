#include "models/composite.h"

namespace transept {

ModelSpec composite_spec(std::string_view family, const VisionTowerSizes& tower, const TextDecoderSizes& decoder) {
  ModelSpec spec;
  spec.family = family;
  spec.d_model = decoder.width;
  spec.vocab_size = decoder.vocab_size;
  spec.encoder_width = tower.width;
  spec.max_encoder_positions = tower.num_positions;
  spec.max_decoder_positions = decoder.max_positions;
  spec.max_item_rows = tower.num_rows;
  spec.modalities = {"image"};
  // As of BART: the last layer stands nearest to the choice of the token.
  for (int32_t head = 0; head < decoder.num_heads; ++head) {
    spec.alignment_heads.push_back({decoder.num_layers - 1, head});
  }
  return spec;
}

StatusOr<EncoderDecoderParts> load_sides(ModelSpec spec, const VisionTower& tower, const TextDecoder& decoder,
                                         const SideNames& names, WeightMap& weights, const ModelLoadOptions& options) {
  EncoderDecoderParts parts{.spec = std::move(spec)};
  if (has_encoder(options.part)) {
    ASSIGN_OR_RETURN(parts.encoder, tower.load(names.tower, weights, options));
  } else {
    weights.ignore_below(names.tower);
  }
  if (has_decoder(options.part)) {
    ASSIGN_OR_RETURN(parts.decoder, decoder.load(weights, options));
  } else {
    weights.ignore_below(names.decoder);
  }
  return parts;
}

StatusOr<Json> side_of(const ModelConfig& config, std::string_view key) {
  const Json* object = config.raw.find(key);
  if (object == nullptr || object->is_null()) return Json::object();
  if (object->is_object()) return *object;
  return ConfigReader(config.raw, config.path + "/config.json")
      .error(key, str_cat("expected an object, got ", object->kind_name()));
}

}  // namespace transept
