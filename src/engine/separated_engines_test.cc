// Both engines of a separated encoder: an EncoderEngine over the encoder's part of a checkpoint, an LLMEngine over the
// decoder's, and a network with faults between them. For every checkpoint all answers are the whole model's to the bit,
// the decode instance encodes nothing, and in the end neither holds anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/sanitized_testing.h"
#include "engine/encoder_engine.h"
#include "engine/family_requests_testing.h"
#include "engine/paired_connectors_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/loopback_executor.h"
#include "rank/separated_executor_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Circumstances;
using testing::PairedInstances;
using testing::SeparatedExecutor;

class SeparatedEngines : public testing::FamilyRequests {
 protected:
  SeparatedEngines() { drops_spliced_rows_ = true; }

  void make(const Circumstances& setup, const PairedInstances::Faults& faults, uint64_t seed,
            DType dtype = DType::kFloat32) {
    pair_ = std::make_unique<PairedInstances>(fake_clock_, seed, faults);
    ModelRunnerOptions encoders = options_of(setup);
    if (max_encoder_items_ > 0) encoders.max_num_seqs = max_encoder_items_;
    auto encoder = EncoderModelRunner::create(config_, WeightMap::open(config_.path).value(), encoders);
    CHECK(encoder.ok(), error_message(encoder.status()));
    EncoderEngine::Options encoding = EncoderEngine::Options::of((*encoder)->info());
    encoding.dtype = dtype;
    encoding.scheduler.max_output_bytes = uint64_t{2} << 20;  // a window of the largest checkpoint, and not many
    encoding.senders.seed = seed;
    // No run of bad luck is long enough for an error: this is about answers. Errors: remote_inputs_property_test.cc.
    encoding.senders.times.max_unanswered = encoding.senders.times.max_new_attempts = 50;
    encoder_ = std::make_unique<EncoderEngine>(encoding, std::move(encoder).value(), pair_->encoder(), fake_clock_);
    encoder_->start(nullptr);

    ModelRunnerOptions options = options_of(setup);
    options.part = ModelPart::kDecoder;
    options.takes_remote_rows = true;
    options.remote_rows_dtype = dtype;
    options.ec_buffer_memory = setup.pool / 4;
    auto decoder = EncoderDecoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options);
    CHECK(decoder.ok(), error_message(decoder.status()));
    auto executor = std::make_unique<LoopbackExecutor>(std::make_unique<LocalExecutor>(std::move(decoder).value()));
    LLMEngine::Options decoding = LLMEngine::Options::of(executor->info());
    decoding.blocks.watermark = 0;
    decoding.blocks.track_freed_blocks = true;
    decoding.scheduler.preemption_mode = setup.preemption;
    decoding.remote.connector = &pair_->decoder();
    decoding.remote.dtype = dtype;
    CHECK(RemoteInputs::check(decoding.remote, *executor).ok());
    decoder_ = std::make_unique<LLMEngine>(decoding, std::move(executor), nullptr, fake_clock_);
  }

  // What the encode instance is asked for, the decode instance takes from it.
  EncoderDecoderInputs place(const std::string& id, EncoderDecoderInputs inputs) override {
    if (encoder_ == nullptr) return inputs;
    std::vector<EncoderItem> items = testing::take_elsewhere(inputs.items);
    const Status added =
        encoder_->add_request(id, std::move(items), {pair_->decoder().self(), 0, std::chrono::seconds(60)});
    CHECK(added.ok(), error_message(added));
    return inputs;
  }
  void before_step() override {
    if (encoder_ != nullptr) step_encoder();
  }
  void step_encoder() {
    fake_clock_.advance(std::chrono::milliseconds(1));
    pair_->run();
    std::vector<RequestOutput> outputs;
    const Status stepped = encoder_->step(outputs);
    CHECK(stepped.ok(), error_message(stepped));
    for (const RequestOutput& output : outputs) {
      ++ends_[output.request_id];
      if (!output.error.empty()) ADD_FAILURE() << output.request_id << ": " << output.error;
    }
  }

  Answers run_apart() {
    Answers answers = run(*decoder_);
    // The last injections may still be on their way to the encode instance.
    for (int i = 0; i < 100000 && encoder_->num_unfinished_requests() > 0; ++i) {
      step_encoder();
      std::vector<RequestOutput> outputs;
      EXPECT_EQ(decoder_->step(outputs), ok_status());
    }
    // What was announced for a request that had found equal rows is given up when nobody has claimed it.
    for (int i = 0; i < 200 && decoder_->remote_inputs()->cache().num_uses() > 0; ++i) {
      fake_clock_.advance(std::chrono::seconds(1));
      step_encoder();
      std::vector<RequestOutput> outputs;
      EXPECT_EQ(decoder_->step(outputs), ok_status());
    }
    return answers;
  }
  Answers run_whole(const Circumstances& setup) {
    const std::unique_ptr<LLMEngine> whole = make_engine(setup);
    std::unique_ptr<EncoderEngine> none;
    encoder_.swap(none);
    Answers answers = run(*whole);
    encoder_.swap(none);
    return answers;
  }
  void expect_nothing_left() {
    EXPECT_EQ(encoder_->num_unfinished_requests(), 0u);
    EXPECT_EQ(encoder_->scheduler().outputs().used_bytes(), 0u);
    EXPECT_EQ(decoder_->remote_inputs()->cache().num_uses(), 0);
    EXPECT_EQ(decoder_->num_unfinished_requests(), 0u);
    EXPECT_EQ(decoder_->scheduler().check_invariants(), ok_status());
    for (const auto& [id, count] : ends_) EXPECT_EQ(count, 1) << id;
    ends_.clear();
  }

  // The whole model in this process, whose encoder's rows are changed before they are crossed.
  Answers run_whole_with(const Circumstances& setup, float (*change)(float)) {
    auto executor = SeparatedExecutor::create(config_, options_of(setup));
    CHECK(executor.ok(), error_message(executor.status()));
    (*executor)->change_rows(change);
    const std::unique_ptr<LLMEngine> whole = make_engine(setup, std::move(executor).value());
    std::unique_ptr<EncoderEngine> none;
    encoder_.swap(none);
    Answers answers = run(*whole);
    encoder_.swap(none);
    return answers;
  }

  int32_t max_encoder_items_ = 0;  // of a step of the encode instance; 0: as many as the whole model's
  FakeClock fake_clock_;
  std::unique_ptr<PairedInstances> pair_;  // outlives the engines
  std::unique_ptr<EncoderEngine> encoder_;
  std::unique_ptr<LLMEngine> decoder_;
  std::map<std::string, int> ends_;
};

