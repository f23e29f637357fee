#include "attention/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "attention/bias_kernel.h"
#include "attention/checks.h"
#include "attention/kv_values.h"
#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/vec_generic.h"

namespace transept {
namespace {

// The reference's blocks: [K or V, slot, head] places; int8: a float32 scale each, first of all; then head_dim elements
// each.
class Block {
 public:
  Block(const AttentionMetadata& metadata, const TensorView& kv_cache, int64_t num_heads, int64_t head_dim,
        int64_t slot)
      : dtype_(metadata.kv_dtype),
        bytes_(block_of_slot(kv_cache, slot, metadata.block_size)),
        size_(metadata.block_size),
        num_heads_(num_heads),
        head_dim_(head_dim) {}

  static size_t bytes(int64_t size, int64_t num_heads, int64_t head_dim, DType dtype) {
    const int64_t places = 2 * size * num_heads, scales = dtype == DType::kInt8 ? places : 0;
    const int64_t bytes =
        scales * static_cast<int64_t>(sizeof(float)) + places * head_dim * static_cast<int64_t>(dtype_bytes(dtype));
    return static_cast<size_t>(round_up(bytes, kBlockAlignment));
  }

  void write(int64_t slot, int64_t head, bool value, const float* from) {
    unsigned char* to = element(slot, head, value);
    if (dtype_ == DType::kFloat32) {
      std::memcpy(to, from, static_cast<size_t>(head_dim_) * sizeof(float));
    } else if (dtype_ == DType::kInt8) {
      *scale(slot, head, value) = int8_scale(from, head_dim_);
      for (int64_t d = 0; d < head_dim_; ++d) {
        to[d] = static_cast<unsigned char>(float_to_int8(from[d], *scale(slot, head, value)));
      }
    } else {
      auto* halves = reinterpret_cast<uint16_t*>(to);
      for (int64_t d = 0; d < head_dim_; ++d) {
        halves[d] = dtype_ == DType::kBFloat16 ? float_to_bfloat16(from[d]) : saturated_float16(from[d]);
      }
    }
  }

  void read(int64_t slot, int64_t head, bool value, std::span<float> out) const {
    const unsigned char* from = element(slot, head, value);
    for (size_t d = 0; d < out.size(); ++d) {
      switch (dtype_) {
        case DType::kInt8: out[d] = *scale(slot, head, value) * static_cast<float>(static_cast<int8_t>(from[d])); break;
        case DType::kBFloat16: out[d] = bfloat16_to_float(reinterpret_cast<const uint16_t*>(from)[d]); break;
        case DType::kFloat16: out[d] = float16_to_float(reinterpret_cast<const uint16_t*>(from)[d]); break;
        default: out[d] = reinterpret_cast<const float*>(from)[d];
      }
    }
  }

 private:
  int64_t place(int64_t slot, int64_t head, bool value) const {
    return ((value ? size_ : 0) + slot % size_) * num_heads_ + head;
  }
  float* scale(int64_t slot, int64_t head, bool value) const {
    return reinterpret_cast<float*>(bytes_) + place(slot, head, value);
  }
  unsigned char* element(int64_t slot, int64_t head, bool value) const {
    const int64_t scales = dtype_ == DType::kInt8 ? 2 * size_ * num_heads_ : 0;
    return bytes_ + scales * static_cast<int64_t>(sizeof(float)) +
           place(slot, head, value) * head_dim_ * static_cast<int64_t>(dtype_bytes(dtype_));
  }

  DType dtype_;
  unsigned char* bytes_;
  int64_t size_, num_heads_, head_dim_;
};

// Keys and values by sequence, head and position.
struct Keys {
  const AttentionMetadata& metadata;
  const AttentionArgs& args;
  bool is_dense;
  int64_t num_heads, head_dim;

