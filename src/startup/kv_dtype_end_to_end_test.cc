// Proves over a real (tiny, random) model that KV of any type gives the same answers, bit for bit, however blocks are
// shared, forked, copied, swapped or computed again: whatever belongs to a key moves with its block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "attention/backends.h"
#include "kv_storage/kv_storage.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Request;

class KvDtypeTest : public testing::TinyModelTest, public ::testing::WithParamInterface<std::string_view> {
 protected:
  EngineConfig config(std::string_view dtype = GetParam()) const {
    EngineConfig config = TinyModelTest::config();
    config.kv_cache_dtype = dtype;
    config.max_model_len = 40;
    return config;
  }

  // Bytes of a block of all layers.
  static uint64_t block_bytes(const LoadedModel& model) {
    const ExecutorInfo& info = model.info;
    const auto backend = std::move(make_attention_backend(info.attention_backend)).value();
    KvStorage::Layout layout;
    for (const KvSpec& kv : info.spec.kv) {
      layout.specs.push_back({kv.num_layers(), backend->block_bytes(kv, info.block_size, info.kv_dtype)});
    }
    return layout.block_bytes();
  }

  // Greedy, sampled, by beams; several over one input.
  static std::vector<Request> requests() {
    std::vector<Request> list;
    for (int32_t i = 0; i < 16; ++i) {
      Request& request = list.emplace_back();
      request.id = str_cat("r", i);
      std::vector<int32_t> ids;
      ids.reserve(64);
      for (int32_t j = 0; j < 3 + 6 * (i % 5); ++j) ids.push_back((i % 5 * 7 + j * 3) % 40);
      request.inputs.set_encoder_ids(std::move(ids));
      request.inputs.prompt_token_ids = {2, 0};
      for (int32_t j = 0; j < i % 3; ++j) request.inputs.prompt_token_ids.push_back(4 + j);
      request.params.max_tokens = 3 + (i * 11) % 21;
      request.params.seed = static_cast<uint64_t>(i);
      request.params.temperature = i % 3 == 0 ? 0.0f : 1.0f;
      request.params.n = i % 5 == 1 ? 3 : 1;
      if (i % 5 == 2) {
        request.params.num_beams = 3;
        request.params.n = 2;
        request.params.temperature = 0;
      }
      request.params.eos_token_ids = {2};
    }
    return list;
  }

  static Answers run(LLMEngine& engine) {
    Answers answers = TinyModelTest::run(engine, requests());
    EXPECT_EQ(engine.executor_stats().num_arena_overflows, 0);
    return answers;
  }
};

INSTANTIATE_TEST_SUITE_P(Types, KvDtypeTest, ::testing::Values("float32", "bfloat16", "float16", "int8"),
                         [](const auto& type) { return std::string(type.param); });

TEST_P(KvDtypeTest, AnswersDoNotDependOnWhereKvHasBeen) {
  LoadedModel plain = load(config());
  const Answers expected = run(*plain.engine);
  ASSERT_EQ(expected.size(), requests().size());
  EXPECT_GT(plain.engine->executor_stats().bytes_copied, 0u) << "nobody forked";
  EngineConfig alone = config();
  alone.share_identical_inputs = false;
  EXPECT_EQ(run(*load(alone).engine), expected) << "nothing shared";
  for (const int32_t block_size : {1, 3, 16}) {
    EngineConfig other = config();
    other.block_size = block_size;
    EXPECT_EQ(run(*load(other).engine), expected) << "block size " << block_size;
  }
  for (const char* mode : {"recompute", "swap", "auto"}) {
    for (const bool share : {true, false}) {
      EngineConfig tiny = config();
      tiny.preemption_mode = mode;
      tiny.share_identical_inputs = share;
      tiny.kv_cache_memory = 30 * block_bytes(plain);  // the largest group wants 28
      LoadedModel model = load(tiny);
      EXPECT_EQ(run(*model.engine), expected) << mode << ", sharing " << share;
      EXPECT_GT(model.engine->stats().num_preemptions, 0) << mode << ": the pool was not tiny";
      if (std::string_view(mode) == "swap" && !share) {
        EXPECT_GT(model.engine->executor_stats().bytes_swapped_in, 0u);
      }
    }
  }
}

TEST_P(KvDtypeTest, LevelsAndBackendsAgreeUpToRounding) {
  const Answers expected = run(*load(config()).engine);
  const auto expect_same_ids = [&](const Answers& answers, std::string_view what) {
    for (const auto& [id, answer] : expected) {
      for (size_t i = 0; i < answer.size(); ++i) {
        EXPECT_EQ(answers.at(id)[i].first, answer[i].first) << what << " " << id;
        EXPECT_NEAR(answers.at(id)[i].second, answer[i].second, 1e-3) << what << " " << id;
      }
    }
  };
  for (const Isa isa : present_isas()) {
    EngineConfig other = config();
    other.isa = isa_name(isa);
    expect_same_ids(run(*load(other).engine), isa_name(isa));
  }
  EngineConfig reference = config();
  reference.attention_backend = "reference";
  expect_same_ids(run(*load(reference).engine), "reference");
}

class KvDtypeOfQuantizationAuto : public testing::TinyModelTest {};

TEST_F(KvDtypeOfQuantizationAuto, IsInt8ButInNarrowModels) {
  if (detect_isa() == Isa::kGeneric) GTEST_SKIP() << "no level here widens float16 fast: avx2 is absent";
  for (const auto& [d_model, kv] : {std::pair<int64_t, DType>{192, DType::kInt8}, {176, DType::kFloat16}}) {
    testing::TestFolder dir;
    testing::TinyBart bart;
    bart.d_model = d_model;
    bart.write(dir);
    EngineConfig automatic = config();
    automatic.model = dir.path();
    automatic.quantization = "auto";
    EXPECT_EQ(load(automatic).info.kv_dtype, kv) << d_model;
  }
}

TEST_P(KvDtypeTest, IsWhatStartUpSaysAndWhatMemoryHolds) {
  const LoadedModel model = load(config()), wide = load(config("float32"));
  EXPECT_EQ(dtype_name(model.info.kv_dtype), GetParam());
  EXPECT_THAT(model.info.report, ::testing::Contains(::testing::StartsWith(str_cat("KV cache: ", GetParam(), ", "))));
  EngineConfig same_memory = config();
  same_memory.kv_cache_memory = 1 << 20;
  const int32_t num_blocks = load(same_memory).info.num_device_blocks;
  EXPECT_EQ(num_blocks, (1 << 20) / static_cast<int64_t>(block_bytes(model)));
  if (GetParam() == "float32") return;
  EXPECT_LT(block_bytes(model), block_bytes(wide));
  // The type is in use: sums of log-probabilities are near those of float32, and not the same.
  const Answers narrow = run(*model.engine), exact = run(*wide.engine);
  double largest = 0;
  for (const auto& [id, answer] : exact) {
    if (answer[0].first != narrow.at(id)[0].first) continue;
    largest = std::max(largest, std::abs(answer[0].second - narrow.at(id)[0].second));
  }
  EXPECT_GT(largest, 1e-6);
  EXPECT_LT(largest, 0.5);
}

}  // namespace
}  // namespace transept
