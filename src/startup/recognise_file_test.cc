// Files of other programs, each made here by the layout that its own documentation gives.
#include "startup/recognise_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "weights/torch_file_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::number_bytes;
using testing::pickled;

std::optional<RecognisedFile> recognise(const std::string& content, std::string_view name = "x.bin") {
  return recognise_bytes(std::as_bytes(std::span(content)), name);
}

void expect(const std::string& content, std::string_view name, FileKind kind, std::string_view what,
            std::string_view original = "") {
  const std::optional<RecognisedFile> file = recognise(content, name);
  ASSERT_TRUE(file.has_value()) << name;
  EXPECT_EQ(file->kind, kind) << name;
  EXPECT_THAT(file->what, HasSubstr(what)) << name;
  EXPECT_EQ(file->original, original) << name;
}

// whisper.cpp, convert-pt-to-ggml.py: magic and eleven numbers.
std::string ggml(int32_t vocabulary, int32_t audio_layers, int32_t text_layers, int32_t mels) {
  std::string out;
  for (const int32_t value : {0x67676d6c, vocabulary, 1500, 384, 6, audio_layers, 448, 384, 6, text_layers, mels, 1}) {
    out += number_bytes(value);
  }
  return out;
}

std::string gguf_string(std::string_view text) { return number_bytes(uint64_t{text.size()}).append(text); }

std::string gguf(const std::string& pairs, uint64_t count) {
  return "GGUF" + number_bytes(uint32_t{3}) + number_bytes(uint64_t{0}) + number_bytes(count) + pairs;
}

// openai-whisper, __init__.py, load_model: {"dims": {...}, "model_state_dict": {...}}.
std::string openai(int vocabulary, int layers, int text_layers, int mels) {
  const std::string dims = "}(" + pickled("n_mels") + pickled(mels) + pickled("n_vocab") + pickled(vocabulary) +
                           pickled("n_audio_layer") + pickled(layers) + pickled("n_text_layer") + pickled(text_layers) +
                           "u";
  return "}(" + pickled("dims") + dims + pickled("model_state_dict") + "}u";
}

TEST(RecogniseFile, TellsFilesThatAreNoModel) {
  expect("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3055544304\n", "model.safetensors",
         FileKind::kLfsPointer, "git-lfs");
  expect("<!DOCTYPE html>\n<html>", "pytorch_model.bin", FileKind::kWebPage, "web page");
  expect("\xEF\xBB\xBF \n<HTML lang=\"en\">", "config.json", FileKind::kWebPage, "web page");
}

TEST(RecogniseFile, TellsWhisperByItsSizes) {
  const struct {
    int vocabulary, layers, text_layers, mels;
    std::string_view name;
  } cases[] = {{51865, 4, 4, 80, "openai/whisper-tiny"},
               {51864, 6, 6, 80, "openai/whisper-base.en"},
               {51865, 12, 12, 80, "openai/whisper-small"},
               {51864, 24, 24, 80, "openai/whisper-medium.en"},
               {51865, 32, 32, 80, "openai/whisper-large-v2"},
               {51866, 32, 32, 128, "openai/whisper-large-v3"},
               {51866, 32, 4, 128, "openai/whisper-large-v3-turbo"},
               {51865, 24, 2, 80, ""},
               {51864, 32, 32, 80, ""}};
  for (const auto& c : cases) {
    expect(ggml(c.vocabulary, c.layers, c.text_layers, c.mels), "ggml-x.bin", FileKind::kWhisperCpp, "whisper.cpp",
           c.name);
    const std::string object = openai(c.vocabulary, c.layers, c.text_layers, c.mels);
    expect(testing::torch_zip(object, {}), "x.pt", FileKind::kOpenAiWhisper, "openai-whisper", c.name);
    expect(testing::torch_legacy(object, {}), "x.pt", FileKind::kOpenAiWhisper, "openai-whisper", c.name);
  }
}