  void read(int64_t seq, int64_t head, int64_t j, bool value, std::span<float> out) const {
    if (is_dense) {
      const TensorView& rows = value ? args.v : args.k;
      const float* from = rows.row(metadata.kv_start_loc[static_cast<size_t>(seq)] + j) + head * rows.stride[1];
      const bool rounds = metadata.kv_dtype == DType::kInt8;
      const float scale = rounds ? int8_scale(from, static_cast<int64_t>(out.size())) : 0;
      for (size_t d = 0; d < out.size(); ++d) {
        out[d] = rounds ? scale * static_cast<float>(float_to_int8(from[d], scale)) : from[d];
      }
      return;
    }
    const int64_t size = metadata.block_size;
    const int64_t block = metadata.block_tables[static_cast<size_t>(seq * metadata.max_blocks_per_seq + j / size)];
    const int64_t slot = block * size + j % size;
    Block(metadata, args.kv_cache, num_heads, head_dim, slot).read(slot, head, value, out);
  }
};

void write_cache(const AttentionMetadata& metadata, const AttentionArgs& args) {
  const int64_t heads = args.k.dim(1), dim = args.k.dim(2);
  for (int64_t i = 0; i < args.k.dim(0); ++i) {
    const int64_t slot = metadata.slot_mapping[static_cast<size_t>(i)];
    Block block(metadata, args.kv_cache, heads, dim, slot);
    for (int64_t h = 0; h < heads; ++h) {
      block.write(slot, h, false, args.k.row(i) + h * args.k.stride[1]);
      block.write(slot, h, true, args.v.row(i) + h * args.v.stride[1]);
    }
  }
}

double dot(const float* a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < b.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
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

// Memory for one row of one head: [keys], [keys], [head_dim] a key or value, [head_dim].
struct Scratch {
  std::span<double> scores;
  std::span<float> bias, values;
  std::span<double> sums;
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
    const KeyRange visible = visible_keys(metadata, args.causal, seq, i);
    const auto begin = static_cast<size_t>(visible.begin), end = static_cast<size_t>(visible.end);
    materialize(biases.of_row(seq, head, i, row_position(metadata, seq, i)), bias);
    for (size_t j = 0; j < num_keys; ++j) {
      row[j] = -std::numeric_limits<double>::infinity();
      if (j < begin || j >= end) continue;
      keys.read(seq, kv_head, static_cast<int64_t>(j), false, scratch.values);
      row[j] = args.scale * dot(q, scratch.values) + bias[j];
    }
    softmax(row);
    float* out = args.out.row(first_row + i) + head * args.out.stride[1];
    std::fill(scratch.sums.begin(), scratch.sums.end(), 0.0);
    for (size_t j = begin; j < end; ++j) {
      keys.read(seq, kv_head, static_cast<int64_t>(j), true, scratch.values);
      for (size_t d = 0; d < scratch.sums.size(); ++d) scratch.sums[d] += row[j] * scratch.values[d];
    }
    for (size_t d = 0; d < scratch.sums.size(); ++d) out[d] = static_cast<float>(scratch.sums[d]);
    if (args.capture != nullptr) capture(*args.capture, head, first_row + i, row);
  }
}

}  // namespace

bool ReferenceBackend::supports(const AttentionCapabilities& wanted, std::string* why) const {
  return supports_attention(wanted, why);
}

size_t ReferenceBackend::block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const {
  return Block::bytes(block_size, spec.num_kv_heads, spec.head_dim, kv_dtype);
}

void ReferenceBackend::run(Context& context, AttentionType type, const AttentionMetadata& metadata,
                           const AttentionArgs& args) const {
  check_attention_args(context, type, metadata, args, *this);
  const bool is_dense = type == AttentionType::kEncoder;
  if (writes_cache(type, args) && !context.dry_run) write_cache(metadata, args);
  if (args.q.empty()) return;
  const Arena::Scope scope(context.arena);
  const int64_t num_keys = metadata.max_kv_len, num_threads = cpu_of(context).threads().num_threads();
  const int64_t num_heads = args.q.dim(1), dim = args.q.dim(2);
  const std::span<double> scores = context.arena.allocate_span<double>(num_keys * num_threads);
  const std::span<float> bias = context.arena.allocate_span<float>(num_keys * num_threads);
  const std::span<float> values = context.arena.allocate_span<float>(dim * num_threads);
  const std::span<double> sums = context.arena.allocate_span<double>(dim * num_threads);
  if (context.dry_run) return;
  const Keys keys{metadata, args, is_dense, num_kv_heads(args), dim};
  cpu_of(context).threads().parallel_for(metadata.num_seqs * num_heads, [&](int64_t task, int thread) {
    const auto begin = static_cast<size_t>(thread * num_keys), count = static_cast<size_t>(num_keys);
    const auto first = static_cast<size_t>(thread * dim), width = static_cast<size_t>(dim);
    attend(keys, task / num_heads, task % num_heads,
           {scores.subspan(begin, count), bias.subspan(begin, count), values.subspan(first, width),
            sums.subspan(first, width)});
  });
}

}  // namespace transept
