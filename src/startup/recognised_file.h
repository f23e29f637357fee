// What a file is by its content. A value.
#pragma once

#include <cstdint>
#include <string>

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
  kTorch,          // any other file of torch.save
  kAdapter,        // LoRA's matrices, or what takes their place
  kArchive,        // zip, tar, 7z
  kCompressed,     // gzip, zstd, xz, bzip2: one file
  // These explain no folder: models have such files beside them.
  kSafetensors,  // ours, given as a file
  kPickle,       // of Python, and none of torch.save's
  kErrorReply,   // what a server said in place of the file
  kText,         // any other text
  kEmpty,        // no bytes
};

struct RecognisedFile {
  FileKind kind;
  std::string what;      // "a model of whisper.cpp (ggml)"
  std::string original;  // the hub's name of the model that it was made from; "": the file does not say
};

}  // namespace transept
