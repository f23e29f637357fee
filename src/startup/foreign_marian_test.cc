// Models in Marian's own files answer to the bit as folders of transformers with the same numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "foreign/npz_testing.h"
#include "models/checkpoints_testing.h"
#include "startup/find_model.h"
#include "startup/model_files.h"
#include "startup/pack_model_testing.h"
#include "startup/tiny_model_testing.h"
#include "tensor/dtype.h"
#include "weights/safetensors_testing.h"
#include "weights/weight_view.h"

namespace transept::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Choices {
  bool has_positions = false;                       // Wpos, and embeddings that are not scaled
  bool is_legacy = false;                           // an output layer [inputs, outputs]
  bool has_bias = true;                             // of the output layer
  std::map<std::string, std::string> options = {};  // of model.yml, in place of what is written there
};

// A model of tests/models in Marian's form. Names are spelled out here once more, as transformer.h of Marian has them.
class Converted {
 public:
  explicit Converted(const std::string& name, Choices choices = {})
      : dir_(checkpoint_path(name)), choices_(std::move(choices)) {
    for (TestTensor& tensor : read_tensors(dir_)) {
      const std::string own = tensor.name.starts_with("model.") ? tensor.name.substr(6) : tensor.name;
      tensor.name = own;
      if (tensor.dtype == "BF16") {  // which numpy does not have
        tensor.data = bytes_of(floats(tensor));
        tensor.dtype = "F32";
      }
      tensors_[own] = tensor;
    }
    config_ = *Json::parse(*read_file(dir_ + "/config.json", size_t{1} << 20));
    is_pegasus_ = config_.find("model_type")->as_string() == "pegasus";
    is_shared_ = tensors_.contains("shared.weight");
    rows_ = config_.find("vocab_size")->as_int();
    const Json* of_decoder = config_.find("decoder_vocab_size");
    target_rows_ = is_shared_ || of_decoder == nullptr ? rows_ : of_decoder->as_int();
  }

  // Marian's folder, and one of transformers with the numbers that it means.
  void write(const TestFolder& marian, const TestFolder& transformers) {
    for (const char* name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) {
      if (is_shared_) tensors_.erase(name);
    }
    if (!choices_.has_positions) {
      for (const char* side : {"encoder", "decoder"}) tensors_.erase(str_cat(side, ".embed_positions.weight"));
    }
    write_arrays();
    marian.write("model.npz", writer_.bytes());
    marian.write(is_shared_ ? "x.vocab.yml" : "x.src.vocab.yml", vocabulary(rows_));
    if (!is_shared_) marian.write("x.trg.vocab.yml", vocabulary(target_rows_));
    write_transformers(transformers);
  }

  int32_t start() const { return static_cast<int32_t>(target_rows_); }

 private:
  static std::vector<float> floats(const TestTensor& tensor) {
    std::vector<float> values(tensor.data.size() / (tensor.dtype == "F32" ? 4 : 2));
    const DType type = tensor.dtype == "F32"   ? DType::kFloat32
                       : tensor.dtype == "F16" ? DType::kFloat16
                                               : DType::kBFloat16;
    widen_bytes(type, reinterpret_cast<const std::byte*>(tensor.data.data()), values);
    return values;
  }
  static std::string descr(const TestTensor& tensor) { return tensor.dtype == "F32" ? "<f4" : "<f2"; }
  static std::string turned(const TestTensor& tensor) {
    const size_t width = tensor.dtype == "F32" ? 4 : 2;
    const auto rows = static_cast<size_t>(tensor.shape[0]), columns = static_cast<size_t>(tensor.shape[1]);
    std::string data;
    for (size_t i = 0; i < columns; ++i) {
      for (size_t j = 0; j < rows; ++j) data += tensor.data.substr((j * columns + i) * width, width);
    }
    return data;
  }

