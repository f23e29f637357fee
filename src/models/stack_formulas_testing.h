// For tests: a stack of transformer layers from random weights, and its formulas in double precision, which know no
// batch, no cache and no fused product. Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/folder_testing.h"
#include "models/transformer_stack.h"
#include "ops/activation.h"
#include "weights/safetensors_testing.h"

namespace transept::testing {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

enum class Gates { kNone, kOne, kByColumn };

struct StackCase {
  std::string name = {};
  bool is_decoder = true;
  std::vector<std::string> layers = {"scf", "scf"};  // s: self, c: cross, f: feed-forward
  NormOptions norm = {};
  NormPlace place = NormPlace::kBefore;
  bool has_final_norm = true;
  bool has_biases = true, k_has_bias = true, out_has_bias = true;
  int64_t num_heads = 4, num_kv_heads = 0, head_dim = 0;
  int64_t cross_heads = 0, cross_kv_heads = 0, cross_head_dim = 0, kv_dim = 0;  // 0: as self-attention's
  std::map<size_t, int64_t> other_kv_heads = {}, other_cross_kv_heads = {};     // of these layers
  bool norms_heads = false;
  NormOptions head_norm = {};
  Rope rope = {};
  Gates gates = Gates::kNone;
  bool is_gated = false;  // the feed-forward
  Activation activation = Activation::kGelu;
  size_t num_biases = 0;  // by distance: for all layers, or for each
  int64_t dim = 24;
  std::optional<uint8_t> kind_without_feed_forward = {};  // in layers that cross
};

inline constexpr int64_t kHidden = 40;
inline constexpr int64_t kMaxDistance = 3;

// What a row of a decoder sees of the encoder's rows, and its kind.
struct SeenKeys {
  size_t begin = 0, end = 0;
  uint8_t kind = 0;
};

// A feed-forward's, an attention's options as the layers are loaded with.
inline AttentionOptions attention_options(const StackCase& c, size_t layer, bool is_cross) {
  AttentionOptions options;
  options.prefix = str_cat("layers.", layer, is_cross ? ".cross" : ".self");
  options.dim = c.dim;
  options.num_heads = is_cross && c.cross_heads > 0 ? c.cross_heads : c.num_heads;
  options.num_kv_heads = is_cross && c.cross_kv_heads > 0 ? c.cross_kv_heads : c.num_kv_heads;
  const std::map<size_t, int64_t>& others = is_cross ? c.other_cross_kv_heads : c.other_kv_heads;
  if (const auto other = others.find(layer); other != others.end()) options.num_kv_heads = other->second;
  options.head_dim = is_cross && c.cross_head_dim > 0 ? c.cross_head_dim : c.head_dim;
  options.kv_dim = is_cross ? c.kv_dim : 0;
  options.scale = 1.0f / std::sqrt(static_cast<float>(options.width_of_head()));
  options.has_biases = c.has_biases;
  options.k_has_bias = c.k_has_bias;
  options.out_has_bias = c.out_has_bias;
  if (c.norms_heads) options.q_norm = "q_norm", options.k_norm = "k_norm";
  options.head_norm = c.head_norm;
  return options;
}

inline double distance_bias(size_t layer, int64_t head, int64_t distance) {
  const int64_t near = std::clamp(distance, -kMaxDistance, kMaxDistance);
  return 0.3 * static_cast<double>(near) + 0.2 * static_cast<double>(head) * static_cast<double>(near * near) -
         0.5 * static_cast<double>(layer) * static_cast<double>(near);
}

// The weights of a case, by name; `stack()` loads them, Formulas reads them.
class Checkpoint {
 public:
  explicit Checkpoint(const StackCase& c, uint32_t seed = 7) : c_(c), random_(seed) {
    for (size_t i = 0; i < c.layers.size(); ++i) {
      const std::string layer = str_cat("layers.", i);
      for (const bool is_cross : {false, true}) {
        if (c.layers[i].find(is_cross ? 'c' : 's') != std::string::npos) add_attention(i, is_cross);
      }
      if (c.layers[i].find('f') == std::string::npos) continue;
      add_matrix(layer + ".up", kHidden, c_.dim, c.has_biases);
      if (c.is_gated) add_matrix(layer + ".gate", kHidden, c_.dim, c.has_biases);
      add_matrix(layer + ".down", c_.dim, kHidden, c.has_biases);
      add_sum(layer + ".ffn");
    }
    if (c.has_final_norm) add_norm("final", c_.dim, c.norm);
  }

