// The host's time for a step that a device runs again: 64 greedy rows through six decoder layers of a width. The
// processor's time of the calling thread, without the device's: on lavapipe, Mesa's device that computes on the
// processor, caches are cold after each step.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "base/log.h"
#include "engine/llm_engine.h"
#include "models/tiny_bart_testing.h"
#include "rank/local_executor.h"
#include "rank/vulkan_kind.h"

namespace transept {
namespace {

constexpr int32_t kRows = 64;

std::unique_ptr<LLMEngine> make_engine(const DeviceKind& device, int64_t width, const Clock& clock) {
  testing::TestFolder folder;
  testing::TinyBart{.d_model = width, .heads = width / 64, .ffn = 64, .decoder_layers = 6, .positions = 96}.write(
      folder);
  const ModelConfig config = ModelConfig::load(folder.path()).value();
  ModelRunnerOptions options;
  options.isa = detect_isa();
  options.max_num_seqs = kRows;
  options.max_num_batched_tokens = kRows;
  options.max_num_encoder_tokens = 256;
  options.device = &device;
  auto runner = EncoderDecoderModelRunner::create(config, WeightMap::open(config.path).value(), options);
  CHECK(runner.ok(), error_message(runner.status()));
  auto executor = std::make_unique<LocalExecutor>(std::move(runner).value());
  auto engine =
      std::make_unique<LLMEngine>(LLMEngine::Options::of(executor->info()), std::move(executor), nullptr, clock);
  for (int32_t i = 0; i < kRows; ++i) {
    EncoderDecoderInputs inputs;
    inputs.prompt_token_ids = {2};
    inputs.set_encoder_ids({4, 5, 6, 7});
    SamplingParams params;
    params.max_tokens = 90;
    params.ignore_eos = true;
    CHECK(engine->add_request(std::to_string(i), std::move(inputs), params).ok());
  }
  return engine;
}

void host_of_a_step(benchmark::State& state) {
  constexpr char kLavapipe[] = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";
  if (std::filesystem::exists(kLavapipe)) ::setenv("VK_ICD_FILENAMES", kLavapipe, 0);
  set_log_level(LogLevel::kError);
  const auto device = open_vulkan_kind("vulkan:lavapipe");
  if (!device.ok()) return state.SkipWithError(error_message(device.status()).c_str());
  const SteadyClock clock;
  std::unique_ptr<LLMEngine> engine;
  std::vector<RequestOutput> outputs;
  StepCounts first, last;
  for ([[maybe_unused]] auto _ : state) {
    if (engine == nullptr || !engine->has_unfinished_requests()) {
      engine = make_engine(**device, state.range(0), clock);
      for (int i = 0; i < 3; ++i) CHECK(engine->step(outputs).ok());
      first = last = engine->executor_stats().steps;
    }
    const double before = last.host_seconds;
    CHECK(engine->step(outputs).ok());
    last = engine->executor_stats().steps;
    state.SetIterationTime(last.host_seconds - before);
  }
  const auto of_one = [&](int64_t StepCounts::*count) {
    return static_cast<double>(last.*count - first.*count) /
           static_cast<double>(last.num_replayed - first.num_replayed);
  };
  state.counters["uploaded_bytes"] = of_one(&StepCounts::uploaded_bytes);
  state.counters["dispatches"] = of_one(&StepCounts::num_dispatches);
}
BENCHMARK(host_of_a_step)->Arg(256)->Arg(512)->Iterations(10)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace transept
