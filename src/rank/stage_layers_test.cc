#include "rank/stage_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/model_config.h"
#include "models/checkpoints_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StageLayers, NamesSayTheLayer) {
  const auto decoder = [](int32_t layer) { return NamedLayer{false, layer}; };
  const auto encoder = [](int32_t layer) { return NamedLayer{true, layer}; };
  const std::pair<const char*, std::optional<NamedLayer>> cases[] = {
      {"model.decoder.layers.3.fc1.weight", decoder(3)},
      {"decoder.layers.11.encoder_attn.k_proj.weight", decoder(11)},
      {"encoder.block.0.layer.1.DenseReluDense.wo.weight", encoder(0)},
      {"decoder.block.7.layer.2.DenseReluDense.wi_0.weight.packed_panels", decoder(7)},
      {"text_decoder.bert.encoder.layer.1.attention.self.query.weight", decoder(1)},
      {"decoder.transformer.h.5.mlp.c_fc.weight", decoder(5)},
      {"language_model.model.layers.8.cross_attn.q_proj.weight", decoder(8)},
      {"language_model.model.encoder.layers.2.fc1.weight", encoder(2)},
      {"vision_model.transformer.layers.4.mlp.fc1.weight", encoder(4)},
      {"model.visual.blocks.6.attn.qkv.weight", encoder(6)},
      {"model.vision.transformer.layers.1.mlp.fc1.weight", encoder(1)},
      {"model.cross_vision.vit.model.blocks.2.mlp.w1.weight", encoder(2)},
      {"encoder.encoder.layers.0.blocks.1.layernorm_before.weight", encoder(0)},
      {"shared.weight", std::nullopt},
      {"decoder.layer_norm.weight", std::nullopt},
      {"model.encoder.conv1.weight", std::nullopt},
      {"decoder.layers.99999999999.fc1.weight", std::nullopt},
      {"decoder.layers.-1.fc1.weight", std::nullopt},
      {"7.weight", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& [name, layer] : cases) EXPECT_EQ(layer_of_name(name), layer) << name;
}

// Of the folders of tests/models as their config.json says it.
TEST(StageLayers, EveryCheckpointsTensorsCountItsDecodersLayers) {
  for (const std::string& folder : testing::checkpoints()) {
    const std::string path = testing::checkpoint_path(folder);
    const auto config = ModelConfig::load(path);
    ASSERT_TRUE(config.ok()) << config.status();
    std::optional<size_t> wanted;
    for (const Json* object : {config->raw.find("text_config"), config->raw.find("decoder"), &config->raw}) {
      if (object == nullptr || !object->is_object()) continue;
      for (const char* key : {"decoder_layers", "num_decoder_layers", "decoder_num_hidden_layers", "n_layer",
                              "num_hidden_layers", "num_layers"}) {
        const Json* value = object->find(key);
        if (!wanted.has_value() && value != nullptr && value->is_int()) wanted = static_cast<size_t>(value->as_int());
      }
    }
    ASSERT_TRUE(wanted.has_value()) << folder;
    const auto weights = std::move(WeightMap::open(path)).value();
    EXPECT_EQ(layer_bytes(*weights).decoder.size(), *wanted) << folder;
  }
}

LayerBytes bytes(std::vector<uint64_t> encoder, std::vector<uint64_t> decoder, uint64_t others) {
  const bool divides_encoder = !encoder.empty();
  return {std::move(encoder), std::move(decoder), others, others, divides_encoder};
}

std::vector<uint64_t> loads(const LayerBytes& of, const std::vector<StageLayers>& stages) {
  std::vector<uint64_t> loads;
  for (const StageLayers& stage : stages) {
    uint64_t load = loads.empty() ? of.others : 0;
    for (int32_t i = stage.encoder.begin; i < stage.encoder.end; ++i) load += of.encoder[static_cast<size_t>(i)];
    for (int32_t i = stage.decoder.begin; i < stage.decoder.end; ++i) load += of.decoder[static_cast<size_t>(i)];
    loads.push_back(load);
  }
  return loads;
}

