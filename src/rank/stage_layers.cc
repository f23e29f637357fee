#include "rank/stage_layers.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "models/vision_tower.h"
#include "weights/pack_tag.h"
#include "weights/safetensors.h"

namespace transept {
namespace {

constexpr std::string_view kFlag = "--pipeline-layers";
constexpr int32_t kMaxLayers = 1000;  // of a config.json
// A byte of a decoder layer takes so much of the time of one of the output layer or of the encoder (decision 70).
constexpr double kTimeOfDecoderBytes = 2;

constexpr std::string_view kDecoders[] = {"decoder", "text_decoder"};
// Components of names; is_of_encoder() has them as beginnings.
constexpr std::string_view kEncoders[] = {"encoder",      "vision_model",          "visual", "vision_tower",
                                          "cross_vision", "multi_modal_projector", "vision"};

std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_among(std::string_view word, const auto& words) { return std::ranges::find(words, word) != std::end(words); }

std::optional<int32_t> number_of(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value >= kMaxLayers) return std::nullopt;
  return value;
}

// Of the first component that says it. BLIP's decoder is "text_decoder.bert.encoder".
bool is_of_encoder_side(const std::vector<std::string_view>& parts, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (is_among(parts[i], kDecoders)) return false;
    if (is_among(parts[i], kEncoders)) return true;
  }
  return false;
}

struct PlacedLayer {
  NamedLayer named;
  bool stands_in_one_stack = false;  // of an encoder's: "encoder.layers.N.", "encoder.block.N."
};

std::optional<PlacedLayer> find_layer(std::string_view name) {
  const std::vector<std::string_view> parts = components(name);
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::optional<int32_t> layer = number_of(parts[i]);
    if (!layer.has_value()) continue;
    const size_t first = parts.front() == "model" ? 1 : 0;
    const bool is_stack =
        i == first + 2 && parts[first] == "encoder" && (parts[i - 1] == "layers" || parts[i - 1] == "block");
    return PlacedLayer{{is_of_encoder_side(parts, i), *layer}, is_stack};
  }
  return std::nullopt;
}

// Of a tensor of a packed matrix, about; 0: no file has so many.
uint64_t packed_bytes(std::string_view tensor, const PackTag::Matrix& matrix) {
  constexpr uint64_t kScaleBytes = 4;
  const auto n = static_cast<uint64_t>(matrix.n), k = static_cast<uint64_t>(matrix.k);
  if (!tensor.ends_with(kPackedPanels)) return checked_mul(n, kScaleBytes).value_or(0);
  const std::optional<uint64_t> weights = checked_mul(n, k);
  if (!weights.has_value()) return 0;
  return checked_mul(*weights, static_cast<uint64_t>(matrix.format.weights.bits)).value_or(0) / 8;
}

// A rank's part of a matrix counts as the whole: parts differ in size, and all ranks cut at the same layers.
uint64_t bytes_of(const WeightMap::Sample& sample, const PackTag* tag) {
  if (tag != nullptr && tag->num_ranks > 1) {
    const std::optional<std::string_view> name = packed_matrix_of(sample.name);
    const auto matrix = name.has_value() ? tag->matrices.find(*name) : tag->matrices.end();
    if (matrix != tag->matrices.end()) return packed_bytes(sample.name, matrix->second);
  }
  uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(safetensors_dtype_bytes(sample.dtype), 1));
  for (const int64_t dim : sample.shape) {
    const std::optional<uint64_t> product = checked_mul(bytes, static_cast<uint64_t>(dim));
    if (!product.has_value()) return 0;  // no file has so many
    bytes = *product;
  }
  return bytes;
}

std::vector<double> costs(const std::vector<uint64_t>& bytes, double factor) {
  std::vector<double> costs;
  costs.reserve(bytes.size());
  for (const uint64_t count : bytes) costs.push_back(factor * static_cast<double>(count));
  return costs;
}

