// Offsets in records are those of APPNOTE 4.3. A record's end is checked before its fields are read.
#include "weights/zip_directory.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/little_endian.h"
#include "base/quoted.h"

namespace transept {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kCentralMagic = 0x02014b50, kDescriptorMagic = 0x08074b50;
constexpr uint32_t kEndMagic = 0x06054b50, kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr size_t kMaxCommentBytes = 65'535;
constexpr uint16_t kHasDescriptor = 1 << 3, kIsUtf8 = 1 << 11;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kSee64 = 0xFFFFFFFF;  // the number stands in the zip64 field
constexpr uint16_t kSee64Short = 0xFFFF;

using Bytes = std::span<const std::byte>;

template <typename T>
T at(Bytes bytes, size_t offset) {
  return little_endian<T>(bytes.data() + offset);
}

bool fits(Bytes bytes, size_t offset, size_t size) { return offset <= bytes.size() && size <= bytes.size() - offset; }

std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Where the central directory lies.
struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

// The end record fills the end of the bytes, with its comment.
std::optional<size_t> find_end(Bytes bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const size_t last = bytes.size() - kEndBytes;
  for (size_t i = 0; i <= std::min(last, kMaxCommentBytes); ++i) {
    const size_t offset = last - i;
    if (at<uint32_t>(bytes, offset) == kEndMagic && at<uint16_t>(bytes, offset + 20) == i) return offset;
  }
  return std::nullopt;
}

// The zip64 record says again what the end record says, and more where that refers to it.
Status read_end64(Bytes bytes, size_t locator, Directory& directory, size_t& directory_end) {
  const auto offset = at<uint64_t>(bytes, locator + 8);
  if (at<uint32_t>(bytes, locator + 4) != 0 || at<uint32_t>(bytes, locator + 16) > 1) {
    return invalid_argument("an archive on several disks is not read");
  }
  if (offset > locator || locator - offset != kEnd64Bytes || at<uint32_t>(bytes, offset) != kEnd64Magic) {
    return invalid_argument("the zip64 end record is not at byte ", offset, ", where its locator says it is");
  }
  const Directory wide = {at<uint64_t>(bytes, offset + 48), at<uint64_t>(bytes, offset + 40),
                          at<uint64_t>(bytes, offset + 32)};
  const auto agrees = [](uint64_t narrow, uint64_t value, uint64_t see64) {
    return narrow == value || narrow == see64;
  };
  if (at<uint64_t>(bytes, offset + 24) != wide.count || at<uint32_t>(bytes, offset + 16) != 0 ||
      at<uint32_t>(bytes, offset + 20) != 0) {
    return invalid_argument("an archive on several disks is not read");
  }
  if (!agrees(directory.offset, wide.offset, kSee64) || !agrees(directory.size, wide.size, kSee64) ||
      !agrees(directory.count, wide.count, kSee64Short)) {
    return invalid_argument("the end record and the zip64 end record disagree");
  }
  directory = wide;
  directory_end = static_cast<size_t>(offset);
  return ok_status();
}

StatusOr<Directory> read_end(Bytes bytes) {
  const std::optional<size_t> end = find_end(bytes);
  if (!end.has_value()) return invalid_argument("no end record of a zip archive at the end (cut off?)");
  if (at<uint16_t>(bytes, *end + 4) != 0 || at<uint16_t>(bytes, *end + 6) != 0 ||
      at<uint16_t>(bytes, *end + 8) != at<uint16_t>(bytes, *end + 10)) {
    return invalid_argument("an archive on several disks is not read");
  }
  Directory directory = {at<uint32_t>(bytes, *end + 16), at<uint32_t>(bytes, *end + 12),
                         at<uint16_t>(bytes, *end + 10)};
  size_t directory_end = *end;
  if (*end >= kLocator64Bytes && at<uint32_t>(bytes, *end - kLocator64Bytes) == kLocator64Magic) {
    RETURN_IF_ERROR(read_end64(bytes, *end - kLocator64Bytes, directory, directory_end));
  }
  if (directory.offset > directory_end || directory_end - directory.offset != directory.size) {
    return invalid_argument("the directory of ", directory.size, " bytes at byte ", directory.offset,
                            " does not end at byte ", directory_end, ", where its end record is");
  }
  if (directory.count > kMaxZipEntries) {
    return invalid_argument(directory.count, " entries are over the ", kMaxZipEntries, " allowed");
  }
  return directory;
}

// What the directory says about an entry, in full width.
struct Entry {
  std::string_view name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed_size = 0, size = 0, offset = 0;

