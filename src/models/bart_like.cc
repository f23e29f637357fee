#include "models/bart_like.h"

#include <cmath>

#include "models/bart_like_config.h"
#include "models/bart_like_model.h"

namespace transept {
namespace {

using Side = BartLikeConfig::Side;

// Token ids as an encoder's input.
class TokenInput final : public EncoderInput {
 public:
  explicit TokenInput(BartLikeInput input) : input_(std::move(input)) {}

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    input_.forward(context, batch.input_ids, batch.positions, x);
  }

 private:
  BartLikeInput input_;
};

class Loader final {
 public:
  Loader(const BartLikeTraits& traits, const BartLikeConfig& config, WeightMap& weights, const PackOptions& packing)
      : traits_(traits), config_(config), weights_(weights), packing_(packing) {}

  StatusOr<BartLikeParts> load(std::unique_ptr<EncoderInput> encoder_input) {
    CHECK(traits_.encodes_media == (encoder_input != nullptr));
    if (encoder_input == nullptr) {
      ASSIGN_OR_RETURN(BartLikeInput tokens, input("encoder", config_.encoder, traits_.encoder_embedding_norm));
      encoder_input = std::make_unique<TokenInput>(std::move(tokens));
    }
    ASSIGN_OR_RETURN(BartLikeInput decoder_input, input("decoder", config_.decoder, traits_.decoder_embedding_norm));
    ASSIGN_OR_RETURN(LmHead head, lm_head());
    BartLikeParts parts{spec(), std::move(encoder_input), std::move(decoder_input), {}, {}, {}, {}, {},
                        {},     std::move(head)};
    for (int64_t i = 0; i < config_.encoder.layers; ++i) {
      ASSIGN_OR_RETURN(BartLikeEncoderLayer layer, encoder_layer(str_cat("encoder.layers.", i)));
      parts.encoder_layers.push_back(std::move(layer));
    }
    for (int64_t i = 0; i < config_.decoder.layers; ++i) {
      ASSIGN_OR_RETURN(BartLikeDecoderLayer layer, decoder_layer(str_cat("decoder.layers.", i)));
      parts.decoder_layers.push_back(std::move(layer));
    }
    if (traits_.norm_place == NormPlace::kBefore) {
      ASSIGN_OR_RETURN(parts.encoder_norm, norm("encoder.layer_norm"));
      ASSIGN_OR_RETURN(parts.decoder_norm, norm("decoder.layer_norm"));
    }
    return parts;
  }

 private:
  ModelSpec spec() const {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    const Side& decoder = config_.decoder;
    const int32_t layers = i32(decoder.layers), heads = i32(decoder.heads), head_dim = i32(config_.head_dim(decoder));
    ModelSpec spec;
    spec.family = traits_.family;
    spec.d_model = i32(config_.d_model);
    spec.vocab_size = i32(decoder.vocab_size);
    if (!traits_.encodes_media) spec.encoder_vocab_size = i32(config_.encoder.vocab_size);
    spec.num_encoder_layers = i32(config_.encoder.layers);
    spec.num_decoder_layers = layers;
    spec.max_encoder_positions = i32(config_.encoder.max_positions);
    spec.max_decoder_positions = i32(decoder.max_positions);
    spec.kv = {{KvKind::kSelf, layers, heads, head_dim}, {KvKind::kCross, layers, heads, head_dim}};
    // The last layer stands nearest to the choice of the token (and is the one that Marian trains to align).
    for (int32_t head = 0; head < heads; ++head) spec.alignment_heads.push_back({layers - 1, head});
    spec.default_prompt = traits_.default_prompt;
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

  StatusOr<BartLikeInput> input(const std::string& side, const Side& sizes, EmbeddingNorm norm_place) {
    if (config_.share_embeddings) {
      for (const std::string& copy : {side + ".embed_tokens.weight", std::string("shared.weight")}) {
        weights_.ignore(copy);
      }
    }
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, token_table(side), sizes.vocab_size, config_.d_model));
    ASSIGN_OR_RETURN(Embedding positions, position_table(side + ".embed_positions", sizes.max_positions));
    BartLikeInput input{std::move(tokens), std::move(positions)};
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

