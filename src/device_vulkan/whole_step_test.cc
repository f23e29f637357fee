// Three steps of a small decoder as one recording, whose tokens never leave the device: on the checking device, where
// each declaration that is taken away has to show, and on a software device, which has to say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/check.h"
#include "device_vulkan/host_kernels_testing.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;
using testing::CheckingDevice;
using testing::VulkanRig;

constexpr uint32_t kRows = 3, kSteps = 3, kWidth = 32, kHeads = 2, kDim = 16, kTokens = 50, kBlock = 2, kBlocks = 6;

// A decoder in a device's memory. Everything that its ops touch is allocated here.
class Decoder {
 public:
  explicit Decoder(Buffers& memory) : memory_(memory) {}

  // Records all steps. What they chose is in `back()`: [steps, rows] DeviceChoice.
  Recording record() {
    embedding_ = put(random_floats(kTokens * kWidth, 1));
    const BufferRange ids = put(std::vector<int32_t>{1, 2, 3});
    norm_weight_ = put(random_floats(kWidth, 3));
    norm_bias_ = put(random_floats(kWidth, 4));
    qkv_ = weights(4 * kDim, kWidth, 5);
    out_ = weights(kWidth, kHeads * kDim, 6);
    up_ = weights(2 * kWidth, kWidth, 7);
    logits_ = weights(kTokens, kWidth, 8, 0.03f);
    gate_ = put(random_floats(kWidth, 9));
    kv_ = {.cache = make(kBlocks * 2 * kBlock * kDim),
           .num_blocks = kBlocks,
           .block_size = kBlock,
           .block_stride = 2 * kBlock * kDim,
           .kv_heads = 1,
           .head_dim = kDim};
    tables_ = put(std::vector<uint32_t>{5, 0, 3, 1, 2, 4});  // two blocks a row
    arena_ = make(kRows * (kWidth * 6 + 4 * kDim + kHeads * kDim + kTokens));
    choices_ = make(kRows * 3);
    back_ = *memory_.allocate(uint64_t{kSteps} * kRows * sizeof(DeviceChoice), MemoryKind::kReadback);
    for (uint32_t step = 0; step < kSteps; ++step) {
      record_step(step, ids);
      recorder_.copy(choices_, {back_, step * choices_.size, choices_.size});
      for (uint32_t row = 0; row < kRows; ++row) {  // the next step's tokens
        recorder_.copy({choices_.buffer, row * sizeof(DeviceChoice), 4}, {ids.buffer, row * 4, 4});
      }
    }
    return recorder_.finish();
  }
  BufferId back() const { return back_; }

 private:
  template <typename T>
  BufferRange put(const std::vector<T>& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    const BufferId up = *memory_.allocate(bytes.size(), MemoryKind::kUpload);
    CHECK(memory_.write(up, 0, bytes).ok());
    const BufferRange there = make(bytes.size() / 4);
    recorder_.copy({up, 0, bytes.size()}, there);
    return there;
  }
  BufferRange make(uint64_t words) { return {*memory_.allocate(words * 4, MemoryKind::kDevice), 0, words * 4}; }
  DeviceWeights weights(uint32_t n, uint32_t k, uint32_t seed, float scale = 0.3f) {
    const PackedMatrix packed = test_util::pack(random_floats(n * k, seed, scale), n, k);
    const auto* first = reinterpret_cast<const float*>(packed.panels());
    return {put(std::vector<float>(first, first + packed.views().panels.size() / 4)), n, k};
  }
  DeviceMatrix next(uint32_t columns) {
    const DeviceMatrix matrix = DeviceMatrix::dense(arena_.buffer, kRows, columns, used_);
    used_ += matrix.range().size;
    return matrix;
  }

