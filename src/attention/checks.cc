#include "attention/checks.h"

#include "attention/kv_format.h"

namespace transept {
namespace {

bool same_rows_of_heads(const TensorView& a, const TensorView& b) {
  return a.rank == 3 && b.rank == 3 && a.dim(0) == b.dim(0) && a.dim(1) == b.dim(1) && a.dim(2) == b.dim(2);
}

bool is_dense_last(const TensorView& a) { return a.rank == 3 && a.dtype == DType::kFloat32 && a.stride[2] == 1; }

bool is_kv_dtype(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kInt8;
}

}  // namespace

bool supports_attention(const AttentionCapabilities& wanted, std::string* why) {
  if (wanted.head_dim < 1 || wanted.head_dim > kMaxHeadDim) {
    *why = str_cat("head size ", wanted.head_dim, ", at most ", kMaxHeadDim, " here");
  } else if (wanted.num_kv_heads < 1 || wanted.num_heads < 1 || wanted.num_heads % wanted.num_kv_heads != 0) {
    *why = str_cat(wanted.num_heads, " heads over ", wanted.num_kv_heads, " key-value heads: not a multiple");
  } else if (!is_kv_dtype(wanted.kv_dtype)) {
    *why = str_cat("KV caches of ", dtype_name(wanted.kv_dtype), ": only float32, float16, bfloat16 and int8 here");
  } else {
    return true;
  }
  return false;
}

void check_attention_args(const Context& context, AttentionType type, const AttentionMetadata& metadata,
                          const AttentionArgs& args, const AttentionBackend& backend) {
  if (!args.k.empty()) {
    CHECK(is_dense_last(args.k) && is_dense_last(args.v) && same_rows_of_heads(args.k, args.v));
  }
  if (args.q.empty() && args.k.empty()) return;
  if (type != AttentionType::kEncoder && !context.dry_run) {
    CHECK(metadata.block_size > 0 && args.kv_cache.rank == 2 && args.kv_cache.dtype == DType::kUInt8);
    const auto dim = static_cast<int32_t>((args.k.empty() ? args.q : args.k).dim(2));
    const KvSpec spec{.num_kv_heads = static_cast<int32_t>(num_kv_heads(args)), .head_dim = dim};
    const size_t bytes = backend.block_bytes(spec, metadata.block_size, metadata.kv_dtype);
    CHECK(args.kv_cache.dim(1) >= static_cast<int64_t>(bytes) && args.kv_cache.stride[1] == 1);
    CHECK(args.kv_cache.stride[0] % static_cast<int64_t>(sizeof(float)) == 0);
    CHECK(!writes_cache(type, args) || metadata.slot_mapping.size() == static_cast<size_t>(args.k.dim(0)));
  }
  if (args.q.empty()) return;
  CHECK(is_dense_last(args.q) && is_dense_last(args.out) && same_rows_of_heads(args.q, args.out));
  CHECK(context.dry_run || metadata.query_start_loc.size() == static_cast<size_t>(metadata.num_seqs) + 1);
  if (!metadata.key_begin.empty() || !metadata.key_end.empty()) {
    const auto rows = static_cast<size_t>(args.q.dim(0));
    CHECK(type == AttentionType::kEncoderDecoder && metadata.key_begin.size() == rows &&
          metadata.key_end.size() == rows);
  }
  CHECK(args.k.empty() || args.k.dim(2) == args.q.dim(2));
  CHECK(args.q.dim(1) % num_kv_heads(args) == 0);
  if (args.bias != nullptr && args.bias->needs_position()) {
    CHECK(args.bias->num_heads == args.q.dim(1));
    // Rows of cross-attention know their positions only from here.
    CHECK(context.dry_run || type != AttentionType::kEncoderDecoder || !metadata.context_lens.empty());
  }
  if (args.capture != nullptr) {
    const TensorView& out = args.capture->out;
    CHECK(out.rank == 3 && out.dtype == DType::kFloat32 && out.stride[2] == 1);
    const int64_t num_rows = args.capture->rows.empty() ? out.dim(1) : static_cast<int64_t>(args.capture->rows.size());
    CHECK(out.dim(0) == static_cast<int64_t>(args.capture->heads.size()) && num_rows == args.q.dim(0) &&
          out.dim(2) == metadata.max_kv_len);
  }
}

}  // namespace transept
