#include "rank/encoder_model_runner.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "base/check.h"
#include "base/system_memory.h"
#include "rank/capture_encodes.h"
#include "rank/check_plan.h"
#include "rank/largest_step.h"
#include "rank/lengths.h"

namespace transept {

EncoderModelRunner::EncoderModelRunner(const ModelRunnerOptions& options)
    : options_(options),
      threads_(options.num_threads, options.cpus),
      device_(options.device->make_device(threads_, options.isa)) {
  options_.part = ModelPart::kEncoder;
}

StatusOr<std::unique_ptr<EncoderModelRunner>> EncoderModelRunner::create(const ModelConfig& config,
                                                                         const std::shared_ptr<WeightMap>& weights,
                                                                         const ModelRunnerOptions& options) {
  std::unique_ptr<EncoderModelRunner> runner(new EncoderModelRunner(options));
  ASSIGN_OR_RETURN(runner->loaded_, load_rank_model(config, weights, runner->options_, runner->threads_,
                                                    *runner->device_, runner->info_.report));
  RETURN_IF_ERROR(runner->settle_limits());
  runner->batches_ = std::make_unique<EncodeBatches>(runner->batch_limits());
  RETURN_IF_ERROR(runner->size_memory());
  return runner;
}

Status EncoderModelRunner::settle_limits() {
  ASSIGN_OR_RETURN(const Lengths lengths, settle_lengths(spec(), options_.max_model_len, kDefaultMaxLen));
  info_.spec = spec();
  info_.max_encoder_len = lengths.max_encoder_len;
  info_.max_decoder_len = lengths.max_decoder_len;
  info_.max_num_seqs = options_.max_num_seqs;
  info_.max_num_encoder_tokens = settle_encoder_tokens(spec(), options_.max_num_encoder_tokens, lengths);
  info_.kv_dtype = options_.kv_dtype;
  info_.weight_storage = options_.weight_storage;
  info_.isa = options_.isa;
  info_.num_threads = options_.num_threads;
  info_.attention_backend = options_.attention_backend;
  info_.packed_layers = loaded_.packed_layers;
  for (PackedLayer& layer : info_.packed_layers) layer.views = {};
  return ok_status();
}

EncodeInputs::Limits EncoderModelRunner::batch_limits() const {
  return {info_.max_num_encoder_tokens, {}, options_.kv_dtype, loaded_.encoder_kv_dtype()};
}

Status EncoderModelRunner::check_memory(uint64_t bytes) const {
  return check_step_memory(bytes, str_cat(info_.max_num_encoder_tokens, " encoder"),
                           "--max-model-len or --max-num-encoder-tokens");
}

Status EncoderModelRunner::size_memory() {
  const uint64_t row_bytes = static_cast<uint64_t>(info_.max_num_encoder_tokens) *
                             static_cast<uint64_t>(spec().widest_encoder_rows()) * sizeof(float);
  RETURN_IF_ERROR(check_memory(row_bytes));
  // Before the dry runs: what they slice is an address.
  rows_ = device_->memory().allocate(row_bytes, MemoryUse::kSteps);
  if (rows_.data() == nullptr && row_bytes > 0) throw std::bad_alloc();
  InputBatch::Limits limits;
  limits.max_num_seqs = info_.max_num_seqs;
  limits.max_num_encoder_tokens = info_.max_num_encoder_tokens;
  limits.max_encoder_len = info_.max_encoder_len;
  limits.max_decoder_len = info_.max_decoder_len;
  limits.has_wide_layers = has_wide_layers(spec());
  Arena measuring = Arena::measuring();
  Context context{*device_, measuring, true, nullptr};
  for (const Consumers consumers : kinds_of_items(spec())) {
    for (const StepPlan& plan : largest_encodes(limits, consumers)) {
      batches_->build(plan.scheduled);
      for (const EncodeInputs& inputs : batches_->all()) encode(context, inputs);
    }
  }
  info_.step_bytes = row_bytes + measuring.high_water_bytes();
  RETURN_IF_ERROR(check_memory(info_.step_bytes));
  arena_ = std::make_unique<Arena>(measuring.high_water_bytes(), device_->memory());
  info_.report.push_back(str_cat("step memory: ", format_bytes(info_.step_bytes), " for ", info_.max_num_encoder_tokens,
                                 " encoder tokens and ", info_.max_num_seqs, " items a step"));
  return ok_status();
}

Status EncoderModelRunner::submit(const StepPlan& plan) {
  CHECK(submitted_ == nullptr, "a step is in flight already");
  RETURN_IF_ERROR(check_plan(plan, info_));
  submitted_ = &plan;
  return ok_status();
}

Status EncoderModelRunner::collect(uint64_t step, StepOutput& output) {
  CHECK(submitted_ != nullptr && submitted_->step == step, "step ", step, " was not submitted");
  const StepPlan& plan = *submitted_;
  submitted_ = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  const int64_t num_tasks_before = threads_.num_tasks_done();
  output = {};
  output.step = step;
  batches_->build(plan.scheduled);
  Context context{*device_, *arena_, false, &counters_};
  for (const EncodeInputs& inputs : batches_->all()) {
    const TensorView rows = encode(context, inputs);
    counters_.num_encoder_runs += inputs.batch().attention.num_seqs;
    capture_encodes(plan.encoder_captures, inputs, rows, device_->memory(), output.captured_encodes);
  }
  output.encode_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  output.num_encode_tasks = threads_.num_tasks_done() - num_tasks_before;
  return ok_status();
}

TensorView EncoderModelRunner::encode(Context& context, const EncodeInputs& inputs) {
  const Arena::Scope scope(context.arena);
  const EncodeBatch& batch = inputs.batch();
  Activations state{TensorView(rows_.data(), DType::kFloat32, {batch.num_tokens(), spec().width_of(batch.consumers)})};
  loaded_.model->encode(context, batch, {0, spec().num_encoder_layers}, state);
  return state.x;
}

ExecutorStats EncoderModelRunner::stats() const {
  ExecutorStats stats;
  stats.num_encoder_runs = counters_.num_encoder_runs;
  stats.num_matmuls = counters_.num_matmuls;
  stats.num_arena_overflows = arena_->num_overflows();
  stats.device = device_->usage();
  return stats;
}

}  // namespace transept
