// Tables of embeddings in a device's memory: the rows that are found there have the bits of those that the host makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/folder_testing.h"
#include "layers/embedding.h"
#include "ops/cpu_device.h"
#include "rank/checking_device_testing.h"
#include "tensor/dtype.h"
#include "weights/safetensors_testing.h"
#include "weights/weight_map.h"

namespace transept {
namespace {

using testing::CheckingDeviceKind;
using testing::TestFolder;
using testing::TestTensor;

class PlacedEmbedding : public ::testing::Test {
 protected:
  // What look_up() of the table gives, and what add() of the ids makes of it, from 1 on.
  std::vector<float> rows_of(const Embedding& table, const std::vector<int32_t>& ids, int32_t offset, float scale,
                             bool is_there) {
    const auto num_rows = static_cast<int64_t>(ids.size());
    Arena arena(size_t{1} << 16, is_there ? kind_.memory() : host_memory());
    Context context{is_there ? *there_ : static_cast<Device&>(here_), arena};
    std::vector<float> out(2 * ids.size() * static_cast<size_t>(table.dim()));
    const size_t bytes = out.size() * sizeof(float) / 2;
    const TensorView y = arena.tensor(DType::kFloat32, {num_rows, table.dim()});
    DeviceMemory& memory = context.device.memory();
    table.look_up(context, ids, offset, scale, y);
    memory.copy_out(out.data(), y.raw, bytes);
    table.add(context, ids, offset, y);
    memory.copy_out(out.data() + out.size() / 2, y.raw, bytes);
    return out;
  }
  bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  CheckingDeviceKind kind_;
  ThreadPool threads_{1};
  std::unique_ptr<Device> there_ = kind_.make_device(threads_, Isa::kGeneric);
  CpuDevice here_{threads_};
};

// Of odd numbers of rows and columns, so that tables of 16 bits end within a word.
TEST_F(PlacedEmbedding, HasTheBitsOfTheTable) {
  constexpr int64_t kRows = 7, kDim = 5;
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    SCOPED_TRACE(dtype);
    std::vector<float> values;
    for (int64_t i = 0; i < kRows * kDim; ++i) values.push_back(static_cast<float>(i * i % 97) / 64 - 0.7f);
    std::vector<uint16_t> halves(values.size());
    std::ranges::transform(values, halves.begin(), dtype[0] == 'F' ? float_to_float16 : float_to_bfloat16);
    const bool is_wide = std::string_view(dtype) == "F32";
    TestFolder folder;
    const TestTensor table{
        "table", dtype, {kRows, kDim}, is_wide ? testing::bytes_of(values) : testing::bytes_of(halves)};
    folder.write("model.safetensors", testing::safetensors_bytes({table}));
    const std::unique_ptr<WeightMap> weights = WeightMap::open(folder.path()).value();
    const Embedding here = Embedding::load(*weights, "table", kRows, kDim).value();
    const Embedding there = Embedding(here).placed(kind_.memory());
    EXPECT_TRUE(there.is_placed());
    EXPECT_FALSE(Embedding(here).placed(host_memory()).is_placed());
    const int64_t before = kind_.counts().bytes_in;
    EXPECT_TRUE(same(rows_of(there, {5, 0, 3, 5}, 1, 0.3f, true), rows_of(here, {5, 0, 3, 5}, 1, 0.3f, false)));
    EXPECT_TRUE(same(rows_of(there, {6, 0}, 0, 1, true), rows_of(here, {6, 0}, 0, 1, false)));
    EXPECT_EQ(kind_.counts().bytes_in, before) << "no row goes there";
  }
}

// Of a table whose first rows are kept, the others are made by the host as ever, with those of the same list.
TEST_F(PlacedEmbedding, RowsThatAreComputedAreTheHosts) {
  constexpr int64_t kDim = 6;
  const Embedding here = Embedding::sinusoidal(SinusoidalRows(Sinusoid::kByHalf, kDim), 2 * Embedding::kKeptRows);
  const Embedding there = Embedding(here).placed(kind_.memory());
  EXPECT_TRUE(there.is_placed());
  const auto last = static_cast<int32_t>(Embedding::kKeptRows) - 1;
  for (const std::vector<int32_t>& ids :
       {std::vector<int32_t>{0, last - 2}, std::vector<int32_t>{last - 1, 3}, std::vector<int32_t>{last, 2 * last}}) {
    EXPECT_TRUE(same(rows_of(there, ids, 2, 0.5f, true), rows_of(here, ids, 2, 0.5f, false))) << ids[0];
  }
}

}  // namespace
}  // namespace transept
