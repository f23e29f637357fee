// Where files are mapped into memory. A mapped file that is cut while it is used takes the process with it: the system
// answers the next access by SIGBUS, wherever that is. So there is a table of what is mapped, and a handler that finds
// the file in it, says its name, and ends the process with exit code 2.
//
// The table belongs to the process, as the signal does: it has a fixed size, and is read without a lock, since a
// handler may take none. Thread-safe.
#pragma once

#include <cstddef>
#include <span>

namespace transept {

// An entry of the table, for as long as it lives. `path` is borrowed.
class MappedRange final {
 public:
  // More ranges at once than the table has places are mapped without an entry: the handler knows nothing of them.
  static constexpr size_t kMaxRanges = 16384;

  MappedRange(std::span<const std::byte> bytes, const char* path);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  size_t place_;
};

// From here on SIGBUS in a mapped range ends the process as end_without_file() does; any other keeps its default
// action. Once, before threads start.
void catch_cut_files();

// Says on standard error that the file cannot be read any more, and ends the process at once with exit code 2: no
// caller can go on without bytes of weights that were there when they were checked. Async-signal-safe.
[[noreturn]] void end_without_file(const char* path);

}  // namespace transept
