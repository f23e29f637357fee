// Test and benchmark support: attention problems whose every value is a function of its place, so that one sequence has
// the same numbers in any batch, block size or split into steps; a runner for any backend; the oracle. Not part of the
// library.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/backend.h"
#include "attention/checks.h"

namespace transept {

// kShared: one for all sequences of an encoder (windows of a picture).
enum class BiasForm : uint8_t { kNone, kFull, kByKey, kByHead, kKeysApart, kMasking, kT5, kAlibi, kShared };

// The owner of keys: a sequence (encoder, self) or a group of sequences (cross).
struct KeyOwner {
  uint32_t id = 0;
  int keys = 0;
  std::vector<int> rows;  // new rows of each sequence; self, encoder: one sequence
  int cross_context = 0;  // cross: rows before the new ones, which have no keys of their own
  // Cross: keys that each new row sees, the rows of all sequences one after another. Empty: all.
  std::vector<KeyRange> ranges = {};
  KeyRange loud = {};  // keys whose K and V are far larger than those of others
};

// Ranges of so many rows over so many keys: empty, full, of one key, and with their ends at and around tiles' borders.
inline std::vector<KeyRange> random_ranges(std::mt19937& rng, int num_rows, int num_keys) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  const auto border = [&] { return std::clamp(64 * pick(0, num_keys / 64 + 1) + pick(-1, 1), 0, num_keys); };
  std::vector<KeyRange> ranges;
  for (int r = 0; r < num_rows; ++r) {
    int begin = pick(0, num_keys), end = pick(0, num_keys);  // empty if the first is not below the second
    switch (pick(0, 6)) {
      case 0: begin = 0, end = num_keys; break;
      case 1: end = std::min(begin + 1, num_keys); break;
      case 2: begin = border(), end = border(); break;
      case 3: begin = std::min(begin, border()), end = num_keys; break;
      case 4:
        if (r > 0) begin = static_cast<int>(ranges.back().begin), end = static_cast<int>(ranges.back().end);
        break;
      case 5:
        if (begin > end) std::swap(begin, end);
        break;
      default: break;
    }
    ranges.push_back({begin, end});
  }
  return ranges;
}

struct AttentionProblem {
  AttentionType type = AttentionType::kDecoder;
  int heads = 4, kv_heads = 4, dim = 16, block_size = 16;
  bool causal = true;
  DType kv_dtype = DType::kFloat32;  // AttentionMetadata::kv_dtype
  BiasForm bias = BiasForm::kNone;
  bool materialize = false;  // also what can be computed on the fly
  int gap = 3;               // unused floats between rows of q, k, v and out; 0: aligned, as the engine has them
  std::vector<KeyOwner> owners;

  float scale() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }
  // Position of a sequence's first new row.
  int context(const KeyOwner& owner) const {
    return type == AttentionType::kDecoder ? owner.keys - owner.rows[0] : owner.cross_context;
  }
  int visible(const KeyOwner& owner, int row) const {
    return causal ? std::min(owner.keys, context(owner) + row + 1) : owner.keys;
  }
  // The keys that a row of one of an owner's sequences sees.
  KeyRange seen(const KeyOwner& owner, int seq, int row) const {
    KeyRange range{0, visible(owner, row)};
    if (owner.ranges.empty()) return range;
    for (int s = 0; s < seq; ++s) row += owner.rows[static_cast<size_t>(s)];
    const KeyRange& given = owner.ranges[static_cast<size_t>(row)];
    return {given.begin, std::min(range.end, given.end)};
  }
  int num_rows() const {
    int rows = 0;
    for (const KeyOwner& owner : owners) {
      for (const int r : owner.rows) rows += r;
    }
    return rows;
  }
};

// For loops over all of them.
inline constexpr AttentionType kAttentionTypes[] = {AttentionType::kEncoder, AttentionType::kDecoder,
                                                    AttentionType::kEncoderDecoder};
inline constexpr BiasForm kBiasForms[] = {BiasForm::kFull,    BiasForm::kByKey, BiasForm::kByHead, BiasForm::kKeysApart,
                                          BiasForm::kMasking, BiasForm::kT5,    BiasForm::kAlibi};

