// Requests to the model of mosaic_model_testing.h through the engine: items of two kinds and unequal sizes, ranges of
// keys, positions on three axes. Each answer is held against the float64 reference, and must be the same bits in a full
// batch, in tiny pools, through preemption, swaps and sharing, in slices and parts, and with rows from elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "base/check.h"
#include "base/log.h"
#include "base/sanitized_testing.h"
#include "engine/engine_testing.h"
#include "engine/mosaic_model_testing.h"
#include "engine/remote_encoders_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/local_executor.h"
#include "rank/loopback_executor.h"
#include "rank/separated_executor_testing.h"

namespace transept::testing {
namespace {

struct Request {
  std::string id;
  EncoderDecoderInputs inputs;
  SamplingParams params;
};
// Ids, sum of log-probabilities and log-probability of each token, of each output; then those of the prompt.
using Answer = std::vector<std::pair<std::vector<int32_t>, std::vector<double>>>;
using Answers = std::map<std::string, Answer>;

// What of the engine changes from one run to the next, and no answer.
struct Circumstances {
  std::string name;
  int32_t block_size = 4, num_threads = 2, max_num_seqs = 16, max_num_batched_tokens = 256;
  int32_t max_num_encoder_tokens = 128;
  int32_t num_blocks = 600, num_host_blocks = 0;
  PreemptionMode preemption = PreemptionMode::kAuto;
  bool shares = true, loops_back = false, slices = false, starts_late = false, is_separated = false;
  bool is_remote = false;  // items are encoded elsewhere, and their rows received
  std::string backend = "cpu";
};

class RandomMosaicRequests {
 public:
  RandomMosaicRequests(uint64_t seed, bool has_one_width) : random_(seed), has_one_width_(has_one_width) {}

  Request next(const std::string& id) {
    Request request;
    request.id = id;
    const int32_t num_prompt = draw(1, 24);
    for (int32_t i = 0; i < num_prompt; ++i) request.inputs.prompt_token_ids.push_back(draw(0, Mosaic::kVocab - 1));
    add_items(request.inputs);
    if (draw(0, 1) == 1) add_positions(request.inputs);
    if (draw(0, 2) > 0) add_ranges(request.inputs);
    SamplingParams& params = request.params;
    params.max_tokens = draw(1, 12);
    params.logprobs = 0;
    params.seed = random_();
    const int32_t kind = draw(0, 3);
    if (kind == 0) params.n = draw(2, 3), params.temperature = 1;
    if (kind == 1) params.num_beams = draw(2, 3), params.n = 2;
    if (draw(0, 2) == 0) params.prompt_logprobs = 0;
    return request;
  }

 private:
  int32_t draw(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

  // Of a few contents, so that some are the same.
  void add_items(EncoderDecoderInputs& inputs) {
    int32_t place = 0;
    for (int32_t i = draw(0, 3); i > 0; --i) {
      const int32_t room = static_cast<int32_t>(inputs.prompt_token_ids.size()) - place;
      const bool is_spliced = room > 0 && draw(0, 1) == 1;
      const int32_t size = is_spliced ? draw(1, std::min(room, 9)) : draw(1, 12);
      EncoderItem& item =
          inputs.items.emplace_back(std::vector<int32_t>{}, Mosaic::features(size, static_cast<uint32_t>(draw(0, 2))));
      if (!is_spliced) continue;
      item.consumers = has_one_width_ && draw(0, 2) == 0 ? Consumers::kSplice | Consumers::kCross : Consumers::kSplice;
      item.splice_offset = place + draw(0, room - size);
      place = item.splice_offset + size;
    }
  }

  // As of pictures: an axis advances, others stand still for a while.
  void add_positions(EncoderDecoderInputs& inputs) {
    const auto num_prompt = static_cast<int32_t>(inputs.prompt_token_ids.size());
    int32_t most = 0;
    for (int32_t axis = 0; axis < Mosaic::kNumAxes; ++axis) {
      int32_t position = 0;
      for (int32_t i = 0; i < num_prompt; ++i) {
        inputs.layout.prompt_positions.push_back(position);
        most = std::max(most, position);
        position += draw(0, 1);
      }
    }
    inputs.layout.position_delta = most + 1 - num_prompt;
  }

  void add_ranges(EncoderDecoderInputs& inputs) {
    const int32_t num_cross = num_cross_positions(inputs.items);
    int32_t first = draw(0, 3);
    for (int32_t i = draw(1, 4); i > 0; --i, first += draw(1, 9)) {
      const int32_t begin = draw(0, num_cross), end = draw(begin, num_cross);
      inputs.layout.ranges.push_back({first, begin, end, static_cast<uint8_t>(draw(0, 1))});
    }
  }

  std::mt19937_64 random_;
  bool has_one_width_;
};

class MosaicTest : public ::testing::TestWithParam<int32_t> {
 protected:
  MosaicTest() : mosaic_(GetParam()) {
    set_log_level(LogLevel::kError);
    RandomMosaicRequests random(11, GetParam() == Mosaic::kDim);
    for (int32_t i = 0; i < 100; ++i) requests_.push_back(random.next(str_cat("r", i)));
  }

