#include "device_vulkan/record_channels.h"

#include <bit>
#include <initializer_list>

#include "base/check.h"
#include "device_vulkan/kernels.h"

namespace transept {
namespace {

uint32_t lanes(uint32_t count) { return (count - 1) / kMostLanes + 1; }

void run(Recorder& recorder, const KernelSpec& kernel, std::initializer_list<uint32_t> arguments,
         std::initializer_list<BufferRange> operands, const Grid& grid) {
  recorder.run(kernel, std::as_bytes(std::span(arguments.begin(), arguments.size())),
               std::span(operands.begin(), operands.size()), grid);
}

}  // namespace

void record_depthwise_conv(Recorder& recorder, const DeviceMatrix& x, uint32_t height, uint32_t width,
                           const BufferRange& weight, const BufferRange& bias, const DeviceMatrix& y) {
  CHECK(x.rows == uint64_t{height} * width && y.rows == x.rows && y.columns == x.columns);
  CHECK(weight.size == uint64_t{x.columns} * 36 && bias.size == uint64_t{x.columns} * 4);
  run(recorder, kDepthwiseConvKernel, {x.columns, height, width, x.stride, y.stride},
      {x.range(), weight, bias, y.range()}, {.x = lanes(x.columns), .y = x.rows});
}

void record_channel_products(Recorder& recorder, const DeviceMatrix& q, const DeviceMatrix& k,
                             const DeviceMatrix& sums) {
  const uint32_t n = q.columns, size = sums.columns;
  CHECK(k.rows == q.rows && k.columns == n && sums.rows == n && n % size == 0);
  run(recorder, kChannelProductsKernel, {q.rows, n, size, q.stride, k.stride, sums.stride},
      {q.range(), k.range(), sums.range()}, {.x = lanes(size), .y = n});
}

void record_softmax_rows(Recorder& recorder, float scale, const DeviceMatrix& x) {
  run(recorder, kSoftmaxRowsKernel, {x.columns, x.stride, std::bit_cast<uint32_t>(scale)}, {x.range()}, {.x = x.rows});
}

void record_mix_channels(Recorder& recorder, const DeviceMatrix& v, const DeviceMatrix& weights,
                         const DeviceMatrix& y) {
  const uint32_t n = v.columns, size = weights.columns;
  CHECK(y.rows == v.rows && y.columns == n && weights.rows == n && n % size == 0);
  run(recorder, kMixChannelsKernel, {n, size, v.stride, weights.stride, y.stride},
      {v.range(), weights.range(), y.range()}, {.x = lanes(n), .y = v.rows});
}

void record_mean_of_rows(Recorder& recorder, const DeviceMatrix& x, const DeviceMatrix& y) {
  CHECK(y.rows == 1 && y.columns == x.columns);
  run(recorder, kMeanOfRowsKernel, {x.rows, x.columns, x.stride}, {x.range(), y.range()}, {.x = lanes(x.columns)});
}

}  // namespace transept
