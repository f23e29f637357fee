// The encoder's int8 attention on tiles gives the bits that VNNI gives (which encoder_int8_test.cc measures): on tiles
// in software wherever VNNI is, and on AMX where that is present. Memory is of the exact size, so that a sanitizer sees
// whatever is read beyond it.
#include <gtest/gtest.h>

#include <bit>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "attention/encoder_int8.h"
#include "ops/cpu_device.h"

#if defined(__x86_64__)
namespace transept {

namespace software_amx {
void attend_encoder(const AttentionTask& task);  // encoder_tiles_test_avx512_vnni.cc
}

namespace {

struct alignas(64) Line {
  unsigned char bytes[64];
};

struct Shape {
  int64_t rows, keys, dim;
};

// One head's rows of q and its keys.
class EncoderHead final {
 public:
  explicit EncoderHead(Shape shape)
      : q(fill(0, shape.rows * shape.dim)),
        k(fill(1, shape.keys * shape.dim)),
        v(fill(2, shape.keys * shape.dim)),
        shape_(shape) {}

  // bias: of row i, bias(i).
  template <class Bias>
  std::vector<float> attend(void (*kernel)(const AttentionTask&), int64_t chunk_rows, Bias&& bias) const {
    std::vector<int32_t> blocks;
    const std::vector<unsigned char> cache = write_tiles(blocks);
    std::vector<float> out(static_cast<size_t>(shape_.rows * shape_.dim), 7.0f);
    std::vector<AttentionRow> rows(static_cast<size_t>(shape_.rows));
    for (int64_t i = 0; i < shape_.rows; ++i) {
      AttentionRow& row = rows[static_cast<size_t>(i)];
      row.q = q.data() + i * shape_.dim;
      row.out = out.data() + i * shape_.dim;
      row.bias = bias(i);
      row.visible = shape_.keys;
    }
    const int64_t item_rows = std::min<int64_t>(shape_.rows, kEncoderItemRows), width = (shape_.dim + 15) / 16 * 16;
    std::vector<float> sums(static_cast<size_t>(item_rows * width), 3.0f);
    std::vector<Line> words(static_cast<size_t>(encoder_room(item_rows, shape_.dim, chunk_rows)) / sizeof(Line));
    std::memset(words.data(), 0x5A, words.size() * sizeof(Line));
    AttentionTask task{};
    task.rows = rows.data();
    task.num_rows = shape_.rows;
    task.num_keys = shape_.keys;
    task.head_dim = static_cast<int>(shape_.dim);
    task.scale = 1 / std::sqrt(static_cast<float>(shape_.dim));
    task.cache = cache.data();
    task.blocks = blocks.data();
    task.block_size = kTileKeys;
    task.block_stride = encoder_tile(shape_.dim).bytes;
    task.sums = sums.data();
    task.sums_stride = width;
    task.words = words.data();
    kernel(task);
    return out;
  }

  std::vector<float> q, k, v;  // [rows or keys, dim]

 private:
  static std::vector<float> fill(uint32_t which, int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = value_at(which, 5, static_cast<uint32_t>(i), 0, 0);
    return values;
  }

  // In blocks from the last to the first.
  std::vector<unsigned char> write_tiles(std::vector<int32_t>& blocks) const {
    const int64_t bytes = encoder_tile(shape_.dim).bytes, tiles = (shape_.keys + kTileKeys - 1) / kTileKeys;
    std::vector<unsigned char> cache(static_cast<size_t>(tiles * bytes), 0xA5);
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t block = tiles - 1 - i, first = i * kTileKeys;
      blocks.push_back(static_cast<int32_t>(block));
      KvWrite write{};
      write.k = k.data() + first * shape_.dim;
      write.v = v.data() + first * shape_.dim;
      write.k_stride = write.v_stride = write.head_dim = shape_.dim;
      write.num_rows = std::min<int64_t>(kTileKeys, shape_.keys - first);
      write.part = cache.data() + block * bytes;
      write.block_size = kTileKeys;
      avx512_vnni::write_encoder_tile(write);
    }
    return cache;
  }

  Shape shape_;
};

RowBias no_bias(int64_t /*row*/) { return {}; }

class EncoderTilesTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }

  template <class Bias>
  static void expect_the_same(const EncoderHead& head, Bias&& bias) {
    const auto kernel = GetParam() == Isa::kAmx ? &amx::attend_encoder : &software_amx::attend_encoder;
    const std::vector<float> want = head.attend(&avx512_vnni::attend_encoder, kEncoderVectorRows, bias);
    const std::vector<float> got = head.attend(kernel, kEncoderTileRows, bias);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(want[i]) && std::isnan(got[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
          << got[i] << " for " << want[i] << " at " << i;
    }
  }
};

