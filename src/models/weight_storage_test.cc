// Proves that a model's matrices are kept in what was asked for, all of them, that the report says so, and that the
// answers stay near float32's by about as much as the storage rounds.
#include <gtest/gtest.h>

#include <cmath>

#include "attention/backends.h"
#include "core/model_config.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "models/tiny_bart_testing.h"
#include "models/tiny_t5_testing.h"

namespace transept {
namespace {

using testing::RunModel;
using testing::TestFolder;
using testing::TinyBart;
using testing::TinyT5;

class WeightStorageTest : public ::testing::Test {
 protected:
  struct Loaded {
    std::vector<PackedLayer> layers;
    std::vector<float> logits;
  };
  Loaded load(std::optional<WeightFormat> storage) {
    Loaded loaded;
    const auto config = ModelConfig::load(dir_.path());
    std::shared_ptr<WeightMap> weights = std::move(WeightMap::open(dir_.path())).value();
    const auto model =
        load_model(*config, weights, {PackOptions(run_.threads(), storage, &loaded.layers), *attention_});
    EXPECT_TRUE(model.ok()) << model.status();
    if (model.ok()) loaded.logits = run_.logits(**model);
    return loaded;
  }

  // The difference's size as a share of the logits'.
  static double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, whole = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
      whole += std::pow(static_cast<double>(a[i]), 2);
    }
    return std::sqrt(difference / whole);
  }

  TestFolder dir_;
  std::unique_ptr<AttentionBackend> attention_ = std::move(make_attention_backend("reference")).value();
  RunModel run_{*attention_};
};

TEST_F(WeightStorageTest, EveryMatrixIsKeptAsAskedAndAnswersStayNear) {
  TinyBart().write(dir_);
  const Loaded whole = load(std::nullopt);
  for (const PackedLayer& layer : whole.layers) EXPECT_EQ(layer.format.weights, kFloat32Format) << layer.name;
  EXPECT_EQ(load(kFloat32Format).logits, whole.logits) << "float32 is what the checkpoint has";
  // A weight is rounded by up to 2^-9 and 2^-12 of itself, or by 1/254 of the largest of its output, and so are inputs:
  // the layers' errors add up like a random walk of fewer than ten steps.
  const std::pair<WeightFormat, double> bounds[] = {
      {kBFloat16Format, 0x1p-9 * 10}, {kFloat16Format, 0x1p-12 * 10}, {kInt8Format, 10.0 / 254}};
  for (const auto& [storage, bound] : bounds) {
    const Loaded rounded = load(storage);
    ASSERT_EQ(rounded.layers.size(), whole.layers.size());
    for (const PackedLayer& layer : rounded.layers) {
      EXPECT_EQ(layer.format.weights, storage) << layer.name;
      EXPECT_FALSE(layer.format.has_wide_inputs()) << layer.name;
      EXPECT_EQ(layer.format.inputs == InputRounding::kBFloat16, storage == kBFloat16Format) << layer.name;
    }
    EXPECT_LT(distance(whole.logits, rounded.logits), bound) << weight_format_name(storage);
    EXPECT_GT(distance(whole.logits, rounded.logits), bound / 1000) << weight_format_name(storage) << " rounds nothing";
  }
}

TEST_F(WeightStorageTest, T5sWoTakesWideInputsOfOutliers) {
  TinyT5 t5;
  t5.write(dir_, t5.tensors());
  int num_wide = 0;
  for (const PackedLayer& layer : load(kInt8Format).layers) {
    EXPECT_EQ(layer.format.weights, kInt8Format) << layer.name;
    EXPECT_EQ(layer.format.has_wide_inputs(), layer.name.ends_with(".wo.weight")) << layer.name;
    EXPECT_EQ(layer.format.inputs == InputRounding::kOutliers, layer.format.has_wide_inputs()) << layer.name;
    num_wide += layer.format.has_wide_inputs() ? 1 : 0;
  }
  EXPECT_GT(num_wide, 0);
}

}  // namespace
}  // namespace transept