// As little in the largest of the parts as can be, and then as even ones: layers[0, n) to the stages in order, at
// least `least` to each but the first, which gets one, beside what each has already.
std::vector<int32_t> even_counts(const std::vector<double>& layers, const std::vector<double>& base, size_t least) {
  struct Cost {
    double most = std::numeric_limits<double>::infinity(), squares = 0;
    bool operator<(const Cost& other) const { return most != other.most ? most < other.most : squares < other.squares; }
  };
  const size_t num_layers = layers.size(), num_stages = base.size();
  std::vector<double> sums(num_layers + 1);
  for (size_t i = 0; i < num_layers; ++i) sums[i + 1] = sums[i] + layers[i];
  // best[s][n]: of layers [0, n) on stages [0, s); from[s][n]: where the last of these begins.
  std::vector<std::vector<Cost>> best(num_stages + 1, std::vector<Cost>(num_layers + 1));
  std::vector<std::vector<size_t>> from(num_stages + 1, std::vector<size_t>(num_layers + 1));
  best[0][0] = {0, 0};
  for (size_t stage = 0; stage < num_stages; ++stage) {
    const size_t at_least = stage == 0 ? 1 : least;
    for (size_t end = at_least; end <= num_layers; ++end) {
      for (size_t begin = 0; begin + at_least <= end; ++begin) {
        const double load = base[stage] + sums[end] - sums[begin];
        const Cost& before = best[stage][begin];
        const Cost cost{std::max(before.most, load), before.squares + load * load};
        if (!(cost < best[stage + 1][end])) continue;
        best[stage + 1][end] = cost;
        from[stage + 1][end] = begin;
      }
    }
  }
  std::vector<int32_t> counts(num_stages);
  size_t end = num_layers;
  for (size_t stage = num_stages; stage > 0; --stage) {
    const size_t begin = from[stage][end];
    counts[stage - 1] = static_cast<int32_t>(end - begin);
    end = begin;
  }
  return counts;
}

std::string counts_text(const std::vector<int32_t>& counts, std::string_view between) {
  std::string text;
  for (const int32_t count : counts) text += str_cat(text.empty() ? "" : between, count);
  return text;
}

StatusOr<std::vector<int32_t>> parse_counts(std::string_view text, std::string_view list, int32_t num_stages) {
  std::vector<int32_t> counts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::optional<int32_t> count = number_of(list.substr(begin, end - begin));
    if (!count.has_value()) {
      return invalid_argument(kFlag, " ", text.substr(0, 100),
                              ": expected bytes, time, or a number of decoder layers for each ",
                              "stage, such as 5,7, or those of the encoder before, 6,6/5,7");
    }
    counts.push_back(*count);
    begin = end + 1;
  }
  if (std::ssize(counts) == num_stages) return counts;
  return invalid_argument(kFlag, " ", text.substr(0, 100), ": ", counts.size(), " numbers for the ", num_stages,
                          " stages of --pipeline-parallel-size");
}

Status check_sum(const std::vector<int32_t>& counts, size_t num_layers, std::string_view what) {
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (sum == static_cast<int64_t>(num_layers)) return ok_status();
  return invalid_argument(kFlag, " ", counts_text(counts, ","), ": these are ", sum, " layers, and the ", what, " has ",
                          num_layers);
}

void place(const std::vector<int32_t>& counts, LayerRange StageLayers::*side, std::vector<StageLayers>& stages) {
  int32_t begin = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    stages[i].*side = {begin, begin + counts[i]};
    begin += counts[i];
  }
}

}  // namespace

std::optional<NamedLayer> layer_of_name(std::string_view name) {
  const std::optional<PlacedLayer> found = find_layer(name);
  return found.has_value() ? std::optional(found->named) : std::nullopt;
}

LayerBytes layer_bytes(const WeightMap& weights) {
  LayerBytes bytes;
  bytes.divides_encoder = true;
  const auto add = [](std::vector<uint64_t>& layers, int32_t layer, uint64_t count) {
    const auto place = static_cast<size_t>(layer);
    if (layers.size() <= place) layers.resize(place + 1);
    layers[place] += count;
  };
  weights.visit_samples(
      0, [](std::string_view) { return true; },
      [&](const WeightMap::Sample& sample) {
        const std::optional<PlacedLayer> found = find_layer(sample.name);
        if (!found.has_value()) {
          const uint64_t count = bytes_of(sample, weights.pack_tag());
          bytes.others += count;
          if (!is_of_encoder(sample.name)) bytes.output = std::max(bytes.output, count);
        } else if (found->named.is_encoder) {
          add(bytes.encoder, found->named.layer, bytes_of(sample, weights.pack_tag()));
          bytes.divides_encoder = bytes.divides_encoder && found->stands_in_one_stack;
        } else {
          add(bytes.decoder, found->named.layer, bytes_of(sample, weights.pack_tag()));
        }
      });
  bytes.divides_encoder = bytes.divides_encoder && !bytes.encoder.empty();
  if (!bytes.divides_encoder) {
    bytes.others = std::accumulate(bytes.encoder.begin(), bytes.encoder.end(), bytes.others);
    bytes.encoder.clear();
  }
  return bytes;
}

