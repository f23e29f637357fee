// Models in files of other programs answer to the bit as folders of transformers with the same numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "base/folder_testing.h"
#include "base/sanitized_testing.h"
#include "core/config_file.h"
#include "foreign/ggml_testing.h"
#include "foreign/ggml_whisper.h"
#include "foreign/gguf_testing.h"
#include "models/checkpoints_testing.h"
#include "multimodal/multimodal_testing.h"
#include "startup/find_model.h"
#include "startup/model_files.h"
#include "startup/pack_model_testing.h"
#include "startup/tiny_model_testing.h"
#include "tensor/dtype.h"
#include "weights/safetensors_testing.h"

namespace transept::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLayers = 1, kVocab = 51864, kPositions = 50, kMels = 80;

// A Whisper of one layer with random weights in a file of whisper.cpp, and what these weights are in float32.
class RandomWhisper {
 public:
  // type: ggml's, of matrices; those whose inputs are no whole blocks are float16.
  explicit RandomWhisper(int32_t type, int32_t width = 32)
      : file_({kVocab, kPositions, width, 2, kLayers, 24, width, 4, kLayers, kMels, 1}), type_(type), width_(width) {
    file_.filters(kMels, 201);
    std::vector<std::string> tokens;
    tokens.reserve(50256);
    for (int32_t id = 0; id < 50256; ++id) {
      tokens.push_back(id < 256 ? std::string(1, static_cast<char>(id)) : str_cat("t", id));
    }
    file_.tokens(tokens);
    floats("encoder.conv1.weight", {width_, kMels, 3}, 1);
    floats("encoder.conv1.bias", {width_, 1}, 0);
    floats("encoder.conv2.weight", {width_, width_, 3}, 1);
    floats("encoder.conv2.bias", {width_, 1}, 0);
    floats("encoder.positional_embedding", {kPositions, width_}, 0);
    floats("decoder.positional_embedding", {24, width_}, 0);
    matrix("decoder.token_embedding.weight", kVocab, width_);
    norm("encoder.ln_post");
    norm("decoder.ln");
    for (const std::string side : {"encoder", "decoder"}) {
      const std::string block = side + ".blocks.0.";
      attention(block + "attn");
      if (side == "decoder") attention(block + "cross_attn");
      norm(block + "mlp_ln");
      matrix(block + "mlp.0.weight", 4 * width_, width_);
      floats(block + "mlp.0.bias", {4 * width_}, 0);
      matrix(block + "mlp.2.weight", width_, 4 * width_);
      floats(block + "mlp.2.bias", {width_}, 0);
    }
  }

  const std::string& bytes() const { return file_.bytes(); }
  GgmlWriter& file() { return file_; }
  // By openai's names.
  const std::map<std::string, std::vector<float>>& weights() const { return weights_; }

 private:
  float next() { return static_cast<float>(static_cast<int32_t>(random_() % 2001) - 1000) / 4000; }

  void floats(const std::string& name, const std::vector<int64_t>& shape, int32_t type) {
    size_t count = 1;
    for (const int64_t side : shape) count *= static_cast<size_t>(side);
    std::string data;
    std::vector<float>& values = weights_[name];
    for (size_t i = 0; i < count; ++i) {
      const uint16_t half = float_to_float16(next());
      const float value = float16_to_float(half);
      values.push_back(value);
      if (type == 1) data.append(reinterpret_cast<const char*>(&half), sizeof half);
      if (type == 0) data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    file_.tensor(name, shape, type, data);
  }
  void matrix(const std::string& name, int64_t n, int64_t k) {
    const std::optional<BlockType> blocks = block_type_of_ggml(type_);
    if (!blocks.has_value()) return floats(name, {n, k}, type_);
    if (k % block_weights(*blocks) != 0) return floats(name, {n, k}, 1);
    std::string data;
    for (int64_t i = 0; i < n * k / block_weights(*blocks); ++i) {
      const bool has_minimum = *blocks == BlockType::kQ4_1 || *blocks == BlockType::kQ5_1;
      const uint16_t scale = float_to_float16(next() / 30), minimum = float_to_float16(next() / 4);
      const size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(&scale), sizeof scale);
      if (has_minimum) data.append(reinterpret_cast<const char*>(&minimum), sizeof minimum);
      while (data.size() - begin < static_cast<size_t>(block_bytes(*blocks))) {
        data.push_back(static_cast<char>(random_()));
      }
      if (block_weights(*blocks) == kBlockWeights) continue;
      // Q4_K begins with two scales, Q6_K ends with one.
      const uint16_t small[] = {float_to_float16(next() / 1000), float_to_float16(next() / 100)};
      if (*blocks == BlockType::kQ4_K) std::memcpy(data.data() + begin, small, sizeof small);
      if (*blocks == BlockType::kQ6_K) std::memcpy(data.data() + data.size() - 2, small, 2);
    }
    const auto source = make_block_matrix(*blocks, std::as_bytes(std::span(data)), n, k, nullptr);
    std::vector<float>& values = weights_[name];
    values.resize(static_cast<size_t>(n * k));
    source->read_rows(0, n, {0, k}, values);
    file_.tensor(name, {n, k}, type_, data);
  }
  void norm(const std::string& name) {
    floats(name + ".weight", {width_}, 0);
    floats(name + ".bias", {width_}, 0);
  }
  void attention(const std::string& name) {
    norm(name + "_ln");
    for (const char* part : {".query", ".key", ".value", ".out"}) {
      matrix(name + part + ".weight", width_, width_);
      if (part != std::string_view(".key")) floats(name + part + ".bias", {width_}, 0);
    }
  }

