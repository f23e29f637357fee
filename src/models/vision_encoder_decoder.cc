// VisionEncoderDecoderModel: a tower that reads pictures and a decoder of text, each of a class of its own, which
// config.json names. Checkpoints: microsoft/trocr-*, nlpconnect/vit-gpt2-image-captioning. Source: transformers,
// models/vision_encoder_decoder/modeling_vision_encoder_decoder.py.
#include "models/composite.h"
#include "models/families.h"

namespace transept {
namespace {

template <typename Part>
struct PartKind {
  std::string_view model_type;
  StatusOr<std::unique_ptr<Part>> (*make)(const Json& config, const std::string& file);
};

constexpr PartKind<VisionTower> kTowers[] = {
    {"vit", make_vit_tower},
    {"deit", make_vit_tower},
    {"donut-swin", make_swin_tower},
};

constexpr PartKind<TextDecoder> kDecoders[] = {
    {"trocr", make_trocr_decoder},
    {"mbart", make_mbart_decoder},
    {"gpt2", make_gpt2_decoder},
};

// The class of one side, by the model_type of its object.
template <typename Part>
StatusOr<std::unique_ptr<Part>> make_part(const ModelConfig& config, std::string_view key,
                                          std::span<const PartKind<Part>> kinds) {
  const ConfigReader whole(config.raw, config.path + "/config.json");
  if (!whole.has(key)) return whole.error(key, "is missing");
  const Json& object = *config.raw.find(key);
  if (!object.is_object()) return whole.error(key, str_cat("expected an object, got ", object.kind_name()));
  const ConfigReader reader(object, str_cat(whole.file(), ": ", key));
  ASSIGN_OR_RETURN(const std::string model_type, reader.string("model_type"));
  std::vector<std::string> supported;
  for (const PartKind<Part>& kind : kinds) {
    if (kind.model_type == model_type) return kind.make(object, reader.file());
    supported.emplace_back(kind.model_type);
  }
  return with_param(unimplemented(reader.file(), ": model_type: \"", model_type,
                                  "\" is not supported; supported: ", join(supported, ", ")),
                    "model_type");
}

constexpr const char* kProjection = "enc_to_dec_proj";

// Rows keep the tower's width until the decoder's cross K and V are written (decision 42).
StatusOr<std::optional<Linear>> load_projection(const VisionTowerSizes& tower, const TextDecoderSizes& decoder,
                                                WeightMap& weights, const PackOptions& packing) {
  if (tower.width == decoder.width || decoder.names_cross_width) return std::optional<Linear>();
  const LinearSource source{str_cat(kProjection, ".weight"), str_cat(kProjection, ".bias"), decoder.width};
  ASSIGN_OR_RETURN(Linear projection, Linear::load(weights, {{source}, tower.width}, packing));
  return std::optional<Linear>(std::move(projection));
}

// The reference refuses an own width of the decoder's cross-attention that is not the tower's; decoders that do not
// read the field fail in their first product.
Status check_cross_width(const VisionTowerSizes& tower, const TextDecoderSizes& decoder, const std::string& file) {
  if (!decoder.names_cross_width || decoder.cross_width == tower.width) return ok_status();
  return with_param(invalid_argument(file, ": decoder: cross_attention_hidden_size: cross-attention reads rows of ",
                                     decoder.cross_width, ", and the encoder makes rows of ", tower.width),
                    "cross_attention_hidden_size");
}

}  // namespace

StatusOr<std::unique_ptr<Model>> load_vision_encoder_decoder(const ModelConfig& config,
                                                             std::shared_ptr<WeightMap> weights,
                                                             const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<VisionTower> tower, make_part<VisionTower>(config, "encoder", kTowers));
  ASSIGN_OR_RETURN(const std::unique_ptr<TextDecoder> decoder, make_part<TextDecoder>(config, "decoder", kDecoders));
  const VisionTowerSizes of_tower = tower->sizes();
  const TextDecoderSizes of_decoder = decoder->sizes();
  RETURN_IF_ERROR(check_cross_width(of_tower, of_decoder, config.path + "/config.json"));
  ASSIGN_OR_RETURN(EncoderDecoderParts parts,
                   load_sides(composite_spec("vision-encoder-decoder", of_tower, of_decoder), *tower, *decoder,
                              {"encoder.", "decoder."}, *weights, options));
  if (has_decoder(options.part)) {
    ASSIGN_OR_RETURN(parts.decoder->cross_projection, load_projection(of_tower, of_decoder, *weights, options.packing));
  } else {
    weights->ignore_below(kProjection);
  }
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
