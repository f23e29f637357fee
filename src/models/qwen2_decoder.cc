#include "models/qwen2_decoder.h"

#include <numeric>

#include "models/activation_field.h"
#include "models/llama_layer.h"

namespace transept {
namespace {

constexpr const char* kOutput = "lm_head.weight";

// ---- config.json

Status read_sizes(const Json& object, const ConfigReader& reader, Qwen2DecoderConfig& out) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  ASSIGN_OR_RETURN(out.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize, 152064));
  ASSIGN_OR_RETURN(out.dim, reader.integer("hidden_size", 1, kMaxDim, 8192));
  ASSIGN_OR_RETURN(out.hidden_dim, reader.integer("intermediate_size", 1, kMaxDim, 29568));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 80));
  ASSIGN_OR_RETURN(out.heads, reader.integer("num_attention_heads", 1, kMaxHeads, 64));
  // Null means as many as of queries; a field that is not there, the class's.
  const int64_t kv_heads = object.find("num_key_value_heads") == nullptr ? 8 : out.heads;
  ASSIGN_OR_RETURN(out.kv_heads, reader.integer("num_key_value_heads", 1, kMaxHeads, kv_heads));
  if (out.dim % out.heads != 0) {
    return reader.error("num_attention_heads", str_cat(out.heads, " heads do not divide hidden_size ", out.dim));
  }
  if (out.heads % out.kv_heads != 0) {
    return reader.error("num_key_value_heads",
                        str_cat(out.kv_heads, " heads do not divide num_attention_heads ", out.heads));
  }
  if (out.head_dim() % 2 != 0) {
    return reader.error("num_attention_heads",
                        str_cat(out.heads, " heads are ", out.head_dim(), " wide: positions rotate pairs"));
  }
  ASSIGN_OR_RETURN(const int64_t head_dim, reader.integer("head_dim", 1, kMaxDim, out.head_dim()));
  if (head_dim != out.head_dim()) {
    return reader.error("head_dim", str_cat(head_dim, " contradicts hidden_size, which gives ", out.head_dim()));
  }
  ASSIGN_OR_RETURN(out.max_positions, reader.integer("max_position_embeddings", 1, ModelSpec::kMaxPositions, 32768));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("rms_norm_eps", 0, 1, 1e-5));
  out.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "hidden_act", "silu"));
  return ok_status();
}

Status refuse_windows(const ConfigReader& reader, std::string_view key, std::string_view value) {
  return with_param(unimplemented(reader.file(), ": ", key, ": ", value,
                                  ": layers of sliding windows are not supported, only full attention"),
                    key);
}

// Published files name a window and do not use it.
Status check_windows(const Json& object, const ConfigReader& reader, const Qwen2DecoderConfig& config) {
  constexpr int64_t kMost = int64_t{1} << 40;
  ASSIGN_OR_RETURN(const bool uses, reader.boolean("use_sliding_window", false));
  ASSIGN_OR_RETURN(const int64_t first, reader.integer("max_window_layers", 0, kMost, 80));
  const bool is_null = object.find("sliding_window") != nullptr && !reader.has("sliding_window");
  const Json* const types = object.find("layer_types");
  if (types == nullptr || types->is_null()) {
    return uses && !is_null && first < config.layers ? refuse_windows(reader, "use_sliding_window", "true")
                                                     : ok_status();
  }
  if (!types->is_array() || std::ssize(types->as_array()) != config.layers) {
    return reader.error("layer_types", str_cat("expected a list of ", config.layers, " names"));
  }
  for (const Json& type : types->as_array()) {
    if (!type.is_string()) return reader.error("layer_types", "expected names");
    if (type.as_string() != "full_attention")
      return refuse_windows(reader, "layer_types", type.as_string().substr(0, 100));
  }
  return ok_status();
}

Status read_sections(const Json* list, const ConfigReader& reader, Qwen2DecoderConfig& out) {
  constexpr const char* kKey = "mrope_section";
  out.sections = {16, 24, 24};  // the reference's
  const int64_t pairs = out.head_dim() / 2;
  if (list != nullptr && !list->is_null()) {
    if (!list->is_array() || std::ssize(list->as_array()) != Qwen2DecoderConfig::kNumAxes) {
      return reader.error(kKey, "expected three numbers: of time, row and column");
    }
    for (size_t axis = 0; axis < out.sections.size(); ++axis) {
      const Json& section = list->as_array()[axis];
      if (!section.is_int() || section.as_int() < 0 || section.as_int() > pairs) {
        return reader.error(kKey, str_cat("expected whole numbers from 0 to ", pairs));
      }
      out.sections[axis] = static_cast<int32_t>(section.as_int());
    }
  }
  const int64_t sum = std::accumulate(out.sections.begin(), out.sections.end(), int64_t{0});
  if (sum == pairs) return ok_status();
  return reader.error(
      kKey, str_cat("the sections sum to ", sum, ", and a head of ", out.head_dim(), " columns has ", pairs, " pairs"));
}

