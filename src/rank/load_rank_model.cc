#include "rank/load_rank_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/check.h"
#include "models/registry.h"
#include "models/vision_tower.h"

namespace transept {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

const char* describe_arithmetic(const std::vector<PackedLayer>& layers, Isa isa) {
  for (const PackedLayer& layer : layers) {
    if (layer.format.inputs == InputRounding::kGroups) return "int4 products with int8 inputs, float32 beside them, ";
    if (layer.format.weights == kInt8Format) return "int8 products, float32 beside them, ";
    if (multiplies_in_bfloat16(layer.format, isa)) return "bfloat16 products with float32 sums, float32 beside them, ";
  }
  return "float32, ";
}

const char* what_was_loaded(ModelPart part) {
  switch (part) {
    case ModelPart::kEncoder: return ", the encoder's part loaded";
    case ModelPart::kDecoder: return ", the decoder's part loaded";
    default: return " loaded";
  }
}

// Cuts the layers, and says which matrices are other stages'.
Status cut(const WeightMap& weights, const ModelRunnerOptions& options, LayersElsewhere& elsewhere,
           LoadedRankModel& loaded) {
  CHECK(options.ranks != nullptr && options.part == ModelPart::kWhole && options.num_replicas == 1);
  loaded.place = StagePlace::of(*options.ranks, options.num_stages);
  LayerCut layer_cut;
  if (!options.pipeline_layers.empty()) {
    ASSIGN_OR_RETURN(layer_cut, parse_pipeline_layers(options.pipeline_layers, options.num_stages));
  }
  const LayerBytes bytes = layer_bytes(weights);
  ASSIGN_OR_RETURN(loaded.stages, cut_layers(bytes, options.num_stages, layer_cut));
  loaded.own = loaded.stages[static_cast<size_t>(loaded.place.stage)];
  const bool is_first = loaded.place.is_first(), divides_encoder = bytes.divides_encoder;
  elsewhere.has_output_layer = !is_first;
  elsewhere.has = [is_first, divides_encoder, own = loaded.own](std::string_view name) {
    const auto is_in = [](int32_t layer, const LayerRange& range) { return range.begin <= layer && layer < range.end; };
    const std::optional<NamedLayer> layer = layer_of_name(name);
    if (!layer.has_value()) return !is_first && is_of_encoder(name);
    if (!layer->is_encoder) return !is_in(layer->layer, own.decoder);
    return divides_encoder ? !is_in(layer->layer, own.encoder) : !is_first;
  };
  return ok_status();
}

// What names say is compared with what the model has: a layer taken for another would run without weights.
Status check_cut(const WeightMap& weights, const ModelSpec& spec, LoadedRankModel& loaded) {
  StageLayers& last = loaded.stages.back();
  if (last.encoder.end == 0 && loaded.place.is_first()) loaded.own.encoder = {0, spec.num_encoder_layers};
  const bool counts_encoder = last.encoder.end == 0 || last.encoder.end == spec.num_encoder_layers;
  if (last.decoder.end == spec.num_decoder_layers && counts_encoder) return ok_status();
  return unimplemented("--pipeline-parallel-size ", loaded.place.num_stages, ": ", weights.source(),
                       ": the names of its tensors do not count the layers of ", spec.family, ": give 1");
}

}  // namespace

DType LoadedRankModel::encoder_kv_dtype() const {
  const auto has_some = [this](auto&& is_such) {
    const auto in = [&](const std::vector<PackedLayer>& layers) {
      return std::any_of(layers.begin(), layers.end(),
                         [&](const PackedLayer& layer) { return is_of_encoder(layer.name) && is_such(layer.format); });
    };
    return in(packed_layers) || in(layers_elsewhere);
  };
  const auto rounds_to_int8 = [](const PackedFormat& format) { return format.weights == kInt8Format; };
  if (has_some(rounds_to_int8)) return DType::kInt8;
  const auto rounds_to_bfloat16 = [](const PackedFormat& format) { return format.inputs == InputRounding::kBFloat16; };
  return has_some(rounds_to_bfloat16) ? DType::kBFloat16 : DType::kFloat32;
}

int32_t LoadedRankModel::num_encoding_stages() const {
  int32_t count = 1;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].encoder.end > stages[i].encoder.begin) count = static_cast<int32_t>(i) + 1;
  }
  return count;
}

StatusOr<LoadedRankModel> load_rank_model(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights,
                                          const ModelRunnerOptions& options, ThreadPool& threads, Device& device,
                                          std::vector<std::string>& report) {
  LoadedRankModel loaded;
  ASSIGN_OR_RETURN(loaded.attention, options.device->make_attention(options.attention_backend));
  weights->set_memory(device.memory());
  const auto begin = std::chrono::steady_clock::now();
  // The others have nothing to do yet: their processors pack, too.
  std::optional<ThreadPool> of_all;
  if (options.num_replicas > 1) of_all.emplace(options.num_threads * options.num_replicas);
  PackOptions packing(of_all.has_value() ? *of_all : threads, options.weight_storage, &loaded.packed_layers);
  packing.least_int8_width = kLeastInt8Width;
  packing.as_packed = options.as_packed;
  packing.sizes_only = options.sizes_only;
  if (options.ranks != nullptr) packing.ranks = StagePlace::of(*options.ranks, options.num_stages).ranks;
  LayersElsewhere elsewhere;
  if (options.num_stages > 1) {
    RETURN_IF_ERROR(cut(*weights, options, elsewhere, loaded));
    packing.elsewhere = &elsewhere;
  }
  const auto make_model = options.make_model != nullptr ? options.make_model : load_model;
  weights->set_threads(&packing.threads);
  StatusOr<std::unique_ptr<Model>> model = make_model(config, weights, {packing, *loaded.attention, options.part});
  weights->set_threads(nullptr);
  ASSIGN_OR_RETURN(loaded.model, std::move(model));
  for (const PackedLayer& layer : loaded.packed_layers) {
    if (options.device->multiplies(layer.format)) continue;
    return unimplemented(layer.name, ": weights of ", weight_format_name(layer.format.weights), " on ",
                         options.device->names().text(),
                         ", which multiplies with float32, float16, bfloat16 and int8 alone");
  }
  RETURN_IF_ERROR(device.status());
  const ModelSpec& spec = loaded.model->spec();
  loaded.layers_elsewhere = std::move(elsewhere.layers);
  if (loaded.stages.empty()) {
    loaded.own = {{0, spec.num_encoder_layers}, {0, spec.num_decoder_layers}};
  } else {
    RETURN_IF_ERROR(check_cut(*weights, spec, loaded));
  }
  char line[256];
  std::snprintf(line, sizeof line, "model: %s, %d + %d layers, d_model %d, vocabulary %d; %s of weights%s in %.2f s",
                spec.family.c_str(), spec.num_encoder_layers, spec.num_decoder_layers, spec.d_model, spec.vocab_size,
                format_bytes(weights->total_bytes()).c_str(), what_was_loaded(spec.part), seconds_since(begin));
  report.emplace_back(line);
  if (!loaded.stages.empty()) report.push_back("pipeline: " + stages_text(loaded.stages));
  report.push_back("weights: " + storage_text(loaded.packed_layers));
  if (const std::string text = options.device->names().text(); !text.empty()) report.push_back("device: " + text);
  report.push_back(str_cat("compute: ", describe_arithmetic(loaded.packed_layers, options.isa), threads.num_threads(),
                           " threads, ", options.cpus.empty() ? "" : "pinned, ", isa_name(options.isa),
                           " kernels, attention backend ", loaded.attention->name()));
  return loaded;
}

}  // namespace transept