  const std::vector<float>& at(const std::string& name) const { return values_.at(name); }
  bool contains(const std::string& name) const { return values_.contains(name); }

  StatusOr<TransformerStack> stack(const PackOptions& packing, const AttentionBackend& attention) const {
    std::vector<TestTensor> tensors;
    for (const auto& [name, values] : values_) tensors.push_back({name, "F32", shapes_.at(name), bytes_of(values)});
    dir_.write("model.safetensors", safetensors_bytes(tensors));
    ASSIGN_OR_RETURN(const std::unique_ptr<WeightMap> opened, WeightMap::open(dir_.path()));
    WeightMap& weights = *opened;
    StackParts parts;
    for (size_t i = 0; i < c_.layers.size(); ++i) {
      const std::string layer = str_cat("layers.", i), &has = c_.layers[i];
      TransformerLayer& loaded = parts.layers.emplace_back();
      if (has.find('s') != std::string::npos) {
        ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights, attention_options(c_, i, false), packing));
        ASSIGN_OR_RETURN(Residual sum, residual(weights, layer + ".self"));
        loaded.self = Sublayer<SelfAttention>{std::move(self), std::move(sum)};
      }
      if (has.find('c') != std::string::npos) {
        ASSIGN_OR_RETURN(CrossAttention cross, CrossAttention::load(weights, attention_options(c_, i, true), packing));
        ASSIGN_OR_RETURN(Residual sum, residual(weights, layer + ".cross"));
        loaded.cross = Sublayer<CrossAttention>{std::move(cross), std::move(sum)};
      }
      if (has.find('f') == std::string::npos) continue;
      FeedForward::Options options{.up = layer + ".up", .down = layer + ".down", .dim = c_.dim, .hidden_dim = kHidden};
      options.activation = c_.activation;
      options.gate = c_.is_gated ? layer + ".gate" : "";
      options.has_biases = c_.has_biases;
      ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights, options, packing));
      ASSIGN_OR_RETURN(Residual sum, residual(weights, layer + ".ffn"));
      loaded.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(sum)};
      if (loaded.cross.has_value()) loaded.kind_without_feed_forward = c_.kind_without_feed_forward;
    }
    for (size_t i = 0; i < c_.num_biases; ++i) {
      parts.biases.emplace_back(c_.num_heads, kMaxDistance, [&](int64_t head, int64_t distance) {
        return static_cast<float>(distance_bias(i, head, distance));
      });
    }
    parts.rope = c_.rope;
    if (c_.has_final_norm) {
      ASSIGN_OR_RETURN(parts.final_norm, Norm::load(weights, "final.norm", c_.dim, c_.norm));
    }
    return TransformerStack::make(std::move(parts), attention);
  }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, float mean = 0, float deviation = 0.3f) {
    std::normal_distribution<float> normal(mean, deviation);
    std::vector<float>& values = values_[name];
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    for (int64_t i = 0; i < count; ++i) values.push_back(normal(random_));
    shapes_[name] = std::move(shape);
  }
  void add_matrix(const std::string& prefix, int64_t out, int64_t in, bool has_bias) {
    add(prefix + ".weight", {out, in});
    if (has_bias) add(prefix + ".bias", {out});
  }
  void add_norm(const std::string& prefix, int64_t dim, const NormOptions& options) {
    add(prefix + ".norm.weight", {dim}, 1.0f);
    if (options.kind == NormKind::kLayer && options.has_bias) add(prefix + ".norm.bias", {dim});
  }
  void add_sum(const std::string& prefix) {
    add_norm(prefix, c_.dim, c_.norm);
    if (c_.gates != Gates::kNone) add(prefix + ".factor", {c_.gates == Gates::kOne ? 1 : c_.dim}, 0.5f);
  }
  void add_attention(size_t layer, bool is_cross) {
    const AttentionOptions options = attention_options(c_, layer, is_cross);
    add_matrix(options.prefix + ".q_proj", options.q_width(), c_.dim, c_.has_biases);
    add_matrix(options.prefix + ".k_proj", options.kv_width(), options.kv_input_dim(), c_.has_biases && c_.k_has_bias);
    add_matrix(options.prefix + ".v_proj", options.kv_width(), options.kv_input_dim(), c_.has_biases);
    add_matrix(options.prefix + ".out_proj", c_.dim, options.q_width(), c_.has_biases && c_.out_has_bias);
    for (const char* name : {".q_norm", ".k_norm"}) {
      if (!c_.norms_heads) continue;
      add(options.prefix + name + ".weight", {options.width_of_head()}, 1.0f);
      const bool has_bias = c_.head_norm.kind == NormKind::kLayer && c_.head_norm.has_bias;
      if (has_bias) add(options.prefix + name + ".bias", {options.width_of_head()});
    }
    add_sum(options.prefix);
  }

  StatusOr<Residual> residual(WeightMap& weights, const std::string& prefix) const {
    ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, prefix + ".norm", c_.dim, c_.norm));
    Residual sum{std::move(norm), c_.place};
    if (c_.gates != Gates::kNone) sum.gate = DeviceFloats(at(prefix + ".factor"), weights.memory());
    return sum;
  }

  const StackCase c_;
  TestFolder dir_;
  std::mt19937 random_;
  std::map<std::string, std::vector<float>> values_;
  std::map<std::string, std::vector<int64_t>> shapes_;
};