TEST(StageLayers, BytesAreCutEvenly) {
  const auto cut = [](const LayerBytes& of, int32_t num_stages) {
    const auto stages = cut_layers(of, num_stages, {});
    EXPECT_TRUE(stages.ok()) << stages.status();
    return loads(of, *stages);
  };
  EXPECT_THAT(cut(bytes({}, {5, 5, 5, 5}, 0), 2), ElementsAre(10, 10));
  EXPECT_THAT(cut(bytes({}, {5, 5, 5, 5}, 10), 2), ElementsAre(15, 15)) << "what is no layer's is the first's";
  EXPECT_THAT(cut(bytes({}, {5, 5, 5, 5}, 100), 3), ElementsAre(105, 5, 10)) << "at least one layer each";
  EXPECT_THAT(cut(bytes({3, 3, 3, 3}, {5, 5, 5, 5}, 0), 4), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(cut(bytes({3, 3, 3, 3}, {5, 5}, 6), 2), ElementsAre(14, 14));
  EXPECT_THAT(cut(bytes({3, 3, 3, 3}, {5, 5}, 50), 2), ElementsAre(58, 14)) << "the first stage reads inputs";
  EXPECT_THAT(cut(bytes({3, 3}, {5, 5, 5}, 0), 3), ElementsAre(8, 5, 8)) << "others may encode nothing";
  EXPECT_THAT(cut(bytes({}, {9, 1, 1, 1}, 0), 2), ElementsAre(9, 3));
  EXPECT_THAT(cut(bytes({1}, {4}, 2), 1), ElementsAre(7));
}

// Against every cut there is.
TEST(StageLayers, NoCutOfTheDecoderHasASmallerLargestStage) {
  std::mt19937 draw(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> layers(1 + draw() % 7);
    for (uint64_t& layer : layers) layer = draw() % 20;
    const LayerBytes of = bytes({}, layers, draw() % 30);
    const auto num_stages = static_cast<int32_t>(1 + draw() % std::min<size_t>(layers.size(), 3));
    const auto stages = cut_layers(of, num_stages, {});
    ASSERT_TRUE(stages.ok());
    const std::vector<uint64_t> found = loads(of, *stages);
    uint64_t least = UINT64_MAX;
    for (uint32_t bits = 0; bits < (1u << (layers.size() - 1)); ++bits) {
      std::vector<uint64_t> sums = {of.others + layers[0]};
      for (size_t i = 1; i < layers.size(); ++i) {
        if ((bits >> (i - 1)) & 1u) sums.push_back(0);
        sums.back() += layers[i];
      }
      if (std::ssize(sums) == num_stages) least = std::min(least, std::ranges::max(sums));
    }
    EXPECT_EQ(std::ranges::max(found), least);
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), uint64_t{0}),
              std::accumulate(layers.begin(), layers.end(), of.others));
  }
}

TEST(StageLayers, LayersMayBeChosen) {
  const LayerBytes of = bytes({1, 1, 1}, {1, 1, 1, 1}, 0);
  const auto chosen = parse_pipeline_layers("3,0/1,3", 2);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  const auto stages = cut_layers(of, 2, *chosen);
  ASSERT_TRUE(stages.ok()) << stages.status();
  EXPECT_EQ((*stages)[0].encoder.end, 3);
  EXPECT_EQ((*stages)[1].encoder.begin, 3);
  EXPECT_EQ((*stages)[1].encoder.end, 3);
  EXPECT_EQ((*stages)[1].decoder.begin, 1);
  EXPECT_EQ((*stages)[1].decoder.end, 4);
  EXPECT_EQ(stages_text(*stages),
            "2 stages of encoder layers 3 + 0 and decoder layers 1 + 3; up to 2 steps are in flight");
  const auto decoder_alone = parse_pipeline_layers("1,3", 2);
  ASSERT_TRUE(decoder_alone.ok());
  EXPECT_THAT(loads(of, *cut_layers(of, 2, *decoder_alone)), ElementsAre(3, 4)) << "the encoder's are cut beside them";
}