  Status error(std::string_view reason) const { return invalid_argument("entry ", in_quotes(name, 200), ": ", reason); }
};

// The zip64 extra field has, in this order, those of size, packed size and offset that refer to it.
Status read_extra(Bytes extra, Entry& entry) {
  std::vector<uint64_t*> wanted;
  for (uint64_t* value : {&entry.size, &entry.packed_size, &entry.offset}) {
    if (*value == kSee64) wanted.push_back(value);
  }
  for (size_t i = 0; i < extra.size();) {
    if (!fits(extra, i, 4) || !fits(extra, i + 4, at<uint16_t>(extra, i + 2))) {
      return entry.error("an extra field is cut off");
    }
    const size_t size = at<uint16_t>(extra, i + 2);
    if (at<uint16_t>(extra, i) == kZip64Extra) {
      if (size < wanted.size() * 8) return entry.error("the zip64 field is too short");
      for (size_t j = 0; j < wanted.size(); ++j) *wanted[j] = at<uint64_t>(extra, i + 4 + 8 * j);
      return ok_status();
    }
    i += 4 + size;
  }
  return wanted.empty() ? ok_status() : entry.error("the zip64 field is missing");
}

// Reads the record at `offset` of the directory, and moves `offset` behind it.
StatusOr<Entry> read_central(Bytes directory, size_t& offset) {
  if (!fits(directory, offset, kCentralBytes) || at<uint32_t>(directory, offset) != kCentralMagic) {
    return invalid_argument("the directory has no record at its byte ", offset);
  }
  const size_t name = at<uint16_t>(directory, offset + 28), extra = at<uint16_t>(directory, offset + 30);
  const size_t comment = at<uint16_t>(directory, offset + 32), begin = offset + kCentralBytes;
  if (!fits(directory, begin, name + extra + comment)) {
    return invalid_argument("the directory's record at its byte ", offset, " is cut off");
  }
  Entry entry;
  entry.flags = at<uint16_t>(directory, offset + 8);
  entry.method = at<uint16_t>(directory, offset + 10);
  entry.crc = at<uint32_t>(directory, offset + 16);
  entry.packed_size = at<uint32_t>(directory, offset + 20);
  entry.size = at<uint32_t>(directory, offset + 24);
  entry.offset = at<uint32_t>(directory, offset + 42);
  entry.name = text(directory.subspan(begin, name));
  if (at<uint16_t>(directory, offset + 34) != 0) return entry.error("is on another disk");
  RETURN_IF_ERROR(read_extra(directory.subspan(begin + name, extra), entry));
  offset = begin + name + extra + comment;
  return entry;
}

Status check_kind(const Entry& entry) {
  if (entry.method != 0) {
    return entry.error(str_cat("is compressed (method ", entry.method, "), which is not read"));
  }
  if ((entry.flags & ~(kHasDescriptor | kIsUtf8)) != 0) {
    return entry.error(str_cat("flags ", entry.flags, " (encrypted?) are not read"));
  }
  if (entry.packed_size != entry.size) return entry.error("is not compressed and yet has two sizes");
  return ok_status();
}

// What stands behind the data of an entry whose local header was written before its size was known. Its sizes have 4
// or 8 bytes each, whichever agree. Returns its own size.
StatusOr<size_t> check_descriptor(Bytes bytes, size_t offset, const Entry& entry) {
  const bool begins = fits(bytes, offset, 16) && at<uint32_t>(bytes, offset) == kDescriptorMagic &&
                      at<uint32_t>(bytes, offset + 4) == entry.crc;
  if (begins && at<uint32_t>(bytes, offset + 8) == entry.size && at<uint32_t>(bytes, offset + 12) == entry.size) {
    return 16;
  }
  if (begins && fits(bytes, offset, 24) && at<uint64_t>(bytes, offset + 8) == entry.size &&
      at<uint64_t>(bytes, offset + 16) == entry.size) {
    return 24;
  }
  return entry.error("the descriptor behind its data and the directory disagree");
}

// A local header that is followed by a descriptor leaves its checksum and sizes out. extra: its extra fields, which
// have the sizes that refer to them.
bool local_sizes_agree(Bytes bytes, size_t offset, Bytes extra, const Entry& entry) {
  const auto crc = at<uint32_t>(bytes, offset + 14);
  Entry local = {
      .name = entry.name, .packed_size = at<uint32_t>(bytes, offset + 18), .size = at<uint32_t>(bytes, offset + 22)};
  if (!read_extra(extra, local).ok()) return false;
  if ((entry.flags & kHasDescriptor) != 0 && crc == 0 && local.packed_size == 0 && local.size == 0) return true;
  return crc == entry.crc && local.packed_size == entry.size && local.size == entry.size;
}

// The entry's data, and in `begin` and `end` everything that is its own. `bytes` end where the directory begins.
StatusOr<ZipEntry> read_local(Bytes bytes, const Entry& entry, size_t& begin, size_t& end) {
  if (!fits(bytes, entry.offset, kLocalBytes)) return entry.error("its header lies outside the file");
  begin = static_cast<size_t>(entry.offset);
  if (at<uint32_t>(bytes, begin) != kLocalMagic) return entry.error(str_cat("there is no header at byte ", begin));
  const size_t name = at<uint16_t>(bytes, begin + 26), extra = at<uint16_t>(bytes, begin + 28);
  const size_t data = begin + kLocalBytes + name + extra;
  if (data > bytes.size()) return entry.error("its header is cut off");
  const bool agrees = text(bytes.subspan(begin + kLocalBytes, name)) == entry.name &&
                      at<uint16_t>(bytes, begin + 6) == entry.flags && at<uint16_t>(bytes, begin + 8) == entry.method &&
                      local_sizes_agree(bytes, begin, bytes.subspan(data - extra, extra), entry);
  if (!agrees) return entry.error("its header and the directory disagree");
  if (!fits(bytes, data, entry.size)) return entry.error(str_cat("its ", entry.size, " bytes lie outside the file"));
  end = data + static_cast<size_t>(entry.size);
  if ((entry.flags & kHasDescriptor) != 0) {
    ASSIGN_OR_RETURN(const size_t descriptor, check_descriptor(bytes, end, entry));
    end += descriptor;
  }
  return ZipEntry{entry.name, bytes.subspan(data, static_cast<size_t>(entry.size))};
}

Status check_unique(const std::vector<ZipEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const ZipEntry& entry : entries) names.push_back(entry.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  return twice == names.end() ? ok_status() : invalid_argument("entry ", in_quotes(*twice, 200), ": stands twice");
}

}  // namespace

bool begins_as_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && at<uint32_t>(bytes, 0) == kLocalMagic;
}

StatusOr<std::vector<ZipEntry>> read_zip_directory(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const Directory directory, read_end(bytes));
  const Bytes records = bytes.subspan(static_cast<size_t>(directory.offset), static_cast<size_t>(directory.size));
  const Bytes locals = bytes.first(static_cast<size_t>(directory.offset));
  std::vector<Entry> found;
  size_t offset = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    ASSIGN_OR_RETURN(found.emplace_back(), read_central(records, offset));
    RETURN_IF_ERROR(check_kind(found.back()));
  }
  if (offset != records.size())
    return invalid_argument("the directory has more than its ", directory.count, " records");
  std::ranges::stable_sort(found, {}, &Entry::offset);
  std::vector<ZipEntry> entries;
  entries.reserve(found.size());
  size_t free = 0;
  for (const Entry& entry : found) {
    size_t begin = 0, end = 0;
    ASSIGN_OR_RETURN(entries.emplace_back(), read_local(locals, entry, begin, end));
    if (begin < free) return entry.error("overlaps the entry before it");
    free = end;
  }
  RETURN_IF_ERROR(check_unique(entries));
  return entries;
}

}  // namespace transept
