// Attention and the writing of KV on a software device, over the problems of the processor's backends
// (attention/attention_problem_testing.h) against naive attention in double precision.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "attention/attention_problem_testing.h"
#include "attention/kv_format.h"
#include "base/checked_math.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

using testing::VulkanRig;

// Takes what a backend is handed to the device and back, so that the problems of backends run here. Each run is a
// recording of its own.
class DeviceBackend final : public AttentionBackend {
 public:
  explicit DeviceBackend(VulkanRig& rig) : rig_(rig) {}

  std::string_view name() const override { return "vulkan"; }
  bool supports(const AttentionCapabilities&, std::string*) const override { return true; }
  size_t block_bytes(const KvSpec& spec, int32_t block_size, DType) const override {
    return static_cast<size_t>(spec.num_kv_heads * kv_part_bytes(KvType::kFloat32, block_size, spec.head_dim));
  }
  void plan(Context&, ForwardBatch&) const override {}
  void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
           const AttentionArgs& args) const override;

 private:
  DeviceMatrix put(const TensorView& view) const;
  void put_bias(const AttentionBias& bias, int64_t seqs, int64_t rows, int64_t keys, DeviceBias& out) const;
  std::vector<AttentionRow> rows_of(AttentionType type, const AttentionMetadata& metadata,
                                    const AttentionArgs& args) const;
  BufferRange record_captured(const AttentionCapture& capture, const DeviceAttention& attention, const DeviceKv& kv,
                              const BufferRange& tables) const;

  VulkanRig& rig_;
};

// [rows, heads, dim] with their gaps.
DeviceMatrix DeviceBackend::put(const TensorView& view) const {
  const auto columns = static_cast<uint32_t>(view.dim(1) * view.dim(2)), rows = static_cast<uint32_t>(view.dim(0));
  const auto stride = static_cast<uint32_t>(view.stride[0]);
  const std::vector<float> values(view.f32(), view.f32() + (rows - 1) * view.stride[0] + columns);
  return {rig_.put(values), 0, rows, columns, stride};
}

void DeviceBackend::put_bias(const AttentionBias& bias, int64_t seqs, int64_t rows, int64_t keys,
                             DeviceBias& out) const {
  out.kind = bias.kind;
  std::vector<float> values;
  if (bias.kind == BiasKind::kMaterialized) {
    const std::array<int64_t, 4> dims{seqs, bias.materialized.dim(1), rows, keys};
    int64_t last = 0;
    for (size_t i = 0; i < 4; ++i) {
      out.strides[i] = static_cast<uint32_t>(bias.materialized.stride[i]);
      last += (dims[i] - 1) * bias.materialized.stride[i];
    }
    values.assign(bias.materialized.f32(), bias.materialized.f32() + last + 1);
  } else if (bias.kind == BiasKind::kByDistance) {
    out.max_distance = static_cast<uint32_t>(bias.max_distance);
    out.origin = out.max_distance;
    out.strides[1] = 2 * out.max_distance + 1;
    for (int64_t h = 0; h < bias.num_heads; ++h) {
      const float* zero = bias.values + h * bias.head_stride;
      values.insert(values.end(), zero - bias.max_distance, zero + bias.max_distance + 1);
    }
  } else {
    values.assign(bias.values, bias.values + bias.num_heads);
  }
  out.values = rig_.put_range(values);
}

std::vector<AttentionRow> DeviceBackend::rows_of(AttentionType type, const AttentionMetadata& metadata,
                                                 const AttentionArgs& args) const {
  std::vector<AttentionRow> rows;
  for (int64_t seq = 0; seq < metadata.num_seqs; ++seq) {
    const auto s = static_cast<size_t>(seq);
    for (int64_t i = 0; i < metadata.query_start_loc[s + 1] - metadata.query_start_loc[s]; ++i) {
      const KeyRange visible = visible_keys(metadata, args.causal, seq, i);
      const auto table = type == AttentionType::kEncoder ? metadata.kv_start_loc[s]
                                                         : static_cast<int32_t>(seq) * metadata.max_blocks_per_seq;
      rows.push_back({.table = static_cast<uint32_t>(table),
                      .key_begin = static_cast<uint32_t>(visible.begin),
                      .key_end = static_cast<uint32_t>(std::max(visible.begin, visible.end)),
                      .position = static_cast<int32_t>(row_position(metadata, seq, i)),
                      .place = static_cast<uint32_t>(i),
                      .sequence = static_cast<uint32_t>(seq)});
    }
  }
  return rows;
}

