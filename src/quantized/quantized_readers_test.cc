// Proves that every format means exactly the numbers that its definition says, by rows and by parts, whichever use it
// was asked for with; that every stored tensor matters; and that files that do not add up are refused by tensor and
// reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/folder_testing.h"
#include "base/json.h"
#include "quantized/make_matrix_reader.h"
#include "quantized/quant_files_testing.h"
#include "quantized/scaled_float8.h"
#include "weights/weight_map.h"

namespace transept {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;
using testing::quant_examples;
using testing::QuantFile;
using testing::QuantWriter;
using testing::TestTensor;

constexpr char kName[] = "a.b.weight";

class Opened {
 public:
  explicit Opened(const QuantFile& file, WeightUse use = WeightUse::kPacked) : k_(file.k) {
    folder_.write("model.safetensors", testing::safetensors_bytes(file.tensors));
    map_ = std::move(WeightMap::open(folder_.path())).value();
    const StatusOr<Json> json = Json::parse(file.config);
    status_ = json.status();
    if (!json.ok()) return;
    const StatusOr<QuantizationConfig> config = parse_quantization(*json, "config.json: quantization_config");
    status_ = config.status();
    if (!config.ok()) return;
    map_->set_matrix_reader(make_matrix_reader(*config));
    has_ = map_->contains(kName) && map_->is_quantized(kName);
    auto source = map_->matrix(kName, {file.n, file.k}, use);
    status_ = source.status();
    if (source.ok()) source_ = std::move(source).value();
  }

  bool has() const { return has_; }
  const Status& status() const { return status_; }
  StatusOr<InputQuantization> inputs() { return map_->inputs_of(kName, k_); }
  WeightMap& map() { return *map_; }
  const MatrixSource& source() const { return *source_; }
  std::vector<float> weights() const {
    std::vector<float> all(static_cast<size_t>(source_->n() * source_->k()));
    source_->read_rows(0, source_->n(), {0, source_->k()}, all);
    return all;
  }

 private:
  int64_t k_;
  testing::TestFolder folder_;
  std::unique_ptr<WeightMap> map_;
  Status status_;
  bool has_ = false;
  std::unique_ptr<MatrixSource> source_;
};

TEST(QuantizedReaders, MeanWhatTheDefinitionSays) {
  for (const QuantFile& file : quant_examples()) {
    for (const WeightUse use : {WeightUse::kPacked, WeightUse::kRead}) {
      Opened opened(file, use);
      ASSERT_TRUE(opened.status().ok()) << file.name << opened.status();
      EXPECT_TRUE(opened.has()) << file.name;
      EXPECT_EQ(opened.weights(), file.weights) << file.name;
      ignore_scales_of_activations(opened.map());
      EXPECT_TRUE(opened.map().unread().empty()) << file.name << opened.map().unread().front();
    }
  }
}

TEST(QuantizedReaders, PartsOfRowsAreThoseOfTheWhole) {
  for (const QuantFile& file : quant_examples()) {
    const Opened opened(file);
    ASSERT_TRUE(opened.status().ok()) << file.name << opened.status();
    for (const IndexRange columns : {IndexRange{0, 1}, IndexRange{3, file.k}, IndexRange{file.k / 2, file.k / 2 + 2}}) {
      std::vector<float> part(static_cast<size_t>(2 * columns.size()));
      opened.source().read_rows(file.n - 2, 2, columns, part);
      for (int64_t i = 0; i < std::ssize(part); ++i) {
        const int64_t row = file.n - 2 + i / columns.size(), column = columns.begin + i % columns.size();
        ASSERT_EQ(part[static_cast<size_t>(i)], file.weights[static_cast<size_t>(row * file.k + column)]) << file.name;
      }
    }
    // Released rows are read again from the file.
    opened.source().release_rows(0, file.n);
    EXPECT_EQ(opened.weights(), file.weights) << file.name;
  }
}

TEST(QuantizedReaders, CodesStayCodes) {
  for (const QuantFile& file : quant_examples()) {
    const Opened opened(file);
    ASSERT_TRUE(opened.status().ok()) << file.name << opened.status();
    // Of tables, those whose rows are whole blocks.
    const bool is_bnb4 = file.name.starts_with("bitsandbytes nf4") || file.name.starts_with("bitsandbytes fp4");
    const bool is_table = is_bnb4 && file.k % 64 != 0;
    const bool is_float =
        file.name.find("fp8") != std::string::npos || file.name == "fbgemm" || file.name == "modelopt";
    EXPECT_EQ(opened.source().coded() != nullptr, !is_table && !is_float) << file.name;
    if (is_bnb4) {
      EXPECT_EQ(opened.source().format(), is_table ? kFloat4Format : float4_format(static_cast<int32_t>(file.k / 2)));
    }
  }
}

// Whether a change is refused, or moves the numbers.
bool tells(const QuantFile& file, const std::vector<float>& before) {
  const Opened opened(file);
  return !opened.status().ok() || opened.weights() != before;
}

TEST(QuantizedReaders, EveryTensorMatters) {
  for (const QuantFile& file : quant_examples()) {
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      if (file.tensors[i].name.ends_with("input_scale")) continue;
      QuantFile changed = file;
      std::string& bytes = changed.tensors[i].data;
      const bool is_float =
          file.tensors[i].dtype == "F32" || file.tensors[i].dtype == "F16" || file.tensors[i].dtype == "BF16";
      // The sign of every number; else the lowest bit of every byte. What is at odds with itself is refused.
      const size_t width = file.tensors[i].dtype == "F32" ? 4 : 2;
      for (size_t at = 0; at < bytes.size(); ++at) {
        if (!is_float) bytes[at] = static_cast<char>(bytes[at] ^ 1);
        if (is_float && at % width == width - 1) bytes[at] = static_cast<char>(bytes[at] ^ 0x80);
      }
      EXPECT_TRUE(tells(changed, file.weights)) << file.name << ": " << file.tensors[i].name;
    }
  }
}

