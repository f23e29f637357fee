// Finds the inputs of verbs that take files: files, folders, patterns that no shell expanded. Functions of the file
// system, thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

struct FoundFile {
  std::string path;  // as given or found; "-": standard input
  std::string name;  // of its results, without extension (name_outputs)
  Status problem;    // ok; or why nothing can be read, without the path
  size_t index = 0;  // from 0, among all that were found
};

struct FoundFiles {
  std::vector<FoundFile> inputs;
  size_t num_repeated = 0;  // inputs given again under any spelling of their path; each is kept once
};

// What of a folder is taken.
struct FileKind {
  std::string_view noun;                         // "audio", for messages
  std::span<const std::string_view> extensions;  // lower case, without the dot
};

// Returns the inputs in the order of the arguments; the contents of a folder or a pattern are sorted by path. Of a
// folder, takes every file of the kind, except pipes, devices and names that begin with a dot; with `recursive`, also
// of the folders below it, but does not follow links. An argument that is a file is an input whatever its extension. An
// argument that yields nothing is an input with a problem.
FoundFiles find_files(std::span<const std::string> arguments, const FileKind& kind, bool recursive);

// Judges by the extension, in any case.
bool is_of_kind(std::string_view file_name, const FileKind& kind);

}  // namespace transept
