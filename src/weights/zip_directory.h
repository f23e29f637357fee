// The directory of a zip archive whose entries are stored and not compressed, as torch.save writes them (PKWARE's
// APPNOTE 6.3, zip64 included). The bytes are untrusted: every number is checked, and the two places that describe an
// entry must agree, so that no two readers can see different files in it. A pure function: thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

inline constexpr size_t kMaxZipEntries = 200'000;

struct ZipEntry {
  std::string_view name;
  std::span<const std::byte> data;
};

// Whether the bytes begin as an archive's first entry does.
bool begins_as_zip(std::span<const std::byte> bytes);

// Returns the entries in the order of their data. Views into `bytes`. Errors name the entry and the reason: no end
// record at the end of the bytes (cut off, or something is appended); several disks; over kMaxZipEntries; an entry that
// is compressed, encrypted or described in two ways; that lies outside the bytes or over another one; whose name occurs
// twice. Checksums are not computed: that would read every weight.
StatusOr<std::vector<ZipEntry>> read_zip_directory(std::span<const std::byte> bytes);

}  // namespace transept
