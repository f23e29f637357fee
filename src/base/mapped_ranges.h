// The table of mapped files. Truncating a mapped file ends the process: the next access to a missing page raises
// SIGBUS, in whichever function it is. The handler finds the file in this table, names it on standard error, and exits
// with code 2.
//
// The table is global, as signals are. Its size is fixed and reads take no lock, since a signal handler may take none.
// Thread-safe.
#pragma once

#include <cstddef>
#include <span>

namespace transept {

// Owns one entry of the table while it lives. Borrows `path`, which must outlive it.
class MappedRange final {
 public:
  // Ranges beyond this number get no entry: SIGBUS in them keeps its default action.
  static constexpr size_t kMaxRanges = 16384;

  MappedRange(std::span<const std::byte> bytes, const char* path);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  size_t place_;
};

// Installs the handler: SIGBUS in a mapped range calls end_without_file(); any other SIGBUS keeps its default action.
// Call once, before threads start.
void catch_cut_files();

// Prints that the file cannot be read any more, and ends the process at once with exit code 2: no caller can continue
// without weights that were checked before. Async-signal-safe.
[[noreturn]] void end_without_file(const char* path);

}  // namespace transept
