// The names of roundings, there and back.
#include "tensor/input_quantization.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(InputQuantizationName, IsReadBack) {
  constexpr auto kInteger = InputQuantization::Type::kInteger, kFloat8 = InputQuantization::Type::kFloat8;
  const std::pair<const char*, InputQuantization> rows[] = {
      {"int8-token", {.type = kInteger}},
      {"int4-token-zeros", {.type = kInteger, .bits = 4, .is_symmetric = false}},
      {"int8-g128", {.type = kInteger, .group = 128}},
      {"float8-token", {.type = kFloat8}},
      {"float8-g64", {.type = kFloat8, .group = 64}},
      {"float8-tensor-0.1", {.type = kFloat8, .scale = 0.1f}},
      {"int8-tensor-1e-20", {.type = kInteger, .scale = 1e-20f}},
      {"int8-tensor-0.5-zero-3", {.type = kInteger, .is_symmetric = false, .scale = 0.5f, .zero = -3}},
      {"int8-tensor-0.5-zero0", {.type = kInteger, .is_symmetric = false, .scale = 0.5f}},
  };
  for (const auto& [name, inputs] : rows) {
    EXPECT_EQ(input_quantization_name(inputs), name);
    EXPECT_EQ(parse_input_quantization(name), inputs) << name;
  }
  EXPECT_EQ(input_quantization_name({}), "");
  for (const char* name :
       {"", "int8", "int1-token", "int9-token", "float8-token-zeros", "float8-tensor-", "float8-tensor-0",
        "float8-tensor--1", "int8-tensor-inf", "int8-tensor-nan", "int8-tensor-1-zero200", "int8-g0", "int8-g-1",
        "int8-token-zeros ", "int8-tensor-1-zeros", "float16-token", "float8-tensor-1-zero1"}) {
    EXPECT_EQ(parse_input_quantization(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace transept
