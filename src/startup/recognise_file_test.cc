// Files of other programs, each made here by the layout that its own documentation gives.
#include "startup/recognise_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "startup/recognise_beginning.h"
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
  for (const std::string_view page : {"<!DOCTYPE html><html>", "\n<html>"}) {
    std::string little = "\xFF\xFE", big = "\xFE\xFF";
    for (const char c : page) {
      little += {c, '\0'};
      big += {'\0', c};
    }
    for (const std::string& wide : {little, big}) expect(wide, "config.json", FileKind::kWebPage, "web page");
    if (!page.starts_with('<')) continue;
    for (const std::string& wide : {little, big}) expect(wide.substr(2), "x.bin", FileKind::kWebPage, "web page");
  }
  expect("<!-- a proxy -->\n<html>", "config.json", FileKind::kWebPage, "web page");
  expect("", "model.safetensors", FileKind::kEmpty, "an empty file");
}

TEST(RecogniseFile, QuotesTheErrorThatAServerSent) {
  const struct {
    std::string_view content, quoted;
  } cases[] = {
      {"Entry not found", "\"Entry not found\""},
      {"Access to model a/b is restricted. Log in.\nMore.", "\"Access to model a/b is restricted. Log in.\""},
      {" 404: Not Found\n", "\"404: Not Found\""},
      {R"({"error":"Invalid username or password."})", "\"Invalid username or password.\""},
      {R"({"error": {"code": 401, "message": "no token"}})", "\"no token\""},
      {R"({"message": "Not Found", "status": "404"})", "\"Not Found\""},
      {R"({"detail": "a\u001b[31mred"})", "\"a\\x1b[31mred\""},
      {"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>There is none.</Message></Error>",
       "\"There is none.\""},
  };
  for (const auto& c : cases) {
    expect(std::string(c.content), "model.safetensors", FileKind::kErrorReply, c.quoted);
    expect(std::string(c.content), "config.json", FileKind::kErrorReply, c.quoted);
  }
  const std::optional<RecognisedFile> long_one = recognise(R"({"error": ")" + std::string(5000, 'x') + "\"}");
  EXPECT_THAT(long_one.value().what, HasSubstr("xxx...\" (5000 bytes)"));
  EXPECT_LT(long_one.value().what.size(), 300u);
}

TEST(RecogniseFile, TellsOtherTexts) {
  expect("hello world, this is a text", "x.bin", FileKind::kText, "\"hello world, this is a text\"");
  expect(R"({"model_type": "bart", "a": [1]})", "x.bin", FileKind::kText, "model_type");
  expect("hello \x1b[31mred", "x.bin", FileKind::kText, "\"hello \\x1b[31mred\"");
  expect(R"({"error": 404})", "x.bin", FileKind::kText, "404");
  expect(R"({"max_length": "128", "detail": "settings with a remark"})", "x.bin", FileKind::kText, "max_length");
  expect(R"({"message": "m", "1":1, "2":1, "3":1, "4":1, "5":1, "6":1, "7":1, "8":1})", "x.bin", FileKind::kText, "");
  expect("<Error></Message><Message>", "x.bin", FileKind::kText, "Error");
  // The last character of what is looked at may be cut, and of a whole file may not.
  expect(std::string(kRecognisedBytes - 1, 'a') + "\xC3", "x.bin", FileKind::kText, "aaa");
  EXPECT_FALSE(recognise("hello world \xC3").has_value());
  EXPECT_FALSE(recognise("hello \xFF world").has_value());
  EXPECT_FALSE(recognise("hello \x07 world").has_value());
  EXPECT_FALSE(recognise("hello w\xC2\x85").has_value());
  EXPECT_FALSE(recognise(std::string("hello world\0", 12)).has_value());
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
    expect(testing::zip_bytes({{"readme.txt", "x"}}), name, FileKind::kArchive, "a zip archive");
  }
  expect(testing::zip_bytes({{"readme.txt", "x"}}) + "cut", "a.zip", FileKind::kArchive, "a zip archive");
}

// Of forms that have one, the mark counts and not the name.
TEST(RecogniseFile, TellsMarksUnderAnyName) {
  const std::string node(16, 'n');
  for (const char* name : {"model.safetensors", "pytorch_model.bin", "x"}) {
    expect(number_bytes(uint64_t{2}) + "{}", name, FileKind::kSafetensors, "safetensors");
    expect(number_bytes(uint64_t{9000}) + "{\"a", name, FileKind::kSafetensors, "safetensors");
    expect(std::string("\x1F\x8B\x08\0\0\0\0\0\0\x03", 10), name, FileKind::kCompressed, "gzip");
    expect("\x28\xB5\x2F\xFD", name, FileKind::kCompressed, "zstd");
    expect(std::string("\xFD"
                       "7zXZ\0",
                       6),
           name, FileKind::kCompressed, "xz");
    expect("BZh91AY&SY\xFF", name, FileKind::kCompressed, "bzip2");
    expect(std::string(257, '\0') + "ustar", name, FileKind::kArchive, "tar");
    expect("7z\xBC\xAF\x27\x1C", name, FileKind::kArchive, "7z");
    expect("\x89HDF\r\n\x1a\n", name, FileKind::kHdf5, "HDF5");
    expect("\x08\x07\x12\x07pytorch\x1a\x01", name, FileKind::kOnnx, "ONNX");
    expect("\x08\x07\x3A\x90\x01\x0A" + node, name, FileKind::kOnnx, "ONNX");
    expect("\x81\xa5model\x82\xa1x", name, FileKind::kFlax, "Flax");
    expect(std::string("\xde\0\x12\xd9\x05model\xc7\x20\x01", 12), name, FileKind::kFlax, "Flax");
    expect(ggml(51865, 4, 4, 80), name, FileKind::kWhisperCpp, "ggml", "openai/whisper-tiny");
    expect(gguf("", 0), name, FileKind::kGguf, "GGUF");
    expect(testing::torch_zip("}", {}), name, FileKind::kTorch, "torch.save");
    expect(testing::torch_legacy("}", {}), name, FileKind::kTorch, "torch.save");
  }
}

