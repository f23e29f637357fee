#include "engine/llm_engine.h"

#include <algorithm>

#include "base/check.h"
#include "core/prefix_root.h"

namespace transept {

LLMEngine::Options LLMEngine::Options::of(const ExecutorInfo& info) {
  Options options;
  options.scheduler.max_num_batched_tokens = info.max_num_batched_tokens;
  options.scheduler.max_num_encoder_tokens = info.max_num_encoder_tokens;
  options.scheduler.max_num_seqs = info.max_num_seqs;
  options.scheduler.max_steps_in_flight = info.max_steps_in_flight;
  options.blocks.block_size = info.block_size;
  options.blocks.specs = info.tables;
  options.blocks.num_device_blocks = info.num_device_blocks;
  options.blocks.num_host_blocks = info.num_host_blocks;
  if (info.rows_spec < 0) return options;
  options.scheduler.max_num_injected_tokens = info.max_num_injected_tokens;
  options.scheduler.may_encode = has_encoder(info.spec.part);
  options.blocks.keep_unused_items = true;
  options.blocks.max_reserved_blocks = info.max_reserved_blocks;
  return options;
}

Scheduler::Options LLMEngine::scheduler_options(const Options& options, bool has_draft_model) {
  Scheduler::Options made = options.scheduler;
  const bool cuts_encodes = options.encode_slice.mode != EncodeSliceOptions::Mode::kNone;
  if (cuts_encodes || has_draft_model || options.remote.connector != nullptr) made.max_steps_in_flight = 1;
  return made;
}

LLMEngine::LLMEngine(const Options& options, std::unique_ptr<Executor> executor, const Tokenizer* tokenizer,
                     const Clock& clock, DraftModel draft_model)
    : executor_(std::move(executor)),
      clock_(clock),
      scheduler_(scheduler_options(options, draft_model.executor != nullptr), options.blocks, clock),
      inputs_(scheduler_, options.blocks.share_identical_inputs, executor_->info()),
      remote_(options.remote.connector == nullptr
                  ? nullptr
                  : std::make_unique<RemoteInputs>(options.remote, scheduler_, *executor_, clock)),
      output_processor_(scheduler_, tokenizer, clock, executor_->info().spec.vocab_size),
      speculator_(options.speculation, executor_->info().spec, scheduler_, options.blocks, std::move(draft_model),
                  clock),
      encode_pacer_(options.encode_slice),
      plans_(static_cast<size_t>(scheduler_.options().max_steps_in_flight)),
      trace_(options.max_trace_steps) {}

LLMEngine::~LLMEngine() {
  for (int32_t left = scheduler_.num_steps_in_flight(); left > 0; --left) {
    if (!executor_->collect(plans_[oldest_plan_].step, output_).ok()) return;  // none is in flight then
    oldest_plan_ = (oldest_plan_ + 1) % plans_.size();
  }
}

Status LLMEngine::add_request(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                              const RequestOptions& options) {
  return add_checked({request_id, EncodedInput(), std::move(inputs), params, options});
}

Status LLMEngine::add_request(const std::string& request_id, const EncodedInput& encoded, EncoderDecoderInputs inputs,
                              const SamplingParams& params, const RequestOptions& options) {
  RETURN_IF_ERROR(inputs_.take_held(encoded, inputs));
  return add_checked({request_id, encoded, std::move(inputs), params, options});
}

Status LLMEngine::add(Request request) {
  if (!request.encoded.has_value()) return add_checked(std::move(request));
  const EncodedInput encoded = std::move(request.encoded);
  return add_request(request.id, encoded, std::move(request.inputs), request.params, request.options);
}

StatusOr<EncodedInput> LLMEngine::encode(const EncoderDecoderInputs& inputs) {
  if (remote_ == nullptr) return inputs_.hold(inputs);
  EncoderDecoderInputs asked = inputs;
  remote_->make_remote(asked.items);
  return inputs_.hold(asked);
}

Status LLMEngine::add_checked(Request request) {
  if (requests_.contains(request.id) || (remote_ != nullptr && remote_->awaits(request.id))) {
    return field_error("id", str_cat("a request \"", request.id, "\" is in flight already"));
  }
  RETURN_IF_ERROR(inputs_.check(request.inputs, request.params));
  request.options.arrival_time = request.options.arrival_time.value_or(clock_.now());
  if (remote_ != nullptr) {
    remote_->make_remote(request.inputs.items);
    ASSIGN_OR_RETURN(const bool is_here, remote_->take(request));
    if (!is_here) return ok_status();
  }
  return add_ready(std::move(request));
}

// Whatever it needs is here.
Status LLMEngine::add_ready(InputStage::Request request) {
  const std::string id = request.id;
  Status added = inputs_.open(request);
  if (added.ok()) added = add_group(std::move(request));
  if (added.ok()) return added;
  inputs_.abort(id);
  if (remote_ != nullptr) remote_->end(id);
  return added;
}

Status LLMEngine::add_group(InputStage::Request request, const Continued* continued) {
  SequenceGroup::Init init;
  waits_for_rows_ = false;
  init.group_id = GroupId(next_group_id_);
  if (request.encoded.has_value()) {
    inputs_.shared().attach(init.group_id, request.encoded, request.inputs.items);
    init.shares_items = true;
  } else if (!request.params.capture_encoder_output) {  // else the rows are to be there: it encodes itself
    init.shares_items = inputs_.shared().attach(init.group_id, request.inputs.items, request.inputs.cache_salt);
  }
  if (scheduler_.blocks().caches_prefixes() && (init.shares_items || request.inputs.items.empty())) {
    init.prefix_root = prefix_root(request.inputs);
  }
  init.request_id = request.id;
  init.params = request.params;
  init.inputs = request.inputs;
  init.first_seq_id = scheduler_.next_seq_id();
  init.arrival_time = *request.options.arrival_time;
  init.priority = request.options.priority;
  if (continued != nullptr) init.continues = continued->group_id;
  auto group = std::make_unique<SequenceGroup>(init);
  const SequenceGroup& added = *group;
  if (const Status taken = scheduler_.add_seq_group(std::move(group)); !taken.ok()) {
    inputs_.shared().detach(init.group_id);
    return with_advice(taken, request.params);
  }
  speculator_.add_group(added);
  output_processor_.add_group(added, std::move(request.inputs), request.options.stream,
                              continued != nullptr ? continued->metrics : RequestMetrics());
  requests_.emplace(request.id, init.group_id);
  ++next_group_id_;
  return ok_status();
}

// The request proper takes the place of the pass that chose its open token.
Status LLMEngine::reopen(InputStage::Request request, const RequestOutput& opened) {
  const auto group = requests_.find(request.id);
  const Continued continued{group->second, opened.metrics};
  requests_.erase(group);
  return add_group(std::move(request), &continued);
}

StatusOr<RequestOutput> LLMEngine::abort_request(const std::string& request_id) {
  if (remote_ != nullptr && remote_->awaits(request_id)) return remote_->abort(request_id);
  waits_for_rows_ = false;
  const auto found = requests_.find(request_id);
  if (found == requests_.end()) return not_found("no request \"", request_id, "\" is in flight");
  RequestOutput output;
  output_processor_.abort(found->second, output);
  inputs_.shared().detach(found->second);
  requests_.erase(found);
  // One whose open token was being chosen has not begun: if it only scores it has no outputs, as ever.
  if (inputs_.abort(request_id).value_or(false)) output.outputs.clear();
  if (remote_ != nullptr) remote_->end(request_id);
  return output;
}

void LLMEngine::start(std::function<void()> wake) {
  executor_->enter_thread();
  if (speculator_.model() != nullptr) speculator_.model()->enter_thread();
  if (remote_ != nullptr) remote_->set_wake(std::move(wake));
}

namespace {

void list_ids(std::span<SequenceGroup* const> groups, std::vector<std::string>& ids) {
  ids.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) ids[i] = groups[i]->request_id();
}

}  // namespace

