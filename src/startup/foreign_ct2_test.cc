// Folders of CTranslate2 answer to the bit as folders of transformers with the same numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "foreign/ct2_testing.h"
#include "layers/sinusoidal.h"
#include "models/checkpoints_testing.h"
#include "multimodal/multimodal_testing.h"
#include "startup/find_model.h"
#include "startup/model_files.h"
#include "startup/pack_model_testing.h"
#include "startup/tiny_model_testing.h"
#include "tensor/dtype.h"
#include "weights/safetensors_testing.h"
#include "weights/weight_view.h"

namespace transept::testing {
namespace {

enum class Form : uint8_t { kStored, kInt8, kInt16 };

// A model of tests/models in CTranslate2's form. Names are spelled out here once more, as its converter has them.
class Converted {
 public:
  Converted(const std::string& name, Form form) : dir_(checkpoint_path(name)), form_(form) {
    const std::string file = *read_file(dir_ + "/model.safetensors", size_t{64} << 20);
    const auto parsed = parse_safetensors(std::as_bytes(std::span(file)), name);
    CHECK(parsed.ok());
    for (const SafetensorsTensor& tensor : *parsed) {
      const std::string own = tensor.name.starts_with("model.") ? tensor.name.substr(6) : tensor.name;
      tensors_[own] = {own, tensor.dtype, tensor.shape,
                       std::string(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size())};
    }
    config_ = *Json::parse(*read_file(dir_ + "/config.json", size_t{1} << 20));
    const Json* type = config_.find("model_type");
    type_ = type == nullptr ? "umt5" : type->as_string();
    is_whisper_ = type_ == "whisper";
    is_t5_ = type_.ends_with("t5");
    // The decoder starts from a zero embedding, which is no row of the tables.
    writer_ = Ct2Writer(is_whisper_ ? "WhisperSpec" : "TransformerSpec");
  }

  // Marian's `<pad>` taken out: the last row, which is zero, and never comes out.
  void start_from_zero() {
    starts_from_zero_ = true;
    const int64_t rows = config_.find("vocab_size")->as_int();
    for (const char* key : {"vocab_size", "decoder_vocab_size"}) config_.set(key, rows + 1);
    for (const char* key : {"pad_token_id", "decoder_start_token_id"}) config_.set(key, rows);
  }

  // The folder of CTranslate2, and one of transformers with the numbers that it means.
  void write(const TestFolder& ct2, const TestFolder& transformers) {
    table("decoder/embeddings", table_of("decoder"));
    if (!is_whisper_) {
      if (table_of("encoder") == table_of("decoder")) {
        writer_.alias("encoder/embeddings_0/weight", "decoder/embeddings/weight");
      } else {
        table("encoder/embeddings_0", table_of("encoder"));
      }
    }
    const std::string output = is_whisper_ ? "proj_out.weight" : "lm_head.weight";
    if (tensors_.contains(output)) {
      table("decoder/projection", output);
    } else {
      writer_.alias("decoder/projection/weight", "decoder/embeddings/weight");
    }
    if (tensors_.contains("final_logits_bias")) {
      const TestTensor& bias = tensors_.at("final_logits_bias");
      writer_.variable("decoder/projection/bias", {static_cast<uint32_t>(bias.shape[1])}, id(bias.dtype), bias.data);
    }
    for (const std::string side : {"encoder", "decoder"}) write_side(side);
    ct2.write("model.bin", writer_.bytes());
    write_texts(ct2, transformers);
  }

  int64_t vocab() const { return config_.find("vocab_size")->as_int(); }

 private:
  static uint8_t id(std::string_view dtype) { return dtype == "F32" ? 0 : dtype == "F16" ? 4 : 5; }

  std::string table_of(const std::string& side) const {
    const std::string own = side + ".embed_tokens.weight";
    if (tensors_.contains("shared.weight")) return "shared.weight";
    if (tensors_.contains(own)) return own;
    return "decoder.embed_tokens.weight";
  }

  std::vector<float> floats(const TestTensor& tensor) const {
    std::vector<float> values(tensor.data.size() / (tensor.dtype == "F32" ? 4 : 2));
    const DType type = tensor.dtype == "F32"   ? DType::kFloat32
                       : tensor.dtype == "F16" ? DType::kFloat16
                                               : DType::kBFloat16;
    widen_bytes(type, reinterpret_cast<const std::byte*>(tensor.data.data()), values);
    return values;
  }

