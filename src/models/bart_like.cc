#include "models/bart_like.h"

#include <cmath>

#include "models/bart_like_config.h"
#include "models/encoder_decoder_model.h"

namespace transept {
namespace {

using Side = BartLikeConfig::Side;

class BartLikeLoader final {
 public:
  BartLikeLoader(const BartLikeTraits& traits, const BartLikeConfig& config, WeightMap& weights,
                 const ModelLoadOptions& options)
      : traits_(traits),
        config_(config),
        weights_(weights),
        packing_(options.packing),
        attention_(options.attention),
        part_(options.part) {}

  StatusOr<EncoderDecoderParts> load(std::unique_ptr<EncoderInput> encoder_input) {
    CHECK(encoder_input != nullptr || !traits_.encodes_media || !has_encoder(part_));
    skip_other_part();
    EncoderDecoderParts parts{.spec = spec()};
    if (has_encoder(part_)) {
      ASSIGN_OR_RETURN(parts.encoder, encoder(std::move(encoder_input)));
    }
    if (has_decoder(part_)) {
      ASSIGN_OR_RETURN(parts.decoder, decoder());
    }
    return parts;
  }

  StatusOr<Decoder> decoder() {
    ASSIGN_OR_RETURN(TokenInput tokens, input("decoder", config_.decoder, traits_.decoder_embedding_norm));
    ASSIGN_OR_RETURN(LmHead head, lm_head());
    ASSIGN_OR_RETURN(TransformerStack layers, stack("decoder", config_.decoder));
    return Decoder{std::move(tokens), std::move(layers), std::move(head)};
  }

  StatusOr<TokenInput> encoder_tokens() { return input("encoder", config_.encoder, traits_.encoder_embedding_norm); }

 private:
  // A tied output layer is packed by the name of the table, which encoders may read.
  void skip_other_part() {
    if (!has_encoder(part_)) weights_.ignore_below("encoder.");
    if (has_decoder(part_)) return;
    weights_.ignore_below("decoder.");
    weights_.ignore_below(traits_.output_layer);
    weights_.ignore(traits_.output_bias);
    if (config_.tie_word_embeddings) weights_.ignore_below(str_cat(token_table("decoder"), kPackedPanels));
  }

  StatusOr<Encoder> encoder(std::unique_ptr<EncoderInput> media) {
    if (media == nullptr) {
      ASSIGN_OR_RETURN(TokenInput tokens, encoder_tokens());
      media = std::make_unique<TokenEncoderInput>(std::move(tokens));
    }
    ASSIGN_OR_RETURN(TransformerStack layers, stack("encoder", config_.encoder));
    return Encoder{std::move(media), std::move(layers)};
  }

  ModelSpec spec() const {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    const Side& decoder = config_.decoder;
    ModelSpec spec;
    spec.family = traits_.family;
    spec.d_model = i32(config_.d_model);
    spec.vocab_size = i32(decoder.vocab_size);
    if (!traits_.encodes_media) spec.encoder_vocab_size = i32(config_.encoder.vocab_size);
    spec.max_encoder_positions = i32(config_.encoder.max_positions);
    spec.max_decoder_positions = i32(decoder.max_positions);
    // The last layer stands nearest to the choice of the token (and is the one that Marian trains to align).
    for (int32_t head = 0; head < decoder.heads; ++head) {
      spec.alignment_heads.push_back({i32(decoder.layers) - 1, head});
    }
    return spec;
  }

  // The table that tokens of one side are read from. A tied checkpoint holds it under one of its names, or copies
  // under all of them, which are the same: published files were written by several generations of tools. Where nothing
  // is tied a side's own table goes before the shared one.
  std::string token_table(const std::string& side) const {
    std::string own = side + ".embed_tokens.weight", shared = "shared.weight";
    const std::string output(traits_.output_layer);
    std::vector<std::string> names = {own};
    if (!config_.share_embeddings) {
      if (config_.tie_word_embeddings && side == "decoder") names.push_back(output);
    } else if (config_.tie_word_embeddings) {
      names = {shared, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", output};
    } else {
      names.push_back(shared);
    }
    for (const std::string& name : names) {
      if (weights_.contains(name)) return name;
    }
    return config_.share_embeddings ? shared : own;
  }

  StatusOr<TokenInput> input(const std::string& side, const Side& sizes, EmbeddingNorm norm_place) {
    if (config_.share_embeddings) {
      for (const std::string& copy : {side + ".embed_tokens.weight", std::string("shared.weight")}) {
        weights_.ignore(copy);
      }
    }
    weights_.ignore(side + ".version");  // fairseq's: older files have it, and no version of the code reads it
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, token_table(side), sizes.vocab_size, config_.d_model));
    ASSIGN_OR_RETURN(Embedding positions, position_table(side + ".embed_positions", sizes.max_positions));
    TokenInput input{std::move(tokens), std::move(positions)};
    input.position_offset = traits_.positions.offset;
    input.scale = config_.embedding_scale();
    input.norm_place = norm_place;
    if (norm_place != EmbeddingNorm::kNone) {
      ASSIGN_OR_RETURN(input.norm, norm(side + ".layernorm_embedding"));
    }
    return input;
  }

