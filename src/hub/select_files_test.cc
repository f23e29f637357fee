#include "hub/select_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Names = std::vector<std::string>;

SelectedFiles select(const Names& names, ModelParts parts = ModelParts::kAll) {
  return select_files(names, parts).value();
}

TEST(SelectFilesTest, WhatAFolderIsReadFor) {
  const SelectedFiles selected =
      select({".gitattributes", "README.md", "config.json", "vocab.json", "merges.txt", "onnx/config.json",
              "lex.50.50.ende.s2t.bin", "model.safetensors", "tf_model.h5", "tokenizer.json"});
  EXPECT_THAT(selected.small, UnorderedElementsAre("config.json", "vocab.json", "merges.txt", "tokenizer.json",
                                                   "lex.50.50.ende.s2t.bin"));
  EXPECT_THAT(selected.weights, ElementsAre("model.safetensors"));
  EXPECT_EQ(selected.index, "");
}

TEST(SelectFilesTest, OneFormOfWeights) {
  const Names all = {"pytorch_model.bin.index.json", "pytorch_model.bin", "model.safetensors.index.json",
                     "model.safetensors"};
  const auto chosen = [&](size_t count) {
    Names names(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    names.emplace_back("config.json");
    const SelectedFiles selected = select(names);
    return selected.weights.empty() ? selected.index : selected.weights.at(0);
  };
  for (size_t count = 1; count <= all.size(); ++count) EXPECT_EQ(chosen(count), all[count - 1]);
  EXPECT_THAT(select({"config.json", "pytorch_model.bin.index.json"}).small,
              UnorderedElementsAre("config.json", "pytorch_model.bin.index.json"));
}

TEST(SelectFilesTest, OfCTranslate2TheListsOfTokensToo) {
  const Names whisper = {"config.json", "model.bin", "tokenizer.json", "vocabulary.txt", "preprocessor_config.json"};
  const SelectedFiles selected = select(whisper);
  EXPECT_THAT(selected.weights, ElementsAre("model.bin"));
  EXPECT_TRUE(is_ctranslate2(selected));
  EXPECT_THAT(selected.small,
              UnorderedElementsAre("config.json", "tokenizer.json", "vocabulary.txt", "preprocessor_config.json"));
  EXPECT_THAT(select({"config.json", "model.bin", "source.spm", "target.spm", "source_vocabulary.json",
                      "target_vocabulary.json", "shared_vocabulary.json"})
                  .small,
              UnorderedElementsAre("config.json", "source.spm", "target.spm", "source_vocabulary.json",
                                   "target_vocabulary.json", "shared_vocabulary.json"));
  const SelectedFiles of_transformers = select({"config.json", "model.bin", "pytorch_model.bin", "vocabulary.json"});
  EXPECT_THAT(of_transformers.weights, ElementsAre("pytorch_model.bin"));
  EXPECT_THAT(of_transformers.small, ElementsAre("config.json"));
  EXPECT_FALSE(is_ctranslate2(of_transformers));
}

TEST(SelectFilesTest, ATokenizerNeedsNoWeights) {
  const SelectedFiles selected =
      select({"config.json", "spiece.model", "model.safetensors", "lex.s2t.bin"}, ModelParts::kTokenizer);
  EXPECT_THAT(selected.small, UnorderedElementsAre("config.json", "spiece.model"));
  EXPECT_THAT(selected.weights, IsEmpty());
  EXPECT_TRUE(select_files(Names{"config.json"}, ModelParts::kTokenizer).ok());
}

TEST(SelectFilesTest, WhatIsThereInstead) {
  const auto message = [](const Names& names) { return error_message(select_files(names, ModelParts::kAll).status()); };
  EXPECT_THAT(message({"README.md", ".gitattributes", "x/y", "a.gguf"}),
              HasSubstr("it has a.gguf: models of llama.cpp"));
  EXPECT_THAT(message({"1", "2", "3", "4", "5", "6", "7"}), ::testing::EndsWith("it has 1, 2, 3, 4, 5, 6, ..."));
  EXPECT_THAT(message({}), HasSubstr("nothing else"));
  EXPECT_THAT(message({"config.json", "tf_model.h5"}), HasSubstr("tf_model.h5, config.json: weights of TensorFlow"));
  EXPECT_THAT(message({"README.md", "adapter_config.json", "adapter_model.safetensors"}),
              HasSubstr("it has adapter_config.json, adapter_model.safetensors: an adapter (LoRA), not a model"));
  for (const char* weights : {"model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"}) {
    EXPECT_EQ(message({"flax_model.msgpack", "adapter_config.json", weights}),
              str_cat("the repository has ", weights, " and no config.json, which says what model it is"));
  }
  EXPECT_THAT(message({"ggml-tiny.bin", "x.pt"}),
              HasSubstr("it has ggml-tiny.bin, x.pt: models of whisper.cpp, which are read as files"));
  EXPECT_THAT(message({"config.json", "onnx/model.onnx", "tokenizer.json"}),
              HasSubstr("it has onnx/model.onnx, config.json, tokenizer.json: graphs in ONNX, which are not read"));
}

TEST(SelectFilesTest, Shards) {
  EXPECT_THAT(*parse_shards(R"({"metadata": {}, "weight_map": {"a": "2.bin", "b": "1.bin", "c": "2.bin"}})"),
              ElementsAre("1.bin", "2.bin"));
  for (const char* text :
       {"", "{}", R"({"weight_map": []})", R"({"weight_map": {}})", R"({"weight_map": {"a": 1}})",
        R"({"weight_map": {"a": "../x"}})", R"({"weight_map": {"a": "/x"}})", R"({"weight_map": {"a": "x/y"}})",
        R"({"weight_map": {"a": ""}})", R"({"weight_map": {"a": ".x"}})"}) {
    EXPECT_FALSE(parse_shards(text).ok()) << text;
  }
}

}  // namespace
}  // namespace transept
