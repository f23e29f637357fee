// Proves that a stack may be cut between any two layers (a pipeline's stages): every family, cut in every way, gives
// the bits of one piece. Activations move to other memory at each cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attention/backends.h"
#include "core/model_config.h"
#include "models/checkpoints_testing.h"
#include "models/registry.h"
#include "models/run_model_testing.h"

namespace transept {
namespace {

using testing::RunModel;

// Every set of places to cut `num_layers` layers at, the empty one first.
std::vector<std::vector<int32_t>> all_cuts(int32_t num_layers) {
  std::vector<std::vector<int32_t>> sets;
  for (uint32_t bits = 0; bits < (1u << (num_layers - 1)); ++bits) {
    std::vector<int32_t>& cuts = sets.emplace_back();
    for (int32_t layer = 1; layer < num_layers; ++layer) {
      if ((bits >> (layer - 1)) & 1u) cuts.push_back(layer);
    }
  }
  return sets;
}

class LayerCuts : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(LayerCuts, GiveTheBitsOfOnePiece) {
  const auto& [folder, backend] = GetParam();
  const std::unique_ptr<AttentionBackend> attention = std::move(make_attention_backend(backend)).value();
  RunModel run(*attention, detect_isa(), 2);
  const std::string path = testing::checkpoint_path(folder);
  const auto config = ModelConfig::load(path);
  ASSERT_TRUE(config.ok()) << config.status();
  std::shared_ptr<WeightMap> weights = std::move(WeightMap::open(path)).value();
  const auto model = load_model(*config, weights, {run.threads(), *attention});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<RunModel::Request> requests = testing::short_requests(config->raw);
  const std::vector<RunModel::Output> whole = run.run(**model, requests);
  ASSERT_TRUE(std::ranges::all_of(whole[0].logits, [](float value) { return std::isfinite(value); }));
  const ModelSpec& spec = (*model)->spec();
  for (const std::vector<int32_t>& encoder : all_cuts(spec.num_encoder_layers)) {
    for (const std::vector<int32_t>& decoder : all_cuts(spec.num_decoder_layers)) {
      EXPECT_EQ(run.run(**model, requests, nullptr, {encoder, decoder}), whole)
          << encoder.size() << " cuts of the encoder, " << decoder.size() << " of the decoder";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, LayerCuts,
                         ::testing::Combine(::testing::ValuesIn(testing::checkpoints()),
                                            ::testing::Values("reference", "cpu")),
                         [](const auto& test) {
                           return testing::test_name(std::get<0>(test.param) + "_" + std::get<1>(test.param));
                         });

}  // namespace
}  // namespace transept