// Every second row, the last first; the others keep what is there.
BufferRange DeviceBackend::record_captured(const AttentionCapture& capture, const DeviceAttention& attention,
                                           const DeviceKv& kv, const BufferRange& tables) const {
  const TensorView& out = capture.out;
  const std::vector<float> before(out.f32(), out.f32() + out.num_elements());
  const BufferRange there = rig_.put_range(before);
  std::vector<DeviceWanted> wanted;
  for (uint32_t row = attention.q.rows; row-- > 0;) {
    if (row % 2 == 0) wanted.push_back({row, row});
  }
  const auto num_rows = static_cast<uint32_t>(wanted.size());
  for (size_t i = 0; i < capture.heads.size(); ++i) {
    wanted.push_back({static_cast<uint32_t>(capture.heads[i]), static_cast<uint32_t>(i)});
  }
  record_capture(rig_.recorder(), attention, kv, tables,
                 {.wanted = {rig_.put(wanted), 0, wanted.size() * sizeof(DeviceWanted)},
                  .num_rows = num_rows,
                  .num_heads = static_cast<uint32_t>(capture.heads.size()),
                  .out = there,
                  .index_stride = static_cast<uint32_t>(out.stride[0]),
                  .row_stride = static_cast<uint32_t>(out.stride[1]),
                  .num_keys = static_cast<uint32_t>(out.dim(2))});
  return there;
}

void DeviceBackend::run(Context&, AttentionType type, const AttentionMetadata& metadata,
                        const AttentionArgs& args) const {
  const bool is_dense = type == AttentionType::kEncoder;
  DeviceKv kv;
  BufferId cache = BufferId::kNone;
  std::vector<float> host_cache;
  const int64_t block_floats = is_dense ? 0 : args.kv_cache.stride[0] / 4;
  if (!is_dense) {
    // The layer among others: the device's range begins within the first block.
    const int64_t blocks = args.kv_cache.dim(0), layer = args.kv_cache.dim(1) / 4;
    const auto floats = static_cast<size_t>((blocks - 1) * block_floats + layer);
    host_cache.resize(floats);
    std::memcpy(host_cache.data(), args.kv_cache.raw, floats * sizeof(float));
    cache = rig_.put(host_cache);
    const int64_t kv_heads = args.num_kv_heads != 0 ? args.num_kv_heads : args.k.dim(1);
    const int64_t dim = args.k.empty() ? args.q.dim(2) : args.k.dim(2);
    kv = {{cache, 0, floats * sizeof(float)},
          static_cast<uint32_t>(blocks),
          static_cast<uint32_t>(metadata.block_size),
          static_cast<uint32_t>(block_floats),
          static_cast<uint32_t>(kv_heads),
          static_cast<uint32_t>(dim)};
  }
  Recorder& recorder = rig_.recorder();
  if (!is_dense && !args.k.empty()) {
    std::vector<uint32_t> slots(metadata.slot_mapping.begin(), metadata.slot_mapping.end());
    record_write_kv(recorder, put(args.k), put(args.v), {rig_.put(slots), 0, slots.size() * 4}, kv);
  }
  DeviceMatrix out;
  BufferRange captured;
  if (!args.q.empty()) {
    const DeviceMatrix q = put(args.q);
    out = q;
    out.buffer = rig_.make(q.range().size / 4);
    DeviceAttention attention{.q = q, .out = out, .heads = static_cast<uint32_t>(args.q.dim(1)), .scale = args.scale};
    const std::vector<AttentionRow> rows = rows_of(type, metadata, args);
    attention.rows = {rig_.put(rows), 0, rows.size() * sizeof(AttentionRow)};
    if (args.bias != nullptr) {
      put_bias(*args.bias, metadata.num_seqs, metadata.max_query_len, metadata.max_kv_len, attention.bias);
    }
    if (is_dense) {
      record_attention(recorder, attention, put(args.k), put(args.v), static_cast<uint32_t>(args.k.dim(1)));
    } else {
      std::vector<int32_t> tables(metadata.block_tables.begin(), metadata.block_tables.end());
      const BufferRange blocks{rig_.put(tables), 0, tables.size() * 4};
      record_attention(recorder, attention, kv, blocks);
      if (args.capture != nullptr) captured = record_captured(*args.capture, attention, kv, blocks);
    }
  }
  rig_.run();
  if (captured.buffer != BufferId::kNone) {
    const std::vector<std::byte> values = rig_.bytes(captured.buffer, 0, captured.size);
    std::memcpy(args.capture->out.raw, values.data(), values.size());
  }
  if (!args.q.empty()) {
    const std::vector<float> result = rig_.values(out.buffer, out.range().size / 4);
    for (uint32_t row = 0; row < out.rows; ++row) {
      std::memcpy(args.out.row(row), &result[size_t{row} * out.stride], out.columns * sizeof(float));
    }
  }
  if (!is_dense && !args.k.empty()) {
    const std::vector<std::byte> now = rig_.bytes(cache, 0, host_cache.size() * sizeof(float));
    std::memcpy(args.kv_cache.raw, now.data(), now.size());
  }
  rig_.clear();
}

class VulkanAttentionTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (VulkanRig::get(GetParam()) == nullptr) GTEST_SKIP() << "no software device: " << VulkanRig::why();
  }

  AttentionResult run(const AttentionProblem& p) {
    DeviceBackend backend(*VulkanRig::get(GetParam()));
    return AttentionSetup(p, backend).run(context_);
  }

  void expect_right(const AttentionProblem& p) {
    SCOPED_TRACE(::testing::Message() << "type " << static_cast<int>(p.type) << " heads " << p.heads << "/"
                                      << p.kv_heads << " dim " << p.dim << " block " << p.block_size << " bias "
                                      << static_cast<int>(p.bias) << " causal " << p.causal);
    const AttentionResult result = run(p);
    int row = 0;
    for (const KeyOwner& owner : p.owners) {
      const int first = row;
      for (int head = 0; head < p.heads; ++head) {
        const HeadValues values(p, owner, head / (p.heads / p.kv_heads));
        row = first;
        for (size_t s = 0; s < owner.rows.size(); ++s) {
          for (int i = 0; i < owner.rows[s]; ++i, ++row) {
            const NaiveRow expected = attend_naively(p, owner, values, static_cast<int>(s), i, head);
            for (size_t d = 0; d < expected.out.size(); ++d) {
              // backend_test's bound of the cpu backend
              ASSERT_NEAR(result.out[static_cast<size_t>((row * p.heads + head) * p.dim) + d], expected.out[d], 1e-5)
                  << "owner " << owner.id << " row " << i << " head " << head << " dim " << d;
            }
          }
        }
      }
    }
  }

  ThreadPool pool_{1};
  Arena arena_{size_t{1} << 20};
  CpuDevice device_{pool_};
  Context context_{.device = device_, .arena = arena_};
};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanAttentionTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

std::vector<KeyOwner> self_owners() { return {{1, 1, {1}}, {2, 7, {7}}, {3, 32, {1}}, {4, 33, {1}}, {5, 70, {9}}}; }
std::vector<KeyOwner> cross_owners() {
  return {{1, 5, {1}}, {2, 64, {1, 1, 1}}, {3, 0, {2}}, {4, 100, {3, 1}}, {5, 1, {1}}};
}
std::vector<KeyOwner> encoder_owners() {
  return {{1, 1, {1}}, {2, 40, {40}}, {3, 32, {32}}, {4, 0, {0}}, {5, 17, {17}}};
}

AttentionProblem problem(AttentionType type) {
  AttentionProblem p;
  p.type = type;
  p.heads = p.kv_heads = 2;
  p.causal = type == AttentionType::kDecoder;
  p.owners = type == AttentionType::kDecoder          ? self_owners()
             : type == AttentionType::kEncoderDecoder ? cross_owners()
                                                      : encoder_owners();
  return p;
}

constexpr AttentionType kTypes[] = {AttentionType::kEncoder, AttentionType::kDecoder, AttentionType::kEncoderDecoder};

