// Proves that a model whose matrices are quantised answers as the same model whose files have the numbers that the
// codes mean: to the bit, where some matrices of a fused product are quantised and others are not, after packing, too;
// and that what would change answers silently is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/input_file.h"
#include "quantized/quant_files_testing.h"
#include "startup/pack_model_testing.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using testing::Answers;
using ::testing::HasSubstr;
using testing::QuantFile;
using testing::QuantWriter;
using testing::TestFolder;
using testing::TestTensor;
using testing::TinyBart;

class Quantized : public testing::TinyModelTest {
 protected:
  // TinyBart with the matrices of `modules` in a format, and the same in numbers.
  struct Models {
    TestFolder codes, numbers;
  };
  using Write = std::function<QuantFile(QuantWriter&, int64_t n, int64_t k)>;

  static TinyBart model() { return {.d_model = 64, .heads = 2, .ffn = 96}; }

  static void write(const Models& models, const std::vector<std::string>& endings, const Write& make) {
    std::vector<TestTensor> codes, numbers;
    std::string config;
    for (const TestTensor& tensor : model().tensors()) {
      const bool is_wanted = std::ranges::any_of(
          endings, [&](const std::string& ending) { return tensor.name.ends_with(ending + ".weight"); });
      if (!is_wanted) {
        codes.push_back(tensor);
        numbers.push_back(tensor);
        continue;
      }
      QuantWriter writer(static_cast<uint32_t>(codes.size()) + 1, tensor.name.substr(0, tensor.name.rfind('.')));
      QuantFile file = make(writer, tensor.shape[0], tensor.shape[1]);
      for (TestTensor& part : file.tensors) codes.push_back(std::move(part));
      numbers.push_back({tensor.name, "F32", tensor.shape, testing::bytes_of(file.weights)});
      config = file.config;
    }
    std::string own = model().config();
    models.numbers.write("config.json", own);
    own.pop_back();
    models.codes.write("config.json", str_cat(own, R"(, "quantization_config": )", config, "}"));
    models.codes.write("model.safetensors", testing::safetensors_bytes(codes));
    models.numbers.write("model.safetensors", testing::safetensors_bytes(numbers));
  }

  EngineConfig of(const std::string& folder, std::string quantization = "none") const {
    EngineConfig one = config();
    one.model = folder;
    one.quantization = std::move(quantization);
    one.quantization_given = true;
    return one;
  }

  Answers answers(const EngineConfig& config) {
    LoadedModel loaded = load(config);
    return run(*loaded.engine, requests());
  }

  std::string refusal(const EngineConfig& config) {
    const auto loaded = load_engine(config, clock_);
    return loaded.ok() ? "loaded" : error_message(loaded.status());
  }
};

const std::vector<std::string> kAll = {"q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"};

TEST_F(Quantized, AnswersAreThoseOfTheNumbers) {
  const std::map<std::string, Write> formats = {
      {"packed", [](QuantWriter& w, int64_t n, int64_t k) { return w.packed(n, k, 4, 32, true, true, "BF16"); }},
      {"integers", [](QuantWriter& w, int64_t n, int64_t k) { return w.integers(n, k, 0, false, false); }},
      {"gptq", [](QuantWriter& w, int64_t n, int64_t k) { return w.gptq(n, k, 4, 32, true, true); }},
      {"awq", [](QuantWriter& w, int64_t n, int64_t k) { return w.awq(n, k, 32); }},
      {"nf4", [](QuantWriter& w, int64_t n, int64_t k) { return w.bitsandbytes4(n, k, 64, true, "nf4"); }},
      {"quanto", [](QuantWriter& w, int64_t n, int64_t k) { return w.quanto(n, k); }},
  };
  for (const auto& [name, make] : formats) {
    // Of the fused [Q K V] and [K V] one is quantised, and the others are not.
    for (const auto& endings : {kAll, std::vector<std::string>{"k_proj", "fc1"}}) {
      const Models models;
      write(models, endings, make);
      const Answers expected = answers(of(models.numbers.path()));
      EXPECT_EQ(answers(of(models.codes.path())), expected) << name;
      const TestFolder packed;
      const std::string out = packed.path() + "/packed";
      const auto result = testing::pack(of(models.codes.path()), out);
      ASSERT_TRUE(result.ok()) << name << result.status();
      EXPECT_EQ(answers(of(out)), expected) << name << ", packed";
    }
  }
}

