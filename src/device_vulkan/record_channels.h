// The ops of ops/channels.h on the Vulkan device, as record_ops.h has the others. Functions without state.
#pragma once

#include "device_vulkan/record_ops.h"

namespace transept {

// x, y: [height * width, n], apart; weight: 9 n floats; bias: n.
void record_depthwise_conv(Recorder& recorder, const DeviceMatrix& x, uint32_t height, uint32_t width,
                           const BufferRange& weight, const BufferRange& bias, const DeviceMatrix& y);
// q, k: [rows, n]; sums: [n, channels of a group].
void record_channel_products(Recorder& recorder, const DeviceMatrix& q, const DeviceMatrix& k,
                             const DeviceMatrix& sums);
void record_softmax_rows(Recorder& recorder, float scale, const DeviceMatrix& x);
// v, y: [rows, n], apart; weights: [n, channels of a group].
void record_mix_channels(Recorder& recorder, const DeviceMatrix& v, const DeviceMatrix& weights, const DeviceMatrix& y);
void record_mean_of_rows(Recorder& recorder, const DeviceMatrix& x, const DeviceMatrix& y);

}  // namespace transept
