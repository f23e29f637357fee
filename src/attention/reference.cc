#include "attention/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "attention/bias_kernel.h"
#include "attention/checks.h"
#include "ops/vec_generic.h"

namespace transept {
namespace {

// Where key and value j of a sequence and head lie.
struct Keys {
  const AttentionMetadata& metadata;
  const AttentionArgs& args;
  bool is_dense;
  int64_t num_heads, head_dim;

  const float* at(int64_t seq, int64_t head, int64_t j, bool value) const {
    if (is_dense) {
      const TensorView& rows = value ? args.v : args.k;
      return rows.row(metadata.kv_start_loc[static_cast<size_t>(seq)] + j) + head * rows.stride[1];
    }
    const int64_t size = metadata.block_size;
    const int64_t block = metadata.block_tables[static_cast<size_t>(seq * metadata.max_blocks_per_seq + j / size)];
    const int64_t offset = (value ? size : 0) + j % size;
    return block_of_slot(args.kv_cache, block * size, size) + (offset * num_heads + head) * head_dim;
  }
};

void write_cache(const AttentionMetadata& metadata, const AttentionArgs& args) {
  const int64_t size = metadata.block_size;
  const int64_t heads = args.k.dim(1), dim = args.k.dim(2);
  for (int64_t i = 0; i < args.k.dim(0); ++i) {
    const int64_t slot = metadata.slot_mapping[static_cast<size_t>(i)];
    float* k = block_of_slot(args.kv_cache, slot, size) + slot % size * heads * dim;
    float* v = k + size * heads * dim;
    for (int64_t h = 0; h < heads; ++h) {
      std::memcpy(k + h * dim, args.k.row(i) + h * args.k.stride[1], static_cast<size_t>(dim) * sizeof(float));
      std::memcpy(v + h * dim, args.v.row(i) + h * args.v.stride[1], static_cast<size_t>(dim) * sizeof(float));
    }
  }
}

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// The bias of one row and head for keys [0, out.size()), written out.
void materialize(const RowBias& bias, std::span<float> out) {
  using Vec = generic::Vec;
  const auto num_keys = static_cast<int64_t>(out.size());
  with_bias<Vec>(bias, [&](auto&& finish) {
    for (int64_t j = 0; j < num_keys; j += Vec::kLanes) {
      const int64_t left = num_keys - j;
      Vec::store_n(out.data() + j, finish(Vec::zero(), Vec::zero(), j, left),
                   static_cast<int>(std::min<int64_t>(left, Vec::kLanes)));
    }
    return 0.0f;
  });
}

// One row of scores to probabilities. A row that sees nothing becomes zeros.
void softmax(std::span<double> scores) {
  const double max = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = std::isinf(max) && max < 0 ? 0 : std::exp(score - max);
    sum += score;
  }
  for (double& score : scores) score = sum == 0 ? 0 : score / sum;
}

void capture(const AttentionCapture& capture, int64_t head, int64_t row, std::span<const double> probabilities) {
  const int64_t place = capture.place(row);
  for (size_t c = 0; c < capture.heads.size() && place >= 0; ++c) {
    if (capture.heads[c] != head) continue;
    float* out = capture.out.row(static_cast<int64_t>(c)) + place * capture.out.stride[1];
    for (size_t j = 0; j < static_cast<size_t>(capture.out.dim(2)); ++j) {
      out[j] = j < probabilities.size() ? static_cast<float>(probabilities[j]) : 0;
    }
  }
}

// Memory for one row of one head, [keys] each.
struct Scratch {
  std::span<double> scores;
  std::span<float> bias;
};

// Sequence seq, head h of q, row by row.
void attend(const Keys& keys, int64_t seq, int64_t head, const Scratch& scratch) {
  const AttentionMetadata& metadata = keys.metadata;
  const AttentionArgs& args = keys.args;
  const int64_t first_row = metadata.query_start_loc[static_cast<size_t>(seq)];
  const int64_t num_rows = metadata.query_start_loc[static_cast<size_t>(seq) + 1] - first_row;
  const auto num_keys = static_cast<size_t>(metadata.seq_lens[static_cast<size_t>(seq)]);
  const int64_t kv_head = head / (args.q.dim(1) / keys.num_heads);
  const std::span<double> row = scratch.scores.first(num_keys);
  const std::span<float> bias = scratch.bias.first(num_keys);
  const AttentionBias biases = args.bias == nullptr ? AttentionBias::none() : *args.bias;
  for (int64_t i = 0; i < num_rows; ++i) {
    const float* q = args.q.row(first_row + i) + head * args.q.stride[1];
    const auto visible = static_cast<size_t>(num_visible_keys(metadata, args.causal, seq, i));
    materialize(biases.of_row(seq, head, i, row_position(metadata, seq, i)), bias);
    for (size_t j = 0; j < num_keys; ++j) {
      const float* k = keys.at(seq, kv_head, static_cast<int64_t>(j), false);
      row[j] = j < visible ? args.scale * dot(q, k, keys.head_dim) + bias[j] : -std::numeric_limits<double>::infinity();
    }
    softmax(row);
    float* out = args.out.row(first_row + i) + head * args.out.stride[1];
    for (int64_t d = 0; d < keys.head_dim; ++d) {
      double sum = 0;
      for (size_t j = 0; j < visible; ++j) sum += row[j] * keys.at(seq, kv_head, static_cast<int64_t>(j), true)[d];
      out[d] = static_cast<float>(sum);
    }
    if (args.capture != nullptr) capture(*args.capture, head, first_row + i, row);
  }
}

}  // namespace

bool ReferenceBackend::supports(const AttentionCapabilities& wanted, std::string* why) const {
  return supports_fp32(wanted, why);
}

size_t ReferenceBackend::block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const {
  return size_t{2} * static_cast<size_t>(block_size) * static_cast<size_t>(spec.num_heads) *
         static_cast<size_t>(spec.head_dim) * dtype_bytes(kv_dtype);
}

void ReferenceBackend::run(Context& context, AttentionType type, const AttentionMetadata& metadata,
                           const AttentionArgs& args) const {
  check_attention_args(context, type, metadata, args);
  const bool is_dense = type == AttentionType::kEncoder;
  if (writes_cache(type, args) && !context.dry_run) write_cache(metadata, args);
  if (args.q.empty()) return;
  const Arena::Scope scope(context.arena);
  const int64_t num_keys = metadata.max_kv_len, num_threads = context.threads.num_threads();
  const std::span<double> scores = context.arena.allocate_span<double>(num_keys * num_threads);
  const std::span<float> bias = context.arena.allocate_span<float>(num_keys * num_threads);
  if (context.dry_run) return;
  const int64_t num_heads = args.q.dim(1), dim = args.q.dim(2);
  const Keys keys{metadata, args, is_dense, num_kv_heads(args), dim};
  context.threads.parallel_for(metadata.num_seqs * num_heads, [&](int64_t task, int thread) {
    const auto begin = static_cast<size_t>(thread * num_keys), count = static_cast<size_t>(num_keys);
    attend(keys, task / num_heads, task % num_heads, {scores.subspan(begin, count), bias.subspan(begin, count)});
  });
}

}  // namespace transept
