// Requests to the model of mosaic_model_testing.h through the engine: items of two kinds and unequal sizes, ranges of
// keys, positions on three axes. Each answer is held against the float64 reference, and must be the same bits in a full
// batch, in tiny pools, through preemption, swaps and sharing, in slices and parts, and with rows from elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/sanitized_testing.h"
#include "engine/mosaic_requests_testing.h"

namespace transept::testing {
namespace {

// Log-probabilities of `tokens` behind the prompt's first token, by the reference.
std::vector<double> reference_logprobs(const std::vector<std::vector<double>>& logits, std::span<const int32_t> tokens,
                                       std::vector<double>* gaps) {
  std::vector<double> logprobs;
  for (size_t i = 1; i < tokens.size(); ++i) {
    const std::vector<double>& row = logits[i - 1];
    const double most = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const double value : row) sum += std::exp(value - most);
    const double own = row[static_cast<size_t>(tokens[i])];
    logprobs.push_back(own - most - std::log(sum));
    gaps->push_back(most - own);
  }
  return logprobs;
}

// What the reference gives for a request's tokens, which several backends answer alike: computed once.
class ReferenceLogits {
 public:
  explicit ReferenceLogits(const Mosaic& mosaic) : mosaic_(mosaic) {}

  const std::vector<std::vector<double>>& of(const MosaicRequest& request, const std::vector<int32_t>& tokens) {
    const auto [place, is_new] = known_.try_emplace({request.id, tokens});
    if (is_new) place->second = mosaic_.logits(request.inputs, tokens);
    return place->second;
  }

 private:
  const Mosaic& mosaic_;
  std::map<std::pair<std::string, std::vector<int32_t>>, std::vector<std::vector<double>>> known_;
};

// One answer against the reference, token by token.
void expect_reference(ReferenceLogits& reference, const MosaicRequest& request, const MosaicAnswer& answer) {
  const bool is_greedy = request.params.temperature == 0 && request.params.num_beams == 1;
  const size_t num_prompt = request.inputs.prompt_token_ids.size();
  for (const auto& [ids, numbers] : answer) {
    const bool is_prompt = ids == request.inputs.prompt_token_ids && numbers.size() + 1 == num_prompt;
    std::vector<int32_t> tokens = request.inputs.prompt_token_ids;
    if (!is_prompt) tokens.insert(tokens.end(), ids.begin(), ids.end());
    std::vector<double> gaps;
    const std::vector<double> want = reference_logprobs(reference.of(request, tokens), tokens, &gaps);
    double sum = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const bool is_answer = i + 1 >= num_prompt;
      if (is_prompt) {
        EXPECT_NEAR(numbers[i], want[i], 3e-4) << request.id << ", prompt token " << i + 1;
      }
      if (is_prompt || !is_answer) continue;
      sum += want[i];
      if (request.params.num_beams == 1) {
        EXPECT_NEAR(numbers[i + 2 - num_prompt], want[i], 3e-4) << request.id << ", token " << i + 1;
      }
      if (is_greedy) {
        EXPECT_LT(gaps[i], 1e-3) << request.id << ": not the best token at " << i + 1;
      }
    }
    if (!is_prompt) {
      EXPECT_NEAR(numbers[0], sum, 3e-3) << request.id;
    }
  }
}

// Two kinds of self-attention, two of cross-attention and the rows that are spliced; blocks of one size.
TEST_P(MosaicTest, HasTablesOfFiveSpecs) {
  const std::unique_ptr<LLMEngine> engine = make_engine({});
  const ExecutorInfo& info = engine->executor().info();
  std::vector<std::pair<TableOwner, size_t>> owners;
  for (size_t i = 0; i < info.tables.size(); ++i) {
    owners.emplace_back(info.tables[i].owner, info.spec.kv[i].layers.size());
    EXPECT_EQ(info.tables[i].owner, info.spec.kv[i].owner);
  }
  EXPECT_EQ(owners, (std::vector<std::pair<TableOwner, size_t>>{{TableOwner::kSequence, 4},
                                                                {TableOwner::kGroup, 1},
                                                                {TableOwner::kSequence, 1},
                                                                {TableOwner::kGroup, 1},
                                                                {TableOwner::kItem, 1}}));
  std::vector<int32_t> sizes;
  for (const TableSpec& spec : info.tables) sizes.push_back(spec.tokens_per_block);
  EXPECT_EQ(sizes[0], 4) << "most bytes a token: four layers of two heads";
  EXPECT_GE(sizes[2], 2 * sizes[0]);
  EXPECT_GE(sizes[3], 3 * sizes[0]);
  EXPECT_GT(sizes[1], sizes[3]);
}

