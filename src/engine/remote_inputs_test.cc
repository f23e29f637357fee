// A decode instance over the decoder's part of every checkpoint: rows come from the encoder's part through the
// handshake, over a simulated network, into blocks. All answers are the whole model's to the bit.
#include "engine/remote_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/sanitized_testing.h"
#include "engine/family_requests_testing.h"
#include "engine/remote_encoders_testing.h"
#include "rank/checking_device_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/loopback_executor.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Circumstances;
using ::testing::HasSubstr;
using testing::RemoteEncoders;

class RemoteInputsOfFamilies : public testing::FamilyRequests {
 protected:
  RemoteInputsOfFamilies() { drops_spliced_rows_ = true; }

  ModelRunnerOptions decoder_options(const Circumstances& setup) const {
    ModelRunnerOptions options = options_of(setup);
    options.part = ModelPart::kDecoder;
    options.takes_remote_rows = true;
    options.ec_buffer_memory = setup.pool / 4;
    options.has_long_encodes = setup.slices;
    if (setup.slices) options.max_num_injected_tokens = 1;  // that is one item
    return options;
  }

  StatusOr<std::unique_ptr<Executor>> make_decoder(const ModelRunnerOptions& options) const {
    ASSIGN_OR_RETURN(auto runner,
                     EncoderDecoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options));
    return std::make_unique<LoopbackExecutor>(std::make_unique<LocalExecutor>(std::move(runner)));
  }

  std::unique_ptr<LLMEngine> make_apart(const Circumstances& setup, const RemoteEncoders::Faults& faults = {}) {
    auto encoder = EncoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options_of(setup));
    CHECK(encoder.ok(), error_message(encoder.status()));
    encoder_ = std::move(encoder).value();
    auto decoder = make_decoder(decoder_options(setup));
    CHECK(decoder.ok(), error_message(decoder.status()));
    encoders_ = std::make_unique<RemoteEncoders>(fake_clock_, 5, faults, EcTimes());
    LLMEngine::Options options = LLMEngine::Options::of((*decoder)->info());
    options.blocks.watermark = 0;
    options.blocks.track_freed_blocks = true;
    options.remote.connector = encoders_.get();
    if (setup.slices) options.encode_slice = {EncodeSliceOptions::Mode::kFixed, 1e-6};
    CHECK(RemoteInputs::check(options.remote, **decoder).ok());
    return std::make_unique<LLMEngine>(options, std::move(decoder).value(), nullptr, fake_clock_);
  }

  // Its rows are announced, and the engine is told where they come from.
  EncoderDecoderInputs place(const std::string& id, EncoderDecoderInputs inputs) override {
    if (encoders_ == nullptr) return inputs;
    for (size_t i = 0; i < inputs.items.size(); ++i) {
      std::vector<float> rows = testing::encode_rows(*encoder_, inputs.items[i]);
      if (spoiled_ == id) rows[rows.size() / 2] = spoil_;
      encoders_->encode(id, static_cast<uint32_t>(i), inputs.items[i], rows, spoiled_ == id ? "spoiled" : "");
    }
    return inputs;
  }
  void before_step() override {
    if (encoders_ == nullptr) return;
    fake_clock_.advance(std::chrono::milliseconds(1));
    encoders_->run();
  }

  Answers run_whole(const Circumstances& setup) {
    const std::unique_ptr<LLMEngine> whole = make_engine(setup);
    std::unique_ptr<RemoteEncoders> none;
    encoders_.swap(none);
    Answers answers = run(*whole);
    encoders_.swap(none);
    return answers;
  }

  FakeClock fake_clock_;
  std::unique_ptr<EncoderModelRunner> encoder_;
  std::unique_ptr<RemoteEncoders> encoders_;
  std::string spoiled_;  // a request whose rows have a number that is none
  float spoil_ = std::numeric_limits<float>::quiet_NaN();
};

