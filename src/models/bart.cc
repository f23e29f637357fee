#include "models/bart.h"

#include <cmath>
#include <cstring>

#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/feed_forward.h"
#include "layers/layer_norm.h"

namespace transept {
namespace {

// BartLearnedPositionalEmbedding: the table has two rows more than there are positions, and begins there.
constexpr int32_t kPositionOffset = 2;

struct BartConfig {
  int64_t d_model = 0, vocab_size = 0, max_positions = 0;
  int64_t encoder_layers = 0, encoder_heads = 0, encoder_ffn = 0;
  int64_t decoder_layers = 0, decoder_heads = 0, decoder_ffn = 0;
  Activation activation = Activation::kGelu;
  bool scale_embedding = false;
  bool tie_word_embeddings = true;

  float embedding_scale() const { return scale_embedding ? std::sqrt(static_cast<float>(d_model)) : 1.0f; }
};

StatusOr<Activation> activation_by_name(const ConfigReader& reader) {
  ASSIGN_OR_RETURN(const std::string name, reader.string("activation_function", "gelu"));
  if (name == "gelu") return Activation::kGelu;
  if (name == "relu") return Activation::kRelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  return reader.error("activation_function",
                      str_cat("\"", name, "\" is not supported; one of gelu, relu, silu, swish, gelu_new"));
}

StatusOr<BartConfig> read_config(const ModelConfig& config) {
  const ConfigReader reader(config.raw, config.path + "/config.json");
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  BartConfig bart;
  ASSIGN_OR_RETURN(bart.vocab_size, reader.integer("vocab_size", 1, int64_t{1} << 31));
  ASSIGN_OR_RETURN(bart.d_model, reader.integer("d_model", 1, kMaxDim));
  ASSIGN_OR_RETURN(bart.max_positions, reader.integer("max_position_embeddings", 1, 1 << 24));
  ASSIGN_OR_RETURN(bart.encoder_layers, reader.integer("encoder_layers", 1, kMaxLayers));
  ASSIGN_OR_RETURN(bart.decoder_layers, reader.integer("decoder_layers", 1, kMaxLayers));
  ASSIGN_OR_RETURN(bart.encoder_heads, reader.integer("encoder_attention_heads", 1, kMaxHeads));
  ASSIGN_OR_RETURN(bart.decoder_heads, reader.integer("decoder_attention_heads", 1, kMaxHeads));
  ASSIGN_OR_RETURN(bart.encoder_ffn, reader.integer("encoder_ffn_dim", 1, kMaxDim));
  ASSIGN_OR_RETURN(bart.decoder_ffn, reader.integer("decoder_ffn_dim", 1, kMaxDim));
  ASSIGN_OR_RETURN(bart.activation, activation_by_name(reader));
  ASSIGN_OR_RETURN(bart.scale_embedding, reader.boolean("scale_embedding", false));
  ASSIGN_OR_RETURN(bart.tie_word_embeddings, reader.boolean("tie_word_embeddings", true));
  // Fairseq-era switches that BART checkpoints of the Hugging Face layout leave off.
  for (const char* key : {"normalize_before", "add_final_layer_norm"}) {
    ASSIGN_OR_RETURN(const bool is_on, reader.boolean(key, false));
    if (is_on) return unimplemented(error_message(reader.error(key, "true is not supported for bart")));
  }
  for (const auto& [key, heads] : {std::pair{"encoder_attention_heads", bart.encoder_heads},
                                   std::pair{"decoder_attention_heads", bart.decoder_heads}}) {
    if (bart.d_model % heads != 0) {
      return reader.error(key, str_cat(heads, " heads do not divide d_model ", bart.d_model));
    }
  }
  return bart;
}

struct EncoderLayer {
  SelfAttention attention;
  LayerNorm attention_norm;
  FeedForward feed_forward;
  LayerNorm final_norm;
};

struct DecoderLayer {
  SelfAttention attention;
  LayerNorm attention_norm;
  CrossAttention cross;
  LayerNorm cross_norm;
  FeedForward feed_forward;
  LayerNorm final_norm;
};

// Token embedding, positions and the norm behind them: one for each side.
struct InputEmbedding {
  Embedding tokens;
  Embedding positions;
  LayerNorm norm;
  float scale;

