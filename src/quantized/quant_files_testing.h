// For tests: a quantised matrix "a.b.weight" of every format, as files have it, written bit by bit from its codes, with
// the numbers that it means. Header-only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "tensor/dtype.h"
#include "weights/safetensors_testing.h"

namespace transept::testing {

struct QuantFile {
  std::string name;    // of the case
  std::string config;  // the object of quantization_config
  int64_t n = 0, k = 0;
  std::vector<TestTensor> tensors = {};
  std::vector<float> weights = {};  // [n, k]

  TestTensor& tensor(std::string_view tensor_name) {
    const auto found = std::ranges::find(tensors, tensor_name, &TestTensor::name);
    if (found == tensors.end()) std::abort();
    return *found;
  }
};

// Draws and writes. `module` is "a.b" unless another is wanted.
class QuantWriter {
 public:
  explicit QuantWriter(uint32_t seed, std::string module = "a.b") : random_(seed), module_(std::move(module)) {}

  int below(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  // A number that float16 and bfloat16 have, too.
  float number() { return static_cast<float>(below(2) == 0 ? 1 + below(127) : -1 - below(127)) / 512; }
  std::vector<float> numbers(int64_t count) {
    std::vector<float> list(static_cast<size_t>(count));
    for (float& one : list) one = number();
    return list;
  }
  std::vector<int> codes(int64_t count, int bits) {
    std::vector<int> list(static_cast<size_t>(count));
    for (int& one : list) one = below(1 << bits);
    return list;
  }
  // The group of each input: in order, or shuffled.
  std::vector<int32_t> groups(int64_t k, int64_t group, bool is_shuffled) {
    std::vector<int32_t> list(static_cast<size_t>(k));
    for (int64_t j = 0; j < k; ++j) list[static_cast<size_t>(j)] = static_cast<int32_t>(group == 0 ? 0 : j / group);
    if (is_shuffled) std::shuffle(list.begin(), list.end(), random_);
    return list;
  }
  std::string of(std::string_view part) const { return str_cat(module_, part); }

  static void set_bits(std::string& bytes, int64_t bit, int bits, int value) {
    for (int i = 0; i < bits; ++i) {
      if ((value >> i & 1) != 0) bytes[static_cast<size_t>((bit + i) / 8)] |= static_cast<char>(1 << ((bit + i) % 8));
    }
  }
  static TestTensor floats(std::string name, std::string dtype, std::vector<int64_t> shape,
                           const std::vector<float>& values) {
    std::vector<uint16_t> halves;
    halves.reserve(values.size());
    for (const float value : values)
      halves.push_back(dtype == "F16" ? float_to_float16(value) : float_to_bfloat16(value));
    std::string bytes = dtype == "F32" ? bytes_of(values) : bytes_of(halves);
    return {std::move(name), std::move(dtype), std::move(shape), std::move(bytes)};
  }

  // (code - zero) * scale over codes and zeros as they are counted from 0.
  static std::vector<float> meaning(int64_t n, int64_t k, const std::vector<int>& codes, const std::vector<int>& zeros,
                                    const std::vector<float>& scales, const std::vector<int32_t>& groups) {
    const int64_t count = static_cast<int64_t>(scales.size()) / n;
    std::vector<float> weights;
    for (int64_t o = 0; o < n; ++o) {
      for (int64_t j = 0; j < k; ++j) {
        const auto at = static_cast<size_t>(o * count + groups[static_cast<size_t>(j)]);
        weights.push_back(static_cast<float>(codes[static_cast<size_t>(o * k + j)] - zeros[at]) * scales[at]);
      }
    }
    return weights;
  }

  // compressed-tensors, pack-quantized.
  QuantFile packed(int64_t n, int64_t k, int bits, int64_t group, bool has_zeros, bool has_order, std::string dtype) {
    const int64_t count = group == 0 ? 1 : k / group, words = (k * bits + 31) / 32;
    const std::vector<int> all = codes(n * k, bits);
    std::vector<int> zeros(static_cast<size_t>(n * count), 1 << (bits - 1));
    if (has_zeros) zeros = codes(n * count, bits);
    const std::vector<float> scales = numbers(n * count);
    const std::vector<int32_t> order = groups(k, group, has_order);
    QuantFile file{
        str_cat("ct ", bits, " bits, groups of ", group, has_zeros ? ", zeros" : "", has_order ? ", order" : ""),
        compressed_config("pack-quantized", str_cat(R"("num_bits": )", bits, R"(, "type": "int", "symmetric": )",
                                                    has_zeros ? "false" : "true", strategy(group))),
        n, k};
    std::string bytes(static_cast<size_t>(n * words * 4), '\0');
    for (int64_t i = 0; i < n * k; ++i) {
      set_bits(bytes, i / k * words * 32 + i % k * bits, bits, all[static_cast<size_t>(i)]);
    }
    file.tensors = {{of(".weight_packed"), "I32", {n, words}, bytes},
                    floats(of(".weight_scale"), std::move(dtype), {n, count}, scales),
                    {of(".weight_shape"), "I64", {2}, bytes_of(std::vector<int64_t>{n, k})}};
    if (has_zeros) {
      const int64_t rows = (n * bits + 31) / 32;
      std::string packed_zeros(static_cast<size_t>(rows * count * 4), '\0');
      for (int64_t i = 0; i < n * count; ++i) {
        for (int b = 0; b < bits; ++b) {
          const int64_t bit = i / count * bits + b;
          set_bits(packed_zeros, (bit / 32 * count + i % count) * 32 + bit % 32, 1,
                   zeros[static_cast<size_t>(i)] >> b & 1);
        }
      }
      file.tensors.push_back({of(".weight_zero_point"), "I32", {rows, count}, packed_zeros});
    }
    if (has_order) file.tensors.push_back({of(".weight_g_idx"), "I32", {k}, bytes_of(order)});
    file.weights = meaning(n, k, all, zeros, scales, order);
    return file;
  }

  // compressed-tensors, int-quantized. shape: of the scales, which are one, a channel's or a group's.
  QuantFile integers(int64_t n, int64_t k, int64_t group, bool is_one, bool has_zeros) {
    const int64_t count = group == 0 ? 1 : k / group;
    const std::vector<int> all = codes(n * k, 8);
    std::vector<float> scales = numbers(n * count);
    if (is_one) std::ranges::fill(scales, scales[0]);
    std::vector<int> zeros(static_cast<size_t>(n * count), 128);
    if (has_zeros) zeros = codes(n * count, 8);
    QuantFile file{str_cat("int-quantized", is_one ? " by tensor" : "", has_zeros ? " with zeros" : ""),
                   compressed_config("int-quantized", str_cat(R"("num_bits": 8, "type": "int", "symmetric": )",
                                                              has_zeros ? "false" : "true",
                                                              is_one ? R"(, "strategy": "tensor")" : strategy(group))),
                   n, k};
    std::vector<int8_t> stored, stored_zeros;
    for (const int code : all) stored.push_back(static_cast<int8_t>(code - 128));
    for (const int zero : zeros) stored_zeros.push_back(static_cast<int8_t>(zero - 128));
    file.tensors = {{of(".weight"), "I8", {n, k}, bytes_of(stored)}};
    file.tensors.push_back(is_one ? floats(of(".weight_scale"), "F32", {1}, {scales[0]})
                                  : floats(of(".weight_scale"), "BF16", {n, count}, scales));
    if (has_zeros) file.tensors.push_back({of(".weight_zero_point"), "I8", {n, count}, bytes_of(stored_zeros)});
    file.weights = meaning(n, k, all, zeros, scales, groups(k, group, false));
    return file;
  }

  // e4m3, by the specification's formula.
  static float float8(int bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double magnitude =
        exponent == 0 ? std::pow(2.0, -6) * mantissa / 8 : std::pow(2.0, exponent - 7) * (1 + mantissa / 8.0);
    return static_cast<float>((bits & 128) != 0 ? -magnitude : magnitude);
  }

  // Codes of float8 with a scale for each block; weight_name: ".weight" or ".weight._data".
  QuantFile floats8(std::string name, std::string config, std::string_view weight_name, std::string_view scale_name,
                    int64_t n, int64_t k, int64_t block_n, int64_t block_k, std::vector<int64_t> scale_shape) {
    const int64_t columns = (k + block_k - 1) / block_k, rows = (n + block_n - 1) / block_n;
    const std::vector<float> scales = numbers(rows * columns);
    QuantFile file{std::move(name), std::move(config), n, k};
    std::vector<uint8_t> stored;
    for (int64_t i = 0; i < n * k; ++i) {
      int code = below(256);
      if ((code & 127) == 127) code -= 1;  // NaN
      stored.push_back(static_cast<uint8_t>(code));
      file.weights.push_back(float8(code) * scales[static_cast<size_t>(i / k / block_n * columns + i % k / block_k)]);
    }
    file.tensors = {{of(weight_name), "F8_E4M3", {n, k}, bytes_of(stored)},
                    floats(of(scale_name), "F32", std::move(scale_shape), scales)};
    return file;
  }

  // GPTQ.
  QuantFile gptq(int64_t n, int64_t k, int bits, int64_t group, bool is_v1, bool has_order) {
    const int64_t count = group == 0 ? 1 : k / group, words = k * bits / 32, zero_words = n * bits / 32;
    const std::vector<int> all = codes(n * k, bits), zeros = codes(n * count, bits);
    const std::vector<float> scales = numbers(n * count);
    const std::vector<int32_t> order = groups(k, group, has_order);
    QuantFile file{str_cat("gptq ", is_v1 ? 1 : 2, ", ", bits, " bits, groups of ", group, has_order ? ", order" : ""),
                   str_cat(R"({"quant_method": "gptq", "bits": )", bits, R"(, "group_size": )", group == 0 ? -1 : group,
                           R"(, "desc_act": )", has_order ? "true" : "false", R"(, "checkpoint_format": ")",
                           is_v1 ? "gptq" : "gptq_v2", R"("})"),
                   n, k};
    std::string bytes(static_cast<size_t>(words * n * 4), '\0'),
        zero_bytes(static_cast<size_t>(count * zero_words * 4), '\0');
    std::vector<float> by_group(scales.size());
    for (int64_t o = 0; o < n; ++o) {
      for (int64_t j = 0; j < k; ++j) {
        for (int b = 0; b < bits; ++b) {
          const int64_t bit = j * bits + b;
          set_bits(bytes, (bit / 32 * n + o) * 32 + bit % 32, 1, all[static_cast<size_t>(o * k + j)] >> b & 1);
        }
      }
      for (int64_t g = 0; g < count; ++g) {
        const auto at = static_cast<size_t>(o * count + g);
        const int stored = is_v1 ? (zeros[at] + (1 << bits) - 1) % (1 << bits) : zeros[at];
        set_bits(zero_bytes, g * zero_words * 32 + o * bits, bits, stored);
        by_group[static_cast<size_t>(g * n + o)] = scales[at];
      }
    }
    file.tensors = {{of(".qweight"), "I32", {words, n}, bytes},
                    {of(".qzeros"), "I32", {count, zero_words}, zero_bytes},
                    floats(of(".scales"), "F16", {count, n}, by_group),
                    {of(".g_idx"), "I32", {k}, bytes_of(order)}};
    file.weights = meaning(n, k, all, zeros, scales, order);
    return file;
  }

