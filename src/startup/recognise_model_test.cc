// What a folder is instead of a model, through the entries that verbs use.
#include "startup/recognise_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "core/capabilities.h"
#include "startup/load_engine.h"
#include "startup/pack_model_testing.h"
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

std::string gguf(std::string_view architecture) {
  const auto string = [](std::string_view text) { return number_bytes(uint64_t{text.size()}).append(text); };
  return "GGUF" + number_bytes(uint32_t{3}) + number_bytes(uint64_t{0}) + number_bytes(uint64_t{1}) +
         string("general.architecture") + number_bytes(uint32_t{8}) + string(architecture);
}

std::string ggml() { return number_bytes(uint32_t{0x67676d6c}) + std::string(44, '\x01'); }

// The error of starting with the folder; packing says the same.
std::string why(const TestFolder& dir) {
  EngineConfig config;
  config.model = dir.path();
  const SteadyClock clock;
  const Status loaded = load_engine(config, clock).status();
  const Status packed = testing::pack(config, dir.path() + "-packed").status();
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

// CTranslate2's model under a name of transformers, beside its own config.json and without one.
TEST(RecogniseModel, NamesTheModelThatNeedsNoSettings) {
  const TestFolder dir;
  const std::string model =
      number_bytes(uint32_t{6}) + number_bytes(uint16_t{16}) + std::string("TransformerSpec\0", 16);
  const std::string expected =
      str_cat(dir.path(), "/pytorch_model.bin: is a model of CTranslate2 (TransformerSpec); such ",
              "files are read as they are: give the file itself as MODEL");
  dir.write("pytorch_model.bin", model);
  EXPECT_EQ(why(dir), expected);
  dir.write("config.json", R"({"add_source_bos": false})");
  EXPECT_EQ(why(dir), expected);
  dir.write("config.json", kConfig);
  EXPECT_EQ(why(dir), expected);
}

// Settings that are missing are told, whatever lies beside whole weights.
TEST(RecogniseModel, NamesTheMissingSettings) {
  const TestFolder dir;
  dir.write("flax_model.msgpack", "\x81\xa5model");
  dir.write("model.safetensors", testing::safetensors_bytes({}));
  EXPECT_EQ(why(dir), dir.path() + "/config.json: No such file or directory");
  dir.write("adapter_config.json", R"({"peft_type": "LORA"})");
  EXPECT_EQ(why(dir), dir.path() + "/config.json: No such file or directory");
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

// A sound config.json beside a file of weights that has the right name and another content.
struct WrongContent {
  std::string content;
  std::string_view message;  // behind the path
};

std::vector<WrongContent> strange_contents() {
  const std::string dims = "}(" + testing::pickled("n_mels") + testing::pickled(80) + "u";
  const std::string openai =
      testing::torch_zip("}(" + testing::pickled("dims") + dims + testing::pickled("model_state_dict") + "}u", {});
  return {
      {"Entry not found",
       "is a server's error and not the file itself: \"Entry not found\"; fetch the file itself; if the "
       "model is private or gated, with a token of an account that may read it"},
      {R"({"error":"Access to model a/b is restricted"})",
       "is a server's error and not the file itself: \"Access to model"},
      {"<html></html>", "is a web page (HTML) and not the file itself; fetch the file itself;"},
      {kPointer, "is a pointer of git-lfs and not the file itself; run `git lfs pull` in its folder"},
      {"These are my weights.\nx",
       "is a text and not the file itself: \"These are my weights.\"; fetch the file itself"},
      {"", "is an empty file; fetch it again"},
      {std::string("\x1F\x8B\x08\0\0\0\0\0\0\x03", 10),
       "is a file compressed with gzip; unpack it, and put what is inside in its place"},
      {"\x28\xB5\x2F\xFD and more", "is a file compressed with zstd; unpack it"},
      {std::string(257, '\0') + "ustar", "is a tar archive; unpack it, and give the folder that holds config.json"},
      {testing::zip_bytes({{"readme.txt", "x"}}), "is a zip archive, and none of torch.save; unpack it"},
      {"\x89HDF\r\n\x1a\n", "is a TensorFlow model (HDF5); rename it to tf_model.h5, and convert it with"},
      {"\x81\xa5model\x82\xa1x", "is a Flax model (MessagePack); rename it to flax_model.msgpack, and convert it with"},
      {"\x08\x07\x12\x07pytorch", "is a graph in ONNX; take the folder of the original model in Hugging Face layout"},
      {openai, "is a model of the openai-whisper package; take the folder of the original model"},
      {gguf("t5"),
       "is a GGUF file (llama.cpp) of architecture \"t5\"; such files are read as they are: give the file "
       "itself as MODEL"},
      {gguf("llama"), "is a GGUF file (llama.cpp) of architecture \"llama\"; take the folder of the original model"},
      {ggml(), "is a model of whisper.cpp (ggml); such files are read as they are: give the file itself as MODEL"},
      {ctranslate2(), "is a model of CTranslate2 (TransformerDecoderSpec); take the folder of the original model"},
      {std::string("\x80\x04\x95\x0a\0\0\0\0\0\0\0}\x94.", 14),
       "is a pickle of protocol 4 that torch.save did not write; nothing of it is run here: if you trust it, load it "
       "in Python, and save its tensors with safetensors.torch.save_file, or with torch.save"},
      {testing::zip_bytes({{"m/data.pkl", "\x80\x04}."}}),
       "is a file of torch.save with pickle_protocol=4; nothing of it is run here: if you trust it"},
      {"(dp0\nVa\np1\nI1\ns.", "is a pickle of protocol 0 that torch.save did not write; nothing of it is run"},
      {std::string("<\0h\0t\0m\0l\0>\0", 12), "is a web page (HTML) and not the file itself; fetch the file itself;"},
      {"\x80\x05]\x94(K\x01K\x02"
       "e.",
       "is a pickle of protocol 5 that torch.save did not write; nothing of it is run"},
  };
}

void expect_each(std::string_view name, const TestFolder& dir, const std::vector<WrongContent>& cases) {
  for (const WrongContent& c : cases) {
    dir.write(name, c.content);
    EXPECT_THAT(why(dir), StartsWith(str_cat(dir.path(), "/", name, ": ", c.message)));
  }
}

TEST(RecogniseModel, NamesWeightsOfAnotherContentThanTheirName) {
  const TestFolder safetensors, torch;
  safetensors.write("config.json", kConfig);
  torch.write("config.json", kConfig);
  expect_each("model.safetensors", safetensors, strange_contents());
  expect_each("model.safetensors", safetensors,
              {{testing::torch_zip("}", {}), "is a file of torch.save; rename it to pytorch_model.bin"},
               {testing::torch_legacy("}", {}), "is a file of torch.save; rename it to pytorch_model.bin"}});
  safetensors.write("pytorch_model.bin", testing::torch_zip("}", {}));
  expect_each("model.safetensors", safetensors,
              {{testing::torch_zip("}", {}),
                "is a file of torch.save; move it away, and pytorch_model.bin beside it is read"}});
  expect_each("pytorch_model.bin", torch, strange_contents());
  expect_each("pytorch_model.bin", torch,
              {{testing::safetensors_bytes({}), "is a file of safetensors; rename it to model.safetensors"}});
}

TEST(RecogniseModel, NamesAdaptersByTheirTensors) {
  std::vector<testing::TestTensor> tensors;
  for (const char* matrix : {"A", "B"}) {
    tensors.push_back({.name = str_cat("base_model.model.decoder.layers.0.fc1.lora_", matrix, ".weight"),
                       .dtype = "F32",
                       .shape = {1},
                       .data = std::string(4, '\0')});
  }
  const std::string adapter = testing::safetensors_bytes(tensors);
  const TestFolder folder;
  folder.write("adapter_model.safetensors", adapter);
  EXPECT_THAT(error_message(model_is_file(folder.path() + "/adapter_model.safetensors")),
              AllOf(HasSubstr("is an adapter (LoRA), not a model"), HasSubstr("merge it into its base model")));
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", adapter);
  EXPECT_THAT(why(folder), HasSubstr("/model.safetensors: is an adapter (LoRA), not a model"));
  EXPECT_THAT(error_message(check_no_adapter(folder.path())), HasSubstr("is an adapter (LoRA), not a model"));
}

TEST(RecogniseModel, NamesAdaptersOfOtherMethodsAndPrograms) {
  struct Case {
    std::vector<std::string> names;
    std::string_view what;
  };
  const std::string layer = "base_model.model.decoder.layers.0.fc1";
  const Case cases[] = {{{layer + ".lora_embedding_A", layer + ".lora_embedding_B"}, "LoRA"},
                        {{"lora_unet_fc1.lora_down.weight", "lora_unet_fc1.lora_up.weight"}, "LoRA"},
                        {{"unet.fc1.lora.down.weight", "unet.fc1.lora.up.weight"}, "LoRA"},
                        {{layer + ".hada_w1_a", layer + ".hada_w1_b"}, "LoHa"},
                        {{layer + ".lokr_w1", layer + ".lokr_w2"}, "LoKr"},
                        {{layer + ".ia3_l"}, "IA3"},
                        {{"prompt_embeddings"}, "a prompt"}};
  for (const Case& one : cases) {
    std::vector<testing::TestTensor> tensors;
    for (const std::string& name : one.names) {
      tensors.push_back({.name = name, .dtype = "F32", .shape = {1}, .data = std::string(4, '\0')});
    }
    for (const char* name : {"adapter_model.safetensors", "pytorch_lora_weights.safetensors"}) {
      const TestFolder folder;  // without adapter_config.json
      folder.write(name, testing::safetensors_bytes(tensors));
      EXPECT_THAT(why(folder), HasSubstr(str_cat(name, ": is an adapter (", one.what, "), not a model; ")));
      EXPECT_EQ(why(folder).find("merge") != std::string::npos, one.what != "a prompt") << why(folder);
    }
  }
}

TEST(RecogniseModel, FindsNoAdapterInAModel) {
  const TestFolder folder;
  folder.write("config.json", kConfig);
  folder.write(
      "model.safetensors",
      testing::safetensors_bytes(
          {{.name = "model.decoder.layers.0.fc1.weight", .dtype = "F32", .shape = {1}, .data = std::string(4, '\0')}}));
  EXPECT_EQ(check_no_adapter(folder.path()), ok_status());
}

TEST(RecogniseModel, NamesShardsOfAnotherContentThanTheirName) {
  const TestFolder safetensors, torch;
  safetensors.write("config.json", kConfig);
  safetensors.write("model.safetensors.index.json", R"({"weight_map": {"a": "model-00001-of-00001.safetensors"}})");
  expect_each("model-00001-of-00001.safetensors", safetensors, strange_contents());
  expect_each("model-00001-of-00001.safetensors", safetensors,
              {{testing::torch_zip("}", {}),
                "is a file of torch.save; fetch the shard again; if all shards are so, rename "
                "their index to pytorch_model.bin.index.json"}});
  torch.write("config.json", kConfig);
  torch.write("pytorch_model.bin.index.json", R"({"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}})");
  EXPECT_THAT(why(torch), HasSubstr("the shard pytorch_model-00001-of-00001.bin is missing (of 1): get it too"));
  expect_each("pytorch_model-00001-of-00001.bin", torch, strange_contents());
  expect_each("pytorch_model-00001-of-00001.bin", torch,
              {{testing::safetensors_bytes({}),
                "is a file of safetensors; fetch the shard again; if all shards are so, "
                "rename their index to model.safetensors.index.json"}});
}

