// Runs steps of an encoder/decoder model, or of its decoder's part, on one rank: applies block moves, builds packed
// inputs, encodes new inputs or takes their rows, writes their cross KV, runs the decoder over the new rows of all
// sequences, chooses tokens. A decoder's part has no memory to encode in. Owns its threads, the KV bytes and the step
// arena, and shares the model with its replicas. Not thread-safe: the engine thread calls it. The encoder's part:
// rank/encoder_model_runner.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/function_ref.h"
#include "base/isa.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "core/model_config.h"
#include "kv_storage/kv_storage.h"
#include "models/model.h"
#include "rank/devices.h"
#include "rank/executor.h"
#include "rank/group_shortlists.h"
#include "rank/input_batch.h"
#include "rank/load_rank_model.h"
#include "rank/long_encode_run.h"
#include "rank/runner_options.h"
#include "rank/stage_links.h"
#include "rank/step_plan.h"

namespace transept {

class EncoderDecoderModelRunner final {
 public:
  using Options = ModelRunnerOptions;

  // Loads the model from `weights`, which it keeps; walks the largest steps that the limits allow to size the step
  // arena, and sizes the KV pools. REQUIRES: options.part has the decoder. Errors: any error of loading; a pool too
  // small for one longest request (says what to change).
  static StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> create(const ModelConfig& config,
                                                                     const std::shared_ptr<WeightMap>& weights,
                                                                     const Options& options);

  // Returns another runner over the same model, with its own threads, KV and step memory of the same sizes. REQUIRES:
  // as many `cpus` as this runner has. Errors: the system refuses the memory.
  StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> create_replica(std::vector<int> cpus) const;

  // Pins the calling thread, which executes steps from here on.
  void pin_caller() const { threads_.pin_caller(); }

  // One of several ranks (options.ranks): the same call on all, and the first alone has output.samples and captures.
  // Errors: those of check_part(), nothing is executed then; the group of ranks has failed.
  Status execute(const StepPlan& plan, StepOutput& output);

  // The halves of execute(). As many steps as info().max_steps_in_flight may have begun and not ended; they end in the
  // order in which they began. The first rank's ends when it wants the step's results; what it has begun meanwhile does
  // not read what the step's encodes write. plan and output have to stay until the end. Errors: as execute().
  //
  // is_alone: no other step is in flight on any stage. The step then takes the threads of ModelRunnerOptions'
  // num_threads_alone, which changes no result.
  Status begin_step(const StepPlan& plan, StepOutput& output, bool is_alone = false);
  Status end_step();
  // Whether the begun steps have to end before another one begins: the attention of rows that one of them captures is
  // kept in one place.
  bool must_end() const;
  // Takes what the last stage of a pipeline has sent or will send to this rank, as far as it may be more than a sender
  // can be ahead. Call before any message to other ranks: each would wait for the other. No-op elsewhere.
  void make_way();
  bool is_stage() const { return stage_ != nullptr; }
  // Ranks [0, n) end a step when the first one does, and have to be told; the others when they have begun it.
  int num_ranks_told_of_ends() const;

  // Executor::row_places(). Errors: kUnimplemented, the device's memory is not the host's.
  StatusOr<std::vector<std::span<std::byte>>> row_places(std::span<const BlockId> blocks, int32_t num_positions,
                                                         int32_t width);

  const ExecutorInfo& info() const { return info_; }
  ExecutorStats stats() const;
  const GroupShortlists* shortlists() const { return shortlists_.get(); }  // null: none

 private:
  explicit EncoderDecoderModelRunner(const Options& options);

  // Of a KV cache whose size was asked for, what rows of other processes get unless that was asked for, too.
  static constexpr uint64_t kShareOfRows = 4;

  int32_t num_threads_alone() const { return std::max(options_.num_threads, options_.num_threads_alone); }