  GgmlWriter file_;
  int32_t type_;
  int64_t width_;
  std::mt19937 random_{5};
  std::map<std::string, std::vector<float>> weights_;
};

class ForeignModels : public TinyModelTest {
 protected:
  // A folder of transformers with the file's texts and, in float32, its weights.
  void write_folder(const std::string& file, const RandomWhisper& model, const TestFolder& to) {
    const auto opened = open_ggml_whisper(file);
    ASSERT_TRUE(opened.ok()) << opened.status();
    for (const char* name : {"config.json", "generation_config.json", "preprocessor_config.json", "tokenizer.json",
                             "tokenizer_config.json"}) {
      to.write(name, *opened->folder.read(name, size_t{64} << 20));
    }
    std::vector<TestTensor> tensors;
    std::vector<std::vector<float>> values;
    for (const StoredTensor& tensor : opened->tensors.tensors) {
      values.push_back(model.weights().at(original_name(tensor.view.name)));
      const auto bytes = std::as_bytes(std::span(values.back()));
      tensors.push_back({tensor.view.name, "F32", tensor.view.shape,
                         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
    }
    to.write("model.safetensors", safetensors_bytes(tensors));
  }

  // openai's name of a tensor of transformers, spelled out here once more.
  static std::string original_name(std::string name) {
    const auto change = [&](std::string_view from, std::string_view to) {
      if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
    };
    change("model.", "");
    change("layers.", "blocks.");
    change("encoder_attn_layer_norm", "cross_attn_ln");
    change("self_attn_layer_norm", "attn_ln");
    change("encoder_attn.", "cross_attn.");
    change("self_attn.", "attn.");
    change("q_proj", "query");
    change("k_proj", "key");
    change("v_proj", "value");
    change("out_proj", "out");
    change("fc1", "mlp.0");
    change("fc2", "mlp.2");
    change("final_layer_norm", "mlp_ln");
    change("embed_positions.weight", "positional_embedding");
    change("embed_tokens", "token_embedding");
    change("encoder.layer_norm", "encoder.ln_post");
    change("decoder.layer_norm", "decoder.ln");
    return name;
  }

  Answers answers_of(const std::string& model, const std::string& quantization = "none",
                     const std::string& kv_cache_dtype = "float32") {
    EngineConfig config = this->config();
    config.model = model;
    config.quantization = quantization;
    config.kv_cache_dtype = kv_cache_dtype;
    config.quantization_given = true;
    const LoadedModel loaded = load(config);
    EXPECT_NE(loaded.tokenizer, nullptr);
    std::vector<Request> list;
    for (int32_t i = 0; i < 3; ++i) {
      Request& request = list.emplace_back();
      request.id = str_cat("r", i);
      EncoderFeatures features;
      features.num_positions = kPositions;
      features.shape = {kMels, 2 * kPositions};
      for (int32_t j = 0; j < kMels * 2 * kPositions; ++j) {
        features.values.push_back(std::sin(static_cast<float>(j * (i + 1)) * 0.01f));
      }
      request.inputs.set_encoder_features(std::make_shared<const EncoderFeatures>(std::move(features)));
      request.inputs.prompt_token_ids = {50257, 50362};
      request.params.max_tokens = 8;
      request.params.num_beams = i == 1 ? 3 : 1;
    }
    return run(*loaded.engine, list);
  }
};

TEST_F(ForeignModels, AFileOfWhisperCppAnswersAsItsFolder) {
  for (const int32_t type : {0, 1, 2, 3, 6, 7, 8, 12, 14}) {
    if (kSanitized && type % 6 != 1 && type != 12) continue;  // one of each way to be read
    SCOPED_TRACE(type);
    const RandomWhisper model(type, type < 10 ? 32 : 64);  // 256 inputs in the second layer of a feed-forward
    const TestFolder one, other;
    one.write("ggml-random.bin", model.bytes());
    const std::string file = one.path() + "/ggml-random.bin";
    write_folder(file, model, other);
    const Answers wanted = answers_of(other.path());
    EXPECT_EQ(wanted.size(), 3u);
    EXPECT_EQ(answers_of(file), wanted);
    EXPECT_EQ(answers_of(one.path()), wanted) << "a folder with nothing else";
    if (type != 7 && type != 12) continue;
    EXPECT_EQ(answers_of(file, "auto"), wanted) << "weights are rounded by nothing but the file";
    EXPECT_EQ(answers_of(file, "int8"), answers_of(other.path(), "int8"));
  }
}

TEST_F(ForeignModels, APackedFileAnswersAsItself) {
  const RandomWhisper model(8);
  const TestFolder one, out;
  one.write("ggml-random.bin", model.bytes());
  EngineConfig config = this->config();
  config.model = one.path() + "/ggml-random.bin";
  const std::string packed = out.path() + "/packed";
  const auto result = testing::pack(config, packed);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(answers_of(packed), answers_of(config.model));
}

// llama.cpp's names of T5's tensors.
std::string gguf_name(std::string name, bool is_gated) {
  const auto change = [&](std::string_view from, std::string_view to) {
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  };
  if (name == "shared.weight" || name == "decoder.embed_tokens.weight") return "token_embd.weight";
  if (name == "lm_head.weight") return "output.weight";
  change("encoder.", "enc.");
  change("decoder.", "dec.");
  change("final_layer_norm", "output_norm");
  change("block.", "blk.");
  const bool is_encoder = name.starts_with("enc.");
  change("layer.0.layer_norm", "attn_norm");
  change("layer.1.layer_norm", is_encoder ? "ffn_norm" : "cross_attn_norm");
  change("layer.2.layer_norm", "ffn_norm");
  change("layer.0.SelfAttention.relative_attention_bias", "attn_rel_b");
  change("layer.0.SelfAttention.", "attn_");
  change("layer.1.EncDecAttention.", "cross_attn_");
  change(is_encoder ? "layer.1.DenseReluDense." : "layer.2.DenseReluDense.", "ffn_");
  change("wi_0", "gate");
  change(is_gated ? "wi_1" : "wi", "up");
  change("wo", "down");
  return name;
}

// A checkpoint of tests/models as a GGUF file; its tokens are names of ids.
std::string gguf_of(const std::string& folder) {
  const ModelConfig config = *ModelConfig::load(folder);
  const bool is_gated = config.raw.find("feed_forward_proj")->as_string() == "gated-gelu";
  const auto side = [&](const char* key, int64_t fallback = 0) {
    const Json* value = config.raw.find(key);
    return static_cast<uint32_t>(value == nullptr ? fallback : value->as_int());
  };
  GgufWriter file;
  file.text("general.architecture", "t5");
  file.number("t5.embedding_length", side("d_model"));
  file.number("t5.feed_forward_length", side("d_ff"));
  file.number("t5.block_count", side("num_layers"));
  file.number("t5.decoder_block_count", side("num_decoder_layers", side("num_layers")));
  file.number("t5.attention.head_count", side("num_heads"));
  file.number("t5.attention.key_length", side("d_kv"));
  file.number("t5.attention.relative_buckets_count", 32);
  file.number("t5.decoder_start_token_id", side("decoder_start_token_id"));
  file.text("tokenizer.ggml.model", "t5");
  std::vector<std::string> tokens;
  for (uint32_t id = 0; id < side("vocab_size"); ++id) tokens.push_back(str_cat("t", id));
  file.texts("tokenizer.ggml.tokens", tokens);
  file.numbers<float>("tokenizer.ggml.scores", GgufWriter::kFloat32, std::vector<float>(tokens.size(), -1));
  file.numbers<int32_t>("tokenizer.ggml.token_type", 5, std::vector<int32_t>(tokens.size(), 1));
  file.number("tokenizer.ggml.eos_token_id", side("eos_token_id"));
  file.number("tokenizer.ggml.padding_token_id", side("pad_token_id"));
  const std::vector<TestTensor> tensors = read_tensors(folder);
  const bool has_shared = std::ranges::find(tensors, "shared.weight", &TestTensor::name) != tensors.end();
  for (const TestTensor& tensor : tensors) {
    const bool is_copy = has_shared && tensor.name == "decoder.embed_tokens.weight";
    if (is_copy || tensor.name == "encoder.embed_tokens.weight") continue;
    file.tensor(gguf_name(tensor.name, is_gated), tensor.shape, tensor.dtype == "F32" ? 0 : 1, tensor.data);
  }
  return file.bytes();
}

TEST_F(ForeignModels, AGgufOfT5AnswersAsItsFolder) {
  for (const char* name : {"t5-float32", "t5-madlad-float16"}) {
    SCOPED_TRACE(name);
    const std::string original = checkpoint_path(name);
    const TestFolder reference, one;
    for (const auto& entry : std::filesystem::directory_iterator(original)) {
      std::filesystem::copy(entry.path(), reference.path());
    }
    Json config = *read_json_object(original + "/config.json");
    config.set("relative_attention_max_distance", 128);  // a GGUF has no other
    std::filesystem::remove(reference.path() + "/config.json");
    reference.write("config.json", config.dump());
    one.write("model.gguf", gguf_of(original));
    const auto run_text = [&](const std::string& model) {
      EngineConfig engine = this->config();
      engine.model = model;
      const LoadedModel loaded = load(engine);
      std::vector<Request> list = requests();
      for (Request& request : list) request.inputs.prompt_token_ids.front() = 1;
      return run(*loaded.engine, list);
    };
    const Answers wanted = run_text(reference.path());
    EXPECT_EQ(wanted.size(), 20u);
    EXPECT_EQ(run_text(one.path() + "/model.gguf"), wanted);
    EXPECT_EQ(run_text(one.path()), wanted);
  }
}

TEST_F(ForeignModels, AGgufSaysWhatItLacks) {
  const auto error = [&](const GgufWriter& file) {
    const TestFolder dir;
    dir.write("model.gguf", file.bytes());
    EngineConfig engine = this->config();
    engine.model = dir.path() + "/model.gguf";
    const auto loaded = load_engine(engine, clock_);
    EXPECT_FALSE(loaded.ok());
    return loaded.ok() ? "" : error_message(loaded.status());
  };
  GgufWriter file;
  file.text("general.architecture", "t5");
  EXPECT_THAT(error(file), AllOf(HasSubstr("model.gguf"), HasSubstr("has an encoder alone")));
  file.tensor("dec.output_norm.weight", {2}, 0, std::string(8, 'x'));
  EXPECT_THAT(error(file), HasSubstr("model.gguf: tokenizer.ggml.model: is missing"));
  file.text("tokenizer.ggml.model", "llama");
  EXPECT_THAT(error(file), HasSubstr("\"llama\" is not supported; t5 is"));
  GgufWriter llama;
  llama.text("general.architecture", "llama");
  const TestFolder dir;
  dir.write("model.gguf", llama.bytes());
  EXPECT_THAT(error_message(find_model(dir.path() + "/model.gguf", {}).status()),
              HasSubstr("a GGUF file (llama.cpp) of architecture \"llama\""));
}

TEST_F(ForeignModels, AreFoundAsModels) {
  const RandomWhisper model(1);
  const TestFolder dir;
  dir.write("ggml-random.bin", model.bytes());
  dir.write("notes.txt", "no model");
  const std::string file = dir.path() + "/ggml-random.bin";
  EXPECT_EQ(*find_model(file, {}), file);
  EXPECT_EQ(foreign_file(file), file);
  EXPECT_EQ(foreign_file(dir.path()), file);
  EXPECT_EQ(foreign_file(dir.path() + "/notes.txt"), std::nullopt);
  EXPECT_FALSE(find_model(dir.path() + "/notes.txt", {}).ok());
  dir.write("other.bin", model.bytes());
  EXPECT_EQ(foreign_file(dir.path()), std::nullopt) << "which of the two?";
  dir.write("config.json", "{}");
  EXPECT_EQ(foreign_file(dir.path()), std::nullopt);
}

TEST_F(ForeignModels, ErrorsNameFileAndTensor) {
  const auto error = [&](const std::string& bytes) {
    const TestFolder dir;
    dir.write("ggml.bin", bytes);
    EngineConfig config = this->config();
    config.model = dir.path() + "/ggml.bin";
    const auto loaded = load_engine(config, clock_);
    EXPECT_FALSE(loaded.ok());
    return loaded.ok() ? "" : error_message(loaded.status());
  };
  RandomWhisper strange(1), twice(1);
  strange.file().tensor("decoder.blocks.0.attn.gate.weight", {2}, 0, std::string(8, 'x'));
  EXPECT_THAT(error(strange.bytes()),
              AllOf(HasSubstr("ggml.bin: "), HasSubstr("attn.gate.weight"), HasSubstr("no Whisper has it")));
  twice.file().tensor("decoder.ln.bias", {32}, 0, std::string(size_t{4} * 32, 'x'));
  EXPECT_THAT(error(twice.bytes()), HasSubstr("ggml.bin: tensor \"model.decoder.layer_norm.bias\" stands in"));
  const std::string whole = RandomWhisper(1).bytes();
  EXPECT_THAT(error(whole.substr(0, whole.size() - 100)), HasSubstr("is larger than the rest of the file"));
  std::string other = whole;
  other[4] = 'x';
  EXPECT_THAT(error(other), HasSubstr("is no Whisper's"));
}

}  // namespace
}  // namespace transept::testing
