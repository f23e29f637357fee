// KV in 16 bits and in int8 on a software device: the bytes are the cpu backend's and those of single values by their
// definition (attention/kv_values.h), and attention over them is the reference backend's.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "attention/kv_values.h"
#include "device_vulkan/vulkan_backend_testing.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

using testing::DeviceBackend;
using testing::VulkanRig;

constexpr AttentionType kCached[] = {AttentionType::kDecoder, AttentionType::kEncoderDecoder};

// Values of many sizes around those that rounding treats apart: a value of 16 bits, the middle to the next, what is a
// little off the middle; subnormals, and what is beyond float16.
float awkward_value(DType dtype, std::mt19937& rng) {
  const bool is_half = dtype == DType::kFloat16;
  const auto bits = static_cast<uint16_t>(rng() % (is_half ? 0x7BFF : 0x7F00));
  const auto widened = [&](int more) {
    const auto other = static_cast<uint16_t>(bits + more);
    return is_half ? float16_to_float(other) : bfloat16_to_float(other);
  };
  const float low = widened(0), high = widened(1), middle = low + (high - low) / 2;
  const float some[] = {low,
                        middle,
                        std::nextafter(middle, high),
                        std::nextafter(middle, low),
                        65504.0f,
                        65519.0f,
                        65520.0f,
                        1e9f,
                        0.0f,
                        6.1e-5f,
                        2.9e-8f,
                        1e-9f};
  const float value = some[rng() % (rng() % 4 == 0 ? 12 : 4)];
  const bool is_subnormal = std::fpclassify(value) == FP_SUBNORMAL;  // of float32: devices may drop them
  return is_subnormal ? 0 : rng() % 2 == 0 ? value : -value;
}

template <typename T>
void expect_same_bytes(const std::vector<T>& is, const std::vector<T>& wanted) {
  ASSERT_EQ(is.size(), wanted.size());
  for (size_t i = 0; i < is.size(); ++i) ASSERT_EQ(+uint8_t(is[i]), +uint8_t(wanted[i])) << "byte " << i;
}

class VulkanKvTest : public ::testing::TestWithParam<std::tuple<bool, DType>> {
 protected:
  void SetUp() override {
    if (VulkanRig::get(is_reversed()) == nullptr) GTEST_SKIP() << "no software device: " << VulkanRig::why();
  }
  void TearDown() override {
    if (VulkanRig::get(is_reversed()) != nullptr) rig().clear();
  }
  static bool is_reversed() { return std::get<0>(GetParam()); }
  static DType dtype() { return std::get<1>(GetParam()); }
  static VulkanRig& rig() { return *VulkanRig::get(is_reversed()); }

  static AttentionProblem problem(AttentionType type) {
    const std::vector<KeyOwner> own = {{1, 1, {1}}, {2, 7, {7}}, {3, 32, {1}}, {4, 33, {1}}, {5, 70, {9}}};
    const std::vector<KeyOwner> crossed = {{1, 5, {1}}, {2, 64, {1, 1, 1}}, {3, 0, {2}}, {4, 100, {3, 1}}, {5, 1, {1}}};
    AttentionProblem p = problem_of(type, type == AttentionType::kDecoder ? own : crossed);
    p.kv_dtype = dtype();
    return p;
  }

  struct Outcome {
    AttentionResult result;
    std::vector<std::byte> blocks;  // of the layer
  };
  Outcome run(const AttentionProblem& p, AttentionBackend& backend, std::vector<int32_t> captured_heads = {}) {
    AttentionSetup setup(p, backend);
    Outcome outcome{setup.run(context_, std::move(captured_heads)), {}};
    const TensorView& cache = setup.args().kv_cache;
    for (int64_t block = 0; block < cache.dim(0); ++block) {
      const auto* from = static_cast<const std::byte*>(cache.raw) + block * cache.stride[0];
      outcome.blocks.insert(outcome.blocks.end(), from, from + cache.dim(1));
    }
    return outcome;
  }

