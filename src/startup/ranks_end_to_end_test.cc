// Proves that an engine over ranks, or over stages of a pipeline, gives what one rank gives, to the bit: every kind of
// request, tiny pools, aborts, drafts, caches; and that a group fails as one, with an error that says who and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "startup/thread_ranks_testing.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using testing::Request;
using testing::TinyBart;
using testing::TinyModelTest;
using Texts = std::map<std::string, std::string>;

std::string bits(double value) { return str_cat(std::bit_cast<uint64_t>(value), " "); }

std::string bits(const PositionLogprobs& position) {
  std::string text;
  for (const TokenLogprob& one : position) text += str_cat(one.token_id, ":", one.rank, ":", bits(one.logprob));
  return text + "| ";
}

std::string ids(const std::optional<std::vector<int32_t>>& values) {
  std::string text;
  for (const int32_t value : values.value_or(std::vector<int32_t>())) text += str_cat(value, " ");
  return text;
}

// Everything that was computed, bit for bit.
std::string bits(const RequestOutput& output) {
  std::string text = str_cat("prompt ", ids(output.prompt_alignments));
  for (const auto& position : output.prompt_logprobs.value_or(std::vector<std::optional<PositionLogprobs>>())) {
    text += bits(position.value_or(PositionLogprobs()));
  }
  if (output.cross_attention != nullptr) {
    for (const float value : output.cross_attention->values) text += bits(value);
  }
  for (const CompletionOutput& one : output.outputs) {
    text += str_cat("\nanswer ", ids(one.token_ids), bits(one.cumulative_logprob), bits(one.beam_score.value_or(0)));
    text += ids(one.alignments);
    for (const PositionLogprobs& position : one.logprobs.value_or(std::vector<PositionLogprobs>())) {
      text += bits(position);
    }
  }
  return text;
}

class RanksEndToEndTest : public TinyModelTest {
 protected:
  // Two pieces of vocabulary of 1024 ids for the first of two ranks, three for the other; heads for four.
  RanksEndToEndTest() { TinyBart{.vocab_size = 4700, .heads = 4, .decoder_layers = 2}.write(dir_); }

  LoadedModel load_ranks(EngineConfig config, int32_t num_ranks, size_t outbox_bytes = size_t{1} << 16,
                         int32_t num_stages = 1, size_t mailbox_bytes = 256) {
    config.tensor_parallel_size = num_ranks;
    config.pipeline_parallel_size = num_stages;
    StatusOr<LoadedModel> model =
        load_engine(config, clock_, testing::ThreadRanks::start(config, outbox_bytes, mailbox_bytes));
    CHECK(model.ok(), error_message(model.status()));
    return std::move(model).value();
  }

  // Loads what is tested with every type of weights and KV, beside one process with the same.
  void expect_bits_in_every_storage(const std::function<LoadedModel(const EngineConfig&)>& load_tested) {
    const std::vector<Request> list = requests();
    for (const char* quantization : {"none", "int8"}) {
      for (const char* kv : {"float32", "float16", "int8"}) {
        EngineConfig config = this->config();
        config.quantization = quantization;
        config.quantization_given = true;
        config.kv_cache_dtype = kv;
        EXPECT_EQ(run(*load_tested(config).engine, list), run(*load(config).engine, list))
            << quantization << ", KV " << kv;
      }
    }
  }

  // Of every kind: what TinyModelTest has, and filters, edits, listed log-probabilities, alignments, captures.
  static std::vector<Request> requests() {
    std::vector<Request> list = TinyModelTest::requests();
    for (size_t i = 0; i < list.size(); ++i) {
      SamplingParams& params = list[i].params;
      params.logprobs = i % 3 == 0 ? std::optional<int32_t>(3) : std::nullopt;
      params.return_alignments = i % 4 == 2 && params.num_beams == 1;
      params.capture_cross_attention = i % 6 == 0;
      if (i % 7 == 3) params.repetition_penalty = 1.3f;
      if (i % 7 == 4) params.top_k = 50, params.top_p = 0.9f;
      if (i % 7 == 5) params.logit_bias = {{4000, 6.0f}, {7, 2.0f}};
    }
    return list;
  }