// A problem of two heads, causal where its type is.
inline AttentionProblem problem_of(AttentionType type, std::vector<KeyOwner> owners) {
  AttentionProblem p;
  p.type = type;
  p.heads = p.kv_heads = 2;
  p.causal = type == AttentionType::kDecoder;
  p.owners = std::move(owners);
  return p;
}

// A float in (-2, 2) from five numbers; which: 0 q, 1 k, 2 v, 3 bias.
inline float value_at(uint32_t which, uint32_t owner, uint32_t a, uint32_t b, uint32_t c) {
  uint64_t h = 0x9E3779B97F4A7C15u;
  for (const uint32_t part : {which, owner, a, b, c}) {
    h = (h ^ part) * 0xBF58476D1CE4E5B9u;
    h ^= h >> 29;
  }
  return static_cast<float>(static_cast<int64_t>(h >> 40) - (1 << 23)) * (2.0f / (1 << 23));
}

constexpr int kT5Buckets = 32, kT5MaxDistance = 128;

// What T5 learnt for a head and bucket.
inline float t5_value(int head, int64_t bucket) {
  return value_at(3, 1, static_cast<uint32_t>(head), static_cast<uint32_t>(bucket), 99);
}

// T5's buckets as the paper's code has them, in double precision.
inline int64_t naive_t5_bucket(int distance, bool bidirectional) {
  const int buckets = bidirectional ? kT5Buckets / 2 : kT5Buckets, exact = buckets / 2;
  const int far = bidirectional ? std::abs(distance) : std::max(-distance, 0);
  const int first = bidirectional && distance > 0 ? buckets : 0;
  if (far < exact) return first + far;
  const double share =
      std::log(static_cast<double>(far) / exact) / std::log(static_cast<double>(kT5MaxDistance) / exact);
  return first + std::min<int64_t>(exact + static_cast<int64_t>(share * (buckets - exact) + 1e-9), buckets - 1);
}

inline float alibi_slope(const AttentionProblem& p, int head) {
  return static_cast<float>(std::exp2(-8.0 * (head + 1) / p.heads));
}

inline float bias_value(const AttentionProblem& p, uint32_t owner, int seq, int head, int position, int key) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  const uint32_t row = static_cast<uint32_t>(seq * 1000 + position);
  switch (p.bias) {
    case BiasForm::kNone: return 0;
    case BiasForm::kFull:
    case BiasForm::kKeysApart: return value_at(3, owner, row, static_cast<uint32_t>(head), static_cast<uint32_t>(key));
    case BiasForm::kByKey: return value_at(3, 0, 0, 0, static_cast<uint32_t>(key));
    case BiasForm::kByHead: return value_at(3, 0, 0, static_cast<uint32_t>(head), 0);
    case BiasForm::kMasking: return (key + head) % 3 == 0 ? kMasked : 0;
    case BiasForm::kT5: return t5_value(head, naive_t5_bucket(key - position, p.type != AttentionType::kDecoder));
    case BiasForm::kAlibi: return -alibi_slope(p, head) * static_cast<float>(std::abs(key - position));
    case BiasForm::kShared:  // with keys of another region, as Swin masks them
      return value_at(3, 7, static_cast<uint32_t>(position), static_cast<uint32_t>(head), static_cast<uint32_t>(key)) -
             (position / 5 % 2 != key / 5 % 2 ? 100.0f : 0.0f);
  }
  return 0;
}

// q row: the position that it has in its sequence.
inline float q_value(uint32_t owner, int seq, int position, int head, int d) {
  return value_at(0, owner * 64 + static_cast<uint32_t>(seq), static_cast<uint32_t>(position),
                  static_cast<uint32_t>(head), static_cast<uint32_t>(d));
}
inline float kv_value(bool v, const KeyOwner& owner, int key, int head, int d) {
  const float value =
      value_at(v ? 2 : 1, owner.id, static_cast<uint32_t>(key), static_cast<uint32_t>(head), static_cast<uint32_t>(d));
  return key >= owner.loud.begin && key < owner.loud.end ? 1000 * value : value;
}