  void plain(const std::string& name, const TestTensor& tensor) {
    writer_.array(name, descr(tensor), tensor.shape, tensor.data);
  }
  void linear(const std::string& scope, const std::string& suffix, const std::string& module) {
    const TestTensor& weight = tensors_.at(module + ".weight");
    const TestTensor& bias = tensors_.at(module + ".bias");
    writer_.array(scope + "_W" + suffix, descr(weight), {weight.shape[1], weight.shape[0]}, turned(weight));
    writer_.array(scope + "_b" + suffix, descr(bias), {1, bias.shape[0]}, bias.data);
  }
  void norm(const std::string& scope, const std::string& module, const std::string& suffix) {
    const TestTensor& scale = tensors_.at(module + ".weight");
    const TestTensor& bias = tensors_.at(module + ".bias");
    writer_.array(scope + "_ln_scale" + suffix, descr(scale), {1, scale.shape[0]}, scale.data);
    writer_.array(scope + "_ln_bias" + suffix, descr(bias), {1, bias.shape[0]}, bias.data);
  }
  void attention(const std::string& scope, const std::string& module) {
    linear(scope, "q", module + ".q_proj");
    linear(scope, "k", module + ".k_proj");
    linear(scope, "v", module + ".v_proj");
    linear(scope, "o", module + ".out_proj");
    norm(scope + "_Wo", module + "_layer_norm", is_pegasus_ ? "_pre" : "");
  }

  void write_arrays() {
    if (is_shared_) {
      plain("Wemb", tensors_.at("shared.weight"));
    } else {
      plain("encoder_Wemb", tensors_.at("encoder.embed_tokens.weight"));
      plain("decoder_Wemb", tensors_.at("decoder.embed_tokens.weight"));
    }
    if (tensors_.contains("lm_head.weight")) {
      const TestTensor& head = tensors_.at("lm_head.weight");
      if (choices_.is_legacy) {
        writer_.array("decoder_ff_logit_out_W", descr(head), {head.shape[1], head.shape[0]}, turned(head));
      } else {
        plain("decoder_ff_logit_out_Wt", head);
      }
    }
    if (choices_.has_bias && tensors_.contains("final_logits_bias")) {
      plain("decoder_ff_logit_out_b", tensors_.at("final_logits_bias"));
    }
    if (choices_.has_positions) plain("Wpos", tensors_.at("encoder.embed_positions.weight"));
    for (const std::string side : {"encoder", "decoder"}) {
      for (int64_t i = 0; i < config_.find(side + "_layers")->as_int(); ++i) {
        const std::string scope = str_cat(side, "_l", i + 1), layer = str_cat(side, ".layers.", i);
        attention(scope + "_self", layer + ".self_attn");
        if (side == "decoder") attention(scope + "_context", layer + ".encoder_attn");
        linear(scope + "_ffn", "1", layer + ".fc1");
        linear(scope + "_ffn", "2", layer + ".fc2");
        norm(scope + "_ffn_ffn", layer + ".final_layer_norm", is_pegasus_ ? "_pre" : "");
      }
      if (is_pegasus_) norm(side + "_top", side + ".layer_norm", "");
    }
    writer_.array("encoder_l1_self_QuantMultA", "<f4", {1}, "1234");  // int8 training leaves it behind
    write_options();
  }
  void write_options() {
    std::map<std::string, std::string> options = {
        {"type", "transformer"},
        {"enc-depth", str_cat(config_.find("encoder_layers")->as_int())},
        {"dec-depth", str_cat(config_.find("decoder_layers")->as_int())},
        {"transformer-heads", str_cat(config_.find("decoder_attention_heads")->as_int())},
        {"transformer-ffn-activation", config_.find("activation_function")->as_string()},
        {"transformer-preprocess", is_pegasus_ ? "n" : "\"\""},
        {"transformer-postprocess", is_pegasus_ ? "da" : "dan"},
        {"transformer-postprocess-top", is_pegasus_ ? "n" : "\"\""},
        {"transformer-postprocess-emb", "d"},
        {"transformer-guided-alignment-layer", "last"},
        {"transformer-decoder-autoreg", "self-attention"},
        {"transformer-train-position-embeddings", choices_.has_positions ? "true" : "false"},
        {"transformer-tied-layers", "[]"}};
    for (const auto& [key, value] : choices_.options) options[key] = value;
    std::string yaml;
    for (const auto& [key, value] : options) yaml += str_cat(key, ": ", value, "\n");
    writer_.options(yaml);
  }
  std::string vocabulary(int64_t rows) const {
    const int64_t end = config_.find("eos_token_id")->as_int();
    std::string text;
    for (int64_t i = 0; i < rows; ++i)
      text += i == end ? str_cat("</s>: ", i, "\n") : str_cat("\"t", i, "\": ", i, "\n");
    return text + str_cat("beyond: ", rows, "\n");  // which dim-vocabs cuts off
  }

