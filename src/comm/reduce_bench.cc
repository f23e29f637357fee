// An exchange with its sum, bias and residual between two ranks of one thread each: what a layer of two ranks pays
// twice.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "base/check.h"
#include "comm/reduce.h"
#include "comm/shared_communicator.h"

namespace transept {
namespace {

// Rows of 512: opus-mt's.
constexpr int64_t kColumns = 512;

// One rank's loop. The first number of the driver's part says whether it goes on.
class Rank final {
 public:
  Rank(SharedGroup& group, int rank, int64_t rows)
      : ranks_(group, rank, {}), rows_(rows), part_(static_cast<size_t>(rows * kColumns), 1.0F), y_(part_) {}

  void end() { part_[0] = std::numeric_limits<float>::quiet_NaN(); }
  // Returns whether the driver goes on.
  bool step() {
    std::memcpy(ranks_.outbox(part_.size() * sizeof(float)).data(), part_.data(), part_.size() * sizeof(float));
    const SumEpilogue epilogue = {.bias = part_.data(), .residual = y_.data(), .residual_stride = kColumns};
    const Status status = sum_over_ranks(ranks_, threads_, rows_, kColumns, epilogue, y_.data(), kColumns);
    CHECK(status.ok(), error_message(status));
    return !std::isnan(y_[0]);
  }

 private:
  SharedCommunicator ranks_;
  ThreadPool threads_{1};
  int64_t rows_;
  std::vector<float> part_, y_;
};

void BM_SumOverTwoRanks(benchmark::State& state) {
  const int64_t rows = state.range(0);
  StatusOr<std::unique_ptr<SharedGroup>> group =
      SharedGroup::create({.num_ranks = 2, .outbox_bytes = static_cast<size_t>(rows * kColumns) * sizeof(float)});
  CHECK(group.ok());
  const std::jthread other([&] {
    Rank rank(**group, 1, rows);
    while (rank.step()) {
    }
  });
  Rank driver(**group, 0, rows);
  std::vector<float> times;  // us
  times.reserve(static_cast<size_t>(state.max_iterations));
  for ([[maybe_unused]] auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    driver.step();
    times.push_back(std::chrono::duration<float, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  driver.end();
  driver.step();
  const auto rank = times.begin() + static_cast<ptrdiff_t>(times.size() * 99 / 100);
  std::ranges::nth_element(times, rank);
  state.counters["p99_us"] = *rank;
  state.SetBytesProcessed(state.iterations() * rows * kColumns * int64_t{sizeof(float)});
}
BENCHMARK(BM_SumOverTwoRanks)->Arg(1)->Arg(8)->Arg(32)->Arg(512)->UseRealTime();

}  // namespace
}  // namespace transept
