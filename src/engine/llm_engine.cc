#include "engine/llm_engine.h"

#include <algorithm>

#include "base/check.h"

namespace transept {
namespace {

// What one request's CrossAttentionWeights may hold. Whisper's largest is 23 heads x 448 tokens x 1500 positions: 62
// MB.
constexpr int64_t kMaxCaptureBytes = int64_t{256} << 20;

// A request that can never fit could run with less of either, or with more memory.
Status with_advice(const Status& refusal, const SamplingParams& params) {
  const Status advised(refusal.code(), str_cat(error_message(refusal), " (see --max-num-seqs, --kv-cache-memory)"));
  return with_param(advised, params.num_beams > 1 ? "num_beams" : params.n > 1 ? "n" : "max_tokens");
}

}  // namespace

LLMEngine::LLMEngine(const Options& options, std::unique_ptr<Executor> executor, const Tokenizer* tokenizer,
                     const Clock& clock)
    : executor_(std::move(executor)),
      clock_(clock),
      scheduler_(options.scheduler, options.blocks, clock),
      shared_inputs_(scheduler_, options.blocks.share_identical_inputs),
      output_processor_(scheduler_, tokenizer, clock),
      encode_pacer_(options.encode_slice),
      trace_(options.max_trace_steps) {}

Status LLMEngine::add_request(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                              const RequestOptions& options) {
  return add_group(request_id, std::move(inputs), params, EncodedInput(), options);
}

Status LLMEngine::add_request(const std::string& request_id, const EncodedInput& encoded, EncoderDecoderInputs inputs,
                              const SamplingParams& params, const RequestOptions& options) {
  if (!shared_inputs_.owns(encoded)) {
    return field_error("encoded_input",
                       encoded.has_value() ? "the handle is of another engine" : "the handle is empty");
  }
  inputs.encoder_prompt = encoded.text();
  inputs.encoder_prompt_token_ids = encoded.content().token_ids;
  inputs.encoder_features = encoded.content().features;
  return add_group(request_id, std::move(inputs), params, encoded, options);
}

StatusOr<EncodedInput> LLMEngine::encode(const EncoderDecoderInputs& inputs) {
  shared_inputs_.collect_dropped();
  const int64_t num_tokens = inputs.num_encoder_tokens();
  if (num_tokens == 0) return field_error("prompt", "there is no encoder input");
  // The least that a request over it may ask for.
  if (const Status fits = scheduler_.check_admission(num_tokens, 1, 1); !fits.ok()) return with_param(fits, "prompt");
  return shared_inputs_.hold(inputs.encoder_content(), inputs.encoder_prompt);
}

// `encoded` is empty, or the handle that the encoder side came from.
Status LLMEngine::add_group(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                            const EncodedInput& encoded, const RequestOptions& options, const Continued* continued) {
  if (requests_.contains(request_id)) {
    return field_error("id", str_cat("a request \"", request_id, "\" is in flight already"));
  }
  RETURN_IF_ERROR(check_internals(inputs, params));
  if (inputs.open_token.has_value()) return open_group(request_id, std::move(inputs), params, encoded, options);
  SequenceGroup::Init init;
  init.group_id = GroupId(next_group_id_);
  init.request_id = request_id;
  init.params = params;
  init.inputs = inputs;
  init.encoder_digest = encoded.has_value() ? shared_inputs_.attach(init.group_id, encoded)
                                            : shared_inputs_.attach(init.group_id, inputs.encoder_content());
  init.first_seq_id = scheduler_.next_seq_id();
  init.arrival_time = options.arrival_time.value_or(clock_.now());
  if (continued != nullptr) init.continues = continued->group_id;
  auto group = std::make_unique<SequenceGroup>(init);
  const SequenceGroup& added = *group;
  if (const Status taken = scheduler_.add_seq_group(std::move(group)); !taken.ok()) {
    shared_inputs_.detach(init.group_id);
    return with_advice(taken, params);
  }
  output_processor_.add_group(added, std::move(inputs), options.stream,
                              continued != nullptr ? continued->metrics : RequestMetrics());
  requests_.emplace(request_id, init.group_id);
  ++next_group_id_;
  return ok_status();
}

// Runs the prompt as far as its open token and lets the model choose that one.
Status LLMEngine::open_group(const std::string& request_id, EncoderDecoderInputs inputs, const SamplingParams& params,
                             const EncodedInput& encoded, const RequestOptions& options) {
  const auto num_before = static_cast<size_t>(inputs.open_token->index);
  CHECK(num_before > 0 && num_before < inputs.prompt_token_ids.size(), "an open token stands inside the prompt");
  const Status fits = scheduler_.check_admission(
      inputs.num_encoder_tokens(), static_cast<int64_t>(inputs.prompt_token_ids.size()) + params.max_tokens,
      params.num_seqs());
  if (!fits.ok()) return with_advice(fits, params);
  OpenRequest open{std::move(inputs), params, options, encoded};
  open.options.arrival_time = options.arrival_time.value_or(clock_.now());
  if (!open.encoded.has_value()) {
    ASSIGN_OR_RETURN(open.encoded, encode(open.inputs));
  }
  EncoderDecoderInputs prefix = open.inputs;
  prefix.open_token.reset();
  prefix.prompt_token_ids.resize(num_before);
  SamplingParams choice;
  choice.max_tokens = 1;
  choice.allowed_token_ids = open.inputs.open_token->choices;
  std::ranges::sort(choice.allowed_token_ids);
  RETURN_IF_ERROR(
      add_group(request_id, std::move(prefix), choice, open.encoded, {.arrival_time = open.options.arrival_time}));
  open_requests_.emplace(request_id, std::move(open));
  return ok_status();
}

// Outputs of this step that only say what an open token is go; the requests proper take their place.
void LLMEngine::close_prompts(size_t num_outputs_before, std::vector<RequestOutput>& outputs) {
  if (open_requests_.empty()) return;
  for (size_t i = num_outputs_before; i < outputs.size(); ++i) {
    const auto found = open_requests_.find(outputs[i].request_id);
    if (found == open_requests_.end() || !outputs[i].finished) continue;
    OpenRequest open = std::move(found->second);
    open_requests_.erase(found);
    if (!outputs[i].error.empty()) continue;
    open.inputs.prompt_token_ids[static_cast<size_t>(open.inputs.open_token->index)] =
        outputs[i].outputs.front().token_ids.front();
    open.inputs.open_token.reset();
    const std::string request_id = outputs[i].request_id;
    const auto group = requests_.find(request_id);
    const Continued continued{group->second, outputs[i].metrics};
    requests_.erase(group);
    const Status added =
        add_group(request_id, std::move(open.inputs), open.params, open.encoded, open.options, &continued);
    if (added.ok()) {
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i--));
    } else {
      outputs[i].outputs.clear();
      outputs[i].error = error_message(added);
      outputs[i].error_param = error_param(added);
    }
  }
}

