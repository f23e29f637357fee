// What models call on a device that reaches little in one range: products in parts of their outputs, and an encoder
// that rounds its keys and values.
#include <gtest/gtest.h>

#include <cmath>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "device_vulkan/vulkan_attention.h"
#include "device_vulkan/vulkan_ops.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;
using testing::VulkanRig;

class VulkanModelOpsTest : public testing::TimelineTest {
 protected:
  // A device of its own, with step memory.
  struct Opened {
    std::shared_ptr<VulkanSpace> space;
    ThreadPool pool{1};
    VulkanModelDevice device;
    Arena arena;
    Context context{.device = device, .arena = arena};
    std::vector<DeviceBuffer> buffers = {};

    explicit Opened(uint64_t max_bytes)
        : space(VulkanSpace::create(
              VulkanTimeline::create(VulkanRig::get(false)->shared_device(), {.memory = {.max_bytes = max_bytes}})
                  .value())),
          device(space, vulkan_op_table(), pool, detect_isa()),
          arena(size_t{1} << 18, *space) {}

    TensorView put(const std::vector<float>& values, std::initializer_list<int64_t> dims) {
      buffers.push_back(space->allocate(values.size() * sizeof(float), MemoryUse::kSteps));
      space->copy_in(buffers.back().data(), values.data(), values.size() * sizeof(float));
      return TensorView(buffers.back().data(), DType::kFloat32, dims);
    }
    std::vector<float> get(const TensorView& view) {
      std::vector<float> values(static_cast<size_t>(view.num_elements()));
      space->copy_out(values.data(), view.raw, values.size() * sizeof(float));
      EXPECT_TRUE(space->status().ok()) << space->status();
      return values;
    }
  };
};

TEST_F(VulkanModelOpsTest, ProductsInPartsAreThoseOfTheWhole) {
  constexpr int64_t kRows = 9, kOutputs = 300, kInputs = 200;  // panels of 8192 to 25600 bytes
  const std::vector<float> x = random_floats(kRows * kInputs, 1), w = random_floats(kOutputs * kInputs, 2),
                           bias = random_floats(kOutputs, 3), residual = random_floats(kRows * kOutputs, 4);
  for (const PackedFormat& format :
       {PackedFormat{kFloat32Format}, PackedFormat{kInt8Format}, PackedFormat{kInt8Format, InputRounding::kOutliers}}) {
    std::vector<std::vector<float>> found;
    for (const uint64_t most : {uint64_t{1} << 20, uint64_t{1} << 16}) {
      Opened opened(most);
      const PackedMatrix there = test_util::pack(w, kOutputs, kInputs, format).placed(*opened.space);
      const TensorView y = opened.put(residual, {kRows, kOutputs});  // the residual is the result
      const float* const b = opened.put(bias, {kOutputs}).f32();
      gemm(opened.context, opened.put(x, {kRows, kInputs}), there, {.bias = b, .residual = y}, y);
      found.push_back(opened.get(y));
    }
    EXPECT_EQ(found[1], found[0]) << weight_format_name(format.weights);
  }
}

TEST_F(VulkanModelOpsTest, AnEncoderRoundsItsKeysAndValues) {
  constexpr int64_t kHeads = 2, kDim = 20, kRows = 45;
  const std::vector<int32_t> start = {0, 40, 45}, lens = {40, 5};
  const std::vector<float> q = random_floats(kRows * kHeads * kDim, 1), k = random_floats(kRows * kHeads * kDim, 2),
                           v = random_floats(kRows * kHeads * kDim, 3);
  const auto run = [&](DType dtype, bool on_device) {
    Opened opened(uint64_t{1} << 20);
    ThreadPool pool(1);
    CpuDevice processor{pool};
    Arena arena(size_t{1} << 20);
    Context here{.device = processor, .arena = arena};
    AttentionMetadata metadata{.num_seqs = 2,
                               .max_query_len = 40,
                               .max_kv_len = 40,
                               .query_start_loc = start,
                               .seq_lens = lens,
                               .kv_dtype = dtype,
                               .kv_start_loc = start};
    std::vector<float> own[4] = {q, k, v, std::vector<float>(q.size())};
    AttentionArgs args{.scale = 0.3f};
    TensorView* const views[] = {&args.q, &args.k, &args.v, &args.out};
    for (size_t i = 0; i < 4; ++i) {
      *views[i] = on_device ? opened.put(own[i], {kRows, kHeads, kDim})
                            : TensorView(own[i].data(), DType::kFloat32, {kRows, kHeads, kDim});
    }
    if (!on_device) {
      (*make_attention_backend("reference"))->run(here, AttentionType::kEncoder, metadata, args);
      return own[3];
    }
    VulkanAttention().run(opened.context, AttentionType::kEncoder, metadata, args);
    return opened.get(args.out);
  };
  for (const DType dtype : {DType::kFloat32, DType::kInt8}) {
    const std::vector<float> there = run(dtype, true), here = run(dtype, false);
    for (size_t i = 0; i < here.size(); ++i) ASSERT_NEAR(there[i], here[i], 1e-5) << dtype_name(dtype) << " at " << i;
  }
  EXPECT_NE(run(DType::kInt8, true), run(DType::kFloat32, true));
}

}  // namespace
}  // namespace transept
