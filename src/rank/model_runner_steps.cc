// What a runner does in a step.
#include <algorithm>
#include <chrono>
#include <new>

#include "base/check.h"
#include "ops/rows.h"
#include "rank/capture_encodes.h"
#include "rank/check_part.h"
#include "rank/model_runner.h"

namespace transept {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// ---- A step

// One for each that may have begun and not ended.
void EncoderDecoderModelRunner::make_steps() {
  const bool ends_later = options_.ranks != nullptr && options_.ranks->rank() < num_ranks_told_of_ends();
  steps_ = std::vector<BegunStep>(static_cast<size_t>(ends_later ? stage_->place().num_stages : 1));
  for (BegunStep& step : steps_) step.batch = std::make_unique<InputBatch>(batch_limits());
  batch_ = steps_.front().batch.get();
}

EncoderDecoderModelRunner::BegunStep& EncoderDecoderModelRunner::begun_step(size_t i) {
  return steps_[(oldest_step_ + i) % steps_.size()];
}

Status EncoderDecoderModelRunner::execute(const StepPlan& plan, StepOutput& output) {
  RETURN_IF_ERROR(begin_step(plan, output));
  return end_step();
}

Status EncoderDecoderModelRunner::begin_step(const StepPlan& plan, StepOutput& output, bool is_alone) {
  CHECK(num_begun_ < steps_.size(), "more steps have begun than may be in flight");
  RETURN_IF_ERROR(check_part(plan, spec().part));
  set_alone(is_alone);
  if (is_alone_) ++num_steps_alone_;
  make_way();
  output.step = plan.step;
  BegunStep& step = begun_step(num_begun_);
  step.plan = &plan;
  step.output = &output;
  step.has_returned = false;
  batch_ = step.batch.get();
  if (long_encode_ != nullptr) long_encode_->drop_unless_wanted(plan.scheduled.long_encode);
  kv_->apply(plan.scheduled.moves);
  if (!plan.scheduled.moves.truncated.empty()) poison_slots(plan.scheduled.moves.truncated);
  if (shortlists_ != nullptr) shortlists_->begin_step(threads_, plan.scheduled);
  batch_->build(plan, kv_caches(), shortlists_.get());
  Context context = make_context(*arena_, false);
  Context encode_context = make_context(encode_arena_ != nullptr ? *encode_arena_ : *arena_, false);
  step.scope.emplace(*arena_);
  run(context, encode_context, step);
  if (stage_ != nullptr) {
    step.scope.reset();  // the next step begins before this one ends: nothing of it is in the arena
    RETURN_IF_ERROR(device_->status());
    RETURN_IF_ERROR(stage_->status());
  }
  ++num_begun_;
  return ok_status();
}

Status EncoderDecoderModelRunner::end_step() {
  CHECK(num_begun_ > 0, "no step has begun");
  if (steps_.size() > 1) set_alone(num_begun_ == 1);  // a rank that is not told of ends cannot know it better
  BegunStep& step = begun_step(0);
  oldest_step_ = (oldest_step_ + 1) % steps_.size();
  --num_begun_;
  batch_ = step.batch.get();
  {
    Context context = make_context(*arena_, false);
    const Arena::Scope scope(*arena_);
    if (stage_ != nullptr) {
      take_returned(step);
      make_way();
      end_stage(context, step);
    } else if (chooses()) {
      choose(context, step);
    }
  }
  step.on_device.reset();
  step.scope.reset();
  RETURN_IF_ERROR(device_->status());
  if (options_.ranks == nullptr) return ok_status();
  return stage_ == nullptr ? options_.ranks->barrier() : stage_->status();
}

// All that is done before the rows to score are here, and these too unless they come from another stage.
void EncoderDecoderModelRunner::run(Context& context, Context& encode_context, BegunStep& step) {
  const auto begin = std::chrono::steady_clock::now();
  const StepPlan& plan = *step.plan;
  StepOutput& output = *step.output;
  const int64_t num_tasks_before = threads_.num_tasks_done();
  CHECK(long_encode_ != nullptr || !plan.scheduled.long_encode.runs, "long encodes were not prepared for");
  output.long_encode_ended =
      long_encode_ != nullptr &&
      long_encode_->run(plan.scheduled.long_encode, plan.scheduled.bulk, plan.num_long_encode_tasks);
  output.captured_encodes.clear();
  if (output.long_encode_ended) count_encodes(step, long_encode_->inputs(), rows_of(long_encode_->inputs()));
  int64_t num_kept = 0;  // floats of rows that are returned
  for (const EncodeInputs& inputs : batch_->encodes()) {
    const TensorView rows = rows_of(inputs, num_kept);
    encode(encode_context, inputs, rows);
    if (context.dry_run) continue;
    if (has_encoded()) count_encodes(step, inputs, rows);
    if (stage_ != nullptr && stage_->returns_encoded()) num_kept += rows.num_elements();
  }
  output.encode_seconds = seconds_since(begin);
  output.num_encode_tasks = threads_.num_tasks_done() - num_tasks_before;
  const ForwardBatch& forward = batch_->forward();
  if (!context.dry_run && batch_->may_come_again()) step.on_device.emplace(device_.get());
  const bool is_returned = stage_ != nullptr && stage_->place().is_first() && !context.dry_run;
  const auto num_rows = static_cast<int64_t>(forward.logits_rows.size());
  step.hidden = is_returned ? TensorView() : context.arena.tensor(DType::kFloat32, {num_rows, spec().d_model});
  if (forward.num_tokens() > 0) decode(context, step.hidden);
  if (stage_ != nullptr && !context.dry_run) give_back(num_kept, step.hidden);
  output.decode_seconds = seconds_since(begin) - output.encode_seconds;
}

void EncoderDecoderModelRunner::choose(Context& context, BegunStep& step) {
  const auto begin = std::chrono::steady_clock::now();
  StepOutput& output = *step.output;
  if (context.dry_run) {
    if (chooses()) selector_->dry_run(context, model().lm_head(), step.hidden, step.hidden.dim(0));
    return;
  }
  selector_->select(context, model().lm_head(), step.hidden, batch_->row_requests(), output.samples);
  if (batch_->num_captured_rows() > 0) {
    fetch_captured();
    gather_captured();
    write_alignments(output);
  }
  write_captures(*step.plan, output);
  output.decode_seconds += seconds_since(begin);
}

void EncoderDecoderModelRunner::decode(Context& context, const TensorView& hidden) {
  ForwardBatch forward = batch_->forward();
  CrossCapture capture;
  if (batch_->num_captured_rows() > 0 && !context.dry_run) {
    const int64_t num_heads = static_cast<int64_t>(spec().alignment_heads.size());
    const int64_t num_rows = batch_->num_captured_rows(), num_keys = batch_->max_cross_len();
    float* const room = make_capture_room(static_cast<size_t>(num_heads * num_rows * num_keys));
    capture.heads = spec().alignment_heads;
    capture.rows = batch_->capture_rows();
    capture.out = TensorView(room, DType::kFloat32, {num_heads, num_rows, num_keys});
    forward.capture = &capture;
  }
  attention().plan(context, forward);
  const Arena::Scope scope(context.arena);
  Activations state{context.arena.tensor(DType::kFloat32, {forward.num_tokens(), spec().d_model})};
  if (stage_ != nullptr) return decode_stage(context, forward, state, hidden);
  model().embed(context, forward, state.x);
  model().decode(context, forward, {0, spec().num_decoder_layers}, state);
  model().finish(context, forward, state, hidden);
}

float* EncoderDecoderModelRunner::make_capture_room(size_t num_floats) {
  if (options_.ranks != nullptr) captured_.clear();  // 0 where another rank has the head
  captured_.resize(num_floats);
  if (device_->memory().is_host() || num_floats == 0) return captured_.data();
  captured_there_ = device_->memory().allocate(num_floats * sizeof(float), MemoryUse::kSteps);
  if (captured_there_.data() == nullptr) throw std::bad_alloc();
  return reinterpret_cast<float*>(captured_there_.data());
}

void EncoderDecoderModelRunner::fetch_captured() {
  if (captured_there_.data() == nullptr) return;
  device_->memory().copy_out(captured_.data(), captured_there_.data(), captured_.size() * sizeof(float));
  captured_there_ = {};
}

// For each row that asks, the key with the largest probability in the mean of the alignment heads; the first of equals.
void EncoderDecoderModelRunner::write_alignments(StepOutput& output) const {
  const size_t num_rows = static_cast<size_t>(batch_->num_captured_rows());
  const size_t num_keys = static_cast<size_t>(batch_->max_cross_len());
  std::vector<float> sums(num_keys);
  for (size_t i = 0; i < output.samples.rows.size(); ++i) {
    if (batch_->captured_row(i) < 0 || num_keys == 0) continue;  // a decoder-only request attends to nothing
    const size_t row = static_cast<size_t>(batch_->captured_row(i));
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t head = 0; head < spec().alignment_heads.size(); ++head) {
      const float* probabilities = captured_.data() + (head * num_rows + row) * num_keys;
      for (size_t key = 0; key < num_keys; ++key) sums[key] += probabilities[key];
    }
    output.samples.rows[i].source_index =
        static_cast<int32_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
  }
}