  // Every second row is captured by the device, 7 stands in the others.
  void expect_as_the_processor(const AttentionProblem& p, const std::vector<int32_t>& heads = {}) {
    SCOPED_TRACE(::testing::Message() << "type " << static_cast<int>(p.type) << " heads " << p.heads << "/"
                                      << p.kv_heads << " dim " << p.dim << " block " << p.block_size << " bias "
                                      << static_cast<int>(p.bias));
    DeviceBackend device(rig());
    const Outcome there = run(p, device, heads);
    expect_same_bytes(there.blocks, run(p, *cpu_).blocks);
    if (HasFatalFailure()) return;
    const AttentionResult wanted = run(p, *reference_, heads).result;
    ASSERT_EQ(there.result.out.size(), wanted.out.size());
    for (size_t i = 0; i < wanted.out.size(); ++i) {
      ASSERT_NEAR(there.result.out[i], wanted.out[i], kBound) << "at " << i;
    }
    const size_t num_rows = static_cast<size_t>(p.num_rows()), num_heads = std::max<size_t>(heads.size(), 1);
    const size_t num_keys = wanted.probabilities.size() / num_heads / num_rows;
    for (size_t i = 0; i < wanted.probabilities.size(); ++i) {
      const bool is_captured = i / num_keys % num_rows % 2 == 0;
      ASSERT_NEAR(there.result.probabilities[i], is_captured ? wanted.probabilities[i] : 7, kBound) << "at " << i;
    }
  }

  static constexpr double kBound = 1e-5;  // backend_test's of the cpu backend: what is read is the same
  ThreadPool pool_{1};
  Arena arena_{size_t{32} << 20};
  CpuDevice device_{pool_};
  Context context_{.device = device_, .arena = arena_};
  std::unique_ptr<AttentionBackend> cpu_ = std::move(make_attention_backend("cpu").value()),
                                    reference_ = std::move(make_attention_backend("reference").value());
};

INSTANTIATE_TEST_SUITE_P(Types, VulkanKvTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(DType::kFloat16, DType::kBFloat16, DType::kInt8)),
                         [](const auto& param) {
                           return std::string(dtype_name(std::get<1>(param.param))) +
                                  (std::get<0>(param.param) ? "Reversed" : "Straight");
                         });

