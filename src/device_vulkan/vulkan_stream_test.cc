// Recordings on a software device: bits of a row in every company, replays, grids in buffers, large memory, deadlines;
// and a declaration that is missing, which the validation layer has to tell.
#include "device_vulkan/vulkan_stream.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/check.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;
using testing::VulkanRig;

class VulkanStreamTest : public testing::VulkanRigTest {};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanStreamTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

// A layer's way: norm, product with a residual, gate, choice.
struct Layer {
  static constexpr uint32_t kWidth = 80, kInner = 70;
  BufferRange weight, bias;
  DeviceWeights up, down;

  explicit Layer(VulkanRig& rig)
      : weight(rig.put_range(random_floats(kWidth, 1))), bias(rig.put_range(random_floats(kWidth, 2))) {
    up = put(rig, kInner, kWidth, 3);
    down = put(rig, kWidth, kInner, 4);
  }
  static DeviceWeights put(VulkanRig& rig, uint32_t n, uint32_t k, uint32_t seed) {
    const PackedMatrix packed = test_util::pack(random_floats(n * k, seed, 0.2f), n, k);
    const std::span<const std::byte> panels = packed.views().panels;
    return {{rig.put(panels), 0, panels.size()}, n, k};
  }
  // Operands begin at whole alignments: what is bound begins there, and the validation layer takes all of that for
  // touched.
  static uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }
  static uint64_t inner_begin(uint32_t rows) { return aligned(uint64_t{rows} * kWidth * 4); }
  static uint64_t y_begin(uint32_t rows) { return inner_begin(rows) + aligned(uint64_t{rows} * kInner * 4); }
  static uint64_t choices_begin(uint32_t rows) { return y_begin(rows) + aligned(uint64_t{rows} * kWidth * 4); }
  static uint64_t words(uint32_t rows) { return choices_begin(rows) / 4 + uint64_t{rows} * 3; }

  // memory: words(rows) of them. Returns the result.
  DeviceMatrix record(Recorder& recorder, const DeviceMatrix& x, BufferId memory) const {
    const DeviceMatrix normal = DeviceMatrix::dense(memory, x.rows, kWidth);
    const DeviceMatrix inner = DeviceMatrix::dense(memory, x.rows, kInner, inner_begin(x.rows));
    const DeviceMatrix y = DeviceMatrix::dense(memory, x.rows, kWidth, y_begin(x.rows));
    record_layer_norm(recorder, x, weight, bias, 1e-5f, normal);
    record_product(recorder, normal, up, {.activation = Activation::kGelu}, inner);
    record_product(recorder, inner, down, {.residual = x}, y);
    record_gated_activation(recorder, Activation::kSilu, y, normal, y);
    record_choose(recorder, y, {memory, choices_begin(x.rows), uint64_t{x.rows} * sizeof(DeviceChoice)});
    return y;
  }
};