// Each sequence's rows, as wide as its own encoder input.
void EncoderDecoderModelRunner::write_captures(const StepPlan& plan, StepOutput& output) {
  output.captured.clear();
  if (plan.captures.empty()) return;
  const size_t num_heads = spec().alignment_heads.size(), num_rows = static_cast<size_t>(batch_->num_captured_rows());
  const size_t num_keys = static_cast<size_t>(batch_->max_cross_len());
  for (const CapturePlan& capture : plan.captures) {
    const SequenceGroupMetadata& group = plan.scheduled.groups[static_cast<size_t>(capture.group_idx)];
    const size_t num_positions = static_cast<size_t>(group.num_cross_tokens);
    const int32_t first_row = batch_->first_row(capture.group_idx, capture.seq_idx);
    CapturedRows& rows = output.captured.emplace_back();
    rows.num_heads = static_cast<int32_t>(num_heads);
    const int32_t num_rows_wanted = capture.row_end - capture.row_begin;
    rows.values.reserve(num_heads * static_cast<size_t>(num_rows_wanted) * num_positions);
    for (size_t head = 0; head < num_heads; ++head) {
      for (int32_t row = capture.row_begin; row < capture.row_end; ++row) {
        const int32_t packed_row = first_row + row;
        const auto place = static_cast<size_t>(batch_->capture_rows()[static_cast<size_t>(packed_row)]);
        const float* probabilities = captured_.data() + (head * num_rows + place) * num_keys;
        rows.values.insert(rows.values.end(), probabilities, probabilities + num_positions);
      }
    }
  }
  captured_ = {};  // a whole prompt's is large, and hardly any step wants it
}