void LLMEngine::describe(EngineState& state) const {
  const BlockSpaceManager& blocks = scheduler_.blocks();
  list_ids(scheduler_.running(), state.running);
  list_ids(scheduler_.waiting(), state.waiting);
  list_ids(scheduler_.swapped(), state.swapped);
  if (remote_ != nullptr) remote_->list_awaiting(state.awaiting_inputs);
  state.num_queued = static_cast<int32_t>(state.awaiting_inputs.size());
  for (const SequenceGroup* group : scheduler_.waiting()) state.num_queued += group->was_scheduled() ? 0 : 1;
  const BlockSpaceManager::Usage usage = blocks.device_usage();
  const BlockSpaceManager::CacheCounts cached = blocks.cache_counts();
  state.blocks = {.total = blocks.num_device_blocks(),
                  .free = blocks.get_num_free_device_blocks(),
                  .self = usage.self,
                  .cross = usage.cross,
                  .pinned = usage.pinned - cached.num_blocks - blocks.num_idle_prefix_blocks(),
                  .cached = cached.num_blocks,
                  .prefixes = blocks.num_idle_prefix_blocks(),
                  .cached_tables = cached.num_tables,
                  .host_total = blocks.num_host_blocks(),
                  .host_free = blocks.get_num_free_host_blocks(),
                  .block_bytes = executor_->info().block_bytes};
  state.stats = stats();
  state.executor = executor_->stats();
  if (remote_ != nullptr) state.ec = remote_->stats();
}

