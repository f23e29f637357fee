// Proves that configs are read as their libraries mean them, that each number is checked, and that every name of a
// method is read or refused by the row of the table that has it.
#include "quantized/quantization_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "quantized/make_matrix_reader.h"
#include "quantized/quant_methods.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StatusOr<QuantizationConfig> parse(std::string_view text) {
  const StatusOr<Json> json = Json::parse(text);
  if (!json.ok()) return json.status();
  return parse_quantization(*json, "F");
}

std::string error_of(std::string_view text) {
  const auto parsed = parse(text);
  return parsed.ok() ? "ok" : error_message(parsed.status());
}

std::string group(std::string_view weights, std::string_view more = "", std::string_view format = "pack-quantized") {
  return str_cat(R"({"quant_method": "compressed-tensors", "format": ")", format, R"(", "config_groups": {"g": {)",
                 R"("targets": ["Linear"], "weights": {)", weights, "}", more, "}}}");
}

TEST(QuantizationConfig, EveryMethodIsReadOrRefusedByItsRow) {
  for (const NamedQuantMethod& known : quant_methods()) {
    if (known.method != QuantMethod::kRefused) {
      EXPECT_TRUE(feature_row(known.feature).others.find(known.name) != std::string_view::npos ||
                  known.feature == Feature::kQuantization);
      continue;
    }
    const auto config = parse(str_cat(R"({"quant_method": ")", known.name, R"("})"));
    ASSERT_TRUE(config.ok()) << known.name << config.status();
    ASSERT_EQ(config->formats.size(), 1u) << known.name;
    const FeatureRow& row = feature_row(config->formats[0].feature);
    EXPECT_FALSE(row.refusal.empty()) << known.name;
    EXPECT_THAT(row.others, HasSubstr(known.name));
    EXPECT_EQ(config->formats[0].where, str_cat("F: quant_method: ", known.name));
    EXPECT_EQ(make_matrix_reader(*config), nullptr) << known.name;
  }
  EXPECT_THAT(error_of(R"({"quant_method": "abc"})"),
              AllOf(HasSubstr("F: quant_method: \"abc\" is unknown"), HasSubstr("gptq")));
  EXPECT_THAT(error_of("{}"), HasSubstr("F: quant_method: is missing"));
  EXPECT_THAT(error_of(R"({"quant_method": 4})"), HasSubstr("F: quant_method: expected a string"));
}

Feature only_feature(std::string_view text) {
  const auto config = parse(text);
  EXPECT_TRUE(config.ok()) << text << config.status();
  if (!config.ok()) return Feature::kQuantization;
  EXPECT_EQ(config->formats.size(), 1u) << text;
  return config->formats.front().feature;
}

TEST(QuantizationConfig, FormatsOfAMethodHaveTheirRows) {
  const std::pair<std::string, Feature> rows[] = {
      {group(R"("num_bits": 4)"), Feature::kCompressedPacked},
      {group(R"("num_bits": 8)", "", "int-quantized"), Feature::kCompressedIntegers},
      {group(R"("num_bits": 8)", "", "naive-quantized"), Feature::kCompressedIntegers},
      {group(R"("num_bits": 8, "type": "float")", "", "naive-quantized"), Feature::kCompressedFloat8},
      {group(R"("num_bits": 8, "type": "float")", "", "float-quantized"), Feature::kCompressedFloat8},
      {group(R"("num_bits": 4, "type": "float")", "", "float-quantized"), Feature::kCompressedOthers},
      {group(R"("num_bits": 4, "type": "float")", "", "nvfp4-pack-quantized"), Feature::kCompressedOthers},
      {group(R"("num_bits": 4)", "", "marlin-24"), Feature::kCompressedOthers},
      {group(R"("num_bits": 4)", "", "sparse-24-bitmask"), Feature::kCompressedOthers},
      {group(R"("num_bits": 4)", "", "dense"), Feature::kCompressedOthers},
      {group(R"("num_bits": 4)", R"(, "format": "pack-quantized")", "mixed-precision"), Feature::kCompressedPacked},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", Feature::kBitsandbytes8},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", Feature::kBitsandbytes4},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128})", Feature::kGptq},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"})",
       Feature::kKernelLayouts},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "is_marlin_format": true})", Feature::kKernelLayouts},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "GEMM"})", Feature::kAwq},
      {R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 128})", Feature::kAwq},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"})", Feature::kKernelLayouts},
      {R"({"quant_method": "fp8"})", Feature::kFloat8},
      {R"({"quant_method": "modelopt", "quant_algo": "FP8"})", Feature::kFloat8},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", Feature::kMicroscaling},
      {R"({"quant_method": "quanto", "weights": "int8"})", Feature::kQuanto8},
      {R"({"quant_method": "quanto", "weights": "int4"})", Feature::kQuantoOthers},
      {R"({"quant_method": "quanto", "weights": "int8", "activations": "int8"})", Feature::kQuantoOthers},
  };
  for (const auto& [text, feature] : rows) {
    EXPECT_EQ(static_cast<int>(only_feature(text)), static_cast<int>(feature)) << text;
  }
}