  std::unique_ptr<LLMEngine> make_engine(const Circumstances& setup) {
    encoders_.reset();
    EncoderDecoderModelRunner::Options options;
    options.make_model = [this](const ModelConfig&, const std::shared_ptr<WeightMap>& weights,
                                const ModelLoadOptions& load) { return mosaic_.make(weights, load); };
    options.isa = detect_isa();
    options.num_threads = setup.num_threads;
    options.attention_backend = setup.backend;
    options.block_size = setup.block_size;
    options.max_num_seqs = setup.max_num_seqs;
    options.max_num_batched_tokens = setup.max_num_batched_tokens;
    options.max_num_encoder_tokens = setup.max_num_encoder_tokens;
    options.kv_cache_memory = uint64_t{64} << 20;
    options.swap_space = uint64_t{64} << 20;
    options.watermark = 0;
    options.debug_poison = true;
    options.has_long_encodes = setup.slices;
    ModelConfig config;
    config.path = mosaic_.folder();
    std::unique_ptr<Executor> executor;
    if (setup.is_remote) {
      encoder_ = EncoderModelRunner::create(config, WeightMap::open(config.path).value(), options).value();
      options.part = ModelPart::kDecoder;
      options.takes_remote_rows = true;
      encoders_ = std::make_unique<RemoteEncoders>(clock_, 3, RemoteEncoders::Faults{}, EcTimes());
    }
    if (setup.is_separated) {
      executor = testing::SeparatedExecutor::create(config, options).value();
    } else {
      auto runner = EncoderDecoderModelRunner::create(config, WeightMap::open(config.path).value(), options);
      CHECK(runner.ok(), error_message(runner.status()));
      executor = std::make_unique<LocalExecutor>(std::move(runner).value());
    }
    if (setup.loops_back) executor = std::make_unique<LoopbackExecutor>(std::move(executor));
    LLMEngine::Options engine = LLMEngine::Options::of(executor->info());
    engine.scheduler.preemption_mode = setup.preemption;
    engine.blocks.num_device_blocks = std::min(setup.num_blocks, engine.blocks.num_device_blocks);
    engine.blocks.num_host_blocks = std::min(setup.num_host_blocks, engine.blocks.num_host_blocks);
    engine.blocks.watermark = 0;
    engine.blocks.share_identical_inputs = setup.shares;
    engine.blocks.track_freed_blocks = true;
    engine.blocks.shuffle_seed = 7;
    if (setup.is_remote) {
      constexpr int32_t kRoomOfAnyRequest = 24;  // blocks of four positions: three items of twelve, and more
      engine.blocks.max_reserved_blocks = kRoomOfAnyRequest;
      engine.blocks.num_device_blocks += kRoomOfAnyRequest;
      engine.remote.connector = encoders_.get();
      CHECK(RemoteInputs::check(engine.remote, *executor).ok());
    }
    if (setup.slices) engine.encode_slice = {EncodeSliceOptions::Mode::kFixed, 1e-6};
    return std::make_unique<LLMEngine>(engine, std::move(executor), nullptr, clock_);
  }

