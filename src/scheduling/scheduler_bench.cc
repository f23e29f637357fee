// What a plan costs: it stands between every two steps of the model.
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "scheduling/scheduler.h"

namespace transept {
namespace {

// Decode steps of `groups` requests with `beams` sequences each, over an encoder input of 512 ids, from the
// prompt to 800 tokens.
void decode_steps(benchmark::State& state) {
  const int32_t num_groups = static_cast<int32_t>(state.range(0)), width = static_cast<int32_t>(state.range(1));
  SteadyClock clock;
  Scheduler::Options options;
  options.max_num_seqs = num_groups * width;
  options.max_num_batched_tokens = 4096;
  options.max_num_encoder_tokens = num_groups * 512;
  BlockSpaceManager::Options blocks;
  blocks.num_device_blocks = num_groups * (32 + width * 64) * 2;
  Scheduler scheduler(options, blocks, clock);
  for (int32_t id = 0; id < num_groups; ++id) {
    SequenceGroup::Init init;
    init.group_id = GroupId(static_cast<uint64_t>(id));
    init.first_seq_id = scheduler.next_seq_id();
    init.inputs.set_encoder_ids(std::vector<int32_t>(512));
    init.inputs.prompt_token_ids = {2, 0};
    init.params.num_beams = width;
    init.params.max_tokens = 1000;
    const Status status = scheduler.add_seq_group(std::make_unique<SequenceGroup>(init));
    CHECK(status.ok(), error_message(status));
  }
  SchedulerOutputs plan;
  for ([[maybe_unused]] auto _ : state) {
    scheduler.schedule(plan);
    scheduler.mark_computed(plan);
    for (int32_t id = 0; id < num_groups; ++id) {
      SequenceGroup& group = *scheduler.find(GroupId(static_cast<uint64_t>(id)));
      while (group.num_unfinished() < width) scheduler.fork_sequence(group, group.seqs()[0]->id());
      for (const auto& seq : group.seqs()) seq->append_token(1);
    }
  }
  state.counters["seqs"] = num_groups * width;
  state.SetItemsProcessed(state.iterations() * num_groups * width);
}
BENCHMARK(decode_steps)->Args({1, 1})->Args({8, 1})->Args({64, 1})->Args({8, 4})->Args({64, 4})->Iterations(800);

}  // namespace
}  // namespace transept