  void forward(Context& context, View<int32_t> ids, View<int32_t> position_ids, const TensorView& x) const {
    tokens.look_up(context, ids, 0, scale, x);
    positions.add(context, position_ids, kPositionOffset, x);
    norm.forward(context, x, x);
  }
};

class Bart final : public Model {
 public:
  Bart(const BartConfig& config, std::shared_ptr<WeightMap> weights, const AttentionBackend& attention,
       InputEmbedding encoder_input, InputEmbedding decoder_input, std::vector<EncoderLayer> encoder_layers,
       std::vector<DecoderLayer> decoder_layers, LmHead lm_head)
      : weights_(std::move(weights)),
        attention_(attention),
        encoder_input_(std::move(encoder_input)),
        decoder_input_(std::move(decoder_input)),
        encoder_layers_(std::move(encoder_layers)),
        decoder_layers_(std::move(decoder_layers)),
        lm_head_(std::move(lm_head)) {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    const int32_t layers = i32(config.decoder_layers), heads = i32(config.decoder_heads);
    const int32_t head_dim = i32(config.d_model / config.decoder_heads);
    spec_.family = "bart";
    spec_.d_model = i32(config.d_model);
    spec_.vocab_size = i32(config.vocab_size);
    spec_.num_encoder_layers = i32(config.encoder_layers);
    spec_.num_decoder_layers = layers;
    spec_.max_encoder_positions = spec_.max_decoder_positions = i32(config.max_positions);
    spec_.kv = {{KvKind::kSelf, layers, heads, head_dim}, {KvKind::kCross, layers, heads, head_dim}};
    // The last layer stands nearest to the choice of the token (and is the one that Marian trains to align).
    for (int32_t head = 0; head < static_cast<int32_t>(config.decoder_heads); ++head) {
      spec_.alignment_heads.push_back({spec_.num_decoder_layers - 1, head});
    }
    spec_.default_prompt_has_bos = true;
  }

  const ModelSpec& spec() const override { return spec_; }
  const LmHead& lm_head() const override { return lm_head_; }

  void encode(Context& context, const EncodeBatch& batch, LayerRange range, EncodeState& state) const override {
    const TensorView& x = state.hidden;
    DCHECK(state.next_layer == range.begin, "slices of an encode come in order");
    if (range.begin == 0) encoder_input_.forward(context, batch.input_ids, batch.positions, x);
    for (int32_t i = range.begin; i < range.end; ++i) {
      const EncoderLayer& layer = encoder_layers_[static_cast<size_t>(i)];
      layer.attention.forward(context, attention_, AttentionType::kEncoder, batch.attention, {}, x, x, x);
      layer.attention_norm.forward(context, x, x);
      layer.feed_forward.forward(context, x, x, x);
      layer.final_norm.forward(context, x, x);
    }
    state.next_layer = range.end;
  }

  void write_cross_kv(Context& context, const EncoderOutput& output, const AttentionMetadata& cross, const KvCaches& kv,
                      LayerRange range) const override {
    for (int32_t i = range.begin; i < range.end; ++i) {
      const size_t layer = static_cast<size_t>(i);
      decoder_layers_[layer].cross.write_kv(context, attention_, cross, kv.cross_layers[layer], output.hidden);
    }
  }

  void decode(Context& context, const ForwardBatch& batch, LayerRange range, const TensorView& hidden) const override {
    Arena::Scope scope(context.arena);
    const TensorView x = context.arena.tensor(DType::kFloat32, {batch.num_tokens(), spec_.d_model});
    decoder_input_.forward(context, batch.input_ids, batch.positions, x);
    for (int32_t i = range.begin; i < range.end; ++i) {
      const size_t l = static_cast<size_t>(i);
      const DecoderLayer& layer = decoder_layers_[l];
      layer.attention.forward(context, attention_, AttentionType::kDecoder, batch.self, batch.kv.self_layers[l], x, x,
                              x);
      layer.attention_norm.forward(context, x, x);
      LayerCapture capture(batch.capture, i);
      layer.cross.forward(context, attention_, batch.cross, batch.kv.cross_layers[l], x, x, x, capture.get());
      layer.cross_norm.forward(context, x, x);
      layer.feed_forward.forward(context, x, x, x);
      layer.final_norm.forward(context, x, x);
    }
    if (context.dry_run) return;
    for (size_t i = 0; i < batch.logits_rows.size(); ++i) {
      std::memcpy(hidden.row(static_cast<int64_t>(i)), x.row(batch.logits_rows[i]),
                  static_cast<size_t>(spec_.d_model) * sizeof(float));
    }
  }

 private:
  std::shared_ptr<WeightMap> weights_;  // the embeddings read it
  const AttentionBackend& attention_;
  ModelSpec spec_;
  InputEmbedding encoder_input_, decoder_input_;
  std::vector<EncoderLayer> encoder_layers_;
  std::vector<DecoderLayer> decoder_layers_;
  LmHead lm_head_;
};

class BartLoader final {
 public:
  BartLoader(const BartConfig& config, WeightMap& weights, ThreadPool& threads)
      : config_(config), weights_(weights), threads_(threads) {}

  StatusOr<InputEmbedding> input_embedding(const std::string& side) {
    // The shared table; published checkpoints hold it under any of its names.
    std::string table = "shared.weight";
    if (!weights_.contains(table))
      table = weights_.contains(side + ".embed_tokens.weight") ? side + ".embed_tokens.weight" : table;
    weights_.ignore(side + ".embed_tokens.weight");
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, table, config_.vocab_size, config_.d_model));
    ASSIGN_OR_RETURN(Embedding positions, Embedding::load(weights_, side + ".embed_positions.weight",
                                                          config_.max_positions + kPositionOffset, config_.d_model));
    ASSIGN_OR_RETURN(LayerNorm norm, LayerNorm::load(weights_, side + ".layernorm_embedding", config_.d_model));
    return InputEmbedding{std::move(tokens), std::move(positions), std::move(norm), config_.embedding_scale()};
  }

