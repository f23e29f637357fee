// T5 (Raffel et al. 2020), T5 v1.1 and Flan, mT5, umT5, ByT5, MADLAD-400: pre-norm layers with RMS norms, without any
// bias, without positions but for a learned bias of the scores by distance, and without a scale of the scores.
// Source: transformers/models/{t5,mt5,umt5}/modeling_*.py, version 4 where version 5 differs.
#include <cmath>
#include <utility>

#include "models/activation_field.h"
#include "models/encoder_decoder_model.h"
#include "models/families.h"

namespace transept {
namespace {

constexpr const char* kOutput = "lm_head.weight";

// What the members of the family disagree about.
struct Variant {
  std::string_view family;
  bool bias_in_each_layer = false;              // umT5: every layer has learned its own; others share the first's
  std::string_view feed_forward_proj = "relu";  // where config.json does not say
  bool tie_word_embeddings = true;              // the same
  bool scaled_by_transformers_5 = true;         // its output, whatever config.json says
};

struct T5Config {
  int64_t d_model = 0, d_kv = 0, d_ff = 0, num_heads = 0, vocab_size = 0;
  int64_t encoder_layers = 0, decoder_layers = 0;
  T5Buckets buckets;
  float epsilon = 1e-6f;
  Activation activation = Activation::kRelu;
  bool gated = false;
  bool tied = true;          // the output layer is the embedding
  bool scale_output = true;  // the decoder's output is multiplied by d_model^-0.5
};

// feed_forward_proj names both ("gated-gelu" means the tanh approximation); what is_gated_act and dense_act_fn say
// holds over it, as in transformers 4.
Status read_feed_forward(const ConfigReader& reader, const Variant& variant, T5Config& t5) {
  ASSIGN_OR_RETURN(const std::string proj, reader.string("feed_forward_proj", std::string(variant.feed_forward_proj)));
  constexpr std::string_view kGated = "gated-";
  t5.gated = proj.starts_with(kGated);
  const std::string name = proj == "gated-gelu" ? "gelu_new" : t5.gated ? proj.substr(kGated.size()) : proj;
  ASSIGN_OR_RETURN(t5.activation, activation_by_name(reader, "feed_forward_proj", name));
  ASSIGN_OR_RETURN(t5.gated, reader.boolean("is_gated_act", t5.gated));
  ASSIGN_OR_RETURN(const std::string dense_act_fn, reader.string("dense_act_fn", name));
  ASSIGN_OR_RETURN(t5.activation, activation_by_name(reader, "dense_act_fn", dense_act_fn));
  return ok_status();
}

// Whether the output layer is the embedding, and whether the decoder's output is scaled for it. transformers 4 does
// both where tie_word_embeddings holds. transformers 5 writes every model as tied, and keeps an output layer of its own
// where there was one; T5 says in a field of its own whether it is scaled, mT5 and umT5 always do the same.
Status read_head(const ConfigReader& reader, const Variant& variant, const WeightMap& weights, T5Config& t5) {
  ASSIGN_OR_RETURN(t5.tied, reader.boolean("tie_word_embeddings", variant.tie_word_embeddings));
  ASSIGN_OR_RETURN(t5.scale_output, reader.boolean("scale_decoder_outputs", t5.tied));
  ASSIGN_OR_RETURN(const std::string version, reader.string("transformers_version", ""));
  const bool says_scale = reader.has("scale_decoder_outputs");
  const bool is_silent_5 = version.starts_with("5.") && variant.family != "t5" && t5.tied;
  if (is_silent_5 && !says_scale) t5.scale_output = variant.scaled_by_transformers_5;
  if ((is_silent_5 || says_scale) && weights.contains(kOutput)) t5.tied = false;
  return ok_status();
}

StatusOr<T5Config> read_t5_config(const ModelConfig& config, const Variant& variant, const WeightMap& weights) {
  const ConfigReader reader(config.raw, config.path + "/config.json");
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  T5Config t5;
  ASSIGN_OR_RETURN(t5.vocab_size, reader.integer("vocab_size", 1, int64_t{1} << 31));
  ASSIGN_OR_RETURN(t5.d_model, reader.integer("d_model", 1, kMaxDim));
  ASSIGN_OR_RETURN(t5.d_kv, reader.integer("d_kv", 1, 1024));
  ASSIGN_OR_RETURN(t5.d_ff, reader.integer("d_ff", 1, kMaxDim));
  ASSIGN_OR_RETURN(t5.num_heads, reader.integer("num_heads", 1, kMaxHeads));
  ASSIGN_OR_RETURN(t5.encoder_layers, reader.integer("num_layers", 1, kMaxLayers));
  ASSIGN_OR_RETURN(t5.decoder_layers, reader.integer("num_decoder_layers", 1, kMaxLayers, t5.encoder_layers));
  ASSIGN_OR_RETURN(t5.buckets.num_buckets, reader.integer("relative_attention_num_buckets", 1, INT32_MAX, 32));
  ASSIGN_OR_RETURN(t5.buckets.max_distance, reader.integer("relative_attention_max_distance", 1, INT32_MAX, 128));
  for (const bool bidirectional : {true, false}) {
    t5.buckets.bidirectional = bidirectional;
    std::string why;
    if (!t5.buckets.valid(&why)) return reader.error("relative_attention_max_distance", why);
  }
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_epsilon", 0, 1, 1e-6));
  t5.epsilon = static_cast<float>(epsilon);
  RETURN_IF_ERROR(read_feed_forward(reader, variant, t5));
  RETURN_IF_ERROR(read_head(reader, variant, weights, t5));
  return t5;
}

class T5Loader final {
 public:
  T5Loader(const T5Config& config, const Variant& variant, WeightMap& weights, const ModelLoadOptions& options)
      : config_(config),
        variant_(variant),
        weights_(weights),
        packing_(options.packing),
        attention_(options.attention),
        part_(options.part) {
    // One table, which checkpoints hold under one of these names or all (MADLAD-400: only as the decoder's).
    for (const char* name : {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight", "shared.weight"}) {
      if (weights_.contains(name)) table_ = name;
      weights_.ignore(name);
    }
    // A table that published T5 checkpoints have and no version of the code reads.
    weights_.ignore("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");
    skip_other_part();
  }

  StatusOr<EncoderDecoderParts> load() {
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, table_, config_.vocab_size, config_.d_model));
    EncoderDecoderParts parts{.spec = spec()};
    if (has_encoder(part_)) {
      ASSIGN_OR_RETURN(TransformerStack encoder, stack("encoder", config_.encoder_layers));
      auto input = std::make_unique<TokenEncoderInput>(TokenInput{.tokens = tokens});
      parts.encoder = Encoder{std::move(input), std::move(encoder)};
    }
    if (has_decoder(part_)) {
      ASSIGN_OR_RETURN(TransformerStack decoder, stack("decoder", config_.decoder_layers));
      ASSIGN_OR_RETURN(LmHead head, lm_head());
      parts.decoder = Decoder{{.tokens = std::move(tokens)}, std::move(decoder), std::move(head)};
    }
    return parts;
  }

