// Every backend at every instruction level against naive double-precision attention: all three types, new rows after
// old ones, head sizes, block sizes and biases. The cpu backend's bits, besides, depend on a row's own keys alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

struct Variant {
  std::string backend;
  Isa isa;
  DType kv_dtype = DType::kFloat32;  // of the blocks, where there are any
};

std::string variant_name(const Variant& v) {
  const std::string name = v.backend + "_" + std::string(isa_name(v.isa));
  return v.kv_dtype == DType::kFloat32 ? name : name + "_" + std::string(dtype_name(v.kv_dtype));
}

void PrintTo(const Variant& v, std::ostream* os) { *os << variant_name(v); }

// Largest absolute errors of out where |v| < 2, and of a probability. The scores' own error (head_dim products of
// numbers below 2, scaled) is multiplied by |v|; exp adds 3e-7. The reference rounds once, at the end.
double tolerance(const std::string& backend) { return backend == "reference" ? 5e-7 : 1e-5; }

class BackendTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (GetParam().isa > detect_isa()) {
      GTEST_SKIP() << isa_name(GetParam().isa) << " is not present on this processor";
    }
    backend_ = std::move(make_attention_backend(GetParam().backend).value());
  }

  AttentionResult run(AttentionProblem p, int threads = 2, std::vector<int32_t> captured_heads = {}) {
    p.kv_dtype = GetParam().kv_dtype;
    ThreadPool pool(threads);
    CpuDevice device{pool, GetParam().isa};
    Context context{.device = device, .arena = arena_};
    return AttentionSetup(p, *backend_).run(context, std::move(captured_heads));
  }

  void expect_right(const AttentionProblem& p, const std::vector<int32_t>& captured_heads = {}) {
    SCOPED_TRACE(::testing::Message() << "type " << static_cast<int>(p.type) << " heads " << p.heads << "/"
                                      << p.kv_heads << " dim " << p.dim << " block " << p.block_size << " bias "
                                      << static_cast<int>(p.bias) << " causal " << p.causal);
    const AttentionResult result = run(p, 2, captured_heads);
    int first_row = 0;
    for (const KeyOwner& owner : p.owners) {
      for (int h = 0; h < p.heads && !HasFatalFailure(); ++h) {
        expect_head_right(p, owner, h, first_row, captured_heads, result);
      }
      for (const int rows : owner.rows) first_row += rows;
    }
  }

  void expect_head_right(const AttentionProblem& p, const KeyOwner& owner, int head, int row,
                         const std::vector<int32_t>& captured_heads, const AttentionResult& result) {
    const HeadValues values(p, owner, head / (p.heads / p.kv_heads));
    for (size_t s = 0; s < owner.rows.size(); ++s) {
      for (int i = 0; i < owner.rows[s]; ++i, ++row) {
        const NaiveRow expected = attend_naively(p, owner, values, static_cast<int>(s), i, head);
        const float* out = result.out.data() + (row * p.heads + head) * p.dim;
        for (size_t d = 0; d < expected.out.size(); ++d) {
          ASSERT_NEAR(out[d], expected.out[d], tolerance(GetParam().backend))
              << "owner " << owner.id << " of " << owner.keys << " keys, row " << i << " head " << head << " dim " << d;
        }
        for (size_t c = 0; c < captured_heads.size(); ++c) {
          if (captured_heads[c] == head) expect_captured(p, c, row, expected.probabilities, result);
        }
      }
    }
  }

  void expect_captured(const AttentionProblem& p, size_t capture_idx, int row, const std::vector<double>& expected,
                       const AttentionResult& result) {
    size_t most_keys = 0;
    for (const KeyOwner& owner : p.owners) most_keys = std::max(most_keys, static_cast<size_t>(owner.keys));
    const size_t at = (capture_idx * static_cast<size_t>(p.num_rows()) + static_cast<size_t>(row)) * most_keys;
    for (size_t j = 0; j < most_keys; ++j) {
      ASSERT_NEAR(result.probabilities[at + j], j < expected.size() ? expected[j] : 0, tolerance(GetParam().backend))
          << "captured head " << capture_idx << " row " << row << " key " << j;
    }
  }

  Arena arena_{size_t{32} << 20};
  std::unique_ptr<AttentionBackend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Backends, BackendTest,
                         ::testing::Values(Variant{"reference", Isa::kGeneric}, Variant{"cpu", Isa::kGeneric},
                                           Variant{"cpu", Isa::kAvx2}, Variant{"cpu", Isa::kAvx512},
                                           Variant{"cpu", Isa::kAmx}),
                         [](const auto& v) { return variant_name(v.param); });

