// What a folder is instead of a model, through the entries that verbs use.
#include "startup/recognise_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "core/capabilities.h"
#include "startup/load_engine.h"
#include "startup/pack_model.h"
#include "weights/safetensors_testing.h"
#include "weights/torch_file_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::number_bytes;
using ::testing::StartsWith;
using testing::TestFolder;

const std::string kPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
const std::string kConfig =
    R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "vocab_size": 8})";

// Of a decoder alone: none that is read (foreign/ct2_model.h).
std::string ctranslate2() {
  return number_bytes(uint32_t{6}) + number_bytes(uint16_t{23}) + std::string("TransformerDecoderSpec\0", 23);
}

// The error of starting with the folder; packing says the same.
std::string why(const TestFolder& dir) {
  EngineConfig config;
  config.model = dir.path();
  const SteadyClock clock;
  const Status loaded = load_engine(config, clock).status();
  const Status packed = pack_model(config, dir.path() + "-packed", [] { return true; }).status();
  EXPECT_EQ(packed.message(), loaded.message());
  return error_message(loaded);
}

TEST(RecogniseModel, NamesFoldersOfOtherPrograms) {
  const TestFolder dir;
  EXPECT_THAT(why(dir), HasSubstr("config.json"));
  dir.write("model.bin", ctranslate2());
  EXPECT_EQ(why(dir), dir.path() +
                          "/model.bin: is a model of CTranslate2 (TransformerDecoderSpec); take the folder of the " +
                          "original model in Hugging Face layout");
  dir.write("config.json", kConfig);
  EXPECT_THAT(why(dir), HasSubstr("is a model of CTranslate2"));
  dir.write("README.md", "---\nlanguage: en\nbase_model:\n- Helsinki-NLP/opus-mt-en-de\n---\n# Card\n");
  EXPECT_THAT(why(dir), HasSubstr("Hugging Face layout, Helsinki-NLP/opus-mt-en-de"));
  dir.write("README.md", "base_model: org/this-is-no-front-matter\n");
  EXPECT_THAT(why(dir), ::testing::EndsWith("Hugging Face layout"));
  dir.write("config.json", R"({"model_type": "bart", "_name_or_path": "facebook/bart-base"})");
  EXPECT_THAT(why(dir), HasSubstr("layout, facebook/bart-base"));
  dir.write("config.json", R"({"model_type": "bart", "_name_or_path": "/models/bart"})");
  EXPECT_THAT(why(dir), ::testing::EndsWith("Hugging Face layout"));
}

TEST(RecogniseModel, NamesThePointerOrThePageThatFailed) {
  const TestFolder dir;
  dir.write("config.json", "<!doctype html><html>");
  dir.write("model.safetensors", kPointer);
  EXPECT_THAT(why(dir),
              AllOf(StartsWith(dir.path() + "/config.json: is a web page"), HasSubstr("fetch the file itself")));
  dir.write("config.json", kConfig);
  EXPECT_THAT(why(dir), AllOf(StartsWith(dir.path() + "/model.safetensors: is a pointer of git-lfs"),
                              HasSubstr("run `git lfs pull`")));
  // A pointer that nobody asked for explains nothing.
  dir.write("model.safetensors", "broken");
  dir.write("tf_model.h5", kPointer);
  EXPECT_THAT(why(dir), HasSubstr("model.safetensors: only 6 bytes"));
}

TEST(RecogniseModel, NamesAdaptersAndShards) {
  const TestFolder dir;
  dir.write("adapter_model.safetensors", testing::safetensors_bytes({}));
  dir.write("adapter_config.json", R"({"peft_type": "LORA", "base_model_name_or_path": "google/flan-t5-base"})");
  EXPECT_EQ(why(dir), str_cat(dir.path(), "/adapter_config.json: ", feature_row(Feature::kLora).refusal,
                              "; the model is google/flan-t5-base"));
  const TestFolder shards;
  shards.write("config.json", kConfig);
  shards.write("model-00002-of-00003.safetensors", testing::safetensors_bytes({}));
  EXPECT_THAT(why(shards), HasSubstr("no index of shards; get model.safetensors.index.json"));
  shards.write("model.safetensors.index.json", R"({"weight_map": {"a": "model-00001-of-00003.safetensors"}})");
  EXPECT_THAT(why(shards), HasSubstr("the shard model-00001-of-00003.safetensors is missing"));
}

// Of several kinds the first of FileKind's order says what the folder is.
TEST(RecogniseModel, LooksIntoOnnxFoldersAndPrefersWhatSaysMore) {
  const TestFolder dir;
  dir.write("config.json", kConfig);
  EXPECT_THAT(why(dir), HasSubstr("none of model.safetensors, model.safetensors.index.json, pytorch_model.bin"));
  dir.write("flax_model.msgpack", "\x81\xa5model");
  EXPECT_THAT(why(dir), HasSubstr("flax_model.msgpack: is a Flax model"));
  std::filesystem::create_directory(dir.path() + "/onnx");
  dir.write("onnx/encoder_model.onnx", "\x08\x07\x12");
  EXPECT_THAT(why(dir), HasSubstr("onnx/encoder_model.onnx: is a graph in ONNX"));
}

TEST(RecogniseModel, LeavesOtherErrorsAlone) {
  const TestFolder dir;
  const Status status = invalid_argument("--dtype x: unknown");
  EXPECT_EQ(explain_model_error(status, dir.path()), status);
  EXPECT_TRUE(explain_model_error(ok_status(), dir.path()).ok());
  dir.write("model.safetensors", testing::safetensors_bytes({}));
  dir.write("model.bin", ctranslate2());
  EXPECT_EQ(explain_model_error(status, dir.path()), status) << "there are weights that are read";
}

TEST(RecogniseModel, AFileIsNamedToo) {
  const TestFolder dir;
  dir.write("notes.txt", "hello");
  EXPECT_THAT(error_message(model_is_file(dir.path() + "/notes.txt")), HasSubstr("is a file; give the folder"));
  dir.write("model.safetensors", testing::safetensors_bytes({}));
  EXPECT_THAT(error_message(model_is_file(dir.path() + "/model.safetensors")),
              HasSubstr("give the folder that holds it"));
  dir.write("pytorch_model.bin", testing::torch_zip("}", {}));
  EXPECT_THAT(error_message(model_is_file(dir.path() + "/pytorch_model.bin")), HasSubstr("what is read is a folder"));
  dir.write("model.bin", ctranslate2());
  EXPECT_THAT(
      error_message(model_is_file(dir.path() + "/model.bin")),
      AllOf(StartsWith("model " + dir.path() + "/model.bin: is a model of CTranslate2"), HasSubstr("original")));
}

}  // namespace
}  // namespace transept