StatusOr<LayerCut> parse_pipeline_layers(std::string_view text, int32_t num_stages) {
  if (text == "bytes") return LayerCut{};
  if (text == "time") return LayerCut{.by = CutBy::kTime, .encoder = {}, .decoder = {}};
  LayerCut counts;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    ASSIGN_OR_RETURN(counts.encoder, parse_counts(text, text.substr(0, slash), num_stages));
  }
  ASSIGN_OR_RETURN(counts.decoder,
                   parse_counts(text, slash == std::string_view::npos ? text : text.substr(slash + 1), num_stages));
  if (std::ranges::find(counts.decoder, 0) != counts.decoder.end()) {
    return invalid_argument(kFlag, " ", text.substr(0, 100), ": every stage has at least one layer of the decoder");
  }
  if (counts.encoder.empty() || counts.encoder.front() > 0) return counts;
  return invalid_argument(kFlag, " ", text.substr(0, 100), ": the first stage has at least one layer of the encoder");
}

StatusOr<std::vector<StageLayers>> cut_layers(const LayerBytes& bytes, int32_t num_stages, const LayerCut& cut) {
  CHECK(num_stages >= 1);
  const size_t num_decoder = bytes.decoder.size();
  if (static_cast<size_t>(num_stages) > num_decoder) {
    return invalid_argument("--pipeline-parallel-size ", num_stages, ": ", num_decoder,
                            num_decoder == 1 ? " decoder layer" : " decoder layers", ": --pipeline-parallel-size 1",
                            num_decoder > 1 ? str_cat(num_decoder > 2 ? " to " : " or ", num_decoder) : "");
  }
  std::vector<StageLayers> stages(static_cast<size_t>(num_stages));
  const std::vector<double> decoder = costs(bytes.decoder, cut.by == CutBy::kTime ? kTimeOfDecoderBytes : 1);
  std::vector<double> base(stages.size());
  base.front() = static_cast<double>(cut.by == CutBy::kTime && bytes.divides_encoder ? bytes.output : bytes.others);
  std::vector<int32_t> counts = cut.decoder;
  if (counts.empty()) counts = even_counts(decoder, base, 1);
  RETURN_IF_ERROR(check_sum(counts, num_decoder, "decoder"));
  place(counts, &StageLayers::decoder, stages);
  if (!bytes.divides_encoder) {
    if (cut.encoder.empty()) return stages;
    return invalid_argument(kFlag, ": the first stage has the whole encoder of this model: give the decoder's alone, ",
                            counts_text(counts, ","));
  }
  counts = cut.encoder;
  if (counts.empty()) {
    for (size_t i = 0; i < stages.size(); ++i) {
      const LayerRange& own = stages[i].decoder;
      base[i] = std::accumulate(decoder.begin() + own.begin, decoder.begin() + own.end, base[i]);
    }
    counts = even_counts(costs(bytes.encoder, 1), base, 0);
  }
  RETURN_IF_ERROR(check_sum(counts, bytes.encoder.size(), "encoder"));
  place(counts, &StageLayers::encoder, stages);
  return stages;
}

std::string stages_text(const std::vector<StageLayers>& stages) {
  const auto layers = [&](LayerRange StageLayers::*side) {
    std::vector<int32_t> counts;
    counts.reserve(stages.size());
    for (const StageLayers& stage : stages) counts.push_back((stage.*side).end - (stage.*side).begin);
    return counts_text(counts, " + ");
  };
  const bool divides_encoder = stages.back().encoder.end > 0;
  return str_cat(stages.size(), " stages of ",
                 divides_encoder ? str_cat("encoder layers ", layers(&StageLayers::encoder), " and ") : "",
                 "decoder layers ", layers(&StageLayers::decoder), divides_encoder ? "" : ", the encoder on the first",
                 "; up to ", stages.size(), " steps are in flight");
}

}  // namespace transept