  // One row more in each table, of zeros; it never comes out.
  void write_transformers(const TestFolder& to) {
    for (auto& [name, tensor] : tensors_) {
      const bool is_table =
          name == "shared.weight" || name == "lm_head.weight" || name.ends_with("embed_tokens.weight");
      if (!is_table) continue;
      tensor.data.append(tensor.data.size() / static_cast<size_t>(tensor.shape[0]), '\0');
      ++tensor.shape[0];
    }
    std::vector<float> bias(static_cast<size_t>(target_rows_));
    if (choices_.has_bias && tensors_.contains("final_logits_bias")) bias = floats(tensors_.at("final_logits_bias"));
    bias.push_back(-INFINITY);
    tensors_["final_logits_bias"] = {"final_logits_bias", "F32", {1, std::ssize(bias)}, bytes_of(bias)};
    if (choices_.has_positions) {
      TestTensor copy = tensors_.at("encoder.embed_positions.weight");
      copy.name = "decoder.embed_positions.weight";
      tensors_[copy.name] = copy;
    }
    config_.set("vocab_size", rows_ + 1);
    config_.set("decoder_vocab_size", target_rows_ + 1);
    config_.set("pad_token_id", target_rows_);
    config_.set("decoder_start_token_id", target_rows_);
    config_.set("scale_embedding", !choices_.has_positions);
    config_.set("encoder_attention_heads", *config_.find("decoder_attention_heads"));
    if (!choices_.has_positions) config_.set("max_position_embeddings", 512);
    for (const auto& [key, value] : choices_.options) {
      if (key == "transformer-ffn-activation")
        config_.set("activation_function", value == "gelu" ? "quick_gelu" : value);
      if (key == "dec-depth") config_.set("decoder_layers", *Json::parse(value));
    }
    to.write("config.json", config_.dump());
    std::vector<TestTensor> list;
    for (const auto& [name, tensor] : tensors_) list.push_back(tensor);
    to.write("model.safetensors", safetensors_bytes(list));
  }

  std::string dir_;
  Choices choices_;
  std::map<std::string, TestTensor> tensors_;  // by name, without "model."
  Json config_;
  bool is_pegasus_ = false, is_shared_ = false;
  int64_t rows_ = 0, target_rows_ = 0;
  NpzWriter writer_;
};

class ForeignMarian : public TinyModelTest {
 protected:
  // Of a folder that does not load.
  std::string error_of(const std::string& model) {
    EngineConfig config = this->config();
    config.model = model;
    const auto loaded = load_engine(config, clock_);
    EXPECT_FALSE(loaded.ok());
    return loaded.ok() ? "" : error_message(loaded.status());
  }
  std::string error_with(const std::string& key, const std::string& value) {
    const TestFolder marian, transformers;
    Converted("marian-float16", {.options = {{key, value}}}).write(marian, transformers);
    const std::string error = error_of(marian.path());
    EXPECT_THAT(error, HasSubstr("model.npz: special:model.yml: " + key)) << error;
    return error;
  }
};

TEST_F(ForeignMarian, AnswersAsItsFolder) {
  const std::pair<const char*, Choices> models[] = {
      {"marian-float16", {}},
      {"marian-float16", {.has_positions = true, .options = {{"transformer-ffn-activation", "gelu"}}}},
      {"marian-shortlist", {.has_bias = false}},
      {"marian-two-vocabularies", {}},
      {"pegasus-untied", {}},
      {"pegasus-untied", {.is_legacy = true, .options = {{"transformer-ffn-activation", "swish"}}}}};
  for (const auto& [name, choices] : models) {
    SCOPED_TRACE(name);
    const TestFolder marian, transformers;
    Converted model(name, choices);
    model.write(marian, transformers);
    const Answers wanted = answers_of(transformers.path(), "none", model.start());
    EXPECT_EQ(wanted.size(), 20u);
    EXPECT_EQ(answers_of(marian.path(), "none", model.start()), wanted);
    EXPECT_EQ(answers_of(marian.path() + "/model.npz", "none", model.start()), wanted);
    EXPECT_EQ(answers_of(marian.path(), "int8", model.start()), answers_of(transformers.path(), "int8", model.start()));
    for (const auto& [id, answer] : wanted) {
      for (const auto& [tokens, sum] : answer) {
        EXPECT_TRUE(std::isfinite(sum));
        EXPECT_THAT(tokens, ::testing::Not(::testing::Contains(model.start())));
      }
    }
  }
}