TEST(QuantizedReaders, AnOrderOfNoneIsTheFilesOwn) {
  QuantFile file = QuantWriter(7).packed(12, 64, 4, 16, false, false, "F32");
  file.tensors.push_back({"a.b.weight_g_idx", "I32", {64}, bytes_of(std::vector<int32_t>(64, -1))});
  const Opened opened(file);
  ASSERT_TRUE(opened.status().ok()) << opened.status();
  EXPECT_EQ(opened.weights(), file.weights);
}

TEST(QuantizedReaders, Float8IsThatOfTheSpecification) {
  for (int code = 0; code < 256; ++code) {
    const float value = float8_e4m3_to_float(static_cast<uint8_t>(code));
    if ((code & 127) == 127) {
      EXPECT_NE(value, value);
    } else {
      EXPECT_EQ(value, QuantWriter::float8(code)) << code;
    }
  }
  EXPECT_EQ(float8_e4m3_to_float(0x7E), 448.0f);
}

TEST(QuantizedReaders, WhatIsNotQuantisedStaysATensor) {
  QuantFile file = QuantWriter(1).packed(12, 48, 4, 16, false, false, "F32");
  file.tensors = {{kName, "F32", {12, 48}, bytes_of(file.weights)}};
  const Opened opened(file);
  ASSERT_TRUE(opened.status().ok()) << opened.status();
  EXPECT_FALSE(opened.has());
  EXPECT_EQ(opened.weights(), file.weights);
}

// Replaces a tensor's type, shape and bytes.
template <typename T>
void set(QuantFile& file, std::string_view name, std::string dtype, std::vector<int64_t> shape,
         const std::vector<T>& values) {
  TestTensor& tensor = file.tensor(name);
  tensor = {tensor.name, std::move(dtype), std::move(shape), bytes_of(values)};
}

void expect_refused(const QuantFile& file, std::string_view tensor, std::string_view reason) {
  const Status status = Opened(file).status();
  ASSERT_FALSE(status.ok()) << file.name << ", expected: " << reason;
  EXPECT_THAT(error_message(status), HasSubstr(tensor)) << file.name;
  EXPECT_THAT(error_message(status), HasSubstr(reason)) << file.name;
}

