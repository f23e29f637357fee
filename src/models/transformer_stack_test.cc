// The stack's options, each alone and some together, against the formulas of stack_formulas_testing.h. Families that
// use an option are held to their reference elsewhere; this holds the options that none uses yet.
#include "models/transformer_stack.h"

#include <gtest/gtest.h>

#include <random>

#include "attention/backends.h"
#include "models/run_model_testing.h"
#include "models/stack_formulas_testing.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

using testing::Checkpoint;
using testing::Formulas;
using testing::Gates;
using testing::PackedRequests;
using testing::Row;
using testing::Rows;
using testing::StackCase;
using testing::TestKv;

NormOptions rms() { return {.kind = NormKind::kRms, .epsilon = 1e-6f}; }

std::vector<StackCase> cases() {
  const Rope neighbours{rope_frequencies(4, 100)}, halves{rope_frequencies(6, 100), RopePairs::kHalves};
  const Rope by_axis{rope_frequencies(6, 100), RopePairs::kHalves, {1, 1, 1}};
  std::vector<StackCase> list = {
      {.name = "NormsBefore"},
      {.name = "NormsAfter", .place = NormPlace::kAfter, .has_final_norm = false},
      {.name = "NormsInside", .place = NormPlace::kInside},
      {.name = "RmsNorms", .norm = rms(), .has_biases = false},
      {.name = "NormsWithoutBias", .norm = {.has_bias = false}},
      {.name = "KeysWithoutBias", .k_has_bias = false},
      {.name = "OutputsWithoutBias", .out_has_bias = false},
      {.name = "GroupedHeads", .num_kv_heads = 2},
      {.name = "OneKeyHead", .num_kv_heads = 1, .head_dim = 5},
      {.name = "WideHeads", .head_dim = 9},
      {.name = "RmsNormsOfHeads", .num_kv_heads = 2, .norms_heads = true, .head_norm = rms()},
      {.name = "LayerNormsOfHeads", .norms_heads = true},
      {.name = "RopeNeighbours", .rope = neighbours},
      {.name = "RopeHalves", .rope = halves},
      {.name = "RopeByAxis", .rope = by_axis},
      {.name = "OneGate", .gates = Gates::kOne},
      {.name = "GatesByColumn", .place = NormPlace::kAfter, .gates = Gates::kByColumn},
      {.name = "GatesInside", .place = NormPlace::kInside, .gates = Gates::kByColumn},
      {.name = "CrossInSomeLayers", .layers = {"sf", "scf", "sf", "scf"}},
      {.name = "CrossInsteadOfSelf", .layers = {"sf", "cf", "sf", "cf"}},
      {.name = "NoCross", .layers = {"sf", "sf"}},
      {.name = "AttentionAlone", .layers = {"s", "c", "f"}},
      {.name = "CrossOfAnotherWidth", .cross_heads = 8, .cross_head_dim = 3, .kv_dim = 20},
      {.name = "LayersOfOtherHeads",
       .layers = {"scf", "sf", "scf", "cf", "scf"},
       .num_kv_heads = 2,
       .cross_kv_heads = 1,
       .other_kv_heads = {{1, 4}, {2, 1}, {4, 1}},
       .other_cross_kv_heads = {{2, 2}, {4, 2}}},
      {.name = "GatedFeedForward", .has_biases = false, .is_gated = true, .activation = Activation::kSilu},
      {.name = "DistanceBiasForAll", .num_biases = 1},
      {.name = "DistanceBiasInEachLayer", .num_biases = 2},
      {.name = "Encoder", .is_decoder = false, .layers = {"sf", "sf", "sf"}},
      {.name = "EncoderWithBias",
       .is_decoder = false,
       .layers = {"sf", "sf"},
       .place = NormPlace::kAfter,
       .num_biases = 2},
      {.name = "EncoderGroupedAndTurned",
       .is_decoder = false,
       .layers = {"sf", "sf"},
       .num_kv_heads = 2,
       .rope = halves},
  };
  // Mllama's text stack: grouped heads, rope in self-attention, gated cross layers with normed heads.
  list.push_back({.name = "LikeMllama",
                  .layers = {"sf", "sf", "cf", "sf"},
                  .norm = rms(),
                  .has_biases = false,
                  .num_kv_heads = 2,
                  .kv_dim = 20,
                  .norms_heads = true,
                  .head_norm = rms(),
                  .rope = by_axis,
                  .gates = Gates::kOne,
                  .is_gated = true,
                  .activation = Activation::kSilu});
  return list;
}

