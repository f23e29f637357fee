// T5 (Raffel et al. 2020), T5 v1.1 and Flan, mT5, umT5, ByT5, MADLAD-400: pre-norm layers with RMS norms, without any
// bias, without positions but for a learned bias of the scores by distance, and without a scale of the scores.
// Source: transformers/models/{t5,mt5,umt5}/modeling_*.py, version 4 where version 5 differs.
#include <cmath>
#include <cstring>
#include <optional>

#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/feed_forward.h"
#include "layers/rms_norm.h"
#include "models/activation_field.h"
#include "models/families.h"

namespace transept {
namespace {

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
  if ((is_silent_5 || says_scale) && weights.contains("lm_head.weight")) t5.tied = false;
  return ok_status();
}

StatusOr<T5Config> read_config(const ModelConfig& config, const Variant& variant, const WeightMap& weights) {
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

struct EncoderLayer {
  RmsNorm attention_norm;
  SelfAttention attention;
  RmsNorm feed_forward_norm;
  FeedForward feed_forward;
};

struct DecoderLayer {
  RmsNorm attention_norm;
  SelfAttention attention;
  RmsNorm cross_norm;
  CrossAttention cross;
  RmsNorm feed_forward_norm;
  FeedForward feed_forward;
};

// The encoder or the decoder. biases: one a layer, or one for all.
template <class Layer>
struct Stack {
  std::vector<Layer> layers;
  std::vector<DistanceBias> biases;
  RmsNorm final_norm;

  AttentionBias bias(size_t layer) const { return biases[biases.size() == 1 ? 0 : layer].bias(); }
};

class T5 final : public Model {
 public:
  T5(std::string_view family, const T5Config& config, std::shared_ptr<WeightMap> weights,
     const AttentionBackend& attention, Embedding tokens, Stack<EncoderLayer> encoder, Stack<DecoderLayer> decoder,
     LmHead lm_head)
      : weights_(std::move(weights)),
        attention_(attention),
        tokens_(std::move(tokens)),
        encoder_(std::move(encoder)),
        decoder_(std::move(decoder)),
        lm_head_(std::move(lm_head)) {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    const int32_t layers = i32(config.decoder_layers), heads = i32(config.num_heads), head_dim = i32(config.d_kv);
    spec_.family = family;
    spec_.d_model = i32(config.d_model);
    spec_.vocab_size = i32(config.vocab_size);
    spec_.num_encoder_layers = i32(config.encoder_layers);
    spec_.num_decoder_layers = layers;
    // n_positions is the length of the training texts; distances have no end.
    spec_.max_encoder_positions = spec_.max_decoder_positions = ModelSpec::kNoLimit;
    spec_.kv = {{KvKind::kSelf, layers, heads, head_dim}, {KvKind::kCross, layers, heads, head_dim}};
    for (int32_t head = 0; head < heads; ++head) spec_.alignment_heads.push_back({layers - 1, head});
  }

  const ModelSpec& spec() const override { return spec_; }
  const LmHead& lm_head() const override { return lm_head_; }

  void encode(Context& context, const EncodeBatch& batch, LayerRange range, EncodeState& state) const override {
    Arena::Scope scope(context.arena);
    const TensorView& x = state.hidden;
    const TensorView normed = context.arena.tensor(DType::kFloat32, {x.dim(0), x.dim(1)});
    DCHECK(state.next_layer == range.begin, "slices of an encode come in order");
    if (range.begin == 0) tokens_.look_up(context, batch.input_ids, 0, 1.0f, x);
    for (int32_t i = range.begin; i < range.end; ++i) {
      const EncoderLayer& layer = encoder_.layers[static_cast<size_t>(i)];
      const AttentionBias bias = encoder_.bias(static_cast<size_t>(i));
      layer.attention_norm.forward(context, x, normed);
      layer.attention.forward(context, attention_, AttentionType::kEncoder, batch.attention, {}, normed, x, x, &bias);
      layer.feed_forward_norm.forward(context, x, normed);
      layer.feed_forward.forward(context, normed, x, x);
    }
    if (range.end == spec_.num_encoder_layers) encoder_.final_norm.forward(context, x, x);
    state.next_layer = range.end;
  }

  void write_cross_kv(Context& context, const EncoderOutput& output, const AttentionMetadata& cross, const KvCaches& kv,
                      LayerRange range) const override {
    for (int32_t i = range.begin; i < range.end; ++i) {
      const size_t layer = static_cast<size_t>(i);
      decoder_.layers[layer].cross.write_kv(context, attention_, cross, kv.cross_layers[layer], output.hidden);
    }
  }

  void decode(Context& context, const ForwardBatch& batch, LayerRange range, const TensorView& hidden) const override {
    Arena::Scope scope(context.arena);
    const TensorView x = context.arena.tensor(DType::kFloat32, {batch.num_tokens(), spec_.d_model});
    const TensorView normed = context.arena.tensor(DType::kFloat32, {batch.num_tokens(), spec_.d_model});
    tokens_.look_up(context, batch.input_ids, 0, 1.0f, x);
    for (int32_t i = range.begin; i < range.end; ++i) {
      const size_t l = static_cast<size_t>(i);
      const DecoderLayer& layer = decoder_.layers[l];
      const AttentionBias bias = decoder_.bias(l);
      layer.attention_norm.forward(context, x, normed);
      layer.attention.forward(context, attention_, AttentionType::kDecoder, batch.self, batch.kv.self_layers[l], normed,
                              x, x, &bias);
      layer.cross_norm.forward(context, x, normed);
      LayerCapture capture(batch.capture, i);
      layer.cross.forward(context, attention_, batch.cross, batch.kv.cross_layers[l], normed, x, x, capture.get());
      layer.feed_forward_norm.forward(context, x, normed);
      layer.feed_forward.forward(context, normed, x, x);
    }
    if (context.dry_run) return;
    for (size_t i = 0; i < batch.logits_rows.size(); ++i) {
      std::memcpy(hidden.row(static_cast<int64_t>(i)), x.row(batch.logits_rows[i]),
                  static_cast<size_t>(spec_.d_model) * sizeof(float));
    }
    decoder_.final_norm.forward(context, hidden, hidden);
  }

 private:
  std::shared_ptr<WeightMap> weights_;  // the embedding reads it
  const AttentionBackend& attention_;
  ModelSpec spec_;
  Embedding tokens_;
  Stack<EncoderLayer> encoder_;
  Stack<DecoderLayer> decoder_;
  LmHead lm_head_;
};

class T5Loader final {
 public:
  T5Loader(const T5Config& config, bool bias_in_each_layer, WeightMap& weights, const PackOptions& packing)
      : config_(config), bias_in_each_layer_(bias_in_each_layer), weights_(weights), packing_(packing) {
    // One table, which checkpoints hold under one of these names or all (MADLAD-400: only as the decoder's).
    for (const char* name : {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight", "shared.weight"}) {
      if (weights_.contains(name)) table_ = name;
      weights_.ignore(name);
    }
    // A table that published T5 checkpoints have and no version of the code reads.
    weights_.ignore("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");
  }

  StatusOr<Embedding> tokens() { return Embedding::load(weights_, table_, config_.vocab_size, config_.d_model); }

  StatusOr<Stack<EncoderLayer>> encoder() {
    std::vector<EncoderLayer> layers;
    for (int64_t i = 0; i < config_.encoder_layers; ++i) {
      ASSIGN_OR_RETURN(EncoderLayer layer, encoder_layer(str_cat("encoder.block.", i, ".layer.")));
      layers.push_back(std::move(layer));
    }
    ASSIGN_OR_RETURN(std::vector<DistanceBias> biases, load_biases("encoder", config_.encoder_layers));
    ASSIGN_OR_RETURN(RmsNorm final_norm, norm("encoder.final_layer_norm"));
    return Stack<EncoderLayer>{std::move(layers), std::move(biases), std::move(final_norm)};
  }

  StatusOr<Stack<DecoderLayer>> decoder() {
    std::vector<DecoderLayer> layers;
    for (int64_t i = 0; i < config_.decoder_layers; ++i) {
      ASSIGN_OR_RETURN(DecoderLayer layer, decoder_layer(str_cat("decoder.block.", i, ".layer.")));
      layers.push_back(std::move(layer));
    }
    ASSIGN_OR_RETURN(std::vector<DistanceBias> biases, load_biases("decoder", config_.decoder_layers));
    // The output's scale costs nothing here: it goes into the last norm, which only the output layer reads.
    const float scale = config_.scale_output ? 1.0f / std::sqrt(static_cast<float>(config_.d_model)) : 1.0f;
    ASSIGN_OR_RETURN(RmsNorm final_norm, norm("decoder.final_layer_norm", scale));
    return Stack<DecoderLayer>{std::move(layers), std::move(biases), std::move(final_norm)};
  }

  StatusOr<LmHead> lm_head() {
    if (config_.tied) weights_.ignore("lm_head.weight");
    return LmHead::load(weights_, config_.tied ? table_ : "lm_head.weight", config_.vocab_size, config_.d_model, {},
                        packing_);
  }

 private:
  StatusOr<RmsNorm> norm(const std::string& prefix, float scale = 1) {
    return RmsNorm::load(weights_, prefix, config_.d_model, config_.epsilon, scale);
  }

  // prefix: "encoder.block.3.layer."
  StatusOr<EncoderLayer> encoder_layer(const std::string& prefix) {
    ASSIGN_OR_RETURN(RmsNorm attention_norm, norm(prefix + "0.layer_norm"));
    ASSIGN_OR_RETURN(SelfAttention attention,
                     SelfAttention::load(weights_, attention_options(prefix + "0.SelfAttention"), packing_));
    ASSIGN_OR_RETURN(RmsNorm feed_forward_norm, norm(prefix + "1.layer_norm"));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix + "1.DenseReluDense"));
    return EncoderLayer{std::move(attention_norm), std::move(attention), std::move(feed_forward_norm), std::move(ffn)};
  }

  StatusOr<DecoderLayer> decoder_layer(const std::string& prefix) {
    ASSIGN_OR_RETURN(RmsNorm attention_norm, norm(prefix + "0.layer_norm"));
    ASSIGN_OR_RETURN(SelfAttention attention,
                     SelfAttention::load(weights_, attention_options(prefix + "0.SelfAttention"), packing_));
    ASSIGN_OR_RETURN(RmsNorm cross_norm, norm(prefix + "1.layer_norm"));
    ASSIGN_OR_RETURN(CrossAttention cross,
                     CrossAttention::load(weights_, attention_options(prefix + "1.EncDecAttention"), packing_));
    ASSIGN_OR_RETURN(RmsNorm feed_forward_norm, norm(prefix + "2.layer_norm"));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix + "2.DenseReluDense"));
    return DecoderLayer{std::move(attention_norm), std::move(attention),         std::move(cross_norm),
                        std::move(cross),          std::move(feed_forward_norm), std::move(ffn)};
  }

  StatusOr<std::vector<DistanceBias>> load_biases(const std::string& side, int64_t num_layers) {
    T5Buckets buckets = config_.buckets;
    buckets.bidirectional = side == "encoder";
    std::vector<DistanceBias> biases;
    for (int64_t i = 0; i < (bias_in_each_layer_ ? num_layers : 1); ++i) {
      ASSIGN_OR_RETURN(
          const WeightView table,
          weights_.get(str_cat(side, ".block.", i, ".layer.0.SelfAttention.relative_attention_bias.weight"),
                       {buckets.num_buckets, config_.num_heads}));
      biases.push_back(t5_bias(buckets, to_floats(table), config_.num_heads));
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
  bool bias_in_each_layer_;
  WeightMap& weights_;
  const PackOptions& packing_;
  std::string table_ = "shared.weight";
};

StatusOr<std::unique_ptr<Model>> load(const Variant& variant, const ModelConfig& config,
                                      std::shared_ptr<WeightMap> weights, const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const T5Config t5, read_config(config, variant, *weights));
  const auto heads = static_cast<int32_t>(t5.num_heads);
  std::string why;
  if (!options.attention.supports({heads, heads, static_cast<int32_t>(t5.d_kv)}, &why)) {
    return unimplemented("attention backend ", options.attention.name(), ": ", why);
  }
  T5Loader loader(t5, variant.bias_in_each_layer, *weights, options.packing);
  ASSIGN_OR_RETURN(Embedding tokens, loader.tokens());
  ASSIGN_OR_RETURN(Stack<EncoderLayer> encoder, loader.encoder());
  ASSIGN_OR_RETURN(Stack<DecoderLayer> decoder, loader.decoder());
  ASSIGN_OR_RETURN(LmHead lm_head, loader.lm_head());
  return std::make_unique<T5>(variant.family, t5, std::move(weights), options.attention, std::move(tokens),
                              std::move(encoder), std::move(decoder), std::move(lm_head));
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