TEST(BadQuantisedFiles, ScalesAreFiniteNumbersOfTheirShape) {
  for (const QuantFile& good : quant_examples()) {
    for (const TestTensor& tensor : good.tensors) {
      if (tensor.dtype != "F32" || tensor.name.ends_with("input_scale")) continue;
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        QuantFile file = good;
        std::memcpy(file.tensor(tensor.name).data.data() + tensor.data.size() - sizeof bad, &bad, sizeof bad);
        expect_refused(file, tensor.name, "is not finite");
      }
      QuantFile shaped = good;
      set(shaped, tensor.name, "F32", {3, 7}, std::vector<float>(21, 1.0f));
      expect_refused(shaped, tensor.name, "shape [3, 7]");
      QuantFile typed = good;
      set(typed, tensor.name, "F64", {1}, std::vector<double>(1, 1.0));
      expect_refused(typed, tensor.name, "dtype F64");
    }
  }
}

TEST(BadQuantisedFiles, EveryTensorIsNeededInItsType) {
  for (const QuantFile& good : quant_examples()) {
    for (const TestTensor& tensor : good.tensors) {
      const bool is_optional = tensor.name.ends_with("input_scale") || tensor.name.ends_with("weight_format") ||
                               tensor.name.ends_with("g_idx");
      if (is_optional) continue;
      QuantFile without = good;
      std::erase_if(without.tensors, [&](const TestTensor& one) { return one.name == tensor.name; });
      EXPECT_FALSE(Opened(without).status().ok()) << good.name << ": " << tensor.name;
      QuantFile other = good;
      set(other, tensor.name, "I16", {2, 3}, std::vector<int16_t>(6, 0));
      EXPECT_FALSE(Opened(other).status().ok()) << good.name << ": " << tensor.name;
    }
  }
}

TEST(BadQuantisedFiles, GroupsOfInputs) {
  const QuantFile gptq = QuantWriter(3).gptq(32, 64, 4, 16, true, true);
  const QuantFile packed = QuantWriter(3).packed(12, 64, 4, 16, false, true, "F32");
  for (const auto& [good, name] : {std::pair(gptq, "a.b.g_idx"), std::pair(packed, "a.b.weight_g_idx")}) {
    for (const int32_t bad : {-1, -7, 4, 1 << 30, std::numeric_limits<int32_t>::min()}) {
      QuantFile file = good;
      std::vector<int32_t> order(64, 0);
      order[5] = bad;
      set(file, name, "I32", {64}, order);
      expect_refused(file, name, str_cat("element 5 is group ", bad, ", expected 0 to 3"));
    }
    for (const int64_t length : {int64_t{0}, int64_t{63}, int64_t{65}}) {
      QuantFile file = good;
      set(file, name, "I32", {length}, std::vector<int32_t>(static_cast<size_t>(length), 0));
      expect_refused(file, name, str_cat("shape [", length, "], expected [64]"));
    }
  }
  QuantFile without = gptq;
  std::erase_if(without.tensors, [](const TestTensor& one) { return one.name == "a.b.g_idx"; });
  expect_refused(without, "a.b.g_idx", "is missing");
}

TEST(BadQuantisedFiles, GroupsDivideTheInputs) {
  QuantFile gptq = QuantWriter(3).gptq(32, 64, 4, 16, true, false);
  gptq.config = R"({"quant_method": "gptq", "bits": 4, "group_size": 24})";
  expect_refused(gptq, "a.b.qweight", "groups of 24 do not divide its 64 inputs");
  QuantFile awq = QuantWriter(3).awq(24, 48, 16);
  awq.config = R"({"quant_method": "awq", "bits": 4, "group_size": 32})";
  expect_refused(awq, "a.b.qweight", "groups of 32 do not divide its 48 inputs");
  QuantFile packed = QuantWriter(3).packed(12, 48, 4, 16, false, false, "F32");
  packed.config =
      QuantWriter::compressed_config("pack-quantized", R"("num_bits": 4, "strategy": "group", "group_size": 20)");
  expect_refused(packed, "a.b.weight_packed", "groups of 20 do not divide its 48 inputs");
  // One number for each of 8,192 groups.
  QuantFile many = QuantWriter(3).packed(1, 8192, 4, 1, false, false, "F32");
  expect_refused(many, "a.b.weight_packed", "8192 groups are over the 4096 allowed");
}