  // The tensors one below the other.
  void rows(const std::string& variable, const std::vector<std::string>& names) {
    std::string data;
    std::vector<float> values;
    int64_t num_rows = 0;
    for (const std::string& name : names) {
      const TestTensor& tensor = tensors_.at(name);
      data += tensor.data;
      num_rows += tensor.shape[0];
      const std::vector<float> own = floats(tensor);
      values.insert(values.end(), own.begin(), own.end());
    }
    const TestTensor& first = tensors_.at(names[0]);
    std::vector<uint32_t> shape(first.shape.begin(), first.shape.end());
    shape[0] = static_cast<uint32_t>(num_rows);
    if (form_ == Form::kStored || shape.size() != 2) return writer_.variable(variable, shape, id(first.dtype), data);
    const std::vector<float> meant =
        form_ == Form::kInt8 ? writer_.int8(variable, shape[0], values) : writer_.int16(variable, shape[0], values);
    size_t begin = 0;
    for (const std::string& name : names) {
      TestTensor& tensor = tensors_.at(name);
      const size_t count = floats(tensor).size();
      tensor.data = Ct2Writer::bytes_of<float>(
          {meant.begin() + static_cast<int64_t>(begin), meant.begin() + static_cast<int64_t>(begin + count)});
      tensor.dtype = "F32";
      begin += count;
    }
  }
  // As it lies; `skip` rows in front are left out.
  void plain(const std::string& variable, const std::string& name, int64_t skip = 0) {
    const TestTensor& tensor = tensors_.at(name);
    std::vector<uint32_t> shape(tensor.shape.begin(), tensor.shape.end());
    const size_t row = tensor.data.size() / shape[0];
    shape[0] -= static_cast<uint32_t>(skip);
    writer_.variable(variable, shape, id(tensor.dtype), tensor.data.substr(static_cast<size_t>(skip) * row));
  }
  void table(const std::string& scope, const std::string& name) {
    rows(scope + "/weight", {name});
    if (!starts_from_zero_) return;
    TestTensor& tensor = tensors_.at(name);
    tensor.data.append(tensor.data.size() / static_cast<size_t>(tensor.shape[0]), '\0');
    ++tensor.shape[0];
  }
  void linear(const std::string& scope, const std::vector<std::string>& modules) {
    std::vector<std::string> weights;
    for (const std::string& module : modules) weights.push_back(module + ".weight");
    rows(scope + "/weight", weights);
    if (!tensors_.contains(modules.back() + ".bias")) return;
    std::string data;
    uint32_t count = 0;
    for (const std::string& module : modules) {
      const TestTensor& like = tensors_.at(modules.back() + ".bias");
      const bool has_bias = tensors_.contains(module + ".bias");  // Whisper's keys have none
      data += has_bias ? tensors_.at(module + ".bias").data : std::string(like.data.size(), '\0');
      count += static_cast<uint32_t>(like.shape[0]);
    }
    writer_.variable(scope + "/bias", {count}, id(tensors_.at(modules.back() + ".bias").dtype), data);
  }
  void norm(const std::string& scope, const std::string& module) {
    plain(scope + "/gamma", module + ".weight");
    if (tensors_.contains(module + ".bias")) plain(scope + "/beta", module + ".bias");
  }
  void attention(const std::string& scope, const std::string& module, const std::string& names, bool is_cross) {
    const std::vector<std::string> own = names == "t5"
                                             ? std::vector<std::string>{".q", ".k", ".v", ".o"}
                                             : std::vector<std::string>{".q_proj", ".k_proj", ".v_proj", ".out_proj"};
    if (is_cross) {
      linear(scope + "/linear_0", {module + own[0]});
      linear(scope + "/linear_1", {module + own[1], module + own[2]});
      linear(scope + "/linear_2", {module + own[3]});
    } else {
      linear(scope + "/linear_0", {module + own[0], module + own[1], module + own[2]});
      linear(scope + "/linear_1", {module + own[3]});
    }
    if (is_t5_) writer_.number(scope + "/queries_scale", 1);
  }

