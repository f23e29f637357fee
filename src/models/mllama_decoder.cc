#include "models/mllama_decoder.h"

#include <cmath>

#include "models/activation_field.h"
#include "models/llama3_rope.h"
#include "multimodal/mllama_pictures.h"
#include "multimodal/mllama_rules.h"

namespace transept {
namespace {

constexpr int64_t kMaxMllamaLayers = 1000;

Status read_sizes(const ConfigReader& reader, MllamaDecoderConfig& out) {
  constexpr int64_t kMaxHeads = 1024, kMaxDim = 1 << 20;
  LlamaSizes& sizes = out.sizes;
  ASSIGN_OR_RETURN(out.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize, 128256));
  ASSIGN_OR_RETURN(sizes.dim, reader.integer("hidden_size", 1, kMaxDim, 4096));
  ASSIGN_OR_RETURN(sizes.hidden_dim, reader.integer("intermediate_size", 1, kMaxDim, 14336));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxMllamaLayers, 40));
  ASSIGN_OR_RETURN(sizes.heads, reader.integer("num_attention_heads", 1, kMaxHeads, 32));
  ASSIGN_OR_RETURN(sizes.kv_heads, reader.integer("num_key_value_heads", 1, kMaxHeads, 8));
  if (sizes.dim % sizes.heads != 0) {
    return reader.error("num_attention_heads", str_cat(sizes.heads, " heads do not divide hidden_size ", sizes.dim));
  }
  if (sizes.heads % sizes.kv_heads != 0) {
    return reader.error("num_key_value_heads",
                        str_cat(sizes.kv_heads, " heads do not divide num_attention_heads ", sizes.heads));
  }
  if (sizes.head_dim() % 2 != 0) {
    return reader.error("num_attention_heads",
                        str_cat(sizes.heads, " heads are ", sizes.head_dim(), " wide: positions rotate pairs"));
  }
  ASSIGN_OR_RETURN(const int64_t head_dim, reader.integer("head_dim", 1, kMaxDim, sizes.head_dim()));
  if (head_dim != sizes.head_dim()) {
    return reader.error("head_dim", str_cat(head_dim, " contradicts hidden_size, which gives ", sizes.head_dim()));
  }
  ASSIGN_OR_RETURN(out.max_positions, reader.integer("max_position_embeddings", 1, ModelSpec::kMaxPositions, 131072));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("rms_norm_eps", 0, 1, 1e-5));
  sizes.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(sizes.activation, read_activation(reader, "hidden_act", "silu"));
  return ok_status();
}

Status read_crossing_layers(const ConfigReader& reader, MllamaDecoderConfig& out) {
  constexpr const char* kKey = "cross_attention_layers";
  std::vector<int32_t> layers = {3, 8, 13, 18, 23, 28, 33, 38};  // the reference's
  if (reader.has(kKey)) {
    ASSIGN_OR_RETURN(layers, reader.token_ids(kKey));  // whole numbers, as ids are
  }
  if (layers.empty()) return reader.error(kKey, "is empty: no layer reads pictures");
  out.crosses.assign(static_cast<size_t>(out.layers), false);
  for (const int32_t layer : layers) {
    if (layer >= out.layers) {
      return reader.error(kKey, str_cat(layer, " is no layer of the ", out.layers, " of num_hidden_layers"));
    }
    if (layer == 0) {
      return with_param(unimplemented(reader.file(), ": ", kKey,
                                      ": 0: cross-attention in the first layer, with which generate() of transformers "
                                      "fails, is not supported"),
                        kKey);
    }
    out.crosses[static_cast<size_t>(layer)] = true;
  }
  return ok_status();
}

// rope_scaling of published files, rope_parameters of those that 5.x writes.
Status read_rope(const Json& object, const ConfigReader& reader, MllamaDecoderConfig& out) {
  constexpr double kMaxTheta = 1e12, kTheta = 500000;
  const Json none = Json::object();
  const Json* rope = &none;
  std::string name = "rope_scaling";
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* const found = object.find(key);
    if (found == nullptr || found->is_null()) continue;
    if (!found->is_object()) return reader.error(key, str_cat("expected an object, got ", found->kind_name()));
    if (found->as_object().empty()) continue;
    rope = found;
    name = key;
    break;
  }
  const ConfigReader of_rope(*rope, str_cat(reader.file(), ": ", name));
  ASSIGN_OR_RETURN(const double above, reader.number("rope_theta", 1, kMaxTheta, kTheta));
  ASSIGN_OR_RETURN(const double theta, of_rope.number("rope_theta", 1, kMaxTheta, above));
  ASSIGN_OR_RETURN(const std::string older, of_rope.string("type", "default"));
  ASSIGN_OR_RETURN(const std::string type, of_rope.string("rope_type", older));
  out.frequencies = rope_frequencies(out.sizes.head_dim(), theta);
  if (type == "default") return ok_status();
  if (type != "llama3") {
    return with_param(unimplemented(of_rope.file(), ": rope_type: \"", type.substr(0, 100),
                                    "\" is not supported; default and llama3 are"),
                      "rope_type");
  }
  ASSIGN_OR_RETURN(const Llama3Scaling scaling, read_llama3_scaling(of_rope, out.max_positions));
  scale_llama3(scaling, out.frequencies);
  return ok_status();
}

