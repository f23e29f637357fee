// For tests: the kernels of this folder as functions of the host, written from what kernels/*.comp say, for the
// checking device (recording/checking_device_testing.h). What lies beyond an operand's range reads as poison, and is
// counted: what record_ops.h declares is large enough. Used by one thread.
#pragma once

#include "recording/checking_device_testing.h"

namespace transept::testing {

// Adds a kernel that is declared as `spec` says, and computes what the one of its name does. REQUIRES: layer_norm,
// rms_norm, product_float32, gated_activation, add_rows, gather_rows_float32, rope, write_kv, attention (over blocks,
// without bias) or choose.
void add_host_kernel(CheckingDevice& device, const KernelSpec& spec);

// Words beyond ranges so far, of the process.
int64_t num_out_of_range();

}  // namespace transept::testing
