// Once warm, neither products nor attention ask the heap for anything: every operator new of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/norm.h"
#include "ops/softmax.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

// Replacing these is the only way to see the allocations of libraries too. Not inlined, or gcc takes the pair for a
// mismatch.
__attribute__((noinline)) void* operator new(size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace transept {
namespace {

TEST(AllocationTest, AWarmStepAllocatesNothing) {
  for (const Isa isa : present_isas()) {
    ThreadPool pool(2);
    Arena arena(size_t{32} << 20);
    CpuDevice device{pool, isa};
    Context context{.device = device, .arena = arena};
    const PackedMatrix w(256, 64);
    for (const int64_t m : {1, 60}) {
      const TensorView x = arena.tensor(DType::kFloat32, {m, 64});
      const TensorView y = arena.tensor(DType::kFloat32, {m, 256});
      std::fill_n(x.f32(), m * 64, 1.0f);
      const int64_t before = num_allocations;
      layer_norm(context, x, x.f32(), x.f32(), 1e-5f, x);
      gemm(context, x, w, {.activation = Activation::kGelu}, y);
      log_sum_exp(context, {y.f32(), 256});
      arg_max(context, {y.f32(), 256});
      EXPECT_EQ(num_allocations, before) << "ops, m " << m << " at " << isa_name(isa);
    }
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt8}) {
      for (const char* name : {"reference", "cpu"}) {
        for (const AttentionType type :
             {AttentionType::kEncoder, AttentionType::kDecoder, AttentionType::kEncoderDecoder}) {
          AttentionProblem p;
          p.type = type;
          p.kv_dtype = dtype;
          p.owners = {{1, 100, {100}}, {2, 40, {40}}};
          const auto backend = std::move(make_attention_backend(name).value());
          AttentionSetup setup(p, *backend);
          setup.run(context);
          const std::vector<int32_t> ids(static_cast<size_t>(p.num_rows()));
          AttentionMetadata metadata = setup.metadata();
          ForwardBatch batch{.input_ids = ids, .attention = {&metadata, 1}};
          const int64_t before = num_allocations;
          backend->plan(context, batch);
          backend->run(context, type, metadata, setup.args());
          EXPECT_EQ(num_allocations, before) << name << " type " << static_cast<int>(type);
          EXPECT_EQ(arena.num_overflows(), 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace transept
