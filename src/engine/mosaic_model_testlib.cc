// The model of mosaic_model_testing.h, and its reference.
#include "engine/mosaic_model_testing.h"

#include <algorithm>
#include <random>

#include "base/check.h"
#include "models/encoder_decoder_model.h"

namespace transept::testing {
namespace {

NormOptions rms() { return {.kind = NormKind::kRms, .epsilon = 1e-6f}; }

StackCase decoder_case(int32_t cross_width) {
  return {.layers = {"sf", "sf", "cf", "sf", "sf", "scf"},
          .norm = rms(),
          .has_biases = false,
          .num_kv_heads = 2,
          .cross_kv_heads = 1,
          .kv_dim = cross_width,
          .other_kv_heads = {{3, 4}},
          .other_cross_kv_heads = {{5, 2}},
          .norms_heads = true,
          .head_norm = rms(),
          .rope = {rope_frequencies(6, 100), RopePairs::kHalves, {1, 1, 1}},
          .gates = Gates::kOne,
          .is_gated = true,
          .activation = Activation::kSilu,
          .kind_without_feed_forward = uint8_t{1}};
}

StackCase encoder_case(int32_t width, std::vector<std::string> layers) {
  return {.is_decoder = false, .layers = std::move(layers), .norm = rms(), .has_biases = false, .dim = width};
}

// Pairs of features' rows, projected; and a row of a table for the place that the extras name.
class PatchInput final : public EncoderInput {
 public:
  PatchInput(Linear linear, Embedding grid) : linear_(std::move(linear)), grid_(std::move(grid)) {}

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    const Arena::Scope scope(context.arena);
    const TensorView pairs = context.arena.tensor(DType::kFloat32, {batch.num_tokens(), linear_.in_features()});
    const std::span<int32_t> places = context.arena.allocate_span<int32_t>(batch.num_tokens());
    if (!context.dry_run) {
      CHECK(batch.num_widest_rows() == batch.num_tokens() * Mosaic::kRowsAPosition);
      float* next = pairs.f32();
      auto place = places.begin();
      for (const FeaturesView& item : batch.features) {
        next = std::copy(item.values.begin(), item.values.end(), next);
        place = std::copy(item.extras.begin(), item.extras.end(), place);
      }
      CHECK(place == places.end() && next == pairs.f32() + pairs.num_elements());
    }
    linear_.forward(context, pairs, {}, x);
    grid_.add(context, places, 0, x);
  }

 private:
  Linear linear_;
  Embedding grid_;
};

}  // namespace

Mosaic::Mosaic(int32_t cross_width)
    : cross_width_(cross_width),
      decoder_case_(decoder_case(cross_width)),
      decoder_(decoder_case_, 1),
      splice_{encoder_case(kDim, {"sf"}), Checkpoint(encoder_case(kDim, {"sf"}), 2), "splice"},
      cross_{encoder_case(cross_width, {"sf", "sf"}), Checkpoint(encoder_case(cross_width, {"sf", "sf"}), 3), "cross"} {
  std::mt19937 random(5);
  std::vector<TestTensor> tensors;
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float>& values = tables_[name];
    for (int64_t i = 0; i < rows * columns; ++i) values.push_back(normal(random));
    tensors.push_back({name, "F32", {rows, columns}, bytes_of(values)});
  };
  add("tokens", kVocab, kDim, 1);
  add("head", kVocab, kDim, 0.7f);
  for (const Side* side : {&splice_, &cross_}) {
    add(side->prefix + ".patch", side->stack_case.dim, int64_t{kRowsAPosition} * kValuesARow, 0.6f);
    add(side->prefix + ".grid", kGrid, side->stack_case.dim, 0.5f);
  }
  dir_.write("model.safetensors", safetensors_bytes(tensors));
}

StatusOr<std::unique_ptr<Model>> Mosaic::make(const std::shared_ptr<WeightMap>& weights,
                                              const ModelLoadOptions& options) const {
  const auto make_encoder = [&](const Side& side) -> StatusOr<Encoder> {
    const LinearSpec spec{{{side.prefix + ".patch", "", side.stack_case.dim}}, int64_t{kRowsAPosition} * kValuesARow};
    ASSIGN_OR_RETURN(Linear patch, Linear::load(*weights, spec, options.packing));
    ASSIGN_OR_RETURN(Embedding grid, Embedding::load(*weights, side.prefix + ".grid", kGrid, side.stack_case.dim));
    ASSIGN_OR_RETURN(TransformerStack stack, side.checkpoint.stack(options.packing, options.attention));
    return Encoder{std::make_unique<PatchInput>(std::move(patch), std::move(grid)), std::move(stack)};
  };
  ModelSpec spec;
  spec.family = "mosaic";
  spec.d_model = kDim;
  spec.vocab_size = kVocab;
  spec.encoder_width = cross_width_;
  spec.position_axes = kNumAxes;
  spec.max_encoder_positions = kMaxCross;
  spec.max_decoder_positions = kMaxDecoder;
  spec.max_item_rows = 12 * kRowsAPosition;
  spec.modalities = {"image"};
  EncoderDecoderParts parts{.spec = std::move(spec), .splices_rows = true};
  if (has_encoder(options.part)) {
    ASSIGN_OR_RETURN(parts.encoder, make_encoder(cross_));
    ASSIGN_OR_RETURN(parts.splice_encoder, make_encoder(splice_));
  }
  if (has_decoder(options.part)) {
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(*weights, "tokens", kVocab, kDim));
    ASSIGN_OR_RETURN(TransformerStack decoder, decoder_.stack(options.packing, options.attention));
    ASSIGN_OR_RETURN(LmHead head, LmHead::load(*weights, "head", kVocab, kDim, {}, options.packing));
    parts.decoder = Decoder{TokenInput{std::move(tokens)}, std::move(decoder), std::move(head)};
  }
  return make_encoder_decoder_model(std::move(parts), weights);
}

