// Tells by its content what a file is that is no checkpoint of ours: a model of another program, or no model at all.
// The bytes are untrusted. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace transept {

// In the order in which a folder's files explain it: the first kind that it has.
enum class FileKind : uint8_t {
  kLfsPointer,     // text that git-lfs replaces by the file
  kWebPage,        // HTML
  kCTranslate2,    // model.bin
  kWhisperCpp,     // ggml-*.bin
  kGguf,           // llama.cpp
  kOpenAiWhisper,  // *.pt
  kTorchScript,    // a program
  kNumpyArchive,   // Marian's own *.npz
  kOnnx,           // *.onnx
  kSavedModel,     // TensorFlow's saved_model.pb
  kHdf5,           // TensorFlow's *.h5
  kFlax,           // *.msgpack
  kRust,           // *.ot
  kSafetensors,    // ours, given as a file
  kTorch,          // any other file of torch.save
  kZip,            // any other archive
};

struct RecognisedFile {
  FileKind kind;
  std::string what;      // "a whisper.cpp model"
  std::string original;  // the hub's name of the model that it was made from; "": the file does not say
};

// How many bytes recognise_bytes() looks at, unless they begin as a file of torch.save: of these it needs all.
inline constexpr size_t kRecognisedBytes = size_t{64} << 10;

// bytes: the file, or its first kRecognisedBytes. name: the file's, without a folder. nullopt: nothing known.
std::optional<RecognisedFile> recognise_bytes(std::span<const std::byte> bytes, std::string_view name);

// The same for a file on disk; nullopt also if it cannot be read.
std::optional<RecognisedFile> recognise_file(const std::string& path);

}  // namespace transept