  // AWQ, gemm.
  QuantFile awq(int64_t n, int64_t k, int64_t group) {
    constexpr std::array<int, 8> kOrder = {0, 2, 4, 6, 1, 3, 5, 7};
    const int64_t count = group == 0 ? 1 : k / group;
    const std::vector<int> all = codes(n * k, 4), zeros = codes(n * count, 4);
    const std::vector<float> scales = numbers(n * count);
    QuantFile file{str_cat("awq, groups of ", group),
                   str_cat(R"({"quant_method": "awq", "bits": 4, "group_size": )", group == 0 ? -1 : group,
                           R"(, "version": "gemm", "zero_point": true})"),
                   n, k};
    std::string bytes(static_cast<size_t>(k * n / 2), '\0'), zero_bytes(static_cast<size_t>(count * n / 2), '\0');
    std::vector<float> by_group(scales.size());
    for (int64_t word = 0; word < n / 8; ++word) {
      for (int place = 0; place < 8; ++place) {
        const int64_t o = word * 8 + kOrder[static_cast<size_t>(place)];
        for (int64_t j = 0; j < k; ++j) {
          set_bits(bytes, (j * n / 8 + word) * 32 + place * 4, 4, all[static_cast<size_t>(o * k + j)]);
        }
        for (int64_t g = 0; g < count; ++g) {
          set_bits(zero_bytes, (g * n / 8 + word) * 32 + place * 4, 4, zeros[static_cast<size_t>(o * count + g)]);
          by_group[static_cast<size_t>(g * n + o)] = scales[static_cast<size_t>(o * count + g)];
        }
      }
    }
    file.tensors = {{of(".qweight"), "I32", {k, n / 8}, bytes},
                    {of(".qzeros"), "I32", {count, n / 8}, zero_bytes},
                    floats(of(".scales"), "F16", {count, n}, by_group)};
    file.weights = meaning(n, k, all, zeros, scales, groups(k, group, false));
    return file;
  }

