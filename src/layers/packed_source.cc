#include "layers/packed_source.h"

#include <algorithm>
#include <vector>

namespace transept {
namespace {

class PackedNumbers final : public MatrixSource {
 public:
  explicit PackedNumbers(const PackedMatrix& packed)
      : MatrixSource(packed.n(), packed.k(), packed.format().weights), packed_(packed) {}

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override {
    std::vector<float> row(static_cast<size_t>(k()));
    for (int64_t i = 0; i < count; ++i) {
      packed_.get_row(begin + i, row.data());
      std::copy_n(row.data() + columns.begin, columns.size(), out.data() + i * columns.size());
    }
  }

 private:
  const PackedMatrix& packed_;
};

class PackedCodes final : public CodedMatrix {
 public:
  explicit PackedCodes(const PackedMatrix& packed)
      : CodedMatrix(packed.n(), packed.k(), packed.format().weights), packed_(packed) {}

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override {
    std::vector<int8_t> whole(static_cast<size_t>(k()));
    packed_.get_codes(row, whole.data());
    std::copy_n(whole.data() + columns.begin, columns.size(), codes.data());
  }
  void read_scales(int64_t row, std::span<float> scales, std::span<int16_t> /*zeros*/) const override {
    scales[0] = packed_.scales()[row];
  }

 private:
  const PackedMatrix& packed_;
};

class PackedNibbles final : public CodedMatrix {
 public:
  explicit PackedNibbles(const PackedMatrix& packed)
      : CodedMatrix(packed.n(), packed.k(), packed.format().weights, groups_of(packed), table_of(packed)),
        packed_(packed) {}

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override {
    std::vector<int8_t> whole(static_cast<size_t>(k()));
    packed_.get_codes(row, whole.data());
    std::copy_n(whole.data() + columns.begin, columns.size(), codes.data());
  }
  void read_scales(int64_t row, std::span<float> scales, std::span<int16_t> zeros) const override {
    packed_.get_scales(row, scales, zeros);
  }

 private:
  static std::vector<int32_t> groups_of(const PackedMatrix& packed) {
    const std::span<const int32_t> groups = packed.nibble_meanings().input_groups;
    return {groups.begin(), groups.end()};
  }
  static std::vector<float> table_of(const PackedMatrix& packed) {
    const std::span<const float> table = packed.nibble_meanings().table;
    return packed.nibbles().has_table ? std::vector<float>(table.begin(), table.end()) : std::vector<float>();
  }

  const PackedMatrix& packed_;
};

}  // namespace

std::unique_ptr<MatrixSource> make_packed_source(const PackedMatrix& packed) {
  if (packed.format().weights == kInt8Format) return std::make_unique<PackedCodes>(packed);
  if (packed.is_nibbles() && packed.nibbles().num_groups <= CodedMatrix::kMaxGroups) {
    return std::make_unique<PackedNibbles>(packed);
  }
  return std::make_unique<PackedNumbers>(packed);
}

}  // namespace transept