TEST(RecogniseFile, ReadsWhatGgufSaysOfItself) {
  const std::string architecture = gguf_string("general.architecture") + number_bytes(uint32_t{8}) + gguf_string("t5");
  const std::string version =
      gguf_string("general.quantization_version") + number_bytes(uint32_t{4}) + number_bytes(uint32_t{2});
  const std::string base = gguf_string("general.base_model.0.repo_url") + number_bytes(uint32_t{8}) +
                           gguf_string("https://a.hub/google/flan-t5-small");
  expect(gguf(architecture + version + base, 3), "m.gguf", FileKind::kGguf, "architecture \"t5\"",
         "google/flan-t5-small");
  expect(gguf(architecture, 1'000'000), "m.gguf", FileKind::kGguf, "architecture \"t5\"");
  expect(gguf(gguf_string("a") + number_bytes(uint32_t{9}), 1), "m.gguf", FileKind::kGguf, "GGUF");
  expect(gguf(number_bytes(uint64_t{1} << 63), 1), "m.gguf", FileKind::kGguf, "GGUF");
}

TEST(RecogniseFile, TellsOtherPrograms) {
  const std::string spec("WhisperSpec\0", 12);
  expect(number_bytes(uint32_t{6}) + number_bytes(uint16_t{12}) + spec, "model.bin", FileKind::kCTranslate2,
         "WhisperSpec");
  expect("\x89HDF\r\n\x1a\n", "tf_model.h5", FileKind::kHdf5, "TensorFlow");
  expect("\x08\x01\x12\x02", "saved_model.pb", FileKind::kSavedModel, "SavedModel");
  expect("\x08\x07\x12\x07pytorch", "encoder_model.onnx", FileKind::kOnnx, "ONNX");
  expect("\xde\x01\x10", "flax_model.msgpack", FileKind::kFlax, "Flax");
  expect("\x81\xa5model", "flax_model.msgpack", FileKind::kFlax, "Flax");
  expect(testing::zip_bytes({{"a.npy", "x"}}), "model.npz", FileKind::kNumpyArchive, "Marian");
  expect(testing::zip_bytes({{"rust_model/data.pkl", "x"}}), "rust_model.ot", FileKind::kRust, "rust-bert");
  expect(testing::zip_bytes({{"m/constants.pkl", "x"}}), "m.pt", FileKind::kTorchScript, "TorchScript");
  expect(testing::torch_zip("}", {}), "m.pt", FileKind::kTorch, "torch.save");
  expect(testing::torch_zip(testing::global("argparse", "Namespace"), {}), "m.pt", FileKind::kTorch, "torch.save");
  for (const char* name : {"a.zip", "m.pt", "pytorch_model.bin"}) {
    expect(testing::zip_bytes({{"readme.txt", "x"}}), name, FileKind::kZip, "a zip archive");
  }
  expect(testing::zip_bytes({{"readme.txt", "x"}}) + "cut", "a.zip", FileKind::kZip, "a zip archive");
  expect(number_bytes(uint64_t{2}) + "{}", "model.safetensors", FileKind::kSafetensors, "weights");
}

TEST(RecogniseFile, KnowsNothingOfTheRest) {
  for (const char* content : {"", "{", "{\"a\": 1}", "hello world, this is a text", "\x08", "lmgg"}) {
    EXPECT_FALSE(recognise(content).has_value()) << content;
  }
  const std::string spec("WhisperSpec", 11);
  EXPECT_FALSE(recognise(number_bytes(uint32_t{6}) + number_bytes(uint16_t{11}) + spec).has_value())
      << "no 0 at its end";
  EXPECT_FALSE(recognise(number_bytes(uint32_t{6}) + number_bytes(uint16_t{50}) + spec).has_value()) << "cut off";
}

TEST(RecogniseFile, ReadsAFileOnDisk) {
  const testing::TestFolder dir;
  dir.write("ggml.bin", ggml(51865, 4, 4, 80) + std::string(size_t{1} << 20, 'x'));
  dir.write("x.pt", testing::torch_zip(openai(51865, 4, 4, 80), {}));
  EXPECT_EQ(recognise_file(dir.path() + "/ggml.bin")->kind, FileKind::kWhisperCpp);
  EXPECT_EQ(recognise_file(dir.path() + "/x.pt")->original, "openai/whisper-tiny");
  EXPECT_FALSE(recognise_file(dir.path() + "/nowhere").has_value());
  EXPECT_FALSE(recognise_file(dir.path()).has_value());
}

}  // namespace
}  // namespace transept
