// A file format of codes for tests: the matrix NAME is the tensors NAME.codes (U8 [n, ceil(k bits / 8)], the first code
// in the lowest bits, 2^(bits - 1) more than it means), NAME.scales (F32 [n, groups]), and where the format has them
// NAME.zeros (U8 [n, groups], as codes), NAME.groups (I32 [k], the group of each input) and NAME.table (F32 [16], of
// float4). Header-only, so that tests
// of other folders may use it.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "weights/safetensors_testing.h"
#include "weights/weight_map.h"

namespace transept::testing {

// What a matrix of codes means, and how its file says so.
struct CodedValues {
  std::string name;
  int64_t n = 0, k = 0;
  WeightFormat format;
  bool is_permuted = false;
  std::vector<int8_t> codes = {};    // [n, k], signed
  std::vector<float> scales = {};    // [n, groups]
  std::vector<int16_t> zeros = {};   // [n, groups]
  std::vector<int32_t> groups = {};  // [k]
  std::vector<float> table = {};     // [16], of float4

  int64_t num_groups() const { return format.group == 0 ? 1 : ceil_div(k, format.group); }
  int32_t most() const { return 1 << (format.bits - 1); }

  // Random values; the inputs of a permuted matrix belong to groups in a random order.
  void draw(uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](int32_t count) { return static_cast<int32_t>(random() % static_cast<uint32_t>(count)); };
    codes.resize(static_cast<size_t>(n * k));
    for (int8_t& code : codes) code = static_cast<int8_t>(below(2 * most()) - most());
    scales.resize(static_cast<size_t>(n * num_groups()));
    for (float& scale : scales) scale = static_cast<float>(1 + below(1000)) / 7000;
    zeros.resize(scales.size());
    for (int16_t& zero : zeros) zero = static_cast<int16_t>(format.has_zero ? below(2 * most()) - most() : 0);
    for (int32_t i = 0; i < 16 && !format.is_codes(); ++i)
      table.push_back(static_cast<float>(below(2000) - 1000) / 999);
    groups.resize(static_cast<size_t>(k));
    for (size_t j = 0; j < groups.size(); ++j) {
      groups[j] = format.group == 0 ? 0 : static_cast<int32_t>(static_cast<int64_t>(j) / format.group);
    }
    if (is_permuted) std::shuffle(groups.begin(), groups.end(), random);
  }

  // The definition.
  double weight(int64_t output, int64_t input) const {
    const auto at = static_cast<size_t>(output * num_groups() + groups[static_cast<size_t>(input)]);
    const int8_t code = codes[static_cast<size_t>(output * k + input)];
    const float value =
        table.empty() ? static_cast<float>(code - zeros[at]) : table[static_cast<size_t>(int64_t{8} + code)];
    return static_cast<double>(value) * scales[at];
  }

  void add_to(std::vector<TestTensor>& file) const {
    const int64_t row_bytes = ceil_div(k * format.bits, 8);
    std::string packed(static_cast<size_t>(n * row_bytes), '\0');
    for (int64_t i = 0; i < n * k; ++i) {
      const int64_t bit = i % k * format.bits;
      const int32_t code = codes[static_cast<size_t>(i)] + most();
      packed[static_cast<size_t>(i / k * row_bytes + bit / 8)] |= static_cast<char>(code << (bit % 8));
    }
    file.push_back({name + ".codes", "U8", {n, row_bytes}, packed});
    file.push_back({name + ".scales", "F32", {n, num_groups()}, bytes_of(scales)});
    std::vector<uint8_t> stored;
    for (const int16_t zero : zeros) stored.push_back(static_cast<uint8_t>(zero + most()));
    if (format.has_zero) file.push_back({name + ".zeros", "U8", {n, num_groups()}, bytes_of(stored)});
    if (is_permuted) file.push_back({name + ".groups", "I32", {k}, bytes_of(groups)});
    if (!table.empty()) file.push_back({name + ".table", "F32", {16}, bytes_of(table)});
  }
};

