#include "apps/memory_bandwidth.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "tensor/page_buffer.h"

namespace transept {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{256} << 20;
constexpr auto kTime = std::chrono::milliseconds(300);
constexpr int64_t kTasksOfThread = 8;

// Several sums, so that the additions do not wait for each other.
uint64_t sum_of(const uint64_t* words, size_t count) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  uint64_t sum = 0;
  for (const uint64_t part : sums) sum += part;
  return sum;
}

}  // namespace

double measure_memory_bandwidth(int num_threads) {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);  // NOLINT(google-runtime-int)
  const uint64_t wanted = std::max(kLeastBytes, 4 * static_cast<uint64_t>(std::max(cache, 0L)));
  const uint64_t size = std::min(wanted, available_memory_bytes() / 4) / 4096 * 4096;
  PageBuffer buffer = PageBuffer::try_allocate(size);
  if (size == 0 || buffer.data() == nullptr) return 0;
  ThreadPool threads(num_threads);
  auto* const words = reinterpret_cast<uint64_t*>(buffer.data());
  const int64_t num_tasks = kTasksOfThread * num_threads;
  const size_t part = size / sizeof(uint64_t) / static_cast<size_t>(num_tasks);
  // Pages that were never written are all the same page of zeros.
  threads.parallel_for(num_tasks, [&](int64_t task, int) {
    std::fill_n(words + static_cast<size_t>(task) * part, part, static_cast<uint64_t>(task));
  });
  std::atomic<uint64_t> sum{0};
  double best = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < kTime) {
    const auto from = std::chrono::steady_clock::now();
    threads.parallel_for(num_tasks, [&](int64_t task, int) {
      sum.fetch_add(sum_of(words + static_cast<size_t>(task) * part, part), std::memory_order_relaxed);
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
    const auto bytes = static_cast<double>(part * static_cast<size_t>(num_tasks) * sizeof(uint64_t));
    best = std::max(best, bytes / std::max(seconds, 1e-9));
  }
  return best;
}

}  // namespace transept