struct AttentionResult {
  std::vector<float> out;            // [rows, heads, dim]
  std::vector<float> probabilities;  // [captured heads, rows, most keys]
};

// What run() is handed, and the memory behind it.
class AttentionSetup final {
 public:
  static constexpr int64_t kNumLayers = 3, kLayer = 1;

  AttentionSetup(const AttentionProblem& problem, AttentionBackend& backend, bool shuffle_blocks = true)
      : p_(problem), backend_(backend) {
    lay_out_sequences();
    fill_q();
    if (p_.type != AttentionType::kEncoder) lay_out_blocks(shuffle_blocks);
    lay_out_ranges();
    fill_bias();
  }

  // Writes what is old, then runs the new rows. Cross: the write is a run of its own, as in the engine.
  AttentionResult run(Context& context, std::vector<int32_t> captured_heads = {}) {
    AttentionResult result;
    args_.bias = p_.bias == BiasForm::kNone ? nullptr : &bias_;
    AttentionCapture capture{.heads = captured_heads, .out = {}};
    if (!captured_heads.empty()) {
      const auto heads = static_cast<int64_t>(captured_heads.size());
      result.probabilities.assign(static_cast<size_t>(heads * p_.num_rows() * metadata_.max_kv_len), 7.0f);
      capture.out =
          TensorView(result.probabilities.data(), DType::kFloat32, {heads, p_.num_rows(), metadata_.max_kv_len});
      args_.capture = &capture;
    }
    if (p_.type == AttentionType::kEncoder) {
      set_new_keys(0, true);
      backend_.run(context, p_.type, metadata_, args_);
    } else {
      write_old(context);
      run_new(context);
    }
    args_.capture = nullptr;
    for (int64_t r = 0; r < p_.num_rows(); ++r) {
      const float* row = args_.out.row(r);
      result.out.insert(result.out.end(), row, row + p_.heads * p_.dim);
    }
    return result;
  }

  // The last run once more, over the same memory (benchmarks).
  void run_again(Context& context) { backend_.run(context, p_.type, metadata_, args_); }

  // What the next run over metadata() is given. In step memory.
  void plan(Context& context) {
    const std::vector<int32_t> ids(static_cast<size_t>(p_.num_rows()));
    ForwardBatch batch{.input_ids = ids, .attention = {&metadata_, 1}};
    backend_.plan(context, batch);
  }

  // Everything about the old keys: a run without q.
  void write_old(Context& context) {
    set_new_keys(0, true);
    AttentionArgs args = args_;
    args.q = args.out = {};
    args.capture = nullptr;
    if (!args.k.empty()) backend_.run(context, p_.type, metadata_, args);
  }

  AttentionMetadata& metadata() { return metadata_; }
  AttentionArgs& args() { return args_; }

 private:
  static float* filled_with_nan(PageBuffer& data, int64_t count) {
    data = PageBuffer(static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(float));
    auto* floats = reinterpret_cast<float*>(data.data());
    std::fill_n(floats, count, std::nanf(""));
    return floats;
  }

  TensorView rows_of_heads(PageBuffer& data, int64_t rows, int64_t heads) {
    const int64_t stride = heads * p_.dim + p_.gap;
    return TensorView(filled_with_nan(data, rows * stride), DType::kFloat32, {rows, stride})
        .columns(0, heads * p_.dim)
        .split_heads(heads);
  }

  void run_new(Context& context) {
    set_new_keys(1, p_.type == AttentionType::kDecoder);
    plan(context);
    run_again(context);
  }