std::shared_ptr<const EncoderFeatures> Mosaic::features(int32_t num_positions, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  auto features = std::make_shared<EncoderFeatures>();
  features->modality = Modality::kImage;
  features->num_positions = num_positions;
  features->num_rows = num_positions * kRowsAPosition;
  features->shape = {features->num_rows, kValuesARow};
  for (int32_t i = 0; i < features->num_rows * kValuesARow; ++i) features->values.push_back(normal(random));
  for (int32_t i = 0; i < num_positions; ++i) features->extras.push_back(static_cast<int32_t>(random() % kGrid));
  return features;
}

// ---- The reference

Rows Mosaic::linear(const Rows& x, const std::string& name) const {
  const std::vector<float>& weight = tables_.at(name);
  Rows y;
  for (const Row& row : x) {
    Row& out = y.emplace_back(weight.size() / row.size());
    for (size_t o = 0; o < out.size(); ++o) {
      for (size_t j = 0; j < row.size(); ++j) out[o] += static_cast<double>(weight[o * row.size() + j]) * row[j];
    }
  }
  return y;
}

Rows Mosaic::encode(const EncoderItem& item) const {
  const Side& side = side_of(item.consumers);
  const EncoderFeatures& features = *item.features;
  Rows pairs;
  for (size_t i = 0; i < features.values.size(); i += size_t{kRowsAPosition} * kValuesARow) {
    const auto begin = features.values.begin() + static_cast<std::ptrdiff_t>(i);
    pairs.emplace_back(begin, begin + kRowsAPosition * kValuesARow);
  }
  Rows x = linear(pairs, side.prefix + ".patch");
  const auto width = static_cast<size_t>(side.stack_case.dim);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t place = static_cast<size_t>(features.extras[i]) * width;
    for (size_t j = 0; j < width; ++j) x[i][j] += static_cast<double>(tables_.at(side.prefix + ".grid")[place + j]);
  }
  return Formulas(side.stack_case, side.checkpoint).run(std::move(x), {}, {});
}

std::vector<std::vector<double>> Mosaic::logits(const EncoderDecoderInputs& inputs,
                                                std::span<const int32_t> tokens) const {
  Rows x, crossed;
  for (const int32_t token : tokens) {
    const auto begin = tables_.at("tokens").begin() + int64_t{token} * kDim;
    x.emplace_back(begin, begin + kDim);
  }
  for (const EncoderItem& item : inputs.items) {
    const Rows rows = encode(item);
    if (has(item.consumers, Consumers::kCross)) crossed.insert(crossed.end(), rows.begin(), rows.end());
    for (size_t i = 0; has(item.consumers, Consumers::kSplice) && i < rows.size(); ++i) {
      const size_t place = static_cast<size_t>(item.splice_offset) + i;
      if (place < x.size()) x[place] = rows[i];
    }
  }
  const DecoderLayout& layout = inputs.layout;
  const size_t num_prompt = inputs.prompt_token_ids.size();
  std::vector<std::vector<int32_t>> positions(kNumAxes);
  std::vector<SeenKeys> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (size_t axis = 0; axis < kNumAxes; ++axis) {
      const bool is_given = !layout.prompt_positions.empty() && i < num_prompt;
      positions[axis].push_back(is_given ? layout.prompt_positions[axis * num_prompt + i]
                                         : static_cast<int32_t>(i) + layout.position_delta);
    }
    SeenKeys& keys = seen.emplace_back(SeenKeys{0, crossed.size(), 0});
    for (const RowRange& range : layout.ranges) {
      if (range.first_token > static_cast<int32_t>(i)) continue;
      keys = {static_cast<size_t>(range.key_begin), static_cast<size_t>(range.key_end), range.kind};
    }
  }
  return linear(Formulas(decoder_case_, decoder_).run(std::move(x), crossed, positions, seen), "head");
}

}  // namespace transept::testing