  // Memory is the last step's again, as an arena's.
  void record_step(uint32_t step, const BufferRange& ids) {
    used_ = 0;
    const DeviceMatrix x = next(kWidth), normal = next(kWidth), qkv = next(4 * kDim), mixed = next(kHeads * kDim),
                       inner = next(2 * kWidth), logits = next(kTokens);
    record_gather_rows(recorder_, {embedding_, kTokens, kWidth}, ids, 1.5f, x);
    record_rms_norm(recorder_, x, norm_weight_, 1e-5f, normal);
    record_product(recorder_, normal, qkv_, {}, qkv);
    std::vector<float> cosines, sines;
    std::vector<uint32_t> slots;
    std::vector<AttentionRow> rows;
    for (uint32_t row = 0; row < kRows; ++row) {
      for (uint32_t pair = 0; pair < kDim / 2; ++pair) {
        const float angle = static_cast<float>(step + 1) * std::pow(0.3f, static_cast<float>(pair));
        cosines.push_back(std::cos(angle));
        sines.push_back(std::sin(angle));
      }
      slots.push_back(std::vector<uint32_t>{5, 0, 3, 1, 2, 4}[row * 2 + step / kBlock] * kBlock + step % kBlock);
      rows.push_back({.table = row * 2, .key_end = step + 1, .position = static_cast<int32_t>(step)});
    }
    const BufferRange c = put(cosines), s = put(sines);
    record_rope(recorder_, DeviceMatrix::dense(c.buffer, kRows, kDim / 2),
                DeviceMatrix::dense(s.buffer, kRows, kDim / 2), true, 3, qkv.slice(0, 3 * kDim));
    record_write_kv(recorder_, qkv.slice(2 * kDim, 3 * kDim), qkv.slice(3 * kDim, 4 * kDim), put(slots), kv_);
    record_attention(recorder_,
                     {.q = qkv.slice(0, 2 * kDim), .out = mixed, .heads = kHeads, .scale = 0.25f, .rows = put(rows)},
                     kv_, tables_);
    record_product(recorder_, mixed, out_, {.residual = x}, x);
    record_layer_norm(recorder_, x, norm_weight_, norm_bias_, 1e-5f, normal);
    record_product(recorder_, normal, up_, {}, inner);
    record_gated_activation(recorder_, Activation::kGelu, inner.slice(0, kWidth), inner.slice(kWidth, 2 * kWidth),
                            normal);
    record_add(recorder_, normal, gate_, x);
    record_product(recorder_, x, logits_, {}, logits);
    record_choose(recorder_, logits, choices_);
  }

  Buffers& memory_;
  Recorder recorder_;
  BufferRange embedding_, norm_weight_, norm_bias_, gate_, tables_, arena_, choices_;
  DeviceWeights qkv_, out_, up_, logits_;
  DeviceKv kv_;
  BufferId back_ = BufferId::kNone;
  uint64_t used_ = 0;
};

using Choices = std::vector<DeviceChoice>;

Choices run(Buffers& memory, Stream& stream, const Recording& recording, BufferId back) {
  const auto prepared = stream.prepare(recording);
  CHECK(prepared.ok(), prepared.status().ToString());
  CHECK(
      stream.wait(stream.submit(**prepared).value(), std::chrono::steady_clock::now() + std::chrono::minutes(1)).ok());
  Choices choices(size_t{kSteps} * kRows);
  CHECK(memory.read(back, 0, std::as_writable_bytes(std::span(choices))).ok());
  return choices;
}

// What one kernel declares of one operand; "": nothing is spoiled.
struct Spoiled {
  std::string_view kernel;
  size_t operand = 0;
  Use use = Use::kRead;
};