TEST_P(VulkanAttentionTest, IsRightForEveryTypeAndHeadSize) {
  for (const AttentionType type : kTypes) {
    for (const int dim : {1, 8, 20, 32, 64, 96, 256}) {
      AttentionProblem p = problem(type);
      p.dim = dim;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, IsRightForEveryBlockSize) {
  for (const AttentionType type : {AttentionType::kDecoder, AttentionType::kEncoderDecoder}) {
    for (const int block_size : {1, 3, 16, 24, 100}) {
      AttentionProblem p = problem(type);
      p.block_size = block_size;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, IsRightUnderEveryBias) {
  for (const AttentionType type : kTypes) {
    for (const BiasForm bias : {BiasForm::kFull, BiasForm::kByKey, BiasForm::kByHead, BiasForm::kKeysApart,
                                BiasForm::kMasking, BiasForm::kT5, BiasForm::kAlibi}) {
      AttentionProblem p = problem(type);
      p.bias = bias;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, SharesKeysAmongHeads) {
  for (const AttentionType type : kTypes) {
    for (const int kv_heads : {1, 3}) {
      AttentionProblem p = problem(type);
      p.heads = 6;
      p.kv_heads = kv_heads;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, RowsSeeTheirRanges) {
  std::mt19937 rng(1);
  for (int round = 0; round < 10; ++round) {
    AttentionProblem p = problem(AttentionType::kEncoderDecoder);
    for (KeyOwner& owner : p.owners) {
      owner.ranges = random_ranges(rng, std::accumulate(owner.rows.begin(), owner.rows.end(), 0), owner.keys);
    }
    expect_right(p);
    if (HasFatalFailure()) return;
  }
}

TEST_P(VulkanAttentionTest, CausalityIsAFieldNotAType) {
  AttentionProblem p = problem(AttentionType::kDecoder);
  p.causal = false;
  expect_right(p);
  p = problem(AttentionType::kEncoder);
  p.causal = true;
  expect_right(p);
}

TEST_P(VulkanAttentionTest, GivesProbabilitiesOfTheRowsAndHeadsThatAreWanted) {
  for (const AttentionType type : {AttentionType::kDecoder, AttentionType::kEncoderDecoder}) {
    for (const BiasForm bias : {BiasForm::kNone, BiasForm::kT5, BiasForm::kMasking}) {
      AttentionProblem p = problem(type);
      p.heads = 4;
      p.bias = bias;
      const std::vector<int32_t> heads = {3, 1};
      DeviceBackend backend(*VulkanRig::get(GetParam()));
      const AttentionResult result = AttentionSetup(p, backend).run(context_, heads);
      const size_t num_rows = static_cast<size_t>(p.num_rows());
      const size_t num_keys = result.probabilities.size() / heads.size() / num_rows;
      size_t row = 0;
      for (const KeyOwner& owner : p.owners) {
        for (size_t s = 0; s < owner.rows.size(); ++s) {
          for (int i = 0; i < owner.rows[s]; ++i, ++row) {
            for (size_t h = 0; h < heads.size(); ++h) {
              const HeadValues values(p, owner, heads[h] / (p.heads / p.kv_heads));
              const NaiveRow expected = attend_naively(p, owner, values, static_cast<int>(s), i, heads[h]);
              for (size_t key = 0; key < num_keys; ++key) {
                const float is = result.probabilities[(h * num_rows + row) * num_keys + key];
                const double wanted = key < expected.probabilities.size() ? expected.probabilities[key] : 0;
                if (row % 2 != 0) {
                  ASSERT_EQ(is, 7.0f) << "a row that was not wanted";
                } else {
                  ASSERT_NEAR(is, wanted, 1e-5) << "owner " << owner.id << " row " << i << " key " << key;
                }
              }
            }
          }
        }
      }
    }
  }
}

// A sequence's bits are those that it has alone, in other blocks and in one step or several.
TEST_P(VulkanAttentionTest, BitsDependOnTheRowAlone) {
  for (const AttentionType type : kTypes) {
    AttentionProblem together = problem(type);
    together.bias = BiasForm::kT5;
    const AttentionResult all = run(together);
    size_t first = 0;
    for (const KeyOwner& owner : together.owners) {
      AttentionProblem alone = together;
      alone.owners = {owner};
      if (type != AttentionType::kEncoder) alone.block_size = 5;
      const size_t count = static_cast<size_t>(std::accumulate(owner.rows.begin(), owner.rows.end(), 0)) *
                           static_cast<size_t>(together.heads * together.dim);
      if (count == 0) continue;
      const AttentionResult one = run(alone);
      ASSERT_EQ(std::memcmp(one.out.data(), all.out.data() + first, count * sizeof(float)), 0)
          << "type " << static_cast<int>(type) << " owner " << owner.id;
      first += count;
    }
  }
}

}  // namespace
}  // namespace transept
