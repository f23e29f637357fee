#include "rank/model_runner.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/log.h"
#include "base/system_memory.h"
#include "kv/block_space_manager.h"
#include "rank/largest_step.h"
#include "rank/lengths.h"

namespace transept {
namespace {

// What start-up leaves to the rest of the machine when it takes "what is left".
constexpr double kShareOfFreeMemory = 0.9;
// What a request of models without a limit is taken to be like when the KV pool is sized for max_num_seqs of them.
constexpr int32_t kUsualLen = 1024;

}  // namespace

EncoderDecoderModelRunner::EncoderDecoderModelRunner(const Options& options)
    : options_(options),
      threads_(num_threads_alone(), options.cpus),
      device_(options.device->make_device(threads_, options.isa)),
      selector_(options.device->make_selector(threads_, options.isa)) {
  threads_.use_threads(options.num_threads);
}

StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> EncoderDecoderModelRunner::create(
    const ModelConfig& config, const std::shared_ptr<WeightMap>& weights, const Options& options) {
  CHECK(has_decoder(options.part), "an encoder alone has a runner of its own");
  std::unique_ptr<EncoderDecoderModelRunner> runner(new EncoderDecoderModelRunner(options));
  ASSIGN_OR_RETURN(runner->loaded_,
                   load_rank_model(config, weights, options, runner->threads_, *runner->device_, runner->report_));
  runner->make_stage();
  RETURN_IF_ERROR(runner->settle_limits());
  RETURN_IF_ERROR(runner->make_shortlists());
  runner->make_steps();
  RETURN_IF_ERROR(runner->size_arena());
  RETURN_IF_ERROR(runner->size_kv());
  runner->fill_info();
  RETURN_IF_ERROR(runner->check_ranks_agree());
  return runner;
}

StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> EncoderDecoderModelRunner::create_replica(
    std::vector<int> cpus) const {
  Options options = options_;
  options.cpus = std::move(cpus);
  std::unique_ptr<EncoderDecoderModelRunner> runner(new EncoderDecoderModelRunner(options));
  runner->loaded_ = loaded_;
  runner->info_ = info_;
  runner->kv_specs_ = kv_specs_;
  RETURN_IF_ERROR(runner->make_shortlists());
  runner->make_steps();
  RETURN_IF_ERROR(runner->size_arena());
  RETURN_IF_ERROR(runner->make_kv());
  return runner;
}

Status EncoderDecoderModelRunner::settle_limits() {
  kv_specs_ = spec().kv;
  RETURN_IF_ERROR(add_rows_spec());
  for (const KvSpec& kv : kv_specs_) info_.tables.push_back({kv.owner, tokens_per_block(kv)});
  const int32_t self = spec().find_kv(KvKind::kSelf);
  info_.block_size = self < 0 ? options_.block_size : info_.tables[static_cast<size_t>(self)].tokens_per_block;
  const DeviceMemory& memory = device_->memory();
  const uint64_t free = memory.free_bytes() - std::min(memory.free_bytes(), options_.reserved_memory);
  memory_left_ = static_cast<uint64_t>(static_cast<double>(free) * kShareOfFreeMemory) / num_shares();
  memory_left_ = std::min(memory_left_, memory.max_operand_bytes());
  block_bytes_.own = block_bytes_.most = kv_layout(1, 0).block_bytes();
  block_bytes_.all = block_bytes_.own * num_shares();
  RETURN_IF_ERROR(agree_on_memory());
  std::optional<int32_t> asked = options_.max_model_len;
  if (asked.has_value() && options_.max_model_len_may_exceed) {
    asked =
        std::min(*asked, has_no_limit(spec()) ? ModelSpec::kMaxPositions
                                              : std::max(spec().max_encoder_positions, spec().max_decoder_positions));
  }
  const bool takes_default = has_no_limit(spec()) && !asked.has_value();
  const int32_t default_len = takes_default ? default_max_len() : kDefaultMaxLen;
  ASSIGN_OR_RETURN(const Lengths lengths, settle_lengths(spec(), asked, default_len));
  info_.max_encoder_len = lengths.max_encoder_len;
  info_.max_decoder_len = lengths.max_decoder_len;
  if (has_no_limit(spec())) {
    report_.push_back(
        str_cat("lengths: the model sets no limit: up to ", asked.value_or(default_len),
                " tokens of input, and of answer with its prompt, ", asked.has_value() ? "" : "by default ",
                !asked.has_value() && default_len < kDefaultMaxLen ? "as the KV cache holds no more " : "",
                "(--max-model-len)"));
  }
  // Decoder prompts longer than a step's budget go in parts.
  options_.max_num_batched_tokens = std::max(options_.max_num_batched_tokens, options_.max_num_seqs);
  options_.max_num_encoder_tokens = settle_encoder_tokens(spec(), options_.max_num_encoder_tokens, lengths);
  if (!options_.takes_remote_rows) return ok_status();
  // The rows of a step go through the room of an encode, some after others.
  constexpr int64_t kTimesEncoderTokens = 4;
  const int64_t usual = std::min<int64_t>(kTimesEncoderTokens * options_.max_num_encoder_tokens, ModelSpec::kNoLimit);
  const int32_t injected = options_.max_num_injected_tokens;
  info_.max_num_injected_tokens =
      std::max(injected > 0 ? injected : static_cast<int32_t>(usual), settle_encoder_tokens(spec(), 1, lengths));
  return ok_status();
}

void EncoderDecoderModelRunner::fill_info() {
  info_.spec = spec();
  info_.max_num_seqs = options_.max_num_seqs;
  info_.max_num_batched_tokens = options_.max_num_batched_tokens;
  info_.max_num_encoder_tokens = options_.max_num_encoder_tokens;
  info_.max_steps_in_flight = stage_ == nullptr ? 1 : stage_->place().num_stages;
  info_.kv_dtype = options_.kv_dtype;
  info_.weight_storage = options_.weight_storage;
  info_.isa = options_.isa;
  info_.num_threads = options_.num_threads;
  info_.num_threads_alone = num_threads_alone();
  info_.attention_backend = options_.attention_backend;
  info_.device = options_.device->names();
  info_.packed_layers = loaded_.packed_layers;
  for (PackedLayer& layer : info_.packed_layers) layer.views = {};
  info_.report = report_;
}

// This replica's or rank's part of what was asked for.
std::optional<uint64_t> EncoderDecoderModelRunner::kv_memory_asked() const {
  if (!options_.kv_cache_memory.has_value()) return std::nullopt;
  if (stage_ != nullptr) return *options_.kv_cache_memory / block_bytes_.all * block_bytes_.most;
  return *options_.kv_cache_memory / num_shares();
}

int32_t EncoderDecoderModelRunner::default_max_len() const {
  const uint64_t memory = kv_memory_asked().value_or(memory_left_);
  const auto num_blocks = static_cast<int64_t>(std::min(memory / block_bytes_.most, kMaxKvBlocks));
  const int64_t usable = num_blocks - static_cast<int64_t>(options_.watermark * static_cast<double>(num_blocks));
  int64_t of_each_side = usable / 2;
  if (info_.rows_spec >= 0) {
    const uint64_t buffer = options_.ec_buffer_memory.value_or(memory / kShareOfRows) / block_bytes_.own;
    const auto of_rows = static_cast<int64_t>(std::min(buffer, kMaxKvBlocks));
    of_each_side = std::min((usable - of_rows) / 2, of_rows);
  }
  return static_cast<int32_t>(
      std::min<int64_t>(std::max<int64_t>(of_each_side, 1) * options_.block_size, kDefaultMaxLen));
}

InputBatch::Limits EncoderDecoderModelRunner::batch_limits() const {
  return {options_.max_num_seqs,
          options_.max_num_batched_tokens,
          options_.max_num_encoder_tokens,
          info_.max_encoder_len,
          info_.max_decoder_len,
          info_.tables,
          spec().position_axes,
          options_.kv_dtype,
          loaded_.encoder_kv_dtype(),
          info_.rows_spec,
          has_wide_layers(spec()),
          device_->keeps_steps()};
}

Context EncoderDecoderModelRunner::make_context(Arena& arena, bool dry_run) {
  return Context{*device_, arena, dry_run, dry_run ? nullptr : &counters_, layer_ranks()};
}

Status EncoderDecoderModelRunner::check_memory(uint64_t bytes) const {
  return check_step_memory(
      bytes, str_cat(options_.max_num_batched_tokens, " decoder and ", options_.max_num_encoder_tokens, " encoder"),
      "--max-model-len, --max-num-batched-tokens or --max-num-encoder-tokens");
}

Status EncoderDecoderModelRunner::size_arena() {
  const size_t encoder_bytes = static_cast<size_t>(options_.max_num_encoder_tokens) *
                               static_cast<size_t>(spec().widest_encoder_rows()) * sizeof(float);
  RETURN_IF_ERROR(check_memory(encoder_bytes));
  encoder_buffer_ = device_->memory().allocate(encoder_bytes, MemoryUse::kSteps);
  if (encoder_buffer_.data() == nullptr && encoder_bytes > 0) throw std::bad_alloc();
  Arena measuring = Arena::measuring(), measuring_encodes = Arena::measuring();
  // There is no KV yet, and a dry run touches none: views of the right shape of nothing.
  const KvStorage::Layout layout = kv_layout(1, 0);
  const std::vector<std::vector<TensorView>> views = kv_of_all_layers([&](size_t spec, size_t) {
    return TensorView(nullptr, DType::kUInt8, {1, static_cast<int64_t>(layout.specs[spec].layer_bytes)});
  });
  const std::vector<std::span<const TensorView>> layers(views.begin(), views.end());
  // A whole model may take rows, too: that is the smaller part of an encode.
  const RowSource source = has_encoder(spec().part) ? RowSource::kEncode : RowSource::kInjected;
  StepOutput output;
  threads_.use_threads(num_threads_alone());
  for (const Consumers consumers : kinds_of_items(spec())) {
    for (const StepPlan& plan : largest_steps(batch_limits(), consumers, source)) {
      Context context = make_context(measuring, true);
      Context encode_context = make_context(options_.has_long_encodes ? measuring_encodes : measuring, true);
      batch_->build(plan, {layers});
      BegunStep& step = steps_.front();
      step.plan = &plan;
      step.output = &output;
      const Arena::Scope scope(measuring);
      run(context, encode_context, step);
      choose(context, step);
    }
  }
  threads_.use_threads(options_.num_threads);
  RETURN_IF_ERROR(with_prefix(device_->status(), spec().family));
  RETURN_IF_ERROR(device_->choose_forms(report_));
  const size_t step_bytes = measuring.high_water_bytes(), apart = measuring_encodes.high_water_bytes();
  RETURN_IF_ERROR(check_memory(encoder_bytes + step_bytes + apart));
  info_.step_bytes = encoder_bytes + step_bytes + apart;
  arena_ = std::make_unique<Arena>(step_bytes, device_->memory());
  if (options_.has_long_encodes) prepare_long_encodes(apart);
  report_.push_back(str_cat("step memory: ", format_bytes(step_bytes + apart), " for ", options_.max_num_batched_tokens,
                            " decoder tokens, ", options_.max_num_encoder_tokens, " encoder tokens and ",
                            options_.max_num_seqs, " sequences a step"));
  return ok_status();
}

void EncoderDecoderModelRunner::prepare_long_encodes(size_t arena_bytes) {
  encode_arena_ = std::make_unique<Arena>(arena_bytes, device_->memory());
  long_encode_ =
      std::make_unique<LongEncodeRun>(threads_, batch_limits().encodes(), [this](const EncodeInputs& inputs) {
        Context context = make_context(*encode_arena_, false);
        encode(context, inputs, rows_of(inputs));
      });
}

// Blocks are of one size, that of options_.block_size tokens of the spec that takes most: of another one more tokens
// fit.
int32_t EncoderDecoderModelRunner::tokens_per_block(const KvSpec& spec) const {
  const auto bytes = [this](const KvSpec& kv, int32_t num_tokens) {
    return static_cast<size_t>(kv.num_layers()) *
           KvStorage::Layout::layer_stride({kv.num_layers(), layer_bytes(kv, num_tokens)});
  };
  size_t most = 0;
  for (const KvSpec& kv : kv_specs_) most = std::max(most, bytes(kv, options_.block_size));
  int32_t num_tokens = options_.block_size;
  if (bytes(spec, num_tokens) == most) return num_tokens;
  while (num_tokens < BlockSpaceManager::kMaxBlockSize && bytes(spec, num_tokens + 1) <= most) ++num_tokens;
  return num_tokens;
}

// Of one layer of a block. Rows of items are kept as they are; the layout of keys and values is the backend's.
size_t EncoderDecoderModelRunner::layer_bytes(const KvSpec& kv, int32_t num_tokens) const {
  if (kv.kind != KvKind::kEncoderRows) return attention().block_bytes(kv, num_tokens, options_.kv_dtype);
  return static_cast<size_t>(num_tokens) * static_cast<size_t>(kv.head_dim) * dtype_bytes(info_.rows_dtype);
}

KvStorage::Layout EncoderDecoderModelRunner::kv_layout(int32_t num_device_blocks, int32_t num_host_blocks) const {
  KvStorage::Layout layout;
  layout.num_device_blocks = num_device_blocks;
  layout.num_host_blocks = num_host_blocks;
  for (const KvSpec& kv : kv_specs_) {
    layout.specs.push_back({num_own_layers(kv), layer_bytes(kv, tokens_per_block(kv))});
  }
  return layout;
}

Status EncoderDecoderModelRunner::size_kv() {
  const uint64_t block_bytes = block_bytes_.most;
  const auto blocks_of_request = [&](int32_t most_tokens) {
    int64_t count = 0;
    for (size_t i = 0; i < spec().kv.size(); ++i) {  // other rows are in what is reserved for them
      const TableSpec& table = info_.tables[i];
      // What is spliced into a prompt is no longer than the prompt.
      const int32_t most = table.owner == TableOwner::kGroup ? info_.max_encoder_len : info_.max_decoder_len;
      count += ceil_div(std::min(most, most_tokens), table.tokens_per_block);
    }
    return count;
  };
  ASSIGN_OR_RETURN(const int64_t reserved, reserved_blocks(block_bytes));
  const int64_t longest = blocks_of_request(ModelSpec::kNoLimit) + reserved;
  // A model's positions say what its requests are like; a default that stands in for them says nothing.
  const int64_t load =
      blocks_of_request(has_no_limit(spec()) ? kUsualLen : ModelSpec::kNoLimit) * options_.max_num_seqs + reserved;
  const auto least_wanted = static_cast<uint64_t>(longest + longest / 8 + 1) * block_bytes;
  uint64_t wanted = static_cast<uint64_t>(std::max(longest + longest / 8, load)) * block_bytes;
  if (options_.kv_memory_limit.has_value()) {
    wanted = std::min(wanted, std::max(*options_.kv_memory_limit / num_shares(), least_wanted));
  }
  const uint64_t memory = kv_memory_asked().value_or(std::min(wanted, memory_left_));
  if (options_.kv_cache_memory.has_value()) {
    const uint64_t asked = *options_.kv_cache_memory;
    RETURN_IF_ERROR(check_kv_memory(asked, block_bytes, total_memory_bytes()));
    if (const uint64_t most = device_->memory().max_operand_bytes(); memory > most) {
      return invalid_argument("--kv-cache-memory: ", format_bytes(memory), " is more than the ", format_bytes(most),
                              " that ", options_.device->names().text(), " reaches at once");
    }
    if (const uint64_t available = device_->memory().free_bytes(); asked > available) {
      log_warning("--kv-cache-memory: ", format_bytes(asked), " is more than the ", format_bytes(available),
                  " of memory that is free now");
    }
  }
  const int64_t num_blocks = static_cast<int64_t>(std::min(memory / block_bytes, kMaxKvBlocks));
  const int64_t watermark_blocks = static_cast<int64_t>(options_.watermark * static_cast<double>(num_blocks));
  if (num_blocks - watermark_blocks < longest) {
    const auto least = static_cast<uint64_t>(static_cast<double>(longest + 1) / (1 - options_.watermark) + 1);
    return resource_exhausted("the KV cache of ", format_bytes(memory),
                              options_.ranks != nullptr   ? " a rank ("
                              : options_.num_replicas > 1 ? " a replica ("
                                                          : " (",
                              num_blocks, " blocks of ", info_.block_size,
                              " tokens) is too small for one longest request: ", info_.max_encoder_len, " encoder and ",
                              info_.max_decoder_len, " decoder tokens",
                              reserved > 0 ? " beside --ec-buffer-memory" : "", " want ", longest,
                              " blocks. Give --kv-cache-memory at least ", format_bytes(least * block_bytes_.all),
                              share_text(), ", or lower --max-model-len");
  }
  // More host blocks than device blocks could never be filled.
  const int64_t host_blocks = std::min<int64_t>(
      static_cast<int64_t>(std::min(options_.swap_space / block_bytes_.all, kMaxKvBlocks)), num_blocks);
  info_.block_bytes = block_bytes_.own;
  info_.num_device_blocks = static_cast<int32_t>(num_blocks);
  info_.num_host_blocks = static_cast<int32_t>(host_blocks);
  info_.max_reserved_blocks = static_cast<int32_t>(reserved);
  RETURN_IF_ERROR(make_kv());
  report_.push_back(str_cat("KV cache: ", dtype_name(options_.kv_dtype), ", ", num_blocks, " blocks of ",
                            info_.block_size, " tokens (", num_blocks * info_.block_size, " tokens, ",
                            format_bytes(static_cast<uint64_t>(num_blocks) * block_bytes_.own),
                            "); swap space: ", host_blocks, " blocks (",
                            format_bytes(static_cast<uint64_t>(host_blocks) * block_bytes_.own), ")"));
  return ok_status();
}

// What the copies may take is no longer the KV cache's.
Status EncoderDecoderModelRunner::make_shortlists() {
  if (options_.shortlist.list == nullptr) return ok_status();
  if (!device_->memory().is_host()) {
    return unimplemented(options_.shortlist.path, ": shortlists are the processor's alone: give --shortlist none");
  }
  info_.reads_encoder_ids = true;
  if (!chooses()) return ok_status();
  const LmHead& lm_head = model().lm_head();
  if (options_.ranks != nullptr) options_.shortlist.max_parts = 0;  // a rank has the outputs of its own ids alone
  shortlists_ = std::make_unique<GroupShortlists>(options_.shortlist, lm_head, options_.max_num_seqs);
  const uint64_t bytes =
      static_cast<uint64_t>(shortlists_->outputs().num_parts()) * ChosenOutputs::part_bytes(lm_head.linear());
  memory_left_ -= std::min(memory_left_, bytes);
  report_.push_back(str_cat(shortlist_text(options_.shortlist), "; up to ", format_bytes(bytes),
                            " for the outputs of running requests"));
  return ok_status();
}

Status EncoderDecoderModelRunner::make_kv() {
  ASSIGN_OR_RETURN(kv_,
                   KvStorage::create(kv_layout(info_.num_device_blocks, info_.num_host_blocks), device_->memory()));
  if (stage_ != nullptr) {
    kv_views_ = kv_of_all_layers([this](size_t spec, size_t place) { return kv_->layers(spec)[place]; });
    kv_spans_.assign(kv_views_.begin(), kv_views_.end());
  }
  if (options_.debug_poison) {
    for (int32_t i = 0; i < info_.num_device_blocks; ++i) kv_->poison(MemoryPool::kDevice, std::span(&i, 1));
  }
  return ok_status();
}

ExecutorStats EncoderDecoderModelRunner::stats() const {
  ExecutorStats stats;
  stats.num_encoder_runs = counters_.num_encoder_runs;
  stats.num_cross_kv_writes = counters_.num_cross_kv_writes;
  stats.num_matmuls = counters_.num_matmuls;
  stats.bytes_copied = kv_->bytes_copied();
  stats.bytes_swapped_out = kv_->bytes_swapped_out();
  stats.bytes_swapped_in = kv_->bytes_swapped_in();
  stats.num_arena_overflows = arena_->num_overflows();
  stats.steps = device_->step_counts();
  stats.num_steps_alone = num_steps_alone_;
  stats.device = device_->usage();
  return stats;
}

}  // namespace transept
