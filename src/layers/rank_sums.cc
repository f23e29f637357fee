#include "layers/rank_sums.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "comm/reduce.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

// Adds ranks' integers through the communicator.
class ExchangedSums final : public IntegerSums {
 public:
  ExchangedSums(Communicator& ranks, ThreadPool& threads) : ranks_(ranks), threads_(threads) {}

  std::span<int32_t> part(int64_t count) override {
    const std::span<std::byte> outbox = ranks_.outbox(static_cast<size_t>(count) * sizeof(int32_t));
    return {reinterpret_cast<int32_t*>(outbox.data()), static_cast<size_t>(count)};
  }
  void add_parts(std::span<int32_t> whole) override {
    sum_over_ranks(ranks_, threads_, std::ssize(whole), whole.data()).IgnoreError();
  }

 private:
  Communicator& ranks_;
  ThreadPool& threads_;
};

// Of the rows of all ranks, in the order in which sums are added.
RowStatistics merged_tree(std::span<RowStatistics> parts) {
  for (size_t step = 1; step < parts.size(); step *= 2) {
    for (size_t i = 0; i + step < parts.size(); i += 2 * step) parts[i] = merged(parts[i], parts[i + step]);
  }
  return parts[0];
}

}  // namespace

int64_t rows_at_once(const Communicator& ranks, int64_t n) {
  // Wide rows have two sums of whole panels each.
  const int64_t row_bytes = 2 * round_up(std::max<int64_t>(n, 1), kPanelColumns) * int64_t{sizeof(int32_t)};
  return std::max<int64_t>(1, static_cast<int64_t>(ranks.max_bytes()) / row_bytes);
}

std::span<const RowStatistics> whole_statistics(Context& context, const TensorView& x, int32_t leaves) {
  const std::span<RowStatistics> found = context.arena.allocate_span<RowStatistics>(x.dim(0));
  if (context.dry_run) return found;
  Communicator& ranks = *context.ranks;
  const auto at = [&](std::span<const std::byte> part, size_t row) {
    RowStatistics one;
    std::memcpy(&one, part.data() + row * sizeof one, sizeof one);
    return one;
  };
  row_statistics(context, x, found, leaves);
  std::memcpy(ranks.outbox(found.size_bytes()).data(), found.data(), found.size_bytes());
  const StatusOr<Communicator::Parts> parts = ranks.exchange(found.size_bytes());
  if (!parts.ok()) return found;
  CHECK(has_sum_tree(ranks.size()));
  std::array<RowStatistics, 8> of_ranks;
  for (size_t row = 0; row < found.size(); ++row) {
    for (size_t rank = 0; rank < parts->size(); ++rank) of_ranks[rank] = at((*parts)[rank], row);
    found[row] = merged_tree(std::span(of_ranks).first(parts->size()));
  }
  return found;
}

void gemm_over_ranks(Context& context, const TensorView& x, const PackedMatrix& w, int32_t leaves,
                     const Epilogue& epilogue, const TensorView& y) {
  CHECK(epilogue.activation == Activation::kNone);
  Communicator& ranks = *context.ranks;
  ThreadPool& threads = cpu_of(context).threads();
  const Arena::Scope scope(context.arena);
  if (w.format().weights == kInt8Format) {
    ExchangedSums sums(ranks, threads);
    gemm(context, {x, whole_statistics(context, x, leaves).data(), leaves, &sums}, w, epilogue, y);
    return;
  }
  const int64_t rows = x.dim(0), n = w.n();
  std::byte* outbox = context.dry_run ? nullptr : ranks.outbox(static_cast<size_t>(rows * n) * sizeof(float)).data();
  gemm(context, {x, nullptr, leaves}, w, {}, TensorView(outbox, DType::kFloat32, {rows, n}));
  if (context.dry_run) return;
  SumEpilogue last{.bias = epilogue.bias};
  if (epilogue.residual.raw != nullptr) {
    last.residual = epilogue.residual.f32();
    last.residual_stride = epilogue.residual.stride[0];
  }
  sum_over_ranks(ranks, threads, rows, n, last, y.f32(), y.stride[0]).IgnoreError();
}

}  // namespace transept