TEST_F(ForeignMarian, LayersOfTheDecoderMayShareTheirParameters) {
  const TestFolder marian, transformers, plain;
  Converted tied("marian-two-vocabularies",
                 {.options = {{"dec-depth", "3"}, {"transformer-tied-layers", "[1, 2, 1]"}}});
  tied.write(marian, transformers);
  // The same as a folder of three layers, of which the third is the first.
  std::vector<TestTensor> list = read_tensors(transformers.path());
  const std::vector<TestTensor> two = list;
  for (TestTensor tensor : two) {
    const size_t at = tensor.name.find("decoder.layers.0.");
    if (at == std::string::npos) continue;
    tensor.name.replace(at, 17, "decoder.layers.2.");
    list.push_back(tensor);
  }
  plain.write("model.safetensors", safetensors_bytes(list));
  plain.write("config.json", *read_file(transformers.path() + "/config.json", size_t{1} << 20));
  EXPECT_EQ(answers_of(marian.path(), "none", tied.start()), answers_of(plain.path(), "none", tied.start()));
}

TEST_F(ForeignMarian, APackedFolderAnswersAsItself) {
  const TestFolder marian, transformers, out;
  Converted model("marian-float16");
  model.write(marian, transformers);
  EngineConfig config = this->config();
  config.model = marian.path() + "/model.npz";
  const std::string packed = out.path() + "/packed";
  const auto result = testing::pack(config, packed);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(answers_of(packed, "none", model.start()), answers_of(marian.path(), "none", model.start()));
  EXPECT_FALSE(std::filesystem::exists(packed + "/model.npz"));
}

TEST_F(ForeignMarian, IsFoundAmongTheFilesOfARelease) {
  const TestFolder marian, transformers;
  Converted("marian-float16").write(marian, transformers);
  const std::string file = marian.path() + "/model.npz";
  EXPECT_EQ(foreign_file(marian.path()), file);
  marian.write("lex.s2t.bin", "a shortlist");
  marian.write("model.npz.optimizer.npz", "sums of gradients");
  marian.write("decoder.yml",
               "models:\n  - model.npz\nvocabs:\n  - a/x.vocab.yml\n  - a/x.vocab.yml\nbeam-size: 6\nnormalize: 0.5\n");
  marian.write("y.vocab.yml", "another's");
  EXPECT_EQ(foreign_file(marian.path()), file);
  const auto files = ModelFiles::open(marian.path());
  ASSERT_TRUE(files.ok()) << files.status();
  const auto generation = files->folder().read("generation_config.json", 1000);
  EXPECT_EQ(*generation, R"({"num_beams": 6, "length_penalty": 0.5})");
  marian.write("config.json", R"({"model_type": "marian"})");
  EXPECT_EQ(foreign_file(marian.path()), file) << "transformers' config.json, and no weights of its";
  marian.write("model.safetensors", "");
  EXPECT_EQ(foreign_file(marian.path()), std::nullopt) << "of transformers, and a file beside it";
  const TestFolder two;
  two.write("a.npz", NpzWriter().bytes());
  EXPECT_EQ(foreign_file(two.path()), std::nullopt) << "no array in it";
}

TEST_F(ForeignMarian, RefusesOtherModelsByTheirOption) {
  EXPECT_THAT(error_with("transformer-decoder-autoreg", "rnn\ndec-cell: ssru"),
              HasSubstr("\"rnn\" is not supported; self-attention is (dec-cell is ssru)"));
  EXPECT_THAT(error_with("transformer-decoder-autoreg", "average-attention"), HasSubstr("\"average-attention\""));
  EXPECT_THAT(error_with("type", "s2s"), HasSubstr("\"s2s\" is not supported; transformer is"));
  EXPECT_THAT(error_with("transformer-ffn-activation", "glu"), HasSubstr("\"glu\" is not supported; relu, swish"));
  EXPECT_THAT(error_with("transformer-ffn-depth", "3"), HasSubstr("\"3\" is not supported; 2 is"));
  EXPECT_THAT(error_with("transformer-postprocess", "dhn"), HasSubstr("\"dhn\" is not supported"));
  EXPECT_THAT(error_with("transformer-postprocess-emb", "nd"), HasSubstr("\"nd\" is not supported"));
  EXPECT_THAT(error_with("transformer-postprocess-top", "n"), HasSubstr("\"n\" is not supported"));
  EXPECT_THAT(error_with("transformer-preprocess", "r"), HasSubstr("\"r\" is not supported"));
  EXPECT_THAT(error_with("transformer-no-projection", "true"), HasSubstr("\"true\" is not supported; false is"));
  EXPECT_THAT(error_with("lemma-dim-emb", "512"), HasSubstr("\"512\" is not supported; 0 is"));
  EXPECT_THAT(error_with("ulr", "true"), HasSubstr("\"true\" is not supported"));
  EXPECT_THAT(error_with("enc-depth", "\"\""), HasSubstr("is missing, expected 1 to 1000"));
  EXPECT_THAT(error_with("dec-depth", "-1"), HasSubstr("\"-1\", expected 1 to 1000"));
  EXPECT_THAT(error_with("transformer-tied-layers", "[1, 2]"), HasSubstr("a number for each of 3 layers"));
}