TEST_P(VulkanKvTest, IsTheProcessorsForEveryHeadSize) {
  for (const AttentionType type : kCached) {
    for (const int dim : {1, 2, 3, 4, 12, 37, 64, 255, 256}) {
      AttentionProblem p = problem(type);
      p.dim = dim;
      expect_as_the_processor(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanKvTest, IsTheProcessorsForEveryBlockSize) {
  for (const AttentionType type : kCached) {
    for (const int block_size : {1, 3, 4, 16, 24, 32, 100}) {
      for (const int dim : {3, 20}) {
        AttentionProblem p = problem(type);
        p.block_size = block_size;
        p.dim = dim;
        expect_as_the_processor(p);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(VulkanKvTest, IsTheProcessorsForSharedHeadsBiasesAndCapture) {
  for (const AttentionType type : kCached) {
    for (const BiasForm bias : {BiasForm::kNone, BiasForm::kFull, BiasForm::kMasking, BiasForm::kT5}) {
      AttentionProblem p = problem(type);
      p.heads = 6;
      p.kv_heads = bias == BiasForm::kFull ? 3 : 2;
      p.bias = bias;
      expect_as_the_processor(p, {3, 1});
      if (HasFatalFailure()) return;
    }
  }
}

// Where the bytes of one value lie, and what they are, by attention/kv_format.h alone.
class ExpectedBlocks {
 public:
  ExpectedBlocks(KvType type, int64_t size, int64_t dim, int64_t stride, std::vector<uint8_t> before)
      : bytes(std::move(before)), type_(type), size_(size), dim_(dim), stride_(stride) {}

  void write(int64_t slot, int64_t head, const float* k, const float* v) {
    const int64_t part = slot / size_ * stride_ + head * kv_part_bytes(type_, size_, dim_), place = slot % size_;
    if (type_ == KvType::kInt8) return write_int8(part, place, k, v);
    for (int64_t d = 0; d < dim_; ++d) {
      put(part + 2 * (d * size_ + place), rounded(k[d]));
      put(part + 2 * (size_ * dim_ + place * dim_ + d), rounded(v[d]));
    }
  }

  std::vector<uint8_t> bytes;

 private:
  template <typename T>
  void put(int64_t at, T value) {
    std::memcpy(&bytes[static_cast<size_t>(at)], &value, sizeof value);
  }
  uint16_t rounded(float x) const { return type_ == KvType::kFloat16 ? saturated_float16(x) : float_to_bfloat16(x); }
  void write_int8(int64_t part, int64_t place, const float* k, const float* v) {
    const Int8Part lies = int8_part(size_, dim_);
    const float k_scale = int8_scale(k, dim_), v_scale = int8_scale(v, dim_);
    put(part + place * 4, k_scale);
    put(part + lies.v_scales + place * 4, v_scale);
    for (int64_t d = 0; d < (dim_ + 3) / 4 * 4; ++d) {
      const int8_t code = d < dim_ ? float_to_int8(k[d], k_scale) : int8_t{0};
      put(part + lies.k + (d / 4 * size_ + place) * 4 + d % 4, static_cast<uint8_t>(code + 128));
      if (d < dim_) put(part + lies.v + (place / 4 * dim_ + d) * 4 + place % 4, float_to_int8(v[d], v_scale));
    }
  }

  KvType type_;
  int64_t size_, dim_, stride_;
};

// Rows of one op whose slots are neighbours, in any order: they share words. Others keep every bit.
TEST_P(VulkanKvTest, AwkwardValuesAreStoredByTheirDefinition) {
  std::mt19937 rng(5);
  const KvType type = kv_type(dtype());
  for (const uint32_t size : {1u, 3u, 4u, 16u}) {
    for (const uint32_t dim : {1u, 2u, 37u, 64u}) {
      SCOPED_TRACE(str_cat("block ", size, " dim ", dim));
      constexpr uint32_t kHeads = 2, kBlocks = 9;
      const auto words = static_cast<uint32_t>(kv_part_bytes(type, size, dim) / 4 * kHeads);
      const uint32_t stride = words + 5, rows = kBlocks * size * 2 / 3;
      std::vector<uint32_t> slots(kBlocks * size);
      std::iota(slots.begin(), slots.end(), 0u);
      std::shuffle(slots.begin(), slots.end(), rng);
      slots.resize(rows);
      slots[0] = kBlocks * size;  // past the last: left out
      std::vector<float> k, v;
      for (uint32_t i = 0; i < rows * kHeads * dim; ++i) {
        k.push_back(awkward_value(dtype() == DType::kInt8 ? DType::kFloat16 : dtype(), rng));
        v.push_back(awkward_value(dtype() == DType::kInt8 ? DType::kFloat16 : dtype(), rng));
      }
      const uint64_t total = uint64_t{kBlocks} * stride;
      const DeviceKv kv{{rig().make(total, 0xA5C3F00Fu), 0, total * 4}, kBlocks, size, stride, kHeads, dim, type};
      record_write_kv(rig().recorder(), DeviceMatrix::dense(rig().put(k), rows, kHeads * dim),
                      DeviceMatrix::dense(rig().put(v), rows, kHeads * dim), {rig().put(slots), 0, rows * 4}, kv);
      rig().run();
      std::vector<uint8_t> before(total * 4);
      for (size_t i = 0; i < total; ++i) std::memcpy(&before[4 * i], "\x0F\xF0\xC3\xA5", 4);
      ExpectedBlocks expected(type, size, dim, int64_t{4} * stride, before);
      for (size_t row = 1; row < rows; ++row) {
        for (size_t head = 0; head < kHeads; ++head) {
          const size_t at = (row * kHeads + head) * dim;
          expected.write(slots[row], static_cast<int64_t>(head), &k[at], &v[at]);
        }
      }
      expect_same_bytes(rig().values<uint8_t>(kv.cache.buffer, total * 4), expected.bytes);
      rig().clear();
    }
  }
}

TEST_P(VulkanKvTest, WhatIsNotFiniteShows) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const bool is_value : {false, true}) {
      constexpr uint32_t kDim = 5, kSize = 4;
      const KvType type = kv_type(dtype());
      std::vector<float> k(kDim, 1.0f), v(kDim, 1.0f), q(kDim, 1.0f);
      (is_value ? v : k)[2] = bad;
      const std::vector<int32_t> zero = {0};
      const std::vector<AttentionRow> rows = {{.key_end = 1}};
      const auto words = static_cast<uint32_t>(kv_part_bytes(type, kSize, kDim) / 4);
      const DeviceKv kv{{rig().make(words, 0), 0, words * 4}, 1, kSize, words, 1, kDim, type};
      const BufferRange slots{rig().put(zero), 0, 4};
      const DeviceMatrix out = rig().make_matrix(1, kDim);
      record_write_kv(rig().recorder(), DeviceMatrix::dense(rig().put(k), 1, kDim),
                      DeviceMatrix::dense(rig().put(v), 1, kDim), slots, kv);
      record_attention(rig().recorder(),
                       {.q = DeviceMatrix::dense(rig().put(q), 1, kDim),
                        .out = out,
                        .heads = 1,
                        .rows = {rig().put(rows), 0, sizeof(AttentionRow)}},
                       kv, slots);
      rig().run();
      const std::vector<float> y = rig().values(out.buffer, kDim);
      SCOPED_TRACE(::testing::Message() << bad << (is_value ? " in V" : " in K"));
      if (dtype() == DType::kFloat16 && std::isinf(bad)) {  // saturated
        EXPECT_EQ(y[2], is_value ? std::copysign(kMaxFloat16, bad) : 1.0f);
      } else if (dtype() == DType::kInt8 || !is_value) {
        // A score of infinity is no number less itself.
        for (const float value : y) EXPECT_TRUE(std::isnan(value) || (bad == -INFINITY && value == 0)) << value;
      } else {
        EXPECT_TRUE(std::isnan(bad) ? std::isnan(y[2]) : y[2] == bad) << y[2];
        EXPECT_EQ(y[1], 1.0f);
      }
      rig().clear();
    }
  }
}

TEST_P(VulkanKvTest, BlocksThatWereNeverWrittenShow) {
  AttentionProblem p = problem(AttentionType::kEncoderDecoder);
  p.owners = {{1, 70, {1, 1}}};
  DeviceBackend device(rig());
  AttentionSetup setup(p, device);
  setup.run_again(context_);  // without what was to be written
  for (int64_t i = 0; i < setup.args().out.dim(0); ++i) EXPECT_TRUE(std::isnan(*setup.args().out.row(i))) << i;
}

// A sequence's bits are those that it has alone, in other blocks.
TEST_P(VulkanKvTest, BitsDependOnTheRowAlone) {
  for (const AttentionType type : kCached) {
    DeviceBackend device(rig());
    const AttentionProblem together = problem(type);
    const AttentionResult all = run(together, device).result;
    size_t first = 0;
    for (const KeyOwner& owner : together.owners) {
      AttentionProblem alone = together;
      alone.owners = {owner};
      alone.block_size = 5;
      const size_t count = static_cast<size_t>(std::accumulate(owner.rows.begin(), owner.rows.end(), 0)) *
                           static_cast<size_t>(together.heads * together.dim);
      const AttentionResult one = run(alone, device).result;
      ASSERT_EQ(std::memcmp(one.out.data(), all.out.data() + first, count * sizeof(float)), 0)
          << "type " << static_cast<int>(type) << " owner " << owner.id;
      first += count;
    }
  }
}

}  // namespace
}  // namespace transept