class TransformerStackTest : public ::testing::TestWithParam<std::tuple<StackCase, std::string>> {
 protected:
  static Rows rows_of(const TensorView& x, int64_t begin, int64_t end) {
    Rows rows;
    for (int64_t i = begin; i < end; ++i) rows.emplace_back(x.row(i), x.row(i) + x.dim(1));
    return rows;
  }

  TensorView random_rows(int64_t rows, int64_t dim) {
    const TensorView view = arena_.tensor(DType::kFloat32, {rows, dim});
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < view.num_elements(); ++i) view.f32()[i] = normal(random_);
    return view;
  }

  static void expect_near(const TensorView& x, int64_t begin, const Rows& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      for (size_t j = 0; j < expected[i].size(); ++j) {
        ASSERT_NEAR(x.row(begin + static_cast<int64_t>(i))[j], expected[i][j], 1e-4) << "row " << i << ", column " << j;
      }
    }
  }

  std::mt19937 random_{3};
  Arena arena_{1 << 20};
};

TEST_P(TransformerStackTest, MatchesTheFormulas) {
  const auto& [c, backend] = GetParam();
  ThreadPool threads(2);
  CpuDevice device{threads, detect_isa()};
  Context context{device, arena_};
  const auto attention = std::move(make_attention_backend(backend)).value();
  const Checkpoint checkpoint(c);
  const StatusOr<TransformerStack> stack = checkpoint.stack(PackOptions(threads, std::nullopt, nullptr), *attention);
  ASSERT_TRUE(stack.ok()) << stack.status();
  const Formulas formulas(c, checkpoint);

  // Two sequences of unequal length in one batch; ids say how many rows there are.
  PackedRequests packed({{{{1, 1, 1, 1, 1}}, {1, 1, 1}}, {{{1, 1}}, {1, 1, 1, 1}}}, stack->kv_specs());
  const TestKv kv(stack->kv_specs(), *attention, packed.num_blocks());
  ForwardBatch forward = packed.forward_batch(kv.caches());
  const std::vector<int32_t>&from = packed.encoder_loc(), &to = packed.decoder_loc();
  const std::vector<int32_t>& loc = c.is_decoder ? to : from;
  const TensorView encoder_rows = random_rows(from.back(), c.kv_dim > 0 ? c.kv_dim : c.dim);
  const TensorView x = random_rows(loc.back(), c.dim);
  std::vector<int32_t> positions(static_cast<size_t>(c.rope.num_axes() * loc.back()));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i * 5 % 11);

  std::vector<Rows> expected;
  for (size_t seq = 0; seq + 1 < loc.size(); ++seq) {
    std::vector<std::vector<int32_t>> of_axes;
    for (int64_t axis = 0; axis < c.rope.num_axes(); ++axis) {
      const auto begin = positions.begin() + axis * loc.back();
      of_axes.emplace_back(begin + loc[seq], begin + loc[seq + 1]);
    }
    expected.push_back(
        formulas.run(rows_of(x, loc[seq], loc[seq + 1]), rows_of(encoder_rows, from[seq], from[seq + 1]), of_axes));
  }
  const LayerRange all{0, stack->num_layers()};
  if (c.is_decoder) {
    forward.positions = positions;
    attention->plan(context, forward);
    stack->write_cross_kv(context, encoder_rows, packed.cross_writes(), forward.kv, all);
    stack->decode(context, forward, all, x);
  } else {
    EncodeBatch encode = packed.encode_batch();
    encode.positions = positions;
    stack->encode(context, encode, all, x);
  }
  stack->normalize(context, x);
  for (size_t seq = 0; seq + 1 < loc.size(); ++seq) expect_near(x, loc[seq], expected[seq]);
}