// Of parameters that no request on the wire has: their callers are told all the same.
Status LLMEngine::check_internals(const EncoderDecoderInputs& inputs, const SamplingParams& params) const {
  const auto num_prompt = static_cast<int64_t>(inputs.prompt_token_ids.size());
  if (params.probe.has_value() && (params.probe->prompt_index < 0 || params.probe->prompt_index >= num_prompt)) {
    return field_error("probe",
                       str_cat("prompt index ", params.probe->prompt_index, " of a prompt of ", num_prompt, " tokens"));
  }
  if (!params.capture_cross_attention) return ok_status();
  const int64_t num_heads = std::ssize(executor_->info().spec.alignment_heads),
                num_positions = inputs.num_encoder_tokens();
  if (num_heads == 0) {
    return with_param(absl::UnimplementedError("the model names no heads whose cross-attention aligns"),
                      "capture_cross_attention");
  }
  const int64_t bytes = num_heads * num_prompt * num_positions * static_cast<int64_t>(sizeof(float));
  if (bytes <= kMaxCaptureBytes) return ok_status();
  return with_param(
      resource_exhausted("the cross-attention of ", num_prompt, " tokens to ", num_positions, " positions by ",
                         num_heads, " heads wants ", format_bytes(static_cast<uint64_t>(bytes)), ", more than ",
                         format_bytes(static_cast<uint64_t>(kMaxCaptureBytes))),
      "capture_cross_attention");
}

StatusOr<RequestOutput> LLMEngine::abort_request(const std::string& request_id) {
  const auto found = requests_.find(request_id);
  if (found == requests_.end()) return not_found("no request \"", request_id, "\" is in flight");
  RequestOutput output;
  output_processor_.abort(found->second, output);
  shared_inputs_.detach(found->second);
  requests_.erase(found);
  if (const auto open = open_requests_.find(request_id); open != open_requests_.end()) {
    // It has not begun: a request that only scores has no outputs then, as ever.
    if (open->second.params.score_only) output.outputs.clear();
    open_requests_.erase(open);
  }
  return output;
}