  // One request every `gap` steps; those of `aborted` are taken back two steps after the last was added.
  static Texts run(LLMEngine& engine, const std::vector<Request>& list, size_t gap = 0,
                   const std::vector<std::string>& aborted = {}) {
    Texts texts;
    size_t next = 0, left = 3;
    for (size_t i = 0; next < list.size() || engine.has_unfinished_requests(); ++i) {
      CHECK(i < 10000, "it never ends");
      for (; next < list.size() && (gap == 0 || next * gap <= i); ++next) add(engine, list[next]);
      if (next == list.size() && left > 0 && --left == 0) {
        for (const std::string& id : aborted) {
          if (!texts.contains(id)) {
            EXPECT_TRUE(engine.abort_request(id).ok());
          }
        }
      }
      std::vector<RequestOutput> outputs;
      const Status stepped = engine.step(outputs);
      EXPECT_TRUE(stepped.ok()) << stepped;
      if (!stepped.ok()) break;
      EXPECT_TRUE(engine.scheduler().check_invariants().ok());
      for (const RequestOutput& output : outputs) {
        EXPECT_EQ(output.error, "");
        texts[output.request_id] = bits(output);
      }
    }
    return texts;
  }
};

TEST_F(RanksEndToEndTest, AnswersHaveTheBitsOfOneRank) {
  const std::vector<Request> list = requests();
  for (const char* backend : {"cpu", "reference"}) {
    EngineConfig config = this->config();
    config.attention_backend = backend;
    const Texts wanted = run(*load(config).engine, list);
    ASSERT_EQ(wanted.size(), list.size());
    for (const int32_t num_ranks : {2, 4}) {
      LoadedModel model = load_ranks(config, num_ranks);
      EXPECT_EQ(run(*model.engine, list), wanted) << num_ranks << " " << backend;
      EXPECT_EQ(run(*model.engine, list, 2), wanted) << num_ranks << " " << backend << ", trickling in";
      expect_nothing_left(*model.engine);
    }
  }
}

TEST_F(RanksEndToEndTest, AnswersHaveTheBitsOfOneRankInEveryStorage) {
  expect_bits_in_every_storage([&](const EngineConfig& config) { return load_ranks(config, 2, 2048); });
}

TEST_F(RanksEndToEndTest, TinyPoolsPreemptAndSwapOnAllRanks) {
  const std::vector<Request> list = requests();
  const Texts wanted = run(*load(config()).engine, list);
  for (const char* mode : {"recompute", "swap", "auto"}) {
    EngineConfig tiny = config();
    tiny.preemption_mode = mode;
    tiny.kv_cache_memory = 30 * 1024;  // two decoder layers: blocks of 1024 bytes
    tiny.max_model_len = 40;
    LoadedModel whole = load(tiny);
    for (const int32_t num_ranks : {2, 4}) {
      LoadedModel model = load_ranks(tiny, num_ranks);
      EXPECT_EQ(model.info.num_device_blocks, whole.info.num_device_blocks) << "the bytes are those of all ranks";
      EXPECT_EQ(model.info.block_bytes * static_cast<uint64_t>(num_ranks), whole.info.block_bytes);
      EXPECT_EQ(run(*model.engine, list), wanted) << mode << " " << num_ranks;
      EXPECT_GT(model.engine->stats().num_preemptions, 0) << mode << ": the pool was not tiny";
      expect_nothing_left(*model.engine);
      if (std::string_view(mode) == "swap") {
        EXPECT_GT(model.engine->executor_stats().bytes_swapped_in, 0u);
      }
    }
  }
}

TEST_F(RanksEndToEndTest, AbortsLeaveTheOthersAsTheyAre) {
  const std::vector<Request> list = requests();
  const Texts wanted = run(*load(config()).engine, list);
  LoadedModel model = load_ranks(config(), 2);
  for (size_t first = 0; first < 4; ++first) {
    std::vector<std::string> aborted;
    for (size_t i = first; i < list.size(); i += 4) aborted.push_back(list[i].id);
    for (const auto& [id, text] : run(*model.engine, list, 1, aborted)) EXPECT_EQ(text, wanted.at(id)) << id;
    expect_nothing_left(*model.engine);
  }
}

TEST_F(RanksEndToEndTest, DraftsAndCachesHold) {
  const std::vector<Request> list = requests();
  const Texts wanted = run(*load(config()).engine, list);
  EngineConfig config = this->config();
  config.caches_inputs = config.caches_prefixes = true;
  config.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1})";
  LoadedModel model = load_ranks(config, 2);
  EXPECT_EQ(run(*model.engine, list), wanted);
  EXPECT_EQ(run(*model.engine, list), wanted) << "again, of what is kept";
  EXPECT_GT(model.engine->clear_cache(), 0);
  expect_nothing_left(*model.engine);
}