// Records what is recorded with other declarations: waves follow from them.
Choices run_checked(uint32_t seed, const Spoiled& spoiled) {
  CheckingDevice device(seed);
  Decoder decoder(device);
  const Recording recording = decoder.record();
  std::map<const KernelSpec*, std::pair<std::vector<Use>, KernelSpec>> specs;
  for (const RecordedOp& op : recording.ops) {
    if (op.kernel == nullptr || specs.contains(op.kernel)) continue;
    auto& [uses, spec] = specs[op.kernel];
    uses.assign(op.kernel->operands.begin(), op.kernel->operands.end());
    if (op.kernel->name == spoiled.kernel) uses[spoiled.operand] = spoiled.use;
    spec = {op.kernel->name, uses, op.kernel->argument_bytes};
    testing::add_host_kernel(device, spec);
  }
  Recorder recorder;
  for (const RecordedOp& op : recording.ops) {
    if (op.kind == RecordedOp::Kind::kCopy) {
      recorder.copy(op.operands[0], op.operands[1]);
    } else {
      recorder.run(specs.at(op.kernel).second, op.arguments, op.operands, op.grid);
    }
  }
  return run(device, device, recorder.finish(), decoder.back());
}

bool same(const Choices& a, const Choices& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(DeviceChoice)) == 0;
}

TEST(WholeStepTest, EveryOrderThatTheBarriersAllowGivesTheSame) {
  const int64_t before = testing::num_out_of_range();
  const Choices first = run_checked(0, {});
  for (const DeviceChoice& choice : first) {
    EXPECT_TRUE(choice.id >= 0 && choice.id < static_cast<int32_t>(kTokens));
    EXPECT_TRUE(std::isfinite(choice.log_sum_exp));
    EXPECT_GT(choice.log_sum_exp, choice.value);
  }
  for (uint32_t seed = 1; seed < 20; ++seed) EXPECT_TRUE(same(run_checked(seed, {}), first)) << seed;
  EXPECT_EQ(testing::num_out_of_range(), before);
}

TEST(WholeStepTest, ADeclarationThatIsMissingShows) {
  const Choices right = run_checked(0, {});
  int num_spoiled = 0;
  for (const KernelSpec* spec :
       {&kGatherRowsKernels[0], &kRmsNormKernel, &kProductKernels[0], &kRopeKernel, &kWriteKvKernels[0],
        &kAttentionKernels[0], &kLayerNormKernel, &kGatedActivationKernel, &kAddRowsKernel, &kChooseKernel}) {
    for (size_t operand = 0; operand < spec->operands.size(); ++operand) {
      // Bound, and not read here: a product's bias, attention's.
      if (spec == &kProductKernels[0] && operand == 2) continue;
      if (spec == &kAttentionKernels[0] && operand == 5) continue;
      for (const Use use : {Use::kRead, Use::kWrite}) {
        if (use == spec->operands[operand]) continue;
        int num_right = 0;
        for (uint32_t seed = 0; seed < 5; ++seed) {
          num_right += same(run_checked(seed, {spec->name, operand, use}), right) ? 1 : 0;
        }
        EXPECT_LT(num_right, 5) << spec->name << " operand " << operand;
        ++num_spoiled;
      }
    }
  }
  EXPECT_GT(num_spoiled, 30);
}

TEST(WholeStepTest, ASoftwareDeviceSaysTheSame) {
  const Choices expected = run_checked(0, {});
  for (const bool is_reversed : {false, true}) {
    VulkanRig* rig = VulkanRig::get(is_reversed);
    if (rig == nullptr) GTEST_SKIP() << "no software device: " << VulkanRig::why();
    const auto memory = VulkanMemory::create(rig->shared_device()).value();
    const auto stream = VulkanStream::create(rig->shared_device(), *memory).value();
    Decoder decoder(*memory);
    const Recording recording = decoder.record();
    const Choices choices = run(*memory, *stream, recording, decoder.back());
    EXPECT_THAT(rig->take_problems(), ::testing::IsEmpty());
    for (size_t i = 0; i < choices.size(); ++i) {
      EXPECT_EQ(choices[i].id, expected[i].id) << i;
      EXPECT_NEAR(choices[i].value, expected[i].value, 1e-4) << i;
      EXPECT_NEAR(choices[i].log_sum_exp, expected[i].log_sum_exp, 1e-4) << i;
    }
  }
}

}  // namespace
}  // namespace transept