// VNNI: tiles in software.
INSTANTIATE_TEST_SUITE_P(Levels, EncoderTilesTest, ::testing::Values(Isa::kAvx512Vnni, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

TEST_P(EncoderTilesTest, OfEveryHeadDim) {
  for (int64_t dim = 1; dim <= kMaxHeadDim; dim += dim < 70 ? 1 : 13) {
    SCOPED_TRACE(dim);
    expect_the_same(EncoderHead({19, 70, dim}), no_bias);
  }
  expect_the_same(EncoderHead({49, 130, kMaxHeadDim}), no_bias);
}

TEST_P(EncoderTilesTest, OfEveryNumberOfRowsAndKeys) {
  for (int64_t rows = 1; rows <= 2 * kEncoderItemRows + 3; ++rows) {
    for (const int64_t keys : {1, 16, 17, 63, 64, 65, 128, 200}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows, " << keys << " keys");
      expect_the_same(EncoderHead({rows, keys, 64}), no_bias);
    }
  }
  for (int64_t keys = 1; keys <= 2 * kTileKeys + 1; ++keys) {
    SCOPED_TRACE(keys);
    expect_the_same(EncoderHead({17, keys, 36}), no_bias);
  }
}

TEST_P(EncoderTilesTest, UnderEveryBias) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  constexpr int64_t kRows = 37;
  for (const int64_t keys : {5, 64, 200}) {
    std::vector<float> dense(static_cast<size_t>(kRows * keys));
    for (size_t i = 0; i < dense.size(); ++i)
      dense[i] = i % 5 == 0 ? kMasked : value_at(3, 1, static_cast<uint32_t>(i), 0, 0);
    const auto side_by_side = [&](int64_t row) {
      return RowBias{BiasKind::kMaterialized, dense.data() + row * keys, 1, 0, row};
    };
    const auto apart = [&](int64_t row) { return RowBias{BiasKind::kMaterialized, dense.data() + row, kRows, 0, row}; };
    const std::vector<float> all(static_cast<size_t>(keys), kMasked);
    const auto masking = [&](int64_t row) {
      return RowBias{BiasKind::kMaterialized, row % 3 == 0 ? all.data() : dense.data(), 1, 0, row};
    };
    std::vector<float> table(kT5Buckets);
    for (int i = 0; i < kT5Buckets; ++i) table[static_cast<size_t>(i)] = t5_value(0, i);
    const DistanceBias t5 = t5_bias({true, kT5Buckets, kT5MaxDistance}, table, 1);
    const auto by_distance = [&](int64_t row) { return t5.bias().of_row(0, 0, row, row); };
    const float slope = 0.25f;
    const auto alibi = [&](int64_t row) { return RowBias{BiasKind::kAlibi, &slope, 0, 0, row}; };
    for (const int64_t dim : {37, 64}) {
      SCOPED_TRACE(::testing::Message() << keys << " keys, " << dim << " dimensions");
      const EncoderHead head({kRows, keys, dim});
      expect_the_same(head, side_by_side);
      expect_the_same(head, apart);
      expect_the_same(head, masking);
      expect_the_same(head, by_distance);
      expect_the_same(head, alibi);
    }
  }
}

TEST_P(EncoderTilesTest, WithStrangeValues) {
  constexpr int64_t kDim = 52;
  for (const float strange : {NAN, INFINITY, -INFINITY, 3e38f, 1e-40f, 0.0f}) {
    for (const int which : {0, 1, 2}) {
      SCOPED_TRACE(::testing::Message() << strange << " in "
                                        << "qkv"[which]);
      EncoderHead head({50, 140, kDim});
      std::vector<float>& values = which == 0 ? head.q : which == 1 ? head.k : head.v;
      values[17 * kDim + 5] = strange;
      expect_the_same(head, no_bias);
      std::fill_n(values.begin() + 20 * kDim, kDim, strange);
      expect_the_same(head, no_bias);
      std::fill(values.begin(), values.end(), strange);
      expect_the_same(head, no_bias);
    }
  }
}

// The largest sums that there are: every integer at its end, of either sign.
TEST_P(EncoderTilesTest, AddsExtremesExactly) {
  for (const float sign : {1.0f, -1.0f}) {
    EncoderHead head({33, 130, kMaxHeadDim});
    std::fill(head.q.begin(), head.q.end(), 2.0f);
    std::fill(head.k.begin(), head.k.end(), 3 * sign);
    std::fill(head.v.begin(), head.v.end(), -5 * sign);
    expect_the_same(head, no_bias);
  }
}

// Where AMX is present the backend takes it; answers do not show it.
TEST(EncoderTilesBackendTest, LevelsAgree) {
  if (detect_isa() < Isa::kAmx) GTEST_SKIP() << "amx is not present on this processor";
  AttentionProblem p;
  p.type = AttentionType::kEncoder;
  p.kv_dtype = DType::kInt8;
  p.causal = false;
  p.heads = 4;
  p.kv_heads = 2;
  p.dim = 64;
  p.bias = BiasForm::kT5;
  for (const int length : {1, 40, 131, 700}) p.owners.push_back({static_cast<uint32_t>(length), length, {length}});
  const auto backend = std::move(make_attention_backend("cpu").value());
  const auto run = [&](Isa isa) {
    ThreadPool threads(2);
    Arena arena(size_t{64} << 20);
    CpuDevice device{threads, isa};
    Context context{.device = device, .arena = arena};
    return AttentionSetup(p, *backend).run(context).out;
  };
  EXPECT_EQ(run(Isa::kAmx), run(Isa::kAvx512Vnni));
}

}  // namespace
}  // namespace transept
#endif
