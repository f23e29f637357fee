// Moonshine (Jeffries et al. 2024): an encoder over the samples themselves, as many positions as there is audio;
// pre-norm layers without biases in their norms, rotary positions in self-attention, a gated feed-forward in the
// decoder. Checkpoints: UsefulSensors/moonshine-tiny, -base and their flavours for single languages. Source:
// transformers, models/moonshine/modeling_moonshine.py.
#include <cmath>

#include "layers/conv1d.h"
#include "layers/group_norm.h"
#include "models/activation_field.h"
#include "models/encoder_decoder_model.h"
#include "models/families.h"
#include "ops/rows.h"

namespace transept {
namespace {

struct MoonshineConfig {
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0;
  int64_t encoder_layers = 0, decoder_layers = 0;
  int64_t heads = 0, head_dim = 0;  // of both sides
  int64_t max_positions = 0;        // the decoder's
  Activation encoder_activation = Activation::kGelu, decoder_activation = Activation::kSilu;
  bool attention_bias = false;
  bool tied = true;
  std::vector<float> rope_frequencies;
};

// The reference splits its queries by the number of key heads, and gives both sides the encoder's number of heads: it
// has no meaning for others than these.
Status read_heads(const ConfigReader& reader, MoonshineConfig& out) {
  constexpr int64_t kMaxHeads = 1024, kMaxHeadDim = 1024;
  ASSIGN_OR_RETURN(out.heads, reader.integer("encoder_num_attention_heads", 1, kMaxHeads));
  for (const char* key :
       {"decoder_num_attention_heads", "encoder_num_key_value_heads", "decoder_num_key_value_heads"}) {
    ASSIGN_OR_RETURN(const int64_t heads, reader.integer(key, 1, kMaxHeads, out.heads));
    if (heads == out.heads) continue;
    return reader.error(key, str_cat(heads, " is not supported where encoder_num_attention_heads is ", out.heads,
                                     ": as many are needed everywhere (no grouped queries, no sides that differ)"));
  }
  if (out.hidden_size < out.heads) return reader.error("hidden_size", "is less than there are heads");
  ASSIGN_OR_RETURN(out.head_dim, reader.integer("head_dim", 1, kMaxHeadDim, out.hidden_size / out.heads));
  // Zeros behind each head for the sake of other kernels: they change nothing.
  return reader.integer("pad_head_dim_to_multiple_of", 1, kMaxHeadDim, 1).status();
}

// Fields of the top level, or, as transformers 5 writes them, of rope_parameters.
Status read_rope(const ModelConfig& config, const ConfigReader& reader, MoonshineConfig& out) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = config.raw.find(key);
    if (object == nullptr || object->is_null()) continue;
    if (!object->is_object()) return reader.error(key, str_cat("expected an object, got ", object->kind_name()));
    const ConfigReader fields(*object, reader.file());
    ASSIGN_OR_RETURN(const std::string older, fields.string("type", "default"));
    ASSIGN_OR_RETURN(const std::string type, fields.string("rope_type", older));
    if (type != "default") return reader.error(key, str_cat("\"", type, "\" is not supported, only \"default\""));
  }
  const Json* nested = config.raw.find("rope_parameters");
  const ConfigReader fields(nested != nullptr && nested->is_object() ? *nested : config.raw, reader.file());
  ASSIGN_OR_RETURN(const double theta, fields.number("rope_theta", 1, 1e12, 10000));
  ASSIGN_OR_RETURN(const double outer, reader.number("partial_rotary_factor", 0, 1, 0.9));
  ASSIGN_OR_RETURN(const double factor, fields.number("partial_rotary_factor", 0, 1, outer));
  out.rope_frequencies = rope_frequencies(static_cast<int64_t>(static_cast<double>(out.head_dim) * factor), theta);
  if (2 * static_cast<int64_t>(out.rope_frequencies.size()) <= out.head_dim) return ok_status();
  return reader.error("partial_rotary_factor", str_cat(factor, " of ", out.head_dim, " columns are no pairs"));
}

