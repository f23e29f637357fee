// Which models may draft for which, what they share, and that engines which draft with one answer as without.
#include "startup/draft_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>

#include "base/log.h"
#include "base/quoted.h"
#include "models/checkpoints_testing.h"
#include "startup/thread_ranks_testing.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using testing::Answers;
using testing::checkpoint_path;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Request;
using testing::TestFolder;
using testing::TinyBart;
using testing::TinyModelTest;

class DraftModelTest : public TinyModelTest {
 protected:
  // Of the same random numbers: a smaller decoder behind the same encoder.
  DraftModelTest() {
    TinyBart{.decoder_layers = 3}.write(dir_);
    TinyBart{.decoder_layers = 1}.write(draft_);
  }

  static EngineConfig with(EngineConfig config, const std::string& draft) {
    config.speculative_config =
        str_cat(R"({"method": "model", "model": ")", draft, R"(", "num_speculative_tokens": 3})");
    return config;
  }

  std::string refusal(const EngineConfig& config) {
    const StatusOr<LoadedModel> model = load_engine(config, clock_);
    EXPECT_FALSE(model.ok());
    return model.ok() ? "" : error_message(model.status());
  }
  std::string refusal(const std::string& target, const std::string& draft) {
    EngineConfig config = this->config();
    config.model = checkpoint_path(target);
    return refusal(with(config, draft));
  }

  // A checkpoint of tests/models, to be changed.
  std::string copy_of(const std::string& checkpoint) {
    using Options = std::filesystem::copy_options;
    std::filesystem::copy(checkpoint_path(checkpoint), copy_.path(), Options::recursive | Options::overwrite_existing);
    return copy_.path();
  }

  bool is_same_encoder(const TestFolder& one, const TestFolder& other) {
    const auto open = [](const TestFolder& dir) { return WeightMap::open(dir.path()).value(); };
    const auto read = [](const TestFolder& dir) { return ModelConfig::load(dir.path()).value(); };
    return has_same_encoder(read(one), *open(one), read(other), *open(other));
  }

  TestFolder draft_, copy_;
};

TEST_F(DraftModelTest, ADistilledModelTakesTheRowsOfItsTeacher) {
  EXPECT_TRUE(is_same_encoder(dir_, draft_));
  const std::vector<Request> list = requests();
  const Answers want = run(*load(config()).engine, list);
  const LoadedModel model = load(with(config(), draft_.path()));
  ASSERT_NE(model.engine->model_drafter(), nullptr);
  EXPECT_EQ(model.engine->model_drafter()->executor().info().spec.part, ModelPart::kDecoder);
  EXPECT_EQ(run(*model.engine, list), want);
  EXPECT_EQ(model.engine->model_drafter()->executor().stats().num_encoder_runs, 0);
}

TEST_F(DraftModelTest, AnotherEncoderRunsForItself) {
  TinyBart{.encoder_layers = 1, .decoder_layers = 1, .seed = 3}.write(draft_);
  EXPECT_FALSE(is_same_encoder(dir_, draft_));
  const std::vector<Request> list = requests();
  const Answers want = run(*load(config()).engine, list);
  const LoadedModel model = load(with(config(), draft_.path()));
  EXPECT_EQ(model.engine->model_drafter()->executor().info().spec.part, ModelPart::kWhole);
  EXPECT_EQ(run(*model.engine, list), want);
}

// Each of these would be another encoder.
TEST_F(DraftModelTest, AnEncoderIsTheSameTensorByTensor) {
  const TinyBart teacher{.decoder_layers = 3};
  for (size_t i = 0; i < teacher.tensors().size(); ++i) {
    std::vector<testing::TestTensor> tensors = teacher.tensors();
    const std::string& name = tensors[i].name;
    const bool is_decoders = name.starts_with("model.decoder.") || name == "final_logits_bias";
    tensors[i].data.back() = static_cast<char>(tensors[i].data.back() ^ 1);
    teacher.write(draft_, tensors);
    EXPECT_EQ(is_same_encoder(dir_, draft_), is_decoders) << name;
  }
  TinyBart{.heads = 4, .decoder_layers = 3}.write(draft_);
  EXPECT_FALSE(is_same_encoder(dir_, draft_)) << "other heads over the same tensors";
  std::vector<testing::TestTensor> fewer = teacher.tensors();
  std::erase_if(fewer, [](const auto& tensor) { return tensor.name == "model.encoder.layernorm_embedding.bias"; });
  teacher.write(draft_, fewer);
  EXPECT_FALSE(is_same_encoder(dir_, draft_));
  EXPECT_FALSE(is_same_encoder(draft_, dir_));
}

TEST_F(DraftModelTest, AnswersAreTheSameInEveryArrangement) {
  const std::vector<Request> list = requests();
  const Answers want = run(*load(config()).engine, list);
  EngineConfig tiny = this->tiny(3 * 48), replicas = config(), bytes = config();
  replicas.replicas = 2;
  bytes.debug_loopback_plans = true;
  for (const EngineConfig& config : {tiny, replicas, bytes}) {
    const LoadedModel model = load(with(config, draft_.path()));
    for (size_t gap = 0; gap < 3; ++gap) EXPECT_EQ(run(*model.engine, list, gap), want);
    EXPECT_EQ(model.more_engines.size(), static_cast<size_t>(config.replicas - 1));
    for (const auto& replica : model.more_engines) {
      EXPECT_NE(replica->model_drafter(), nullptr);
      EXPECT_EQ(run(*replica, list), want);
    }
  }
}

