// For tests: runs any encoder/decoder model over one short request, without an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/model.h"

namespace transept::testing {

class RunModel final {
 public:
  explicit RunModel(AttentionBackend& attention) : attention_(attention) {}

  ThreadPool& threads() { return threads_; }

  // Logits of the last decoder row after encoding four tokens and feeding three: [vocab_size].
  std::vector<float> logits(const Model& model, OpCounters* counters = nullptr) {
    Arena::Scope scope(arena_);
    Context context{threads_, arena_, Isa::kGeneric, false, counters};
    const ModelSpec& spec = model.spec();
    const std::vector<int32_t> encoder_ids = {0, 7, 9, 2}, decoder_ids = {2, 0, 5};
    const int32_t encoder_len = static_cast<int32_t>(encoder_ids.size());
    const int32_t decoder_len = static_cast<int32_t>(decoder_ids.size());
    // One block of 16 slots for each of self and cross.
    const size_t layer_bytes = attention_.block_bytes(spec.kv[0], 16, DType::kFloat32);
    std::vector<float> pool(2 * layer_bytes * static_cast<size_t>(spec.num_decoder_layers) / sizeof(float));
    std::vector<TensorView> layers;
    for (int32_t i = 0; i < spec.num_decoder_layers; ++i) {
      TensorView layer(reinterpret_cast<char*>(pool.data()) + 2 * layer_bytes * static_cast<size_t>(i), DType::kUInt8,
                       {2, static_cast<int64_t>(layer_bytes)});
      layers.push_back(layer);
    }
    const std::vector<int32_t> encoder_positions = {0, 1, 2, 3}, decoder_positions = {0, 1, 2};
    const std::vector<int32_t> encoder_loc = {0, encoder_len}, encoder_lens = {encoder_len},
                               decoder_loc = {0, decoder_len};
    const std::vector<int32_t> contexts = {0}, decoder_lens = {decoder_len}, self_table = {0}, cross_table = {1},
                               groups = {0, 1};
    const std::vector<int64_t> self_slots = {0, 1, 2}, cross_slots = {16, 17, 18, 19};
    const std::vector<int32_t> rows = {decoder_len - 1};

    EncodeBatch encode{encoder_ids, {}, encoder_positions, {}};
    encode.attention = {1, encoder_len, encoder_len, encoder_loc, {}, encoder_lens};
    encode.attention.kv_start_loc = encoder_loc;
    EncodeState state{arena_.tensor(DType::kFloat32, {encoder_len, spec.d_model})};
    model.encode(context, encode, {0, spec.num_encoder_layers}, state);
    AttentionMetadata write;
    write.block_size = 16;
    write.slot_mapping = cross_slots;
    const KvCaches kv{layers, layers};
    model.write_cross_kv(context, {state.hidden, nullptr}, write, kv, {0, spec.num_decoder_layers});

    ForwardBatch forward{decoder_ids, decoder_positions, rows, {}, {}, kv};
    forward.self = {1, decoder_len, decoder_len, decoder_loc, contexts, decoder_lens, self_table, 1, 16};
    forward.self.slot_mapping = self_slots;
    forward.cross = {1, decoder_len, encoder_len, decoder_loc, {}, encoder_lens, cross_table, 1, 16};
    forward.cross.group_start_loc = groups;
    const TensorView hidden = arena_.tensor(DType::kFloat32, {1, spec.d_model});
    attention_.plan(context, forward);
    model.decode(context, forward, {0, spec.num_decoder_layers}, hidden);
    std::vector<float> out(static_cast<size_t>(spec.vocab_size));
    model.lm_head().logits(context, hidden, TensorView(out.data(), DType::kFloat32, {1, spec.vocab_size}));
    return out;
  }

 private:
  AttentionBackend& attention_;
  ThreadPool threads_{1};  // the work is too small to share
  Arena arena_{1 << 22};
};

}  // namespace transept::testing
