// The files of a model by name: those of its folder, and those whose texts stand inside another file, as in a model
// that is one file (whisper.cpp's ggml-base.bin). A value; immutable, so thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

class ModelFolder final {
 public:
  // Texts of files by name ("config.json").
  using Texts = std::map<std::string, std::string, std::less<>>;

  ModelFolder() = default;
  // What is on disk. Every folder's path is one.
  ModelFolder(std::string path) : path_(path), disk_(std::move(path)) {}  // NOLINT(google-explicit-constructor)
  ModelFolder(const char* path) : ModelFolder(std::string(path)) {}       // NOLINT(google-explicit-constructor)
  // `texts` stand inside the file `path`; a name that they lack is looked for in the folder `disk` ("": nowhere).
  ModelFolder(std::string path, std::string disk, Texts texts)
      : path_(std::move(path)), disk_(std::move(disk)), texts_(std::move(texts)) {}

  // The folder, or the file that has the texts.
  const std::string& path() const { return path_; }
  // The file's name in messages: "DIR/config.json"; "DIR/ggml-base.bin/config.json" where its text stands inside.
  std::string name_of(std::string_view file) const;

  // Those that are not files of their own.
  const Texts& texts() const { return texts_; }

  bool has(std::string_view file) const;
  // The content. Errors: those of read_file(), with name_of(file); kNotFound if no such file is there.
  StatusOr<std::string> read(std::string_view file, size_t max_bytes) const;

 private:
  std::string path_, disk_;
  Texts texts_;
};

}  // namespace transept