// One sequence, all of its rows at once.
class Formulas {
 public:
  Formulas(const StackCase& c, const Checkpoint& checkpoint) : c_(c), checkpoint_(checkpoint) {}

  // positions: [axes][rows]. seen: what each row sees of the encoder's; empty: all.
  Rows run(Rows x, const Rows& encoder_rows, const std::vector<std::vector<int32_t>>& positions,
           const std::vector<SeenKeys>& seen = {}) const {
    for (size_t i = 0; i < c_.layers.size(); ++i) {
      const std::string layer = str_cat("layers.", i), &has = c_.layers[i];
      if (has.find('s') != std::string::npos) {
        add(x, layer + ".self", [&](const Rows& in) {
          const AttentionOptions options = attention_options(c_, i, false);
          return attend(options, in, in, c_.is_decoder,
                        c_.num_biases == 0 ? -1 : static_cast<int>(c_.num_biases == 1 ? 0 : i), &positions);
        });
      }
      if (has.find('c') != std::string::npos) {
        add(x, layer + ".cross", [&](const Rows& in) {
          return attend(attention_options(c_, i, true), in, encoder_rows, false, -1, nullptr, seen);
        });
      }
      if (has.find('f') == std::string::npos) continue;
      const Rows before = x;
      add(x, layer + ".ffn", [&](const Rows& in) { return feed_forward(layer, in); });
      const bool skips = c_.kind_without_feed_forward.has_value() && has.find('c') != std::string::npos;
      for (size_t row = 0; skips && row < seen.size(); ++row) {
        if (seen[row].kind == *c_.kind_without_feed_forward) x[row] = before[row];
      }
    }
    return c_.has_final_norm ? norm(x, "final.norm", c_.norm) : x;
  }

