#include "layers/attention.h"

#include "layers/row_runs.h"

namespace transept {
namespace {

LinearSource source(const AttentionOptions& options, const std::string& name, int64_t width, bool has_bias = true) {
  const std::string prefix = options.prefix + "." + name;
  return {.weight = prefix + ".weight",
          .bias = has_bias && options.has_biases ? prefix + ".bias" : "",
          .out_features = width,
          .is_transposed = options.is_transposed};
}

// A bias by its own name; "": the matrix's.
LinearSource named_source(const AttentionOptions& options, const std::string& name, int64_t width,
                          const std::string& bias) {
  LinearSource named = source(options, name, width, options.qkv_has_bias);
  if (!bias.empty()) named.bias = options.prefix + "." + bias;
  return named;
}

LinearSource q_source(const AttentionOptions& options) {
  return named_source(options, options.q, options.q_width(), options.q_bias);
}

LinearSource fused_source(const AttentionOptions& options, const std::string& name, int64_t width, int64_t blocks) {
  LinearSource fused = source(options, name, width, options.qkv_has_bias);
  fused.blocks = blocks;
  return fused;
}

std::vector<LinearSource> kv_sources(const AttentionOptions& options) {
  const int64_t width = options.kv_width();
  if (!options.fused.empty()) return {fused_source(options, options.fused, 2 * width, 2)};
  return {source(options, options.k, width, options.qkv_has_bias && options.k_has_bias),
          named_source(options, options.v, width, options.v_bias)};
}

std::vector<LinearSource> qkv_sources(const AttentionOptions& options) {
  if (!options.fused.empty()) {
    CHECK(options.q_width() == options.kv_width(), "three equal blocks");
    return {fused_source(options, options.fused, 3 * options.q_width(), 3)};
  }
  std::vector<LinearSource> sources = kv_sources(options);
  sources.insert(sources.begin(), q_source(options));
  return sources;
}

// A product whose outputs are heads.
StatusOr<Linear> load_heads(WeightMap& weights, const AttentionOptions& options, std::vector<LinearSource> sources,
                            int64_t in_features, const PackOptions& packing) {
  return Linear::load(weights,
                      {.sources = std::move(sources),
                       .in_features = in_features,
                       .split = Split::kOutputs,
                       .unit = options.width_of_head()},
                      packing);
}

StatusOr<Linear> load_out(WeightMap& weights, const AttentionOptions& options, const PackOptions& packing) {
  const LinearSource out_source = source(options, options.out, options.dim, options.out_has_bias);
  ASSIGN_OR_RETURN(Linear out, Linear::load(weights,
                                            {.sources = {out_source},
                                             .in_features = options.q_width(),
                                             .split = Split::kInputs,
                                             .unit = options.width_of_head()},
                                            packing));
  RETURN_IF_ERROR(out.check_division(weights, out_source.weight));
  return out;
}

AttentionArgs args_of(const AttentionInputs& inputs, const AttentionHeads& heads) {
  AttentionArgs args;
  args.kv_cache = inputs.kv_cache;
  args.num_kv_heads = static_cast<int32_t>(heads.num_kv_heads());
  args.scale = heads.scale();
  args.bias = inputs.bias;
  args.capture = inputs.capture;
  return args;
}

}  // namespace

AttentionHeads::AttentionHeads(const AttentionOptions& options, const Ranks& ranks)
    : num_heads_(options.num_heads / ranks.count),
      num_kv_heads_(options.kv_heads() / ranks.count),
      head_dim_(options.width_of_head()),
      first_head_(num_heads_ * ranks.rank),
      scale_(options.scale) {}

StatusOr<AttentionHeads> AttentionHeads::load(WeightMap& weights, const AttentionOptions& options, const Ranks& ranks) {
  std::string why;
  if (!divides(ranks, options.num_heads, "heads", &why) || !divides(ranks, options.kv_heads(), "KV heads", &why)) {
    return unimplemented(weights.source(), ": ", options.prefix, ": ", why);
  }
  AttentionHeads heads(options, ranks);
  for (const auto& [name, norm] : {std::pair(&options.q_norm, &heads.q_norm_), {&options.k_norm, &heads.k_norm_}}) {
    if (name->empty()) continue;
    ASSIGN_OR_RETURN(*norm, Norm::load(weights, options.prefix + "." + *name, heads.head_dim_, options.head_norm));
  }
  return heads;
}

AttentionCapabilities AttentionHeads::wanted() const {
  return {.num_heads = static_cast<int32_t>(num_heads_),
          .num_kv_heads = static_cast<int32_t>(num_kv_heads_),
          .head_dim = static_cast<int32_t>(head_dim_)};
}

TensorView AttentionHeads::prepare_q(Context& context, const TensorView& q, const RopeAngles* angles) const {
  if (!q_norm_.empty()) q_norm_.forward_heads(context, q, num_heads_);
  const TensorView by_head = q.split_heads(num_heads_);
  if (angles != nullptr) apply_rope(context, *angles, by_head);
  return by_head;
}

TensorView AttentionHeads::prepare_k(Context& context, const TensorView& k, const RopeAngles* angles) const {
  if (!k_norm_.empty()) k_norm_.forward_heads(context, k, num_kv_heads_);
  const TensorView by_head = k.split_heads(num_kv_heads_);
  if (angles != nullptr) apply_rope(context, *angles, by_head);
  return by_head;
}

StatusOr<SelfAttention> SelfAttention::load(WeightMap& weights, const AttentionOptions& options,
                                            const PackOptions& packing) {
  CHECK(options.kv_input_dim() == options.dim);
  ASSIGN_OR_RETURN(AttentionHeads heads, AttentionHeads::load(weights, options, packing.ranks));
  ASSIGN_OR_RETURN(Linear qkv, load_heads(weights, options, qkv_sources(options), options.dim, packing));
  ASSIGN_OR_RETURN(Linear out, load_out(weights, options, packing));
  SelfAttention self({std::move(qkv), std::move(out)}, std::move(heads));
  if (!options.inner_norm.empty()) {
    if (packing.ranks.count > 1) {
      return unimplemented(weights.source(), ": ", options.prefix, ".", options.inner_norm,
                           ": one norm over all heads: --tensor-parallel-size 1");
    }
    ASSIGN_OR_RETURN(self.inner_norm_, Norm::load(weights, options.prefix + "." + options.inner_norm, options.q_width(),
                                                  options.inner_norm_options));
  }
  if (options.expert_fused.empty()) return self;
  AttentionOptions expert = options;
  expert.fused = options.expert_fused;
  expert.out = options.expert_out;
  ASSIGN_OR_RETURN(Linear expert_qkv, load_heads(weights, expert, qkv_sources(expert), expert.dim, packing));
  ASSIGN_OR_RETURN(Linear expert_out, load_out(weights, expert, packing));
  self.expert_ = Products{std::move(expert_qkv), std::move(expert_out)};
  return self;
}

void SelfAttention::multiply(Context& context, Linear Products::*product, const AttentionInputs& inputs,
                             const TensorView& x, const TensorView& residual, const TensorView& y) const {
  const View<uint8_t> kinds = expert_.has_value() ? inputs.row_kinds : View<uint8_t>();
  for_each_run(kinds, x.dim(0), [&](int64_t begin, int64_t end, bool is_experts) {
    const Products& products = is_experts ? *expert_ : own_;
    const TensorView added = residual.rank == 0 ? residual : residual.rows(begin, end);
    (products.*product).forward(context, x.rows(begin, end), {.residual = added}, y.rows(begin, end));
  });
}

void SelfAttention::forward(Context& context, const AttentionInputs& inputs, const TensorView& x,
                            const TensorView& residual, const TensorView& y) const {
  const Arena::Scope scope(context.arena);
  const int64_t rows = x.dim(0), q_end = heads_.q_width(), k_end = q_end + heads_.kv_width();
  const TensorView qkv = context.arena.tensor(DType::kFloat32, {rows, k_end + heads_.kv_width()});
  const TensorView mixed = context.arena.tensor(DType::kFloat32, {rows, q_end});
  multiply(context, &Products::qkv, inputs, x, TensorView(), qkv);
  AttentionArgs args = args_of(inputs, heads_);
  args.q = heads_.prepare_q(context, qkv.columns(0, q_end), inputs.angles);
  args.k = heads_.prepare_k(context, qkv.columns(q_end, k_end), inputs.angles);
  args.v = qkv.columns(k_end, qkv.dim(1)).split_heads(heads_.num_kv_heads());
  args.out = mixed.split_heads(args.q.dim(1));
  args.causal = inputs.type == AttentionType::kDecoder;
  inputs.backend.run(context, inputs.type, inputs.metadata, args);
  if (!inner_norm_.empty()) inner_norm_.forward(context, mixed, mixed);
  multiply(context, &Products::out, inputs, mixed, residual, y);
}

StatusOr<CrossAttention> CrossAttention::load(WeightMap& weights, const AttentionOptions& options,
                                              const PackOptions& packing) {
  ASSIGN_OR_RETURN(AttentionHeads heads, AttentionHeads::load(weights, options, packing.ranks));
  ASSIGN_OR_RETURN(Linear q, load_heads(weights, options, {q_source(options)}, options.dim, packing));
  ASSIGN_OR_RETURN(Linear kv, load_heads(weights, options, kv_sources(options), options.kv_input_dim(), packing));
  ASSIGN_OR_RETURN(Linear out, load_out(weights, options, packing));
  return CrossAttention(std::move(q), std::move(kv), std::move(out), std::move(heads));
}

void CrossAttention::write_kv(Context& context, const AttentionInputs& inputs, const TensorView& encoder_output) const {
  const Arena::Scope scope(context.arena);
  const int64_t width = heads_.kv_width();
  const TensorView kv = context.arena.tensor(DType::kFloat32, {encoder_output.dim(0), 2 * width});
  kv_.forward(context, encoder_output, {}, kv);
  AttentionArgs args;
  args.k = heads_.prepare_k(context, kv.columns(0, width), inputs.angles);
  args.v = kv.columns(width, 2 * width).split_heads(heads_.num_kv_heads());
  args.kv_cache = inputs.kv_cache;
  inputs.backend.run(context, AttentionType::kEncoderDecoder, inputs.metadata, args);
}

void CrossAttention::forward(Context& context, const AttentionInputs& inputs, const TensorView& x,
                             const TensorView& residual, const TensorView& y) const {
  const Arena::Scope scope(context.arena);
  const TensorView q = context.arena.tensor(DType::kFloat32, {x.dim(0), heads_.q_width()});
  const TensorView mixed = context.arena.tensor(DType::kFloat32, {x.dim(0), heads_.q_width()});
  q_.forward(context, x, {}, q);
  AttentionArgs args = args_of(inputs, heads_);
  args.q = heads_.prepare_q(context, q, inputs.angles);
  args.out = mixed.split_heads(args.q.dim(1));
  inputs.backend.run(context, AttentionType::kEncoderDecoder, inputs.metadata, args);
  out_.forward(context, mixed, {.residual = residual}, y);
}

LayerCapture::LayerCapture(const CrossCapture* wanted, int32_t layer, const AttentionHeads& heads) {
  if (wanted == nullptr) return;
  int64_t first = -1;
  for (size_t i = 0; i < wanted->heads.size(); ++i) {
    if (wanted->heads[i].layer != layer) continue;
    if (first < 0) first = static_cast<int64_t>(i);
    heads_.push_back(heads.place_of(wanted->heads[i].head));  // no head is at -1
  }
  if (heads_.empty()) return;
  capture_.heads = heads_;
  capture_.rows = wanted->rows;
  capture_.out = wanted->out.rows(first, first + static_cast<int64_t>(heads_.size()));
}

}  // namespace transept
