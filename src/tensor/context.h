// The arguments that every op needs: the device that computes, and step memory. Passed, never global. Borrows
// all; used by the thread that calls the kernels.
#pragma once

#include <cstdint>

#include "base/communicator.h"
#include "tensor/arena.h"
#include "tensor/device.h"

namespace transept {

// Counts for tests of "computed once" claims. Written by one thread at a time, as the arena is (tensor/arena.h).
struct OpCounters {
  int64_t num_matmuls = 0;          // products of a weight matrix with at least one row; dry runs do not count
  int64_t num_encoder_runs = 0;     // encoder inputs encoded
  int64_t num_cross_kv_writes = 0;  // encoder inputs whose cross K and V were projected and written (all layers: one)
};

struct Context {
  Device& device;
  Arena& arena;  // in the device's memory
  // Kernels allocate step memory but do no arithmetic, and return before they touch data. Start-up learns by it how
  // much memory the largest step needs.
  bool dry_run = false;
  OpCounters* counters = nullptr;  // null: not counted
  // The ranks that hold the model together, this one among them; null: it has all of it. A dry run asks none.
  Communicator* ranks = nullptr;
};

}  // namespace transept