  void write_side(const std::string& side) {
    const bool is_decoder = side == "decoder";
    int64_t layers = 0;
    const auto layer_of = [&](int64_t i) { return str_cat(side, is_t5_ ? ".block." : ".layers.", i); };
    const auto first = [&](int64_t i) {
      return layer_of(i) + (is_t5_ ? ".layer.0.SelfAttention.q.weight" : ".self_attn.q_proj.weight");
    };
    for (; tensors_.contains(first(layers)); ++layers) {
      const std::string scope = str_cat(side, "/layer_", layers);
      is_t5_ ? write_t5(scope, layer_of(layers) + ".layer.", layers, is_decoder)
             : write_bart(scope, layer_of(layers), is_decoder);
    }
    const auto number = [&](const std::string& key) { return static_cast<int16_t>(config_.find(key)->as_int()); };
    writer_.integer(side + "/num_heads", number(is_t5_ ? "num_heads" : side + "_attention_heads"));
    if (is_t5_) {
      norm(side + "/layer_norm", side + ".final_layer_norm");
      writer_.flag(side + "/scale_embeddings", 0);
      if (is_decoder && !tensors_.contains("lm_head.weight")) {
        writer_.number("decoder/scale_outputs", 1 / std::sqrt(static_cast<float>(number("d_model"))));
      }
    } else {
      write_bart_like(side, number("d_model"));
    }
    if (is_whisper_ && !is_decoder) return;
    const Json* activation = config_.find(is_t5_ ? "feed_forward_proj" : "activation_function");
    const std::string name = activation == nullptr ? "gelu" : activation->as_string();
    writer_.flag(side + "/activation", name == "relu" ? 0 : name == "gated-gelu" ? 1 : name == "swish" ? 2 : 3);
    const bool is_before = is_t5_ || tensors_.contains("encoder.layer_norm.weight");
    writer_.flag(side + "/pre_norm", is_before ? 1 : 0);
    if (is_decoder) writer_.flag("decoder/start_from_zero_embedding", starts_from_zero_ ? 1 : 0);
  }

  void write_bart_like(const std::string& side, int16_t width) {
    if (tensors_.contains(side + ".layer_norm.weight")) norm(side + "/layer_norm", side + ".layer_norm");
    const std::string positions = side + "/position_encodings/encodings", table = side + ".embed_positions.weight";
    const bool has_norm = tensors_.contains(side + ".layernorm_embedding.weight");
    if (has_norm) norm(side + "/layernorm_embedding", side + ".layernorm_embedding");
    if (tensors_.contains(table)) {
      plain(positions, table, has_norm ? 2 : 0);  // fairseq's rows before position 0
    } else {
      const auto count = static_cast<uint32_t>(config_.find("max_position_embeddings")->as_int());
      const bool is_m2m = type_ == "m2m_100";
      const SinusoidalRows rows(is_m2m ? Sinusoid::kByHalf : Sinusoid::kByDim, width);
      std::vector<float> all(static_cast<size_t>(count) * static_cast<size_t>(width));
      for (uint32_t i = 0; i < count; ++i) {
        rows.compute(i + (is_m2m ? 2 : 0),
                     std::span(all).subspan(size_t{i} * static_cast<size_t>(width), static_cast<size_t>(width)));
      }
      writer_.floats(positions, {count, static_cast<uint32_t>(width)}, all);
    }
    if (is_whisper_) {
      if (side == "encoder") return write_kernels();
      return writer_.flag("decoder/scale_embeddings", 0);
    }
    const Json* scales = config_.find("scale_embedding");
    const bool is_scaled = scales != nullptr && scales->as_bool();
    writer_.number(side + "/scale_embeddings", is_scaled ? std::sqrt(static_cast<float>(width)) : 1);
  }
  void write_kernels() {
    linear("encoder/conv1", {"encoder.conv1"});
    linear("encoder/conv2", {"encoder.conv2"});
  }

  void write_bart(const std::string& scope, const std::string& layer, bool is_decoder) {
    attention(scope + "/self_attention", layer + ".self_attn", "bart", false);
    norm(scope + "/self_attention/layer_norm", layer + ".self_attn_layer_norm");
    if (is_decoder) {
      attention(scope + "/attention", layer + ".encoder_attn", "bart", true);
      norm(scope + "/attention/layer_norm", layer + ".encoder_attn_layer_norm");
    }
    linear(scope + "/ffn/linear_0", {layer + ".fc1"});
    linear(scope + "/ffn/linear_1", {layer + ".fc2"});
    norm(scope + "/ffn/layer_norm", layer + ".final_layer_norm");
  }
  void write_t5(const std::string& scope, const std::string& layer, int64_t index, bool is_decoder) {
    attention(scope + "/self_attention", layer + "0.SelfAttention", "t5", false);
    norm(scope + "/self_attention/layer_norm", layer + "0.layer_norm");
    const std::string bias = scope + "/self_attention/relative_attention_bias";
    const std::string table = layer + "0.SelfAttention.relative_attention_bias.weight";
    if (tensors_.contains(table)) {
      plain(bias, table);
    } else {
      writer_.alias(bias, scope.substr(0, scope.find('/')) + "/layer_0/self_attention/relative_attention_bias");
    }
    if (index == 0) {
      writer_.variable(scope + "/self_attention/relative_attention_max_distance", {}, 3,
                       Ct2Writer::bytes_of<int32_t>({max_distance()}));
    }
    if (is_decoder) {
      attention(scope + "/attention", layer + "1.EncDecAttention", "t5", true);
      norm(scope + "/attention/layer_norm", layer + "1.layer_norm");
    }
    const std::string last = layer + (is_decoder ? "2" : "1"), ffn = last + ".DenseReluDense.";
    const bool is_gated = tensors_.contains(ffn + "wi_0.weight");
    linear(scope + "/ffn/linear_0", {ffn + (is_gated ? "wi_0" : "wi")});
    if (is_gated) linear(scope + "/ffn/linear_0_noact", {ffn + "wi_1"});
    linear(scope + "/ffn/linear_1", {ffn + "wo"});
    norm(scope + "/ffn/layer_norm", last + ".layer_norm");
  }
  int32_t max_distance() const {
    const Json* distance = config_.find("relative_attention_max_distance");
    return distance == nullptr ? 128 : static_cast<int32_t>(distance->as_int());
  }