  void lay_out_sequences() {
    query_start_.push_back(0);
    group_start_.push_back(0);
    kv_start_.push_back(0);
    for (const KeyOwner& owner : p_.owners) {
      for (const int rows : owner.rows) {
        query_start_.push_back(query_start_.back() + rows);
        context_.push_back(p_.context(owner));
        seq_lens_.push_back(owner.keys);
        metadata_.max_query_len = std::max(metadata_.max_query_len, rows);
      }
      group_start_.push_back(static_cast<int32_t>(seq_lens_.size()));
      kv_start_.push_back(kv_start_.back() + owner.keys);
      metadata_.max_kv_len = std::max(metadata_.max_kv_len, owner.keys);
    }
    metadata_.num_seqs = static_cast<int32_t>(seq_lens_.size());
    metadata_.query_start_loc = query_start_;
    metadata_.seq_lens = seq_lens_;
    if (p_.type == AttentionType::kDecoder) metadata_.context_lens = context_;
    if (p_.type == AttentionType::kEncoder) {
      metadata_.kv_start_loc = kv_start_;
      metadata_.kv_dtype = p_.kv_dtype;
    }
    if (p_.type == AttentionType::kEncoderDecoder) {
      metadata_.group_start_loc = group_start_;
      metadata_.context_lens = context_;
    }
    args_.scale = p_.scale();
    args_.causal = p_.causal;
    args_.num_kv_heads = p_.kv_heads;
  }

  // Blocks in random order, poisoned; the pool holds other layers before and after this one.
  void lay_out_blocks(bool shuffle) {
    int32_t num_blocks = 0;
    const auto count = [&](int keys) { return (keys + p_.block_size - 1) / p_.block_size; };
    for (const KeyOwner& owner : p_.owners) num_blocks += count(owner.keys);
    std::vector<int32_t> ids(static_cast<size_t>(num_blocks) + 3);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
    if (shuffle) std::shuffle(ids.begin(), ids.end(), std::mt19937(7));
    const int width = count(metadata_.max_kv_len) + 2;
    size_t next = 0;
    for (const KeyOwner& owner : p_.owners) {
      std::vector<int32_t> table(static_cast<size_t>(width), -1);
      for (int i = 0; i < count(owner.keys); ++i) table[static_cast<size_t>(i)] = ids[next++];
      for (size_t s = 0; s < owner.rows.size(); ++s) tables_.insert(tables_.end(), table.begin(), table.end());
      owner_blocks_.push_back(table);
    }
    metadata_.block_tables = tables_;
    metadata_.max_blocks_per_seq = width;
    metadata_.block_size = p_.block_size;
    const KvSpec spec{.num_kv_heads = p_.kv_heads, .head_dim = p_.dim};
    metadata_.kv_dtype = p_.kv_dtype;
    const auto layer = static_cast<int64_t>(backend_.block_bytes(spec, p_.block_size, p_.kv_dtype));
    const auto blocks = static_cast<int64_t>(ids.size());
    cache_ = PageBuffer(static_cast<size_t>(blocks * kNumLayers * layer));
    std::memset(cache_.data(), 0xFF, cache_.size());
    args_.kv_cache = TensorView(cache_.data(), DType::kUInt8, {blocks, kNumLayers * layer})
                         .columns(kLayer * layer, (kLayer + 1) * layer);
  }

  // No lists if no owner has ranges.
  void lay_out_ranges() {
    if (std::all_of(p_.owners.begin(), p_.owners.end(), [](const KeyOwner& o) { return o.ranges.empty(); })) return;
    for (const KeyOwner& owner : p_.owners) {
      for (const KeyRange& range : owner.ranges) {
        key_begin_.push_back(static_cast<int32_t>(range.begin));
        key_end_.push_back(static_cast<int32_t>(range.end));
      }
      if (!owner.ranges.empty()) continue;
      for (const int rows : owner.rows) {
        key_begin_.insert(key_begin_.end(), static_cast<size_t>(rows), 0);
        key_end_.insert(key_end_.end(), static_cast<size_t>(rows), owner.keys);
      }
    }
    metadata_.key_begin = key_begin_;
    metadata_.key_end = key_end_;
  }

  // use(owner, which of its sequences, that sequence's place, row in the sequence, row in the batch)
  template <typename Use>
  void for_each_row(const Use& use) const {
    int64_t seq = 0, r = 0;
    for (const KeyOwner& owner : p_.owners) {
      for (size_t s = 0; s < owner.rows.size(); ++s, ++seq) {
        for (int i = 0; i < owner.rows[s]; ++i, ++r) use(owner, static_cast<int>(s), seq, i, r);
      }
    }
  }

