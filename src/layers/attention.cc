#include "layers/attention.h"

namespace transept {
namespace {

LinearSource source(const AttentionOptions& options, const std::string& name, bool has_bias = true) {
  const std::string prefix = options.prefix + "." + name;
  return {prefix + ".weight", has_bias && options.has_biases ? prefix + ".bias" : "", options.inner_dim()};
}

StatusOr<Linear> load_out(WeightMap& weights, const AttentionOptions& options, const PackOptions& packing) {
  LinearSource out = source(options, options.out, options.out_has_bias);
  out.out_features = options.dim;
  return Linear::load(weights, {{out}, options.inner_dim()}, packing);
}

}  // namespace

StatusOr<SelfAttention> SelfAttention::load(WeightMap& weights, const AttentionOptions& options,
                                            const PackOptions& packing) {
  const LinearSpec qkv_spec{
      {source(options, options.q), source(options, options.k, options.k_has_bias), source(options, options.v)},
      options.dim};
  ASSIGN_OR_RETURN(Linear qkv, Linear::load(weights, qkv_spec, packing));
  ASSIGN_OR_RETURN(Linear out, load_out(weights, options, packing));
  return SelfAttention(std::move(qkv), std::move(out), options);
}

void SelfAttention::forward(Context& context, const AttentionBackend& backend, AttentionType type,
                            const AttentionMetadata& metadata, const TensorView& kv_cache, const TensorView& x,
                            const TensorView& residual, const TensorView& y, const AttentionBias* bias,
                            const RopeAngles* angles) const {
  Arena::Scope scope(context.arena);
  const int64_t rows = x.dim(0);
  const int64_t dim = out_.in_features();
  const TensorView qkv = context.arena.tensor(DType::kFloat32, {rows, 3 * dim});
  const TensorView mixed = context.arena.tensor(DType::kFloat32, {rows, dim});
  qkv_.forward(context, x, {}, qkv);
  AttentionArgs args;
  args.q = qkv.columns(0, dim).split_heads(num_heads_);
  args.k = qkv.columns(dim, 2 * dim).split_heads(num_heads_);
  args.v = qkv.columns(2 * dim, 3 * dim).split_heads(num_heads_);
  if (angles != nullptr) {
    rope(context, *angles, args.q);
    rope(context, *angles, args.k);
  }
  args.out = mixed.split_heads(num_heads_);
  args.kv_cache = kv_cache;
  args.scale = scale_;
  args.causal = type == AttentionType::kDecoder;
  args.bias = bias;
  backend.run(context, type, metadata, args);
  out_.forward(context, mixed, {.residual = residual}, y);
}

StatusOr<CrossAttention> CrossAttention::load(WeightMap& weights, const AttentionOptions& options,
                                              const PackOptions& packing) {
  ASSIGN_OR_RETURN(Linear q, Linear::load(weights, {{source(options, options.q)}, options.dim}, packing));
  const LinearSpec kv_spec{{source(options, options.k, options.k_has_bias), source(options, options.v)}, options.dim};
  ASSIGN_OR_RETURN(Linear kv, Linear::load(weights, kv_spec, packing));
  ASSIGN_OR_RETURN(Linear out, load_out(weights, options, packing));
  return CrossAttention(std::move(q), std::move(kv), std::move(out), options);
}

void CrossAttention::write_kv(Context& context, const AttentionBackend& backend, const AttentionMetadata& metadata,
                              const TensorView& kv_cache, const TensorView& encoder_output) const {
  Arena::Scope scope(context.arena);
  const int64_t dim = q_.out_features();
  const TensorView kv = context.arena.tensor(DType::kFloat32, {encoder_output.dim(0), 2 * dim});
  kv_.forward(context, encoder_output, {}, kv);
  AttentionArgs args;
  args.k = kv.columns(0, dim).split_heads(num_heads_);
  args.v = kv.columns(dim, 2 * dim).split_heads(num_heads_);
  args.kv_cache = kv_cache;
  backend.run(context, AttentionType::kEncoderDecoder, metadata, args);
}

void CrossAttention::forward(Context& context, const AttentionBackend& backend, const AttentionMetadata& metadata,
                             const TensorView& kv_cache, const TensorView& x, const TensorView& residual,
                             const TensorView& y, AttentionCapture* capture) const {
  Arena::Scope scope(context.arena);
  const int64_t rows = x.dim(0);
  const int64_t dim = q_.out_features();
  const TensorView q = context.arena.tensor(DType::kFloat32, {rows, dim});
  const TensorView mixed = context.arena.tensor(DType::kFloat32, {rows, dim});
  q_.forward(context, x, {}, q);
  AttentionArgs args;
  args.q = q.split_heads(num_heads_);
  args.out = mixed.split_heads(num_heads_);
  args.kv_cache = kv_cache;
  args.scale = scale_;
  args.capture = capture;
  backend.run(context, AttentionType::kEncoderDecoder, metadata, args);
  out_.forward(context, mixed, {.residual = residual}, y);
}

LayerCapture::LayerCapture(const CrossCapture* wanted, int32_t layer) {
  if (wanted == nullptr) return;
  int64_t first = -1;
  for (size_t i = 0; i < wanted->heads.size(); ++i) {
    if (wanted->heads[i].layer != layer) continue;
    if (first < 0) first = static_cast<int64_t>(i);
    heads_.push_back(wanted->heads[i].head);
  }
  if (heads_.empty()) return;
  capture_.heads = heads_;
  capture_.rows = wanted->rows;
  capture_.out = wanted->out.rows(first, first + static_cast<int64_t>(heads_.size()));
}

}  // namespace transept