  uint64_t num_shares() const;
  const char* share_text() const;
  Status agree_on_memory();
  Status agree_on_block_bytes();
  Status check_ranks_agree() const;
  Status settle_limits();
  Status add_rows_spec();
  StatusOr<int64_t> reserved_blocks(uint64_t block_bytes) const;
  std::optional<uint64_t> kv_memory_asked() const;
  int32_t default_max_len() const;
  Status check_memory(uint64_t bytes) const;
  Status size_arena();
  void prepare_long_encodes(size_t arena_bytes);
  Status make_shortlists();
  Status size_kv();
  Status make_kv();
  int32_t tokens_per_block(const KvSpec& spec) const;
  size_t layer_bytes(const KvSpec& kv, int32_t num_tokens) const;
  KvStorage::Layout kv_layout(int32_t num_device_blocks, int32_t num_host_blocks) const;
  // A step that has begun and not ended.
  struct BegunStep {
    std::unique_ptr<InputBatch> batch;
    const StepPlan* plan = nullptr;
    StepOutput* output = nullptr;
    std::optional<Arena::Scope> scope;  // of `hidden`; none of a stage
    std::optional<DeviceStep> on_device;
    TensorView hidden;  // the rows to score, behind the last norm
    // Of a stage that gets them from the last one: the encodes' rows, and what `hidden` views.
    std::vector<float> encoded, returned;
    bool has_returned = false;  // they are here
  };
  void make_steps();
  BegunStep& begun_step(size_t i);
  Context make_context(Arena& arena, bool dry_run);
  void run(Context& context, Context& encode_context, BegunStep& step);
  void choose(Context& context, BegunStep& step);
  void encode(Context& context, const EncodeInputs& inputs, const TensorView& rows);
  void write_encoded(Context& context, const EncodeInputs& inputs, const TensorView& rows);
  void count_encodes(BegunStep& step, const EncodeInputs& inputs, const TensorView& rows);
  void poison_slots(std::span<const SlotRange> ranges);
  void decode(Context& context, const TensorView& hidden);
  void make_stage();
  // While one lives, calls take the threads of a step that is alone, if it is so.
  class ThreadsOfStep;
  void encode_stage(Context& context, const EncodeBatch& batch, Activations& state);
  void decode_stage(Context& context, const ForwardBatch& forward, Activations& state, const TensorView& hidden);
  void set_alone(bool is_alone);
  bool has_encoded() const { return stage_ == nullptr || stage_->has_encoded(); }
  int64_t num_encoded_floats(const InputBatch& batch) const;
  int64_t num_returned_floats(const InputBatch& batch) const;
  void give_back(int64_t num_encoded, const TensorView& hidden);
  void take_returned(BegunStep& step);
  void end_stage(Context& context, BegunStep& step);
  void end_encodes(Context& context, BegunStep& step);
  std::vector<std::vector<TensorView>> kv_of_all_layers(FunctionRef<TensorView(size_t spec, size_t place)> own) const;
  int32_t num_own_layers(const KvSpec& spec) const;
  bool has_kv_of(const KvSpec& spec, int32_t layer) const;
  KvCaches kv_caches() const { return {stage_ == nullptr ? kv_->layers() : kv_spans_}; }
  bool chooses() const { return stage_ == nullptr || stage_->place().is_first(); }
  // Those that divide layers with this one; null: none do.
  Communicator* layer_ranks() const { return stage_ == nullptr ? options_.ranks : stage_->ranks(); }
  float* make_capture_room(size_t num_floats);
  void fetch_captured();
  void gather_captured();
  void write_alignments(StepOutput& output) const;
  void write_captures(const StepPlan& plan, StepOutput& output);
  // In the encoder's buffer.
  TensorView rows_of(const EncodeInputs& inputs, int64_t first_float = 0) const;
  void take_rows(Context& context, const EncodeInputs& inputs) const;
  void round_rows(const TensorView& rows) const;
  const Model& model() const { return *loaded_.model; }
  const AttentionBackend& attention() const { return *loaded_.attention; }
  const ModelSpec& spec() const { return model().spec(); }
  void fill_info();
  InputBatch::Limits batch_limits() const;

  Options options_;
  ThreadPool threads_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<const Selector> selector_;
  LoadedRankModel loaded_;  // its model is shared by all replicas, which only read it
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Arena> encode_arena_;  // null without long encodes: encodes take arena_ then
  std::unique_ptr<KvStorage> kv_;
  std::unique_ptr<StageLinks> stage_;  // null: no pipeline
  bool is_alone_ = false;              // the step in work, of a stage
  int64_t num_steps_alone_ = 0;
  // Of a stage, [s][i] as KvCaches: views of kv_, which has the stage's own layers, and empty ones of all others.
  std::vector<std::vector<TensorView>> kv_views_;
  std::vector<std::span<const TensorView>> kv_spans_;
  std::unique_ptr<GroupShortlists> shortlists_;  // null: the model has none; borrows the model
  // The rows of the encode that runs, until they are written; of the last stage, those of a step until it gives them
  // back.
  DeviceBuffer encoder_buffer_;
  // CrossCapture::out on the host, and, where that is elsewhere, on the device: outside the arena, as hardly any step
  // wants it.
  std::vector<float> captured_;
  DeviceBuffer captured_there_;
  std::vector<BegunStep> steps_;  // a ring
  size_t oldest_step_ = 0, num_begun_ = 0;
  InputBatch* batch_ = nullptr;  // of the step in work
  std::unique_ptr<LongEncodeRun> long_encode_;
  OpCounters counters_;
  ExecutorInfo info_;
  std::vector<KvSpec> kv_specs_;  // of info_.tables
  uint64_t memory_left_ = 0;      // bytes that the KV pool may take, as start-up found them
  // Of a block: this rank's bytes, the most that a rank has, and those of all ranks or replicas.
  struct BlockBytes {
    uint64_t own = 0, most = 0, all = 0;
  };
  BlockBytes block_bytes_;
  std::vector<std::string> report_;
};

}  // namespace transept
