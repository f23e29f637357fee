// The decoder of Pix2Struct: T5's (Raffel et al. 2020) in its gated form, by names of its own. RMS norms before each
// sublayer, no biases, no scale of the scores, a learned bias by distance that all layers share, an output layer of its
// own. Source: transformers, models/pix2struct/modeling_pix2struct.py (Pix2StructTextModel).
#include "models/activation_field.h"
#include "models/text_decoder.h"

namespace transept {
namespace {

constexpr const char *kTable = "decoder.embed_tokens.weight", *kOutput = "decoder.lm_head.weight";

struct Pix2StructTextConfig {
  int64_t vocab_size = 0, width = 0, inner = 0;
  int64_t layers = 0, heads = 0, head_dim = 0;
  T5Buckets buckets;
  Activation activation = Activation::kGeluTanh;
  float epsilon = 1e-6f;
  bool tied = false;
};

// The class has other names for some of its numbers.
StatusOr<int64_t> count(const ConfigReader& reader, const char* key, const char* other, int64_t max) {
  return reader.integer(reader.has(key) ? key : other, 1, max, 12);
}

// The reference projects to rows of hidden_size and cuts them in heads of d_kv: it has no meaning for another number of
// heads, nor for rows of a tower of another width.
Status check_widths(const ConfigReader& reader, const Pix2StructTextConfig& config, const DecoderContext& context) {
  if (config.heads * config.head_dim != config.width) {
    return reader.error(
        "d_kv", str_cat(config.heads, " heads of ", config.head_dim, " columns are not hidden_size, ", config.width));
  }
  if (context.tower_width == config.width) return ok_status();
  return reader.error("hidden_size", str_cat(config.width, ", and vision_config makes rows of ", context.tower_width));
}

StatusOr<Pix2StructTextConfig> read_pix2struct_decoder_config(const Json& config, const std::string& file,
                                                              const DecoderContext& context) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxHeadDim = 1024, kMaxDim = 1 << 20;
  const ConfigReader reader(config, file);
  Pix2StructTextConfig out;
  ASSIGN_OR_RETURN(out.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize, 50244));
  ASSIGN_OR_RETURN(out.width, reader.integer("hidden_size", 1, kMaxDim, 768));
  ASSIGN_OR_RETURN(out.inner, reader.integer("d_ff", 1, kMaxDim, 2048));
  ASSIGN_OR_RETURN(out.layers, count(reader, "num_layers", "num_hidden_layers", kMaxLayers));
  ASSIGN_OR_RETURN(out.heads, count(reader, "num_heads", "num_attention_heads", kMaxHeads));
  ASSIGN_OR_RETURN(out.head_dim, reader.integer("d_kv", 1, kMaxHeadDim, 64));
  RETURN_IF_ERROR(check_widths(reader, out, context));
  ASSIGN_OR_RETURN(out.buckets.num_buckets, reader.integer("relative_attention_num_buckets", 1, INT32_MAX, 32));
  ASSIGN_OR_RETURN(out.buckets.max_distance, reader.integer("relative_attention_max_distance", 1, INT32_MAX, 128));
  out.buckets.bidirectional = false;
  std::string why;
  if (!out.buckets.valid(&why)) return reader.error("relative_attention_max_distance", why);
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "dense_act_fn", "gelu_new"));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_epsilon", 0, 1, 1e-6));
  out.epsilon = static_cast<float>(epsilon);
  out.tied = context.is_tied;
  ASSIGN_OR_RETURN(const bool is_decoder, reader.boolean("is_decoder", true));
  if (!is_decoder) return reader.error("is_decoder", "false: a text model that sees what follows does not generate");
  return out;
}

class Pix2StructDecoderLoader final {
 public:
  Pix2StructDecoderLoader(const Pix2StructTextConfig& config, WeightMap& weights, const ModelLoadOptions& options)
      : config_(config), weights_(weights), packing_(options.packing), attention_(options.attention) {}

