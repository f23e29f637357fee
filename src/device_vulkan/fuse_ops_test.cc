// Fused ops write the bits of those that they are made of, leave their counts 0, and are not made where that would
// change what is read.
#include "device_vulkan/fuse_ops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>

#include "base/random_values_testing.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/record_int8.h"
#include "device_vulkan/vulkan_rig_testing.h"

namespace transept {
namespace {

constexpr uint32_t kInputs = 72, kHeads = 2, kHeadDim = 20, kBlockSize = 4, kBlocks = 40;
constexpr KvType kTypes[] = {KvType::kFloat32, KvType::kFloat16, KvType::kBFloat16, KvType::kInt8};

enum class Behind : uint8_t { kLayerNorm, kRmsNorm, kNormInPlace, kWriteKv, kGate, kNothing };
// Behind a product that is behind attention.
enum class Norm : uint8_t { kNone, kLayer, kRms, kInPlace };

struct Case {
  size_t format = 0;  // float32, float16, bfloat16, int8; by matrices float16, bfloat16, int8
  Behind behind = Behind::kLayerNorm;
  uint32_t rows = 1;
  KvType type = KvType::kFloat32;
  std::optional<InputRounding> rounds = {};  // what is made is rounded, too
};

struct AttentionCase {
  size_t format = 0;  // not int8
  KvType type = KvType::kFloat32;
  uint32_t rows = 1, heads = 5, head_dim = 64, columns = 70;
  Norm norm = Norm::kInPlace;
  std::optional<InputRounding> rounds = {};  // what attention gives, and no product
};

// Ops over memory of a timeline, the same for the same seed.
class Ops final {
 public:
  Ops(VulkanTimeline& timeline, uint32_t seed) : timeline_(timeline), rng_(seed) {}

  BufferRange put(std::span<const std::byte> bytes) {
    std::byte* const there = timeline_.allocate(bytes.size()).value();
    timeline_.copy_in(there, bytes.data(), bytes.size());
    memories_.emplace_back(there, bytes.size());
    return timeline_.range(there, bytes.size());
  }
  BufferRange floats(uint64_t count) {
    std::vector<float> values(count);
    testing::fill_with_normals(values, rng_);
    return put(std::as_bytes(std::span(values)));
  }
  // Two numbers of 16 bits a word, of exponents from `least` on, as the type has them.
  BufferRange halves(uint64_t words, uint32_t mantissa_bits, uint32_t least) {
    std::vector<uint32_t> values(words);
    const auto half = [&] {
      return (rng_() & 1) << 15 | (least + rng_() % 6) << mantissa_bits | rng_() % (1u << mantissa_bits);
    };
    for (uint32_t& value : values) value = static_cast<uint32_t>(half() << 16 | half());
    return put(std::as_bytes(std::span(values)));
  }
  BufferRange integers(uint64_t words, uint32_t most) {
    std::vector<uint32_t> values(words);
    for (uint32_t& value : values) value = static_cast<uint32_t>(rng_()) % most;
    return put(std::as_bytes(std::span(values)));
  }
  DeviceMatrix matrix(uint32_t rows, uint32_t columns, uint32_t gap = 3) {
    const BufferRange there = floats(uint64_t{rows} * (columns + gap));
    return {there.buffer, there.begin, rows, columns, columns + gap};
  }