// What the readers of weights say of a damaged file of the right kind is more exact.
TEST(RecogniseModel, LeavesDamagedWeightsToTheirReaders) {
  const TestFolder dir;
  dir.write("config.json", kConfig);
  const std::string sound = testing::safetensors_bytes({{"a", "F32", {2}, std::string(8, 'x')}});
  const std::string header(sound, 8, sound.size() - 16);
  expect_each("model.safetensors", dir,
              {{sound.substr(0, sound.size() - 4), "tensor \"a\": data ends at 8, after the 4 data bytes"},
               {sound.substr(0, 20), "the header of"},
               {number_bytes(uint64_t{1} << 40) + header, "a header of 1099511627776 bytes is over the"},
               {number_bytes(uint64_t{16}) + "xxxxxxxxxxxxxxxx", "the header does not begin with '{'"},
               {std::string(20, '\0'), "the header does not begin with '{'"},
               {"broken", "only 6 bytes: too short for a safetensors file"}});
  const TestFolder torch;
  torch.write("config.json", kConfig);
  const std::string zip = testing::torch_zip("}", {});
  expect_each(
      "pytorch_model.bin", torch,
      {{zip.substr(0, zip.size() - 4), "no end record"},
       {testing::torch_zip(testing::global("posix", "system"), {}), "data.pkl: GLOBAL at byte 2: \"posix.system\""},
       {"\xAA\xBB", "is no file of torch.save: neither a zip archive nor the form before torch 1.6"}});
}