TEST_F(ForeignMarian, SaysWhatIsMissingOrTooMuch) {
  const auto with = [&](const std::string& key, const std::string& value) {
    const TestFolder marian, transformers;
    Converted("marian-float16", {.options = {{key, value}}}).write(marian, transformers);
    return error_of(marian.path());
  };
  EXPECT_THAT(with("dec-depth", "4"), HasSubstr("model.npz: array \"decoder_l4_self_Wq\": is missing"));
  EXPECT_THAT(with("dec-depth", "2"),
              AllOf(HasSubstr("array \"decoder_l3_"), HasSubstr("no Marian with these options")));
  EXPECT_THAT(with("transformer-train-position-embeddings", "true"), HasSubstr("array \"Wpos\": is missing"));
  EXPECT_THAT(with("transformer-heads", "3"), HasSubstr("model.npz/config.json: encoder_attention_heads: 3 heads"));
  const TestFolder dir;
  NpzWriter writer;
  writer.array("a", "<f4", {1}, "1234");
  dir.write("model.npz", writer.bytes());
  EXPECT_THAT(error_of(dir.path()), HasSubstr("array \"special:model.yml\": is missing: this is no model of Marian"));
}

TEST_F(ForeignMarian, VocabulariesHaveAllForms) {
  const TestFolder marian, transformers;
  Converted("marian-float16").write(marian, transformers);
  const std::string name = marian.path() + "/x.vocab.yml";
  std::filesystem::remove(name);
  EXPECT_THAT(error_of(marian.path()), HasSubstr("has no vocabulary of a Marian model"));
  Json::Object json;
  std::string lines, missing;
  for (int64_t i = 0; i < 420; ++i) {
    const std::string token = i == 0 ? "</s>" : str_cat("t", i);
    json.emplace_back(token, Json(i));
    lines += token + "\r\n";
    if (i != 7) missing += str_cat(token, ": ", i, "\n");
  }
  const auto text_of = [&](const char* file, const std::string& text) {
    marian.write(file, text);
    const auto files = ModelFiles::open(marian.path());
    std::filesystem::remove(std::filesystem::path(marian.path()) / file);
    if (!files.ok()) return error_message(files.status());
    const Json made = *Json::parse(*files->folder().read("vocab.json", size_t{1} << 20));
    EXPECT_EQ(made.find("</s>")->as_int(), 0);
    EXPECT_EQ(made.find("t419")->as_int(), 419);
    EXPECT_EQ(made.find("<pad>")->as_int(), 420);
    EXPECT_EQ(made.as_object().size(), 421u);
    EXPECT_THAT(*files->folder().read("config.json", 10000), HasSubstr("\"eos_token_id\": 0"));
    return std::string();
  };
  EXPECT_EQ(text_of("vocab.json", Json(json).dump()), "");
  EXPECT_EQ(text_of("vocab.txt", lines), "");
  EXPECT_THAT(text_of("vocab.yml", missing), HasSubstr("vocab.yml: has no token of id 7, but the model has 420"));
  EXPECT_THAT(text_of("vocab.yml", missing + "x: 6\n"), HasSubstr("two tokens have the id 6"));
  EXPECT_THAT(text_of("vocab.yml", missing + "x: -7\n"), HasSubstr("its id is negative"));
  EXPECT_THAT(text_of("vocab.yml", missing + "x: y\n"), HasSubstr("token \"x\": its id is no whole number"));
  EXPECT_THAT(text_of("vocab.txt", lines.substr(6)), HasSubstr("has no token of id 419"));
  EXPECT_THAT(text_of("vocab.fsv", ""), HasSubstr("factored vocabularies are not supported"));
  EXPECT_THAT(text_of("vocab.spm", "x"), HasSubstr("vocab.spm"));
  marian.write("a.vocab.yml", "");
  marian.write("b.vocab.yml", "");
  EXPECT_THAT(error_of(marian.path()), HasSubstr("which of a.vocab.yml, b.vocab.yml are the model's vocabularies?"));
}

}  // namespace
}  // namespace transept::testing