TEST(QuantizationConfig, NumbersAreChecked) {
  const std::pair<std::string, const char*> rows[] = {
      {group(R"("num_bits": 1)"), "F: config_groups.g.weights: num_bits: 1 is not read as pack-quantized"},
      {group(R"("num_bits": 16)"), "num_bits: 16 is not read"},
      {group(R"("num_bits": 1e99)"), "num_bits: expected a whole number"},
      {group(R"("num_bits": 16)", "", "int-quantized"), "num_bits: 16 is not read as int-quantized"},
      {group(R"("num_bits": 4, "type": "odd")"), "type: expected int or float"},
      {group(R"("strategy": "group")"), "group_size: is missing, or 0"},
      {group(R"("strategy": "group", "group_size": -2)"), "group_size: expected"},
      {group(R"("strategy": "block", "block_structure": [8, 8])"), "strategy: \"block\" is not read as pack-quantized"},
      {group(R"("strategy": "tensor_group", "group_size": 16)"), "strategy"},
      {group(R"("type": "float", "strategy": "block", "block_structure": [0, 8])", "", "float-quantized"),
       "block_structure: expected two sizes"},
      {group(R"("symmetric": 3)"), "symmetric: expected true or false"},
      {R"({"quant_method": "compressed-tensors"})", "F: config_groups: is missing"},
      {R"({"quant_method": "compressed-tensors", "config_groups": []})", "config_groups: expected an object"},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"W4A16": ["Linear"]}})",
       "config_groups.W4A16: expected"},
      {R"({"quant_method": "compressed-tensors", "config_groups": {}, "ignore": "lm_head"})",
       "ignore: expected a list"},
      {R"x({"quant_method": "compressed-tensors", "config_groups": {}, "ignore": ["re:(?!a)"]})x",
       "ignore: \"re:(?!a)\""},
      {R"({"quant_method": "compressed-tensors", "config_groups": {}, "ignore": [4]})", "ignore: expected names"},
      {R"({"quant_method": "gptq", "bits": 1, "group_size": 32})", "F: bits: expected 2, 3, 4 or 8, got 1"},
      {R"({"quant_method": "gptq", "bits": 7, "group_size": 32})", "bits: expected 2, 3, 4 or 8, got 7"},
      {R"({"quant_method": "gptq", "bits": 16, "group_size": 32})", "bits: expected 2, 3, 4 or 8, got 16"},
      {R"({"quant_method": "gptq", "group_size": 32})", "bits: is missing"},
      {R"({"quant_method": "gptq", "bits": 4})", "group_size: is missing"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 0})", "group_size: expected -1"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 99999999999})", "group_size: expected"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "pack_dtype": "int16"})", "pack_dtype: expected int32"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "dynamic": {"+:x": {"bits": 8}}})", "dynamic: \"+:x\""},
      {R"({"quant_method": "awq", "bits": 8, "group_size": 32})", "bits: expected 4, got 8"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": false})", "zero_point"},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true, "load_in_4bit": true})", "load_in_8bit"},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "fmt: expected e4m3"},
      {R"({"quant_method": "fp8", "weight_block_size": [128]})", "weight_block_size: expected two sizes"},
      {R"({"quant_method": "fp8", "weight_block_size": [128, -1]})", "weight_block_size: expected two sizes"},
      {R"({"quant_method": "quanto", "weights": "int7"})", "unknown type \"int7\""},
  };
  for (const auto& [text, reason] : rows) EXPECT_THAT(error_of(text), HasSubstr(reason)) << text;
}