  // y = product of rows, on top of y where that is wanted.
  void product(const Case& c, const DeviceMatrix& y, bool adds) {
    const uint32_t panels = (y.columns + 31) / 32;
    DeviceEpilogue epilogue{.bias = floats(y.columns), .activation = adds ? Activation::kNone : Activation::kRelu};
    if (adds) epilogue.residual = y;
    const VulkanDeviceInfo& info = timeline_.info();
    DeviceTiling tiling;
    if (c.format > 3) tiling.rows = c.format == 6 ? info.int8_tile->m : info.half_tile->m;
    if (c.format % 3 == 0 && c.format > 0) {
      const DeviceRoundedRows rounded{put_words(DeviceRoundedRows::q_words(c.rows, kInputs, {})), put_words(2 * c.rows),
                                      c.rows, kInputs};
      const DeviceMatrix x = matrix(c.rows, kInputs);
      const DeviceInt8Weights w{integers(uint64_t{panels} * 32 * 128 / 4, UINT32_MAX),
                                floats(uint64_t{panels} * 32),
                                integers(uint64_t{panels} * 32, 500),
                                y.columns,
                                kInputs,
                                tiling};
      record_round_rows(timeline_.recorder(), x, rounded);
      return record_product(timeline_.recorder(), rounded, w, epilogue, y);
    }
    DeviceWeights w = weights(c.format > 3 ? c.format - 3 : c.format, y.columns, kInputs);
    w.tiling = tiling;
    record_product(timeline_.recorder(), matrix(c.rows, kInputs), w, epilogue, y);
  }
  DeviceWeights weights(size_t format, uint32_t n, uint32_t k) {
    const uint64_t panels = (n + 31) / 32;
    DeviceWeights w{{}, n, k, static_cast<DeviceFormat>(format)};
    if (format == 0) w.panels = floats(panels * 32 * k);
    if (format == 1) w.panels = halves(panels * 16 * k, 10, 11);
    if (format == 2) w.panels = halves(panels * 16 * ((k + 31) / 32 * 32), 7, 122);
    return w;
  }

  // Room for what is rounded of rows; before ops are recorded, as its content is copied.
  std::optional<DeviceRoundedRows> room_for(uint32_t rows, uint32_t columns, std::optional<InputRounding> inputs) {
    if (!inputs.has_value()) return std::nullopt;
    const uint64_t words = DeviceRoundedRows::q_words(rows, columns, *inputs);
    return DeviceRoundedRows{put_words(words), put_words(2 * rows), rows, columns, *inputs};
  }
  void round(const DeviceMatrix& x, const std::optional<DeviceRoundedRows>& rounded) {
    if (rounded.has_value()) record_round_rows(timeline_.recorder(), x, *rounded);
  }

  // Of rows with up to 200 keys, in blocks that hold numbers of their type.
  void record(const AttentionCase& c) {
    constexpr uint32_t kTokens = 8, kMostKeys = 200, kTable = kMostKeys / kTokens;
    const uint32_t width = c.heads * c.head_dim;
    const DeviceMatrix q = matrix(c.rows, width), out = matrix(c.rows, width), y = matrix(c.rows, c.columns);
    const auto stride = static_cast<uint32_t>(kv_part_bytes(c.type, kTokens, c.head_dim) * c.heads / 4);
    const DeviceKv kv{integers(uint64_t{stride} * kBlocks, 1), kBlocks, kTokens, stride, c.heads, c.head_dim, c.type};
    std::vector<uint32_t> slots(kBlocks * kTokens), tables(kTable);
    for (uint32_t i = 0; i < slots.size(); ++i) slots[i] = i;
    for (uint32_t& block : tables) block = static_cast<uint32_t>(rng_()) % kBlocks;
    const auto num_slots = static_cast<uint32_t>(slots.size());
    record_write_kv(timeline_.recorder(), matrix(num_slots, width), matrix(num_slots, width),
                    put(std::as_bytes(std::span(slots))), kv);
    std::vector<AttentionRow> rows(c.rows);
    for (AttentionRow& row : rows) row = {.key_begin = 0, .key_end = static_cast<uint32_t>(rng_()) % kMostKeys};
    const BufferRange list = put(std::as_bytes(std::span(rows))), table = put(std::as_bytes(std::span(tables)));
    const DeviceWeights w = weights(c.format, c.columns, width);
    const DeviceEpilogue epilogue{.bias = floats(c.columns), .residual = y};
    const DeviceMatrix normed = matrix(c.rows, c.columns, 1);
    const BufferRange gain = floats(c.columns), shift = floats(c.columns);
    const auto rounded = room_for(c.rows, width, c.rounds);
    record_attention(timeline_.recorder(), {.q = q, .out = out, .heads = c.heads, .scale = 0.2f, .rows = list}, kv,
                     table);
    if (rounded.has_value()) return round(out, rounded);
    record_product(timeline_.recorder(), out, w, epilogue, y);
    if (c.norm == Norm::kLayer) record_layer_norm(timeline_.recorder(), y, gain, shift, 1e-3f, normed);
    if (c.norm == Norm::kInPlace) record_layer_norm(timeline_.recorder(), y, gain, shift, 1e-3f, y);
    if (c.norm == Norm::kRms) record_rms_norm(timeline_.recorder(), y, gain, 1e-3f, normed);
  }