// rope_scaling of published files, rope_parameters of those that 5.x writes.
Status read_rope(const Json& object, const ConfigReader& reader, Qwen2DecoderConfig& out) {
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
  constexpr double kMaxTheta = 1e12;
  ASSIGN_OR_RETURN(const double theta, reader.number("rope_theta", 1, kMaxTheta, 1e6));
  ASSIGN_OR_RETURN(out.theta, of_rope.number("rope_theta", 1, kMaxTheta, theta));
  ASSIGN_OR_RETURN(const std::string older, of_rope.string("type", "default"));
  ASSIGN_OR_RETURN(const std::string type, of_rope.string("rope_type", older));
  if (type != "default" && type != "mrope") {
    return with_param(
        unimplemented(of_rope.file(), ": rope_type: \"", type, "\" is not supported; default and mrope are"),
        "rope_type");
  }
  return read_sections(rope->find("mrope_section"), of_rope, out);
}

// ---- weights

class Qwen2DecoderLoader final {
 public:
  Qwen2DecoderLoader(const Qwen2DecoderConfig& config, const std::string& prefix, WeightMap& weights,
                     const ModelLoadOptions& options)
      : config_(config),
        sizes_{config.dim, config.hidden_dim, config.heads, config.kv_heads, config.activation, config.epsilon, true},
        prefix_(prefix),
        weights_(weights),
        options_(options) {}

  StatusOr<Decoder> load() {
    const std::string table = prefix_ + "embed_tokens.weight";
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, table, config_.vocab_size, config_.dim));
    if (config_.tied) weights_.ignore(kOutput);
    ASSIGN_OR_RETURN(LmHead head, LmHead::load(weights_, config_.tied ? table : kOutput, config_.vocab_size,
                                               config_.dim, {}, options_.packing));
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "layers.", i, ".")));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.final_norm, Norm::load(weights_, prefix_ + "norm", config_.dim,
                                                  {.kind = NormKind::kRms, .epsilon = config_.epsilon}));
    parts.rope = {rope_frequencies(config_.head_dim(), config_.theta), RopePairs::kHalves, config_.sections};
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(parts), options_.attention));
    return Decoder{TokenInput{.tokens = std::move(tokens)}, std::move(stack), std::move(head)};
  }

 private:
  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(layer.self, load_llama_attention(sizes_, prefix, weights_, options_.packing));
    ASSIGN_OR_RETURN(layer.feed_forward, load_llama_feed_forward(sizes_, prefix, weights_, options_.packing));
    return layer;
  }

  const Qwen2DecoderConfig& config_;
  const LlamaSizes sizes_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

}  // namespace

StatusOr<Qwen2DecoderConfig> read_qwen2_decoder(const ModelConfig& config) {
  const std::string file = config.path + "/config.json";
  const Json* const own = config.decoder();
  const Json& object = own == nullptr ? config.raw : *own;
  Qwen2DecoderConfig out;
  out.file = own == nullptr ? file : file + ": text_config";
  const ConfigReader reader(object, out.file);
  RETURN_IF_ERROR(read_sizes(object, reader, out));
  RETURN_IF_ERROR(check_windows(object, reader, out));
  RETURN_IF_ERROR(read_rope(object, reader, out));
  // Version 4 wrote it into text_config.
  ASSIGN_OR_RETURN(const bool tied_there, reader.boolean("tie_word_embeddings", false));
  ASSIGN_OR_RETURN(const bool tied_here, ConfigReader(config.raw, file).boolean("tie_word_embeddings", false));
  out.tied = tied_here || tied_there;
  return out;
}

StatusOr<Decoder> load_qwen2_decoder(const Qwen2DecoderConfig& config, const std::string& prefix, WeightMap& weights,
                                     const ModelLoadOptions& options) {
  return Qwen2DecoderLoader(config, prefix, weights, options).load();
}

}  // namespace transept