// opus-mt's shape, in thousands of weights: by bytes the output layer is half of the model, and by time a third.
TEST(StageLayers, TimeIsCutEvenly) {
  LayerBytes of = bytes(std::vector<uint64_t>(6, 3152), std::vector<uint64_t>(6, 4204), 30270);
  of.output = 29748;
  const auto cut = [&](const char* text) {
    const auto asked = parse_pipeline_layers(text, 2);
    EXPECT_TRUE(asked.ok()) << asked.status();
    return stages_text(*cut_layers(of, 2, *asked));
  };
  EXPECT_THAT(cut("bytes"), HasSubstr("encoder layers 1 + 5 and decoder layers 1 + 5"));
  EXPECT_THAT(cut("time"), HasSubstr("encoder layers 4 + 2 and decoder layers 1 + 5"));
  of.output = 8000;  // the rest is a table that rows are read from
  EXPECT_THAT(cut("time"), HasSubstr("encoder layers 2 + 4 and decoder layers 3 + 3"));
  of.encoder.clear();
  of.divides_encoder = false;
  EXPECT_THAT(cut("time"), HasSubstr("decoder layers 1 + 5")) << "the others have the encoder";
}

TEST(StageLayers, TheOutputLayerIsTheLargestTensorOfNoLayer) {
  const auto bart = std::move(WeightMap::open(testing::checkpoint_path("bart-float32"))).value();
  const LayerBytes of = layer_bytes(*bart);
  EXPECT_GT(of.output, 0u);
  EXPECT_LT(of.output, of.others) << "positions are among them";
}

TEST(StageLayers, WhatDoesNotAddUpIsNamed) {
  const auto parsed = [](const char* text, int32_t num_stages) {
    return error_message(parse_pipeline_layers(text, num_stages).status());
  };
  for (const char* text :
       {"", ",", "1,", "a,b", "1.5,2", "-1,3", "1,2/", "/1,2", "1,2/3,4/5,6", "1 ,2", "99999999999,1"}) {
    EXPECT_THAT(parsed(text, 2), HasSubstr("--pipeline-layers")) << text;
  }
  EXPECT_THAT(parsed("1,2,3", 2), HasSubstr("3 numbers for the 2 stages of --pipeline-parallel-size"));
  EXPECT_THAT(parsed("1,2/3", 2), HasSubstr("1 numbers for the 2 stages"));
  EXPECT_THAT(parsed("4,0", 2), HasSubstr("at least one layer of the decoder"));
  EXPECT_THAT(parsed("0,4/1,3", 2), HasSubstr("the first stage has at least one layer of the encoder"));
  EXPECT_EQ(parsed("4,0/1,3", 2), "") << "another may encode nothing";

  const LayerBytes of = bytes({1, 1}, {1, 1, 1}, 0);
  const auto cut = [&](const char* text, const LayerBytes& layers) {
    const auto asked = parse_pipeline_layers(text, 2);
    EXPECT_TRUE(asked.ok()) << asked.status();
    return error_message(cut_layers(layers, 2, *asked).status());
  };
  EXPECT_THAT(cut("1,1", of), HasSubstr("--pipeline-layers 1,1: these are 2 layers, and the decoder has 3"));
  EXPECT_THAT(cut("1,2/1,2", of), HasSubstr("--pipeline-layers 1,2: these are 3 layers, and the encoder has 2"));
  EXPECT_THAT(cut("1,1/1,2", bytes({}, {1, 1, 1}, 0)), HasSubstr("the first stage has the whole encoder"));
  EXPECT_EQ(error_message(cut_layers(of, 4, {}).status()),
            "--pipeline-parallel-size 4: 3 decoder layers: --pipeline-parallel-size 1 to 3");
  EXPECT_EQ(error_message(cut_layers(bytes({}, {1, 1}, 0), 3, {}).status()),
            "--pipeline-parallel-size 3: 2 decoder layers: --pipeline-parallel-size 1 or 2");
  EXPECT_EQ(error_message(cut_layers(bytes({}, {1}, 0), 2, {}).status()),
            "--pipeline-parallel-size 2: 1 decoder layer: --pipeline-parallel-size 1");
}

}  // namespace
}  // namespace transept