// ---- Stages of a pipeline

class StagesEndToEndTest : public RanksEndToEndTest {
 protected:
  StagesEndToEndTest() {
    TinyBart{.vocab_size = 4700, .heads = 4, .encoder_layers = 2, .decoder_layers = 4}.write(dir_);
  }

  // Rows that fit on the way to the first stage let steps overlap; where they do not, it takes them as they come.
  LoadedModel load_stages(const EngineConfig& config, int32_t num_stages, int32_t num_ranks = 1,
                          size_t mailbox_bytes = size_t{1} << 20) {
    return load_ranks(config, num_ranks, 4096, num_stages, mailbox_bytes);
  }
};

TEST_F(StagesEndToEndTest, AnswersHaveTheBitsOfOneProcess) {
  const std::vector<Request> list = requests();
  for (const char* backend : {"cpu", "reference"}) {
    EngineConfig config = this->config();
    config.attention_backend = backend;
    const Texts wanted = run(*load(config).engine, list);
    for (const auto& [num_stages, num_ranks] : {std::pair(2, 1), {3, 1}, {4, 1}, {2, 2}, {2, 4}}) {
      if (num_ranks == 4 && std::string_view(backend) != "cpu") continue;
      for (const size_t mailbox_bytes : {size_t{256}, size_t{20} << 10, size_t{1} << 20}) {
        LoadedModel model = load_stages(config, num_stages, num_ranks, mailbox_bytes);
        EXPECT_EQ(model.info.max_steps_in_flight, num_stages);
        EXPECT_EQ(run(*model.engine, list), wanted)
            << num_stages << " x " << num_ranks << " " << backend << " " << mailbox_bytes;
        EXPECT_EQ(run(*model.engine, list, 2), wanted) << num_stages << " x " << num_ranks << ", trickling in";
        expect_nothing_left(*model.engine);
      }
    }
  }
}

// A request alone has every step to itself, and of several steps hardly one is.
TEST_F(StagesEndToEndTest, AStepThatIsAloneHasTheThreadsOfAllStages) {
  EngineConfig config = this->config();
  config.threads = 1;
  const std::vector<Request> list = requests();
  const Texts wanted = run(*load(config).engine, list);
  LoadedModel model = load_stages(config, 2);
  const ExecutorInfo& info = model.engine->executor().info();
  EXPECT_EQ(info.num_threads, 1);
  EXPECT_EQ(info.num_threads_alone, std::clamp(num_available_cpus(), 1, 2));
  // Steps, and those of them that were alone, of one run.
  const auto steps_of = [&](const std::vector<Request>& requests) {
    const int64_t before = model.engine->stats().num_steps, alone = model.engine->executor_stats().num_steps_alone;
    const Texts texts = run(*model.engine, requests);
    for (const Request& request : requests) EXPECT_EQ(texts.at(request.id), wanted.at(request.id));
    return std::pair(model.engine->stats().num_steps - before, model.engine->executor_stats().num_steps_alone - alone);
  };
  const auto [steps_of_many, alone_of_many] = steps_of(list);
  const auto [steps_of_one, alone_of_one] = steps_of({list[0]});
  if (info.num_threads_alone == info.num_threads) return;  // there is one processor
  EXPECT_LT(4 * alone_of_many, steps_of_many);
  EXPECT_EQ(alone_of_one, steps_of_one);
}

// An engine that ends with steps in flight leaves no rank that waits: this test would not end.
TEST_F(StagesEndToEndTest, AnEngineMayEndWithStepsInFlight) {
  for (const auto& [num_stages, num_ranks] : {std::pair(2, 1), {3, 1}, {2, 2}}) {
    for (const size_t mailbox_bytes : {size_t{256}, size_t{1} << 20}) {
      LoadedModel model = load_stages(config(), num_stages, num_ranks, mailbox_bytes);
      for (const Request& request : requests()) add(*model.engine, request);
      std::vector<RequestOutput> outputs;
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(model.engine->step(outputs).ok());
      EXPECT_GT(model.engine->scheduler().num_steps_in_flight(), 0);
    }
  }
}