TEST_F(DraftModelTest, ItsPoolIsAPartOfWhatWasAskedFor) {
  EngineConfig config = this->config();
  config.kv_cache_memory = 1 << 20;
  const LoadedModel model = load(with(config, draft_.path()));
  const ExecutorInfo& info = model.engine->model_drafter()->executor().info();
  EXPECT_LE(static_cast<uint64_t>(info.num_device_blocks) * info.block_bytes, uint64_t{1} << 18);
  EXPECT_EQ(model.info.num_device_blocks, load(config).info.num_device_blocks) << "the other model keeps its own";
  EXPECT_EQ(info.num_host_blocks, 0);
}

TEST_F(DraftModelTest, ItsKeysAndValuesAreInt8UnlessAFlagNamesTheirType) {
  const std::vector<Request> list = requests();
  for (const auto& [asked, of_model, of_draft] :
       {std::tuple("auto", DType::kFloat32, DType::kInt8), std::tuple("float32", DType::kFloat32, DType::kFloat32),
        std::tuple("bfloat16", DType::kBFloat16, DType::kBFloat16)}) {
    EngineConfig config = this->config();
    config.kv_cache_dtype = asked;
    const Answers want = run(*load(config).engine, list);
    const LoadedModel model = load(with(config, draft_.path()));
    EXPECT_EQ(model.info.kv_dtype, of_model) << asked;
    EXPECT_EQ(model.engine->model_drafter()->executor().info().kv_dtype, of_draft) << asked;
    EXPECT_EQ(run(*model.engine, list), want) << asked;
  }
}

TEST_F(DraftModelTest, WhisperEncodesOnceForBoth) {
  EngineConfig config = this->config();
  config.model = checkpoint_path("whisper-transcribes");
  const LoadedModel model = load(with(config, config.model));
  const ModelDrafter* drafter = model.engine->model_drafter();
  ASSERT_NE(drafter, nullptr);
  EXPECT_EQ(drafter->executor().info().spec.part, ModelPart::kDecoder);
}

TEST_F(DraftModelTest, AnotherVocabularyIsRefusedByItsFirstId) {
  const std::string folder = copy_of("bart-float32");
  std::string text = ModelFolder(folder).read("tokenizer.json", 1 << 20).value();
  StatusOr<Json> tokenizer = Json::parse(text);
  ASSERT_TRUE(tokenizer.ok());
  Json model = *tokenizer->find("model"), vocab = *model.find("vocab");
  // Two tokens change places.
  std::string first, second;
  for (const auto& [token, id] : vocab.as_object()) {
    if (id.as_int() == 57) first = token;
    if (id.as_int() == 93) second = token;
  }
  ASSERT_FALSE(first.empty() || second.empty());
  vocab.set(first, 93);
  vocab.set(second, 57);
  model.set("vocab", std::move(vocab));
  tokenizer->set("model", std::move(model));
  copy_.write("tokenizer.json", tokenizer->dump());
  EXPECT_THAT(refusal("bart-float32", folder),
              AllOf(HasSubstr("--speculative-config: model: " + folder), HasSubstr("another vocabulary"),
                    HasSubstr("id 57 is " + in_quotes(second) + ", and here " + in_quotes(first))));
}

TEST_F(DraftModelTest, WithoutATokenizerVocabulariesAreComparedBySize) {
  TinyBart{.vocab_size = 44}.write(draft_);
  EXPECT_THAT(refusal(with(config(), draft_.path())),
              AllOf(HasSubstr("another vocabulary"), HasSubstr("44 ids, and here 40: id 40 is only in the one")));
}

TEST_F(DraftModelTest, WhatCannotDraftIsRefusedByName) {
  EXPECT_THAT(refusal("bart-float32", checkpoint_path("t5-float32")),
              HasSubstr("a model of another family (t5) than " + checkpoint_path("bart-float32") + " (bart)"));
  EXPECT_THAT(refusal("whisper-float16", checkpoint_path("whisper-bfloat16-distilled")),
              HasSubstr("its encoder takes other inputs"));
  EXPECT_THAT(refusal("qwen2-vl-float32", checkpoint_path("qwen2-vl-float32")),
              HasSubstr("--speculative-config: method model: qwen2_vl models have the encoder's rows within"));
  EXPECT_THAT(refusal("mllama-float32", checkpoint_path("mllama-float32")),
              HasSubstr("--speculative-config: method model: not for models of family mllama"));
  EXPECT_THAT(refusal(with(config(), "/nowhere")), HasSubstr("--speculative-config: model: /nowhere"));
  std::filesystem::remove(draft_.path() + "/model.safetensors");
  EXPECT_THAT(refusal(with(config(), draft_.path())), HasSubstr("--speculative-config: model: " + draft_.path()));
  EngineConfig ranks = with(config(), draft_.path());
  ranks.tensor_parallel_size = 2;
  const auto of_ranks = load_engine(ranks, clock_, testing::ThreadRanks::start(ranks));
  ASSERT_FALSE(of_ranks.ok());
  EXPECT_THAT(error_message(of_ranks.status()), HasSubstr("method model: not with a model over several ranks"));
}

TEST_F(DraftModelTest, ALargerModelIsWarnedOf) {
  TinyBart{.decoder_layers = 4}.write(draft_);
  set_log_level(LogLevel::kWarning);
  ::testing::internal::CaptureStderr();
  load(with(config(), draft_.path()));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(draft_.path() + " has more weights ("));
  ::testing::internal::CaptureStderr();
  load(with(config(), dir_.path()));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("more weights"))) << "it may be meant";
}

}  // namespace
}  // namespace transept