TEST_P(RemoteInputsOfFamilies, AnswersAreTheWholeModels) {
  const Circumstances setups[] = {
      {.name = "cpu"},
      {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8},
      {.name = "float16", .weights = kBFloat16Format, .kv = DType::kFloat16},
      {.name = "int8 in slices", .weights = kInt8Format, .kv = DType::kInt8, .slices = true},
  };
  for (const Circumstances& setup : setups) {
    if (kSanitized && setup.weights.has_value() && !setup.slices) continue;
    SCOPED_TRACE(setup.name);
    // In slices all come at once, so that some are taken while others decode.
    const RemoteEncoders::Faults faults{.loss = 0.02, .doubled = 0.2, .max_delay_ms = 20};
    const std::unique_ptr<LLMEngine> apart = make_apart(setup, setup.slices ? RemoteEncoders::Faults() : faults);
    const Answers answers = run(*apart);
    for (const auto& [id, error] : errors_) ADD_FAILURE() << id << ": " << encoders_->answer({id, 0})->ToString();
    EXPECT_EQ(answers, run_whole(setup));
    EXPECT_EQ(answers.size(), 6u);
    const bool are_spliced = apart->executor().info().spec.splices_alone();
    EXPECT_EQ(answers.at("5").encoder.empty(), are_spliced) << "rows that came can be captured, too";
    EXPECT_EQ(apart->executor_stats().num_encoder_runs, 0);
    EXPECT_EQ(apart->stats().num_local_encodes, 0);
    EXPECT_EQ(apart->stats().num_injected_tokens > 0, !are_spliced);
    EXPECT_EQ(apart->stats().num_long_encodes > 0, setup.slices && !are_spliced);
    EXPECT_EQ(apart->remote_inputs()->cache().num_uses(), 0);
  }
}

// One value that is no number, in the rows of one request: that request ends with an error, and no other notices.
TEST_P(RemoteInputsOfFamilies, RowsThatAreNoNumbersAreTheirRequestsAlone) {
  const Circumstances setups[] = {{.name = "cpu"}, {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8}};
  for (const Circumstances& setup : std::span(setups).first(kSanitized ? 1 : std::size(setups))) {
    SCOPED_TRACE(setup.name);
    Answers whole = run_whole(setup);
    for (const float spoil : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      spoil_ = spoil;
      spoiled_ = "0";
      const std::unique_ptr<LLMEngine> apart = make_apart(setup);
      expects_errors_ = true;
      Answers answers = run(*apart);
      expects_errors_ = false;
      spoiled_.clear();
      EXPECT_EQ(errors_.count("0"), 1u) << spoil;
      errors_.clear();
      answers.erase("0");
      Answers others = whole;
      others.erase("0");
      EXPECT_EQ(answers, others);
    }
  }
}

TEST_P(RemoteInputsOfFamilies, RefusalsNameWhatTheyRefuse) {
  const Circumstances setup;
  ModelRunnerOptions options = decoder_options(setup);
  const std::unique_ptr<Executor> decoder = std::move(make_decoder(options).value());
  EXPECT_GE(decoder->info().rows_spec, 0);
  EXPECT_EQ(decoder->info().max_num_injected_tokens, 4 * decoder->info().max_num_encoder_tokens);
  FakeClock clock;
  RemoteEncoders encoders(clock, 1, {}, {});
  RemoteInputs::Options remote{.connector = &encoders, .dtype = DType::kBFloat16};
  EXPECT_EQ(error_message(RemoteInputs::check(remote, *decoder)),
            "--ec-transfer-dtype bfloat16: the ranks keep rows as float32");
  remote.dtype = DType::kFloat32;
  EXPECT_EQ(RemoteInputs::check(remote, *decoder), ok_status());
  options.takes_remote_rows = false;
  EXPECT_THAT(error_message(RemoteInputs::check(remote, *make_decoder(options).value())), HasSubstr("keep no rows"));
  options.takes_remote_rows = true;
  options.ec_buffer_memory = 1;
  EXPECT_THAT(error_message(make_decoder(options).status()), HasSubstr("--ec-buffer-memory"));
  options = decoder_options(setup);
  const testing::CheckingDeviceKind checking;
  options.device = &checking;
  EXPECT_THAT(error_message(RemoteInputs::check(remote, *make_decoder(options).value())),
              HasSubstr("the host's memory alone"));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, RemoteInputsOfFamilies,
                         ::testing::ValuesIn(testing::in_turn(testing::folders(), 0)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
