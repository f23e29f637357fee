// Views of a model's tensors as operands of this device's ops. Functions of a timeline, whose addresses the views have.
#pragma once

#include "device_vulkan/record_ops.h"
#include "device_vulkan/vulkan_timeline.h"
#include "tensor/tensor.h"

namespace transept {

inline uint32_t to_u32(int64_t value) {
  CHECK(value >= 0 && value <= int64_t{UINT32_MAX}, value);
  return static_cast<uint32_t>(value);
}

inline BufferRange range_of(const VulkanTimeline& timeline, const float* values, int64_t count) {
  return timeline.range(values, static_cast<uint64_t>(count) * sizeof(float));
}

// x: [rows, n] float32, not empty, columns dense; rows may lie in one another.
inline DeviceMatrix matrix_of(const VulkanTimeline& timeline, const TensorView& x) {
  CHECK(x.rank == 2 && x.dtype == DType::kFloat32 && x.stride[1] == 1 && !x.empty());
  const uint64_t floats = static_cast<uint64_t>((x.dim(0) - 1) * x.stride[0] + x.dim(1));
  const BufferRange range = timeline.range(x.raw, floats * sizeof(float));
  return {range.buffer, range.begin, to_u32(x.dim(0)), to_u32(x.dim(1)), to_u32(x.stride[0])};
}

// x: [rows, heads, head_dim], each head behind the last.
inline DeviceMatrix matrix_of_heads(const VulkanTimeline& timeline, const TensorView& x) {
  CHECK(x.rank == 3 && x.stride[1] == x.dim(2) && x.stride[2] == 1);
  TensorView flat = x;
  flat.rank = 2;
  flat.shape = {x.dim(0), x.dim(1) * x.dim(2), 0, 0};
  flat.stride = {x.stride[0], 1, 0, 0};
  return matrix_of(timeline, flat);
}

}  // namespace transept
