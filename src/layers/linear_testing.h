// For tests of Linear: layers of a small folder, loaded in every way, and what they multiply to. Header-only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/folder_testing.h"
#include "base/random_values_testing.h"
#include "layers/linear.h"
#include "layers/pack_file.h"
#include "ops/cpu_device.h"
#include "weights/coded_matrix_testing.h"

namespace transept::testing {

inline std::vector<float> random_values(int64_t count, uint32_t seed, float size = 0.3f) {
  return random_normals(count, seed, size);
}

inline TestTensor floats(const std::string& name, std::vector<int64_t> shape, uint32_t seed) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return {name, "F32", std::move(shape), bytes_of(random_values(count, seed))};
}

inline constexpr std::optional<WeightFormat> kStorages[] = {std::nullopt, kFloat32Format, kBFloat16Format,
                                                            kFloat16Format, kInt8Format};

inline std::string name_of(const std::optional<WeightFormat>& storage) {
  return storage.has_value() ? weight_format_name(*storage) : "stored";
}

// Eight heads of q, four of k and v, and a gated pair in one matrix; kHead outputs a head.
inline constexpr int64_t kIn = 96, kHead = 5, kQ = 8 * kHead, kKv = 4 * kHead, kRows = 7;

class LinearTest : public ::testing::Test {
 protected:
  LinearTest() {
    write(folder_, {floats("q.weight", {kQ, kIn}, 1), floats("q.bias", {kQ}, 2), floats("k.weight", {kKv, kIn}, 3),
                    floats("v.weight", {kKv, kIn}, 4), floats("v.bias", {kKv}, 5), floats("up.weight", {34, kIn}, 6),
                    floats("conv.weight", {11, kIn / 3, 3}, 7)});
  }

  static void write(const TestFolder& folder, const std::vector<TestTensor>& tensors) {
    folder.write("model.safetensors", safetensors_bytes(tensors));
  }

  std::unique_ptr<WeightMap> open(const std::string& path) { return std::move(WeightMap::open(path)).value(); }

  Linear load(WeightMap& weights, const LinearSpec& spec, const std::optional<WeightFormat>& storage,
              const Ranks& ranks = {}) {
    PackOptions packing(threads_, storage, &report_);
    packing.ranks = ranks;
    StatusOr<Linear> linear = Linear::load(weights, spec, packing);
    CHECK(linear.ok(), linear.status().ToString());
    return std::move(linear).value();
  }

  // x: [rows, in]. Returns [rows, out].
  std::vector<float> product(const Linear& linear, std::vector<float> x, const RowStatistics* given = nullptr) {
    const auto rows = static_cast<int64_t>(x.size()) / linear.in_features();
    std::vector<float> y(static_cast<size_t>(rows * linear.out_features()));
    linear.forward(context_, {TensorView(x.data(), DType::kFloat32, {rows, linear.in_features()}), given}, {},
                   TensorView(y.data(), DType::kFloat32, {rows, linear.out_features()}));
    return y;
  }

  static LinearSpec qkv(Split split) {
    return {{{"q.weight", "q.bias", kQ}, {"k.weight", "", kKv}, {"v.weight", "v.bias", kKv}},
            kIn,
            LayerInputs::kUsual,
            split,
            kHead};
  }

  // Puts columns of a rank's product to their places in the whole: `part` has the ranges side by side.
  static void place(const std::vector<float>& part, const std::vector<IndexRange>& ranges, int64_t width,
                    std::vector<float>& whole) {
    int64_t own_width = 0;
    for (const IndexRange& range : ranges) own_width += range.size();
    for (int64_t row = 0; row < std::ssize(whole) / width; ++row) {
      int64_t from = row * own_width;
      for (const IndexRange& range : ranges) {
        for (int64_t j = range.begin; j < range.end; ++j) {
          whole[static_cast<size_t>(row * width + j)] = part[static_cast<size_t>(from++)];
        }
      }
    }
  }

  TestFolder folder_;
  ThreadPool threads_{2};
  Arena arena_{size_t{8} << 20};
  CpuDevice device_{threads_, detect_isa()};
  Context context_{device_, arena_};
  std::vector<PackedLayer> report_;
  std::vector<float> x_ = random_values(kRows * kIn, 20, 1);
};

class PackedLinear : public LinearTest {
 protected:
  // A file of one packed layer.
  std::unique_ptr<WeightMap> pack(const TestFolder& folder, WeightMap& original, const LinearSpec& spec,
                                  const std::optional<WeightFormat>& storage) {
    report_.clear();
    const Linear linear = load(original, spec, storage);
    const std::string path = (std::filesystem::path(folder.path()) / "model.safetensors").string();
    const Status written = write_pack_file(path, original, report_, storage, [] { return true; });
    CHECK(written.ok(), written.ToString());
    return open(folder.path());
  }
};

}  // namespace transept::testing
