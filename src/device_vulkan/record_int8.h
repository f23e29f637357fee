// Products of int8 weights on the Vulkan device (kernels/round_rows.comp, kernels/product_int8.comp), and keys and
// values that an encoder rounds. Functions without state; the rule of record_ops.h holds.
#pragma once

#include "device_vulkan/record_ops.h"
#include "tensor/weight_format.h"

namespace transept {

// Rows of inputs as integers. Its memory is the caller's: q_words() and 2 words a row.
struct DeviceRoundedRows {
  BufferRange q, codes;
  uint32_t rows = 0, k = 0;
  InputRounding inputs = InputRounding::kUsual;  // or kWide, kOutliers

  // Rounded rows for each.
  static uint32_t share(InputRounding inputs) { return inputs == InputRounding::kUsual ? 1 : 2; }
  static uint64_t q_words(uint64_t rows, uint64_t k, InputRounding inputs) {
    return rows * share(inputs) * ((k + 3) / 4);
  }
};
void record_round_rows(Recorder& recorder, const DeviceMatrix& x, const DeviceRoundedRows& rounded);

// w: the panels of a PackedMatrix, with scales and sums of n outputs padded to whole panels.
struct DeviceInt8Weights {
  BufferRange panels, scales, sums;
  uint32_t n = 0, k = 0;
  DeviceTiling tiling = {};  // `rows` of it
};
void record_product(Recorder& recorder, const DeviceRoundedRows& x, const DeviceInt8Weights& w,
                    const DeviceEpilogue& epilogue, const DeviceMatrix& y);

// y = x [rows, heads * head_dim] as int8 with a scale a row and head keeps it (attention/kv_format.h). Apart.
void record_round_heads(Recorder& recorder, const DeviceMatrix& x, uint32_t heads, const DeviceMatrix& y);

}  // namespace transept
