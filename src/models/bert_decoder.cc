// BERT (Devlin et al. 2019) as BLIP's decoder of text: post-norm layers with cross-attention behind self-attention,
// learned positions, and a transform between the last layer and the output layer, which has a bias. Checkpoints: the
// decoders of Salesforce/blip-image-captioning-*. Source: transformers, models/blip/modeling_blip_text.py
// (BlipTextLMHeadModel).
#include <cmath>

#include "models/activation_field.h"
#include "models/text_decoder.h"

namespace transept {
namespace {

struct BertConfig {
  int64_t vocab_size = 0, width = 0, inner = 0;
  int64_t layers = 0, heads = 0, max_positions = 0;
  int64_t tower_width = 0;
  Activation activation = Activation::kGelu;
  float epsilon = 1e-12f;
  bool tied = true;
};

// encoder_hidden_size is not read: the reference puts the tower's width in its place. Tensors are tied if either level
// says so.
StatusOr<BertConfig> read_bert_decoder_config(const Json& config, const std::string& file,
                                              const DecoderContext& context) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  const ConfigReader reader(config, file);
  BertConfig out;
  ASSIGN_OR_RETURN(out.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize, 30524));
  ASSIGN_OR_RETURN(out.width, reader.integer("hidden_size", 1, kMaxDim, 768));
  ASSIGN_OR_RETURN(out.inner, reader.integer("intermediate_size", 1, kMaxDim, 3072));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 12));
  ASSIGN_OR_RETURN(out.heads, reader.integer("num_attention_heads", 1, kMaxHeads, 8));
  if (out.width % out.heads != 0) {
    return reader.error("num_attention_heads", str_cat(out.heads, " heads do not divide hidden_size ", out.width));
  }
  ASSIGN_OR_RETURN(out.max_positions, reader.integer("max_position_embeddings", 1, ModelSpec::kMaxPositions, 512));
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "hidden_act", "gelu"));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_eps", 0, 1, 1e-12));
  out.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(const bool is_tied, reader.boolean("tie_word_embeddings", true));
  out.tied = is_tied || context.is_tied;
  out.tower_width = context.tower_width;
  ASSIGN_OR_RETURN(const bool is_decoder, reader.boolean("is_decoder", true));
  if (!is_decoder) return reader.error("is_decoder", "false: a text model without cross-attention sees no picture");
  return out;
}

class BertDecoderLoader final {
 public:
  BertDecoderLoader(const BertConfig& config, WeightMap& weights, const ModelLoadOptions& options)
      : config_(config), weights_(weights), packing_(options.packing), attention_(options.attention) {}

  StatusOr<Decoder> load() {
    const std::string embeddings = prefix_ + "bert.embeddings.", table = embeddings + "word_embeddings.weight";
    weights_.ignore(embeddings + "position_ids");  // a buffer that older files hold
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, table, config_.vocab_size, config_.width));
    ASSIGN_OR_RETURN(Embedding positions, Embedding::load(weights_, embeddings + "position_embeddings.weight",
                                                          config_.max_positions, config_.width));
    ASSIGN_OR_RETURN(Norm embedding_norm, norm(embeddings + "LayerNorm"));
    ASSIGN_OR_RETURN(TransformerStack layers, stack());
    ASSIGN_OR_RETURN(HeadTransform transform, head_transform());
    ASSIGN_OR_RETURN(LmHead head, lm_head(table));
    TokenInput input{.tokens = std::move(tokens),
                     .positions = std::move(positions),
                     .norm_place = EmbeddingNorm::kAfterPositions,
                     .norm = std::move(embedding_norm)};
    Decoder decoder{std::move(input), std::move(layers), std::move(head)};
    decoder.head_transform.emplace(std::move(transform));
    return decoder;
  }

 private:
  StatusOr<TransformerStack> stack() {
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "bert.encoder.layer.", i, ".")));
      parts.layers.push_back(std::move(loaded));
    }
    return TransformerStack::make(std::move(parts), attention_);
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "attention.output.LayerNorm"));
    ASSIGN_OR_RETURN(SelfAttention self,
                     SelfAttention::load(weights_, attention_options(prefix + "attention"), packing_));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual cross_sum, residual(prefix + "crossattention.output.LayerNorm"));
    AttentionOptions cross_options = attention_options(prefix + "crossattention");
    cross_options.kv_dim = config_.tower_width;
    ASSIGN_OR_RETURN(CrossAttention cross, CrossAttention::load(weights_, cross_options, packing_));
    layer.cross = Sublayer<CrossAttention>{std::move(cross), std::move(cross_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "output.LayerNorm"));
    const FeedForward::Options options{prefix + "intermediate.dense", prefix + "output.dense", config_.width,
                                       config_.inner, config_.activation};
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, options, packing_));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  AttentionOptions attention_options(const std::string& prefix) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.q = "self.query", options.k = "self.key", options.v = "self.value", options.out = "output.dense";
    options.dim = config_.width;
    options.num_heads = config_.heads;
    options.scale = 1.0f / std::sqrt(static_cast<float>(options.width_of_head()));
    return options;
  }

  StatusOr<HeadTransform> head_transform() {
    const std::string prefix = head_ + "transform.";
    const LinearSource source{prefix + "dense.weight", prefix + "dense.bias", config_.width};
    ASSIGN_OR_RETURN(Linear dense, Linear::load(weights_, {{source}, config_.width}, packing_));
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix + "LayerNorm"));
    return HeadTransform{std::move(dense), config_.activation, std::move(loaded)};
  }

  // Where a tied file has both, transformers takes the output layer's own, as of other families: equal, or not tied.
  StatusOr<LmHead> lm_head(const std::string& table) {
    const std::string own = head_ + "decoder.weight", own_bias = head_ + "decoder.bias", shared_bias = head_ + "bias";
    const bool has_own = !config_.tied || weights_.contains(own);
    const bool has_own_bias = !config_.tied || weights_.contains(own_bias);
    weights_.ignore(shared_bias);
    ASSIGN_OR_RETURN(const WeightView bias, weights_.get(has_own_bias ? own_bias : shared_bias, {config_.vocab_size}));
    return LmHead::load(weights_, has_own ? own : table, config_.vocab_size, config_.width, to_floats(bias), packing_);
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    return Norm::load(weights_, prefix, config_.width, {.epsilon = config_.epsilon});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), NormPlace::kAfter};
  }

  const BertConfig& config_;
  WeightMap& weights_;
  const PackOptions& packing_;
  const AttentionBackend& attention_;
  const std::string prefix_ = "text_decoder.", head_ = prefix_ + "cls.predictions.";
};

class BertDecoder final : public TextDecoder {
 public:
  explicit BertDecoder(const BertConfig& config) : config_(config) {}

  TextDecoderSizes sizes() const override {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    return {.width = i32(config_.width),
            .vocab_size = i32(config_.vocab_size),
            .max_positions = i32(config_.max_positions),
            .num_layers = i32(config_.layers),
            .num_heads = i32(config_.heads),
            .cross_width = i32(config_.tower_width)};
  }

  StatusOr<Decoder> load(WeightMap& weights, const ModelLoadOptions& options) const override {
    return BertDecoderLoader(config_, weights, options).load();
  }

 private:
  const BertConfig config_;
};

}  // namespace

StatusOr<std::unique_ptr<TextDecoder>> make_blip_decoder(const Json& config, const std::string& file,
                                                         const DecoderContext& context) {
  ASSIGN_OR_RETURN(const BertConfig sizes, read_bert_decoder_config(config, file, context));
  return std::unique_ptr<TextDecoder>(std::make_unique<BertDecoder>(sizes));
}

}  // namespace transept
