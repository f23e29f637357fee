// For tests: the passes that transformers made in double precision over seeded features of the checkpoints in
// tests/models (forward.jsonl; tests/speech_family.py, vision_family.py and
// caption_family.py), and how to repeat them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attention/backends.h"
#include "core/model_config.h"
#include "models/checkpoints_testing.h"
#include "models/registry.h"
#include "models/run_model_testing.h"

namespace transept::testing {

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<AttentionBackend> attention;
  std::shared_ptr<WeightMap> weights;
  std::unique_ptr<Model> model;
};

inline StatusOr<LoadedModel> load_folder(const std::string& folder, std::string_view backend, ThreadPool& threads) {
  LoadedModel loaded;
  ASSIGN_OR_RETURN(loaded.config, ModelConfig::load(folder));
  ASSIGN_OR_RETURN(loaded.attention, make_attention_backend(backend));
  ASSIGN_OR_RETURN(loaded.weights, WeightMap::open(folder));
  ASSIGN_OR_RETURN(loaded.model, load_model(loaded.config, loaded.weights, {threads, *loaded.attention}));
  return loaded;
}

struct ReferenceAnswer {
  ModelRequest request;
  RunModel::Output output;
  std::vector<float> tower = {};  // rows of media that stand among ids
};

inline std::vector<float> numbers_of(const Json& rows) {
  std::vector<float> values;
  for (const Json& row : rows.as_array()) {
    for (const Json& value : row.as_array()) values.push_back(static_cast<float>(value.as_double()));
  }
  return values;
}

// Of a picture whose rows are spliced (tests/qwen2_vl_family.py).
inline void add_places(const Json& pass, const Json& extras, ModelRequest& request) {
  auto features = std::make_shared<EncoderFeatures>(*request.content.features);
  for (const Json& extra : extras.as_array()) features->extras.push_back(static_cast<int32_t>(extra.as_int()));
  features->num_rows = static_cast<int32_t>(features->shape.front());
  request.content.features = std::move(features);
  request.content.consumers = Consumers::kSplice;
  request.content.splice_offset = static_cast<int32_t>(pass.find("offset")->as_int());
  for (const Json& axis : pass.find("positions")->as_array()) {
    for (const Json& position : axis.as_array()) request.positions.push_back(static_cast<int32_t>(position.as_int()));
  }
}

// Of tiles of a picture, whose rows are crossed by ranges (tests/mllama_family.py).
inline void add_ranges(const Json& pass, const Json& extras, ModelRequest& request) {
  auto features = std::make_shared<EncoderFeatures>(*request.content.features);
  for (const Json& extra : extras.as_array()) features->extras.push_back(static_cast<int32_t>(extra.as_int()));
  if (const Json* last = pass.find("num_last")) features->num_last_positions = static_cast<int32_t>(last->as_int());
  request.content.features = std::move(features);
  for (const Json& range : pass.find("ranges")->as_array()) {
    const auto number = [&](size_t i) { return static_cast<int32_t>(range.as_array()[i].as_int()); };
    request.ranges.push_back({number(0), number(1), number(2), static_cast<uint8_t>(number(3))});
  }
}

// Of a picture in two forms: the large one is crossed, the small one spliced (tests/cogagent_family.py).
inline void add_small_form(const Json& pass, ReferenceAnswer& answer) {
  ModelRequest& request = answer.request;
  std::vector<int64_t> shape;
  for (const Json& dim : pass.find("small_shape")->as_array()) shape.push_back(dim.as_int());
  const Json& rows = *pass.find("spliced");
  request.spliced = EncoderItem({}, seeded_features(shape, static_cast<int32_t>(rows.as_array().size()),
                                                    static_cast<uint32_t>(pass.find("small_seed")->as_int())));
  request.spliced->consumers = Consumers::kSplice;
  request.spliced->splice_offset = static_cast<int32_t>(pass.find("offset")->as_int());
  for (const Json& position : pass.find("positions")->as_array().front().as_array()) {
    request.positions.push_back(static_cast<int32_t>(position.as_int()));
  }
  answer.output.spliced = numbers_of(rows);
  add_ranges(pass, Json(Json::Array()), request);
}

