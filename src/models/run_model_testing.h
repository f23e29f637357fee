// For tests: runs any encoder/decoder model over a few short requests, without an engine. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/checked_math.h"
#include "models/model.h"

namespace transept::testing {

// Makes reproducible features: values in [-1, 1) of a linear congruential generator (constants of Numerical Recipes).
inline std::shared_ptr<EncoderFeatures> seeded_features(std::vector<int64_t> shape, int32_t num_positions,
                                                        uint32_t seed = 1) {
  auto features = std::make_shared<EncoderFeatures>();
  features->shape = std::move(shape);
  features->num_positions = num_positions;
  int64_t count = 1;
  for (const int64_t dim : features->shape) count *= dim;
  uint32_t state = seed;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    features->values.push_back(static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
  }
  return features;
}

// Returns an input that fits the family of `config`: four ids, or media of four positions.
inline EncoderContent short_content(const Json& config) {
  if (const Json* bins = config.find("num_mel_bins")) return {{}, seeded_features({bins->as_int(), 8}, 4)};
  if (config.find("encoder_num_hidden_layers") != nullptr) return {{}, seeded_features({2047}, 4)};  // Moonshine
  return {{0, 7, 9, 2}};
}

class RunModel final {
 public:
  explicit RunModel(AttentionBackend& attention, Isa isa = Isa::kGeneric, int num_threads = 1)
      : attention_(attention), isa_(isa), threads_(num_threads) {}

  ThreadPool& threads() { return threads_; }

  struct Output {
    std::vector<float> encoder;  // [positions, d_model]
    std::vector<float> logits;   // [decoder_ids.size(), vocab_size]
  };

  struct Request {
    EncoderContent content;
    std::vector<int32_t> decoder_ids;
  };
  // Encodes all inputs in one batch, then feeds the decoder ids of all requests in one step. One output per request.
  std::vector<Output> run(const Model& model, const std::vector<Request>& requests, OpCounters* counters = nullptr) {
    Arena::Scope scope(arena_);
    Context context{threads_, arena_, isa_, false, counters};
    const ModelSpec& spec = model.spec();
    const Packed packed(requests);
    const std::vector<TensorView> layers = make_kv(spec, packed.num_blocks);
    const KvCaches kv{layers, layers};

    const int32_t num_seqs = static_cast<int32_t>(requests.size());
    EncodeBatch encode{packed.encoder_ids, packed.features, packed.encoder_positions, {}};
    encode.attention = {num_seqs, packed.max_encoder_len, packed.max_encoder_len, packed.encoder_loc,
                        {},       packed.encoder_lens};
    encode.attention.kv_start_loc = packed.encoder_loc;
    EncodeState state{arena_.tensor(DType::kFloat32, {encode.num_tokens(), spec.d_model})};
    model.encode(context, encode, {0, spec.num_encoder_layers}, state);
    AttentionMetadata write;
    write.block_size = kBlockSize;
    write.slot_mapping = packed.cross_slots;
    model.write_cross_kv(context, {state.hidden, nullptr}, write, kv, {0, spec.num_decoder_layers});

    std::vector<int32_t> rows(packed.decoder_ids.size());
    std::iota(rows.begin(), rows.end(), 0);
    ForwardBatch forward{packed.decoder_ids, packed.decoder_positions, rows, {}, {}, kv};
    forward.self = {num_seqs,           packed.max_decoder_len, packed.max_decoder_len,
                    packed.decoder_loc, packed.contexts,        packed.decoder_lens,
                    packed.self_tables, packed.self_stride,     kBlockSize};
    forward.self.slot_mapping = packed.self_slots;
    forward.cross = {num_seqs,  packed.max_decoder_len, packed.max_encoder_len, packed.decoder_loc,
                     {},        packed.encoder_lens,    packed.cross_tables,    packed.cross_stride,
                     kBlockSize};
    forward.cross.group_start_loc = packed.groups;
    const int64_t num_rows = forward.num_tokens();
    const TensorView hidden = arena_.tensor(DType::kFloat32, {num_rows, spec.d_model});
    attention_.plan(context, forward);
    model.decode(context, forward, {0, spec.num_decoder_layers}, hidden);
    std::vector<float> logits(static_cast<size_t>(num_rows * spec.vocab_size));
    model.lm_head().logits(context, hidden, TensorView(logits.data(), DType::kFloat32, {num_rows, spec.vocab_size}));
    return split(spec, packed, state.hidden.f32(), logits.data());
  }