TEST_F(Quantized, AutoKeepsTheNumbers) {
  const Models models;
  write(models, kAll, [](QuantWriter& w, int64_t n, int64_t k) { return w.gptq(n, k, 4, 32, true, false); });
  EngineConfig automatic = of(models.codes.path(), "auto");
  automatic.kv_cache_dtype = "float32";
  EXPECT_EQ(answers(automatic), answers(of(models.numbers.path())));
  const LoadedModel loaded = load(automatic);
  EXPECT_THAT(::testing::PrintToString(loaded.info.report), HasSubstr("weights: int4-g32-zeros "));
  EXPECT_THAT(::testing::PrintToString(loaded.info.report), Not(HasSubstr("widened")));
}

TEST_F(Quantized, ATypeThatIsAskedForAppliesToWhatIsNotQuantised) {
  const Models models;
  // All matrices but the tables: the output layer is tied to one.
  write(models, kAll, [](QuantWriter& w, int64_t n, int64_t k) { return w.gptq(n, k, 4, 32, true, false); });
  for (const char* dtype : {"bfloat16", "float16"}) {
    EngineConfig config = of(models.codes.path());
    config.dtype = dtype;
    const LoadedModel loaded = load(config);
    EXPECT_THAT(loaded.info.report,
                Contains(AllOf(HasSubstr("weights: int4-g32-zeros "), HasSubstr(str_cat(" matrices, ", dtype, " ")),
                               HasSubstr(" in 1 matrix"), Not(HasSubstr("float32 ")))));
  }
}

// A matrix of int8 codes whose inputs are rounded so.
QuantFile rounding(QuantWriter& writer, int64_t n, int64_t k, std::string_view inputs) {
  QuantFile file = writer.integers(n, k, 0, false, false);
  file.config.insert(file.config.find(R"("targets")"), str_cat(R"("input_activations": {)", inputs, "}, "));
  return file;
}
constexpr std::string_view kByToken = R"("num_bits": 8, "dynamic": true, "strategy": "token")";

TEST_F(Quantized, InputsAreRoundedWhereTheFileSaysSoAndNoFlagSaysOtherwise) {
  // Of the fused [Q K V] and [K V] one is quantised, and rounds its inputs, and the others do not.
  for (const auto& endings : {kAll, std::vector<std::string>{"k_proj", "fc1"}}) {
    const Models models;
    write(models, endings, [](QuantWriter& w, int64_t n, int64_t k) { return rounding(w, n, k, kByToken); });
    EngineConfig silent = of(models.codes.path());
    silent.quantization_given = false;
    const Answers rounded = answers(silent), numbers = answers(of(models.numbers.path()));
    EXPECT_NE(rounded, numbers);
    EngineConfig automatic = of(models.codes.path(), "auto");
    automatic.kv_cache_dtype = "float32";
    EXPECT_EQ(answers(automatic), rounded);
    EXPECT_EQ(answers(of(models.codes.path())), numbers) << "--quantization none";
    EXPECT_EQ(answers(of(models.codes.path(), "int8")), answers(of(models.numbers.path(), "int8")))
        << "a model this narrow has no int8: nothing is rounded";
    const LoadedModel loaded = load(silent);
    EXPECT_THAT(::testing::PrintToString(loaded.info.report),
                HasSubstr("inputs rounded as the checkpoint says: int8-token in "));
    const TestFolder packed;
    const std::string out = packed.path() + "/packed";
    const auto result = testing::pack(silent, out);
    ASSERT_TRUE(result.ok()) << result.status();
    EngineConfig of_packed = silent;
    of_packed.model = out;
    EXPECT_EQ(answers(of_packed), rounded);
    of_packed.quantization_given = true;
    EXPECT_EQ(answers(of_packed), numbers);
  }
}

