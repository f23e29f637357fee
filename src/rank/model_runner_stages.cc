// What a runner does as a stage of a pipeline: its own layers of an encode and of a step, whose rows come from the
// stage before and go to the one behind. Errors of the group are what the step ends with: its barrier says them again.
#include <algorithm>

#include "base/check.h"
#include "rank/model_runner.h"

namespace transept {

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

// All stages have the rows in the end: each writes the cross KV of its own layers.
void EncoderDecoderModelRunner::encode_stage(Context& context, const EncodeBatch& batch, Activations& state) const {
  const bool talks = !context.dry_run;
  if (stage_->encodes()) {
    state.next_layer = loaded_.own.encoder.begin;
    if (talks && !stage_->place().is_first()) stage_->take(state.x).IgnoreError();
    model().encode(context, batch, loaded_.own.encoder, state);
    if (talks && !stage_->ends_encodes()) stage_->hand_on(state.x).IgnoreError();
  }
  if (talks) stage_->share_encoded(state.x).IgnoreError();
}

void EncoderDecoderModelRunner::decode_stage(Context& context, const ForwardBatch& forward, Activations& state,
                                             const TensorView& hidden) const {
  const bool talks = !context.dry_run;
  const StagePlace& place = stage_->place();
  state.next_layer = loaded_.own.decoder.begin;
  if (place.is_first()) {
    model().embed(context, forward, state.x);
  } else if (talks) {
    stage_->take(state.x).IgnoreError();
  }
  model().decode(context, forward, loaded_.own.decoder, state);
  if (place.is_last()) {
    model().finish(context, forward, state, hidden);
  } else if (talks) {
    stage_->hand_on(state.x).IgnoreError();
  }
  if (talks) stage_->return_hidden(hidden).IgnoreError();
}

}  // namespace transept