  // Returns the logits of the last decoder row, [vocab_size], after encoding `content` and feeding three tokens.
  std::vector<float> logits(const Model& model, OpCounters* counters = nullptr,
                            const EncoderContent& content = {{0, 7, 9, 2}}) {
    const std::vector<float> all = run(model, {{content, {2, 0, 5}}}, counters)[0].logits;
    return {all.end() - model.spec().vocab_size, all.end()};
  }

 private:
  static constexpr int32_t kBlockSize = 16;

  // The buffers behind the views of a step.
  struct Packed {
    explicit Packed(const std::vector<Request>& requests) {
      for (const Request& request : requests) {
        self_stride = std::max(self_stride, blocks(request.decoder_ids.size()));
        cross_stride = std::max(cross_stride, blocks(static_cast<size_t>(request.content.num_positions())));
      }
      for (const Request& request : requests) add(request);
    }

    static int32_t blocks(size_t tokens) { return static_cast<int32_t>(ceil_div(static_cast<int64_t>(tokens), 16)); }

    void add(const Request& request) {
      const EncoderContent& content = request.content;
      encoder_ids.insert(encoder_ids.end(), content.token_ids.begin(), content.token_ids.end());
      if (content.features != nullptr) features.emplace_back(*content.features);
      decoder_ids.insert(decoder_ids.end(), request.decoder_ids.begin(), request.decoder_ids.end());
      contexts.push_back(0);
      groups.push_back(groups.back() + 1);
      add_side(content.num_positions(), cross_stride, max_encoder_len, encoder_lens, encoder_loc, encoder_positions,
               cross_tables, cross_slots);
      add_side(static_cast<int32_t>(request.decoder_ids.size()), self_stride, max_decoder_len, decoder_lens,
               decoder_loc, decoder_positions, self_tables, self_slots);
    }

    void add_side(int32_t length, int32_t stride, int32_t& max_len, std::vector<int32_t>& lens,
                  std::vector<int32_t>& loc, std::vector<int32_t>& positions, std::vector<int32_t>& tables,
                  std::vector<int64_t>& slots) {
      max_len = std::max(max_len, length);
      lens.push_back(length);
      loc.push_back(loc.back() + length);
      for (int32_t i = 0; i < length; ++i) {
        positions.push_back(i);
        slots.push_back(int64_t{num_blocks} * 16 + i);
      }
      for (int32_t i = 0; i < stride; ++i)
        tables.push_back(i < blocks(static_cast<size_t>(length)) ? num_blocks++ : -1);
    }

    std::vector<int32_t> encoder_ids, decoder_ids, encoder_positions, decoder_positions;
    std::vector<FeaturesView> features;
    std::vector<int32_t> encoder_lens, decoder_lens, contexts, encoder_loc = {0}, decoder_loc = {0}, groups = {0};
    std::vector<int32_t> self_tables, cross_tables;
    std::vector<int64_t> self_slots, cross_slots;
    int32_t self_stride = 0, cross_stride = 0, max_encoder_len = 0, max_decoder_len = 0, num_blocks = 0;
  };

  std::vector<TensorView> make_kv(const ModelSpec& spec, int32_t num_blocks) {
    const size_t layer_bytes = attention_.block_bytes(spec.kv[0], kBlockSize, DType::kFloat32);
    const size_t layer_pool = layer_bytes * static_cast<size_t>(num_blocks);
    pool_.assign(layer_pool * static_cast<size_t>(spec.num_decoder_layers) / sizeof(float), 0.0f);
    std::vector<TensorView> layers;
    layers.reserve(static_cast<size_t>(spec.num_decoder_layers));
    for (int32_t i = 0; i < spec.num_decoder_layers; ++i) {
      layers.emplace_back(reinterpret_cast<char*>(pool_.data()) + layer_pool * static_cast<size_t>(i), DType::kUInt8,
                          std::initializer_list<int64_t>{num_blocks, static_cast<int64_t>(layer_bytes)});
    }
    return layers;
  }

  static std::vector<Output> split(const ModelSpec& spec, const Packed& packed, const float* hidden,
                                   const float* logits) {
    std::vector<Output> outputs;
    for (size_t i = 0; i < packed.encoder_lens.size(); ++i) {
      outputs.push_back({{hidden + int64_t{packed.encoder_loc[i]} * spec.d_model,
                          hidden + int64_t{packed.encoder_loc[i + 1]} * spec.d_model},
                         {logits + int64_t{packed.decoder_loc[i]} * spec.vocab_size,
                          logits + int64_t{packed.decoder_loc[i + 1]} * spec.vocab_size}});
    }
    return outputs;
  }

  AttentionBackend& attention_;
  Isa isa_;
  ThreadPool threads_;
  Arena arena_{1 << 22};
  std::vector<float> pool_;
};

}  // namespace transept::testing