  StatusOr<Decoder> load() {
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, kTable, config_.vocab_size, config_.width));
    ASSIGN_OR_RETURN(TransformerStack layers, stack());
    // Where a tied file has an output layer, transformers takes it: equal, or not tied.
    const bool has_own = !config_.tied || weights_.contains(kOutput);
    ASSIGN_OR_RETURN(LmHead head, LmHead::load(weights_, has_own ? kOutput : kTable, config_.vocab_size, config_.width,
                                               {}, packing_));
    return Decoder{{.tokens = std::move(tokens)}, std::move(layers), std::move(head)};
  }

 private:
  StatusOr<TransformerStack> stack() {
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat("decoder.layer.", i, ".")));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(const WeightView table,
                     weights_.get("decoder.layer.0.self_attention.attention.relative_attention_bias.weight",
                                  {config_.buckets.num_buckets, config_.heads}));
    const std::vector<float> own = columns_of_rank(to_floats(table), config_.heads, packing_.ranks);
    const int64_t own_heads = std::ssize(own) / config_.buckets.num_buckets;
    parts.biases.push_back(t5_bias(config_.buckets, own, own_heads, weights_.memory()));
    ASSIGN_OR_RETURN(parts.final_norm, norm("decoder.final_layer_norm"));
    return TransformerStack::make(std::move(parts), attention_);
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    const std::string self_prefix = prefix + "self_attention.", cross_prefix = prefix + "encoder_decoder_attention.";
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(self_prefix));
    ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights_, attention_options(self_prefix), packing_));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual cross_sum, residual(cross_prefix));
    ASSIGN_OR_RETURN(CrossAttention cross, CrossAttention::load(weights_, attention_options(cross_prefix), packing_));
    layer.cross = Sublayer<CrossAttention>{std::move(cross), std::move(cross_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "mlp."));
    FeedForward::Options gated;
    gated.up = prefix + "mlp.DenseReluDense.wi_1";
    gated.gate = prefix + "mlp.DenseReluDense.wi_0";
    gated.down = prefix + "mlp.DenseReluDense.wo";
    gated.dim = config_.width;
    gated.hidden_dim = config_.inner;
    gated.activation = config_.activation;
    gated.has_biases = false;
    gated.down_inputs = LayerInputs::kOutliers;  // as of T5
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, gated, packing_));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  AttentionOptions attention_options(const std::string& prefix) const {
    AttentionOptions options;
    options.prefix = prefix + "attention";
    options.q = "query", options.k = "key", options.v = "value", options.out = "output";
    options.dim = config_.width;
    options.num_heads = config_.heads;
    options.head_dim = config_.head_dim;
    options.scale = 1;
    options.has_biases = false;
    return options;
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    return Norm::load(weights_, prefix, config_.width, {.kind = NormKind::kRms, .epsilon = config_.epsilon});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix + "layer_norm"));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  const Pix2StructTextConfig& config_;
  WeightMap& weights_;
  const PackOptions& packing_;
  const AttentionBackend& attention_;
};

class Pix2StructDecoder final : public TextDecoder {
 public:
  explicit Pix2StructDecoder(const Pix2StructTextConfig& config) : config_(config) {}

  TextDecoderSizes sizes() const override {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    return {.width = i32(config_.width),
            .vocab_size = i32(config_.vocab_size),
            .max_positions = ModelSpec::kNoLimit,  // distances have no end
            .num_layers = i32(config_.layers),
            .num_heads = i32(config_.heads),
            .cross_width = i32(config_.width)};
  }

  StatusOr<Decoder> load(WeightMap& weights, const ModelLoadOptions& options) const override {
    return Pix2StructDecoderLoader(config_, weights, options).load();
  }

 private:
  const Pix2StructTextConfig config_;
};

}  // namespace

StatusOr<std::unique_ptr<TextDecoder>> make_pix2struct_decoder(const Json& config, const std::string& file,
                                                               const DecoderContext& context) {
  ASSIGN_OR_RETURN(const Pix2StructTextConfig sizes, read_pix2struct_decoder_config(config, file, context));
  return std::unique_ptr<TextDecoder>(std::make_unique<Pix2StructDecoder>(sizes));
}

}  // namespace transept
