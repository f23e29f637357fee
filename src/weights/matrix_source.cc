#include "weights/matrix_source.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

// Codes that are read at a time.
constexpr int64_t kChunk = 1024;

}  // namespace

void MatrixSource::read_inputs(int64_t /*begin*/, int64_t /*count*/, IndexRange /*rows*/,
                               std::span<float> /*out*/) const {
  CHECK(false, "the file does not have it by inputs");
}

CodedMatrix::CodedMatrix(int64_t n, int64_t k, const WeightFormat& format, std::vector<int32_t> input_groups,
                         std::vector<float> table)
    : MatrixSource(n, k, format),
      num_groups_(format.group == 0 ? 1 : ceil_div(k, format.group)),
      input_groups_(std::move(input_groups)),
      table_(std::move(table)) {
  CHECK((format.is_codes() ? format.bits <= 8 : format.is_nibbles()) && num_groups_ <= kMaxGroups);
  CHECK(std::ssize(table_) == (format.is_codes() ? 0 : 16));
  CHECK(input_groups_.empty() || std::ssize(input_groups_) == k);
  CHECK(std::ranges::all_of(input_groups_, [&](int32_t group) { return group >= 0 && group < num_groups_; }));
}

int64_t CodedMatrix::group_of(int64_t input) const {
  if (!input_groups_.empty()) return input_groups_[static_cast<size_t>(input)];
  return format().group == 0 ? 0 : input / format().group;
}

namespace {

// Behind the inputs from `input` on that are certainly of one group.
int64_t end_of_run(const CodedMatrix& matrix, int64_t input, int64_t end) {
  if (!matrix.input_groups().empty()) return input + 1;
  const int64_t group = matrix.format().group;
  return group == 0 ? end : std::min(end, (input / group + 1) * group);
}

}  // namespace

void CodedMatrix::read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const {
  CHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
  CHECK(std::ssize(out) == count * columns.size());
  std::array<float, kMaxGroups> scales;
  std::array<int16_t, kMaxGroups> zeros;
  std::array<int8_t, kChunk> codes;
  const auto groups = static_cast<size_t>(num_groups_);
  float* to = out.data();
  for (int64_t row = begin; row < begin + count; ++row) {
    read_scales(row, std::span(scales).first(groups), std::span(zeros).first(format().has_zero ? groups : 0));
    for (int64_t from = columns.begin; from < columns.end; from += kChunk) {
      const IndexRange chunk{from, std::min(columns.end, from + kChunk)};
      read_codes(row, chunk, std::span(codes).first(static_cast<size_t>(chunk.size())));
      for (int64_t j = chunk.begin; j < chunk.end;) {
        const auto group = static_cast<size_t>(group_of(j));
        const int32_t zero = format().has_zero ? zeros[group] : 0;
        for (const int64_t end = end_of_run(*this, j, chunk.end); j < end; ++j) {
          const int32_t code = codes[static_cast<size_t>(j - from)];
          const float value = table_.empty() ? static_cast<float>(code - zero) : table_[static_cast<size_t>(code + 8)];
          *to++ = value * scales[group];
        }
      }
    }
  }
}

}  // namespace transept