  void fill_q() {
    args_.q = rows_of_heads(q_, p_.num_rows(), p_.heads);
    args_.out = rows_of_heads(out_, p_.num_rows(), p_.heads);
    for_each_row([&](const KeyOwner& owner, int s, int64_t /*seq*/, int i, int64_t r) {
      for (int h = 0; h < p_.heads; ++h) {
        float* q = args_.q.row(r) + h * args_.q.stride[1];
        for (int d = 0; d < p_.dim; ++d) q[d] = q_value(owner.id, s, p_.context(owner) + i, h, d);
      }
    });
  }

  void fill_bias() {
    if (p_.bias == BiasForm::kT5 && !p_.materialize) {
      const T5Buckets buckets{p_.type != AttentionType::kDecoder, kT5Buckets, kT5MaxDistance};
      for (int bucket = 0; bucket < kT5Buckets; ++bucket) {
        for (int h = 0; h < p_.heads; ++h) bias_data_.push_back(t5_value(h, bucket));
      }
      t5_ = t5_bias(buckets, bias_data_, p_.heads);
      bias_ = t5_->bias();
    } else if (p_.bias == BiasForm::kAlibi && !p_.materialize) {
      for (int h = 0; h < p_.heads; ++h) bias_data_.push_back(alibi_slope(p_, h));
      bias_ = AttentionBias::alibi(bias_data_);
    } else if (p_.bias != BiasForm::kNone) {
      materialize_bias();
    }
  }

  // [num_seqs, heads, rows, keys], with the axes that do not matter broadcast.
  void materialize_bias() {
    const int64_t seqs = metadata_.num_seqs, rows = metadata_.max_query_len, keys = metadata_.max_kv_len;
    std::array<int64_t, 4> stride{p_.heads * rows * keys, rows * keys, keys, 1};
    if (p_.bias == BiasForm::kKeysApart) stride = {p_.heads * rows * keys, rows * keys, 1, rows};
    if (p_.bias == BiasForm::kByKey) stride = {0, 0, 0, 1};
    if (p_.bias == BiasForm::kByHead) stride = {0, 1, 0, 0};
    if (p_.bias == BiasForm::kShared) stride = {0, rows * keys, keys, 1};
    bias_data_.assign(static_cast<size_t>(seqs * p_.heads * rows * keys), std::nanf(""));
    // Of what depends on the distance alone each value is computed once: [heads, distances].
    const bool by_distance = p_.bias == BiasForm::kT5 || p_.bias == BiasForm::kAlibi;
    const int farthest = metadata_.max_kv_len +
                         (context_.empty() ? 0 : *std::max_element(context_.begin(), context_.end())) +
                         metadata_.max_query_len;
    std::vector<float> values;
    for (int h = 0; h < p_.heads && by_distance; ++h) {
      for (int d = -farthest; d <= farthest; ++d)
        values.push_back(bias_value(p_, 0, 0, h, std::max(-d, 0), std::max(d, 0)));
    }
    for_each_row([&](const KeyOwner& owner, int s, int64_t seq, int i, int64_t /*r*/) {
      for (int h = 0; h < p_.heads; ++h) {
        for (int j = 0; j < owner.keys; ++j) {
          bias_data_[static_cast<size_t>(seq * stride[0] + h * stride[1] + i * stride[2] + j * stride[3])] =
              by_distance ? values[static_cast<size_t>(h * (2 * farthest + 1) + farthest + j - p_.context(owner) - i)]
                          : bias_value(p_, owner.id, s, h, p_.context(owner) + i, j);
        }
      }
    });
    TensorView view(bias_data_.data(), DType::kFloat32, {seqs, p_.heads, rows, keys});
    view.stride = stride;
    bias_ = AttentionBias::tensor(view);
  }