TensorView EncoderDecoderModelRunner::rows_of(const EncodeInputs& inputs, int64_t first_float) const {
  const EncodeBatch& batch = inputs.batch();
  float* const begin = reinterpret_cast<float*>(encoder_buffer_.data()) + first_float;
  return TensorView(begin, DType::kFloat32, {batch.num_tokens(), spec().width_of(batch.consumers)});
}

void EncoderDecoderModelRunner::encode(Context& context, const EncodeInputs& inputs, const TensorView& rows) {
  Arena::Scope scope(context.arena);
  Activations state{rows};
  if (inputs.source() == RowSource::kEncode) {
    if (stage_ != nullptr) {
      encode_stage(context, inputs.batch(), state);
    } else {
      model().encode(context, inputs.batch(), {0, spec().num_encoder_layers}, state);
    }
    if (!context.dry_run) round_rows(state.x);
  } else if (!context.dry_run) {
    take_rows(context, inputs);
  }
  if (context.dry_run || has_encoded()) write_encoded(context, inputs, rows);
}

// Only a capture reads the rows from here on, besides those they are written for.
void EncoderDecoderModelRunner::write_encoded(Context& context, const EncodeInputs& inputs, const TensorView& rows) {
  const KvCaches& kv = batch_->forward().kv;
  if (inputs.writes(TableOwner::kGroup)) {
    model().write_cross_kv(context, rows, inputs.table_writes(), kv, loaded_.own.decoder);
  }
  for (size_t i = 0; i < spec().kv.size(); ++i) {
    const AttentionMetadata& write = inputs.table_writes()[i];
    if (spec().kv[i].kind != KvKind::kEncoderRows || write.slot_mapping.empty() || !chooses()) continue;
    write_row_slots(context, rows, write.slot_mapping, write.block_size, kv.specs[i][0]);
  }
}

// They are written.
void EncoderDecoderModelRunner::count_encodes(BegunStep& step, const EncodeInputs& inputs, const TensorView& rows) {
  const int64_t num_items = inputs.batch().attention.num_seqs;
  if (inputs.source() == RowSource::kEncode) counters_.num_encoder_runs += num_items;
  counters_.num_cross_kv_writes += num_items;
  if (options_.debug_poison) kv_->seal(inputs.blocks());
  if (!chooses()) return;
  capture_encodes(step.plan->encoder_captures, inputs, rows, device_->memory(), step.output->captured_encodes);
}

// Debug runs only, so it may allocate. As keys and values that are no numbers: the backend alone knows where a slot's
// bytes lie.
void EncoderDecoderModelRunner::poison_slots(std::span<const SlotRange> ranges) {
  constexpr int kNoNumber = 0xFF;  // each byte of a NaN
  for (size_t i = 0; i < kv_specs_.size(); ++i) {
    const KvSpec& spec = kv_specs_[i];
    std::vector<int64_t> slots;
    for (const SlotRange& range : ranges) {
      const int64_t first = int64_t{range.block} * info_.tables[i].tokens_per_block;
      if (range.spec != static_cast<int32_t>(i)) continue;
      for (int32_t slot = range.begin; slot < range.end; ++slot) slots.push_back(first + slot);
    }
    if (slots.empty()) continue;
    const auto num_rows = static_cast<int64_t>(slots.size());
    const int64_t num_bytes = num_rows * spec.num_kv_heads * spec.head_dim * static_cast<int64_t>(sizeof(float));
    const DeviceBuffer bytes = device_->memory().allocate(static_cast<size_t>(num_bytes), MemoryUse::kSteps);
    if (bytes.data() == nullptr) throw std::bad_alloc();
    device_->memory().fill(bytes.data(), kNoNumber, static_cast<size_t>(num_bytes));
    AttentionMetadata metadata;
    metadata.slot_mapping = slots;
    metadata.block_size = info_.tables[i].tokens_per_block;
    metadata.kv_dtype = options_.kv_dtype;
    AttentionArgs args;
    args.k = args.v = TensorView(reinterpret_cast<float*>(bytes.data()), DType::kFloat32,
                                 {num_rows, spec.num_kv_heads, spec.head_dim});
    Context context = make_context(*arena_, false);
    for (const TensorView& layer : kv_->layers(i)) {
      args.kv_cache = layer;
      attention().run(context, AttentionType::kDecoder, metadata, args);
    }
  }
}

}  // namespace transept
