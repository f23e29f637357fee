#include "startup/open_weights.h"

#include <filesystem>

#include "base/log.h"
#include "quantized/make_matrix_reader.h"

namespace transept {

StatusOr<OpenedWeights> open_weights(const EngineConfig& config, const ModelConfig& model, ModelFiles files,
                                     const ReadingRank& reading) {
  OpenedWeights opened;
  opened.quantization = files.quantization();
  const bool is_foreign = files.is_foreign();
  ASSIGN_OR_RETURN(opened.map, std::move(files).open_weights(reading));
  if (is_foreign) return opened;
  // transformers would look for another model's weights. These are whole: the adapter was merged into them, most
  // likely.
  const std::string adapter = model.path + "/adapter_config.json";
  std::error_code error;
  if (std::filesystem::exists(adapter, error)) {
    log_warning(adapter, ": no adapter is applied: the folder's own weights are whole, and are read as they are");
  }
  ASSIGN_OR_RETURN(const std::optional<QuantizationConfig> quantization, read_quantization(model));
  if (!quantization.has_value()) return opened;
  // What a packed folder holds was decided when it was packed.
  const bool is_packed = opened.map->pack_tag() != nullptr;
  // The file's own definition counts unless a flag asks for other arithmetic. Without a flag "none" is only the
  // default.
  const bool follows = config.quantization == "auto" || (config.quantization == "none" && !config.quantization_given);
  opened.map->set_rounds_inputs(follows);
  if (follows && !is_packed && !quantization->unread_inputs.empty()) {
    return unimplemented(quantization->file, ": ", quantization->unread_inputs,
                         ": the format rounds the inputs of every product, and this way of rounding is not supported: "
                         "give --quantization none for float32 inputs over these weights, or --quantization int8");
  }
  if (!follows && config.quantization == "none" && !quantization->rounds_inputs.empty()) {
    log_info(quantization->file, ": ", quantization->rounds_inputs,
             ": inputs are not rounded, because of --quantization none");
  }
  std::unique_ptr<MatrixReader> reader = make_matrix_reader(*quantization);
  if (reader == nullptr) return opened;
  opened.map->set_matrix_reader(std::move(reader));
  opened.quantization = quantization->name;
  const int num_of_kv = ignore_scales_of_activations(*opened.map);
  if (num_of_kv > 0 || quantization->has_kv_scheme) {
    log_warning(quantization->file,
                ": scales of keys and values are not used: --kv-cache-dtype says how these are kept");
  }
  return opened;
}

}  // namespace transept
