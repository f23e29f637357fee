// Whether a file of the cache is all that the hub has of it (docs/decisions/0027-the-hub.md). A function that reads
// files: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace transept {

// What the hub says of a file.
struct HubSize {
  std::optional<int64_t> bytes;
  bool is_large = false;  // its SHA-256 is known, too
};

// False: there is no file, or it was cut. A large file has the hub's size. A small one may have been changed by hand:
// it was cut if it is shorter than the hub's, unless what it holds is a whole object of JSON.
bool is_whole_file(const std::string& path, const HubSize& hubs);

}  // namespace transept