TEST(BadQuantisedFiles, ConfigAndFileThatDisagree) {
  QuantFile packed = QuantWriter(3).packed(12, 48, 4, 16, false, false, "F32");
  const QuantFile good = packed;
  packed.config =
      QuantWriter::compressed_config("pack-quantized", R"("num_bits": 8, "strategy": "group", "group_size": 16)");
  expect_refused(packed, "a.b.weight_packed", "shape [12, 6], expected [12, 12]");
  packed.config = QuantWriter::compressed_config("int-quantized", R"("num_bits": 8, "strategy": "channel")");
  expect_refused(packed, "a.b.weight", "is missing");
  packed = good;
  packed.config.replace(packed.config.find("lm_head"), 7, "re:a\\\\.b$");
  expect_refused(packed, "a.b.weight_packed", "ignore names its module");
  packed = good;
  packed.config.replace(packed.config.find("Linear"), 6, "re:c.*");
  expect_refused(packed, "a.b.weight_packed", "config_groups targets it");
  packed = good;
  set(packed, "a.b.weight_shape", "I64", {2}, std::vector<int64_t>{12, 47});
  expect_refused(packed, "a.b.weight_shape", "says [12, 47], expected [12, 48]");
  packed = good;
  packed.tensors.push_back({"a.b.weight_zero_point", "I32", {2, 3}, bytes_of(std::vector<int32_t>(6, 0))});
  expect_refused(packed, "a.b.weight_zero_point", "symmetric");
  QuantFile gptq = QuantWriter(3).gptq(32, 64, 4, 16, true, false);
  gptq.config = R"({"quant_method": "gptq", "bits": 8, "group_size": 16})";
  expect_refused(gptq, "a.b.qweight", "shape [8, 32], expected [16, 32]");
  QuantFile bnb = QuantWriter(3).bitsandbytes8(12, 40);
  set(bnb, "a.b.weight_format", "U8", {}, std::vector<uint8_t>{3});
  expect_refused(bnb, "a.b.weight_format", "kernel for GPUs");
}

TEST(BadQuantisedFiles, CodesAndZerosBeyondTheirBits) {
  QuantFile file = QuantWriter(3).integers(12, 40, 0, false, true);
  file.config =
      QuantWriter::compressed_config("int-quantized", R"("num_bits": 4, "symmetric": false, "strategy": "channel")");
  expect_refused(file, "a.b.weight_zero_point", "of more than 4 bits");
  set(file, "a.b.weight_zero_point", "I8", {12, 1}, std::vector<int8_t>(12, 7));
  expect_refused(file, "a.b.weight", "has more than 4 bits");
}

TEST(BadQuantisedFiles, StatesOf4BitMatrices) {
  const QuantFile good = QuantWriter(3).bitsandbytes4(12, 40, 32, true, "nf4");
  const char* name = "a.b.weight.quant_state.bitsandbytes__nf4";
  const std::pair<const char*, const char*> rows[] = {
      {"", "JSON"},
      {"[]", "expected an object"},
      {"{}", "blocksize: is missing"},
      {R"({"blocksize": 0, "shape": [12, 40]})", "blocksize: expected a whole number from 1"},
      {R"({"blocksize": -64, "shape": [12, 40]})", "blocksize: expected"},
      {R"({"blocksize": 32, "shape": [12, 41]})", "shape: expected [12, 40]"},
      {R"({"blocksize": 32})", "shape: expected [12, 40]"},
      {R"({"blocksize": 64, "shape": [12, 40]})", "absmax"},
      {R"({"blocksize": 32, "nested_blocksize": 0, "shape": [12, 40]})", "nested_blocksize: expected"},
      {R"({"blocksize": 32, "nested_blocksize": 4, "nested_offset": "x", "shape": [12, 40]})",
       "nested_offset: expected"},
  };
  for (const auto& [state, reason] : rows) {
    QuantFile file = good;
    const std::string text = state;
    set(file, name, "U8", {static_cast<int64_t>(text.size())}, std::vector<char>(text.begin(), text.end()));
    expect_refused(file, "a.b.weight", reason);
  }
}