TEST_F(StagesEndToEndTest, EveryCutHasTheBitsOfOneProcess) {
  const std::vector<Request> list = requests();
  const Texts wanted = run(*load(config()).engine, list);
  for (const char* layers : {"1,3", "3,1", "2,2", "2,0/2,2", "1,1/1,3", "1,1,0/1,1,2", "2,0,0/1,2,1", "1,0,1/2,1,1"}) {
    EngineConfig config = this->config();
    config.pipeline_layers = layers;
    LoadedModel model =
        load_stages(config, static_cast<int32_t>(std::count(layers, layers + strcspn(layers, "/"), ',') + 1));
    EXPECT_EQ(run(*model.engine, list), wanted) << layers;
  }
}

TEST_F(StagesEndToEndTest, EveryStorageHasTheBitsOfOneProcess) {
  expect_bits_in_every_storage([&](const EngineConfig& config) { return load_stages(config, 3); });
}

// Blocks of stages have different sizes, and as many as of one process.
TEST_F(StagesEndToEndTest, TinyPoolsPreemptAndSwapOnAllStages) {
  const std::vector<Request> list = requests();
  const Texts wanted = run(*load(config()).engine, list);
  for (const char* mode : {"recompute", "swap", "auto"}) {
    EngineConfig tiny = config();
    tiny.preemption_mode = mode;
    tiny.kv_cache_memory = 60 * 1024;  // four decoder layers: blocks of 2048 bytes
    tiny.max_model_len = 40;
    LoadedModel whole = load(tiny);
    for (const auto& [layers, num_ranks] : {std::pair("3,1", 1), {"1,3", 2}, {"1,1,2", 1}}) {
      tiny.pipeline_layers = layers;
      LoadedModel model = load_stages(tiny, strlen(layers) == 3 ? 2 : 3, num_ranks);
      EXPECT_EQ(model.info.num_device_blocks, whole.info.num_device_blocks) << "the bytes are those of all ranks";
      EXPECT_EQ(model.info.num_host_blocks, whole.info.num_host_blocks);
      EXPECT_EQ(model.info.block_bytes * 4 * static_cast<uint64_t>(num_ranks),
                whole.info.block_bytes * static_cast<uint64_t>(layers[0] - '0'));
      EXPECT_EQ(run(*model.engine, list), wanted) << mode << " " << layers;
      EXPECT_GT(model.engine->stats().num_preemptions, 0) << mode << ": the pool was not tiny";
      expect_nothing_left(*model.engine);
      if (std::string_view(mode) == "swap") {
        EXPECT_GT(model.engine->executor_stats().bytes_swapped_in, 0u);
      }
    }
  }
}

TEST_F(StagesEndToEndTest, AStageHoldsItsOwnWeights) {
  const auto weights = [](const LoadedModel& model) {
    uint64_t bytes = 0;
    for (const PackedLayer& layer : model.info.packed_layers) bytes += layer.bytes;
    return bytes;
  };
  const LoadedModel whole = load(config());
  EngineConfig config = this->config();
  config.pipeline_layers = "2,0/3,1";
  const LoadedModel model = load_stages(config, 2);
  ASSERT_EQ(model.ranks.size(), 2u);
  EXPECT_EQ(model.ranks[0].weight_bytes, weights(model));
  EXPECT_EQ(model.ranks[0].weight_bytes + model.ranks[1].weight_bytes, weights(whole))
      << "all of it, and nothing twice";
  uint64_t of_layer = 0;
  for (const PackedLayer& layer : whole.info.packed_layers) {
    if (layer.name.find("decoder.layers.3.") != layer.name.npos) of_layer += layer.bytes;
  }
  EXPECT_EQ(model.ranks[1].weight_bytes, of_layer);
  EXPECT_EQ(model.ranks[1].kv_bytes * 3, model.ranks[0].kv_bytes);
}

TEST_F(StagesEndToEndTest, AbortsDraftsAndCachesHold) {
  const std::vector<Request> list = requests();
  const Texts wanted = run(*load(config()).engine, list);
  EngineConfig config = this->config();
  config.caches_inputs = config.caches_prefixes = true;
  config.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1})";
  LoadedModel model = load_stages(config, 2);
  EXPECT_EQ(run(*model.engine, list), wanted);
  EXPECT_EQ(run(*model.engine, list), wanted) << "again, of what is kept";
  for (size_t first = 0; first < 4; ++first) {
    std::vector<std::string> aborted;
    for (size_t i = first; i < list.size(); i += 4) aborted.push_back(list[i].id);
    for (const auto& [id, text] : run(*model.engine, list, 1, aborted)) EXPECT_EQ(text, wanted.at(id)) << id;
  }
  EXPECT_GT(model.engine->clear_cache(), 0);
  expect_nothing_left(*model.engine);
}

