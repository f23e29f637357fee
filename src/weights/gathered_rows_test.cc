// Rows that are gathered when they are read, against index arithmetic written out.
#include "weights/gathered_rows.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/folder_testing.h"
#include "base/mmap_file.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using testing::TestFolder;

// n and k end within a block and a tile; columns have a gap behind them, and the tensor begins within its file.
constexpr int64_t kRows = 150, kColumns = 131, kStride = 157, kBegin = 3;

template <typename Element>
struct Stored {
  explicit Stored(DType dtype) {
    elements.resize(static_cast<size_t>(kBegin + (kColumns - 1) * kStride + kRows));
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<Element>(i % 30011 + 1);
    folder.write("w.bin", testing::bytes_of(elements));
    file = std::move(MmapFile::open(folder.path() + "/w.bin")).value();
    view = {"w", dtype, {kRows, kColumns}, file->bytes().subspan(kBegin * sizeof(Element)), file.get()};
    memory.resize(static_cast<size_t>(kRows * kColumns) * sizeof(Element));
  }
  Element at(int64_t row, int64_t column) const {
    return elements[static_cast<size_t>(kBegin + row + column * kStride)];
  }
  float value(int64_t row, int64_t column) const {
    const Element element = at(row, column);
    float wide = 0;
    widen_bytes(view.dtype, reinterpret_cast<const std::byte*>(&element), {&wide, 1});
    return wide;
  }
  bool is_zero(int64_t row) const {
    const auto bytes = std::span(memory).subspan(static_cast<size_t>(row * kColumns) * sizeof(Element),
                                                 static_cast<size_t>(kColumns) * sizeof(Element));
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
  }

  TestFolder folder;
  std::vector<Element> elements;
  std::unique_ptr<MmapFile> file;
  WeightView view;
  std::vector<std::byte> memory;
};

template <typename Element>
void expect_rows(const Stored<Element>& stored, const MatrixSource& matrix, int64_t begin, int64_t count,
                 IndexRange columns) {
  std::vector<float> out(static_cast<size_t>(count * columns.size()), -1.0f);
  matrix.read_rows(begin, count, columns, out);
  for (int64_t i = 0; i < std::ssize(out); ++i) {
    const int64_t row = begin + i / columns.size(), column = columns.begin + i % columns.size();
    ASSERT_EQ(out[static_cast<size_t>(i)], stored.value(row, column)) << row << " " << column;
  }
}

template <typename Element>
void expect_any_row(DType dtype) {
  Stored<Element> stored(dtype);
  GatheredRows rows(stored.view, kStride, stored.memory);
  const GatheredMatrix matrix(rows);
  EXPECT_EQ(matrix.n(), kRows);
  EXPECT_EQ(matrix.k(), kColumns);
  expect_rows(stored, matrix, 70, 1, {0, kColumns});
  EXPECT_TRUE(stored.is_zero(63) && stored.is_zero(128)) << "nobody has read these";
  expect_rows(stored, matrix, 149, 1, {130, 131});
  EXPECT_TRUE(stored.is_zero(63));
  expect_rows(stored, matrix, 60, 90, {1, 130});
  expect_rows(stored, matrix, 0, kRows, {0, kColumns});
}

TEST(GatheredRows, ReadsAnyRowAndGathersNoOther) {
  expect_any_row<float>(DType::kFloat32);
  expect_any_row<uint16_t>(DType::kBFloat16);
  expect_any_row<uint16_t>(DType::kFloat16);
}

TEST(GatheredRows, GathersWhatIsLeft) {
  ThreadPool threads(3);
  for (ThreadPool* const workers : {static_cast<ThreadPool*>(nullptr), &threads}) {
    Stored<float> stored(DType::kFloat32);
    GatheredRows rows(stored.view, kStride, stored.memory);
    rows.gather(64, 1);
    rows.gather_all(workers);
    std::vector<float> got(static_cast<size_t>(kRows * kColumns));
    std::memcpy(got.data(), stored.memory.data(), stored.memory.size());
    for (int64_t i = 0; i < std::ssize(got); ++i) {
      const auto element = kBegin + i / kColumns + i % kColumns * kStride;
      ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<float>(element % 30011 + 1)) << i;
    }
  }
}

TEST(GatheredRows, ThreadsReadTheSameRowsAtOnce) {
  const Stored<float> stored(DType::kFloat32);
  std::vector<std::byte> memory(stored.memory.size());
  GatheredRows rows(stored.view, kStride, memory);
  const GatheredMatrix matrix(rows);
  std::vector<std::thread> readers;
  for (int64_t reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      for (int64_t i = 0; i < kRows; ++i) expect_rows(stored, matrix, (i * 7 + reader) % kRows, 1, {0, kColumns});
    });
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace transept
