#include "weights/gathered_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/mmap_file.h"
#include "weights/strides.h"

namespace transept {
namespace {

constexpr int64_t kBlockRows = 64;  // gathered together
constexpr int64_t kTileColumns = 64;
constexpr size_t kMaxElementBytes = 4;

WeightView in_memory(WeightView stored, std::span<const std::byte> memory) {
  stored.data = memory;
  stored.file = nullptr;
  return stored;
}

}  // namespace

GatheredRows::GatheredRows(WeightView stored, int64_t column_stride, std::span<std::byte> memory)
    : stored_(std::move(stored)),
      gathered_(in_memory(stored_, memory)),
      column_stride_(column_stride),
      memory_(memory),
      writes_(std::make_unique<Mutex[]>(static_cast<size_t>(ceil_div(stored_.shape.front(), kBlockRows)))),
      is_here_(
          std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(ceil_div(stored_.shape.front(), kBlockRows)))) {
  CHECK(stored_.shape.size() == 2 && stored_.file != nullptr, stored_.name);
  CHECK(memory.size() == static_cast<size_t>(stored_.num_elements()) * dtype_bytes(stored_.dtype), stored_.name);
}

// Reads the file and not its mapping, whose pages would stay in memory beside the rows.
void GatheredRows::gather_block(int64_t block) {
  std::atomic<bool>& is_here = is_here_[static_cast<size_t>(block)];
  if (is_here.load(std::memory_order_acquire)) return;
  const MutexLock lock(writes_[static_cast<size_t>(block)]);
  if (is_here.load(std::memory_order_relaxed)) return;
  const size_t width = dtype_bytes(stored_.dtype);
  const int64_t n = stored_.shape[0], k = stored_.shape[1], row = block * kBlockRows,
                rows = std::min(kBlockRows, n - row);
  const size_t offset = static_cast<size_t>(stored_.data.data() - stored_.file->bytes().data());
  std::array<std::byte, kBlockRows * kTileColumns * kMaxElementBytes> lines, tile;
  for (int64_t column = 0; column < k; column += kTileColumns) {
    const int64_t columns = std::min(kTileColumns, k - column);
    const auto line_bytes = static_cast<size_t>(rows) * width;
    for (int64_t j = 0; j < columns; ++j) {
      stored_.file->read(offset + static_cast<size_t>((column + j) * column_stride_ + row) * width,
                         std::span(lines).subspan(static_cast<size_t>(j) * line_bytes, line_bytes));
    }
    const auto row_bytes = static_cast<size_t>(columns) * width;
    const std::span<std::byte> turned = std::span(tile).first(static_cast<size_t>(rows) * row_bytes);
    transept::gather(lines, width, std::array{rows, columns}, std::array{int64_t{1}, rows}, turned, nullptr);
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(memory_.data() + static_cast<size_t>((row + i) * k + column) * width,
                  turned.data() + static_cast<size_t>(i) * row_bytes, row_bytes);
    }
  }
  is_here.store(true, std::memory_order_release);
}

void GatheredRows::gather(int64_t begin, int64_t count) {
  for (int64_t block = begin / kBlockRows; block * kBlockRows < begin + count; ++block) gather_block(block);
}

void GatheredRows::gather_all(ThreadPool* threads) {
  const int64_t num_blocks = ceil_div(stored_.shape.front(), kBlockRows);
  if (threads != nullptr) return threads->parallel_for(num_blocks, [&](int64_t block, int) { gather_block(block); });
  for (int64_t block = 0; block < num_blocks; ++block) gather_block(block);
}

GatheredMatrix::GatheredMatrix(GatheredRows& rows)
    : MatrixSource(rows.tensor().shape[0], rows.tensor().shape[1], weights_of(rows.tensor().dtype)), rows_(rows) {}

void GatheredMatrix::read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const {
  DCHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
  DCHECK(std::ssize(out) == count * columns.size());
  rows_.gather(begin, count);
  const auto width = static_cast<size_t>(columns.size());
  for (int64_t row = 0; row < count; ++row) {
    widen_to_float(rows_.tensor(), (begin + row) * k() + columns.begin,
                   out.subspan(static_cast<size_t>(row) * width, width));
  }
}

}  // namespace transept
