// The decoders of composite models that have BART's layers: TrOCR (Li et al. 2021) and mBART alone, as Donut and Nougat
// have it. Checkpoints: microsoft/trocr-*, naver-clova-ix/donut-base*. Source: transformers,
// models/trocr/modeling_trocr.py, models/mbart/modeling_mbart.py (MBartForCausalLM).
#include "models/bart_like.h"
#include "models/bart_like_config.h"
#include "models/text_decoder.h"

namespace transept {
namespace {

constexpr std::string_view kCrossWidth = "cross_attention_hidden_size";

class BartDecoder final : public TextDecoder {
 public:
  BartDecoder(const BartLikeTraits& traits, const BartLikeConfig& config, bool names_cross_width)
      : traits_(traits), config_(config), names_cross_width_(names_cross_width) {}

  TextDecoderSizes sizes() const override {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    return {.width = i32(config_.d_model),
            .vocab_size = i32(config_.decoder.vocab_size),
            .max_positions = i32(config_.decoder.max_positions),
            .num_layers = i32(config_.decoder.layers),
            .num_heads = i32(config_.decoder.heads),
            .cross_width = i32(config_.cross_width == 0 ? config_.d_model : config_.cross_width),
            .names_cross_width = names_cross_width_};
  }

  StatusOr<Decoder> load(WeightMap& weights, const ModelLoadOptions& options) const override {
    weights.set_optional_prefix("decoder.model.");
    weights.ignore("decoder.embed_positions._float_tensor");  // older files of computed positions have it
    return load_bart_like_decoder(traits_, config_, weights, options);
  }

 private:
  const BartLikeTraits traits_;
  const BartLikeConfig config_;
  const bool names_cross_width_;
};

constexpr int64_t kMaxBartDim = 1 << 20;

}  // namespace

StatusOr<std::unique_ptr<TextDecoder>> make_trocr_decoder(const Json& config, const std::string& file) {
  const ConfigReader reader(config, file);
  BartLikeTraits traits{
      .family = "trocr",
      .norm_place = NormPlace::kAfter,
      .positions = {.kind = PositionTraits::Kind::kLearned, .sinusoid = Sinusoid::kByHalf, .offset = 2},
      .output_layer = "decoder.output_projection.weight",
  };
  ASSIGN_OR_RETURN(const bool has_norm, reader.boolean("layernorm_embedding", true));
  if (has_norm) traits.decoder_embedding_norm = EmbeddingNorm::kAfterPositions;
  ASSIGN_OR_RETURN(const bool is_learned, reader.boolean("use_learned_position_embeddings", true));
  if (!is_learned) {
    // Computed, never read: transformers leaves what files hold of them unread, too.
    traits.positions.kind = PositionTraits::Kind::kComputed;
    ASSIGN_OR_RETURN(const std::optional<int32_t> padding, reader.token_id("pad_token_id"));
    constexpr int32_t kMaxPadding = 1 << 20;
    if (padding.value_or(1) > kMaxPadding) {
      return reader.error("pad_token_id", str_cat("positions begin behind it: ", *padding, " is over ", kMaxPadding));
    }
    traits.positions.offset = padding.value_or(1) + 1;
  }
  ASSIGN_OR_RETURN(BartLikeConfig sizes, read_bart_like_decoder_config(traits, reader));
  ASSIGN_OR_RETURN(sizes.cross_width, reader.integer(kCrossWidth, 1, kMaxBartDim, 0));
  return std::unique_ptr<TextDecoder>(std::make_unique<BartDecoder>(traits, sizes, reader.has(kCrossWidth)));
}

StatusOr<std::unique_ptr<TextDecoder>> make_mbart_decoder(const Json& config, const std::string& file) {
  const ConfigReader reader(config, file);
  const BartLikeTraits traits{
      .family = "mbart",
      .norm_place = NormPlace::kBefore,
      .decoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .positions = {.kind = PositionTraits::Kind::kLearned, .offset = 2},
      .output_layer = "decoder.lm_head.weight",
  };
  ASSIGN_OR_RETURN(const BartLikeConfig sizes, read_bart_like_decoder_config(traits, reader));
  return std::unique_ptr<TextDecoder>(std::make_unique<BartDecoder>(traits, sizes, reader.has(kCrossWidth)));
}

}  // namespace transept