TEST(QuantizationConfig, RoundedInputsAreToldByField) {
  const auto with = [](std::string_view more) { return parse(group(R"("num_bits": 8)", more, "int-quantized")); };
  EXPECT_EQ(with("")->rounds_inputs, "");
  constexpr auto kInteger = InputQuantization::Type::kInteger, kFloat8 = InputQuantization::Type::kFloat8;
  const struct {
    const char* inputs;
    InputQuantization wanted;
    bool is_static;
  } rows[] = {
      {R"("num_bits": 8, "dynamic": true, "strategy": "token")", {.type = kInteger}, false},
      {R"("num_bits": 4, "dynamic": true, "strategy": "token", "symmetric": false)",
       {.type = kInteger, .bits = 4, .is_symmetric = false},
       false},
      {R"("type": "float", "dynamic": true, "strategy": "token")", {.type = kFloat8}, false},
      {R"("type": "float", "dynamic": true, "strategy": "group", "group_size": 128)",
       {.type = kFloat8, .group = 128},
       false},
      {R"("dynamic": true, "group_size": 32)", {.type = kInteger, .group = 32}, false},
      {R"("type": "float", "dynamic": false, "strategy": "tensor")", {.type = kFloat8}, true},
      {R"("num_bits": 8)", {.type = kInteger}, true},
  };
  for (const auto& [inputs, wanted, is_static] : rows) {
    const auto config = with(str_cat(R"(, "input_activations": {)", inputs, "}"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->rounds_inputs, "config_groups.g.input_activations");
    EXPECT_EQ(config->unread_inputs, "") << inputs;
    const CompressedGroup& of = std::get<CompressedConfig>(config->settings).groups.front();
    EXPECT_EQ(of.inputs, wanted) << inputs;
    EXPECT_EQ(of.has_input_scale, is_static) << inputs;
  }
  const std::pair<const char*, const char*> unread[] = {
      {R"("dynamic": true)", "strategy: tensor, of a whole batch at once"},
      {R"("dynamic": true, "strategy": "tensor_group", "group_size": 16)", "strategy: tensor_group, dynamic"},
      {R"("dynamic": "local", "strategy": "tensor_group", "group_size": 16)", "dynamic: \"local\""},
      {R"("dynamic": false, "strategy": "token")", "strategy: token, static"},
      {R"("type": "float", "num_bits": 4, "dynamic": true, "strategy": "token")", "num_bits: 4 of type float"},
      {R"("num_bits": 16, "dynamic": true, "strategy": "token")", "num_bits: 16 of type int"},
      {R"("type": "float", "symmetric": false)", "symmetric: false of type float"},
      {R"("dynamic": true, "strategy": "token", "scale_dtype": "torch.float8_e4m3fn")", "scale_dtype"},
  };
  for (const auto& [inputs, reason] : unread) {
    const auto config = with(str_cat(R"(, "input_activations": {)", inputs, "}"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_THAT(config->unread_inputs, HasSubstr(str_cat("config_groups.g.input_activations.", reason))) << inputs;
  }
  EXPECT_THAT(with(R"(, "output_activations": {"num_bits": 8})")->unread_inputs, HasSubstr("output_activations"));
  EXPECT_THAT(error_message(with(R"(, "input_activations": 8)").status()), HasSubstr("input_activations: expected an"));
  EXPECT_THAT(error_message(with(R"(, "input_activations": {"type": "x"})").status()), HasSubstr("type: expected int"));
}

TEST(CompressedConfig, GroupsAreFoundByNameThenPatternThenClass) {
  const auto config = parse(
      R"({"quant_method": "compressed-tensors", "format": "mixed-precision", "ignore": ["lm_head", "re:.*\\.fc2$"],
    "config_groups": {
      "classes": {"targets": ["Linear"], "format": "pack-quantized", "weights": {"num_bits": 4}},
      "tables": {"targets": ["Embedding"], "format": "int-quantized", "weights": {"num_bits": 8}},
      "patterns": {"targets": ["re:.*attn.*"], "format": "pack-quantized", "weights": {"num_bits": 8}},
      "names": {"targets": ["m.attn.q"], "format": "int-quantized", "weights": {"num_bits": 8}}}})");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto& compressed = std::get<CompressedConfig>(config->settings);
  const auto group_of = [&](std::string_view module) { return compressed.group_of(module)->name; };
  EXPECT_EQ(group_of("m.fc1"), "classes");
  EXPECT_EQ(group_of("m.attn.k"), "patterns");
  EXPECT_EQ(group_of("m.attn.q"), "names");
  EXPECT_EQ(group_of("m.shared"), "tables");
  EXPECT_TRUE(compressed.ignores("lm_head"));
  EXPECT_TRUE(compressed.ignores("a.fc2"));
  EXPECT_FALSE(compressed.ignores("a.fc2.x"));
}

class Folder : public ::testing::Test {
 protected:
  StatusOr<std::optional<QuantizationConfig>> read(std::string_view own) {
    ModelConfig model;
    model.path = dir_.path();
    model.raw = std::move(Json::parse(own)).value();
    return read_quantization(model);
  }
  testing::TestFolder dir_;
};

TEST_F(Folder, WithoutAWordIsNotQuantised) {
  for (const char* own : {"{}", R"({"quantization_config": null})", R"({"quantization_config": false})"}) {
    const auto config = read(own);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_FALSE(config->has_value());
  }
  EXPECT_THAT(error_message(read(R"({"quantization_config": "gptq"})").status()),
              HasSubstr("/config.json: quantization_config: expected an object, got a string"));
}

TEST_F(Folder, FilesBesideConfigAreReadAndMustAgree) {
  dir_.write("quantize_config.json", R"({"bits": 4, "group_size": 32, "desc_act": true})");
  const auto alone = read("{}");
  ASSERT_TRUE(alone.ok() && alone->has_value()) << alone.status();
  EXPECT_EQ(std::get<GptqConfig>((*alone)->settings), (GptqConfig{4, 32, false, true}));
  const char* same =
      R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true}})";
  EXPECT_TRUE(read(same).ok());
  const std::pair<const char*, const char*> rows[] = {
      {R"({"quant_method": "gptq", "bits": 8, "group_size": 32, "desc_act": true})", "bits"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": true})", "group_size"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32})", "desc_act"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true, "checkpoint_format": "gptq_v2"})",
       "checkpoint_format"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 32})", "quant_method"},
  };
  for (const auto& [own, field] : rows) {
    EXPECT_THAT(error_message(read(str_cat(R"({"quantization_config": )", own, "}")).status()),
                HasSubstr(str_cat("/quantize_config.json: ", field, ": contradicts ", dir_.path(), "/config.json")));
  }
  dir_.write("quantize_config.json", "[]");
  EXPECT_THAT(error_message(read("{}").status()), HasSubstr("quantize_config.json"));
}

