#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/activation_field.h"
#include "models/cogagent_towers.h"
#include "models/square_input.h"
#include "ops/activation.h"

namespace transept {
namespace {

// y = W2 (silu(W0 z) * (W1 z)), z = gelu(norm(W x)).
struct Adapter {
  Linear widen;
  Norm norm;
  FeedForward gated;
};

class SmallTower final : public SquareInput {
 public:
  SmallTower(const Options& options, Parts parts, TransformerStack layers, Embedding behind, Embedding ends,
             Adapter adapter)
      : SquareInput(options, std::move(parts), std::move(layers)),
        behind_(std::move(behind)),
        ends_(std::move(ends)),
        adapter_(std::move(adapter)),
        patches_(static_cast<size_t>(behind_.num_rows())) {
    std::iota(patches_.begin(), patches_.end(), 0);
  }

 private:
  void finish(Context& context, const TensorView& x, const TensorView& y) const override {
    const Arena::Scope scope(context.arena);
    const int64_t end = y.dim(0) - 1, count = end - 1;
    const TensorView patches = x.rows(1, x.dim(0));
    behind_.add(context, patches_, 0, patches);
    const TensorView z = context.arena.tensor(DType::kFloat32, {count, y.dim(1)});
    adapter_.widen.forward(context, patches, {}, z);
    adapter_.norm.forward(context, z, z);
    apply_gelu(context, z);
    adapter_.gated.forward(context, z, TensorView(), y.rows(1, end));
    const int32_t first[] = {0}, last[] = {1};
    ends_.look_up(context, first, 0, 1.0f, y.rows(0, 1));
    ends_.look_up(context, last, 0, 1.0f, y.rows(end, end + 1));
  }

  // As a gate of ones: products alone have activations of their own, and a norm stands between.
  static void apply_gelu(Context& context, const TensorView& z) {
    const Arena::Scope scope(context.arena);
    const TensorView ones = context.arena.tensor(DType::kFloat32, {z.dim(0), z.dim(1)});
    write_rows(
        context, [](int64_t, std::span<float> row) { std::ranges::fill(row, 1.0f); }, ones);
    gated_activation(context, Activation::kGelu, z, ones, z);
  }