Status LLMEngine::step(std::vector<RequestOutput>& outputs) {
  const TimePoint begin = clock_.now();
  const size_t num_outputs_before = outputs.size();
  plan_.step = static_cast<uint64_t>(stats_.num_steps);

  shared_inputs_.collect_dropped();
  scheduler_.set_max_encoder_tokens_beside(encode_pacer_.max_tokens_beside());
  scheduler_.schedule(plan_.scheduled);
  if (plan_.scheduled.empty()) return ok_status();
  plan_.num_long_encode_tasks = encode_pacer_.slice_tasks();
  output_processor_.plan_rows(plan_);
  RETURN_IF_ERROR(executor_->submit(plan_));
  RETURN_IF_ERROR(executor_->collect(plan_.step, output_));
  scheduler_.mark_computed(plan_.scheduled, output_.long_encode_ended);
  encode_pacer_.count(plan_.scheduled, output_);
  output_processor_.process(plan_, output_, outputs);
  close_prompts(num_outputs_before, outputs);
  output_.captured.clear();  // large, and unused from here on
  output_.captured_encodes.clear();

  count_step(num_outputs_before, outputs, seconds(clock_.now() - begin));
  count_inputs();
  scheduler_.free_finished_seq_groups();
  return ok_status();
}

void LLMEngine::count_inputs() {
  const SchedulerOutputs& scheduled = plan_.scheduled;
  stats_.num_encoder_cache_hits += scheduled.num_encoder_cache_hits;
  for (const PlannedEncode& encode : scheduled.encodes) count_encode(encode.group_id);
  if (scheduled.long_encode.begins) {
    ++stats_.num_long_encodes;
    count_encode(scheduled.long_encode.group_id);
  }
  for (const SequenceGroupMetadata& group : scheduled.groups) {
    if (scheduler_.find(group.group_id)->is_finished()) shared_inputs_.detach(group.group_id);
  }
  for (const GroupId gone : scheduled.finished) shared_inputs_.detach(gone);
}

void LLMEngine::count_encode(GroupId group_id) {
  const SequenceGroup& group = *scheduler_.find(group_id);
  const bool again =
      group.encoder_digest().has_value() ? shared_inputs_.count_encode(group_id) : group.num_preemptions() > 0;
  stats_.num_reencodes += again ? 1 : 0;
}

void LLMEngine::count_step(size_t num_outputs_before, const std::vector<RequestOutput>& outputs, double step_seconds) {
  const SchedulerOutputs& scheduled = plan_.scheduled;
  trace_.begin_step(plan_.step, scheduled, step_seconds);
  for (size_t i = num_outputs_before; i < outputs.size(); ++i) {
    if (!outputs[i].finished) continue;
    trace_.add_finished(outputs[i].request_id);
    requests_.erase(outputs[i].request_id);
  }
  if (trace_.is_recording()) {
    for (const SequenceGroupMetadata& group : scheduled.groups) {
      if (group.is_prompt) trace_.add_started(scheduler_.find(group.group_id)->request_id());
    }
  }
  int64_t num_sampled = 0;
  for (const RowPlan& row : plan_.rows) num_sampled += row.target_token < 0 ? 1 : 0;
  stats_.num_generated_tokens += num_sampled;
  int64_t prompt_rows = 0;
  for (const SequenceGroupMetadata& group : scheduled.groups) {
    for (const SequenceData& seq : group.seq_data)
      prompt_rows += group.is_prompt ? static_cast<int64_t>(seq.token_ids.size()) : 0;
  }
  stats_.num_prompt_tokens += prompt_rows;
  stats_.num_encoder_tokens += scheduled.num_encoder_tokens;
  stats_.num_preemptions += scheduled.num_preempted;
  stats_.num_swaps_out += scheduled.num_swapped_out;
  stats_.num_swaps_in += scheduled.num_swapped_in;
  stats_.max_running_seqs = std::max<int64_t>(stats_.max_running_seqs, scheduled.num_seqs);
  stats_.encode_seconds += output_.encode_seconds;
  stats_.decode_seconds += output_.decode_seconds;
  stats_.step_seconds += step_seconds;
  ++stats_.num_steps;
}

}  // namespace transept
