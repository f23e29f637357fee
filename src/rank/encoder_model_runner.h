// The executor of the encoder's part of a model, in this process: encodes a plan's items and returns their rows. It has
// no decoder, no KV pool, no output layer, and step memory for the largest encode alone. Owns its threads, its memory
// and the model. Not thread-safe: one thread submits and collects. The decoder's part: rank/model_runner.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "rank/encode_inputs.h"
#include "rank/executor.h"
#include "rank/load_rank_model.h"
#include "rank/runner_options.h"
#include "tensor/arena.h"

namespace transept {

class EncoderModelRunner final : public Executor {
 public:
  // Loads the encoder's part from `weights`, which the model keeps, whatever options.part says, and walks the largest
  // encodes that the limits allow to size the step arena: options.max_num_encoder_tokens rows, of options.max_num_seqs
  // items at most. Errors: any error of loading; a length that the model does not have; more memory than the machine.
  static StatusOr<std::unique_ptr<EncoderModelRunner>> create(const ModelConfig& config,
                                                              const std::shared_ptr<WeightMap>& weights,
                                                              const ModelRunnerOptions& options);

  // Without tables and blocks; spec.part is kEncoder.
  const ExecutorInfo& info() const override { return info_; }
  void enter_thread() override { threads_.pin_caller(); }
  // A plan has encodes alone, which write nothing. Errors: those of check_plan(); nothing is executed then.
  Status submit(const StepPlan& plan) override;
  // output.captured_encodes are the rows of the groups in plan.encoder_captures, [num_positions, width of the item's
  // consumers], the same bits as a whole model's.
  Status collect(uint64_t step, StepOutput& output) override;
  ExecutorStats stats() const override;

 private:
  explicit EncoderModelRunner(const ModelRunnerOptions& options);

  Status settle_limits();
  Status check_memory(uint64_t bytes) const;
  Status size_memory();
  EncodeInputs::Limits batch_limits() const;
  TensorView encode(Context& context, const EncodeInputs& inputs);
  const ModelSpec& spec() const { return loaded_.model->spec(); }

  ModelRunnerOptions options_;
  ThreadPool threads_;
  std::unique_ptr<Device> device_;
  LoadedRankModel loaded_;
  std::unique_ptr<EncodeBatches> batches_;
  std::unique_ptr<Arena> arena_;
  DeviceBuffer rows_;  // of the encode that runs
  OpCounters counters_;
  ExecutorInfo info_;
  const StepPlan* submitted_ = nullptr;
};

}  // namespace transept