TEST_P(SeparatedEngines, AnswerAsOneProcess) {
  const Circumstances setups[] = {
      {.name = "cpu"},
      {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8},
      {.name = "float16", .weights = kBFloat16Format, .kv = DType::kFloat16},
  };
  for (const Circumstances& setup : std::span(setups).first(kSanitized ? 1 : std::size(setups))) {
    SCOPED_TRACE(setup.name);
    make(setup, {}, 1);
    const Answers answers = run_apart();
    EXPECT_EQ(answers.size(), 6u);
    EXPECT_EQ(ends_.size(), 6u);
    EXPECT_EQ(decoder_->executor_stats().num_encoder_runs, 0);
    EXPECT_EQ(decoder_->stats().num_local_encodes, 0);
    EXPECT_EQ(encoder_->executor().stats().num_encoder_runs, encoder_->stats().num_encoded_items);
    const int64_t num_items = std::ssize(inputs_of(decoder_->executor().info().spec, 0).items);
    EXPECT_EQ(encoder_->stats().num_encoded_items, 4 * num_items) << "of six requests two have inputs of others";
    expect_nothing_left();
    EXPECT_EQ(answers, run_whole(setup));
  }
}

TEST_P(SeparatedEngines, AnswerAsOneProcessWhateverTheNetworkDoes) {
  const Circumstances setup{.name = "cpu"};
  const Answers whole = run_whole(setup);
  int num_lost = 0;
  for (uint64_t seed = 1; seed <= (kSanitized ? 1 : 4); ++seed) {
    SCOPED_TRACE(seed);
    make(setup, {.loss = 0.1, .doubled = 0.2, .cut = 0.05, .max_delay_ms = 30}, seed);
    EXPECT_EQ(run_apart(), whole);
    expect_nothing_left();
    num_lost += pair_->num_lost();
    encoder_ = nullptr;
    decoder_ = nullptr;
  }
  EXPECT_GT(num_lost, 0);
}

// The nearest number of 8 bits behind the first one, and of two that are as near that with an even last bit: by
// arithmetic, where the engine has bits. REQUIRES: value is no subnormal number.
float round_to_8_bits(float value) {
  int exponent = 0;
  const double fraction = std::frexp(double{value}, &exponent);  // [0.5, 1)
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

// Half the bytes. The texts are a function of the rounded rows alone, whatever batches they were encoded in and
// whatever the network did.
TEST_P(SeparatedEngines, OverBFloat16AnswerAsOneProcessThatRounds) {
  const Circumstances setup{.name = "cpu"};
  if (make_engine(setup)->executor().info().spec.find_kv(KvKind::kEncoderRows) >= 0)
    return;  // they travel as float32 alone
  const Answers exact = run_whole(setup), rounded = run_whole_with(setup, round_to_8_bits);
  EXPECT_EQ(run_whole_with(setup, [](float value) { return value; }), exact);
  EXPECT_NE(rounded.at("5").encoder, exact.at("5").encoder) << "rounding changes something";
  make(setup, {}, 1);
  EXPECT_EQ(run_apart(), exact);
  const uint64_t num_bytes = pair_->num_bytes();
  expect_nothing_left();
  for (uint64_t seed = 1; seed <= (kSanitized ? 1 : 4); ++seed) {
    SCOPED_TRACE(seed);
    max_encoder_items_ = static_cast<int32_t>(seed);
    const PairedInstances::Faults faults{.loss = 0.1, .doubled = 0.2, .cut = 0.05, .max_delay_ms = 30};
    make(setup, seed == 1 ? PairedInstances::Faults() : faults, seed, DType::kBFloat16);
    EXPECT_EQ(run_apart(), rounded);
    if (seed == 1) {
      EXPECT_EQ(2 * pair_->num_bytes(), num_bytes);
    }
    expect_nothing_left();
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, SeparatedEngines, ::testing::ValuesIn(testing::in_turn(testing::folders(), 0)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