  // Of a decoder's part that shall take rows of this type.
  std::string refusal_of_rows(DType dtype) const {
    EncoderDecoderModelRunner::Options options;
    options.make_model = [this](const ModelConfig&, const std::shared_ptr<WeightMap>& weights,
                                const ModelLoadOptions& load) { return mosaic_.make(weights, load); };
    options.part = ModelPart::kDecoder;
    options.takes_remote_rows = true;
    options.remote_rows_dtype = dtype;
    const std::shared_ptr<WeightMap> weights = WeightMap::open(mosaic_.folder()).value();
    return error_message(EncoderDecoderModelRunner::create({}, weights, options).status());
  }

  static void add_answer(const RequestOutput& output, Answers& answers) {
    EXPECT_EQ(output.error, "");
    auto& answer = answers[output.request_id];
    for (const CompletionOutput& completion : output.outputs) {
      std::vector<double> numbers = {completion.cumulative_logprob};
      for (size_t i = 0; completion.logprobs.has_value() && i < completion.token_ids.size(); ++i) {
        for (const TokenLogprob& entry : (*completion.logprobs)[i]) {
          if (entry.token_id == completion.token_ids[i]) numbers.push_back(entry.logprob);
        }
      }
      answer.emplace_back(completion.token_ids, std::move(numbers));
    }
    if (!output.prompt_logprobs.has_value()) return;
    auto& prompt = answer.emplace_back(output.prompt_token_ids, std::vector<double>());
    for (size_t i = 1; i < output.prompt_token_ids.size(); ++i) {
      for (const TokenLogprob& entry : *(*output.prompt_logprobs)[i]) {
        if (entry.token_id == output.prompt_token_ids[i]) prompt.second.push_back(entry.logprob);
      }
    }
  }

  Answers run(LLMEngine& engine, const std::vector<Request>& requests, size_t gap) {
    Answers answers;
    size_t next = 0;
    for (size_t step = 0; next < requests.size() || engine.has_unfinished_requests(); ++step) {
      CHECK(step < 20000, "it never ends");
      for (; next < requests.size() && next * gap <= step; ++next) {
        const Status added = engine.add_request(requests[next].id, place(requests[next]), requests[next].params);
        EXPECT_TRUE(added.ok()) << requests[next].id << ": " << added;
      }
      std::vector<RequestOutput> finished;
      clock_.advance(std::chrono::milliseconds(1));
      if (encoders_ != nullptr) encoders_->run();
      const Status stepped = engine.step(finished);
      EXPECT_TRUE(stepped.ok()) << stepped;
      const Status invariants = engine.scheduler().check_invariants();
      EXPECT_TRUE(invariants.ok()) << invariants;
      if (!stepped.ok() || !invariants.ok()) return answers;
      for (const RequestOutput& output : finished) add_answer(output, answers);
    }
    if (encoders_ == nullptr) expect_nothing_left(engine);
    EXPECT_EQ(engine.executor_stats().num_arena_overflows, 0);
    return answers;
  }

  // Its rows are announced, if they are to come from elsewhere.
  EncoderDecoderInputs place(const Request& request) {
    EncoderDecoderInputs inputs = request.inputs;
    for (size_t i = 0; encoders_ != nullptr && i < inputs.items.size(); ++i) {
      EncoderItem& item = inputs.items[i];
      encoders_->encode(request.id, static_cast<uint32_t>(i), item, encode_rows(*encoder_, item));
    }
    return inputs;
  }