StatusOr<MoonshineConfig> read_moonshine_config(const ModelConfig& config) {
  constexpr int64_t kMaxLayers = 1000, kMaxDim = 1 << 20;
  const ConfigReader reader(config.raw, config.path + "/config.json");
  MoonshineConfig out;
  if (config.vocab_size == 0) return reader.error("vocab_size", "is missing");
  out.vocab_size = config.vocab_size;
  ASSIGN_OR_RETURN(out.hidden_size, reader.integer("hidden_size", 1, kMaxDim));
  ASSIGN_OR_RETURN(out.intermediate_size, reader.integer("intermediate_size", 1, kMaxDim));
  ASSIGN_OR_RETURN(out.encoder_layers, reader.integer("encoder_num_hidden_layers", 1, kMaxLayers));
  ASSIGN_OR_RETURN(out.decoder_layers, reader.integer("decoder_num_hidden_layers", 1, kMaxLayers));
  ASSIGN_OR_RETURN(out.max_positions, reader.integer("max_position_embeddings", 1, ModelSpec::kMaxPositions));
  RETURN_IF_ERROR(read_heads(reader, out));
  RETURN_IF_ERROR(read_rope(config, reader, out));
  ASSIGN_OR_RETURN(out.encoder_activation, read_activation(reader, "encoder_hidden_act", "gelu"));
  ASSIGN_OR_RETURN(out.decoder_activation, read_activation(reader, "decoder_hidden_act", "silu"));
  ASSIGN_OR_RETURN(out.attention_bias, reader.boolean("attention_bias", false));
  ASSIGN_OR_RETURN(out.tied, reader.boolean("tie_word_embeddings", true));
  return out;
}

// Samples -> tanh(conv1) -> one-group norm -> gelu(conv2) -> gelu(conv3): a position for every 384 samples.
class WaveInput final : public EncoderInput {
 public:
  static StatusOr<std::unique_ptr<EncoderInput>> load(int64_t dim, WeightMap& weights, const PackOptions& packing) {
    const auto conv = [&](const char* name, int64_t in, int64_t out, const Conv1dShape& shape, bool has_bias,
                          LayerInputs inputs = LayerInputs::kConvolution) {
      return Conv1d::load(weights, {str_cat("encoder.", name), in, out, shape, has_bias, inputs}, packing);
    };
    ASSIGN_OR_RETURN(Conv1d conv1, conv("conv1", 1, dim, {.kernel = 127, .stride = 64}, false, LayerInputs::kRaw));
    ASSIGN_OR_RETURN(GroupNorm norm, GroupNorm::load(weights, "encoder.groupnorm", dim));
    ASSIGN_OR_RETURN(Conv1d conv2, conv("conv2", dim, 2 * dim, {.kernel = 7, .stride = 3}, true));
    ASSIGN_OR_RETURN(Conv1d conv3, conv("conv3", 2 * dim, dim, {.kernel = 3, .stride = 2}, true));
    return std::unique_ptr<EncoderInput>(
        new WaveInput(std::move(conv1), std::move(norm), std::move(conv2), std::move(conv3)));
  }

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    int64_t row = 0;
    for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
      const int64_t end = row + batch.attention.seq_lens[i];
      run(context, context.dry_run ? nullptr : &batch.features[i], x.rows(row, end));
      row = end;
    }
  }

 private:
  WaveInput(Conv1d conv1, GroupNorm norm, Conv1d conv2, Conv1d conv3)
      : conv1_(std::move(conv1)), norm_(std::move(norm)), conv2_(std::move(conv2)), conv3_(std::move(conv3)) {}

  // wave: null in a dry run.
  void run(Context& context, const FeaturesView* wave, const TensorView& y) const {
    int64_t length2 = conv1d_longest_input(y.dim(0), conv3_.shape());
    int64_t length1 = conv1d_longest_input(length2, conv2_.shape());
    int64_t num_samples = conv1d_longest_input(length1, conv1_.shape());
    if (wave != nullptr) {
      num_samples = static_cast<int64_t>(wave->values.size());
      length1 = conv1_.output_length(num_samples);
      length2 = conv2_.output_length(length1);
      CHECK(conv3_.output_length(length2) == y.dim(0), num_samples, " samples for ", y.dim(0), " positions");
    }
    Arena::Scope scope(context.arena);
    const TensorView samples = context.arena.tensor(DType::kFloat32, {num_samples, 1});
    const TensorView first = context.arena.tensor(DType::kFloat32, {length1, conv1_.out_channels()});
    const TensorView second = context.arena.tensor(DType::kFloat32, {length2, conv2_.out_channels()});
    upload(context, wave == nullptr ? std::span<const float>() : wave->values, samples);
    conv1_.forward(context, samples, {.activation = Activation::kTanh}, first);
    norm_.forward(context, first, first);
    conv2_.forward(context, first, {.activation = Activation::kGelu}, second);
    conv3_.forward(context, second, {.activation = Activation::kGelu}, y);
  }

  Conv1d conv1_;
  GroupNorm norm_;
  Conv1d conv2_, conv3_;
};

class MoonshineLoader final {
 public:
  MoonshineLoader(const MoonshineConfig& config, WeightMap& weights, const ModelLoadOptions& options)
      : config_(config),
        weights_(weights),
        packing_(options.packing),
        attention_(options.attention),
        part_(options.part) {}