  void record(const Case& c) {
    const uint32_t width = kHeads * kHeadDim;
    switch (c.behind) {
      case Behind::kLayerNorm:
      case Behind::kRmsNorm: {
        const DeviceMatrix y = matrix(c.rows, 70), normed = matrix(c.rows, 70, 1);
        const BufferRange gain = floats(70), shift = floats(70);
        const auto rounded = room_for(c.rows, 70, c.rounds);
        product(c, y, true);
        if (c.behind == Behind::kRmsNorm) {
          record_rms_norm(timeline_.recorder(), y, gain, 1e-3f, normed);
        } else {
          record_layer_norm(timeline_.recorder(), y, gain, shift, 1e-3f, normed);
        }
        return round(normed, rounded);
      }
      case Behind::kNormInPlace: {
        const DeviceMatrix y = matrix(c.rows, 70);
        const BufferRange gain = floats(70), shift = floats(70);
        const auto rounded = room_for(c.rows, 70, c.rounds);
        product(c, y, true);
        record_layer_norm(timeline_.recorder(), y, gain, shift, 1e-3f, y);
        return round(y, rounded);
      }
      case Behind::kWriteKv: {
        const DeviceMatrix y = matrix(c.rows, 3 * width);
        std::vector<uint32_t> slots(c.rows);
        for (uint32_t i = 0; i < c.rows; ++i) slots[i] = (i * 7 + 3) % (kBlockSize * kBlocks);
        slots[c.rows / 2] = UINT32_MAX;
        const BufferRange list = put(std::as_bytes(std::span(slots)));
        const auto stride = static_cast<uint32_t>(kv_part_bytes(c.type, kBlockSize, kHeadDim) * kHeads / 4 + 5);
        const DeviceKv kv{
            integers(uint64_t{stride} * kBlocks, 1u << 20), kBlocks, kBlockSize, stride, kHeads, kHeadDim, c.type};
        product(c, y, false);
        return record_write_kv(timeline_.recorder(), y.slice(width, 2 * width), y.slice(2 * width, 3 * width), list,
                               kv);
      }
      case Behind::kGate: {
        const DeviceMatrix y = matrix(c.rows, 2 * width);
        const auto rounded = room_for(c.rows, width, c.rounds);
        product(c, y, false);
        record_gated_activation(timeline_.recorder(), Activation::kGelu, y.slice(0, width), y.slice(width, 2 * width),
                                y.slice(0, width));
        return round(y.slice(0, width), rounded);
      }
      case Behind::kNothing: {
        const DeviceMatrix y = matrix(c.rows, 70);
        const auto rounded = room_for(c.rows, 70, c.rounds);
        product(c, y, false);
        return round(y, rounded);
      }
    }
  }

  std::vector<std::vector<std::byte>> all() {
    std::vector<std::vector<std::byte>> result;
    for (const auto& [address, size] : memories_) {
      result.emplace_back(size);
      timeline_.copy_out(result.back().data(), address, size);
    }
    return result;
  }

 private:
  BufferRange put_words(uint64_t words) { return put(std::vector<std::byte>(words * 4)); }

  VulkanTimeline& timeline_;
  std::mt19937 rng_;
  std::vector<std::pair<std::byte*, uint64_t>> memories_;
};

class VulkanFusedOpsTest : public testing::VulkanRigTest {
 protected:
  void TearDown() override {
    if (VulkanRig::get(GetParam()) == nullptr) return;
    for (const std::string& problem : rig().take_problems()) ADD_FAILURE() << problem;
    VulkanRigTest::TearDown();
  }
  using VulkanRig = testing::VulkanRig;

