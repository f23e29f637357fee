#include <cmath>
#include <numeric>

#include "models/cogagent_towers.h"
#include "models/square_input.h"

namespace transept {
namespace {

constexpr float kEpsilon = 1e-6f;  // the published code's own, of every norm
constexpr double kTheta = 10000;   // so is this

class LargeTower final : public SquareInput {
 public:
  LargeTower(const Options& options, Parts parts, TransformerStack layers, Embedding behind)
      : SquareInput(options, std::move(parts), std::move(layers)),
        behind_(std::move(behind)),
        patches_(static_cast<size_t>(behind_.num_rows())) {
    std::iota(patches_.begin(), patches_.end(), 0);
  }

 private:
  void finish(Context& context, const TensorView& x, const TensorView& y) const override {
    gather_rows(context, x.rows(1, x.dim(0)), patches_, y);
    behind_.add(context, patches_, 0, y);
  }

  Embedding behind_;              // of the patches, behind the layers
  std::vector<int32_t> patches_;  // 0, 1, ..
};

class CogAgentLargeTowerLoader final {
 public:
  CogAgentLargeTowerLoader(const CogAgentLargeTowerConfig& config, const std::string& prefix, WeightMap& weights,
                           const ModelLoadOptions& options)
      : config_(config), prefix_(prefix), tower_(prefix + "vit.model."), weights_(weights), options_(options) {}

  StatusOr<Encoder> load() {
    ignore_unread();
    const SquareInput::Options options{.side = config_.pictures.large_side,
                                       .patch = config_.pictures.large_patch,
                                       .dim = config_.dim,
                                       .projection = tower_ + "patch_embed.proj",
                                       .token = tower_ + "cls_token",
                                       .positions = tower_ + "pos_embed",
                                       .is_batched = true,
                                       .num_out = config_.pictures.num_crossed()};
    ASSIGN_OR_RETURN(SquareInput::Parts parts, SquareInput::load(options, weights_, options_.packing));
    StackParts stack;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(tower_, "blocks.", i, ".")));
      stack.layers.push_back(std::move(loaded));
    }
    stack.rope = rope();
    ASSIGN_OR_RETURN(TransformerStack layers, TransformerStack::make(std::move(stack), options_.attention));
    ASSIGN_OR_RETURN(const WeightView behind,
                     weights_.get(prefix_ + "pos_embed", {config_.pictures.num_crossed(), config_.dim}));
    auto input = std::make_unique<LargeTower>(options, std::move(parts), std::move(layers),
                                              Embedding::of(to_floats(behind), config_.dim));
    ASSIGN_OR_RETURN(TransformerStack one, LargeTower::one_layer(options_.attention));
    return Encoder{std::move(input), std::move(one)};
  }

 private:
  // What the class has and no row that is crossed comes from: the last block, the norm behind it, the output layer.
  // Angles of positions are buffers, which are computed.
  void ignore_unread() {
    weights_.ignore_below(str_cat(tower_, "blocks.", config_.layers, "."));
    for (const char* name : {"norm.", "fc_norm.", "head.", "rope."}) weights_.ignore_below(tower_ + name);
    for (int64_t i = 0; i < config_.layers; ++i) weights_.ignore_below(str_cat(tower_, "blocks.", i, ".attn.rope."));
  }

  // A half of the pairs goes by rows, the other by columns; the class has the place of the first patch, which turns
  // nothing.
  Rope rope() const {
    std::vector<float> of_one = rope_frequencies(config_.dim / config_.heads / 2, kTheta);
    const double grid = static_cast<double>(config_.pictures.large_grid());
    for (float& frequency : of_one) {
      frequency = static_cast<float>(static_cast<double>(frequency) * config_.positions_wide / grid);
    }
    const auto pairs = static_cast<int32_t>(of_one.size());
    Rope rope{of_one, RopePairs::kNeighbours, {pairs, pairs}};
    rope.frequencies.insert(rope.frequencies.end(), of_one.begin(), of_one.end());
    return rope;
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "norm1"));
    AttentionOptions attention;
    attention.prefix = prefix + "attn";
    attention.out = "proj";
    attention.dim = config_.dim;
    attention.num_heads = config_.heads;
    attention.scale = 1.0f / std::sqrt(static_cast<float>(attention.width_of_head()));
    attention.k_has_bias = false;
    attention.q_bias = "q_bias";
    attention.v_bias = "v_bias";
    attention.inner_norm = "inner_attn_ln";
    attention.inner_norm_options = {.epsilon = kEpsilon};
    ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights_, attention, options_.packing));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "norm2"));
    FeedForward::Options options{prefix + "mlp.w2", prefix + "mlp.w3", config_.dim, config_.hidden_dim,
                                 Activation::kSilu};
    options.gate = prefix + "mlp.w1";
    options.inner_norm = prefix + "mlp.ffn_ln";
    options.inner_norm_options = {.epsilon = kEpsilon};
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, options, options_.packing));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm norm, Norm::load(weights_, prefix, config_.dim, {.epsilon = kEpsilon}));
    return Residual{std::move(norm), NormPlace::kBefore};
  }

  const CogAgentLargeTowerConfig& config_;
  const std::string& prefix_;
  const std::string tower_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

}  // namespace

StatusOr<CogAgentLargeTowerConfig> read_cogagent_large_tower(const ModelConfig& config, int64_t dim) {
  constexpr int64_t kMaxLayers = 1000, kMaxDim = 1 << 20;
  CogAgentLargeTowerConfig out;
  ASSIGN_OR_RETURN(out.pictures, read_cogagent_pictures(config));
  ASSIGN_OR_RETURN(const Json object, cogagent_large_tower(config));
  const ConfigReader reader(object, config.path + "/config.json: cross_vision_config");
  ASSIGN_OR_RETURN(out.dim, reader.integer("hidden_size", 1, kMaxDim, dim));
  if (out.dim != dim) {
    return reader.error("hidden_size", str_cat(out.dim, " contradicts cross_hidden_size ", dim));
  }
  ASSIGN_OR_RETURN(const int64_t layers, reader.integer("layers", 2, kMaxLayers, 24));
  out.layers = layers - 1;
  ASSIGN_OR_RETURN(const int64_t head_width, reader.integer("head_width", 1, kMaxDim, 64));
  if (dim % head_width != 0) {
    return reader.error("head_width", str_cat("heads of ", head_width, " do not divide cross_hidden_size ", dim));
  }
  if (head_width % 4 != 0) {
    return reader.error("head_width", str_cat(head_width, ": rows and columns rotate multiples of 4"));
  }
  out.heads = dim / head_width;
  ASSIGN_OR_RETURN(const double ratio, reader.number("mlp_ratio", 0, 64, 2.6667));
  out.hidden_dim = static_cast<int64_t>(static_cast<double>(dim) * ratio);
  if (out.hidden_dim < 1) return reader.error("mlp_ratio", "gives a feed-forward of no width");
  ASSIGN_OR_RETURN(out.positions_wide, reader.number("pt_hw_seq_len", 1, 1 << 15, 16));
  return out;
}

StatusOr<Encoder> load_cogagent_large_tower(const CogAgentLargeTowerConfig& config, const std::string& prefix,
                                            WeightMap& weights, const ModelLoadOptions& options) {
  return CogAgentLargeTowerLoader(config, prefix, weights, options).load();
}

}  // namespace transept