  void write_texts(const TestFolder& ct2, const TestFolder& transformers) const {
    for (const char* name : {"tokenizer.json", "preprocessor_config.json", "generation_config.json"}) {
      const StatusOr<std::string> text = read_file(dir_ + "/" + name, size_t{64} << 20);
      if (!text.ok() || starts_from_zero_) continue;
      ct2.write(name, *text);
      transformers.write(name, *text);
    }
    if (starts_from_zero_) {
      const std::string tokenizer = *read_file(dir_ + "/tokenizer.json", size_t{64} << 20);
      ct2.write("tokenizer.json", tokenizer);
      transformers.write("tokenizer.json", tokenizer);
    }
    transformers.write("config.json", config_.dump());
    std::vector<TestTensor> list;
    for (const auto& [name, tensor] : tensors_) list.push_back(tensor);
    if (starts_from_zero_) {
      TestTensor& bias = *std::ranges::find(list, std::string("final_logits_bias"), &TestTensor::name);
      std::vector<float> values = floats(bias);
      values.push_back(-INFINITY);
      bias = {bias.name, "F32", {1, std::ssize(values)}, Ct2Writer::bytes_of<float>(values)};
    }
    transformers.write("model.safetensors", safetensors_bytes(list));
    Json tokens = Json::array(), own = Json::object();
    const Json* of_decoder = config_.find("decoder_vocab_size");
    const int64_t count = (of_decoder == nullptr ? vocab() : of_decoder->as_int()) - (starts_from_zero_ ? 1 : 0);
    for (int64_t i = 0; i < count; ++i) tokens.push_back(str_cat("t", i));
    const std::pair<const char*, const char*> names[] = {{"bos_token_id", "bos_token"},
                                                         {"eos_token_id", "eos_token"},
                                                         {"decoder_start_token_id", "decoder_start_token"}};
    const auto set = [&](const char* key, const char* spelling) {
      const int64_t at = config_.find(key)->as_int();
      if (at < count) tokens.as_array()[static_cast<size_t>(at)] = Json(spelling);
    };
    set("pad_token_id", "<pad>");
    if (is_whisper_) {
      set("eos_token_id", "<|endoftext|>");
      set("decoder_start_token_id", "<|startoftranscript|>");
      own.set("suppress_ids", Json::array());
    } else {
      for (const auto& [key, theirs] : names) {
        const int64_t at = config_.find(key)->as_int();
        own.set(theirs, at < count ? tokens.as_array()[static_cast<size_t>(at)] : Json("t0"));
      }
    }
    ct2.write(is_whisper_ ? "vocabulary.json" : "target_vocabulary.json", tokens.dump());
    ct2.write("config.json", own.dump());
  }

