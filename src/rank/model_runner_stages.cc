// What a runner does as a stage of a pipeline: its own layers of an encode and of a step, whose rows come from the
// stage before and go to the one behind. Errors of the group are what the step ends with: its barrier says them again.
#include <algorithm>

#include "base/check.h"
#include "rank/model_runner.h"

namespace transept {

// The processors of other stages' threads are theirs again before those can have anything to do.
class EncoderDecoderModelRunner::ThreadsOfStep final {
 public:
  explicit ThreadsOfStep(EncoderDecoderModelRunner& runner) : runner_(runner) {
    if (runner_.is_alone_) runner_.threads_.use_threads(runner_.num_threads_alone());
  }
  ~ThreadsOfStep() {
    if (runner_.is_alone_) runner_.threads_.use_threads(runner_.options_.num_threads);
  }
  ThreadsOfStep(const ThreadsOfStep&) = delete;
  ThreadsOfStep& operator=(const ThreadsOfStep&) = delete;

 private:
  EncoderDecoderModelRunner& runner_;
};

// A rank that waits has no work then, but its processor has: it sleeps.
void EncoderDecoderModelRunner::set_alone(bool is_alone) {
  if (stage_ == nullptr || num_threads_alone() == options_.num_threads) return;
  is_alone_ = is_alone;
  options_.ranks->set_spinning(!is_alone);
}

void EncoderDecoderModelRunner::make_stage() {
  if (loaded_.stages.empty()) return;
  stage_ = std::make_unique<StageLinks>(*options_.ranks, loaded_.place, loaded_.num_encoding_stages());
  // An encode from layer 0 reads the inputs, with what the first stage alone has.
  CHECK(stage_->place().is_first() || !stage_->encodes() || loaded_.own.encoder.begin > 0);
}

// Rows that are spliced belong to the embeddings, which the first stage reads.
bool EncoderDecoderModelRunner::has_kv_of(const KvSpec& kv, int32_t layer) const {
  if (stage_ == nullptr) return true;
  if (kv.kind == KvKind::kEncoderRows) return stage_->place().is_first();
  return loaded_.own.decoder.begin <= layer && layer < loaded_.own.decoder.end;
}

int32_t EncoderDecoderModelRunner::num_own_layers(const KvSpec& kv) const {
  return static_cast<int32_t>(std::ranges::count_if(kv.layers, [&](int32_t layer) { return has_kv_of(kv, layer); }));
}

// Of each spec a view a layer: `own` of this stage's, which are counted by themselves, and an empty one of others.
std::vector<std::vector<TensorView>> EncoderDecoderModelRunner::kv_of_all_layers(
    FunctionRef<TensorView(size_t spec, size_t place)> own) const {
  std::vector<std::vector<TensorView>> views(kv_specs_.size());
  for (size_t spec = 0; spec < kv_specs_.size(); ++spec) {
    size_t place = 0;
    for (const int32_t layer : kv_specs_[spec].layers) {
      views[spec].push_back(has_kv_of(kv_specs_[spec], layer) ? own(spec, place++) : TensorView());
    }
  }
  return views;
}

// The rows go on through all stages: behind the last one that has a layer of the encode each has them whole, and writes
// the cross KV of its own layers. The stages before get them when the step ends.
void EncoderDecoderModelRunner::encode_stage(Context& context, const EncodeBatch& batch, Activations& state) {
  const bool talks = !context.dry_run;
  if (talks && !stage_->place().is_first()) stage_->take(state.x).IgnoreError();
  if (stage_->encodes()) {
    const ThreadsOfStep threads(*this);
    state.next_layer = loaded_.own.encoder.begin;
    model().encode(context, batch, loaded_.own.encoder, state);
  }
  if (talks && !stage_->place().is_last()) stage_->hand_on(state.x).IgnoreError();
}

void EncoderDecoderModelRunner::decode_stage(Context& context, const ForwardBatch& forward, Activations& state,
                                             const TensorView& hidden) {
  const bool talks = !context.dry_run;
  const StagePlace& place = stage_->place();
  state.next_layer = loaded_.own.decoder.begin;
  if (!place.is_first() && talks) stage_->take(state.x).IgnoreError();
  {
    const ThreadsOfStep threads(*this);
    if (place.is_first()) model().embed(context, forward, state.x);
    model().decode(context, forward, loaded_.own.decoder, state);
    if (place.is_last()) model().finish(context, forward, state, hidden);
  }
  if (!place.is_last() && talks) stage_->hand_on(state.x).IgnoreError();
}

// ---- Back to the first stage

namespace {

TensorView line_of(float* begin, int64_t count) { return {begin, DType::kFloat32, {1, count}}; }

}  // namespace

int64_t EncoderDecoderModelRunner::num_encoded_floats(const InputBatch& batch) const {
  int64_t count = 0;
  for (const EncodeInputs& inputs : batch.encodes()) count += rows_of(inputs).num_elements();
  return count;
}

int64_t EncoderDecoderModelRunner::num_returned_floats(const InputBatch& batch) const {
  const int64_t num_rows = std::ssize(batch.forward().logits_rows);
  return num_rows * spec().d_model + (stage_->returns_encoded() ? num_encoded_floats(batch) : 0);
}

// At the end of a step, when all rows of it have come: the first stage then sends nothing more of this step, and may be
// waited for.
void EncoderDecoderModelRunner::give_back(int64_t num_encoded, const TensorView& hidden) {
  if (stage_->place().is_last()) {
    stage_->give_back(line_of(reinterpret_cast<float*>(encoder_buffer_.data()), num_encoded)).IgnoreError();
    stage_->give_back(hidden).IgnoreError();
  }
  if (stage_->place().is_first() || batch_->num_captured_rows() == 0) return;
  fetch_captured();
  gather_captured();
  captured_ = {};
}

// No-op if they are here, and on all stages but the first.
void EncoderDecoderModelRunner::take_returned(BegunStep& step) {
  if (!stage_->place().is_first() || step.has_returned) return;
  const InputBatch& batch = *step.batch;
  const int64_t num_encoded = stage_->returns_encoded() ? num_encoded_floats(batch) : 0;
  step.encoded.resize(static_cast<size_t>(num_encoded));
  stage_->take_back(line_of(step.encoded.data(), num_encoded)).IgnoreError();
  const int64_t num_rows = std::ssize(batch.forward().logits_rows);
  step.returned.resize(static_cast<size_t>(num_rows * spec().d_model));
  step.hidden = TensorView(step.returned.data(), DType::kFloat32, {num_rows, spec().d_model});
  stage_->take_back(step.hidden).IgnoreError();
  step.has_returned = true;
}

void EncoderDecoderModelRunner::make_way() {
  if (stage_ == nullptr || !stage_->place().is_first()) return;
  constexpr size_t kOfMessages = 64;  // what says their sizes
  const auto bytes_of = [&](const BegunStep& step) {
    return step.has_returned ? 0 : static_cast<size_t>(num_returned_floats(*step.batch)) * sizeof(float) + kOfMessages;
  };
  size_t owed = 0;
  for (size_t i = 0; i < num_begun_; ++i) owed += bytes_of(begun_step(i));
  for (size_t i = 0; i < num_begun_ && owed > stage_->bytes_ahead(); ++i) {
    owed -= bytes_of(begun_step(i));
    take_returned(begun_step(i));
  }
}

void EncoderDecoderModelRunner::end_stage(Context& context, BegunStep& step) {
  const ThreadsOfStep threads(*this);
  end_encodes(context, step);  // others wait for the rows
  if (chooses()) choose(context, step);
}

// The stages before the last one that encodes have the rows now: each writes the cross KV of its own layers.
void EncoderDecoderModelRunner::end_encodes(Context& context, BegunStep& step) {
  if (has_encoded() || batch_->encodes().empty()) return;
  const int64_t num_floats = num_encoded_floats(*batch_);
  float* rows = step.encoded.data();
  if (!stage_->place().is_first()) {
    rows = reinterpret_cast<float*>(encoder_buffer_.data());
    stage_->take(line_of(rows, num_floats)).IgnoreError();
  }
  if (stage_->passes_encoded()) stage_->hand_on(line_of(rows, num_floats)).IgnoreError();
  for (const EncodeInputs& inputs : batch_->encodes()) {
    TensorView own = rows_of(inputs);
    own.raw = rows;
    write_encoded(context, inputs, own);
    count_encodes(step, inputs, own);
    rows += own.num_elements();
  }
}

bool EncoderDecoderModelRunner::must_end() const {
  if (num_begun_ == 0) return false;
  const BegunStep& newest = steps_[(oldest_step_ + num_begun_ - 1) % steps_.size()];
  return newest.batch->num_captured_rows() > 0;
}

int EncoderDecoderModelRunner::num_ranks_told_of_ends() const {
  return stage_ == nullptr ? 0 : stage_->num_ranks_told_of_ends();
}

}  // namespace transept
