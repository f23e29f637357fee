// Proves that --mllama-strict-mask is what the key of config.json is: whole requests give what transformers' model
// gives with the masks of Meta's code (tests/mllama_family.py), padding takes no room, and instances that mask
// otherwise are told apart. How the two masks differ: multimodal/mllama_rules_test.cc, models/mllama_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"
#include "base/log.h"
#include "base/source_dir_testing.h"
#include "core/config_file.h"
#include "models/checkpoints_testing.h"
#include "prompts/prepare_request.h"
#include "rank/model_fingerprint.h"
#include "startup/load_engine.h"
#include "startup/model_files.h"
#include "startup/model_switches.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr const char* kStrict = "mllama-strict-float16";

std::vector<Json> lines_of(const char* name) {
  std::vector<Json> lines;
  std::ifstream file(str_cat(testing::checkpoint_path(kStrict), "/", name));
  for (std::string line; std::getline(file, line);) lines.push_back(*Json::parse(line));
  CHECK(!lines.empty(), name);
  return lines;
}

class StrictMask : public ::testing::Test {
 protected:
  // The folder without its key.
  StrictMask() {
    set_log_level(LogLevel::kError);
    const std::string from = testing::checkpoint_path(kStrict);
    for (const auto& file : fs::directory_iterator(from)) {
      fs::copy_file(file.path(), fs::path(plain_.path()) / file.path().filename());
    }
    Json config = Json::object();
    const Json read = *read_json_object(from + "/config.json");
    for (const auto& [key, value] : read.as_object()) {
      if (key != "mllama_strict_mask") config.set(key, value);
    }
    plain_.write("config.json", config.dump());
  }

  static EngineConfig config_of(const std::string& folder, bool flag) {
    EngineConfig config;
    config.model = folder;
    config.threads = 1;
    config.block_size = 4;
    config.kv_cache_memory = uint64_t{8} << 20;
    config.mllama_strict_mask = flag;
    config.debug_poison = true;
    return config;
  }

  struct Outcome {
    std::vector<std::string> ids;    // of each answer
    std::vector<double> logprobs;    // of each
    std::vector<int32_t> positions;  // of the pictures of each request
  };
  // What the folder's requests give.
  Outcome run(const EngineConfig& config) {
    const StatusOr<LoadedModel> model = load_engine(config, clock_);
    CHECK(model.ok(), error_message(model.status()));
    Outcome outcome;
    for (const Json& line : lines_of("requests.jsonl")) {
      const auto prepared = prepare_request(*parse_request(line, 1), *model->prompts, model->generation, {});
      CHECK(prepared.ok(), error_message(prepared.status()));
      int32_t positions = 0;
      for (const EncoderItem& item : prepared->inputs.items) positions += item.num_positions();
      outcome.positions.push_back(positions);
      CHECK(model->engine->add_request("a", prepared->inputs, prepared->params).ok());
      std::vector<RequestOutput> finished;
      while (model->engine->has_unfinished_requests()) CHECK(model->engine->step(finished).ok());
      Json ids = Json::array();
      for (const int32_t id : finished.at(0).outputs.at(0).token_ids) ids.push_back(id);
      outcome.ids.push_back(ids.dump());
      outcome.logprobs.push_back(finished[0].outputs[0].cumulative_logprob);
    }
    return outcome;
  }

  testing::TestFolder plain_;
  SteadyClock clock_;
};

TEST_F(StrictMask, TheFlagAndTheKeyAreOne) {
  const std::vector<Json> expected = lines_of("expected.jsonl");
  const Outcome by_key = run(config_of(testing::checkpoint_path(kStrict), false)),
                by_flag = run(config_of(plain_.path(), true));
  EXPECT_EQ(by_flag.ids, by_key.ids);
  EXPECT_EQ(by_flag.logprobs, by_key.logprobs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Json& output = expected[i].find("outputs")->as_array().front();
    EXPECT_EQ(by_flag.ids[i], output.find("token_ids")->dump());
    EXPECT_NEAR(by_flag.logprobs[i], output.find("cumulative_logprob")->as_double(), 1e-3);
  }
}

// Four tiles of five rows without it.
TEST_F(StrictMask, WithoutItOthersAnswerAndPaddingTakesRoom) {
  const Outcome strict = run(config_of(plain_.path(), true)), plain = run(config_of(plain_.path(), false));
  const std::vector<Json> requests = lines_of("requests.jsonl");
  int32_t num_other = 0, num_smaller = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    num_other += strict.logprobs[i] != plain.logprobs[i] ? 1 : 0;
    num_smaller += strict.positions[i] < plain.positions[i] ? 1 : 0;
    EXPECT_EQ(plain.positions[i] % 20, 0);
    EXPECT_EQ(strict.positions[i] % 5, 0);
  }
  EXPECT_GE(num_other, 4);
  EXPECT_GE(num_smaller, 3);
}

TEST_F(StrictMask, InstancesThatMaskOtherwiseAreOtherModels) {
  const auto fingerprint = [&](bool flag) {
    const ModelFiles files = ModelFiles::open(plain_.path()).value();
    const ModelConfig config = load_switched_config(config_of(plain_.path(), flag), files.folder()).value();
    return model_fingerprint(config, *WeightMap::open(plain_.path()).value(), {}).value();
  };
  EXPECT_FALSE(fingerprint(true) == fingerprint(false));
}

TEST_F(StrictMask, OtherFamiliesRefuseTheFlag) {
  for (const char* folder : {"bart-float32", "qwen2-vl-float32", "trocr-float16"}) {
    const StatusOr<LoadedModel> model = load_engine(config_of(testing::checkpoint_path(folder), true), clock_);
    ASSERT_FALSE(model.ok()) << folder;
    EXPECT_THAT(error_message(model.status()), HasSubstr("--mllama-strict-mask: this model ("));
    EXPECT_THAT(error_message(model.status()), HasSubstr(") is no Mllama"));
  }
}

}  // namespace
}  // namespace transept