 private:
  template <typename F>
  void add(Rows& x, const std::string& prefix, const F& f) const {
    const std::string of_norm = prefix + ".norm";
    Rows y = f(c_.place == NormPlace::kBefore ? norm(x, of_norm, c_.norm) : x);
    if (c_.place == NormPlace::kInside) y = norm(y, of_norm, c_.norm);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[i].size(); ++j) x[i][j] += factor(prefix, j) * y[i][j];
    }
    if (c_.place == NormPlace::kAfter) x = norm(x, of_norm, c_.norm);
  }

  double factor(const std::string& prefix, size_t column) const {
    if (c_.gates == Gates::kNone) return 1;
    return checkpoint_.at(prefix + ".factor")[c_.gates == Gates::kOne ? 0 : column];
  }

  Row norm(const Row& x, const std::string& prefix, const NormOptions& options) const {
    double mean = 0, squares = 0;
    const double n = static_cast<double>(x.size());
    if (options.kind == NormKind::kLayer) {
      for (const double value : x) mean += value / n;
    }
    for (const double value : x) squares += (value - mean) * (value - mean) / n;
    Row y;
    for (size_t j = 0; j < x.size(); ++j) {
      y.push_back((x[j] - mean) / std::sqrt(squares + static_cast<double>(options.epsilon)) *
                  static_cast<double>(checkpoint_.at(prefix + ".weight")[j]));
      if (checkpoint_.contains(prefix + ".bias")) y[j] += static_cast<double>(checkpoint_.at(prefix + ".bias")[j]);
    }
    return y;
  }
  Rows norm(const Rows& x, const std::string& prefix, const NormOptions& options) const {
    Rows y;
    for (const Row& row : x) y.push_back(norm(row, prefix, options));
    return y;
  }

  Rows linear(const Rows& x, const std::string& prefix) const {
    const std::vector<float>& weight = checkpoint_.at(prefix + ".weight");
    Rows y;
    for (const Row& row : x) {
      Row& out = y.emplace_back(weight.size() / row.size());
      for (size_t o = 0; o < out.size(); ++o) {
        if (checkpoint_.contains(prefix + ".bias")) out[o] = checkpoint_.at(prefix + ".bias")[o];
        for (size_t j = 0; j < row.size(); ++j) out[o] += static_cast<double>(weight[o * row.size() + j]) * row[j];
      }
    }
    return y;
  }

  Rows feed_forward(const std::string& layer, const Rows& x) const {
    Rows up = linear(x, layer + ".up");
    const Rows gate = c_.is_gated ? linear(x, layer + ".gate") : up;
    for (size_t i = 0; i < up.size(); ++i) {
      for (size_t j = 0; j < up[i].size(); ++j) {
        const double active = activate(c_.activation, static_cast<float>(gate[i][j]));
        up[i][j] = c_.is_gated ? active * up[i][j] : active;
      }
    }
    return linear(up, layer + ".down");
  }

  // Head `head` of a projected row: normed, then turned.
  Row head_of(const Row& row, size_t head, size_t head_dim, const std::string& head_norm, size_t position,
              const std::vector<std::vector<int32_t>>* positions) const {
    Row part(row.begin() + static_cast<std::ptrdiff_t>(head * head_dim),
             row.begin() + static_cast<std::ptrdiff_t>((head + 1) * head_dim));
    if (c_.norms_heads && !head_norm.empty()) part = norm(part, head_norm, c_.head_norm);
    const size_t pairs = c_.rope.frequencies.size();
    if (positions == nullptr || head_norm.empty()) return part;
    for (size_t pair = 0; pair < pairs; ++pair) {
      const bool halves = c_.rope.pairs == RopePairs::kHalves;
      double &a = part[halves ? pair : 2 * pair], &b = part[halves ? pair + pairs : 2 * pair + 1];
      const double angle = static_cast<double>(c_.rope.frequencies[pair]) * (*positions)[axis_of(pair)][position];
      const std::complex<double> turned = std::complex<double>(a, b) * std::polar(1.0, angle);
      a = turned.real();
      b = turned.imag();
    }
    return part;
  }

  size_t axis_of(size_t pair) const {
    size_t axis = 0, end = 0;
    for (const int32_t section : c_.rope.sections) {
      end += static_cast<size_t>(section);
      if (pair < end) return axis;
      ++axis;
    }
    return 0;
  }

  Rows attend(const AttentionOptions& options, const Rows& x, const Rows& sources, bool is_causal, int bias,
              const std::vector<std::vector<int32_t>>* positions, const std::vector<SeenKeys>& seen = {}) const {
    const auto head_dim = static_cast<size_t>(options.width_of_head());
    const auto num_heads = static_cast<size_t>(options.num_heads), kv_heads = static_cast<size_t>(options.kv_heads());
    const Rows q = linear(x, options.prefix + ".q_proj"), k = linear(sources, options.prefix + ".k_proj");
    const Rows v = linear(sources, options.prefix + ".v_proj");
    Rows mixed(x.size(), Row(num_heads * head_dim));
    for (size_t head = 0; head < num_heads; ++head) {
      const size_t kv_head = head / (num_heads / kv_heads);
      for (size_t i = 0; i < x.size(); ++i) {
        const Row query = head_of(q[i], head, head_dim, options.prefix + ".q_norm", i, positions);
        double total = 0;
        const size_t first = seen.empty() ? 0 : seen[i].begin;
        const size_t last = is_causal ? i + 1 : seen.empty() ? sources.size() : seen[i].end;
        for (size_t key = first; key < last; ++key) {
          const Row keys = head_of(k[key], kv_head, head_dim, options.prefix + ".k_norm", key, positions);
          double score = 0;
          for (size_t j = 0; j < head_dim; ++j) score += query[j] * keys[j] * static_cast<double>(options.scale);
          if (bias >= 0) {
            score += distance_bias(static_cast<size_t>(bias), static_cast<int64_t>(head),
                                   static_cast<int64_t>(key) - static_cast<int64_t>(i));
          }
          const double weight = std::exp(score);
          total += weight;
          const Row values = head_of(v[key], kv_head, head_dim, "", key, nullptr);
          for (size_t j = 0; j < head_dim; ++j) mixed[i][head * head_dim + j] += weight * values[j];
        }
        for (size_t j = 0; j < head_dim && total > 0; ++j) mixed[i][head * head_dim + j] /= total;
      }
    }
    return linear(mixed, options.prefix + ".out_proj");
  }

  const StackCase c_;
  const Checkpoint& checkpoint_;
};

}  // namespace transept::testing
