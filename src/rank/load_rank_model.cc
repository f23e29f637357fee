#include "rank/load_rank_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

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

}  // namespace

bool LoadedRankModel::has_int8_encoder() const {
  return std::any_of(packed_layers.begin(), packed_layers.end(), [](const PackedLayer& layer) {
    return is_of_encoder(layer.name) && layer.format.weights == kInt8Format;
  });
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
  if (options.ranks != nullptr) packing.ranks = {options.ranks->rank(), options.ranks->size()};
  const auto make_model = options.make_model != nullptr ? options.make_model : load_model;
  weights->set_threads(&packing.threads);
  StatusOr<std::unique_ptr<Model>> model = make_model(config, weights, {packing, *loaded.attention, options.part});
  weights->set_threads(nullptr);
  ASSIGN_OR_RETURN(loaded.model, std::move(model));
  for (const PackedLayer& layer : loaded.packed_layers) {
    if (options.device->multiplies(layer.format)) continue;
    return unimplemented(layer.name, ": weights of ", weight_format_name(layer.format.weights), " on ",
                         options.device->text(), ", which multiplies with float32, float16 and bfloat16 alone");
  }
  RETURN_IF_ERROR(device.status());
  const ModelSpec& spec = loaded.model->spec();
  char line[256];
  std::snprintf(line, sizeof line, "model: %s, %d + %d layers, d_model %d, vocabulary %d; %s of weights%s in %.2f s",
                spec.family.c_str(), spec.num_encoder_layers, spec.num_decoder_layers, spec.d_model, spec.vocab_size,
                format_bytes(weights->total_bytes()).c_str(), what_was_loaded(spec.part), seconds_since(begin));
  report.emplace_back(line);
  report.push_back("weights: " + storage_text(loaded.packed_layers));
  if (!options.device->text().empty()) report.push_back("device: " + options.device->text());
  report.push_back(str_cat("compute: ", describe_arithmetic(loaded.packed_layers, options.isa), threads.num_threads(),
                           " threads, ", options.cpus.empty() ? "" : "pinned, ", isa_name(options.isa),
                           " kernels, attention backend ", loaded.attention->name()));
  return loaded;
}

}  // namespace transept