  // All that there is after so many runs, and the dispatches of one.
  template <typename C>
  std::pair<std::vector<std::vector<std::byte>>, int64_t> run(const C& c, bool fuses, uint32_t seed) {
    const auto timeline = VulkanTimeline::create(rig().shared_device(), {.fuses = fuses}).value();
    Ops ops(*timeline, seed);
    timeline->begin_step();
    ops.record(c);
    const StepCounts counts = timeline->end_step();
    std::vector<std::vector<std::byte>> all = ops.all();
    EXPECT_TRUE(timeline->status().ok());
    return {std::move(all), counts.num_dispatches};
  }
  template <typename C>
  void compare(const C& c, uint32_t seed, int64_t num_saved = 1) {
    const auto [expected, num_apart] = run(c, false, seed);
    const auto [all, num_fused] = run(c, true, seed);
    EXPECT_EQ(num_fused, num_apart - num_saved);
    ASSERT_EQ(all.size(), expected.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], expected[i]) << "memory " << i;
  }
};

TEST_P(VulkanFusedOpsTest, FusedOpsHaveTheBitsOfTheirParts) {
  uint32_t seed = 1;
  const VulkanDeviceInfo& info = rig().shared_device()->info();
  for (size_t format = 0; format < kNumProducts; ++format) {
    if (format > 3 && !(format == 6 ? info.int8_tile : info.half_tile).has_value()) continue;
    for (const Behind behind : {Behind::kLayerNorm, Behind::kRmsNorm, Behind::kNormInPlace, Behind::kGate}) {
      for (const uint32_t rows : {1u, 21u}) {
        SCOPED_TRACE(str_cat("format ", format, ", behind ", static_cast<int>(behind), ", ", rows, " rows"));
        compare(Case{format, behind, rows}, ++seed);
      }
    }
    for (const KvType type : kTypes) {
      for (const uint32_t rows : {1u, 21u}) {
        SCOPED_TRACE(str_cat("format ", format, ", KV ", static_cast<int>(type), ", ", rows, " rows"));
        compare(Case{format, Behind::kWriteKv, rows, type}, ++seed);
      }
    }
  }
}

TEST_P(VulkanFusedOpsTest, AttentionWithItsProductAndNorm) {
  uint32_t seed = 1;
  for (size_t format = 0; format < 3; ++format) {
    for (const KvType type : kTypes) {
      SCOPED_TRACE(str_cat("format ", format, ", KV ", static_cast<int>(type)));
      compare(AttentionCase{.format = format, .type = type, .rows = 5}, ++seed, 2);
    }
  }
  for (const Norm norm : {Norm::kNone, Norm::kLayer, Norm::kRms, Norm::kInPlace}) {
    for (const uint32_t rows : {1u, 17u}) {
      SCOPED_TRACE(str_cat("norm ", static_cast<int>(norm), ", ", rows, " rows"));
      compare(AttentionCase{.rows = rows, .heads = 4, .columns = 160, .norm = norm}, ++seed,
              norm == Norm::kNone ? 1 : 2);
    }
  }
}

// Of int8 products, in each way that inputs are rounded; of 70 and 40 columns, of which 2 and 0 are left of a word.
TEST_P(VulkanFusedOpsTest, RoundingsBehindWhatMakesTheirRows) {
  uint32_t seed = 1;
  for (const InputRounding inputs : {InputRounding::kUsual, InputRounding::kWide, InputRounding::kOutliers}) {
    for (const uint32_t rows : {1u, 21u}) {
      for (const Behind behind :
           {Behind::kLayerNorm, Behind::kRmsNorm, Behind::kNormInPlace, Behind::kGate, Behind::kNothing}) {
        SCOPED_TRACE(
            str_cat("inputs ", static_cast<int>(inputs), ", behind ", static_cast<int>(behind), ", ", rows, " rows"));
        compare(Case{.format = 3, .behind = behind, .rows = rows, .rounds = inputs}, ++seed,
                behind == Behind::kNothing ? 1 : 2);
      }
      for (const KvType type : kTypes) {
        SCOPED_TRACE(
            str_cat("inputs ", static_cast<int>(inputs), ", KV ", static_cast<int>(type), ", ", rows, " rows"));
        compare(AttentionCase{.type = type, .rows = rows, .heads = 3, .head_dim = 20, .rounds = inputs}, ++seed);
      }
    }
  }
}

// Each time from counts that the last run has left 0.
TEST_P(VulkanFusedOpsTest, CountsAreReadyForTheNextRun) {
  std::vector<std::vector<std::byte>> results[2];
  for (const bool fuses : {false, true}) {
    const auto timeline = VulkanTimeline::create(rig().shared_device(), {.fuses = fuses}).value();
    Ops ops(*timeline, 7);
    for (int step = 0; step < 5; ++step) {
      timeline->begin_step();
      for (const uint32_t rows : {64u, 3u, 17u}) ops.record(Case{1, Behind::kNormInPlace, rows});
      ops.record(AttentionCase{.rows = 6});
      ops.record(AttentionCase{.rows = 6, .rounds = InputRounding::kUsual});
      ops.record(Case{.format = 3, .behind = Behind::kGate, .rows = 19, .rounds = InputRounding::kUsual});
      (void)timeline->end_step();
    }
    results[fuses] = ops.all();
  }
  EXPECT_EQ(results[1], results[0]);
}

INSTANTIATE_TEST_SUITE_P(Lanes, VulkanFusedOpsTest, ::testing::Bool());

// Over buffers of no device.
class FuseOps : public ::testing::Test {
 protected:
  static constexpr uint32_t kRows = 8, kColumns = 32;