// folder: a name below tests/models.
inline std::vector<ReferenceAnswer> read_answers(const std::string& folder) {
  std::vector<ReferenceAnswer> answers;
  std::ifstream file(checkpoint_path(folder) + "/forward.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = *Json::parse(line);
    ReferenceAnswer answer;
    const Json& encoder = *json.find("encoder");
    answer.output = {numbers_of(encoder), numbers_of(*json.find("logits"))};
    std::vector<int64_t> shape;
    for (const Json& dim : json.find("shape")->as_array()) shape.push_back(dim.as_int());
    for (const Json& id : json.find("decoder_ids")->as_array()) {
      answer.request.decoder_ids.push_back(static_cast<int32_t>(id.as_int()));
    }
    const Json* tower = json.find("tower");  // where media stand among ids
    const Json& rows = tower == nullptr ? encoder : *tower;
    const auto features = seeded_features(shape, static_cast<int32_t>(rows.as_array().size()),
                                          static_cast<uint32_t>(json.find("seed")->as_int()));
    if (const Json* columns = json.find("columns")) number_patches(*features, columns->as_int());
    answer.request.content.features = features;
    if (json.find("small_shape") != nullptr) add_small_form(json, answer);
    if (const Json* extras = json.find("extras")) {
      const bool has_ranges = json.find("ranges") != nullptr;
      (has_ranges ? add_ranges : add_places)(json, *extras, answer.request);
    }
    if (tower != nullptr) {
      answer.tower = numbers_of(*tower);
      for (const Json& id : json.find("ids")->as_array()) {
        answer.request.content.token_ids.push_back(static_cast<int32_t>(id.as_int()));
      }
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

inline double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - expected[i], 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

// Runs every pass of a folder, all in one batch and each alone, and compares.
inline void expect_reference_answers(const std::string& folder, std::string_view backend, Isa isa) {
  ThreadPool threads(2);
  const auto loaded = load_folder(checkpoint_path(folder), backend, threads);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->weights->unread().empty());
  const std::vector<ReferenceAnswer> answers = read_answers(folder);
  ASSERT_GE(answers.size(), 3u);
  RunModel run(*loaded->attention, isa, 2);
  std::vector<ModelRequest> requests;
  requests.reserve(answers.size());
  for (const ReferenceAnswer& answer : answers) requests.push_back(answer.request);
  const std::vector<RunModel::Output> packed = run.run(*loaded->model, requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    // Six decimals of values about 1 in size were kept.
    EXPECT_LT(relative_error(packed[i].encoder, answers[i].output.encoder), 5e-6);
    EXPECT_LT(relative_error(packed[i].logits, answers[i].output.logits), 5e-6);
    if (!packed[i].spliced.empty()) {
      EXPECT_LT(relative_error(packed[i].spliced, answers[i].output.spliced), 5e-6);
    }
    const RunModel::Output alone = run.run(*loaded->model, {requests[i]})[0];
    EXPECT_EQ(alone.encoder, packed[i].encoder) << "what else is in the batch must not matter";
    EXPECT_EQ(alone.logits, packed[i].logits);
    EXPECT_EQ(alone.spliced, packed[i].spliced);
  }
}

// What start-up measures without features must hold what a step with them wants.
inline void expect_dry_runs_suffice(const std::string& folder) {
  ThreadPool threads(2);
  const auto loaded = load_folder(checkpoint_path(folder), "cpu", threads);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Model& model = *loaded->model;
  const LayerRange all{0, model.spec().num_encoder_layers};
  for (const ReferenceAnswer& answer : read_answers(folder)) {
    const EncoderFeatures* const features = answer.request.content.features.get();
    const std::vector<int32_t>& ids = answer.request.content.token_ids;
    const int32_t length = answer.request.content.num_positions();
    const std::vector<int32_t> dry_ids(ids.size());
    std::vector<int32_t> positions(static_cast<size_t>(length));
    std::iota(positions.begin(), positions.end(), 0);
    const std::vector<int32_t> loc = {0, length}, lens = {length};
    EncodeBatch batch{dry_ids, {}, positions, {1, length, length, loc, {}, lens}};
    batch.attention.kv_start_loc = loc;
    batch.num_rows = model.spec().max_item_rows;
    Arena measuring = Arena::measuring(), arena(1 << 22);
    const std::initializer_list<int64_t> shape = {length, model.spec().width_of(Consumers::kCross)};
    Activations dry_state{measuring.tensor(DType::kFloat32, shape)}, state{arena.tensor(DType::kFloat32, shape)};
    CpuDevice dry_device{threads, Isa::kGeneric};
    Context dry{dry_device, measuring, true, nullptr};
    model.encode(dry, batch, all, dry_state);
    CpuDevice device{threads};
    Context context{device, arena};
    const FeaturesView view = *features;
    batch.features = {&view, 1};
    batch.input_ids = ids;
    model.encode(context, batch, all, state);
    EXPECT_GE(measuring.high_water_bytes(), arena.high_water_bytes()) << folder;
    EXPECT_EQ(arena.num_overflows(), 0);
  }
}

}  // namespace transept::testing
