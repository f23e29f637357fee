// Tells files by their first bytes alone: texts, and forms that begin with a mark. The bytes are untrusted. Pure
// functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "startup/recognised_file.h"

namespace transept {

// How many bytes of a file these functions look at.
inline constexpr size_t kRecognisedBytes = size_t{64} << 10;

// No bytes, a pointer of git-lfs, a web page (of UTF-16, too), an error of a server (JSON, XML, a line), any other text
// but a pickle. Such texts are quoted, without control characters and cut. Texts of less than 8 bytes are none. `head`:
// as kRecognisedBytes says.
std::optional<RecognisedFile> recognise_text(std::span<const std::byte> head);

// The protocol of a pickle, 0 to 5. nullopt: the bytes begin as none. Protocols 0 and 1 have no mark: what is told is
// a list, a dict, a tuple of one number, an object of a named class, and torch.save's magic number.
std::optional<int> pickle_protocol(std::span<const std::byte> head);

// Weights, archives, compressed files and pickles. A file's name says more of forms whose mark is short.
std::optional<RecognisedFile> recognise_mark(std::span<const std::byte> head, std::string_view name);

}  // namespace transept