  StatusOr<BartLikeEncoderLayer> encoder_layer(const std::string& prefix) {
    const Side& side = config_.encoder;
    ASSIGN_OR_RETURN(SelfAttention attention,
                     SelfAttention::load(weights_, attention_options(prefix + ".self_attn", side), packing_));
    ASSIGN_OR_RETURN(Residual attention_sum, residual(prefix + ".self_attn_layer_norm"));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix, side));
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + ".final_layer_norm"));
    return BartLikeEncoderLayer{std::move(attention), std::move(attention_sum), std::move(ffn), std::move(ffn_sum)};
  }

  StatusOr<BartLikeDecoderLayer> decoder_layer(const std::string& prefix) {
    const Side& side = config_.decoder;
    ASSIGN_OR_RETURN(SelfAttention attention,
                     SelfAttention::load(weights_, attention_options(prefix + ".self_attn", side), packing_));
    ASSIGN_OR_RETURN(Residual attention_sum, residual(prefix + ".self_attn_layer_norm"));
    ASSIGN_OR_RETURN(CrossAttention cross,
                     CrossAttention::load(weights_, attention_options(prefix + ".encoder_attn", side), packing_));
    ASSIGN_OR_RETURN(Residual cross_sum, residual(prefix + ".encoder_attn_layer_norm"));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix, side));
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + ".final_layer_norm"));
    return BartLikeDecoderLayer{std::move(attention), std::move(attention_sum), std::move(cross),
                                std::move(cross_sum), std::move(ffn),           std::move(ffn_sum)};
  }

  StatusOr<LmHead> lm_head() {
    const int64_t vocab_size = config_.decoder.vocab_size;
    std::vector<float> bias;
    if (weights_.contains("final_logits_bias")) {
      ASSIGN_OR_RETURN(const WeightView view, weights_.get("final_logits_bias", {1, vocab_size}));
      bias = to_floats(view);
    }
    const bool tied = config_.tie_word_embeddings;
    if (tied) weights_.ignore(traits_.output_layer);
    const std::string table = tied ? token_table("decoder") : std::string(traits_.output_layer);
    return LmHead::load(weights_, table, vocab_size, config_.d_model, std::move(bias), packing_);
  }

  StatusOr<LayerNorm> norm(const std::string& prefix) { return LayerNorm::load(weights_, prefix, config_.d_model); }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(LayerNorm loaded, norm(prefix));
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
};

Status check_heads(const BartLikeConfig& config, const AttentionBackend& attention) {
  for (const Side& side : {config.encoder, config.decoder}) {
    const int32_t count = static_cast<int32_t>(side.heads);
    std::string why;
    if (!attention.supports({count, count, static_cast<int32_t>(config.head_dim(side))}, &why)) {
      return unimplemented("attention backend ", attention.name(), ": ", why);
    }
  }
  return ok_status();
}

}  // namespace

StatusOr<BartLikeParts> load_bart_like_parts(const BartLikeTraits& traits, const BartLikeConfig& config,
                                             std::unique_ptr<EncoderInput> encoder_input, WeightMap& weights,
                                             const ModelLoadOptions& options) {
  RETURN_IF_ERROR(check_heads(config, options.attention));
  return Loader(traits, config, weights, options.packing).load(std::move(encoder_input));
}

StatusOr<std::unique_ptr<Model>> load_bart_like(const BartLikeTraits& traits, const ModelConfig& config,
                                                std::shared_ptr<WeightMap> weights, const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const BartLikeConfig sizes, read_bart_like_config(traits, config));
  weights->set_optional_prefix("model.");
  ASSIGN_OR_RETURN(BartLikeParts parts, load_bart_like_parts(traits, sizes, nullptr, *weights, options));
  return make_bart_like_model(std::move(parts), std::move(weights), options.attention);
}

}  // namespace transept