  Embedding behind_;  // of the patches, behind the layers
  Embedding ends_;    // the rows around the picture's
  Adapter adapter_;
  std::vector<int32_t> patches_;  // 0, 1, ..
};

class CogAgentSmallTowerLoader final {
 public:
  CogAgentSmallTowerLoader(const CogAgentSmallTowerConfig& config, const std::string& prefix, WeightMap& weights,
                           const ModelLoadOptions& options)
      : config_(config), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Encoder> load() {
    const std::string embedding = prefix_ + "patch_embedding.";
    const SquareInput::Options options{.side = config_.pictures.small_side,
                                       .patch = config_.pictures.small_patch,
                                       .dim = config_.dim,
                                       .projection = embedding + "proj",
                                       .token = embedding + "cls_embedding",
                                       .positions = embedding + "position_embedding.weight",
                                       .num_out = config_.pictures.num_spliced()};
    ASSIGN_OR_RETURN(SquareInput::Parts parts, SquareInput::load(options, weights_, options_.packing));
    StackParts stack;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "transformer.layers.", i, ".")));
      stack.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(TransformerStack layers, TransformerStack::make(std::move(stack), options_.attention));
    ASSIGN_OR_RETURN(const WeightView behind,
                     weights_.get(prefix_ + "pos_embed", {config_.pictures.num_patches(), config_.dim}));
    ASSIGN_OR_RETURN(Embedding ends, load_ends());
    ASSIGN_OR_RETURN(Adapter adapter, load_adapter(prefix_ + "linear_proj."));
    auto input = std::make_unique<SmallTower>(options, std::move(parts), std::move(layers),
                                              Embedding::of(to_floats(behind), config_.dim), std::move(ends),
                                              std::move(adapter));
    ASSIGN_OR_RETURN(TransformerStack one, SmallTower::one_layer(options_.attention));
    return Encoder{std::move(input), std::move(one)};
  }

 private:
  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "input_layernorm"));
    AttentionOptions attention;
    attention.prefix = prefix + "attention";
    attention.fused = "query_key_value";
    attention.out = "dense";
    attention.dim = config_.dim;
    attention.num_heads = config_.heads;
    attention.scale = 1.0f / std::sqrt(static_cast<float>(attention.width_of_head()));
    ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights_, attention, options_.packing));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "post_attention_layernorm"));
    const FeedForward::Options options{prefix + "mlp.fc1", prefix + "mlp.fc2", config_.dim, config_.hidden_dim,
                                       config_.activation};
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, options, options_.packing));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm norm, Norm::load(weights_, prefix, config_.dim, {.epsilon = config_.epsilon}));
    return Residual{std::move(norm), NormPlace::kInside};
  }

  StatusOr<Embedding> load_ends() {
    std::vector<float> rows;
    for (const char* name : {"boi", "eoi"}) {
      ASSIGN_OR_RETURN(const WeightView view, weights_.get(prefix_ + name, {1, 1, config_.out_dim}));
      const std::vector<float> row = to_floats(view);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return Embedding::of(std::move(rows), config_.out_dim);
  }

  StatusOr<Adapter> load_adapter(const std::string& prefix) {
    const LinearSource source{.weight = prefix + "linear_proj.weight", .bias = "", .out_features = config_.out_dim};
    ASSIGN_OR_RETURN(Linear widen, Linear::load(weights_, {{source}, config_.dim}, options_.packing));
    ASSIGN_OR_RETURN(Norm norm, Norm::load(weights_, prefix + "norm1", config_.out_dim, {}));  // torch's epsilon
    FeedForward::Options gated{prefix + "dense_h_to_4h", prefix + "dense_4h_to_h", config_.out_dim, config_.adapter_dim,
                               Activation::kSilu};
    gated.gate = prefix + "gate_proj";
    gated.has_biases = false;
    ASSIGN_OR_RETURN(FeedForward loaded, FeedForward::load(weights_, gated, options_.packing));
    return Adapter{std::move(widen), std::move(norm), std::move(loaded)};
  }

  const CogAgentSmallTowerConfig& config_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

}  // namespace

StatusOr<CogAgentSmallTowerConfig> read_cogagent_small_tower(const ModelConfig& config, int64_t out_dim,
                                                             int64_t adapter_dim) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20, kMaxRows = int64_t{1} << 31;
  CogAgentSmallTowerConfig out;
  out.out_dim = out_dim;
  out.adapter_dim = adapter_dim;
  ASSIGN_OR_RETURN(out.pictures, read_cogagent_pictures(config));
  const ConfigReader reader(*config.raw.find("vision_config"), config.path + "/config.json: vision_config");
  ASSIGN_OR_RETURN(out.dim, reader.integer("hidden_size", 1, kMaxDim, 1792));
  ASSIGN_OR_RETURN(out.hidden_dim, reader.integer("intermediate_size", 1, kMaxDim, 15360));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 63));
  ASSIGN_OR_RETURN(out.heads, reader.integer("num_heads", 1, kMaxHeads, 16));
  if (out.dim % out.heads != 0) {
    return reader.error("num_heads", str_cat(out.heads, " heads do not divide hidden_size ", out.dim));
  }
  const int64_t num_rows = out.pictures.num_patches() + 1;
  ASSIGN_OR_RETURN(const int64_t positions, reader.integer("num_positions", 1, kMaxRows, num_rows));
  if (positions != num_rows) {
    return reader.error("num_positions",
                        str_cat(positions, " is not ", num_rows, ", which image_size and patch_size give"));
  }
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_eps", 0, 1, 1e-6));
  out.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "hidden_act", "gelu"));
  return out;
}

StatusOr<Encoder> load_cogagent_small_tower(const CogAgentSmallTowerConfig& config, const std::string& prefix,
                                            WeightMap& weights, const ModelLoadOptions& options) {
  return CogAgentSmallTowerLoader(config, prefix, weights, options).load();
}

}  // namespace transept
