// CTranslate2's folders: how variables become tensors and configurations, and what is refused by name.
#include "foreign/ct2_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/folder_testing.h"
#include "base/json.h"
#include "foreign/ct2_testing.h"
#include "weights/weight_map.h"

namespace transept {
namespace {

using ::testing::AllOf;
using testing::Ct2Writer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;

std::vector<float> counted(size_t count, float first = 0) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

// A T5 with one layer a side, 4 wide, and a vocabulary of 3. embedding_scale: a number instead of a switch.
Ct2Writer small_t5(const std::string& spec = "TransformerSpec", std::optional<float> embedding_scale = {}) {
  Ct2Writer file(spec);
  file.int8("decoder/embeddings/weight", 3, {1, 2, 3, 4, -5, 6, 7, 8, 0, 0, 0, 0});
  file.alias("encoder/embeddings_0/weight", "decoder/embeddings/weight");
  file.alias("decoder/projection/weight", "decoder/embeddings/weight");
  for (const std::string side : {"encoder", "decoder"}) {
    const std::string layer = side + "/layer_0/";
    if (side == "decoder") {
      file.floats(layer + "self_attention/linear_0/weight", {12, 4}, counted(48));
    } else {
      file.int8(layer + "self_attention/linear_0/weight", 12, counted(48));
    }
    file.floats(layer + "self_attention/linear_1/weight", {4, 4}, counted(16));
    file.floats(layer + "self_attention/layer_norm/gamma", {4}, counted(4));
    file.floats(layer + "self_attention/relative_attention_bias", {8, 2}, counted(16));
    file.number(layer + "self_attention/queries_scale", 1);
    if (side == "decoder") {
      file.floats(layer + "attention/linear_0/weight", {4, 4}, counted(16));
      file.int16(layer + "attention/linear_1/weight", 8, counted(32, 1));
      file.floats(layer + "attention/linear_2/weight", {4, 4}, counted(16));
      file.floats(layer + "attention/layer_norm/gamma", {4}, counted(4));
    }
    file.floats(layer + "ffn/linear_0/weight", {6, 4}, counted(24));
    file.floats(layer + "ffn/linear_1/weight", {4, 6}, counted(24));
    file.floats(layer + "ffn/layer_norm/gamma", {4}, counted(4));
    file.floats(side + "/layer_norm/gamma", {4}, counted(4));
    file.integer(side + "/num_heads", 2);
    if (embedding_scale.has_value()) {
      file.number(side + "/scale_embeddings", *embedding_scale);
    } else {
      file.flag(side + "/scale_embeddings", 0);
    }
  }
  file.number("decoder/scale_outputs", 0.5f);
  return file;
}

class Ct2Model : public ::testing::Test {
 protected:
  Ct2Model() {
    dir_.write("config.json", R"({"eos_token": "</s>", "bos_token": "<pad>", "decoder_start_token": "<pad>"})");
    dir_.write("shared_vocabulary.json", R"(["<pad>", "</s>", "a"])");
  }

  StatusOr<ForeignModel> open(const Ct2Writer& file) const {
    dir_.write("model.bin", file.bytes());
    return open_ct2_model(dir_.path() + "/model.bin");
  }
  std::string error(const Ct2Writer& file) const {
    const StatusOr<ForeignModel> opened = open(file);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? "" : error_message(opened.status());
  }

  static std::vector<float> rows_of(WeightMap& weights, std::string_view name, int64_t n, int64_t k) {
    const auto source = weights.matrix(name, {n, k}, WeightUse::kPacked);
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<float> values(static_cast<size_t>(n * k));
    if (source.ok()) (*source)->read_rows(0, n, {0, k}, values);
    return values;
  }