TEST_P(MosaicTest, AnswersAreThoseOfTheReference) {
  ReferenceLogits reference(mosaic_);
  for (const std::string backend : {"reference", "cpu"}) {
    const std::unique_ptr<LLMEngine> engine = make_engine({.name = backend, .backend = backend});
    const MosaicAnswers answers = run(*engine, requests_, 1);
    ASSERT_EQ(answers.size(), requests_.size());
    for (size_t i = 0; i < requests_.size(); i += kSanitized ? 9 : 1) {
      expect_reference(reference, requests_[i], answers.at(requests_[i].id));
    }
  }
}

TEST_P(MosaicTest, BitsDoNotDependOnHowItIsRun) {
  const std::unique_ptr<LLMEngine> roomy = make_engine({});
  const MosaicAnswers alone = run_alone(*roomy);
  ASSERT_EQ(alone.size(), requests_.size());
  const std::vector<MosaicSetup> setups = {
      {.name = "together"},
      {.name = "one thread", .block_size = 16, .num_threads = 1},
      {.name = "blocks of one token", .block_size = 1, .num_blocks = 4000},
      {.name = "parts", .max_num_batched_tokens = 17},
      {.name = "items in several steps", .max_num_encoder_tokens = 24},
      {.name = "recompute", .num_blocks = 47, .preemption = PreemptionMode::kRecompute},
      {.name = "swap", .num_blocks = 47, .num_host_blocks = 200, .preemption = PreemptionMode::kSwap, .shares = false},
      {.name = "tiny",
       .max_num_batched_tokens = 20,
       .max_num_encoder_tokens = 24,
       .num_blocks = 45,
       .num_host_blocks = 20},
      {.name = "nothing shared", .shares = false},
      {.name = "slices", .slices = true, .starts_late = true},
      {.name = "slices in a tiny pool", .num_blocks = 47, .slices = true, .starts_late = true},
      {.name = "loopback", .num_blocks = 53, .num_host_blocks = 40, .loops_back = true},
      {.name = "loopback in slices",
       .max_num_encoder_tokens = 24,
       .loops_back = true,
       .slices = true,
       .starts_late = true},
      {.name = "separated encoder", .is_separated = true},
      {.name = "separated encoder in a tiny pool",
       .max_num_encoder_tokens = 24,
       .num_blocks = 47,
       .num_host_blocks = 20,
       .slices = true,
       .starts_late = true,
       .is_separated = true},
  };
  LLMEngine::Stats sums;
  for (const MosaicSetup& setup : setups) {
    SCOPED_TRACE(setup.name);
    const std::unique_ptr<LLMEngine> engine = make_engine(setup);
    const MosaicAnswers answers = run(*engine, requests_, setup.starts_late ? 3 : 0);
    EXPECT_EQ(answers.size(), alone.size());
    for (const auto& [id, answer] : answers) EXPECT_EQ(answer, alone.at(id)) << id;
    const LLMEngine::Stats stats = engine->stats();
    sums.num_preemptions += stats.num_preemptions;
    sums.num_swaps_in += stats.num_swaps_in;
    sums.num_encoder_cache_hits += stats.num_encoder_cache_hits;
    sums.num_long_encodes += stats.num_long_encodes;
    sums.num_reencodes += stats.num_reencodes;
  }
  EXPECT_GT(sums.num_preemptions, 20);
  EXPECT_GT(sums.num_swaps_in, 3);
  EXPECT_GT(sums.num_encoder_cache_hits, 30);
  EXPECT_GT(sums.num_long_encodes, 10);
  EXPECT_GT(sums.num_reencodes, 3);
}

