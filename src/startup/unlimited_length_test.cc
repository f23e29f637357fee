// A model without a limit of positions (T5) over the real engine: the length that requests may have by default and by
// --max-model-len, what a small pool makes of it, and that long inputs are answered as any others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/folder_testing.h"
#include "base/log.h"
#include "base/sanitized_testing.h"
#include "models/tiny_t5_testing.h"
#include "prompts/prepare_request.h"
#include "startup/load_engine.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TestFolder;
using testing::TinyT5;

class UnlimitedLengthTest : public ::testing::Test {
 protected:
  UnlimitedLengthTest() {
    set_log_level(LogLevel::kError);
    TinyT5::gated_untied().write(dir_);
  }

  EngineConfig config() const {
    EngineConfig config;
    config.model = dir_.path();
    config.threads = 2;
    config.block_size = 4;
    config.max_num_seqs = 4;
    return config;
  }

  StatusOr<LoadedModel> load(const EngineConfig& config) { return load_engine(config, clock_); }

  static bool reports(const LoadedModel& model, const std::string& words) {
    for (const std::string& line : model.info.report) {
      if (line.find(words) != std::string::npos) return true;
    }
    return false;
  }

  static std::vector<int32_t> some_ids(int32_t count) {
    std::vector<int32_t> ids(static_cast<size_t>(count));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(2 + i * i % 37);
    return ids;
  }

  static std::vector<int32_t> answer(LoadedModel& model, int32_t input_len, int32_t max_tokens) {
    EncoderDecoderInputs inputs;
    inputs.set_encoder_ids(some_ids(input_len));
    inputs.prompt_token_ids = {0};
    SamplingParams params;
    params.temperature = 0;
    params.max_tokens = max_tokens;
    const Status added = model.engine->add_request("long", inputs, params);
    CHECK(added.ok(), error_message(added));
    std::vector<RequestOutput> finished;
    while (model.engine->has_unfinished_requests()) {
      const Status stepped = model.engine->step(finished);
      CHECK(stepped.ok(), error_message(stepped));
    }
    EXPECT_EQ(model.engine->executor_stats().num_arena_overflows, 0);
    return finished.at(0).outputs.at(0).token_ids;
  }

  TestFolder dir_;
  SteadyClock clock_;
};

TEST_F(UnlimitedLengthTest, Is8192ByDefaultAndMayBeMore) {
  const auto model = load(config());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->info.max_encoder_len, 8192);
  EXPECT_EQ(model->info.max_decoder_len, 8192);
  EXPECT_TRUE(reports(*model, "sets no limit: up to 8192 tokens"));
  for (const int32_t length : {7, 20000}) {
    EngineConfig asking = config();
    asking.max_model_len = length;
    const auto other = load(asking);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(other->info.max_encoder_len, length);
    EXPECT_EQ(other->info.max_decoder_len, length);
  }
  EngineConfig asking = config();
  asking.max_model_len = 2000000;
  EXPECT_THAT(error_message(load(asking).status()), HasSubstr("--max-model-len 2000000: at most 1048576"));
}

TEST_F(UnlimitedLengthTest, ADefaultYieldsToASmallPool) {
  EngineConfig tiny = config();
  tiny.kv_cache_memory = 64 << 10;
  auto model = load(tiny);
  ASSERT_TRUE(model.ok()) << model.status();
  const int32_t length = model->info.max_encoder_len;
  EXPECT_EQ(model->info.max_decoder_len, length);
  EXPECT_LT(length, 8192);
  // One longest request still fits, and a longer one would not.
  const int32_t blocks = model->info.num_device_blocks;
  EXPECT_LE(2 * length / 4, blocks);
  EXPECT_GE(2 * (length + 4) / 4, blocks - 3);
  EXPECT_TRUE(reports(*model, str_cat("up to ", length, " tokens")));
  EXPECT_TRUE(reports(*model, "as the KV cache holds no more"));
  EXPECT_EQ(answer(*model, length, length - 1).size(), static_cast<size_t>(length - 1));
  // What somebody asks for by name does not yield.
  tiny.max_model_len = 8192;
  EXPECT_THAT(error_message(load(tiny).status()), AllOf(HasSubstr("too small"), HasSubstr("--max-model-len")));
}

TEST_F(UnlimitedLengthTest, RequestsThatAreTooLongHearOfTheFlag) {
  const auto model = load(config());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto error_of = [&](const std::vector<int32_t>& input, const std::vector<int32_t>& start, int32_t max_tokens) {
    ParsedRequest request;
    request.prompt.encoder.content = TokensPrompt{input};
    request.prompt.decoder.emplace().content = TokensPrompt{start};
    request.sampling.max_tokens = max_tokens;
    return error_message(prepare_request(request, *model->prompts, model->generation, {}).status());
  };
  EXPECT_THAT(error_of(some_ids(8193), {}, 1), HasSubstr("has 8193 tokens, more than the 8192 that --max-model-len"));
  EXPECT_THAT(error_of({5}, some_ids(9000), 1), HasSubstr("has 9001 tokens, more than the 8192 that --max-model-len"));
  EXPECT_THAT(error_of({5}, {}, 9000), AllOf(HasSubstr("9000"), HasSubstr("8192 tokens that --max-model-len allows")));
}

TEST_F(UnlimitedLengthTest, LongInputsAreAnsweredAlikeHoweverTheyAreComputed) {
  auto model = load(config());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<int32_t> expected = answer(*model, 2500, 200);  // far beyond max_distance on both sides
  EXPECT_EQ(expected.size(), 200u);
  for (const std::string backend : {"cpu", "reference"}) {
    if (kSanitized && backend == "reference") continue;
    EngineConfig other = config();
    other.attention_backend = backend;
    other.block_size = 16;
    other.max_model_len = 3000;
    auto again = load(other);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(answer(*again, 2500, 200), expected) << backend;
  }
}

}  // namespace
}  // namespace transept