// W8A8 with this in its config_groups.*.input_activations.
QuantFile rounding(std::string_view inputs) {
  QuantFile file = QuantWriter(3).integers(12, 40, 0, false, false);
  file.config.insert(file.config.find(R"("targets")"), str_cat(R"("input_activations": {)", inputs, "}, "));
  return file;
}

TEST(RoundedInputs, AreWhatConfigAndTensorsSay) {
  constexpr auto kInteger = InputQuantization::Type::kInteger;
  QuantFile file = rounding(R"("dynamic": true, "strategy": "token")");
  EXPECT_EQ(*Opened(file).inputs(), (InputQuantization{.type = kInteger}));
  file = rounding(R"("dynamic": true, "strategy": "group", "group_size": 20)");
  EXPECT_EQ(*Opened(file).inputs(), (InputQuantization{.type = kInteger, .group = 20}));
  file = rounding(R"("num_bits": 4, "symmetric": false)");
  file.tensors.push_back({"a.b.input_scale", "BF16", {1}, bytes_of(std::vector<uint16_t>{0x3E00})});  // 1/8
  file.tensors.push_back({"a.b.input_zero_point", "I8", {1}, bytes_of(std::vector<int8_t>{-8})});
  Opened opened(file);
  EXPECT_EQ(*opened.inputs(),
            (InputQuantization{.type = kInteger, .bits = 4, .is_symmetric = false, .scale = 0.125f, .zero = -8}));
  EXPECT_TRUE(opened.map().unread().empty());
  opened.map().set_rounds_inputs(false);
  EXPECT_EQ(*opened.inputs(), InputQuantization());
}

TEST(RoundedInputs, OfFilesThatDoNotAddUpAreRefused) {
  const auto refusal = [](const QuantFile& file) { return error_message(Opened(file).inputs().status()); };
  EXPECT_THAT(refusal(rounding(R"("dynamic": true, "strategy": "group", "group_size": 32)")),
              HasSubstr("\"a.b.weight\": groups of 32 inputs do not divide its 40"));
  QuantFile file = rounding(R"("num_bits": 4, "symmetric": false)");
  EXPECT_THAT(refusal(file), HasSubstr("\"a.b.input_scale\" is missing"));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  file.tensors.push_back({"a.b.input_scale", "F32", {1}, bytes_of(std::vector<float>{1})});
  for (const float bad : {0.0f, -1.0f, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    set(file, "a.b.input_scale", "F32", {1}, std::vector<float>{bad});
    EXPECT_THAT(refusal(file), HasSubstr(std::isfinite(bad) ? "input_scale\": is not above 0" : "is not finite"));
  }
  set(file, "a.b.input_scale", "F32", {2}, std::vector<float>{1, 1});
  EXPECT_THAT(refusal(file), HasSubstr("input_scale\": shape [2]"));
  set(file, "a.b.input_scale", "F32", {}, std::vector<float>{1});
  EXPECT_THAT(refusal(file), HasSubstr("\"a.b.input_zero_point\": is missing, or no I8"));
  file.tensors.push_back({"a.b.input_zero_point", "I32", {1}, bytes_of(std::vector<int32_t>{0})});
  EXPECT_THAT(refusal(file), HasSubstr("is missing, or no I8"));
  set(file, "a.b.input_zero_point", "I8", {2}, std::vector<int8_t>{0, 0});
  EXPECT_THAT(refusal(file), HasSubstr("\"a.b.input_zero_point\""));
  for (const int8_t bad : {int8_t{8}, int8_t{-9}, int8_t{127}, int8_t{-128}}) {
    set(file, "a.b.input_zero_point", "I8", {1}, std::vector<int8_t>{bad});
    EXPECT_THAT(refusal(file), HasSubstr("input_zero_point\": has more than 4 bits"));
  }
}

}  // namespace
}  // namespace transept