Status LLMEngine::step(std::vector<RequestOutput>& outputs) {
  const TimePoint begin = clock_.now();
  if (remote_ != nullptr) take_remote_inputs(outputs);
  RETURN_IF_ERROR(submit_all(outputs));
  if (scheduler_.num_steps_in_flight() == 0) return check_progress();
  const size_t num_outputs_before = outputs.size();
  num_empty_steps_ = 0;
  const StepPlan& oldest = plans_[oldest_plan_];
  if (const Status collected = executor_->collect(oldest.step, output_); !collected.ok()) return abandon(collected);
  oldest_plan_ = (oldest_plan_ + 1) % plans_.size();
  update(oldest, outputs);
  count_step(oldest, num_outputs_before, outputs, seconds(clock_.now() - begin));
  scheduler_.free_finished_seq_groups();
  scheduler_.expire_cache();
  return ok_status();
}

// As many plans as can be made, and may be in flight.
Status LLMEngine::submit_all(std::vector<RequestOutput>& outputs) {
  for (bool has_plan = true; has_plan && scheduler_.may_schedule();) {
    const auto num_in_flight = static_cast<size_t>(scheduler_.num_steps_in_flight());
    StepPlan& next = plans_[(oldest_plan_ + num_in_flight) % plans_.size()];
    next.step = static_cast<uint64_t>(stats_.num_steps) + num_in_flight;
    has_plan = make_plan(next);
    const bool has_more = !next.scheduled.without_rows.empty() && look_for_rows(next, outputs);
    waits_for_rows_ = !has_plan && !has_more && remote_ != nullptr && remote_->num_asking_groups() > 0;
    if (!has_plan) break;
    if (const Status submitted = executor_->submit(next); !submitted.ok()) return abandon(submitted);
  }
  return ok_status();
}

// What the executor has failed at is as if it had not been planned.
Status LLMEngine::abandon(const Status& why) {
  scheduler_.abandon_plans();
  return why;
}

TimePoint LLMEngine::next_step_time() const {
  if (scheduler_.has_unfinished() && !waits_for_rows_) return TimePoint::min();
  const TimePoint expiry =
      std::min(scheduler_.blocks().next_expiry(),
               speculator_.model() == nullptr ? TimePoint::max() : speculator_.model()->next_expiry());
  return std::min(remote_ == nullptr ? TimePoint::max() : remote_->next_time(), expiry);
}

EngineStats LLMEngine::stats() const {
  EngineStats stats = stats_;
  const BlockSpaceManager::CacheCounts tables = scheduler_.blocks().cache_counts();
  const Scheduler::CacheCounts& groups = scheduler_.cache_counts();
  stats.num_encoder_cache_misses = groups.num_misses;
  stats.num_encoder_cache_evictions = tables.evictions;
  stats.num_encoder_cache_expirations = tables.expirations;
  stats.num_prefix_cache_queries = groups.num_prefix_queries;
  stats.num_prefix_cache_hits = groups.num_prefix_hits;
  return stats;
}

int64_t LLMEngine::clear_cache() {
  if (speculator_.model() != nullptr) speculator_.model()->clear_cache();
  return scheduler_.clear_cache();
}

// ---- Inputs that are encoded elsewhere

