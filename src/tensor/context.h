// What every kernel is handed: threads, step memory, the instruction level. Passed, never global.
#pragma once

#include <cstdint>

#include "base/isa.h"
#include "base/thread_pool.h"
#include "tensor/arena.h"

namespace transept {

// What the tests of "computed once" claims count. Written by the engine thread only.
struct OpCounters {
  int64_t num_matmuls = 0;          // products of a weight matrix with some rows
  int64_t num_encoder_runs = 0;     // encoder inputs encoded
  int64_t num_cross_kv_writes = 0;  // encoder inputs whose cross K and V were projected and written (all layers: one)
};

struct Context {
  ThreadPool& threads;
  Arena& arena;
  Isa isa = Isa::kGeneric;
  // Walk shapes and step memory without arithmetic: how start-up learns what the largest step wants. Every kernel
  // returns before it touches data.
  bool dry_run = false;
  OpCounters* counters = nullptr;
};

}  // namespace transept