TEST_P(VulkanStreamTest, ARowsBitsDependOnNoOther) {
  const Layer layer(rig());
  constexpr uint32_t kMost = 64;
  constexpr size_t kRow = Layer::kWidth * sizeof(float);
  const BufferId x = rig().put(random_floats(kMost * Layer::kWidth, 5));
  const auto rows = [&](uint32_t first, uint32_t count) {
    return DeviceMatrix::dense(x, count, Layer::kWidth, uint64_t{first} * Layer::kWidth * 4);
  };
  struct Part {
    uint32_t first, count;
    DeviceMatrix y;
  };
  std::vector<Part> parts;
  for (uint32_t count = 1; count <= kMost; ++count) parts.push_back({0, count, {}});
  for (uint32_t first = 1; first < kMost; ++first) parts.push_back({first, 1, {}});  // alone, at every place
  for (uint32_t first = 1; first < kMost; first += 5) parts.push_back({first, kMost - first, {}});
  for (Part& part : parts) {
    part.y = layer.record(rig().recorder(), rows(part.first, part.count), rig().make(Layer::words(part.count)));
  }
  rig().run();
  // Results and choices of a part, one behind the other.
  const auto content = [&](const Part& part) {
    std::vector<std::byte> both = rig().bytes(part.y.buffer, part.y.begin, part.count * kRow);
    const std::vector<std::byte> choices =
        rig().bytes(part.y.buffer, Layer::choices_begin(part.count), part.count * sizeof(DeviceChoice));
    both.insert(both.end(), choices.begin(), choices.end());
    return both;
  };
  const std::vector<std::byte> whole = content(parts[kMost - 1]);
  for (const Part& part : parts) {
    const std::vector<std::byte> y = content(part);
    ASSERT_EQ(std::memcmp(y.data(), whole.data() + part.first * kRow, part.count * kRow), 0)
        << part.count << " rows from " << part.first;
    ASSERT_EQ(std::memcmp(y.data() + part.count * kRow, whole.data() + kMost * kRow + part.first * sizeof(DeviceChoice),
                          part.count * sizeof(DeviceChoice)),
              0);
  }
}

TEST_P(VulkanStreamTest, RecordingsAreReplayed) {
  const Layer layer(rig());
  rig().run();
  constexpr uint32_t kRows = 5, kBytes = kRows * Layer::kWidth * 4;
  const BufferId x = rig().make(kBytes / 4), memory = rig().make(Layer::words(kRows));
  rig().run();
  const BufferId up = rig().memory().allocate(kBytes, MemoryKind::kUpload).value();
  const BufferId back = rig().memory().allocate(kBytes, MemoryKind::kReadback).value();
  Recorder recorder;
  recorder.copy({up, 0, kBytes}, {x, 0, kBytes});
  const DeviceMatrix y = layer.record(recorder, DeviceMatrix::dense(x, kRows, Layer::kWidth), memory);
  recorder.copy(y.range(), {back, 0, kBytes});
  auto prepared = rig().stream().prepare(recorder.finish()).value();
  for (uint32_t round = 0; round < 30; ++round) {
    const std::vector<float> values = random_floats(kRows * Layer::kWidth, 100 + round);
    ASSERT_TRUE(rig().memory().write(up, 0, std::as_bytes(std::span(values))).ok());
    const Ticket ticket = rig().stream().submit(*prepared).value();
    ASSERT_TRUE(rig().stream().wait(ticket, TimePoint::max()).ok());
    std::vector<float> replayed(values.size());
    ASSERT_TRUE(rig().memory().read(back, 0, std::as_writable_bytes(std::span(replayed))).ok());
    const BufferId once = rig().make(Layer::words(kRows));
    const DeviceMatrix recorded =
        layer.record(rig().recorder(), DeviceMatrix::dense(rig().put(values), kRows, Layer::kWidth), once);
    rig().run();
    ASSERT_EQ(rig().values(once, values.size(), recorded.begin / 4), replayed) << round;
  }
  prepared.reset();
  rig().memory().free(up);
  rig().memory().free(back);
}

TEST_P(VulkanStreamTest, AGridMayStandInABuffer) {
  const std::vector<float> x = random_floats(6 * 8, 1), ones(8, 1);
  const DeviceMatrix in = DeviceMatrix::dense(rig().put(x), 6, 8), all = rig().make_matrix(6, 8),
                     some = rig().make_matrix(6, 8);
  const BufferRange weight = rig().put_range(ones);
  const BufferId counts = rig().make(5, 1);
  rig().recorder().fill({counts, 8, 4}, 4);  // four rows: what a step finds out by itself
  const std::array<uint32_t, 4> arguments{8, 8, 8, 0};
  record_rms_norm(rig().recorder(), in, weight, 0, all);
  rig().recorder().run(kRmsNormKernel, std::as_bytes(std::span(arguments)),
                       std::array{in.range(), weight, some.range()}, {.indirect = {counts, 8, 12}});
  rig().run();
  const std::vector<float> whole = rig().values(all.buffer, 48), part = rig().values(some.buffer, 48);
  EXPECT_TRUE(std::equal(whole.begin(), whole.begin() + 32, part.begin()));
  for (size_t i = 32; i < 48; ++i) EXPECT_TRUE(std::isnan(part[i]));
}

