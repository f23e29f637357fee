// For tests: requests to the model of mosaic_model_testing.h, and engines that run them in all circumstances.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "engine/encode_asker.h"
#include "engine/engine_testing.h"
#include "engine/mosaic_model_testing.h"
#include "engine/remote_encoders_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/local_executor.h"
#include "rank/loopback_executor.h"
#include "rank/separated_executor_testing.h"

namespace transept::testing {

struct MosaicRequest {
  std::string id;
  EncoderDecoderInputs inputs;
  SamplingParams params;
};
// Ids, sum of log-probabilities and log-probability of each token, of each output; then those of the prompt.
using MosaicAnswer = std::vector<std::pair<std::vector<int32_t>, std::vector<double>>>;
using MosaicAnswers = std::map<std::string, MosaicAnswer>;

// What of the engine changes from one run to the next, and no answer.
struct MosaicSetup {
  std::string name;
  int32_t block_size = 4, num_threads = 2, max_num_seqs = 16, max_num_batched_tokens = 256;
  int32_t max_num_encoder_tokens = 128;
  int32_t num_blocks = 600, num_host_blocks = 0;
  PreemptionMode preemption = PreemptionMode::kAuto;
  bool shares = true, loops_back = false, slices = false, starts_late = false, is_separated = false;
  bool is_remote = false;  // items are encoded elsewhere, and their rows received
  // Of these, that the engine asks for them itself; and that no instance encodes them, so it does.
  bool asks = false, falls_back = false;
  bool holds = false;  // a handle has the items of each request
  std::string backend = "cpu";
};

class RandomMosaicRequests {
 public:
  RandomMosaicRequests(uint64_t seed, bool has_one_width) : random_(seed), has_one_width_(has_one_width) {}

  MosaicRequest next(const std::string& id) {
    MosaicRequest request;
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

// Encodes what an engine asks for, or says that no instance can.
class MosaicAsker final : public EncodeAsker {
 public:
  MosaicAsker(RemoteEncoders& encoders, EncoderModelRunner& encoder, bool fails)
      : encoders_(encoders), encoder_(encoder), fails_(fails) {}

  void start(std::shared_ptr<EcInbox> inbox) override { inbox_ = std::move(inbox); }
  void ask(EncodeAsk ask) override {
    ++num_asks;
    if (fails_) {
      inbox_->put(EcAskFailed{ask.input, absl::UnavailableError("no encode instance is there")});
      return;
    }
    EncoderItem item = *ask.content;
    std::vector<float> rows = encode_rows(encoder_, item);
    if (wrong_width > 0)
      rows.assign(static_cast<size_t>(item.num_positions()) * static_cast<size_t>(wrong_width), 0.5f);
    encoders_.encode(ask.input.request_id, ask.input.input_id, item, rows);
  }
  void withdraw(const EcInput& /*input*/) override {}
  void ask_again() override {}

  int64_t num_asks = 0;
  int32_t wrong_width = 0;  // of all rows that come from there; 0: each has its own

 private:
  RemoteEncoders& encoders_;
  EncoderModelRunner& encoder_;
  bool fails_;
  std::shared_ptr<EcInbox> inbox_;
};

class MosaicTest : public ::testing::TestWithParam<int32_t> {
 protected:
  MosaicTest() : mosaic_(GetParam()) {
    set_log_level(LogLevel::kError);
    RandomMosaicRequests random(11, GetParam() == Mosaic::kDim);
    for (int32_t i = 0; i < 100; ++i) requests_.push_back(random.next(str_cat("r", i)));
  }

  std::unique_ptr<LLMEngine> make_engine(const MosaicSetup& setup) {
    asker_.reset();
    encoders_.reset();
    holds_ = setup.holds;
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
      if (!setup.falls_back) options.part = ModelPart::kDecoder;
      options.takes_remote_rows = true;
      encoders_ = std::make_unique<RemoteEncoders>(clock_, 3, RemoteEncoders::Faults{}, EcTimes());
      if (setup.asks) asker_ = std::make_unique<MosaicAsker>(*encoders_, *encoder_, setup.falls_back);
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
      // Blocks of some positions, of so many requests that none waits for room with rows that another waits for.
      const int32_t room = setup.block_size < 4 ? 120 : 24;
      engine.blocks.max_reserved_blocks = room;
      engine.blocks.num_device_blocks += room;
      engine.remote.connector = encoders_.get();
      engine.remote.asker = asker_.get();
      engine.remote.falls_back = setup.falls_back;
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

  static void add_answer(const RequestOutput& output, MosaicAnswers& answers) {
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

  MosaicAnswers run(LLMEngine& engine, const std::vector<MosaicRequest>& requests, size_t gap) {
    MosaicAnswers answers;
    size_t next = 0;
    for (size_t step = 0; next < requests.size() || engine.has_unfinished_requests(); ++step) {
      CHECK(step < 20000, "it never ends");
      for (; next < requests.size() && next * gap <= step; ++next) {
        const Status added = add(engine, requests[next]);
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
    handles_.clear();
    engine.collect_dropped_inputs();
    if (encoders_ == nullptr) expect_nothing_left(engine);
    EXPECT_EQ(engine.executor_stats().num_arena_overflows, 0);
    return answers;
  }

  // What a handle is made of: nothing of the prompt.
  static EncoderDecoderInputs encoder_side(const MosaicRequest& request) {
    EncoderDecoderInputs inputs;
    inputs.items = request.inputs.items;
    for (EncoderItem& item : inputs.items) item.splice_offset = 0;
    return inputs;
  }
  // The rest: of the items, where they stand.
  static EncoderDecoderInputs decoder_side(const MosaicRequest& request) {
    EncoderDecoderInputs inputs = request.inputs;
    for (EncoderItem& item : inputs.items) {
      EncoderItem place;
      place.splice_offset = item.splice_offset;
      item = place;
    }
    return inputs;
  }

  // Every second handle is dropped before its request begins, the others when all are done.
  Status add(LLMEngine& engine, const MosaicRequest& request) {
    if (!holds_ || request.inputs.items.empty()) return engine.add_request(request.id, place(request), request.params);
    ASSIGN_OR_RETURN(EncodedInput handle, engine.encode(encoder_side(request)));
    Status added = engine.add_request(request.id, handle, decoder_side(request), request.params);
    if (++num_handles_ % 2 == 0) handles_.push_back(std::move(handle));
    return added;
  }

  // Its rows are announced, if they are to come from elsewhere unasked.
  EncoderDecoderInputs place(const MosaicRequest& request) {
    EncoderDecoderInputs inputs = request.inputs;
    if (asker_ != nullptr) return inputs;
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
  MosaicAnswers run_alone(LLMEngine& engine) {
    MosaicAnswers all;
    for (const MosaicRequest& request : requests_) all.merge(run(engine, {request}, 0));
    return all;
  }

  Mosaic mosaic_;
  FakeClock clock_;
  std::unique_ptr<EncoderModelRunner> encoder_;
  std::unique_ptr<RemoteEncoders> encoders_;  // null: items are encoded by the engine
  std::unique_ptr<MosaicAsker> asker_;        // null: the engine asks for nothing
  bool holds_ = false;
  size_t num_handles_ = 0;
  std::vector<EncodedInput> handles_;
  std::vector<MosaicRequest> requests_;
};

}  // namespace transept::testing
