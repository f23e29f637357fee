// Proves that sources give what their files mean, whatever rows and columns are asked for: tensors of floats, and codes
// with scales, zeros and groups in any order against their definition in double precision.
#include "weights/matrix_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "weights/coded_matrix_testing.h"

namespace transept {
namespace {

using testing::CodedValues;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;
using testing::TestReader;
using testing::TestTensor;

constexpr int64_t kOutputs = 9, kInputs = 75;

std::unique_ptr<WeightMap> open_file(const TestFolder& folder, const std::vector<TestTensor>& tensors) {
  folder.write("model.safetensors", testing::safetensors_bytes(tensors));
  return std::move(WeightMap::open(folder.path())).value();
}

std::vector<float> rows_of(const MatrixSource& source, int64_t begin, int64_t count, IndexRange columns) {
  std::vector<float> out(static_cast<size_t>(count * columns.size()));
  source.read_rows(begin, count, columns, out);
  return out;
}

constexpr IndexRange kColumns[] = {{0, kInputs}, {0, 1}, {17, 50}, {kInputs - 1, kInputs}, {31, 33}, {40, 40}};

TEST(TensorMatrix, GivesRowsAndColumnsOfATensor) {
  std::vector<float> values(static_cast<size_t>(kOutputs * kInputs));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 4;
  std::vector<uint16_t> narrow;
  narrow.reserve(values.size());
  for (const float value : values) narrow.push_back(float_to_float16(value));
  const TestFolder folder;
  const auto map = open_file(folder, {{"a", "F32", {kOutputs, kInputs}, testing::bytes_of(values)},
                                      {"b", "F16", {kOutputs, 5, 15}, testing::bytes_of(narrow)}});
  const auto wide = map->matrix("a", {kOutputs, kInputs}, WeightUse::kPacked);
  const auto three_axes = map->matrix("b", {kOutputs, 5, 15}, WeightUse::kRead);
  ASSERT_TRUE(wide.ok() && three_axes.ok());
  EXPECT_EQ((*wide)->format(), kFloat32Format);
  EXPECT_EQ((*three_axes)->format(), kFloat16Format);
  EXPECT_EQ((*wide)->coded(), nullptr);
  for (const auto* source : {wide->get(), three_axes->get()}) {
    EXPECT_EQ(source->n(), kOutputs);
    EXPECT_EQ(source->k(), kInputs);
    for (const IndexRange& columns : kColumns) {
      const std::vector<float> rows = rows_of(*source, 2, 4, columns);
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t row = 2 + static_cast<int64_t>(i) / columns.size();
        const int64_t column = columns.begin + static_cast<int64_t>(i) % columns.size();
        EXPECT_EQ(rows[i], values[static_cast<size_t>(row * kInputs + column)]);
      }
    }
  }
  EXPECT_THAT(error_message(map->matrix("a", {kInputs, kOutputs}, WeightUse::kPacked).status()),
              HasSubstr("shape [9, 75], expected [75, 9]"));
  EXPECT_THAT(error_message(map->matrix("c", {1, 1}, WeightUse::kPacked).status()), HasSubstr("\"c\" is missing"));
}

TEST(TensorMatrix, LargeTablesAreReadFromTheFile) {
  constexpr int64_t kRows = 1100, kWidth = 1024;  // over 4 MiB
  std::vector<float> values(static_cast<size_t>(kRows * kWidth));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 10007);
  const TestFolder folder;
  const auto map = open_file(folder, {{"table", "F32", {kRows, kWidth}, testing::bytes_of(values)}});
  const auto table = map->matrix("table", {kRows, kWidth}, WeightUse::kRead);
  for (const int64_t row : {int64_t{0}, int64_t{777}, kRows - 1}) {
    const std::vector<float> found = rows_of(**table, row, 1, {3, kWidth});
    EXPECT_TRUE(std::equal(found.begin(), found.end(), values.begin() + row * kWidth + 3)) << row;
  }
}

TEST(CodedMatrix, MeansCodeLessZeroTimesScale) {
  for (const CodedValues& values : testing::coded_examples("m", kOutputs, kInputs)) {
    SCOPED_TRACE(weight_format_name(values.format));
    std::vector<TestTensor> tensors;
    values.add_to(tensors);
    const TestFolder folder;
    const auto map = open_file(folder, tensors);
    map->set_matrix_reader(std::make_unique<TestReader>(values.format));
    const auto source = map->matrix("m", {kOutputs, kInputs}, WeightUse::kPacked);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->format(), values.format);
    ASSERT_NE((*source)->coded(), nullptr);
    EXPECT_EQ((*source)->coded()->num_groups(), values.num_groups());
    EXPECT_EQ((*source)->coded()->input_groups().empty(), !values.is_permuted);
    for (const IndexRange& columns : kColumns) {
      const std::vector<float> rows = rows_of(**source, 1, 7, columns);
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t row = 1 + static_cast<int64_t>(i) / columns.size();
        const int64_t column = columns.begin + static_cast<int64_t>(i) % columns.size();
        EXPECT_EQ(rows[i], static_cast<float>(values.weight(row, column))) << row << ", " << column;
      }
    }
  }
}

TEST(MatrixReader, IsAskedByNameAndItsTensorsAreRead) {
  CodedValues values = testing::coded_examples("m", kOutputs, kInputs)[1];
  std::vector<TestTensor> tensors = {{"plain", "F32", {1, 1}, std::string(4, '\0')}};
  values.add_to(tensors);
  const TestFolder folder;
  const auto map = open_file(folder, tensors);
  EXPECT_FALSE(map->contains("m"));
  map->set_matrix_reader(std::make_unique<TestReader>(values.format));
  EXPECT_TRUE(map->contains("m"));
  EXPECT_TRUE(map->contains("plain"));
  EXPECT_FALSE(map->contains("other"));
  EXPECT_FALSE(map->has_tensor("m"));
  EXPECT_TRUE(map->matrix("plain", {1, 1}, WeightUse::kPacked).ok());
  EXPECT_THAT(error_message(map->matrix("m", {kOutputs, kInputs + 32}, WeightUse::kPacked).status()),
              HasSubstr("m.codes"));
  EXPECT_TRUE(map->matrix("m", {kOutputs, kInputs}, WeightUse::kPacked).ok());
  EXPECT_THAT(map->unread(), IsEmpty());
  EXPECT_THAT(map->read_tensors(), IsEmpty()) << "they were packed";
  EXPECT_TRUE(map->matrix("m", {kOutputs, kInputs}, WeightUse::kRead).ok());
  EXPECT_THAT(map->read_tensors(), IsEmpty()) << "parts of a matrix";
  const auto read = map->read_matrices();
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().name, "m");
  EXPECT_EQ(read->front().source->k(), kInputs);
}

}  // namespace
}  // namespace transept