  std::string dir_;
  Form form_;
  std::map<std::string, TestTensor> tensors_;  // by name, without "model."
  Json config_;
  std::string type_;
  bool is_whisper_ = false, is_t5_ = false, starts_from_zero_ = false;
  Ct2Writer writer_;
};

class ForeignCt2 : public TinyModelTest {};

TEST_F(ForeignCt2, AnswerAsTheirFolders) {
  for (const char* name : {"bart-float32", "t5-float32", "umt5-float32", "m2m100-float32", "mbart-bfloat16",
                           "pegasus-untied", "marian-float16", "marian-two-vocabularies"}) {
    SCOPED_TRACE(name);
    const TestFolder ct2, transformers;
    Converted(name, Form::kStored).write(ct2, transformers);
    const Answers wanted = answers_of(transformers.path());
    EXPECT_EQ(wanted.size(), 20u);
    EXPECT_EQ(answers_of(ct2.path()), wanted);
  }
}

TEST_F(ForeignCt2, CodesAnswerAsTheNumbersThatTheyMean) {
  for (const char* name : {"bart-float32", "t5-float32"}) {
    for (const Form form : {Form::kInt8, Form::kInt16}) {
      SCOPED_TRACE(str_cat(name, " ", static_cast<int>(form)));
      const TestFolder ct2, transformers;
      Converted(name, form).write(ct2, transformers);
      const Answers wanted = answers_of(transformers.path());
      EXPECT_EQ(answers_of(ct2.path()), wanted);
      EXPECT_EQ(answers_of(ct2.path(), "auto"), wanted) << "weights are rounded by nothing but the file";
      EXPECT_EQ(answers_of(ct2.path(), "int8"), answers_of(transformers.path(), "int8"));
    }
  }
}

TEST_F(ForeignCt2, AMarianStartsFromZero) {
  for (const Form form : {Form::kStored, Form::kInt8}) {
    const TestFolder ct2, transformers;
    Converted model("marian-float16", form);
    const auto start = static_cast<int32_t>(model.vocab());
    model.start_from_zero();
    model.write(ct2, transformers);
    const Answers wanted = answers_of(transformers.path(), "none", start);
    EXPECT_EQ(answers_of(ct2.path(), "none", start), wanted);
    for (const auto& [id, answer] : wanted) {
      for (const auto& [tokens, sum] : answer) {
        EXPECT_TRUE(std::isfinite(sum));
        EXPECT_THAT(tokens, ::testing::Not(::testing::Contains(start)));
      }
    }
  }
}

TEST_F(ForeignCt2, AWhisperAnswersAsItsFolder) {
  const TestFolder ct2, transformers;
  Converted("whisper-transcribes", Form::kStored).write(ct2, transformers);
  const auto answers = [&](const std::string& model) {
    EngineConfig config = this->config();
    config.model = model;
    config.kv_cache_dtype = "float32";
    const LoadedModel loaded = load(config);
    std::vector<Request> list;
    for (int32_t i = 0; i < 2; ++i) {
      Request& request = list.emplace_back();
      request.id = str_cat("r", i);
      EncoderFeatures features;
      features.num_positions = 50;
      features.shape = {80, 100};
      for (int32_t j = 0; j < 80 * 100; ++j)
        features.values.push_back(std::sin(static_cast<float>(j * (i + 1)) * 0.01f));
      request.inputs.set_encoder_features(std::make_shared<const EncoderFeatures>(std::move(features)));
      request.inputs.prompt_token_ids = {401, 5};
      request.params.max_tokens = 8;
      request.params.num_beams = i == 1 ? 3 : 1;
    }
    return run(*loaded.engine, list);
  };
  const Answers wanted = answers(transformers.path());
  EXPECT_EQ(wanted.size(), 2u);
  EXPECT_EQ(answers(ct2.path()), wanted);
}

TEST_F(ForeignCt2, APackedFolderAnswersAsItself) {
  const TestFolder ct2, transformers, out;
  Converted("bart-float32", Form::kInt8).write(ct2, transformers);
  const Answers wanted = answers_of(ct2.path());
  for (const std::string& model : {ct2.path(), ct2.path() + "/model.bin"}) {
    EngineConfig config = this->config();
    config.model = model;
    const std::string packed = out.path() + (model == ct2.path() ? "/folder" : "/file");
    const auto result = testing::pack(config, packed);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(answers_of(packed), wanted);
    EXPECT_TRUE(std::filesystem::exists(packed + "/tokenizer.json"));
    EXPECT_FALSE(std::filesystem::exists(packed + "/model.bin"));
  }
}

TEST_F(ForeignCt2, AreFoundByTheirContent) {
  const TestFolder ct2, transformers;
  Converted("bart-float32", Form::kStored).write(ct2, transformers);
  const std::string file = ct2.path() + "/model.bin";
  EXPECT_EQ(foreign_file(ct2.path()), file);
  EXPECT_EQ(foreign_file(file), file);
  ct2.write("config.json", R"({"model_type": "bart"})");
  EXPECT_EQ(foreign_file(ct2.path()), file) << "transformers' config.json, and no weights of its";
  ct2.write("pytorch_model.bin", "");
  EXPECT_EQ(foreign_file(ct2.path()), std::nullopt) << "of transformers, and a file beside it";
  ct2.write("config.json", "{}");
  EXPECT_EQ(foreign_file(ct2.path()), file);
  ct2.write("model.bin", Ct2Writer("TransformerDecoderSpec").bytes());
  EXPECT_EQ(foreign_file(ct2.path()), std::nullopt) << "no encoder-decoder";
}

}  // namespace
}  // namespace transept::testing