// A file that lies beside the one that failed, and whose name is the end of that one's.
TEST(RecogniseModel, BlamesTheFileThatFailed) {
  const TestFolder dir;
  dir.write("config.json", kConfig);
  dir.write("model.bin", gguf("llama"));
  dir.write("pytorch_model.bin", "\xAA\xBB");
  EXPECT_THAT(why(dir), StartsWith(dir.path() + "/pytorch_model.bin: is no file of torch.save"));
  dir.write("config.json", R"({"error": "Repository not found"})");
  EXPECT_THAT(why(dir), StartsWith(dir.path() + "/config.json: is a server's error and not the file itself"));
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
  const TestFolder pickles;
  pickles.write("config.json", kConfig);
  pickles.write("pytorch_model-00002-of-00003.bin", testing::torch_zip("}", {}));
  EXPECT_THAT(why(pickles), HasSubstr("no index of shards; get pytorch_model.bin.index.json"));
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
  dir.write("pytorch_model.bin", testing::safetensors_bytes({}));
  EXPECT_EQ(
      error_message(model_is_file(dir.path() + "/pytorch_model.bin")),
      "model " + dir.path() +
          "/pytorch_model.bin: is a file of safetensors; rename it to model.safetensors, and give the folder that "
          "holds it, config.json and the tokenizer's files");
  dir.write("model.safetensors", testing::torch_zip("}", {}));
  EXPECT_THAT(error_message(model_is_file(dir.path() + "/model.safetensors")),
              HasSubstr("is a file of torch.save; rename it to pytorch_model.bin, and give the folder"));
  for (const WrongContent& c : strange_contents()) {
    const std::string_view what = c.message.substr(0, c.message.find(';'));
    for (const char* name : {"/model.safetensors", "/pytorch_model.bin"}) {
      dir.write(name + 1, c.content);
      EXPECT_THAT(error_message(model_is_file(dir.path() + name)), HasSubstr(what));
    }
  }
  // Any other text is no file of a model that went wrong.
  dir.write("config.json", kConfig);
  EXPECT_THAT(error_message(model_is_file(dir.path() + "/config.json")), HasSubstr("is a file; give the folder"));
  dir.write("model.bin", ctranslate2());
  EXPECT_THAT(
      error_message(model_is_file(dir.path() + "/model.bin")),
      AllOf(StartsWith("model " + dir.path() + "/model.bin: is a model of CTranslate2"), HasSubstr("original")));
}

}  // namespace
}  // namespace transept