void LLMEngine::take_remote_inputs(std::vector<RequestOutput>& outputs) {
  remote_->maybe_allocate_recvd_metadata(ready_, outputs);
  for (InputStage::Request& request : ready_) {
    RequestOutput refused;
    refused.request_id = request.id;
    const Status added = add_ready(std::move(request));
    if (added.ok()) continue;
    refused.error = error_message(added);
    refused.error_param = error_param(added);
    refused.finished = true;
    outputs.push_back(std::move(refused));
  }
  ready_.clear();
  remote_->take_lost(lost_);
  for (const RemoteInputs::Lost& lost : lost_) {
    if (lost.falls_back) {
      encode_here(lost.request_id);
    } else {
      end_group(lost.request_id, lost.why, outputs);
    }
  }
}

// Requests whose turn has come and whose rows are not here: they were given up after a preemption by recompute, or are
// those of a handle. Rows that were sent unasked cannot be asked for: the request ends, or it would wait here for ever.
// Returns whether a group has become one to encode, which the next step may plan.
bool LLMEngine::look_for_rows(const StepPlan& plan, std::vector<RequestOutput>& outputs) {
  bool has_more = false;
  for (const GroupId group_id : plan.scheduled.without_rows) {
    const SequenceGroup& group = *scheduler_.find(group_id);
    if (remote_->ask_again(group.request_id(), group.items())) continue;
    if (remote_->may_fall_back(group.items())) {
      encode_here(std::string(group.request_id()));
      has_more = true;
      continue;
    }
    end_group(std::string(group.request_id()),
              field_error("encoded_inputs",
                          "the rows of its encoder input are no longer here, and this instance cannot ask for them"),
              outputs);
  }
  return has_more;
}

// The group's items are no longer asked for.
void LLMEngine::encode_here(const std::string& request_id) {
  scheduler_.encode_here(requests_.at(request_id));
  waits_for_rows_ = false;
  remote_->end(request_id);
}

void LLMEngine::end_group(const std::string& request_id, const Status& why, std::vector<RequestOutput>& outputs) {
  StatusOr<RequestOutput> ended = abort_request(request_id);
  CHECK(ended.ok(), error_message(ended.status()));
  ended->error = error_message(why);
  ended->error_code = why.code();
  ended->error_param = error_param(why);
  outputs.push_back(*std::move(ended));
}

// Groups that feed rows have all their items in tables of their own.
void LLMEngine::consume_inputs(const StepPlan& plan) {
  for (const SequenceGroupMetadata& metadata : plan.scheduled.groups) {
    if (!metadata.is_prompt) continue;
    const SequenceGroup* group = scheduler_.find(metadata.group_id);
    // What has finished is over, or was the pass of an open token: the request proper reads the same rows.
    if (group == nullptr || !group->has_remote_items() || group->is_finished()) continue;
    if (inputs_.is_open(group->request_id())) continue;
    remote_->consume(group->request_id(), group->items().size());
  }
}

// False: there is nothing to do.
bool LLMEngine::make_plan(StepPlan& plan) {
  scheduler_.expire_cache();
  if (speculator_.model() != nullptr) speculator_.model()->expire_cache();
  inputs_.shared().collect_dropped();
  scheduler_.set_max_tokens_beside(encode_pacer_.max_tokens_beside(RowSource::kEncode),
                                   encode_pacer_.max_tokens_beside(RowSource::kResident));
  scheduler_.schedule(plan.scheduled);
  if (plan.scheduled.empty()) return false;
  plan.num_long_encode_tasks = encode_pacer_.slice_tasks(plan.scheduled.long_encode.encode.source);
  speculator_.draft(plan.scheduled);
  output_processor_.plan_rows(plan);
  speculator_.plan_captures(plan);
  return true;
}

// Nothing runs between two steps, so what cannot be planned now never can. An error ends the requests; without it they
// and their callers would wait for ever.
Status LLMEngine::check_progress() {
  num_empty_steps_ = scheduler_.has_unfinished() && !waits_for_rows_ ? num_empty_steps_ + 1 : 0;
  if (num_empty_steps_ < kMaxEmptySteps) return ok_status();
  return absl::InternalError(str_cat("the scheduler finds nothing to run for ", num_unfinished_requests(),
                                     " unfinished requests, with ", scheduler_.blocks().get_num_free_device_blocks(),
                                     " of ", scheduler_.blocks().num_device_blocks(), " KV blocks free"));
}