// Rows that are spliced, crossed, or both, received into the pool. None of these requests is recomputed: it might have
// lost its rows.
TEST_P(MosaicTest, RowsFromElsewhereGiveTheSameBits) {
  EXPECT_NE(refusal_of_rows(DType::kBFloat16).find("--ec-transfer-dtype bfloat16: the rows of a model that splices"),
            std::string::npos);
  const std::unique_ptr<LLMEngine> roomy = make_engine({});
  const MosaicAnswers alone = run_alone(*roomy);
  const std::vector<MosaicSetup> setups = {
      {.name = "together", .is_remote = true},
      {.name = "nothing shared", .shares = false, .is_remote = true},
      {.name = "blocks of one token", .block_size = 1, .num_blocks = 4000, .is_remote = true},
      {.name = "blocks of 16", .block_size = 16, .is_remote = true},
      {.name = "blocks of 32", .block_size = 32, .shares = false, .is_remote = true},
      {.name = "parts", .max_num_batched_tokens = 17, .loops_back = true, .is_remote = true},
      {.name = "slices", .loops_back = true, .slices = true, .is_remote = true},
      {.name = "swap",
       .num_blocks = 60,
       .num_host_blocks = 200,
       .preemption = PreemptionMode::kSwap,
       .shares = false,
       .is_remote = true},
  };
  for (const MosaicSetup& setup : setups) {
    SCOPED_TRACE(setup.name);
    const std::unique_ptr<LLMEngine> engine = make_engine(setup);
    const MosaicAnswers answers = run(*engine, requests_, 2);
    EXPECT_EQ(answers.size(), alone.size());
    for (const auto& [id, answer] : answers) EXPECT_EQ(answer, alone.at(id)) << id;
    EXPECT_EQ(engine->executor_stats().num_encoder_runs, 0);
    EXPECT_EQ(engine->stats().num_long_encodes > 0, setup.slices);
    settle(*engine);
    EXPECT_EQ(engine->remote_inputs()->cache().num_uses(), 0);
    const BlockSpaceManager& blocks = engine->scheduler().blocks();
    EXPECT_EQ(blocks.num_available_device_blocks(), blocks.num_device_blocks());
  }
}

// Rows are as wide as those of their item's kind, whatever a peer says of them.
TEST_P(MosaicTest, RowsOfAnotherWidthAreRefused) {
  const std::unique_ptr<LLMEngine> engine = make_engine({.name = "remote", .is_remote = true});
  const auto error_of = [&](const std::string& id, int32_t width) {
    MosaicRequest request{.id = id};
    request.inputs.prompt_token_ids = {1, 2, 3, 4};
    request.inputs.items = {EncoderItem({}, Mosaic::features(2, 1)), EncoderItem({}, Mosaic::features(3, 2))};
    request.inputs.items[0].consumers = Consumers::kSplice;
    EncoderDecoderInputs inputs = request.inputs;
    encoders_->encode(id, 0, inputs.items[0], std::vector<float>(static_cast<size_t>(2 * width), 0.5f), id);
    encoders_->encode(id, 1, inputs.items[1], encode_rows(*encoder_, inputs.items[1]));
    SamplingParams params;
    params.max_tokens = 2;
    EXPECT_EQ(engine->add_request(id, inputs, params), ok_status());
    std::vector<RequestOutput> outputs;
    for (int32_t i = 0; i < 1000 && engine->has_unfinished_requests(); ++i) {
      clock_.advance(std::chrono::milliseconds(100));
      encoders_->run();
      EXPECT_EQ(engine->step(outputs), ok_status());
    }
    return outputs.empty() ? std::string("no answer") : str_cat(outputs[0].error_param, ": ", outputs[0].error);
  };
  EXPECT_EQ(error_of("right", Mosaic::kDim), ": ");
  const int32_t other = GetParam() == Mosaic::kDim ? 20 : GetParam();
  const std::string wrong = error_of("wrong", other);
  if (GetParam() == Mosaic::kDim) {  // no item has such rows: the peer is refused, and sends none
    EXPECT_NE(wrong.find("1 of 2 encoder inputs did not come"), std::string::npos) << wrong;
  } else {
    EXPECT_EQ(wrong, str_cat("encoded_inputs: input 0 was announced with rows of width ", other, ", not 24"));
  }
  EXPECT_EQ(error_of("again", Mosaic::kDim), ": ");
  settle(*engine);
  EXPECT_EQ(engine->remote_inputs()->cache().num_uses(), 0);
}

