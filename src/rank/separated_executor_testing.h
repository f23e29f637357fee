// For tests: the two parts of one model as one executor. Each plan's items are encoded by an EncoderModelRunner, and
// the decoder's rank gets the plan with their rows in place of ids and media. Both plans pass through bytes, as between
// processes. Owned by the engine. Not thread-safe.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "rank/encoder_model_runner.h"
#include "rank/local_executor.h"
#include "rank/loopback_executor.h"

namespace transept::testing {

class SeparatedExecutor final : public Executor {
 public:
  // Over both parts of the folder's model; or over its encoder and the whole, which encodes every second item itself.
  static StatusOr<std::unique_ptr<SeparatedExecutor>> create(const ModelConfig& config, ModelRunnerOptions options,
                                                             ModelPart decoders = ModelPart::kDecoder) {
    ASSIGN_OR_RETURN(std::unique_ptr<WeightMap> weights, WeightMap::open(config.path));
    ASSIGN_OR_RETURN(std::unique_ptr<EncoderModelRunner> encoder,
                     EncoderModelRunner::create(config, std::move(weights), options));
    ASSIGN_OR_RETURN(std::unique_ptr<WeightMap> again, WeightMap::open(config.path));
    options.part = decoders;
    ASSIGN_OR_RETURN(std::unique_ptr<EncoderDecoderModelRunner> decoder,
                     EncoderDecoderModelRunner::create(config, std::move(again), options));
    return std::make_unique<SeparatedExecutor>(std::move(encoder), std::move(decoder));
  }

  SeparatedExecutor(std::unique_ptr<EncoderModelRunner> encoder, std::unique_ptr<EncoderDecoderModelRunner> decoder)
      : encoder_(std::move(encoder)), decoder_(std::make_unique<LocalExecutor>(std::move(decoder))) {}

  // Changes each value of a row between the two parts.
  void change_rows(float (*change)(float)) { change_ = change; }

  const ExecutorInfo& info() const override { return decoder_.info(); }
  const ExecutorInfo& encoder_info() const { return encoder_.info(); }

  Status submit(const StepPlan& plan) override {
    plan_ = plan;
    plan_.scheduled.bulk.clear();
    for (PlannedEncode& encode : plan_.scheduled.encodes) RETURN_IF_ERROR(replace(plan.scheduled.bulk, encode));
    LongEncode& spread = plan_.scheduled.long_encode;
    if (spread.runs && spread.begins) RETURN_IF_ERROR(replace(plan.scheduled.bulk, spread.encode));
    return decoder_.submit(plan_);
  }
  Status collect(uint64_t step, StepOutput& output) override { return decoder_.collect(step, output); }

  // Of both.
  ExecutorStats stats() const override {
    ExecutorStats stats = decoder_.stats();
    CHECK(info().spec.part == ModelPart::kWhole || stats.num_encoder_runs == 0, "encodes of a decoder's part");
    stats.num_encoder_runs += encoder_.stats().num_encoder_runs;
    stats.num_arena_overflows += encoder_.stats().num_arena_overflows;
    return stats;
  }

 private:
  // Encodes the item, whose media are in `bulk`, and puts its rows in their place, at the end of plan_'s bulk.
  Status replace(std::span<const float> bulk, PlannedEncode& encode) {
    if (++num_items_ % 2 == 0 && info().spec.part == ModelPart::kWhole) return keep(bulk, encode);
    StepPlan one;
    one.step = ++num_encodes_;
    one.scheduled.bulk.assign(bulk.begin(), bulk.end());
    one.encoder_captures = {encode.group_id};
    PlannedEncode& item = one.scheduled.encodes.push();
    item = encode;
    item.writes = Consumers::kNone;
    item.group_tables.clear();
    item.cross = {};
    item.item_tables.clear();
    RETURN_IF_ERROR(encoder_.submit(one));
    StepOutput output;
    RETURN_IF_ERROR(encoder_.collect(one.step, output));
    CHECK(output.captured_encodes.size() == 1);
    std::vector<float>& rows = output.captured_encodes[0].values;
    if (change_ != nullptr) std::ranges::transform(rows, rows.begin(), change_);
    encode.source = RowSource::kInjected;
    encode.token_ids.clear();
    encode.num_rows = encode.num_positions;
    encode.features.extras.clear();
    encode.features.shape = {encode.num_positions, std::ssize(rows) / encode.num_positions};
    encode.features.begin = std::ssize(plan_.scheduled.bulk);
    plan_.scheduled.bulk.insert(plan_.scheduled.bulk.end(), rows.begin(), rows.end());
    return ok_status();
  }

  // Moves the media of an item to the end of plan_'s bulk.
  Status keep(std::span<const float> bulk, PlannedEncode& encode) {
    if (encode.features.empty()) return ok_status();
    const auto media = bulk.subspan(static_cast<size_t>(encode.features.begin), encode.features.num_values());
    encode.features.begin = std::ssize(plan_.scheduled.bulk);
    plan_.scheduled.bulk.insert(plan_.scheduled.bulk.end(), media.begin(), media.end());
    return ok_status();
  }

  LoopbackExecutor encoder_, decoder_;
  float (*change_)(float) = nullptr;
  uint64_t num_encodes_ = 0, num_items_ = 0;
  StepPlan plan_;
};

}  // namespace transept::testing