TEST_F(Folder, QuantoOfFloatsIsNoRefusal) {
  const auto config = read(R"({"quantization_config": {"quant_method": "quanto", "weights": "none"}})");
  ASSERT_TRUE(config.ok() && config->has_value()) << config.status();
  EXPECT_TRUE((*config)->formats.empty());
  EXPECT_EQ((*config)->name, "quanto");
  EXPECT_NE(make_matrix_reader(**config), nullptr);
}

TEST_F(Folder, AMapOfQuanto) {
  dir_.write("quanto_qmap.json", R"({"a.q": {"weights": "qint8", "activations": "none"}, "a.k": {"weights": "none"}})");
  const auto config = read("{}");
  ASSERT_TRUE(config.ok() && config->has_value()) << config.status();
  ASSERT_EQ((*config)->formats.size(), 1u);
  EXPECT_EQ((*config)->formats[0].feature, Feature::kQuanto8);
  EXPECT_FALSE(read(R"({"quantization_config": {"quant_method": "quanto", "weights": "none"}})").ok());
  EXPECT_FALSE(read(R"({"quantization_config": {"quant_method": "quanto", "weights": "int4"}})").ok());
  dir_.write("quanto_qmap.json", R"({"a.q": {"weights": "qint4"}})");
  const auto small = read("{}");
  ASSERT_TRUE(small.ok() && small->has_value()) << small.status();
  EXPECT_EQ((*small)->formats[0].feature, Feature::kQuantoOthers);
  EXPECT_THAT((*small)->formats[0].where, HasSubstr("a.q: weights: qint4"));
}

}  // namespace
}  // namespace transept