 private:
  // A tied output layer is packed by the name of the table, which encoders read.
  void skip_other_part() {
    if (!has_encoder(part_)) weights_.ignore_below("encoder.");
    if (has_decoder(part_)) return;
    weights_.ignore_below("decoder.");
    weights_.ignore_below(kOutput);
    weights_.ignore_below(str_cat(table_, kPackedPanels));
  }

  ModelSpec spec() const {
    ModelSpec spec;
    spec.family = variant_.family;
    spec.d_model = static_cast<int32_t>(config_.d_model);
    spec.vocab_size = static_cast<int32_t>(config_.vocab_size);
    // n_positions is the length of the training texts; distances have no end.
    spec.max_encoder_positions = spec.max_decoder_positions = ModelSpec::kNoLimit;
    for (int32_t head = 0; head < config_.num_heads; ++head) {
      spec.alignment_heads.push_back({static_cast<int32_t>(config_.decoder_layers) - 1, head});
    }
    return spec;
  }

  StatusOr<TransformerStack> stack(const std::string& side, int64_t num_layers) {
    const bool is_decoder = side == "decoder";
    StackParts parts;
    for (int64_t i = 0; i < num_layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(side, ".block.", i, ".layer."), is_decoder));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.biases, load_biases(side, num_layers));
    // The output's scale costs nothing here: it goes into the last norm, which only the output layer reads.
    const bool scales = is_decoder && config_.scale_output;
    const float scale = scales ? 1.0f / std::sqrt(static_cast<float>(config_.d_model)) : 1.0f;
    ASSIGN_OR_RETURN(parts.final_norm, norm(side + ".final_layer_norm", scale));
    return TransformerStack::make(std::move(parts), attention_);
  }

  StatusOr<LmHead> lm_head() {
    if (config_.tied) weights_.ignore(kOutput);
    return LmHead::load(weights_, config_.tied ? table_ : kOutput, config_.vocab_size, config_.d_model, {}, packing_);
  }

  StatusOr<Norm> norm(const std::string& prefix, float scale = 1) {
    const NormOptions options{.kind = NormKind::kRms, .epsilon = config_.epsilon, .scale = scale};
    return Norm::load(weights_, prefix, config_.d_model, options);
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix + ".layer_norm"));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  // prefix: "encoder.block.3.layer."
  StatusOr<TransformerLayer> layer(const std::string& prefix, bool is_decoder) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "0"));
    ASSIGN_OR_RETURN(SelfAttention self,
                     SelfAttention::load(weights_, attention_options(prefix + "0.SelfAttention"), packing_));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    if (is_decoder) {
      ASSIGN_OR_RETURN(Residual cross_sum, residual(prefix + "1"));
      ASSIGN_OR_RETURN(CrossAttention cross,
                       CrossAttention::load(weights_, attention_options(prefix + "1.EncDecAttention"), packing_));
      layer.cross = Sublayer<CrossAttention>{std::move(cross), std::move(cross_sum)};
    }
    const std::string last = prefix + (is_decoder ? "2" : "1");
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(last));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(last + ".DenseReluDense"));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  StatusOr<std::vector<DistanceBias>> load_biases(const std::string& side, int64_t num_layers) {
    T5Buckets buckets = config_.buckets;
    buckets.bidirectional = side == "encoder";
    std::vector<DistanceBias> biases;
    for (int64_t i = 0; i < (variant_.bias_in_each_layer ? num_layers : 1); ++i) {
      ASSIGN_OR_RETURN(
          const WeightView table,
          weights_.get(str_cat(side, ".block.", i, ".layer.0.SelfAttention.relative_attention_bias.weight"),
                       {buckets.num_buckets, config_.num_heads}));
      const std::vector<float> own = columns_of_rank(to_floats(table), config_.num_heads, packing_.ranks);
      biases.push_back(t5_bias(buckets, own, std::ssize(own) / buckets.num_buckets, weights_.memory()));
    }
    return biases;
  }

  // `wo` of large checkpoints overflows float16 (transformers keeps it in float32 beside float16 weights), for a few of
  // its inputs are far larger than the others.
  StatusOr<FeedForward> feed_forward(const std::string& prefix) {
    FeedForward::Options options;
    options.up = prefix + (config_.gated ? ".wi_1" : ".wi");
    options.gate = config_.gated ? prefix + ".wi_0" : "";
    options.down = prefix + ".wo";
    options.dim = config_.d_model;
    options.hidden_dim = config_.d_ff;
    options.activation = config_.activation;
    options.has_biases = false;
    options.down_inputs = LayerInputs::kOutliers;
    return FeedForward::load(weights_, options, packing_);
  }

  AttentionOptions attention_options(const std::string& prefix) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.q = "q", options.k = "k", options.v = "v", options.out = "o";
    options.dim = config_.d_model;
    options.num_heads = config_.num_heads;
    options.head_dim = config_.d_kv;
    options.scale = 1;  // the training's initial weights took the scale's place
    options.has_biases = false;
    return options;
  }

  const T5Config& config_;
  const Variant& variant_;
  WeightMap& weights_;
  const PackOptions& packing_;
  const AttentionBackend& attention_;
  const ModelPart part_;
  std::string table_ = "shared.weight";
};

StatusOr<std::unique_ptr<Model>> load(const Variant& variant, const ModelConfig& config,
                                      std::shared_ptr<WeightMap> weights, const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const T5Config t5, read_t5_config(config, variant, *weights));
  ASSIGN_OR_RETURN(EncoderDecoderParts parts, T5Loader(t5, variant, *weights, options).load());
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace

StatusOr<std::unique_ptr<Model>> load_t5(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                         const ModelLoadOptions& options) {
  return load({.family = "t5"}, config, std::move(weights), options);
}

StatusOr<std::unique_ptr<Model>> load_mt5(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                          const ModelLoadOptions& options) {
  const Variant variant{.family = "mt5",
                        .feed_forward_proj = "gated-gelu",
                        .tie_word_embeddings = false,
                        .scaled_by_transformers_5 = false};
  return load(variant, config, std::move(weights), options);
}

StatusOr<std::unique_ptr<Model>> load_umt5(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                           const ModelLoadOptions& options) {
  const Variant variant{.family = "umt5", .bias_in_each_layer = true, .feed_forward_proj = "gated-gelu"};
  return load(variant, config, std::move(weights), options);
}

}  // namespace transept
