// Runs steps of an encoder/decoder model on one rank: applies block moves, builds packed inputs, encodes new inputs and
// writes their cross KV, runs the decoder over the new rows of all sequences, chooses tokens. Owns its threads, the KV
// bytes and the step arena, and shares the model with its replicas. Not thread-safe: the engine thread calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "attention/backend.h"
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
#include "rank/long_encode_run.h"
#include "rank/step_plan.h"

namespace transept {

class EncoderDecoderModelRunner final {
 public:
  struct Options {
    int32_t num_threads = 1;
    std::vector<int> cpus;  // one per thread, to pin it to; empty: not pinned
    Isa isa = Isa::kGeneric;
    std::string attention_backend = "auto";
    std::optional<WeightFormat> weight_storage;  // of matrices; unset: as the checkpoint stores each
    bool as_packed = false;                      // a packed folder's matrices are used as they are
    bool sizes_only = false;                     // matrices are not read (PackOptions::sizes_only); no step may run
    int32_t block_size = 16;
    DType kv_dtype = DType::kFloat32;  // of self and cross KV
    int32_t max_num_seqs = 64;
    int32_t max_num_batched_tokens = 2048;
    int32_t max_num_encoder_tokens = 4096;
    // Caps both sides (but not the fixed window of a media encoder). Unset: the model's positions; for a model without
    // a limit 8192, or what the KV pool holds if less.
    std::optional<int32_t> max_model_len;
    std::optional<uint64_t>
        kv_cache_memory;       // bytes; unset: what the largest load can use, within what the machine has left
    uint64_t swap_space = 0;   // bytes
    int32_t num_replicas = 1;  // share these bytes, and the free memory of the machine
    double watermark = 0.01;
    ShortlistOptions shortlist;
    bool has_long_encodes = false;  // plans may have some: encodes get their own memory, apart from the step's
    bool debug_poison = false;
    const DeviceKind* device = &cpu_device_kind();  // borrowed
    // For tests: the maker of a model that is no family. Null: load_model() of models/registry.h.
    std::function<StatusOr<std::unique_ptr<Model>>(const ModelConfig&, const std::shared_ptr<WeightMap>&,
                                                   const ModelLoadOptions&)>
        make_model = nullptr;
  };

  // Loads the model from `weights`, which it keeps; walks the largest steps that the limits allow to size the step
  // arena, and sizes the KV pools. Errors: any error of loading; a pool too small for one longest request (says what to
  // change).
  static StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> create(const ModelConfig& config,
                                                                     const std::shared_ptr<WeightMap>& weights,
                                                                     const Options& options);

  // Returns another runner over the same model, with its own threads, KV and step memory of the same sizes. REQUIRES:
  // as many `cpus` as this runner has. Errors: the system refuses the memory.
  StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> create_replica(std::vector<int> cpus) const;

  // Pins the calling thread, which executes steps from here on.
  void pin_caller() const { threads_.pin_caller(); }

  Status execute(const StepPlan& plan, StepOutput& output);

  const ExecutorInfo& info() const { return info_; }
  ExecutorStats stats() const;
  const GroupShortlists* shortlists() const { return shortlists_.get(); }  // null: none

 private:
  explicit EncoderDecoderModelRunner(const Options& options);

  Status load(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights);
  Status settle_limits();
  std::optional<uint64_t> kv_memory_asked() const;
  int32_t default_max_len() const;
  Status check_step_memory(uint64_t bytes) const;
  Status size_arena();
  void prepare_long_encodes(size_t arena_bytes);
  Status make_shortlists();
  Status size_kv();
  Status make_kv();
  std::vector<Consumers> kinds_of_items() const;
  int32_t tokens_per_block(const KvSpec& spec) const;
  size_t layer_bytes(const KvSpec& kv, int32_t num_tokens) const;
  KvStorage::Layout kv_layout(int32_t num_device_blocks, int32_t num_host_blocks) const;
  Context make_context(Arena& arena, bool dry_run);
  void run(Context& context, Context& encode_context, const StepPlan& plan, StepOutput& output);
  void encode(Context& context, const EncodeInputs& inputs);
  void count_encodes(const EncodeInputs& inputs);
  void decode(Context& context, const TensorView& hidden);
  float* make_capture_room(size_t num_floats);
  void fetch_captured();
  void write_alignments(StepOutput& output) const;
  void write_captures(const StepPlan& plan, StepOutput& output);
  void capture_encodes(const StepPlan& plan, const EncodeInputs& inputs, StepOutput& output) const;
  const ModelSpec& spec() const { return model_->spec(); }
  void fill_info();
  bool has_int8_layers() const;
  InputBatch::Limits batch_limits() const;

  Options options_;
  ThreadPool threads_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<const Selector> selector_;
  // Shared by all replicas, which only read them.
  std::shared_ptr<const AttentionBackend> attention_;
  std::shared_ptr<const Model> model_;  // borrows attention_
  std::unique_ptr<InputBatch> batch_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Arena> encode_arena_;  // null without long encodes: encodes take arena_ then
  std::unique_ptr<KvStorage> kv_;
  std::unique_ptr<GroupShortlists> shortlists_;  // null: the model has none; borrows model_
  DeviceBuffer encoder_buffer_;                  // the rows of the encode that runs, until they are written
  // CrossCapture::out on the host, and, where that is elsewhere, on the device: outside the arena, as hardly any step
  // wants it.
  std::vector<float> captured_;
  DeviceBuffer captured_there_;
  std::unique_ptr<LongEncodeRun> long_encode_;
  OpCounters counters_;
  ExecutorInfo info_;
  uint64_t memory_left_ = 0;  // bytes that the KV pool may take, as start-up found them
  std::vector<std::string> report_;
  std::vector<PackedLayer> packed_layers_;
};

}  // namespace transept