void LLMEngine::update(const StepPlan& plan, std::vector<RequestOutput>& outputs) {
  const size_t num_outputs_before = outputs.size();
  scheduler_.mark_computed(plan.scheduled, output_.long_encode_ended);
  encode_pacer_.count(plan.scheduled, output_);
  output_processor_.process(plan, output_, outputs);
  speculator_.take_rows(output_);
  speculator_.count(plan, output_, output_processor_.draft_outcomes(), stats_.drafts);
  inputs_.close(num_outputs_before, outputs, [this](InputStage::Request request, const RequestOutput& opened) {
    return reopen(std::move(request), opened);
  });
  if (remote_ != nullptr) consume_inputs(plan);
  output_.captured.clear();  // large, and unused from here on
  output_.captured_encodes.clear();
}

void LLMEngine::count_inputs(const StepPlan& plan) {
  const SchedulerOutputs& scheduled = plan.scheduled;
  stats_.num_encoder_cache_hits += scheduled.num_encoder_cache_hits;
  for (const PlannedEncode& encode : scheduled.encodes) count_encode(encode);
  if (scheduled.long_encode.begins) {
    ++stats_.num_long_encodes;
    count_encode(scheduled.long_encode.encode);
  }
  for (const SequenceGroupMetadata& group : scheduled.groups) {
    if (scheduler_.find(group.group_id)->is_finished()) inputs_.shared().detach(group.group_id);
  }
  for (const GroupId gone : scheduled.finished) inputs_.shared().detach(gone);
}

void LLMEngine::count_encode(const PlannedEncode& encode) {
  if (encode.source != RowSource::kEncode) return;
  stats_.num_local_encodes += remote_ != nullptr ? 1 : 0;
  const SequenceGroup& group = *scheduler_.find(encode.group_id);
  const bool again = group.shares_items()
                         ? inputs_.shared().count_encode(encode.group_id, static_cast<size_t>(encode.item))
                         : group.num_preemptions() > 0;
  stats_.num_reencodes += again ? 1 : 0;
}

void LLMEngine::count_step(const StepPlan& plan, size_t num_outputs_before, const std::vector<RequestOutput>& outputs,
                           double step_seconds) {
  const SchedulerOutputs& scheduled = plan.scheduled;
  trace_.begin_step(plan.step, scheduled, step_seconds);
  for (size_t i = num_outputs_before; i < outputs.size(); ++i) {
    if (!outputs[i].finished) continue;
    trace_.add_finished(outputs[i].request_id);
    requests_.erase(outputs[i].request_id);
    if (remote_ != nullptr) remote_->end(outputs[i].request_id);
  }
  if (trace_.is_recording()) {
    for (const SequenceGroupMetadata& group : scheduled.groups) {
      if (group.is_prompt) trace_.add_started(scheduler_.find(group.group_id)->request_id());
    }
  }
  int64_t num_sampled = -output_processor_.num_skipped_samples();
  for (const RowPlan& row : plan.rows) num_sampled += row.target_token < 0 ? 1 : 0;
  for (const OutputProcessor::DraftOutcome& outcome : output_processor_.draft_outcomes()) {
    num_sampled -= outcome.num_drafts + 1 - outcome.num_tokens;
  }
  stats_.num_generated_tokens += num_sampled;
  int64_t prompt_rows = 0;
  for (const SequenceGroupMetadata& group : scheduled.groups) {
    for (const SequenceData& seq : group.seq_data)
      prompt_rows += group.is_prompt ? static_cast<int64_t>(seq.token_ids.size()) : 0;
  }
  stats_.num_prompt_tokens += prompt_rows;
  stats_.num_encoder_tokens += scheduled.num_encoder_tokens;
  stats_.num_injected_tokens += scheduled.num_injected_tokens;
  stats_.num_preemptions += scheduled.num_preempted;
  stats_.num_swaps_out += scheduled.num_swapped_out;
  stats_.num_swaps_in += scheduled.num_swapped_in;
  stats_.max_running_seqs = std::max<int64_t>(stats_.max_running_seqs, scheduled.num_seqs);
  stats_.encode_seconds += output_.encode_seconds;
  stats_.decode_seconds += output_.decode_seconds;
  stats_.step_seconds += step_seconds;
  ++stats_.num_steps;
  count_inputs(plan);
}

}  // namespace transept