  // bitsandbytes, int8.
  QuantFile bitsandbytes8(int64_t n, int64_t k) {
    const std::vector<int> all = codes(n * k, 8);
    const std::vector<float> most = numbers(n);
    QuantFile file{"bitsandbytes 8", R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", n, k};
    std::vector<int8_t> stored;
    for (int64_t i = 0; i < n * k; ++i) {
      const int code = all[static_cast<size_t>(i)] - 128;
      stored.push_back(static_cast<int8_t>(code));
      file.weights.push_back(static_cast<float>(code) * (most[static_cast<size_t>(i / k)] / 127));
    }
    file.tensors = {{of(".weight"), "I8", {n, k}, bytes_of(stored)},
                    floats(of(".SCB"), "F32", {n}, most),
                    {of(".weight_format"), "U8", {}, std::string(1, '\0')}};
    return file;
  }

  // bitsandbytes, nf4 or fp4: what the table has is the file's affair.
  QuantFile bitsandbytes4(int64_t n, int64_t k, int64_t block, bool is_nested, const std::string& kind) {
    constexpr int64_t kNestedBlock = 4;
    const int64_t blocks = (n * k + block - 1) / block, nested_blocks = (blocks + kNestedBlock - 1) / kNestedBlock;
    const std::vector<int> all = codes(n * k, 4), nested_codes = codes(blocks, 8);
    const std::vector<float> table = numbers(16), nested_table = numbers(256), nested_most = numbers(nested_blocks);
    const float offset = 0.25f;
    std::vector<float> most = numbers(blocks);
    std::vector<uint8_t> nested_bytes;
    for (size_t i = 0; is_nested && i < most.size(); ++i) {
      nested_bytes.push_back(static_cast<uint8_t>(nested_codes[i]));
      most[i] = nested_table[static_cast<size_t>(nested_codes[i])] * nested_most[i / kNestedBlock] + offset;
    }
    QuantFile file{str_cat("bitsandbytes ", kind, ", blocks of ", block, is_nested ? ", nested" : ""),
                   R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", n, k};
    std::string bytes(static_cast<size_t>((n * k + 1) / 2), '\0');
    for (int64_t i = 0; i < n * k; ++i) {
      set_bits(bytes, i / 2 * 8 + (i % 2 == 0 ? 4 : 0), 4, all[static_cast<size_t>(i)]);
      file.weights.push_back(table[static_cast<size_t>(all[static_cast<size_t>(i)])] *
                             most[static_cast<size_t>(i / block)]);
    }
    const std::string state =
        str_cat(R"({"quant_type": ")", kind, R"(", "blocksize": )", block, R"(, "shape": [)", n, ", ", k,
                R"(], "dtype": "bfloat16", "nested_blocksize": )", kNestedBlock, R"(, "nested_offset": )", offset, "}");
    file.tensors = {
        {of(".weight"), "U8", {(n * k + 1) / 2, 1}, bytes},
        floats(of(".weight.quant_map"), "F32", {16}, table),
        {of(str_cat(".weight.quant_state.bitsandbytes__", kind)), "U8", {static_cast<int64_t>(state.size())}, state}};
    if (is_nested) {
      file.tensors.push_back({of(".weight.absmax"), "U8", {blocks}, bytes_of(nested_bytes)});
      file.tensors.push_back(floats(of(".weight.nested_quant_map"), "F32", {256}, nested_table));
      file.tensors.push_back(floats(of(".weight.nested_absmax"), "F32", {nested_blocks}, nested_most));
    } else {
      file.tensors.push_back(floats(of(".weight.absmax"), "F32", {blocks}, most));
    }
    return file;
  }

  // quanto, qint8.
  QuantFile quanto(int64_t n, int64_t k) {
    const std::vector<int> all = codes(n * k, 8);
    const std::vector<float> scales = numbers(n);
    QuantFile file{"quanto", R"({"quant_method": "quanto", "weights": "int8"})", n, k};
    std::vector<int8_t> stored;
    for (int64_t i = 0; i < n * k; ++i) {
      stored.push_back(static_cast<int8_t>(all[static_cast<size_t>(i)] - 128));
      file.weights.push_back(static_cast<float>(stored.back()) * scales[static_cast<size_t>(i / k)]);
    }
    file.tensors = {{of(".weight._data"), "I8", {n, k}, bytes_of(stored)},
                    floats(of(".weight._scale"), "F32", {n, 1}, scales),
                    floats(of(".input_scale"), "F32", {}, {1.0f})};
    return file;
  }

  static std::string strategy(int64_t group) {
    return group == 0 ? std::string(R"(, "strategy": "channel")")
                      : str_cat(R"(, "strategy": "group", "group_size": )", group);
  }
  static std::string compressed_config(std::string_view format, std::string_view weights) {
    return str_cat(R"({"quant_method": "compressed-tensors", "format": ")", format, R"(", "ignore": ["lm_head"], )",
                   R"("config_groups": {"group_0": {"targets": ["Linear"], "weights": {)", weights, "}}}}");
  }

 private:
  std::mt19937 random_;
  std::string module_;
};

// A matrix of each format and each of its options.
inline std::vector<QuantFile> quant_examples() {
  std::vector<QuantFile> list;
  uint32_t seed = 0;
  const auto next = [&] { return QuantWriter(++seed); };
  for (const int bits : {2, 3, 4, 5, 6, 7, 8})
    list.push_back(next().packed(12, 48, bits, 16, bits % 2 == 0, false, "F32"));
  list.push_back(next().packed(12, 40, 4, 0, true, false, "BF16"));
  list.push_back(next().packed(12, 64, 4, 16, true, true, "F16"));
  list.push_back(next().packed(12, 64, 8, 0, false, false, "F32"));
  list.push_back(next().integers(12, 40, 0, false, false));
  list.push_back(next().integers(12, 40, 0, true, false));
  list.push_back(next().integers(12, 40, 8, false, true));
  const std::string floats = R"("num_bits": 8, "type": "float", "strategy": )";
  const auto ct = [&](std::string_view more) {
    return QuantWriter::compressed_config("float-quantized", str_cat(floats, more));
  };
  list.push_back(
      next().floats8("ct fp8 by channel", ct(R"("channel")"), ".weight", ".weight_scale", 12, 40, 1, 40, {12, 1}));
  list.push_back(
      next().floats8("ct fp8 by tensor", ct(R"("tensor")"), ".weight", ".weight_scale", 12, 40, 12, 40, {1}));
  list.push_back(next().floats8("ct fp8 by block", ct(R"("block", "block_structure": [8, 16])"), ".weight",
                                ".weight_scale", 12, 40, 8, 16, {2, 3}));
  list.push_back(next().floats8("fp8 by block", R"({"quant_method": "fp8", "weight_block_size": [8, 16]})", ".weight",
                                ".weight_scale_inv", 12, 40, 8, 16, {2, 3}));
  list.push_back(next().floats8("fbgemm", R"({"quant_method": "fbgemm_fp8"})", ".weight", ".weight_scale", 12, 40, 1,
                                40, {12, 1}));
  list.push_back(next().floats8("modelopt", R"({"quant_method": "modelopt", "quant_algo": "FP8"})", ".weight",
                                ".weight_scale", 12, 40, 12, 40, {}));
  list.push_back(next().floats8("quanto fp8", R"({"quant_method": "quanto", "weights": "float8"})", ".weight._data",
                                ".weight._scale", 12, 40, 1, 40, {12, 1}));
  for (const int bits : {2, 3, 4, 8}) {
    list.push_back(next().gptq(32, 64, bits, 16, true, false));
    list.push_back(next().gptq(32, 64, bits, 16, false, true));
  }
  list.push_back(next().gptq(32, 64, 4, 0, true, false));
  list.push_back(next().awq(24, 48, 16));
  list.push_back(next().awq(24, 48, 0));
  list.push_back(next().bitsandbytes8(12, 40));
  list.push_back(next().bitsandbytes4(12, 40, 32, false, "nf4"));
  list.push_back(next().bitsandbytes4(12, 40, 64, true, "nf4"));  // blocks that rows share
  list.push_back(next().bitsandbytes4(7, 5, 32, true, "fp4"));    // an odd number of codes
  list.push_back(next().bitsandbytes4(12, 64, 32, true, "nf4"));  // whole blocks
  list.push_back(next().bitsandbytes4(6, 128, 64, false, "fp4"));
  list.push_back(next().quanto(12, 40));
  return list;
}

}  // namespace transept::testing