  StatusOr<EncoderLayer> encoder_layer(int64_t index) {
    const std::string prefix = str_cat("encoder.layers.", index);
    ASSIGN_OR_RETURN(
        SelfAttention attention,
        SelfAttention::load(weights_, attention_options(prefix + ".self_attn", config_.encoder_heads), threads_));
    ASSIGN_OR_RETURN(LayerNorm attention_norm, norm(prefix + ".self_attn_layer_norm"));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix, config_.encoder_ffn));
    ASSIGN_OR_RETURN(LayerNorm final_norm, norm(prefix + ".final_layer_norm"));
    return EncoderLayer{std::move(attention), std::move(attention_norm), std::move(ffn), std::move(final_norm)};
  }

  StatusOr<DecoderLayer> decoder_layer(int64_t index) {
    const std::string prefix = str_cat("decoder.layers.", index);
    ASSIGN_OR_RETURN(
        SelfAttention attention,
        SelfAttention::load(weights_, attention_options(prefix + ".self_attn", config_.decoder_heads), threads_));
    ASSIGN_OR_RETURN(LayerNorm attention_norm, norm(prefix + ".self_attn_layer_norm"));
    ASSIGN_OR_RETURN(
        CrossAttention cross,
        CrossAttention::load(weights_, attention_options(prefix + ".encoder_attn", config_.decoder_heads), threads_));
    ASSIGN_OR_RETURN(LayerNorm cross_norm, norm(prefix + ".encoder_attn_layer_norm"));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix, config_.decoder_ffn));
    ASSIGN_OR_RETURN(LayerNorm final_norm, norm(prefix + ".final_layer_norm"));
    return DecoderLayer{std::move(attention), std::move(attention_norm), std::move(cross), std::move(cross_norm),
                        std::move(ffn),       std::move(final_norm)};
  }

  StatusOr<LmHead> lm_head() {
    std::vector<float> bias;
    if (weights_.contains("final_logits_bias")) {
      ASSIGN_OR_RETURN(const WeightView view, weights_.get("final_logits_bias", {1, config_.vocab_size}));
      bias = to_floats(view);
    }
    // Tied unless the config says otherwise; a tied checkpoint may hold its copy, which is then the same.
    const bool tied = config_.tie_word_embeddings;
    if (tied) weights_.ignore("lm_head.weight");
    std::string table = "lm_head.weight";
    if (tied) table = weights_.contains("shared.weight") ? "shared.weight" : "decoder.embed_tokens.weight";
    return LmHead::load(weights_, table, config_.vocab_size, config_.d_model, std::move(bias), threads_);
  }

 private:
  StatusOr<LayerNorm> norm(const std::string& prefix) { return LayerNorm::load(weights_, prefix, config_.d_model); }

  StatusOr<FeedForward> feed_forward(const std::string& prefix, int64_t hidden_dim) {
    return FeedForward::load(
        weights_, {prefix + ".fc1", prefix + ".fc2", config_.d_model, hidden_dim, config_.activation}, threads_);
  }

  AttentionOptions attention_options(const std::string& prefix, int64_t num_heads) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.dim = config_.d_model;
    options.num_heads = num_heads;
    const int64_t head_dim = config_.d_model / num_heads;
    options.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    return options;
  }

  const BartConfig& config_;
  WeightMap& weights_;
  ThreadPool& threads_;
};

}  // namespace

StatusOr<std::unique_ptr<Model>> load_bart(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                           const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const BartConfig bart, read_config(config));
  for (const int64_t heads : {bart.encoder_heads, bart.decoder_heads}) {
    const int32_t count = static_cast<int32_t>(heads);
    std::string why;
    if (!options.attention.supports({count, count, static_cast<int32_t>(bart.d_model / heads)}, &why)) {
      return unimplemented("attention backend ", options.attention.name(), ": ", why);
    }
  }
  weights->set_optional_prefix("model.");
  BartLoader loader(bart, *weights, options.threads);
  ASSIGN_OR_RETURN(InputEmbedding encoder_input, loader.input_embedding("encoder"));
  ASSIGN_OR_RETURN(InputEmbedding decoder_input, loader.input_embedding("decoder"));
  std::vector<EncoderLayer> encoder_layers;
  for (int64_t i = 0; i < bart.encoder_layers; ++i) {
    ASSIGN_OR_RETURN(EncoderLayer layer, loader.encoder_layer(i));
    encoder_layers.push_back(std::move(layer));
  }
  std::vector<DecoderLayer> decoder_layers;
  for (int64_t i = 0; i < bart.decoder_layers; ++i) {
    ASSIGN_OR_RETURN(DecoderLayer layer, loader.decoder_layer(i));
    decoder_layers.push_back(std::move(layer));
  }
  ASSIGN_OR_RETURN(LmHead lm_head, loader.lm_head());
  return std::make_unique<Bart>(bart, std::move(weights), options.attention, std::move(encoder_input),
                                std::move(decoder_input), std::move(encoder_layers), std::move(decoder_layers),
                                std::move(lm_head));
}

}  // namespace transept