  static DeviceMatrix matrix(uint32_t buffer, uint32_t columns = kColumns) {
    return DeviceMatrix::dense(BufferId{buffer}, kRows, columns);
  }
  static BufferRange floats(uint32_t buffer, uint64_t count, uint64_t begin = 0) {
    return {BufferId{buffer}, begin, count * 4};
  }
  void product(const DeviceMatrix& x, const DeviceMatrix& y, const DeviceMatrix& residual = {}) {
    record_product(recorder_, x, {floats(2, uint64_t{y.columns} * x.columns), y.columns, x.columns},
                   {.residual = residual}, y);
  }
  void norm(const DeviceMatrix& x, const DeviceMatrix& y) {
    record_layer_norm(recorder_, x, floats(4, x.columns), floats(5, x.columns), 1, y);
  }
  std::vector<std::string> fused() {
    std::vector<std::string> names;
    for (const RecordedOp& op : fuse_ops(recorder_.ops(), room_)) {
      names.emplace_back(op.kind == RecordedOp::Kind::kKernel ? op.kernel->name : "copy");
    }
    recorder_.clear();
    return names;
  }
  using Names = std::vector<std::string>;
  static Names one() { return {"product_float32_layer_norm"}; }
  static Names two() { return {"product_float32", "layer_norm"}; }

