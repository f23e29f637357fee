// Writes CTranslate2's model.bin for tests. Header-only.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transept::testing {

// Variables and aliases, written in the order in which they came.
class Ct2Writer {
 public:
  explicit Ct2Writer(std::string spec = "TransformerSpec", uint32_t version = 6)
      : spec_(std::move(spec)), version_(version) {}

  // type: the number of it; before version 4 the size of an element.
  void variable(std::string_view name, const std::vector<uint32_t>& shape, uint8_t type, std::string_view data) {
    name_to(variables_, name);
    number_to<uint8_t>(variables_, static_cast<uint8_t>(shape.size()));
    for (const uint32_t side : shape) number_to<uint32_t>(variables_, side);
    number_to<uint8_t>(variables_, type);
    number_to<uint32_t>(variables_, static_cast<uint32_t>(version_ >= 4 ? data.size() : data.size() / type));
    variables_ += data;
    ++num_variables_;
  }
  void floats(std::string_view name, const std::vector<uint32_t>& shape, const std::vector<float>& values) {
    variable(name, shape, version_ >= 4 ? 0 : 4, bytes_of<float>(values));
  }
  void flag(std::string_view name, int8_t value) { variable(name, {}, 1, bytes_of<int8_t>({value})); }
  void integer(std::string_view name, int16_t value) { variable(name, {}, 2, bytes_of<int16_t>({value})); }
  void number(std::string_view name, float value) { floats(name, {}, {value}); }
  // [rows, k], as its converter rounds: int8 with a scale for each row, int16 with one. Returns what they mean.
  std::vector<float> int8(std::string_view name, uint32_t rows, const std::vector<float>& values) {
    std::string codes, scales;
    std::vector<float> meant;
    const size_t k = values.size() / rows;
    for (uint32_t row = 0; row < rows; ++row) {
      const auto own = std::span(values).subspan(row * k, k);
      float largest = 0;
      for (const float value : own) largest = std::max(largest, std::abs(value));
      const float scale = 127.0f / (largest == 0 ? 127.0f : largest);
      round_to<int8_t>(own, scale, codes, meant);
      scales += bytes_of<float>({scale});
    }
    variable(name, {rows, static_cast<uint32_t>(k)}, 1, codes);
    variable(std::string(name) + "_scale", {rows}, version_ >= 4 ? 0 : 4, scales);
    return meant;
  }
  std::vector<float> int16(std::string_view name, uint32_t rows, const std::vector<float>& values) {
    std::string codes;
    std::vector<float> meant;
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    const float scale = 1024.0f / largest;
    round_to<int16_t>(values, scale, codes, meant);
    variable(name, {rows, static_cast<uint32_t>(values.size() / rows)}, 2, codes);
    number(std::string(name) + "_scale", scale);
    return meant;
  }
  void alias(std::string_view name, std::string_view variable) {
    name_to(aliases_, name);
    name_to(aliases_, variable);
    ++num_aliases_;
  }

  std::string bytes() const {
    std::string all;
    number_to<uint32_t>(all, version_);
    name_to(all, spec_);
    number_to<uint32_t>(all, 7);
    number_to<uint32_t>(all, num_variables_);
    all += variables_;
    number_to<uint32_t>(all, num_aliases_);
    return all + aliases_;
  }

  template <typename Number>
  static std::string bytes_of(const std::vector<Number>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)};
  }

 private:
  template <typename Number>
  static void number_to(std::string& out, Number value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void name_to(std::string& out, std::string_view name) {
    number_to<uint16_t>(out, static_cast<uint16_t>(name.size() + 1));
    out += name;
    out += '\0';
  }
  template <typename Code>
  static void round_to(std::span<const float> values, float scale, std::string& codes, std::vector<float>& meant) {
    for (const float value : values) {
      const auto code = static_cast<Code>(std::nearbyint(value * scale));
      codes.append(reinterpret_cast<const char*>(&code), sizeof code);
      meant.push_back(static_cast<float>(code) / scale);
    }
  }

  std::string spec_, variables_, aliases_;
  uint32_t version_, num_variables_ = 0, num_aliases_ = 0;
};

}  // namespace transept::testing