class MllamaDecoderLoader final {
 public:
  MllamaDecoderLoader(const MllamaDecoderConfig& config, const std::string& prefix, WeightMap& weights,
                      const ModelLoadOptions& options)
      : config_(config), sizes_(config.sizes), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Decoder> load(const std::string& head_name) {
    weights_.ignore(prefix_ + "rotary_emb.inv_freq");  // a buffer that older files hold
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, prefix_ + "embed_tokens.weight",
                                                       config_.vocab_size + kMllamaPromptTokens, sizes_.dim));
    ASSIGN_OR_RETURN(LmHead head,
                     LmHead::load(weights_, head_name, config_.vocab_size, sizes_.dim, {}, options_.packing));
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      const std::string name = str_cat(prefix_, "layers.", i, ".");
      ASSIGN_OR_RETURN(TransformerLayer loaded,
                       config_.crosses[static_cast<size_t>(i)] ? crossing_layer(name) : layer(name));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.final_norm, Norm::load(weights_, prefix_ + "norm", sizes_.dim, norm_options()));
    parts.rope = {config_.frequencies, RopePairs::kHalves};
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(parts), options_.attention));
    return Decoder{TokenInput{.tokens = std::move(tokens)}, std::move(stack), std::move(head)};
  }

 private:
  NormOptions norm_options() const { return {.kind = NormKind::kRms, .epsilon = sizes_.epsilon}; }

  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(layer.self, load_llama_attention(sizes_, prefix, weights_, options_.packing));
    ASSIGN_OR_RETURN(layer.feed_forward, load_llama_feed_forward(sizes_, prefix, weights_, options_.packing));
    return layer;
  }

  StatusOr<TransformerLayer> crossing_layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual sum, load_llama_residual(sizes_, prefix + "input_layernorm", weights_));
    ASSIGN_OR_RETURN(const float attention_gate, read_tanh_gate(weights_, prefix + "cross_attn_attn_gate"));
    sum.gate = gate_of(attention_gate, weights_);
    AttentionOptions options = llama_attention_options(sizes_, prefix + "cross_attn");
    options.q_norm = "q_norm";
    options.k_norm = "k_norm";
    options.head_norm = norm_options();
    ASSIGN_OR_RETURN(CrossAttention cross, CrossAttention::load(weights_, options, options_.packing));
    layer.cross = Sublayer<CrossAttention>{std::move(cross), std::move(sum)};
    ASSIGN_OR_RETURN(layer.feed_forward, load_llama_feed_forward(sizes_, prefix, weights_, options_.packing));
    ASSIGN_OR_RETURN(const float ffn_gate, read_tanh_gate(weights_, prefix + "cross_attn_mlp_gate"));
    layer.feed_forward->sum.gate = gate_of(ffn_gate, weights_);
    layer.kind_without_feed_forward = kMllamaBeforePictures;
    return layer;
  }

  const MllamaDecoderConfig& config_;
  const LlamaSizes& sizes_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

}  // namespace

StatusOr<float> read_tanh_gate(WeightMap& weights, const std::string& name) {
  ASSIGN_OR_RETURN(const WeightView view, weights.get(name, {1}));
  return std::tanh(to_floats(view).front());
}

DeviceFloats gate_of(float value, WeightMap& weights) {
  return DeviceFloats(std::vector<float>{value}, weights.memory());
}

StatusOr<MllamaDecoderConfig> read_mllama_decoder(const ModelConfig& config) {
  const std::string file = config.path + "/config.json";
  const Json* const text = config.raw.find("text_config");
  if (text == nullptr || !text->is_object()) {
    return ConfigReader(config.raw, file).error("text_config", "is no object");
  }
  const ConfigReader reader(*text, file + ": text_config");
  MllamaDecoderConfig out;
  RETURN_IF_ERROR(read_sizes(reader, out));
  RETURN_IF_ERROR(read_crossing_layers(reader, out));
  RETURN_IF_ERROR(read_rope(*text, reader, out));
  return out;
}

StatusOr<Decoder> load_mllama_decoder(const MllamaDecoderConfig& config, const std::string& prefix,
                                      const std::string& head, WeightMap& weights, const ModelLoadOptions& options) {
  return MllamaDecoderLoader(config, prefix, weights, options).load(head);
}

}  // namespace transept
