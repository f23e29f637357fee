// Any text as a quantization_config, and any bytes as the matrix that it speaks of: reading must end and stay inside
// the file, and a matrix that opens must give all its numbers. The input is the config up to a zero byte, then a
// safetensors file.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/folder_testing.h"
#include "base/json.h"
#include "quantized/make_matrix_reader.h"
#include "weights/weight_map.h"

namespace {

using namespace transept;

// A matrix of the size that its tensors suggest.
void read_matrix(WeightMap& map, std::string_view name, int64_t n, int64_t k) {
  constexpr int64_t kMost = 1 << 16;
  if (n <= 0 || k <= 0 || n > kMost || k > kMost || n * k > kMost) return;
  for (const WeightUse use : {WeightUse::kPacked, WeightUse::kRead}) {
    const auto source = map.matrix(name, {n, k}, use);
    if (!source.ok()) return;
    std::vector<float> values(static_cast<size_t>(n * k));
    (*source)->read_rows(0, n, {0, k}, values);
    (*source)->release_rows(0, n);
  }
  const auto inputs = map.inputs_of(name, k);
  if (inputs.ok() && inputs->rounds() && parse_input_quantization(input_quantization_name(*inputs)) != *inputs) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view text = input.substr(0, input.find('\0'));
  const auto json = Json::parse(text);
  if (!json.ok() || !json->is_object()) return 0;
  const auto config = parse_quantization(*json, "fuzz.json");
  if (!config.ok()) return 0;
  if (config->formats.empty() && std::holds_alternative<std::monostate>(config->settings)) std::abort();
  if (const auto* compressed = std::get_if<CompressedConfig>(&config->settings)) {
    static_cast<void>(compressed->group_of("model.decoder.layers.0.self_attn.q_proj"));
    static_cast<void>(compressed->ignores("model.decoder.layers.0.self_attn.q_proj"));
  }
  if (text.size() + 1 >= input.size()) return 0;
  static const transept::testing::TestFolder folder;
  folder.write("model.safetensors", input.substr(text.size() + 1));
  const auto map = WeightMap::open(folder.path());
  if (!map.ok()) return 0;
  auto reader = make_matrix_reader(*config);
  if (reader == nullptr) return 0;
  (*map)->set_matrix_reader(std::move(reader));
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{12, 40}, {12, 48}, {12, 64}, {32, 64}, {24, 48}, {7, 5}}) {
    if ((*map)->contains("a.b.weight")) read_matrix(**map, "a.b.weight", n, k);
  }
  return 0;
}
