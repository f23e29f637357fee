#include "layers/pack_file.h"

#include "base/checked_math.h"
#include "weights/safetensors_writer.h"

namespace transept {
namespace {

void add(std::vector<SafetensorsTensor>& tensors, std::string name, DType dtype, std::vector<int64_t> shape,
         std::span<const std::byte> data) {
  tensors.push_back({std::move(name), std::string(safetensors_dtype(dtype)), std::move(shape), data});
}

void add_matrix(std::vector<SafetensorsTensor>& tensors, const PackedLayer& layer) {
  const WeightFormat& weights = layer.format.weights;
  std::vector<int64_t> shape = panels_shape(layer.n, layer.k, weights);
  // Groups of inputs stand behind the panels.
  if (weights.is_nibbles()) shape = {std::ssize(layer.views.panels)};
  add(tensors, str_cat(layer.name, kPackedPanels), panels_dtype(weights), std::move(shape), layer.views.panels);
  if (weights != kInt8Format) return;
  const int64_t outputs = round_up(layer.n, kPanelColumns);
  add(tensors, str_cat(layer.name, kPackedScales), DType::kFloat32, {outputs}, std::as_bytes(layer.views.scales));
  add(tensors, str_cat(layer.name, kPackedSums), DType::kInt32, {outputs}, std::as_bytes(layer.views.sums));
}

}  // namespace

Status write_pack_file(const std::string& path, WeightMap& weights, std::span<const PackedLayer> layers,
                       std::optional<WeightFormat> storage, FunctionRef<bool()> goes_on, const PackedPart& part) {
  PackTag tag{.layout = kPackedLayout,
              .storage = storage,
              .rank = part.ranks.rank,
              .num_ranks = part.ranks.count,
              .source = part.source,
              .matrices = {}};
  std::vector<SafetensorsTensor> tensors;
  for (const PackedLayer& layer : layers) {
    const PackTag::Matrix matrix{layer.whole_n, layer.whole_k, layer.stored, layer.format};
    const auto [place, is_new] = tag.matrices.emplace(layer.name, matrix);
    // Two layers that share a matrix pack the same bytes.
    CHECK(is_new || place->second == matrix, layer.name, " is packed in two ways");
    for (const auto& [name, inputs] : layer.inputs) tag.inputs.emplace(name, inputs);
    if (is_new) add_matrix(tensors, layer);
  }
  for (SafetensorsTensor& tensor : weights.read_tensors()) tensors.push_back(std::move(tensor));
  // Tables of codes, of which steps read rows, become what they mean.
  ASSIGN_OR_RETURN(const std::vector<WeightMap::ReadMatrix> matrices, weights.read_matrices());
  std::vector<std::vector<float>> numbers;
  for (const auto& [name, source] : matrices) {
    std::vector<float>& all = numbers.emplace_back(static_cast<size_t>(source->n() * source->k()));
    source->read_rows(0, source->n(), {0, source->k()}, all);
    add(tensors, name, DType::kFloat32, {source->n(), source->k()}, std::as_bytes(std::span(all)));
  }
  return write_safetensors(path, std::move(tensors), pack_tag_metadata(tag), goes_on);
}

}  // namespace transept
