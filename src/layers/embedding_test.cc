// Proves that computed rows are the same ones whether they are kept or not, and that a table which is longer than any
// text takes the memory of a short one.
#include "layers/embedding.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "layers/sinusoidal.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

constexpr int64_t kEmbeddingDim = 12;

std::vector<float> rows_of(const Embedding& table, const std::vector<int32_t>& ids, int32_t offset, float scale) {
  ThreadPool threads(2);
  Arena arena(1 << 20);
  CpuDevice device{threads, Isa::kGeneric};
  Context context{device, arena, false, nullptr};
  std::vector<float> out(ids.size() * kEmbeddingDim);
  const auto num_rows = static_cast<int64_t>(ids.size());
  table.look_up(context, ids, offset, scale, TensorView(out.data(), DType::kFloat32, {num_rows, kEmbeddingDim}));
  return out;
}

TEST(SinusoidalEmbedding, RowsThatAreNotKeptAreThoseOfTheFormula) {
  constexpr int32_t kLast = 16'777'215;
  for (const Sinusoid kind : {Sinusoid::kByDim, Sinusoid::kByHalf}) {
    const SinusoidalRows rows(kind, kEmbeddingDim);
    const Embedding table = Embedding::sinusoidal(rows, int64_t{kLast} + 3);  // 805 MB, if they were kept
    EXPECT_EQ(table.num_rows(), int64_t{kLast} + 3);
    const std::vector<int32_t> ids = {0, 1, Embedding::kKeptRows - 3, Embedding::kKeptRows - 2, 70000, kLast};
    for (const float scale : {1.0f, 0.5f}) {
      const std::vector<float> found = rows_of(table, ids, 2, scale);
      for (size_t i = 0; i < ids.size(); ++i) {
        std::vector<float> expected(kEmbeddingDim);
        rows.compute(ids[i] + 2, expected);
        for (size_t j = 0; j < kEmbeddingDim; ++j)
          EXPECT_EQ(found[i * kEmbeddingDim + j], scale * expected[j]) << ids[i] << ", " << j;
      }
    }
  }
}

TEST(SinusoidalEmbedding, ShortTablesAreKeptWhole) {
  const SinusoidalRows rows(Sinusoid::kByHalf, kEmbeddingDim);
  const Embedding table = Embedding::sinusoidal(rows, 5);
  std::vector<float> expected(kEmbeddingDim);
  rows.compute(4, expected);
  EXPECT_EQ(rows_of(table, {4}, 0, 1.0f), expected);
}

}  // namespace
}  // namespace transept