  // Until what was announced for requests that had found equal rows themselves is given up.
  void settle(LLMEngine& engine) {
    std::vector<RequestOutput> none;
    for (int i = 0; i < 10000; ++i) {
      const TimePoint next = std::min(encoders_->next_time(), engine.next_step_time());
      if (next == TimePoint::max()) return;
      clock_.advance(std::max(next - clock_.now(), Duration::zero()));
      encoders_->run();
      ASSERT_TRUE(engine.step(none).ok());
    }
  }

  // Each request alone, one after another.
  Answers run_alone(LLMEngine& engine) {
    Answers all;
    for (const Request& request : requests_) all.merge(run(engine, {request}, 0));
    return all;
  }

  Mosaic mosaic_;
  FakeClock clock_;
  std::unique_ptr<EncoderModelRunner> encoder_;
  std::unique_ptr<RemoteEncoders> encoders_;  // null: items are encoded by the engine
  std::vector<Request> requests_;
};

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

  const std::vector<std::vector<double>>& of(const Request& request, const std::vector<int32_t>& tokens) {
    const auto [place, is_new] = known_.try_emplace({request.id, tokens});
    if (is_new) place->second = mosaic_.logits(request.inputs, tokens);
    return place->second;
  }

 private:
  const Mosaic& mosaic_;
  std::map<std::pair<std::string, std::vector<int32_t>>, std::vector<std::vector<double>>> known_;
};

// One answer against the reference, token by token.
void expect_reference(ReferenceLogits& reference, const Request& request, const Answer& answer) {
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
    const Answers answers = run(*engine, requests_, 1);
    ASSERT_EQ(answers.size(), requests_.size());
    for (size_t i = 0; i < requests_.size(); i += kSanitized ? 9 : 1) {
      expect_reference(reference, requests_[i], answers.at(requests_[i].id));
    }
  }
}

TEST_P(MosaicTest, BitsDoNotDependOnHowItIsRun) {
  const std::unique_ptr<LLMEngine> roomy = make_engine({});
  const Answers alone = run_alone(*roomy);
  ASSERT_EQ(alone.size(), requests_.size());
  const std::vector<Circumstances> setups = {
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
  for (const Circumstances& setup : setups) {
    SCOPED_TRACE(setup.name);
    const std::unique_ptr<LLMEngine> engine = make_engine(setup);
    const Answers answers = run(*engine, requests_, setup.starts_late ? 3 : 0);
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
  if (GetParam() != Mosaic::kDim) {
    EXPECT_NE(refusal_of_rows(DType::kFloat32).find("rows of two widths (mosaic)"), std::string::npos);
    return;
  }
  EXPECT_NE(refusal_of_rows(DType::kBFloat16).find("--ec-transfer-dtype bfloat16: the rows of a model that splices"),
            std::string::npos);
  const std::unique_ptr<LLMEngine> roomy = make_engine({});
  const Answers alone = run_alone(*roomy);
  const std::vector<Circumstances> setups = {
      {.name = "together", .is_remote = true},
      {.name = "nothing shared", .shares = false, .is_remote = true},
      {.name = "blocks of one token", .block_size = 1, .num_blocks = 4000, .is_remote = true},
      {.name = "parts", .max_num_batched_tokens = 17, .loops_back = true, .is_remote = true},
      {.name = "slices", .loops_back = true, .slices = true, .is_remote = true},
      {.name = "swap",
       .num_blocks = 60,
       .num_host_blocks = 200,
       .preemption = PreemptionMode::kSwap,
       .shares = false,
       .is_remote = true},
  };
  for (const Circumstances& setup : setups) {
    SCOPED_TRACE(setup.name);
    const std::unique_ptr<LLMEngine> engine = make_engine(setup);
    const Answers answers = run(*engine, requests_, 2);
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

INSTANTIATE_TEST_SUITE_P(CrossWidths, MosaicTest, ::testing::Values(20, Mosaic::kDim),
                         [](const auto& test) { return str_cat("Width", test.param); });

}  // namespace
}  // namespace transept::testing
