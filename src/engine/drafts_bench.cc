// What drafts cost beside the model: proposing, planning, accepting and truncating, of a sequence and step.
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "engine/llm_engine.h"
#include "rank/fake_executor_testing.h"

namespace transept {
namespace {

using testing::FakeExecutor;

constexpr int32_t kMaxTokens = 200;

// Steps of `seqs` requests with `drafts` guesses each, of which half are right: both what is kept and what is given
// back is in it. 0: no drafts. An item is a sequence's step.
void steps(benchmark::State& state) {
  const auto num_seqs = static_cast<int32_t>(state.range(0)), num_drafts = static_cast<int32_t>(state.range(1));
  SteadyClock clock;
  LLMEngine::Options options;
  options.scheduler.max_num_batched_tokens = num_seqs * (num_drafts + 4);
  options.scheduler.max_num_encoder_tokens = 4096;
  options.scheduler.max_num_seqs = num_seqs;
  options.blocks.block_size = 16;
  options.blocks.num_device_blocks = num_seqs * (kMaxTokens / 8);
  options.blocks.watermark = 0;
  options.speculation.num_speculative_tokens = num_drafts;
  options.speculation.is_adaptive = false;
  options.speculation.truth = 0.5;
  int64_t num_steps = 0, num_seq_steps = 0, num_tokens = 0;
  std::vector<RequestOutput> outputs;
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    LLMEngine engine(options, std::make_unique<FakeExecutor>(), nullptr, clock);
    for (int32_t i = 0; i < num_seqs; ++i) {
      EncoderDecoderInputs inputs;
      inputs.set_encoder_ids(std::vector<int32_t>(16, i));
      inputs.prompt_token_ids = {2};
      SamplingParams params;
      params.max_tokens = kMaxTokens;
      params.seed = static_cast<uint64_t>(i);
      for (uint32_t t = 0; t < kMaxTokens && num_drafts > 0; ++t) {
        params.draft_token_ids.push_back(FakeExecutor::token(static_cast<uint64_t>(i), 0, t));
      }
      const Status added = engine.add_request(std::to_string(i), inputs, params);
      CHECK(added.ok(), error_message(added));
    }
    CHECK(engine.step(outputs).ok());  // the prompts'
    const int64_t before = engine.stats().num_steps;
    state.ResumeTiming();
    while (engine.has_unfinished_requests()) CHECK(engine.step(outputs).ok());
    state.PauseTiming();
    num_steps += engine.stats().num_steps - before;
    num_seq_steps += (engine.stats().num_steps - before) * num_seqs;  // all are equally long
    num_tokens += engine.stats().num_generated_tokens;
    outputs.clear();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(num_seq_steps);
  state.counters["tokens_a_step"] = static_cast<double>(num_tokens) / static_cast<double>(num_steps);
  state.counters["seconds_a_seq_step"] =
      benchmark::Counter(static_cast<double>(num_seq_steps), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(steps)->ArgsProduct({{1, 8, 32}, {0, 1, 4, 16}});

}  // namespace
}  // namespace transept