// What a request must say about its items and rows, by name.
TEST_P(MosaicTest, WhatTheModelCannotHaveIsRefused) {
  const std::unique_ptr<LLMEngine> engine = make_engine({});
  const auto refusal = [&](const EncoderDecoderInputs& inputs) {
    SamplingParams params;
    params.max_tokens = 1;
    const Status status = engine->add_request("x", inputs, params);
    EXPECT_FALSE(status.ok());
    return str_cat(error_param(status), ": ", error_message(status));
  };
  EncoderDecoderInputs good;
  good.prompt_token_ids = {1, 2, 3, 4};
  good.items = {EncoderItem({}, Mosaic::features(2, 1)), EncoderItem({}, Mosaic::features(2, 2))};
  good.items[0].consumers = good.items[1].consumers = Consumers::kSplice;
  good.items[1].splice_offset = 2;
  EncoderDecoderInputs bad = good;
  bad.items[1].splice_offset = 1;
  EXPECT_NE(refusal(bad).find("items: item 1 stands at tokens 1 to 3"), std::string::npos) << refusal(bad);
  bad.items[1].splice_offset = 3;
  EXPECT_NE(refusal(bad).find("of a prompt of 4"), std::string::npos) << refusal(bad);
  bad = good;
  bad.items[0].consumers = Consumers::kNone;
  EXPECT_NE(refusal(bad).find("no consumer"), std::string::npos);
  bad = good;
  bad.items.assign(5, EncoderItem({}, Mosaic::features(12, 1)));
  EXPECT_NE(refusal(bad).find("60 positions to cross, more than the 48"), std::string::npos) << refusal(bad);
  bad = good;
  bad.layout.prompt_positions = {0, 1, 2, 3};
  EXPECT_NE(refusal(bad).find("layout: 4 prompt_positions for 3 axes of 4 tokens"), std::string::npos) << refusal(bad);
  bad = good;
  bad.layout.position_delta = -1;
  EXPECT_NE(refusal(bad).find("position_delta without"), std::string::npos);
  bad = good;
  bad.layout.ranges = {{0, 0, 1, 0}};
  EXPECT_NE(refusal(bad).find("keys 0 to 1 of 0"), std::string::npos) << refusal(bad);
  bad.layout.ranges = {{2, 0, 0, 0}, {2, 0, 0, 0}};
  EXPECT_NE(refusal(bad).find("do not ascend"), std::string::npos);
  bad = good;
  bad.items[0].consumers = Consumers::kSplice | Consumers::kCross;
  if (GetParam() != Mosaic::kDim) {
    EXPECT_NE(refusal(bad).find("another width"), std::string::npos) << refusal(bad);
  }
  EXPECT_EQ(engine->encode(bad).ok(), GetParam() == Mosaic::kDim) << "a handle of such an item";
  EXPECT_EQ(run(*engine, {{"good", good, SamplingParams{.max_tokens = 2}}}, 0).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(CrossWidths, MosaicTest, ::testing::Values(20, Mosaic::kDim, 28),
                         [](const auto& test) { return str_cat("Width", test.param); });

}  // namespace
}  // namespace transept::testing
