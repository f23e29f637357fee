#include "device_vulkan/record_int8.h"

#include <initializer_list>

#include "base/check.h"
#include "device_vulkan/kernels.h"

namespace transept {
namespace {

constexpr uint32_t kWord = 4;
constexpr uint32_t kPanel = 32;  // outputs (ops/packed_matrix.h)
constexpr uint32_t kDepth = 64;  // inputs (ops/packed_matrix.h)

uint32_t groups(uint32_t count, uint32_t size) { return (count - 1) / size + 1; }

void run(Recorder& recorder, const KernelSpec& kernel, std::initializer_list<uint32_t> arguments,
         std::initializer_list<BufferRange> operands, const Grid& grid) {
  recorder.run(kernel, std::as_bytes(std::span(arguments.begin(), arguments.size())),
               std::span(operands.begin(), operands.size()), grid);
}

void check(const DeviceRoundedRows& rows) {
  CHECK(rows.rows > 0 && rows.k > 0 && rows.codes.size == uint64_t{rows.rows} * 2 * kWord);
  const uint64_t words = DeviceRoundedRows::q_words(rows.rows, rows.k, rows.inputs);
  CHECK(words <= UINT32_MAX && rows.q.size == words * kWord);
}

}  // namespace

void record_round_rows(Recorder& recorder, const DeviceMatrix& x, const DeviceRoundedRows& rounded) {
  check(rounded);
  CHECK(x.rows == rounded.rows && x.columns == rounded.k);
  run(recorder, kRoundRowsKernel, {x.columns, x.stride, static_cast<uint32_t>(rounded.inputs)},
      {x.range(), rounded.q, rounded.codes}, {.x = x.rows});
}

void record_product(Recorder& recorder, const DeviceRoundedRows& x, const DeviceInt8Weights& w,
                    const DeviceEpilogue& epilogue, const DeviceMatrix& y) {
  check(x);
  CHECK(x.k == w.k && y.columns == w.n && x.rows == y.rows, "[", x.rows, ", ", x.k, "] by ", w.n, " x ", w.k);
  const uint64_t outputs = uint64_t{groups(w.n, kPanel)} * kPanel;
  CHECK(w.panels.size == outputs * groups(w.k, kDepth) * kDepth && w.scales.size == outputs * kWord &&
        w.sums.size == outputs * kWord);
  const bool has_bias = epilogue.bias.buffer != BufferId::kNone;
  const bool has_residual = epilogue.residual.buffer != BufferId::kNone;
  CHECK(!has_bias || epilogue.bias.size == uint64_t{w.n} * kWord);
  CHECK(!has_residual || (epilogue.residual.rows == y.rows && epilogue.residual.columns == y.columns));
  // What is not there is bound all the same, and not read.
  run(recorder, w.tiling.rows > 0 ? kProductMatrixKernels[2] : kProductInt8Kernel,
      {x.rows, w.n, w.k, DeviceRoundedRows::share(x.inputs), y.stride, has_residual ? epilogue.residual.stride : 0,
       static_cast<uint32_t>(epilogue.activation), (has_bias ? 1u : 0u) | (has_residual ? 2u : 0u)},
      {x.q, x.codes, w.panels, w.scales, w.sums, has_bias ? epilogue.bias : w.scales,
       has_residual ? epilogue.residual.range() : w.scales, y.range()},
      {.x = groups(w.n, kPanel), .y = groups(x.rows, w.tiling.rows_of_group())});
}

void record_round_heads(Recorder& recorder, const DeviceMatrix& x, uint32_t heads, const DeviceMatrix& y) {
  CHECK(x.rows == y.rows && x.columns == y.columns && heads > 0 && x.columns % heads == 0);
  CHECK(!overlap(x.range(), y.range()));
  run(recorder, kRoundHeadsKernel, {x.columns / heads, x.stride, y.stride}, {x.range(), y.range()},
      {.x = x.rows, .y = heads});
}

}  // namespace transept