TEST_F(StagesEndToEndTest, WhatStagesLackIsRefusedByName) {
  const auto message = [&](EngineConfig config, int32_t num_stages, int32_t num_ranks = 1) {
    config.pipeline_parallel_size = num_stages;
    config.tensor_parallel_size = num_ranks;
    StatusOr<LoadedModel> model = load_engine(config, clock_, testing::ThreadRanks::start(config));
    return model.ok() ? "" : error_message(model.status());
  };
  EngineConfig config = this->config();
  EXPECT_THAT(message(config, 5), ::testing::HasSubstr("5: 4 decoder layers: --pipeline-parallel-size 1 to 4"));
  EXPECT_THAT(message(config, 4, 4), ::testing::HasSubstr("--pipeline-parallel-size 4: of --tensor-parallel-size 4 are "
                                                          "16 ranks, and 8 are the most: --pipeline-parallel-size 2"));
  EXPECT_THAT(message(config, 2, 3), ::testing::HasSubstr("--tensor-parallel-size 3: "));
  config.pipeline_layers = "1,1";
  EXPECT_THAT(message(config, 2),
              ::testing::HasSubstr("--pipeline-layers 1,1: these are 2 layers, and the decoder has 4"));
  config.pipeline_layers = "4";
  EXPECT_THAT(message(config, 1, 2), ::testing::HasSubstr("--pipeline-parallel-size, which is 1"));
  config.pipeline_layers = "";
  config.replicas = 2;
  EXPECT_THAT(message(config, 2), ::testing::HasSubstr("--pipeline-parallel-size 2: not with --replicas 2"));
  config.replicas = 1;
  config.encode_slice = "auto";
  EXPECT_THAT(message(config, 2), ::testing::HasSubstr("--pipeline-parallel-size 2: not with --encode-slice auto"));
  config.encode_slice = "none";
  config.kv_cache_memory = 4096;
  EXPECT_THAT(message(config, 2), ::testing::HasSubstr("Give --kv-cache-memory at least"));
}

TEST_F(RanksEndToEndTest, AFailedRankIsTheErrorOfTheStep) {
  EngineConfig config = this->config();
  config.tensor_parallel_size = 2;
  const std::shared_ptr<Communicator> ranks = testing::ThreadRanks::start(config);
  StatusOr<LoadedModel> model = load_engine(config, clock_, ranks);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const Request& request : requests()) add(*model->engine, request);
  std::vector<RequestOutput> outputs;
  ASSERT_TRUE(model->engine->step(outputs).ok());
  ranks->fail(absl::UnavailableError("rank 1 (pid 7) was ended by signal 9 (Killed)"));
  const Status stepped = model->engine->step(outputs);
  EXPECT_THAT(error_message(stepped), ::testing::MatchesRegex("step [0-9]+: rank 1 .pid 7. was ended by signal 9.*"));
  EXPECT_FALSE(model->engine->step(outputs).ok()) << "it stays so";
}

TEST_F(RanksEndToEndTest, WhatRanksLackIsRefusedByName) {
  const auto message = [&](const EngineConfig& config) {
    StatusOr<LoadedModel> model = load_engine(config, clock_, testing::ThreadRanks::start(config));
    return model.ok() ? "" : error_message(model.status());
  };
  EngineConfig config = this->config();
  config.tensor_parallel_size = 8;
  EXPECT_THAT(message(config), ::testing::HasSubstr("4 heads: --tensor-parallel-size 1, 2 or 4"));
  config.tensor_parallel_size = 3;
  EXPECT_THAT(message(config), ::testing::HasSubstr("--tensor-parallel-size 3: "));
  config.tensor_parallel_size = 2;
  config.replicas = 2;
  EXPECT_THAT(message(config), ::testing::HasSubstr("not with --replicas 2"));
  config.replicas = 1;
  config.encode_slice = "auto";
  EXPECT_THAT(message(config), ::testing::HasSubstr("not with --encode-slice auto"));
  config.encode_slice = "none";
  config.kv_cache_memory = 4096;
  EXPECT_THAT(message(config), ::testing::HasSubstr("Give --kv-cache-memory at least"));
  const StatusOr<LoadedModel> alone = load_engine(config, clock_);
  EXPECT_THAT(error_message(alone.status()), ::testing::HasSubstr("--tensor-parallel-size 2: this runs one rank"));
}

}  // namespace
}  // namespace transept