  // Part 0: the keys that are there before the new rows (encoder, cross: all); part 1: the new rows' own.
  void set_new_keys(int part, bool any) {
    slots_.clear();
    std::vector<std::pair<const KeyOwner*, int>> places;
    for (size_t o = 0; o < p_.owners.size() && any; ++o) {
      const KeyOwner& owner = p_.owners[o];
      const int old = p_.type == AttentionType::kDecoder ? p_.context(owner) : owner.keys;
      for (int j = part == 0 ? 0 : old; j < (part == 0 ? old : owner.keys); ++j) {
        places.emplace_back(&owner, j);
        if (p_.type == AttentionType::kEncoder) continue;
        slots_.push_back(int64_t{owner_blocks_[o][static_cast<size_t>(j / p_.block_size)]} * p_.block_size +
                         j % p_.block_size);
      }
    }
    metadata_.slot_mapping = slots_;
    args_.k = args_.v = {};
    if (places.empty()) return;
    args_.k = rows_of_heads(k_, static_cast<int64_t>(places.size()), p_.kv_heads);
    args_.v = rows_of_heads(v_, static_cast<int64_t>(places.size()), p_.kv_heads);
    for (size_t i = 0; i < places.size(); ++i) {
      for (int h = 0; h < p_.kv_heads; ++h) {
        float* k = args_.k.row(static_cast<int64_t>(i)) + h * args_.k.stride[1];
        float* v = args_.v.row(static_cast<int64_t>(i)) + h * args_.v.stride[1];
        for (int d = 0; d < p_.dim; ++d) {
          k[d] = kv_value(false, *places[i].first, places[i].second, h, d);
          v[d] = kv_value(true, *places[i].first, places[i].second, h, d);
        }
      }
    }
  }

  const AttentionProblem& p_;
  AttentionBackend& backend_;
  AttentionMetadata metadata_;
  AttentionArgs args_;
  AttentionBias bias_;
  std::optional<DistanceBias> t5_;
  std::vector<int32_t> query_start_, context_, seq_lens_, kv_start_, group_start_, tables_, key_begin_, key_end_;
  std::vector<int64_t> slots_;
  std::vector<float> bias_data_;
  PageBuffer q_, k_, v_, out_, cache_;
  std::vector<std::vector<int32_t>> owner_blocks_;
};

// K and V of one owner and KV head, [keys, dim].
struct HeadValues {
  std::vector<float> k, v;

  HeadValues(const AttentionProblem& p, const KeyOwner& owner, int kv_head) {
    for (int j = 0; j < owner.keys; ++j) {
      for (int d = 0; d < p.dim; ++d) {
        k.push_back(kv_value(false, owner, j, kv_head, d));
        v.push_back(kv_value(true, owner, j, kv_head, d));
      }
    }
  }
};

struct NaiveRow {
  std::vector<double> probabilities;  // of [0, owner.keys)
  std::vector<double> out;
};

// One row of one head in double precision.
inline NaiveRow attend_naively(const AttentionProblem& p, const KeyOwner& owner, const HeadValues& values, int seq,
                               int row, int head) {
  const int position = p.context(owner) + row;
  const KeyRange seen = p.seen(owner, seq, row);
  const auto begin = static_cast<size_t>(seen.begin), end = static_cast<size_t>(seen.end);
  const auto dim = static_cast<size_t>(p.dim);
  NaiveRow result{std::vector<double>(static_cast<size_t>(owner.keys)), std::vector<double>(dim)};
  std::vector<double>& weights = result.probabilities;
  double* out = result.out.data();
  std::vector<double> q(dim);
  for (size_t d = 0; d < dim; ++d) q[d] = q_value(owner.id, seq, position, head, static_cast<int>(d));
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  const double* query = q.data();
  for (size_t j = begin; j < end; ++j) {
    const float* key = values.k.data() + j * dim;
    double score = 0;
    for (size_t d = 0; d < dim; ++d) score += query[d] * key[d];
    weights[j] = score * p.scale() + bias_value(p, owner.id, seq, head, position, static_cast<int>(j));
    max = std::max(max, weights[j]);
  }
  for (size_t j = begin; j < end; ++j) {
    weights[j] = std::isinf(max) ? 0 : std::exp(weights[j] - max);
    sum += weights[j];
  }
  for (size_t j = begin; j < end; ++j) {
    const double weight = weights[j] = sum == 0 ? 0 : weights[j] / sum;
    const float* value = values.v.data() + j * dim;
    for (size_t d = 0; d < dim; ++d) out[d] += weight * value[d];
  }
  return result;
}

}  // namespace transept