  Recorder recorder_;
  FusionRoom room_{floats(9, 64), floats(10, 4096), 16};
};

TEST_F(FuseOps, NormsOfAllOfAProduct) {
  product(matrix(1), matrix(3), matrix(3)), norm(matrix(3), matrix(3));
  EXPECT_EQ(fused(), one());
  product(matrix(1), matrix(3)), norm(matrix(3), matrix(6));
  EXPECT_EQ(fused(), one());
  product(matrix(1), matrix(3), matrix(7)), norm(matrix(3), matrix(6));
  EXPECT_EQ(fused(), two()) << "what is added is not y";
  product(matrix(1), matrix(3)), norm(matrix(6), matrix(6));
  EXPECT_EQ(fused(), two()) << "of something else";
  product(matrix(1), matrix(3)), norm(matrix(3).slice(0, 16), matrix(6, 16));
  EXPECT_EQ(fused(), two()) << "of some columns";
  product(matrix(1), matrix(3)), norm(matrix(3), matrix(1));
  EXPECT_EQ(fused(), two()) << "over what the product reads";
  DeviceMatrix moved = matrix(3);
  moved.begin = 4;
  product(matrix(1), matrix(3)), norm(matrix(3), moved);
  EXPECT_EQ(fused(), two()) << "over y, at other places";
}

TEST_F(FuseOps, NeighboursAlone) {
  product(matrix(1), matrix(3));
  recorder_.copy(floats(7, 8), floats(8, 8));
  norm(matrix(3), matrix(3));
  EXPECT_EQ(fused(), (Names{"product_float32", "copy", "layer_norm"}));
  norm(matrix(3), matrix(3)), product(matrix(3), matrix(6)), norm(matrix(6), matrix(6)), norm(matrix(6), matrix(6));
  EXPECT_EQ(fused(), (Names{"layer_norm", "product_float32_layer_norm", "layer_norm"}));
}

TEST_F(FuseOps, WhatTheDeviceAllows) {
  room_.max_operands = 7;
  product(matrix(1), matrix(3)), norm(matrix(3), matrix(3));
  EXPECT_EQ(fused(), two());
  room_ = {floats(9, 1), floats(10, 4096), 8};
  product(matrix(1), matrix(3)), norm(matrix(3), matrix(3));
  EXPECT_EQ(fused(), one());
  DeviceMatrix x = matrix(1), y = matrix(3);
  x.rows = y.rows = 9;
  product(x, y), norm(y, y);
  EXPECT_EQ(fused(), two()) << "a count for 8 rows";
}

TEST_F(FuseOps, KeysAndValuesOfItsColumns) {
  const auto write = [&](const DeviceMatrix& k, const DeviceMatrix& v, uint32_t cache, uint32_t slots) {
    record_write_kv(recorder_, k, v, floats(slots, kRows), {floats(cache, 4096), 4, 16, 1024, 2, 16});
  };
  const Names fused_write = {"product_float32_write_kv"}, apart = {"product_float32", "write_kv"};
  const DeviceMatrix y = matrix(3, 96);
  product(matrix(1), y), write(y.slice(32, 64), y.slice(64, 96), 6, 7);
  EXPECT_EQ(fused(), fused_write);
  product(matrix(1), y), write(y.slice(32, 64), matrix(8), 6, 7);
  EXPECT_EQ(fused(), apart) << "values of elsewhere";
  product(matrix(1), y), write(y.slice(32, 64), y.slice(64, 96), 2, 7);
  EXPECT_EQ(fused(), apart) << "over the weights";
  product(matrix(1), y), write(y.slice(32, 64), y.slice(64, 96), 6, 3);
  EXPECT_EQ(fused(), apart) << "at slots that the product writes";
}

TEST_F(FuseOps, AttentionWithAllThatItGives) {
  constexpr uint32_t kWidth = 256;
  const auto attend = [&](uint32_t heads, const DeviceMatrix& out) {
    const DeviceKv kv{floats(6, 65536), 4, 16, 8192, 1, kWidth / heads};
    record_attention(recorder_, {.q = matrix(7, kWidth), .out = out, .heads = heads, .rows = floats(11, 8 * kRows)}, kv,
                     floats(12, 4));
  };
  const DeviceMatrix mixed = matrix(8, kWidth), y = matrix(3);
  attend(4, mixed), product(mixed, y, y), norm(y, y);
  EXPECT_EQ(fused(), Names{"attention_out_float32"});
  attend(4, mixed), product(mixed, y, y), norm(y, mixed.slice(0, kColumns));
  EXPECT_EQ(fused(), (Names{"attention_out_float32", "layer_norm"})) << "over what attention gives";
  attend(4, mixed), product(mixed, matrix(7), matrix(7)), norm(y, y);
  EXPECT_EQ(fused(), (Names{"attention", "product_float32", "layer_norm"})) << "over queries";
  attend(4, mixed), product(matrix(1, kWidth), y), norm(y, y);
  EXPECT_EQ(fused(), (Names{"attention", "product_float32_layer_norm"})) << "of something else";
  attend(8, mixed), product(mixed, y, y), norm(y, y);
  EXPECT_EQ(fused(), (Names{"attention", "product_float32_layer_norm"})) << "heads are no whole blocks";
  room_.sums = floats(10, 1023);
  attend(4, mixed), product(mixed, y, y), norm(y, y);
  EXPECT_EQ(fused(), (Names{"attention", "product_float32_layer_norm"})) << "there is no room for sums";
  room_.sums = floats(10, 1024);
  attend(4, mixed), product(mixed, y, y), norm(y, y);
  EXPECT_EQ(fused(), Names{"attention_out_float32"});
}

TEST_F(FuseOps, RoundingsOfAllThatIsMade) {
  const DeviceMatrix y = matrix(3);
  const auto rounded = [](uint32_t q, uint32_t codes, uint32_t columns = kColumns) {
    const uint64_t words = DeviceRoundedRows::q_words(kRows, columns, InputRounding::kUsual);
    return DeviceRoundedRows{floats(q, words), floats(codes, 2 * kRows), kRows, columns, InputRounding::kUsual};
  };
  const auto int8_product = [&](const DeviceMatrix& residual) {
    const DeviceInt8Weights w{floats(24, 32 * 64 / 4), floats(25, 32), floats(26, 32), kColumns, kColumns};
    record_product(recorder_, rounded(20, 21), w, {.residual = residual}, y);
  };
  const auto round = [&](const DeviceMatrix& x, uint32_t q, uint32_t codes) {
    record_round_rows(recorder_, x, rounded(q, codes, x.columns));
    return fused();
  };
  int8_product(y), norm(y, y);
  EXPECT_EQ(round(y, 22, 23), Names{"product_int8_layer_norm_round"});
  int8_product({});
  EXPECT_EQ(round(y, 22, 23), Names{"product_int8_round"});
  int8_product(matrix(7));
  EXPECT_EQ(round(y, 22, 23), (Names{"product_int8", "round_rows"})) << "what is added is not y";
  int8_product(y), norm(y, matrix(6));
  EXPECT_EQ(round(y, 22, 23), (Names{"product_int8_layer_norm", "round_rows"})) << "of what is not normalised";
  int8_product(y), norm(y, y);
  EXPECT_EQ(round(y, 20, 23), (Names{"product_int8_layer_norm", "round_rows"})) << "over rows that are still read";
  int8_product(y), norm(y, y);
  EXPECT_EQ(round(y, 22, 21), (Names{"product_int8_layer_norm", "round_rows"})) << "over codes that are still read";
  int8_product(y), norm(y, y);
  EXPECT_EQ(round(y, 22, 5), (Names{"product_int8_layer_norm", "round_rows"})) << "over what the norm adds";
  int8_product(y), norm(y, y);
  EXPECT_EQ(round(y.slice(0, 16), 22, 23), (Names{"product_int8_layer_norm", "round_rows"})) << "of some columns";
  int8_product(y), norm(y, y);
  record_round_rows(recorder_, DeviceMatrix::dense(BufferId{3}, kRows - 1, kColumns),
                    {floats(22, 7 * 8), floats(23, 14), kRows - 1, kColumns, InputRounding::kUsual});
  EXPECT_EQ(fused(), (Names{"product_int8_layer_norm", "round_rows"})) << "of some rows";
  product(matrix(1), y), norm(y, y);
  EXPECT_EQ(round(y, 22, 23), (Names{"product_float32_layer_norm", "round_rows"})) << "behind other weights";
  room_.max_operands = 12;
  int8_product(y), norm(y, y);
  EXPECT_EQ(round(y, 22, 23), (Names{"product_int8_layer_norm", "round_rows"})) << "13 operands";
}

TEST_F(FuseOps, RoundingsOfAllHeads) {
  constexpr uint32_t kWidth = 64;
  const DeviceMatrix mixed = matrix(8, kWidth);
  const auto attend = [&](const DeviceMatrix& out) {
    const DeviceKv kv{floats(6, 65536), 4, 16, 8192, 1, kWidth / 4};
    record_attention(recorder_, {.q = matrix(7, kWidth), .out = out, .heads = 4, .rows = floats(11, 8 * kRows)}, kv,
                     floats(12, 4));
  };
  const auto round = [&](const DeviceMatrix& x, uint32_t q) {
    const uint64_t words = DeviceRoundedRows::q_words(kRows, x.columns, InputRounding::kUsual);
    record_round_rows(recorder_, x, {floats(q, words), floats(23, 2 * kRows), kRows, x.columns, InputRounding::kUsual});
    return fused();
  };
  const Names apart = {"attention", "round_rows"};
  attend(mixed);
  EXPECT_EQ(round(mixed, 22), Names{"attention_round"});
  attend(mixed);
  EXPECT_EQ(round(mixed.slice(0, 32), 22), apart) << "of two heads";
  attend(mixed);
  EXPECT_EQ(round(matrix(13, kWidth), 22), apart) << "of something else";
  attend(mixed);
  EXPECT_EQ(round(mixed, 7), apart) << "over queries";
  room_.arrivals = floats(9, kRows - 1);
  attend(mixed);
  EXPECT_EQ(round(mixed, 22), apart) << "a count for each row";
}

TEST_F(FuseOps, GatesOfItsColumns) {
  const DeviceMatrix y = matrix(3, 64);
  const auto gate = [&](const DeviceMatrix& x, const DeviceMatrix& made) {
    product(matrix(1), y);
    record_gated_activation(recorder_, Activation::kRelu, y.slice(0, 32), x, made);
    return fused();
  };
  const Names apart = {"product_float32", "gated_activation"};
  EXPECT_EQ(gate(y.slice(32, 64), y.slice(0, 32)), Names{"product_float32_gate"});
  EXPECT_EQ(gate(y.slice(32, 64), matrix(6)), apart) << "elsewhere";
  EXPECT_EQ(gate(y.slice(32, 64), y.slice(16, 48)), apart) << "over columns that others still read";
}

}  // namespace
}  // namespace transept
