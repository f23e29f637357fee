// Replicas over one set of weights, at work at the same time: the same answers as one engine alone, and no weight twice
// in memory. Meant for ThreadSanitizer as well: a model that is not immutable shows here.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "async/async_engine.h"
#include "base/log.h"
#include "models/tiny_bart_testing.h"
#include "models/tiny_t5_testing.h"
#include "startup/load_engine.h"

namespace transept {
namespace {

using testing::TestFolder;
using testing::TinyBart;
using testing::TinyT5;
using Texts = std::map<std::string, std::vector<std::vector<int32_t>>>;

constexpr int kNumThreads = 4;
constexpr int kRequestsEach = 12;

EngineConfig make_config(const std::string& model, int32_t replicas) {
  EngineConfig config;
  config.model = model;
  config.threads = 2;
  config.replicas = replicas;
  config.block_size = 4;
  config.max_num_seqs = 8;
  config.kv_cache_memory = uint64_t{8} << 20;
  config.swap_space = 1 << 20;
  config.debug_poison = true;
  return config;
}

// Of different lengths, greedy, sampled and with beams; every third has the input of the one before.
RequestSpec make_spec(int thread, int number) {
  const int i = thread * kRequestsEach + number;
  const int input = number % 3 == 2 ? i - 1 : i;
  RequestSpec spec;
  spec.id = str_cat("r", i);
  std::vector<int32_t> ids;
  ids.reserve(64);
  for (int32_t j = 0; j < 1 + (input * 7) % 30; ++j) ids.push_back((input * 5 + j * 3) % 40);
  spec.inputs.set_encoder_ids(std::move(ids));
  spec.inputs.prompt_token_ids = {2, 0};
  spec.params.max_tokens = 3 + (i * 11) % 25;
  spec.params.seed = static_cast<uint64_t>(i);
  spec.params.temperature = i % 3 == 0 ? 0.0f : 1.0f;
  spec.params.num_beams = i % 4 == 2 ? 3 : 1;
  spec.params.eos_token_ids = {2};
  return spec;
}

class ReplicasEndToEndTest : public ::testing::Test {
 protected:
  ReplicasEndToEndTest() { set_log_level(LogLevel::kError); }

  LoadedModel load(const EngineConfig& config) {
    StatusOr<LoadedModel> model = load_engine(config, clock_);
    CHECK(model.ok(), error_message(model.status()));
    return std::move(model).value();
  }

  // All at once, from several threads.
  Texts run(LoadedModel& model) {
    AsyncEngine engine(model.take_engines(), {}, clock_);
    std::vector<Texts> texts(kNumThreads);
    std::vector<std::thread> threads;
    threads.reserve(kNumThreads);
    for (int t = 0; t < kNumThreads; ++t) {
      threads.emplace_back([&, t] { texts[static_cast<size_t>(t)] = run_thread(engine, t); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const EngineSnapshot& replica : engine.snapshots()) {
      EXPECT_GT(replica.counts.finished, 0) << "a replica had nothing to do";
      EXPECT_EQ(replica.executor.num_arena_overflows, 0);
      EXPECT_EQ(replica.blocks.available(), replica.blocks.total) << "blocks are left";
    }
    model.give_back(engine.stop_all());
    for (size_t t = 1; t < texts.size(); ++t) texts[0].merge(texts[t]);
    return std::move(texts[0]);
  }

  static Texts run_thread(AsyncEngine& engine, int thread) {
    std::vector<RequestStream> streams;
    for (int i = 0; i < kRequestsEach; ++i) {
      StatusOr<RequestStream> stream = engine.add_request(make_spec(thread, i));
      CHECK(stream.ok(), error_message(stream.status()));
      streams.push_back(std::move(stream).value());
    }
    Texts texts;
    for (RequestStream& stream : streams) {
      const StatusOr<RequestOutput> output = stream.next();
      CHECK(output.ok(), error_message(output.status()));
      for (const CompletionOutput& one : output->outputs) texts[output->request_id].push_back(one.token_ids);
    }
    return texts;
  }

  void expect_same_answers(const std::string& folder, const char* attention_backend) {
    EngineConfig one = make_config(folder, 1), three = make_config(folder, 3);
    one.attention_backend = three.attention_backend = attention_backend;
    LoadedModel alone = load(one), replicated = load(three);
    ASSERT_EQ(replicated.more_engines.size(), 2u);
    const Texts expected = run(alone);
    ASSERT_EQ(expected.size(), static_cast<size_t>(kNumThreads * kRequestsEach));
    EXPECT_EQ(run(replicated), expected);
    EXPECT_EQ(run(replicated), expected) << "after they were stopped and started again";
  }

  SteadyClock clock_;
  TestFolder dir_;
};

TEST_F(ReplicasEndToEndTest, AnswersAreThoseOfOneEngine) {
  TinyBart().write(dir_);
  expect_same_answers(dir_.path(), "cpu");
}

TEST_F(ReplicasEndToEndTest, AnswersAreThoseOfOneEngineByTheReference) {
  TinyBart().write(dir_);
  expect_same_answers(dir_.path(), "reference");
}

TEST_F(ReplicasEndToEndTest, RelativePositionsAreSharedToo) {
  TinyT5().write(dir_);
  expect_same_answers(dir_.path(), "cpu");
}

TEST_F(ReplicasEndToEndTest, MemoryIsDividedAndTooLittleIsRefusedForAllOfThem) {
  TinyBart().write(dir_);
  const int32_t blocks_of_one = load(make_config(dir_.path(), 1)).info.num_device_blocks;
  const LoadedModel two = load(make_config(dir_.path(), 2));
  EXPECT_EQ(two.info.num_device_blocks, blocks_of_one / 2);
  EXPECT_EQ(two.more_engines[0]->scheduler().blocks().num_device_blocks(), blocks_of_one / 2);
  EngineConfig small = make_config(dir_.path(), 4);
  small.kv_cache_memory = 4096;
  const Status refused = load_engine(small, clock_).status();
  EXPECT_NE(error_message(refused).find("for all replicas"), std::string::npos) << refused;
}

}  // namespace
}  // namespace transept
