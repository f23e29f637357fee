// Peak memory of the parts of a model: a process each that loads the whole, the encoder's or the decoder's part of a
// checkpoint of whisper-small's shape with weights of noise, encodes one window, or takes its rows, and feeds a prompt.
// `of_whole` is the share of the whole's peak.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/isa.h"
#include "models/noise_whisper_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/model_runner.h"

namespace transept {
namespace {

constexpr int64_t kWidth = 768;
constexpr int32_t kPositions = 1500, kBins = 80;

// In kB; of this process.
int64_t peak_memory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

// Runs `work` in a process of its own; returns that process's peak memory in kB, 0 if it failed.
int64_t peak_of(const std::function<void()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  if (const pid_t child = fork(); child == 0) {
    work();
    const int64_t peak = peak_memory();
    const bool is_told = write(ends[1], &peak, sizeof peak) == static_cast<ssize_t>(sizeof peak);
    _exit(is_told ? 0 : 1);
  } else if (child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
  }
  close(ends[1]);
  int64_t peak = 0;
  if (read(ends[0], &peak, sizeof peak) != static_cast<ssize_t>(sizeof peak)) peak = 0;
  close(ends[0]);
  return peak;
}

// One item, and behind it a prompt where there is a decoder.
StepPlan plan_of(ModelPart part, const ExecutorInfo& info) {
  StepPlan plan;
  PlannedEncode& encode = plan.scheduled.encodes.push();
  encode.num_positions = encode.num_rows = kPositions;
  encode.consumers = Consumers::kCross;
  encode.source = has_encoder(part) ? RowSource::kEncode : RowSource::kInjected;
  encode.features.shape = {kBins, 2 * kPositions};
  if (!has_encoder(part)) encode.features.shape = {kPositions, kWidth};
  plan.scheduled.bulk.assign(encode.features.num_values(), 0.1f);
  plan.encoder_captures = {encode.group_id};
  if (!has_decoder(part)) return plan;
  SequenceGroupMetadata& group = plan.scheduled.groups.push();
  SequenceData& sequence = group.seq_data.push();
  sequence.token_ids = {1, 2, 3, 4};
  sequence.sampled = true;
  sequence.first_logits_row = 3;
  plan.rows.push().row = 3;
  BlockId next = 0;
  for (const TableSpec& spec : info.tables) {
    const int32_t num_tokens = spec.owner == TableOwner::kGroup ? kPositions : 4;
    BlockTable table;
    for (int32_t i = 0; i < num_tokens; i += spec.tokens_per_block) table.push_back(next++);
    (spec.owner == TableOwner::kGroup ? group.group_tables : group.sequence_tables).push() = table;
  }
  group.num_cross_tokens = kPositions;
  encode.writes = Consumers::kCross;
  encode.group_tables = group.group_tables;
  return plan;
}

void run_part(const std::string& folder, ModelPart part, std::optional<WeightFormat> storage) {
  const ModelConfig config = ModelConfig::load(folder).value();
  ModelRunnerOptions options;
  options.part = part;
  options.isa = detect_isa();
  options.num_threads = 2;
  options.weight_storage = storage;
  std::shared_ptr<WeightMap> weights = WeightMap::open(folder).value();
  StepOutput output;
  if (part == ModelPart::kEncoder) {
    const auto runner = EncoderModelRunner::create(config, weights, options).value();
    const StepPlan plan = plan_of(part, runner->info());
    const Status submitted = runner->submit(plan);
    CHECK(submitted.ok() && runner->collect(plan.step, output).ok(), error_message(submitted));
  } else {
    const auto runner = EncoderDecoderModelRunner::create(config, weights, options).value();
    const Status status = runner->execute(plan_of(part, runner->info()), output);
    CHECK(status.ok(), error_message(status));
  }
}

void BM_PeakMemory(benchmark::State& state) {
  const testing::TestFolder folder;
  const testing::NoiseWhisper whisper{.width = kWidth,
                                      .heads = 12,
                                      .bins = kBins,
                                      .encoder_layers = 12,
                                      .decoder_layers = 12,
                                      .vocab_size = 51865,
                                      .positions = kPositions,
                                      .target_positions = 448};
  peak_of([&] { whisper.write(folder); });
  constexpr std::optional<WeightFormat> kStorages[] = {kFloat32Format, kFloat16Format, kInt8Format};
  const std::optional<WeightFormat> storage = kStorages[state.range(0)];
  state.SetLabel(weight_format_name(*storage));
  for ([[maybe_unused]] auto _ : state) {
    const auto peak = [&](ModelPart part) {
      return static_cast<double>(peak_of([&] { run_part(folder.path(), part, storage); }));
    };
    const double whole = peak(ModelPart::kWhole), encoder = peak(ModelPart::kEncoder),
                 decoder = peak(ModelPart::kDecoder);
    state.counters["whole_MB"] = whole / 1024;
    state.counters["encoder_of_whole"] = encoder / whole;
    state.counters["decoder_of_whole"] = decoder / whole;
  }
}

BENCHMARK(BM_PeakMemory)->DenseRange(0, 2)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace transept