// Reads the format. bits of a code: 4 or 8.
class TestCodes final : public CodedMatrix {
 public:
  struct Parts {
    std::span<const std::byte> codes, scales, zeros;
  };
  TestCodes(int64_t n, int64_t k, const WeightFormat& format, std::vector<int32_t> input_groups,
            std::vector<float> table, const Parts& parts)
      : CodedMatrix(n, k, format, std::move(input_groups), std::move(table)), parts_(parts) {}

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override {
    const int64_t bits = format().bits, row_bytes = ceil_div(k() * bits, 8);
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      const auto byte = static_cast<int32_t>(parts_.codes[static_cast<size_t>(row * row_bytes + j * bits / 8)]);
      const int32_t code = byte >> (j * bits % 8) & ((1 << bits) - 1);
      codes[static_cast<size_t>(j - columns.begin)] = static_cast<int8_t>(code - (1 << (bits - 1)));
    }
  }
  void read_scales(int64_t row, std::span<float> scales, std::span<int16_t> zeros) const override {
    const auto first = static_cast<size_t>(row * num_groups());
    std::memcpy(scales.data(), parts_.scales.data() + first * sizeof(float), scales.size_bytes());
    for (size_t i = 0; i < zeros.size(); ++i) {
      zeros[i] = static_cast<int16_t>(static_cast<int32_t>(parts_.zeros[first + i]) - (1 << (format().bits - 1)));
    }
  }

 private:
  Parts parts_;
};

class TestReader final : public MatrixReader {
 public:
  explicit TestReader(const WeightFormat& format) : format_(format) {}

  bool has(const WeightMap& weights, std::string_view name) const override {
    return weights.has_tensor(str_cat(name, ".codes"));
  }
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override {
    const int64_t groups = format_.group == 0 ? 1 : ceil_div(k, format_.group);
    const auto get = [&](std::string_view part, std::string_view dtype, std::vector<int64_t> shape) {
      return weights.get_bytes(str_cat(name, part), dtype, shape, use);
    };
    TestCodes::Parts parts;
    ASSIGN_OR_RETURN(parts.codes, get(".codes", "U8", {n, ceil_div(k * format_.bits, 8)}));
    ASSIGN_OR_RETURN(parts.scales, get(".scales", "F32", {n, groups}));
    if (format_.has_zero) {
      ASSIGN_OR_RETURN(parts.zeros, get(".zeros", "U8", {n, groups}));
    }
    std::vector<int32_t> input_groups;
    if (weights.has_tensor(str_cat(name, ".groups"))) {
      ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, get(".groups", "I32", {k}));
      input_groups.resize(static_cast<size_t>(k));
      std::memcpy(input_groups.data(), bytes.data(), bytes.size());
    }
    std::vector<float> table(format_.is_codes() ? 0 : 16);
    if (!table.empty()) {
      ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, get(".table", "F32", {16}));
      std::memcpy(table.data(), bytes.data(), bytes.size());
    }
    return std::unique_ptr<MatrixSource>(
        std::make_unique<TestCodes>(n, k, format_, std::move(input_groups), std::move(table), parts));
  }

 private:
  WeightFormat format_;
};

inline constexpr WeightFormat kInt4Groups = {WeightLayout::kCodes, 4, 32, true};
// Codes of each kind: a scale an output; groups with zeros; the same with inputs in another order; of a table.
inline std::vector<CodedValues> coded_examples(const std::string& name, int64_t n, int64_t k) {
  std::vector<CodedValues> examples = {
      {name, n, k, kInt8Format},       {name, n, k, kInt4Groups},
      {name, n, k, kInt4Groups, true}, {name, n, k, {WeightLayout::kCodes, 8, 16, true}, true},
      {name, n, k, int4_format(0)},    {name, n, k, float4_format(32)}};
  for (size_t i = 0; i < examples.size(); ++i) examples[i].draw(static_cast<uint32_t>(i + 1));
  return examples;
}

}  // namespace transept::testing