TEST_F(Quantized, AnAnswerWithRoundedInputsDoesNotDependOnTheBatch) {
  const Models models;
  write(models, kAll, [](QuantWriter& w, int64_t n, int64_t k) { return rounding(w, n, k, kByToken); });
  EngineConfig silent = of(models.codes.path());
  silent.quantization_given = false;
  const Answers together = answers(silent);
  silent.max_num_seqs = 3;
  EXPECT_EQ(answers(silent), together);
  silent.threads = 1;
  EXPECT_EQ(answers(silent), together);
}

TEST_F(Quantized, AStaticScaleOfInputsIsRead) {
  const auto with = [&](const Models& models, std::string scale) {
    write(models, kAll, [&](QuantWriter& w, int64_t n, int64_t k) {
      QuantFile file = rounding(w, n, k, R"("num_bits": 8, "strategy": "tensor")");
      if (!scale.empty()) file.tensors.push_back({w.of(".input_scale"), "F32", {1}, scale});
      return file;
    });
    EngineConfig silent = of(models.codes.path());
    silent.quantization_given = false;
    return silent;
  };
  const Models fine, coarse, none, zero;
  const EngineConfig of_fine = with(fine, testing::bytes_of(std::vector<float>{0.1f}));
  const Answers numbers = answers(of(fine.numbers.path()));
  const Answers rounded = answers(of_fine);
  EXPECT_NE(rounded, numbers);
  EXPECT_NE(answers(with(coarse, testing::bytes_of(std::vector<float>{1}))), rounded);
  EXPECT_THAT(refusal(with(none, "")), HasSubstr("input_scale\""));
  EXPECT_THAT(refusal(with(zero, std::string(4, '\0'))), HasSubstr("input_scale\": is not above 0"));
  const TestFolder packed;
  const std::string out = packed.path() + "/packed";
  ASSERT_TRUE(testing::pack(of_fine, out).ok());
  EngineConfig of_packed = of_fine;
  of_packed.model = out;
  EXPECT_EQ(answers(of_packed), rounded);
}

TEST_F(Quantized, ARoundingThatIsNotDoneIsRefusedUnlessAFlagAsksForOtherArithmetic) {
  const Models models;
  write(models, kAll, [](QuantWriter& w, int64_t n, int64_t k) {
    return rounding(w, n, k, R"("num_bits": 8, "dynamic": true, "strategy": "tensor")");
  });
  EngineConfig silent = of(models.codes.path());
  silent.quantization_given = false;
  for (const EngineConfig& config : {silent, of(models.codes.path(), "auto")}) {
    EXPECT_THAT(refusal(config), HasSubstr("/config.json: quantization_config: config_groups.group_0.input_activations."
                                           "strategy: tensor, of a whole batch at once: the format rounds"));
  }
  EXPECT_EQ(answers(of(models.codes.path())), answers(of(models.numbers.path())));
}

TEST_F(Quantized, DamagedMatricesAreRefusedByTensor) {
  const Models models;
  write(models, kAll, [](QuantWriter& w, int64_t n, int64_t k) {
    QuantFile file = w.gptq(n, k, 4, 32, true, true);
    file.tensors[3].data[0] = '\x7f';
    return file;
  });
  EXPECT_THAT(refusal(of(models.codes.path())), HasSubstr("model.safetensors: tensor \"model."));
  EXPECT_THAT(refusal(of(models.codes.path())), HasSubstr("g_idx\": element 0 is group 127, expected 0 to"));
}

}  // namespace
}  // namespace transept