INSTANTIATE_TEST_SUITE_P(Options, TransformerStackTest,
                         ::testing::Combine(::testing::ValuesIn(cases()), ::testing::Values("reference", "cpu")),
                         [](const auto& test) { return std::get<0>(test.param).name + "_" + std::get<1>(test.param); });

TEST(TransformerStack, ReportsTheKvOfItsLayers) {
  ThreadPool threads(1);
  const auto attention = std::move(make_attention_backend("reference")).value();
  const PackOptions packing(threads, std::nullopt, nullptr);
  const StackCase some{.layers = {"sf", "scf", "sf", "cf"},
                       .num_kv_heads = 2,
                       .cross_heads = 8,
                       .cross_kv_heads = 8,
                       .cross_head_dim = 3};
  const Checkpoint checkpoint(some);
  const std::vector<KvSpec> specs = checkpoint.stack(packing, *attention)->kv_specs();
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].kind, KvKind::kSelf);
  EXPECT_EQ(specs[0].layers, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(specs[0].owner, TableOwner::kSequence);
  EXPECT_EQ(specs[0].num_kv_heads, 2);
  EXPECT_EQ(specs[0].head_dim, 6);
  EXPECT_EQ(specs[1].kind, KvKind::kCross);
  EXPECT_EQ(specs[1].layers, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(specs[1].owner, TableOwner::kGroup);
  EXPECT_EQ(specs[1].num_kv_heads, 8);
  EXPECT_EQ(specs[1].head_dim, 3);
  const StackCase decoder_only{.layers = {"sf"}};
  EXPECT_EQ(Checkpoint(decoder_only).stack(packing, *attention)->kv_specs().size(), 1u);
}

// Layers of equal heads are one spec, in the order in which layers first have it; never across kinds.
TEST(TransformerStack, ReportsTheKvOfLayersOfOtherHeads) {
  ThreadPool threads(1);
  const auto attention = std::move(make_attention_backend("reference")).value();
  const StackCase some{.layers = {"sf", "scf", "sf", "cf", "scf"},
                       .num_kv_heads = 2,
                       .cross_kv_heads = 2,
                       .other_kv_heads = {{1, 4}, {4, 4}},
                       .other_cross_kv_heads = {{3, 1}}};
  const Checkpoint checkpoint(some);
  const auto stack = checkpoint.stack(PackOptions(threads, std::nullopt, nullptr), *attention);
  struct Expected {
    KvKind kind;
    TableOwner owner;
    std::vector<int32_t> layers;
    int32_t num_kv_heads;
  };
  const std::vector<Expected> expected = {{KvKind::kSelf, TableOwner::kSequence, {0, 2}, 2},
                                          {KvKind::kSelf, TableOwner::kSequence, {1, 4}, 4},
                                          {KvKind::kCross, TableOwner::kGroup, {1, 4}, 2},
                                          {KvKind::kCross, TableOwner::kGroup, {3}, 1}};
  ASSERT_EQ(stack->kv_specs().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const KvSpec& spec = stack->kv_specs()[i];
    EXPECT_EQ(spec.kind, expected[i].kind) << i;
    EXPECT_EQ(spec.owner, expected[i].owner) << i;
    EXPECT_EQ(spec.layers, expected[i].layers) << i;
    EXPECT_EQ(spec.num_kv_heads, expected[i].num_kv_heads) << i;
    EXPECT_EQ(spec.head_dim, 6) << i;
  }
}

TEST(TransformerStack, RefusesWhatTheBackendLacks) {
  ThreadPool threads(1);
  const auto attention = std::move(make_attention_backend("cpu")).value();
  const StackCase wide{.num_heads = 1, .cross_head_dim = 1000};
  const Status status = Checkpoint(wide).stack(PackOptions(threads, std::nullopt, nullptr), *attention).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(error_message(status).find("head size 1000"), std::string::npos) << status;
}

}  // namespace
}  // namespace transept