  StatusOr<Embedding> position_table(const std::string& prefix, int64_t max_positions) {
    const PositionTraits& positions = traits_.positions;
    const int64_t rows = max_positions + positions.offset;
    const std::string name = prefix + ".weight";
    // M2M100's older files hold a buffer of this name.
    if (positions.kind == PositionTraits::Kind::kComputed) weights_.ignore(prefix + ".weights");
    const bool is_read = positions.kind == PositionTraits::Kind::kLearned ||
                         (positions.kind == PositionTraits::Kind::kStored && weights_.contains(name));
    if (is_read) return Embedding::load(weights_, name, rows, config_.d_model);
    return Embedding::sinusoidal(SinusoidalRows(positions.sinusoid, config_.d_model), rows);
  }

  StatusOr<TransformerStack> stack(const std::string& side, const Side& sizes) {
    StackParts parts;
    for (int64_t i = 0; i < sizes.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(side, ".layers.", i), sizes, side == "decoder"));
      parts.layers.push_back(std::move(loaded));
    }
    if (traits_.norm_place == NormPlace::kBefore) {
      ASSIGN_OR_RETURN(parts.final_norm, norm(side + ".layer_norm"));
    }
    return TransformerStack::make(std::move(parts), attention_);
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix, const Side& side, bool crosses) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(SelfAttention self,
                     SelfAttention::load(weights_, attention_options(prefix + ".self_attn", side), packing_));
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + ".self_attn_layer_norm"));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    if (crosses) {
      AttentionOptions options = attention_options(prefix + ".encoder_attn", side);
      options.kv_dim = config_.cross_width;
      ASSIGN_OR_RETURN(CrossAttention cross, CrossAttention::load(weights_, options, packing_));
      ASSIGN_OR_RETURN(Residual cross_sum, residual(prefix + ".encoder_attn_layer_norm"));
      layer.cross = Sublayer<CrossAttention>{std::move(cross), std::move(cross_sum)};
    }
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix, side));
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + ".final_layer_norm"));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  StatusOr<LmHead> lm_head() {
    const int64_t vocab_size = config_.decoder.vocab_size;
    std::vector<float> bias;
    if (weights_.contains(traits_.output_bias)) {
      ASSIGN_OR_RETURN(const WeightView view, weights_.get(traits_.output_bias, {1, vocab_size}));
      bias = to_floats(view);
    }
    const bool tied = config_.tie_word_embeddings;
    if (tied) weights_.ignore(traits_.output_layer);
    const std::string table = tied ? token_table("decoder") : std::string(traits_.output_layer);
    return LmHead::load(weights_, table, vocab_size, config_.d_model, std::move(bias), packing_);
  }

  StatusOr<Norm> norm(const std::string& prefix) { return Norm::load(weights_, prefix, config_.d_model, {}); }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), traits_.norm_place};
  }

  StatusOr<FeedForward> feed_forward(const std::string& prefix, const Side& side) {
    return FeedForward::load(
        weights_, {prefix + ".fc1", prefix + ".fc2", config_.d_model, side.ffn_dim, config_.activation}, packing_);
  }

  AttentionOptions attention_options(const std::string& prefix, const Side& side) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.dim = config_.d_model;
    options.num_heads = side.heads;
    options.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim(side)));
    options.k_has_bias = traits_.k_has_bias;
    return options;
  }

  const BartLikeTraits& traits_;
  const BartLikeConfig& config_;
  WeightMap& weights_;
  const PackOptions& packing_;
  const AttentionBackend& attention_;
  const ModelPart part_;
};

}  // namespace

StatusOr<EncoderDecoderParts> load_bart_like_parts(const BartLikeTraits& traits, const BartLikeConfig& config,
                                                   std::unique_ptr<EncoderInput> encoder_input, WeightMap& weights,
                                                   const ModelLoadOptions& options) {
  return BartLikeLoader(traits, config, weights, options).load(std::move(encoder_input));
}

StatusOr<TokenInput> load_bart_like_encoder_tokens(const BartLikeTraits& traits, const BartLikeConfig& config,
                                                   WeightMap& weights, const ModelLoadOptions& options) {
  return BartLikeLoader(traits, config, weights, options).encoder_tokens();
}

StatusOr<Decoder> load_bart_like_decoder(const BartLikeTraits& traits, const BartLikeConfig& config, WeightMap& weights,
                                         const ModelLoadOptions& options) {
  return BartLikeLoader(traits, config, weights, options).decoder();
}

StatusOr<std::unique_ptr<Model>> load_bart_like(const BartLikeTraits& traits, const ModelConfig& config,
                                                std::shared_ptr<WeightMap> weights, const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const BartLikeConfig sizes, read_bart_like_config(traits, config));
  weights->set_optional_prefix("model.");
  ASSIGN_OR_RETURN(EncoderDecoderParts parts, load_bart_like_parts(traits, sizes, nullptr, *weights, options));
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