// Prompts, decodes, tails after shared prefixes, all in one batch; tiles of 64 keys begun, full and exceeded.
std::vector<KeyOwner> self_owners() {
  return {{1, 1, {1}}, {2, 7, {7}}, {3, 64, {1}}, {4, 65, {1}}, {5, 150, {9}}, {6, 70, {70}}, {7, 130, {1}}};
}
std::vector<KeyOwner> cross_owners() {
  return {{1, 5, {1}}, {2, 64, {1, 1, 1, 1, 1}}, {3, 0, {2}}, {4, 130, {3, 1}}, {5, 1, {1}}, {6, 33, {1, 8}}};
}
std::vector<KeyOwner> encoder_owners() {
  return {{1, 1, {1}}, {2, 40, {40}}, {3, 64, {64}}, {4, 129, {129}}, {5, 0, {0}}, {6, 17, {17}}};
}

AttentionProblem problem(AttentionType type) {
  AttentionProblem p;
  p.type = type;
  p.causal = type == AttentionType::kDecoder;
  p.owners = type == AttentionType::kDecoder          ? self_owners()
             : type == AttentionType::kEncoderDecoder ? cross_owners()
                                                      : encoder_owners();
  return p;
}

TEST_P(BackendTest, IsRightForEveryTypeAndHeadSize) {
  for (const AttentionType type : kAttentionTypes) {
    for (const int dim : {1, 8, 16, 24, 36, 40, 64, 80, 96, 128}) {
      AttentionProblem p = problem(type);
      p.heads = p.kv_heads = 2;
      p.dim = dim;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
  AttentionProblem p = problem(AttentionType::kDecoder);
  p.owners = {{1, 90, {3}}};
  p.dim = 256;
  expect_right(p);
}

TEST_P(BackendTest, IsRightForEveryBlockSize) {
  for (const AttentionType type : {AttentionType::kDecoder, AttentionType::kEncoderDecoder}) {
    for (const int block_size : {1, 3, 4, 8, 16, 24, 32, 64, 100}) {
      AttentionProblem p = problem(type);
      p.heads = p.kv_heads = 2;
      p.block_size = block_size;
      p.dim = 24;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(BackendTest, IsRightUnderEveryBias) {
  for (const AttentionType type : kAttentionTypes) {
    for (const BiasForm bias : kBiasForms) {
      AttentionProblem p = problem(type);
      p.bias = bias;
      p.dim = 20;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

// Windows of a picture: many sequences of one length, under one bias, which stands once.
TEST_P(BackendTest, IsRightUnderOneBiasForAllSequences) {
  AttentionProblem p = problem(AttentionType::kEncoder);
  p.bias = BiasForm::kShared;
  expect_right(p);
  for (const int keys : {1, 9, 49, 100, 144}) {
    p.owners.clear();
    for (uint32_t window = 0; window < 12; ++window) p.owners.push_back({window, keys, {keys}});
    expect_right(p);
    if (HasFatalFailure()) return;
  }
}

TEST_P(BackendTest, SharesKeysAmongHeads) {
  for (const AttentionType type : kAttentionTypes) {
    for (const int kv_heads : {1, 2, 3}) {
      AttentionProblem p = problem(type);
      p.heads = 6;
      p.kv_heads = kv_heads;
      p.bias = BiasForm::kFull;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(BackendTest, CausalityIsAFieldNotAType) {
  AttentionProblem p = problem(AttentionType::kDecoder);
  p.causal = false;  // every new row sees all keys
  expect_right(p);
  p = problem(AttentionType::kEncoder);
  p.causal = true;
  expect_right(p);
}

TEST_P(BackendTest, CapturesProbabilitiesOfChosenHeads) {
  for (const AttentionType type : kAttentionTypes) {
    for (const BiasForm bias : {BiasForm::kMasking, BiasForm::kT5, BiasForm::kAlibi}) {
      AttentionProblem p = problem(type);
      p.bias = bias;
      expect_right(p, {3, 1});
    }
  }
}

TEST_P(BackendTest, IsRightFarBeyondT5sFarthestDistance) {
  AttentionProblem p = problem(AttentionType::kDecoder);
  p.bias = BiasForm::kT5;
  p.owners = {{1, 2048, {3}}, {2, 700, {1}}, {3, 300, {9}}};
  expect_right(p);
  p = problem(AttentionType::kEncoder);
  p.bias = BiasForm::kT5;
  p.heads = p.kv_heads = 1;
  p.owners = {{4, 320, {320}}};
  expect_right(p);
}

TEST_P(BackendTest, CrossRowsStandAtPositionsOfTheirOwn) {
  for (const BiasForm bias : {BiasForm::kT5, BiasForm::kAlibi}) {
    AttentionProblem p = problem(AttentionType::kEncoderDecoder);
    p.bias = bias;
    p.owners = {{1, 130, {1, 1}, 40}, {2, 300, {2}, 7}, {3, 20, {1}, 500}};
    expect_right(p);
  }
}

TEST_P(BackendTest, CrossRowsSeeTheKeysOfTheirRanges) {
  AttentionProblem p = problem(AttentionType::kEncoderDecoder);
  p.bias = BiasForm::kFull;
  p.heads = 4;
  p.kv_heads = 2;
  // None, all, one, up to a tile's border, from one on, across one, the end; beside an owner whose rows see everything.
  p.owners = {
      {1, 200, {3, 1, 4}, 0, {{70, 70}, {0, 200}, {130, 131}, {10, 64}, {64, 128}, {63, 66}, {150, 200}, {9, 3}}},
      {2, 90, {2}},
      {3, 70, {1, 1}, 0, {{70, 70}, {0, 0}}}};
  expect_right(p, {3, 1});
  p.causal = true;  // both hold
  p.owners[0].cross_context = 60;
  expect_right(p, {0});
}

TEST_P(BackendTest, RandomProblems) {
  std::mt19937 rng(11);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  for (int i = 0; i < 40; ++i) {
    AttentionProblem p;
    p.type = kAttentionTypes[pick(0, 2)];
    p.causal = p.type == AttentionType::kDecoder || pick(0, 3) == 0;
    p.kv_heads = pick(1, 3);
    p.heads = p.kv_heads * pick(1, 3);
    p.dim = pick(1, 70);
    p.block_size = pick(1, 40);
    p.bias = static_cast<BiasForm>(pick(0, 7));
    const int owners = pick(1, 6);
    for (int o = 0; o < owners; ++o) {
      KeyOwner owner{.id = static_cast<uint32_t>(o + 10 * i), .keys = pick(0, 200), .rows = {}};
      const int seqs = p.type == AttentionType::kEncoderDecoder ? pick(1, 4) : 1;
      for (int s = 0; s < seqs; ++s) {
        owner.rows.push_back(p.type == AttentionType::kEncoder   ? owner.keys
                             : p.type == AttentionType::kDecoder ? std::min(owner.keys, pick(1, 30))
                                                                 : pick(1, 30));
      }
      if (p.type == AttentionType::kEncoderDecoder && pick(0, 1) == 0) {
        owner.ranges = random_ranges(rng, std::accumulate(owner.rows.begin(), owner.rows.end(), 0), owner.keys);
      }
      p.owners.push_back(owner);
    }
    expect_right(p, pick(0, 2) == 0 ? std::vector<int32_t>{0} : std::vector<int32_t>{});
    if (HasFatalFailure()) return;
  }
}

TEST_P(BackendTest, ManyRowsAreDividedAmongTasks) {
  AttentionProblem p;
  p.heads = p.kv_heads = 1;
  p.type = AttentionType::kEncoderDecoder;
  p.causal = false;
  // A group whose sequences begin in the middle of an item.
  p.owners = {{1, 70, {50, 50, 1, 120, 30}}, {2, 20, {200}}};
  p.bias = BiasForm::kFull;
  expect_right(p);
}

TEST_P(BackendTest, ADryRunAsksForTheSameMemoryAndTouchesNothing) {
  for (const AttentionType type : kAttentionTypes) {
    const AttentionProblem p = problem(type);
    ThreadPool pool(2);
    Arena arena(size_t{8} << 20), measuring = Arena::measuring();
    CpuDevice device{pool, GetParam().isa};
    Context context{.device = device, .arena = arena};
    AttentionSetup setup(p, *backend_);
    setup.run(context);
    EXPECT_EQ(arena.num_overflows(), 0);
    CpuDevice dry_device{pool, GetParam().isa};
    Context dry{.device = dry_device, .arena = measuring, .dry_run = true};
    AttentionArgs args = setup.args();
    for (TensorView* view : {&args.q, &args.k, &args.v, &args.out}) {
      if (view->raw != nullptr) view->raw = reinterpret_cast<void*>(64);  // nobody may look there
    }
    args.kv_cache = {};       // the pool is made after the dry run
    AttentionMetadata sizes;  // lists are filled step by step, later
    sizes.num_seqs = setup.metadata().num_seqs;
    sizes.max_query_len = setup.metadata().max_query_len;
    sizes.max_kv_len = setup.metadata().max_kv_len;
    sizes.block_size = setup.metadata().block_size;
    const std::vector<int32_t> ids(static_cast<size_t>(p.num_rows()));
    ForwardBatch batch{.input_ids = ids, .attention = {&sizes, 1}};
    if (type != AttentionType::kEncoder) backend_->plan(dry, batch);
    backend_->run(dry, type, sizes, args);
    EXPECT_EQ(measuring.high_water_bytes(), arena.high_water_bytes());
  }
}

TEST_P(BackendTest, SaysWhatItDoesNotSupport) {
  std::string why;
  EXPECT_TRUE(backend_->supports({.num_heads = 8, .num_kv_heads = 8, .head_dim = 24, .capture = true}, &why));
  EXPECT_FALSE(backend_->supports({.num_heads = 8, .num_kv_heads = 8, .head_dim = 264}, &why));
  EXPECT_THAT(why, ::testing::HasSubstr("264"));
  EXPECT_FALSE(backend_->supports({.num_heads = 8, .num_kv_heads = 3, .head_dim = 64}, &why));
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8}) {
    EXPECT_TRUE(backend_->supports({.num_heads = 8, .num_kv_heads = 8, .head_dim = 64, .kv_dtype = dtype}, &why));
  }
  EXPECT_FALSE(
      backend_->supports({.num_heads = 8, .num_kv_heads = 8, .head_dim = 64, .kv_dtype = DType::kUInt8}, &why));
  EXPECT_THAT(why, ::testing::HasSubstr("uint8"));
}

// --- bits

class BitsTest : public BackendTest {
 protected:
  // Rows of owner `which` among p's rows.
  static std::vector<float> rows_of(const AttentionProblem& p, const AttentionResult& result, uint32_t id) {
    size_t begin = 0;
    const size_t width = static_cast<size_t>(p.heads) * static_cast<size_t>(p.dim);
    for (const KeyOwner& owner : p.owners) {
      size_t rows = 0;
      for (const int r : owner.rows) rows += static_cast<size_t>(r);
      if (owner.id == id) {
        const auto at = result.out.begin() + static_cast<ptrdiff_t>(begin * width);
        return std::vector<float>(at, at + static_cast<ptrdiff_t>(rows * width));
      }
      begin += rows;
    }
    return {};
  }
  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Backends, BitsTest,
    ::testing::Values(Variant{"reference", Isa::kGeneric}, Variant{"cpu", Isa::kGeneric}, Variant{"cpu", Isa::kAvx2},
                      Variant{"cpu", Isa::kAvx512}, Variant{"cpu", Isa::kGeneric, DType::kInt8},
                      Variant{"cpu", Isa::kAvx2, DType::kFloat16}, Variant{"cpu", Isa::kAvx2, DType::kInt8},
                      Variant{"cpu", Isa::kAvx512, DType::kBFloat16}, Variant{"cpu", Isa::kAvx512, DType::kInt8},
                      Variant{"cpu", Isa::kAvx512Vnni, DType::kInt8}),
    [](const auto& v) { return variant_name(v.param); });

TEST_P(BitsTest, DoNotDependOnBlockSizeBatchOrThreads) {
  for (const AttentionType type : kAttentionTypes) {
    AttentionProblem batch = problem(type);
    batch.dim = 40;
    batch.bias = BiasForm::kByKey;
    std::vector<std::vector<float>> alone;
    for (const KeyOwner& owner : batch.owners) {
      AttentionProblem one = batch;
      one.owners = {owner};
      alone.push_back(rows_of(one, run(one, 1), owner.id));
    }
    const std::vector<KeyOwner> owners = batch.owners;
    for (const int block_size : {1, 4, 8, 16, 24, 32}) {
      for (const int threads : {1, 2, 3}) {
        batch.block_size = block_size;
        if (threads == 3) std::reverse(batch.owners.begin(), batch.owners.end());
        const AttentionResult result = run(batch, threads);
        for (size_t o = 0; o < owners.size(); ++o) {
          if (owners[o].keys == 0) continue;
          ASSERT_TRUE(same_bits(rows_of(batch, result, owners[o].id), alone[o]))
              << "type " << static_cast<int>(type) << " owner " << owners[o].id << " block size " << block_size
              << " threads " << threads;
        }
      }
    }
  }
}

TEST_P(BitsTest, OfAPromptAreThoseOfItsTokensOneByOne) {
  constexpr int kKeys = 140;
  AttentionProblem p = problem(AttentionType::kDecoder);
  p.dim = 24;
  p.bias = BiasForm::kFull;
  p.owners = {{9, kKeys, {kKeys}}};
  const AttentionResult whole = run(p);
  const size_t width = static_cast<size_t>(p.heads) * static_cast<size_t>(p.dim);
  for (const int rows : {1, 5, 64}) {
    for (int keys = rows; keys <= kKeys; keys += rows) {
      p.owners = {{9, keys, {rows}}};
      p.block_size = keys % 2 == 0 ? 8 : 16;
      const AttentionResult part = run(p, 1);
      const auto at = whole.out.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(keys - rows) * width);
      ASSERT_TRUE(same_bits(part.out, std::vector<float>(at, at + static_cast<ptrdiff_t>(part.out.size()))))
          << rows << " rows up to key " << keys;
    }
  }
}

// A bias that is computed where it is added gives the bits of the same numbers written out, at any length: within and
// beyond T5's max_distance, and behind the last whole vector and tile.
TEST_P(BitsTest, OfABiasOnTheFlyAreThoseOfTheBiasWrittenOut) {
  for (const BiasForm bias : {BiasForm::kT5, BiasForm::kAlibi}) {
    for (const int keys : {1, 2, 7, 16, 63, 64, 65, 127, 128, 129, 130, 200, 385, 1000, 2048}) {
      for (const AttentionType type : {AttentionType::kEncoder, AttentionType::kDecoder}) {
        const bool is_long = keys > 500;  // and slow: there the reference sees the last rows alone
        if (is_long && type == AttentionType::kEncoder && GetParam().backend == "reference") continue;
        AttentionProblem p = problem(type);
        p.heads = p.kv_heads = is_long ? 1 : 3;
        p.dim = 6;
        p.bias = bias;
        p.owners = {{5, keys, {is_long && type == AttentionType::kDecoder ? 30 : keys}}};
        const AttentionResult fused = run(p);
        p.materialize = true;
        ASSERT_TRUE(same_bits(fused.out, run(p).out)) << keys << " keys, bias " << static_cast<int>(bias);
      }
    }
  }
}

TEST_P(BitsTest, OfADecodeAtEveryPositionAreThoseOfThePromptUnderT5sBias) {
  constexpr int kKeys = 300;
  AttentionProblem p = problem(AttentionType::kDecoder);
  p.dim = 12;
  p.bias = BiasForm::kT5;
  p.owners = {{9, kKeys, {kKeys}}};
  const AttentionResult whole = run(p);
  const size_t width = static_cast<size_t>(p.heads) * static_cast<size_t>(p.dim);
  for (int keys = 1; keys <= kKeys; ++keys) {
    p.owners = {{9, keys, {std::min(keys, keys % 7 == 0 ? 3 : 1)}}};
    p.block_size = keys % 3 == 0 ? 5 : 16;
    const AttentionResult part = run(p, 1);
    const auto at = whole.out.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(keys) * width - part.out.size());
    ASSERT_TRUE(same_bits(part.out, std::vector<float>(at, at + static_cast<ptrdiff_t>(part.out.size())))) << keys;
  }
}

TEST_P(BitsTest, OfABeamAreThoseOfASequenceAlone) {
  AttentionProblem p = problem(AttentionType::kEncoderDecoder);
  p.dim = 64;
  const std::vector<int> beams(7, 1);
  p.owners = {{4, 100, beams}};
  const AttentionResult group = run(p);
  // The same sequences, each as a group of its own: sequence s of owner 4 has its own q.
  const size_t width = static_cast<size_t>(p.heads) * static_cast<size_t>(p.dim);
  for (size_t s = 0; s < beams.size(); ++s) {
    AttentionProblem other = p;
    other.owners = {{4, 100, std::vector<int>(s + 1, 1)}};
    const AttentionResult fewer = run(other, 1);
    ASSERT_EQ(std::memcmp(fewer.out.data(), group.out.data(), (s + 1) * width * sizeof(float)), 0);
  }
}

// T5's bias costs a head a short table and a step nothing: what attention takes from the arena for 8192 tokens is what
// it takes for 1024, and less than one head's scores of one row of tiles.
TEST(MemoryTest, OfAStepUnderT5sBiasDoesNotGrowWithTheLength) {
  const auto step_memory = [](int length, BiasForm bias) {
    AttentionProblem p;
    p.type = AttentionType::kEncoder;
    p.causal = false;
    p.heads = p.kv_heads = 1;
    p.dim = 8;
    p.gap = 0;
    p.bias = bias;
    p.owners = {{1, length, {length}}};
    ThreadPool pool(2);
    Arena arena(size_t{8} << 20);
    CpuDevice device{pool, detect_isa()};
    Context context{.device = device, .arena = arena};
    const auto backend = std::move(make_attention_backend("cpu").value());
    AttentionSetup(p, *backend).run(context);
    EXPECT_EQ(arena.num_overflows(), 0);
    return arena.high_water_bytes();
  };
  const size_t items = 8192 / 96 * sizeof(int64_t) * 4;  // the list of pieces of work, by rows
  EXPECT_LE(step_memory(8192, BiasForm::kT5), step_memory(1024, BiasForm::kNone) + items);
  EXPECT_EQ(step_memory(8192, BiasForm::kT5), step_memory(8192, BiasForm::kNone));
  EXPECT_LT(step_memory(8192, BiasForm::kT5), size_t{8192} * sizeof(float) * 64);
}

TEST(BackendFactoryTest, KnowsItsNames) {
  EXPECT_EQ((*make_attention_backend("auto"))->name(), "cpu");
  EXPECT_EQ((*make_attention_backend("reference"))->name(), "reference");
  const auto unknown = make_attention_backend("flash");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(error_message(unknown.status()),
              ::testing::AllOf(::testing::HasSubstr("flash"), ::testing::HasSubstr("reference")));
}

}  // namespace
}  // namespace transept
