// For tests: an engine over a real (tiny, random) model, requests of every kind, and their answers.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/engine_testing.h"
#include "models/tiny_bart_testing.h"
#include "startup/load_engine.h"

namespace transept::testing {

// The answer of a request: the ids and the sum of log-probabilities of each output, bit for bit.
using Answer = std::vector<std::pair<std::vector<int32_t>, double>>;
using Answers = std::map<std::string, Answer>;

struct Request {
  std::string id;
  EncoderDecoderInputs inputs;
  SamplingParams params;
};

class TinyModelTest : public ::testing::Test {
 protected:
  TinyModelTest() {
    set_log_level(LogLevel::kError);
    TinyBart().write(dir_);
  }

  EngineConfig config(bool share = true) const {
    EngineConfig config;
    config.model = dir_.path();
    config.threads = 2;
    config.block_size = 4;
    config.max_num_seqs = 16;
    config.swap_space = 1 << 20;
    config.watermark = 0;
    config.debug_poison = true;
    config.share_identical_inputs = share;
    // What is computed is counted: nothing stays for later requests, unless a test asks for it.
    config.caches_inputs = config.caches_prefixes = false;
    return config;
  }

  // `blocks` of 512 bytes; inputs and sequences of up to 40 tokens.
  EngineConfig tiny(int32_t blocks, bool share = true) const {
    EngineConfig tiny = config(share);
    tiny.kv_cache_memory = static_cast<uint64_t>(blocks) * 512;
    tiny.max_model_len = 40;
    return tiny;
  }

  LoadedModel load(const EngineConfig& config) {
    StatusOr<LoadedModel> model = load_engine(config, clock_);
    CHECK(model.ok(), error_message(model.status()));
    return std::move(model).value();
  }

  static EncoderDecoderInputs inputs(int32_t which, int32_t num_encoder) {
    EncoderDecoderInputs inputs;
    std::vector<int32_t> ids;
    ids.reserve(64);
    for (int32_t j = 0; j < num_encoder; ++j) ids.push_back((which * 7 + j * 3) % 40);
    inputs.set_encoder_ids(std::move(ids));
    inputs.prompt_token_ids = {2, 0};
    return inputs;
  }

  // Twenty requests over four inputs: greedy, sampled and by beam search, one and several outputs, decoder prompts of
  // different lengths.
  static std::vector<Request> requests() {
    std::vector<Request> list;
    for (int32_t i = 0; i < 20; ++i) {
      Request& request = list.emplace_back();
      request.id = str_cat("r", i);
      request.inputs = inputs(i % 4, 5 + 7 * (i % 4));
      for (int32_t j = 0; j < i % 3; ++j) request.inputs.prompt_token_ids.push_back(4 + j);
      request.params.max_tokens = 3 + (i * 11) % 17;
      request.params.seed = static_cast<uint64_t>(i);
      request.params.temperature = i % 3 == 0 ? 0.0f : 1.0f;
      request.params.n = i % 5 == 1 ? 3 : 1;
      if (i % 5 == 2) {
        request.params.num_beams = 3;
        request.params.n = 2;
        request.params.temperature = 0;
      }
      request.params.eos_token_ids = {2};
      request.params.prompt_logprobs = i % 4 == 2 ? std::optional<int32_t>(1) : std::nullopt;
    }
    return list;
  }

  // Those that another model gives to these requests, whose decoder prompt is `start` alone; in float32.
  Answers answers_of(const std::string& model, const std::string& quantization = "none", int32_t start = 2) {
    EngineConfig config = this->config();
    config.model = model;
    config.quantization = quantization;
    config.kv_cache_dtype = "float32";
    config.quantization_given = true;
    const LoadedModel loaded = load(config);
    std::vector<Request> list = requests();
    for (Request& request : list) request.inputs.prompt_token_ids = {start};
    return run(*loaded.engine, list);
  }

  static void step(LLMEngine& engine, Answers& answers) {
    std::vector<RequestOutput> finished;
    const Status stepped = engine.step(finished);
    ASSERT_TRUE(stepped.ok()) << stepped;
    const Status invariants = engine.scheduler().check_invariants();
    ASSERT_TRUE(invariants.ok()) << invariants;
    for (const RequestOutput& output : finished) {
      EXPECT_EQ(output.error, "");
      for (const CompletionOutput& completion : output.outputs) {
        answers[output.request_id].emplace_back(completion.token_ids, completion.cumulative_logprob);
      }
    }
  }

  static void add(LLMEngine& engine, const Request& request) {
    const Status added = engine.add_request(request.id, request.inputs, request.params);
    ASSERT_TRUE(added.ok()) << added;
  }

  // Adds one request every `gap` steps, and runs until all are done.
  static Answers run(LLMEngine& engine, const std::vector<Request>& list, size_t gap = 0) {
    Answers answers;
    size_t next = 0;
    for (size_t i = 0; next < list.size() || engine.has_unfinished_requests(); ++i) {
      CHECK(i < 10000, "it never ends");
      for (; next < list.size() && (gap == 0 || next * gap <= i); ++next) add(engine, list[next]);
      step(engine, answers);
    }
    return answers;
  }

  static void expect_nothing_left(const LLMEngine& engine) {
    testing::expect_nothing_left(engine);
    EXPECT_EQ(engine.executor_stats().num_arena_overflows, 0);
  }

  static int32_t num_pinned(const LLMEngine& engine) { return engine.scheduler().blocks().device_usage().pinned; }

  TestFolder dir_;
  SteadyClock clock_;
};

}  // namespace transept::testing
