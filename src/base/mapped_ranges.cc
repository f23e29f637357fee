#include "base/mapped_ranges.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace transept {
namespace {

constexpr int kExitCode = 2;

// A place is free while begin is 0, taken but not to be read while it is kFilling.
constexpr uintptr_t kFree = 0, kFilling = 1;
struct Entry {
  std::atomic<uintptr_t> begin{kFree};
  std::atomic<size_t> size{0};
  std::atomic<const char*> path{nullptr};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

std::array<Entry, MappedRange::kMaxRanges> entries;
std::atomic<size_t> num_places{0};  // those from here on were never taken

// Null: no file of ours is mapped there. The entry cannot go meanwhile: whoever reads from a mapping holds it.
const char* path_at(uintptr_t address) {
  for (size_t i = 0; i < num_places.load(); ++i) {
    const uintptr_t begin = entries[i].begin.load();
    if (begin > kFilling && address >= begin && address - begin < entries[i].size.load()) return entries[i].path.load();
  }
  return nullptr;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const bool is_access = info->si_code > 0;  // and not sent by somebody
  if (is_access) {
    if (const char* path = path_at(reinterpret_cast<uintptr_t>(info->si_addr)); path != nullptr) end_without_file(path);
  }
  // Back from here the access happens again, and what was sent is sent again, with nobody to catch it.
  std::signal(signal, SIG_DFL);
  if (!is_access) std::raise(signal);
}

}  // namespace

MappedRange::MappedRange(std::span<const std::byte> bytes, const char* path) : place_(kMaxRanges) {
  if (bytes.empty()) return;
  for (size_t i = 0; i < kMaxRanges; ++i) {
    uintptr_t free = kFree;
    if (entries[i].begin.load() != kFree || !entries[i].begin.compare_exchange_strong(free, kFilling)) continue;
    size_t known = num_places.load();
    while (known < i + 1 && !num_places.compare_exchange_weak(known, i + 1)) {
    }
    entries[i].size.store(bytes.size());
    entries[i].path.store(path);
    entries[i].begin.store(reinterpret_cast<uintptr_t>(bytes.data()));
    place_ = i;
    return;
  }
}

MappedRange::~MappedRange() {
  if (place_ < kMaxRanges) entries[place_].begin.store(kFree);
}

void catch_cut_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

void end_without_file(const char* path) {
  constexpr char kBefore[] = "transept: ";
  constexpr char kBehind[] = ": was cut or cannot be read any more while it was in use: the process ends\n";
  std::array<char, 8192> line;  // longer than any path that can be opened, and one write, so that it stays one line
  size_t size = 0;
  const auto append = [&](const char* text) {
    const size_t count = std::min(std::strlen(text), line.size() - size);
    std::memcpy(line.data() + size, text, count);
    size += count;
  };
  append(kBefore);
  append(path);
  append(kBehind);
  // If it cannot be said, the exit code still tells.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), size);
  ::_exit(kExitCode);
}

}  // namespace transept
