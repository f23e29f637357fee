// Tells by its content what a file is that is no checkpoint of ours: a model of another program, or no model at all.
// The bytes are untrusted. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "startup/recognised_file.h"

namespace transept {

// bytes: the file, or its first kRecognisedBytes (recognise_beginning.h) unless these begin as a file of torch.save: of
// such a file all bytes are needed. name: the file's, without a folder. nullopt: nothing known.
std::optional<RecognisedFile> recognise_bytes(std::span<const std::byte> bytes, std::string_view name);

// The same for a file on disk; nullopt also if it cannot be read.
std::optional<RecognisedFile> recognise_file(const std::string& path);

}  // namespace transept
