#include "foreign/ggml_whisper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/log.h"
#include "base/quoted.h"
#include "foreign/ggml_file.h"
#include "foreign/whisper_texts.h"
#include "media/log_mel_tables.h"

namespace transept {
namespace {

using Names = std::pair<std::string_view, std::string_view>;  // openai's, and that of transformers

constexpr Names kOfBlocks[] = {
    {"attn.query", "self_attn.q_proj"},
    {"attn.key", "self_attn.k_proj"},
    {"attn.value", "self_attn.v_proj"},
    {"attn.out", "self_attn.out_proj"},
    {"attn_ln", "self_attn_layer_norm"},
    {"cross_attn.query", "encoder_attn.q_proj"},
    {"cross_attn.key", "encoder_attn.k_proj"},
    {"cross_attn.value", "encoder_attn.v_proj"},
    {"cross_attn.out", "encoder_attn.out_proj"},
    {"cross_attn_ln", "encoder_attn_layer_norm"},
    {"mlp.0", "fc1"},
    {"mlp.2", "fc2"},
    {"mlp_ln", "final_layer_norm"},
};
constexpr Names kOthers[] = {
    {"encoder.positional_embedding", "encoder.embed_positions.weight"},
    {"decoder.positional_embedding", "decoder.embed_positions.weight"},
    {"decoder.token_embedding.weight", "decoder.embed_tokens.weight"},
    {"encoder.ln_post.weight", "encoder.layer_norm.weight"},
    {"encoder.ln_post.bias", "encoder.layer_norm.bias"},
    {"decoder.ln.weight", "decoder.layer_norm.weight"},
    {"decoder.ln.bias", "decoder.layer_norm.bias"},
    {"encoder.conv1.weight", "encoder.conv1.weight"},
    {"encoder.conv1.bias", "encoder.conv1.bias"},
    {"encoder.conv2.weight", "encoder.conv2.weight"},
    {"encoder.conv2.bias", "encoder.conv2.bias"},
};

std::optional<std::string_view> find(std::span<const Names> names, std::string_view wanted) {
  for (const auto& [openai, ours] : names) {
    if (openai == wanted) return ours;
  }
  return std::nullopt;
}

// "decoder.blocks.3.attn.key.weight" as "decoder.layers.3.self_attn.k_proj.weight". nullopt: no Whisper has it.
std::optional<std::string> transformers_name(std::string_view name) {
  if (const auto other = find(kOthers, name)) return str_cat("model.", *other);
  for (const std::string_view side : {"encoder", "decoder"}) {
    const std::string start = str_cat(side, ".blocks.");
    if (!name.starts_with(start)) continue;
    const std::string_view rest = name.substr(start.size());
    const size_t dot = rest.find('.'), last = rest.rfind('.');
    if (dot == std::string_view::npos || last <= dot) return std::nullopt;
    const auto part = find(kOfBlocks, rest.substr(dot + 1, last - dot - 1));
    if (!part.has_value()) return std::nullopt;
    return str_cat("model.", side, ".layers.", rest.substr(0, dot), ".", *part, rest.substr(last));
  }
  return std::nullopt;
}

constexpr int32_t kBins = 201;  // of frames of 400 samples

// The mel filters are a function of their number, which the engine computes: those of another sampling are refused.
Status check_filters(const GgmlFile& model, const std::string& path) {
  if (model.num_bins != kBins) {
    return invalid_argument("the width of mel filters: ", model.num_bins, ", expected ", kBins);
  }
  if (!are_own_mel_filters(model.filters, model.n_mels)) {
    log_warning(path, ": its mel filters are not Whisper's, which are used in their place: answers may suffer");
  }
  return ok_status();
}

StatusOr<FoundTensors> find_tensors(const GgmlFile& model, std::unique_ptr<MmapFile> file) {
  FoundTensors found;
  for (const GgmlFile::Tensor& tensor : model.tensors) {
    const std::optional<std::string> name = transformers_name(tensor.name);
    if (!name.has_value()) {
      return with_param(invalid_argument(file->path(), ": tensor ", in_quotes(tensor.name), ": no Whisper has it"),
                        tensor.name);
    }
    std::vector<int64_t> shape = tensor.shape;
    // Biases of convolutions are stored as columns.
    if (name->ends_with(".bias") && shape.size() == 2 && shape[1] == 1) shape.pop_back();
    if (tensor.blocks.has_value()) found.quantization = str_cat("ggml ", ascii_lower(tensor.dtype));
    found.tensors.push_back({{*name, std::string(tensor.dtype), std::move(shape), tensor.data}, {}});
  }
  if (!found.quantization.empty()) found.matrices = std::make_unique<BlockMatrixReader>();
  found.file = std::move(file);
  return found;
}

WhisperSizes sizes_of(const GgmlFile& model) {
  return {.vocab = model.n_vocab,
          .mels = model.n_mels,
          .audio_positions = model.n_audio_ctx,
          .audio_width = model.n_audio_state,
          .audio_heads = model.n_audio_head,
          .audio_layers = model.n_audio_layer,
          .text_positions = model.n_text_ctx,
          .text_width = model.n_text_state,
          .text_heads = model.n_text_head,
          .text_layers = model.n_text_layer};
}

}  // namespace

bool are_own_mel_filters(std::span<const float> filters, int32_t mels) {
  constexpr float kTolerance = 1e-6f;
  constexpr int32_t kMostMels = 1024;
  if (mels < 1 || mels > kMostMels || std::ssize(filters) != int64_t{mels} * kBins) return false;
  const MelFilters own = make_mel_filters({.num_mel_bins = mels});
  const float* weight = own.weights.data();
  for (size_t i = 0; i < static_cast<size_t>(mels); ++i) {
    std::array<float, kBins> row = {};
    std::copy_n(weight, own.count[i], row.data() + own.first[i]);
    weight += own.count[i];
    for (size_t j = 0; j < row.size(); ++j) {
      if (!(std::abs(filters[i * row.size() + j] - row[j]) <= kTolerance)) return false;
    }
  }
  return true;
}

StatusOr<ForeignModel> open_ggml_whisper(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MmapFile> file, MmapFile::open(path));
  ASSIGN_OR_RETURN(const GgmlFile model, parse_ggml_file(file->bytes(), path));
  if (const Status filters = check_filters(model, path); !filters.ok()) return with_prefix(filters, path);
  StatusOr<ModelFolder::Texts> texts = whisper_texts(sizes_of(model), model.tokens);
  if (!texts.ok()) return with_prefix(texts.status(), path);
  ForeignModel opened;
  opened.folder = ModelFolder(path, "", std::move(texts).value());
  ASSIGN_OR_RETURN(opened.tensors, find_tensors(model, std::move(file)));
  return opened;
}

}  // namespace transept