  StatusOr<EncoderDecoderParts> load() {
    EncoderDecoderParts parts{.spec = spec()};
    if (has_encoder(part_)) {
      ASSIGN_OR_RETURN(parts.encoder, encoder());
    } else {
      weights_.ignore_below("encoder.");
    }
    if (has_decoder(part_)) {
      ASSIGN_OR_RETURN(parts.decoder, decoder());
    } else {
      weights_.ignore_below("decoder.");
      weights_.ignore_below(kOutput);
    }
    return parts;
  }

 private:
  static constexpr const char* kTable = "decoder.embed_tokens.weight";
  static constexpr const char* kOutput = "proj_out.weight";

  StatusOr<Encoder> encoder() {
    ASSIGN_OR_RETURN(std::unique_ptr<EncoderInput> input, WaveInput::load(config_.hidden_size, weights_, packing_));
    ASSIGN_OR_RETURN(TransformerStack layers, stack("encoder", "encoder.layer_norm"));
    return Encoder{std::move(input), std::move(layers)};
  }

  StatusOr<Decoder> decoder() {
    const std::string table = config_.tied && !weights_.contains(kTable) ? kOutput : kTable;
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, table, config_.vocab_size, config_.hidden_size));
    if (config_.tied) weights_.ignore(kOutput);
    ASSIGN_OR_RETURN(LmHead head, LmHead::load(weights_, config_.tied ? table : kOutput, config_.vocab_size,
                                               config_.hidden_size, {}, packing_));
    ASSIGN_OR_RETURN(TransformerStack layers, stack("decoder", "decoder.norm"));
    return Decoder{{.tokens = std::move(tokens)}, std::move(layers), std::move(head)};
  }

  ModelSpec spec() const {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    ModelSpec spec;
    spec.family = "moonshine";
    spec.d_model = i32(config_.hidden_size);
    spec.vocab_size = i32(config_.vocab_size);
    spec.max_encoder_positions = ModelSpec::kNoLimit;
    spec.max_decoder_positions = i32(config_.max_positions);
    spec.modalities = {"audio"};
    return spec;
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    return Norm::load(weights_, prefix, config_.hidden_size, {.has_bias = false});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  StatusOr<FeedForward> feed_forward(const std::string& prefix, bool is_decoders) {
    FeedForward::Options options;
    options.up = prefix + ".fc1";
    options.down = prefix + ".fc2";
    options.dim = config_.hidden_size;
    options.hidden_dim = config_.intermediate_size;
    options.activation = is_decoders ? config_.decoder_activation : config_.encoder_activation;
    options.up_holds_gate = is_decoders;
    return FeedForward::load(weights_, options, packing_);
  }

  AttentionOptions attention_options(const std::string& prefix) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.out = "o_proj";
    options.dim = config_.hidden_size;
    options.num_heads = config_.heads;
    options.head_dim = config_.head_dim;
    options.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
    options.has_biases = config_.attention_bias;
    options.out_has_bias = false;
    return options;
  }

  StatusOr<TransformerStack> stack(const std::string& side, const std::string& final_norm) {
    const bool is_decoder = side == "decoder";
    StackParts parts;
    for (int64_t i = 0; i < (is_decoder ? config_.decoder_layers : config_.encoder_layers); ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(side, ".layers.", i), is_decoder));
      parts.layers.push_back(std::move(loaded));
    }
    parts.rope.frequencies = config_.rope_frequencies;
    ASSIGN_OR_RETURN(parts.final_norm, norm(final_norm));
    return TransformerStack::make(std::move(parts), attention_);
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix, bool is_decoder) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + ".input_layernorm"));
    ASSIGN_OR_RETURN(SelfAttention self,
                     SelfAttention::load(weights_, attention_options(prefix + ".self_attn"), packing_));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    const char* const behind_self = ".post_attention_layernorm";
    if (is_decoder) {
      ASSIGN_OR_RETURN(Residual cross_sum, residual(prefix + behind_self));
      ASSIGN_OR_RETURN(CrossAttention cross,
                       CrossAttention::load(weights_, attention_options(prefix + ".encoder_attn"), packing_));
      layer.cross = Sublayer<CrossAttention>{std::move(cross), std::move(cross_sum)};
    }
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + (is_decoder ? ".final_layernorm" : behind_self)));
    ASSIGN_OR_RETURN(FeedForward ffn, feed_forward(prefix + ".mlp", is_decoder));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  const MoonshineConfig& config_;
  WeightMap& weights_;
  const PackOptions& packing_;
  const AttentionBackend& attention_;
  const ModelPart part_;
};

}  // namespace

StatusOr<std::unique_ptr<Model>> load_moonshine(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                                const ModelLoadOptions& options) {
  ASSIGN_OR_RETURN(const MoonshineConfig sizes, read_moonshine_config(config));
  weights->set_optional_prefix("model.");
  ASSIGN_OR_RETURN(EncoderDecoderParts parts, MoonshineLoader(sizes, *weights, options).load());
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