  TestFolder dir_;
};

TEST_F(Ct2Model, FusedMatricesAreSplitAndCodesDivided) {
  StatusOr<ForeignModel> opened = open(small_t5());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->tensors.quantization, "ctranslate2 int16 and int8");
  const Json config = *Json::parse(*opened->folder.read("config.json", 4096));
  EXPECT_EQ(config.find("model_type")->as_string(), "t5");
  EXPECT_EQ(config.find("d_kv")->as_int(), 2);
  EXPECT_EQ(config.find("d_ff")->as_int(), 6);
  EXPECT_EQ(config.find("vocab_size")->as_int(), 3);
  EXPECT_EQ(config.find("eos_token_id")->as_int(), 1);
  EXPECT_EQ(config.find("decoder_start_token_id")->as_int(), 0);
  EXPECT_EQ(config.find("relative_attention_num_buckets")->as_int(), 8);
  EXPECT_TRUE(config.find("tie_word_embeddings")->as_bool());
  const auto weights = *WeightMap::of(std::move(opened->tensors));
  const std::string self = "decoder.block.0.layer.0.SelfAttention.";
  EXPECT_EQ(rows_of(*weights, self + "q.weight", 4, 4), counted(16));
  EXPECT_EQ(rows_of(*weights, self + "k.weight", 4, 4), counted(16, 16));
  EXPECT_EQ(rows_of(*weights, self + "v.weight", 4, 4), counted(16, 32));
  // Each row by its own scale.
  for (const auto& [part, last] : {std::pair{"q", 15.0f}, {"k", 31.0f}, {"v", 47.0f}}) {
    EXPECT_EQ(rows_of(*weights, str_cat("encoder.block.0.layer.0.SelfAttention.", part, ".weight"), 4, 4)[15],
              127.0f / (127.0f / last));
  }
  // 1024 / 32 is exact: whole numbers come back as they were.
  EXPECT_EQ(rows_of(*weights, "decoder.block.0.layer.1.EncDecAttention.v.weight", 4, 4), counted(16, 17));
  const std::vector<float> table = rows_of(*weights, "shared.weight", 3, 4);
  EXPECT_EQ(table[0], 32.0f / (127.0f / 4));
  EXPECT_EQ(table[3], 4.0f);
  EXPECT_EQ(table[4], -79.0f / (127.0f / 8));
  EXPECT_THAT(std::vector<float>(table.begin() + 8, table.end()), ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(weights->matrix("shared.weight", {4, 4}, WeightUse::kRead).ok()) << "there are three rows";
}

TEST_F(Ct2Model, IsRefusedByName) {
  EXPECT_THAT(error(small_t5("Wav2Vec2Spec")), HasSubstr("\"Wav2Vec2Spec\" of CTranslate2 is not supported"));
  const auto changed = [&](const std::function<void(Ct2Writer&)>& change) {
    Ct2Writer file = small_t5();
    change(file);
    return error(file);
  };
  EXPECT_THAT(changed([](Ct2Writer& file) { file.floats("decoder/layer_0/gate/weight", {1}, {1}); }),
              AllOf(HasSubstr("model.bin: variable \"decoder/layer_0/gate/weight\""), HasSubstr("no T5 has it")));
  EXPECT_THAT(changed([](Ct2Writer& file) { file.floats("decoder/layer_0/ffn/linear_0/bias", {6}, counted(6)); }),
              HasSubstr("no T5 has it"));
  EXPECT_THAT(changed([](Ct2Writer& file) { file.flag("decoder/alibi", 1); }), HasSubstr("decoder/alibi"));
  EXPECT_THAT(changed([](Ct2Writer& file) { file.flag("decoder/softcapping", 0); }), HasSubstr("no T5 has it"));
  EXPECT_THAT(changed([](Ct2Writer& file) { file.flag("encoder/activation", 2); }), HasSubstr("differs"));
  EXPECT_THAT(changed([](Ct2Writer& file) {
                file.floats("encoder/embeddings_1/weight", {1, 4}, counted(4));
              }),
              HasSubstr("several embeddings"));
  dir_.write("shared_vocabulary.json", R"(["<pad>", "</s>"])");
  EXPECT_THAT(error(small_t5()), HasSubstr("shared_vocabulary.json: 2 tokens, but the model has 3"));
  dir_.write("shared_vocabulary.json", R"(["<pad>", "</s>", 3])");
  EXPECT_THAT(error(small_t5()), HasSubstr("token 2: expected a string"));
  dir_.write("config.json", R"({"quantization_type": 1, "quantization_bits": 4})");
  EXPECT_THAT(error(small_t5()), HasSubstr("config.json: quantization_type: 1 (AWQ inside"));
}

TEST_F(Ct2Model, TokensMayBeLines) {
  std::filesystem::remove(dir_.path() + "/shared_vocabulary.json");
  EXPECT_THAT(error(small_t5()), HasSubstr("has no tokens; one of shared_vocabulary.json, shared_vocabulary.txt"));
  dir_.write("shared_vocabulary.txt", "a\n</s>\n<pad>\n");
  const StatusOr<ForeignModel> opened = open(small_t5());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Json config = *Json::parse(*opened->folder.read("config.json", 4096));
  EXPECT_EQ(config.find("decoder_start_token_id")->as_int(), 2);
}

TEST_F(Ct2Model, EmbeddingsMayBeScaledByOne) {
  EXPECT_TRUE(open(small_t5("TransformerSpec", 1.0f)).ok());
  EXPECT_THAT(error(small_t5("TransformerSpec", 2.0f)),
              HasSubstr("scale_embeddings\": is not supported: a T5 has none"));
  EXPECT_THAT(error(small_t5("TransformerSpec", 3.0f)), HasSubstr("3 is not supported; 1 and 2 are"));
}

TEST_F(Ct2Model, ScalesAreChecked) {
  Ct2Writer file = small_t5();
  file.variable("encoder/layer_1/self_attention/linear_0/weight", {3, 4}, 1, std::string(12, 'x'));
  EXPECT_THAT(error(file), HasSubstr("\"encoder/layer_1/self_attention/relative_attention_bias\": is missing"));
  file.alias("encoder/layer_1/self_attention/relative_attention_bias",
             "encoder/layer_0/self_attention/relative_attention_bias");
  EXPECT_THAT(error(file), HasSubstr("linear_0/weight_scale\": is missing"));
  file.floats("encoder/layer_1/self_attention/linear_0/weight_scale", {2}, {1, 1});
  EXPECT_THAT(error(file), HasSubstr("linear_0/weight_scale\": expected one F32, or one for each of 3 rows"));
}

}  // namespace
}  // namespace transept