TEST_P(VulkanStreamTest, ABufferOfTheDevicesLargestRangeIsUsedToItsEnd) {
  const uint64_t most = rig().memory().max_bytes();
  ASSERT_GE(most, uint64_t{1} << 27);  // the specification's least, and lavapipe's
  if (most > uint64_t{1} << 28) GTEST_SKIP() << "the device has ranges of " << most << " bytes";
  EXPECT_FALSE(rig().memory().allocate(most + 4, MemoryKind::kDevice).ok());
  const BufferId large = rig().make(most / 4, 0);
  const std::vector<float> x = random_floats(7, 1);
  const BufferId from = rig().put(x);
  const uint64_t begin = most - 7 * 4;  // at no alignment
  rig().recorder().copy({from, 0, 28}, {large, begin, 28});
  record_add(rig().recorder(), DeviceMatrix::dense(from, 1, 7), {}, DeviceMatrix::dense(large, 1, 7, begin));
  rig().run();
  const std::vector<float> y = rig().values(large, 8, most / 4 - 8);
  EXPECT_EQ(y[0], 0);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(y[i + 1], 2 * x[i]);
}

TEST_P(VulkanStreamTest, ADeadlineInThePastAsksWithoutWaiting) {
  const BufferId buffer = rig().make(1 << 20);
  for (int i = 0; i < 100; ++i) rig().recorder().fill({buffer, 0, 4 << 20}, 1);
  const auto prepared = rig().stream().prepare(rig().recorder().finish()).value();
  // A device that computes on the processor may have ended before this thread runs again.
  bool was_late = false;
  for (int i = 0; i < 20 && !was_late; ++i) {
    const Ticket ticket = rig().stream().submit(*prepared).value();
    was_late = absl::IsDeadlineExceeded(rig().stream().wait(ticket, TimePoint()));
    EXPECT_TRUE(rig().stream().wait(ticket, TimePoint::max()).ok());
    EXPECT_TRUE(rig().stream().wait(ticket, TimePoint()).ok());
  }
  EXPECT_TRUE(was_late);
}

// The norm, which says that it only reads what it writes: the recorder puts no barrier between the two.
TEST_P(VulkanStreamTest, TheLayerTellsOfADeclarationThatIsMissing) {
  if (!rig().is_watched()) GTEST_SKIP() << "no validation layer watches the device";
  constexpr Use kLess[] = {Use::kRead, Use::kRead, Use::kRead};
  const KernelSpec spoiled{kRmsNormKernel.name, kLess, kRmsNormKernel.argument_bytes};
  const DeviceMatrix x = DeviceMatrix::dense(rig().put(random_floats(64, 1)), 4, 16), y = rig().make_matrix(4, 16),
                     z = rig().make_matrix(4, 16);
  const BufferRange weight = rig().put_range(std::vector<float>(16, 1));
  rig().run();
  const std::array<uint32_t, 4> arguments{16, 16, 16, 0};
  for (const KernelSpec* spec : {&kRmsNormKernel, &spoiled}) {
    rig().recorder().run(*spec, std::as_bytes(std::span(arguments)), std::array{x.range(), weight, y.range()},
                         {.x = 4});
    record_rms_norm(rig().recorder(), y, weight, 0, z);
    rig().run_unchecked();
    std::string all;
    for (const std::string& problem : rig().take_problems()) all += problem;
    EXPECT_EQ(all.find("READ_AFTER_WRITE") != std::string::npos, spec == &spoiled) << all;
  }
}

}  // namespace
}  // namespace transept
