// A decode instance that falls back (--ec-fallback local), over every checkpoint: half of what it asks for comes from
// the encoder's part over a simulated network, and the other half it encodes itself. All answers are the whole model's
// to the bit; where rows are rounded on their way, those of a whole model that rounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized_testing.h"
#include "engine/family_requests_testing.h"
#include "engine/remote_encoders_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/loopback_executor.h"
#include "rank/separated_executor_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Circumstances;
using ::testing::HasSubstr;
using testing::RemoteEncoders;
using testing::SeparatedExecutor;

float rounded(float value) { return bfloat16_to_float(float_to_bfloat16(value)); }

// Asks the encoder's part for the inputs of every second request, and says of the others that no encode instance is
// there.
class HalfAnAsker final : public EncodeAsker {
 public:
  HalfAnAsker(RemoteEncoders& encoders, Executor& encoder, DType dtype)
      : encoders_(encoders), encoder_(encoder), dtype_(dtype) {}

  void start(std::shared_ptr<EcInbox> inbox) override { inbox_ = std::move(inbox); }
  void ask(EncodeAsk ask) override {
    if (ask.input.input_id == 0) ++num_requests_;
    if (num_requests_ % 2 == 1) {
      inbox_->put(EcAskFailed{ask.input, absl::UnavailableError("no encode instance is there")});
      return;
    }
    const std::vector<float> rows = testing::encode_rows(encoder_, *ask.content);
    EcMeta meta;
    meta.key = {ask.input.request_id, ask.input.input_id, 0};
    meta.digest = ask.digest;
    meta.num_positions = ask.num_positions;
    meta.width = static_cast<int32_t>(std::ssize(rows)) / meta.num_positions;
    meta.dtype = dtype_;
    meta.place = {0, meta.num_positions, {}};
    meta.time_left = ask.time_left;
    encoders_.encode(meta, bytes_of(rows));
  }
  void withdraw(const EcInput&) override {}
  void ask_again() override {}

 private:
  std::vector<std::byte> bytes_of(const std::vector<float>& rows) const {
    std::vector<std::byte> bytes(rows.size() * dtype_bytes(dtype_));
    if (dtype_ == DType::kFloat32) {
      std::memcpy(bytes.data(), rows.data(), bytes.size());
      return bytes;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint16_t bits = float_to_bfloat16(rows[i]);
      std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
    }
    return bytes;
  }

  RemoteEncoders& encoders_;
  Executor& encoder_;
  const DType dtype_;
  std::shared_ptr<EcInbox> inbox_;
  int64_t num_requests_ = 0;
};

class LocalEncodes : public testing::FamilyRequests {
 protected:
  LocalEncodes() { drops_spliced_rows_ = true; }

  std::unique_ptr<LLMEngine> make_falling_back(const Circumstances& setup, DType dtype) {
    encoder_ = EncoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options_of(setup)).value();
    encoders_ = std::make_unique<RemoteEncoders>(fake_clock_, 5, RemoteEncoders::Faults{}, EcTimes());
    asker_ = std::make_unique<HalfAnAsker>(*encoders_, *encoder_, dtype);
    ModelRunnerOptions options = options_of(setup);
    options.takes_remote_rows = true;
    options.remote_rows_dtype = dtype;
    options.ec_buffer_memory = setup.pool / 4;
    auto runner = EncoderDecoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options);
    CHECK(runner.ok(), error_message(runner.status()));
    auto executor = std::make_unique<LoopbackExecutor>(std::make_unique<LocalExecutor>(std::move(runner).value()));
    LLMEngine::Options engine = LLMEngine::Options::of(executor->info());
    engine.blocks.watermark = 0;
    engine.blocks.track_freed_blocks = true;
    engine.remote.connector = encoders_.get();
    engine.remote.asker = asker_.get();
    engine.remote.dtype = dtype;
    engine.remote.falls_back = true;
    CHECK(RemoteInputs::check(engine.remote, *executor).ok());
    return std::make_unique<LLMEngine>(engine, std::move(executor), nullptr, fake_clock_);
  }
  Answers run_falling_back(const Circumstances& setup, DType dtype) {
    const std::unique_ptr<LLMEngine> engine = make_falling_back(setup, dtype);
    Answers answers = run(*engine);
    EXPECT_GT(engine->stats().num_local_encodes, 0);
    EXPECT_EQ(engine->stats().num_injected_tokens > 0, !engine->executor().info().spec.splices_alone());
    EXPECT_EQ(engine->executor_stats().num_encoder_runs, engine->stats().num_local_encodes);
    EXPECT_EQ(engine->remote_inputs()->cache().num_uses(), 0);
    EXPECT_EQ(engine->scheduler().check_invariants(), ok_status());
    encoders_.reset();
    return answers;
  }
  void before_step() override {
    if (encoders_ == nullptr) return;
    fake_clock_.advance(std::chrono::milliseconds(1));
    encoders_->run();
  }

  FakeClock fake_clock_;
  std::unique_ptr<EncoderModelRunner> encoder_;
  std::unique_ptr<RemoteEncoders> encoders_;
  std::unique_ptr<HalfAnAsker> asker_;
};

TEST_P(LocalEncodes, AnswersAreTheWholeModels) {
  const Circumstances setups[] = {
      {.name = "cpu"},
      {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8},
  };
  for (const Circumstances& setup : std::span(setups).first(kSanitized ? 1 : std::size(setups))) {
    SCOPED_TRACE(setup.name);
    const Answers answers = run_falling_back(setup, DType::kFloat32);
    EXPECT_EQ(answers.size(), 6u);
    EXPECT_EQ(answers, run(*make_engine(setup)));
  }
}

TEST_P(LocalEncodes, AreRoundedAsRowsThatTravel) {
  const Circumstances setup{.name = "cpu"};
  if (make_engine(setup)->executor().info().spec.find_kv(KvKind::kEncoderRows) >= 0)
    return;  // they travel as float32 alone
  const Answers answers = run_falling_back(setup, DType::kBFloat16);
  auto parts = SeparatedExecutor::create(config_, options_of(setup)).value();
  parts->change_rows(rounded);
  EXPECT_EQ(answers, run(*make_engine(setup, std::move(parts))));
}

TEST_P(LocalEncodes, NeedAnEncoder) {
  ModelRunnerOptions options = options_of({});
  options.takes_remote_rows = true;
  options.part = ModelPart::kDecoder;
  LocalExecutor executor(
      EncoderDecoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options).value());
  RemoteInputs::Options remote;
  EXPECT_EQ(RemoteInputs::check(remote, executor), ok_status());
  remote.falls_back = true;
  EXPECT_THAT(error_message(RemoteInputs::check(remote, executor)),
              HasSubstr("--ec-fallback local: the ranks have no"));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, LocalEncodes, ::testing::ValuesIn(testing::in_turn(testing::folders(), 0)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