TEST(RecogniseFile, TellsPicklesByTheirProtocol) {
  // pickle.dumps({"a": 1}, protocol) of Python.
  const std::string framed(
      "\x95\x0a\0\0\0\0\0\0\0}\x94\x8c\x01"
      "a\x94K\x01s.",
      19);
  for (const char* protocol : {"4", "5"}) {
    const std::string content = str_cat("\x80", static_cast<char>(*protocol - '0'), framed);
    expect(content, "pytorch_model.bin", FileKind::kPickle, str_cat("protocol ", protocol, " that torch.save did not"));
  }
  expect(std::string("\x80\x02}q\0X\x01\0\0\0aq\x01K\x01s.", 17), "x.bin", FileKind::kPickle, "protocol 2");
  expect("\x80\x03]q.", "x.bin", FileKind::kPickle, "protocol 3");
  const std::string magic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
  expect("\x80\x03" + magic, "x.bin", FileKind::kPickle, "torch.save with pickle_protocol=3");
  expect(std::string("\x80\x04\x95\x0d\0\0\0\0\0\0\0", 11) + magic, "x.bin", FileKind::kPickle,
         "torch.save with pickle_protocol=4");
  for (const char* content : {"(dp0\nVa\np1\nI1\ns.", "(lp0\nI1\naI2\na.", "ccollections\nOrderedDict\np0\n(tRp1\n."}) {
    expect(content, "pytorch_model.bin", FileKind::kPickle, "protocol 0 that torch.save did not");
  }
  for (const std::string_view begin : {"}", "]", "ccollections\nOrderedDict\n"}) {
    const std::string content = str_cat(begin, std::string_view("q\0(K\x01K\x02u.", 9));
    expect(content, "pytorch_model.bin", FileKind::kPickle, "protocol 1 that torch.save did not");
  }
  expect("L119547037146038801333356L\n.M\xe9\x03.", "x.bin", FileKind::kPickle,
         "torch.save with a pickle_protocol below 2");
  expect("(d)ouble brackets and so on", "x.bin", FileKind::kText, "a text");
  expect("cat\nand mouse\np0\n", "x.bin", FileKind::kText, "a text");
  EXPECT_FALSE(recognise("\x80\x01}q.").has_value());
  EXPECT_FALSE(recognise("\x80\x06}q.").has_value());
  EXPECT_FALSE(recognise("\x80\x04\x7fq.").has_value()) << "no opcode that a pickle begins with";
}

TEST(RecogniseFile, TellsTheProtocolWithinAnArchive) {
  // Protocol 1 has the opcodes of 2, which are read.
  for (const auto& [protocol, object] :
       {std::pair(0, "(dp0\n."), std::pair(3, "\x80\x03}q."), std::pair(4, "\x80\x04}q.")}) {
    expect(testing::zip_bytes({{"model/data.pkl", object}, {"model/version", "3\n"}}), "pytorch_model.bin",
           FileKind::kPickle, str_cat("a file of torch.save with pickle_protocol=", protocol));
  }
}

// What is left of a file of safetensors, whose length looks like a mark.
TEST(RecogniseFile, TakesNoLengthForAMark) {
  EXPECT_FALSE(recognise(std::string("}q\0\0\0\0\0\0xxxxxxxx", 16), "model.safetensors").has_value());
  const std::string_view marks[] = {"\x80\x04]", "\x1F\x8B\x08", "\x08\x07\x12", "\x08\x07\x3A", "\x81\xA1\x61"};
  for (const std::string_view mark : marks) {
    const std::string length = std::string(mark) + std::string(5, '\0');
    EXPECT_EQ(recognise(length + "{\"a\"", "model.safetensors").value().kind, FileKind::kSafetensors);
    EXPECT_FALSE(recognise(length + "xxxxxxxxxx", "model.safetensors").has_value());
  }
}

TEST(RecogniseFile, KnowsNothingOfTheRest) {
  for (const char* content :
       {"{", "{\"\": 1}", "broken", "\x08", "lmgg", "\x08\x07\x3A\x90\x01", "\x81\xa5mod", "\x80\xa5model\x80",
        "\x81\xa5model\x01", "\xde", "\xdf", "\x28\xB5\x2F", "BZh9", "\x80\x04"}) {
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
