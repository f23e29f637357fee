#include "models/davit_config.h"

#include <algorithm>

#include "models/activation_field.h"

namespace transept {
namespace {

constexpr int64_t kMaxBlocks = 1000, kMaxDavitHeads = 1 << 14, kMaxDavitDim = 1 << 20;
constexpr int64_t kMaxWindow = 64, kMaxMoments = 1 << 16;
constexpr int64_t kMaxSide = 1 << 15;  // of a picture

Status refuse(const ConfigReader& reader, std::string_view key, const std::string& why) {
  return with_param(unimplemented(reader.file(), ": ", key, ": ", why, " is not supported"), key);
}

StatusOr<std::vector<bool>> read_norm_places(const Json& object, const ConfigReader& reader, size_t num_stages) {
  constexpr std::string_view kKey = "patch_prenorm";
  const Json* list = object.find(kKey);
  std::vector<bool> places;
  if (list == nullptr || list->is_null()) {
    places = {false, true, true, true};
  } else {
    if (!list->is_array()) return reader.error(kKey, "expected a list of true and false");
    for (const Json& value : list->as_array()) {
      if (!value.is_bool()) return reader.error(kKey, "expected a list of true and false");
      places.push_back(value.as_bool());
    }
  }
  if (places.size() != num_stages) {
    return reader.error(kKey, str_cat(places.size(), " values for ", num_stages, " stages of patch_size"));
  }
  if (places.front()) return refuse(reader, kKey, "a norm of the picture's channels (true at the first stage)");
  return places;
}

Status read_stages(const Json& object, const ConfigReader& reader, DavitConfig& out) {
  ASSIGN_OR_RETURN(const std::vector<PictureConv> convs, read_picture_convs(object, reader));
  ASSIGN_OR_RETURN(const std::vector<bool> norm_places, read_norm_places(object, reader, convs.size()));
  ASSIGN_OR_RETURN(const double mlp_ratio, reader.number("mlp_ratio", 0, 64, 4.0));
  const std::string_view dim_key = out.has_original_names ? "dim_embed" : "embed_dim";
  const auto list = [&](std::string_view key, int64_t max,
                        std::vector<int64_t> fallback) -> StatusOr<std::vector<int64_t>> {
    ASSIGN_OR_RETURN(std::vector<int64_t> numbers, read_stage_list(object, reader, key, 1, max, std::move(fallback)));
    if (numbers.size() == convs.size()) return numbers;
    return reader.error(key, str_cat(numbers.size(), " numbers for ", convs.size(), " stages of patch_size"));
  };
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, list(dim_key, kMaxDavitDim, {128, 256, 512, 1024}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> depths, list("depths", kMaxBlocks, {1, 1, 9, 1}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> heads, list("num_heads", kMaxDavitHeads, {4, 8, 16, 32}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> groups, list("num_groups", kMaxDavitHeads, {4, 8, 16, 32}));
  for (size_t i = 0; i < convs.size(); ++i) {
    const auto hidden = static_cast<int64_t>(mlp_ratio * static_cast<double>(dims[i]));
    if (hidden < 1) return reader.error("mlp_ratio", "gives a feed-forward of no width");
    for (const auto& [key, numbers] : {std::pair("num_heads", &heads), std::pair("num_groups", &groups)}) {
      if (dims[i] % (*numbers)[i] == 0) continue;
      return reader.error(key, str_cat((*numbers)[i], " do not divide the ", dims[i], " columns of stage ", i));
    }
    out.stages.push_back({convs[i], norm_places[i], dims[i], hidden, depths[i], heads[i], groups[i]});
  }
  return ok_status();
}

// Fields that Microsoft's files alone have. What its code can do besides is in no published file.
Status read_original(const Json& object, const ConfigReader& reader, DavitConfig& out) {
  constexpr std::string_view kMoments = "visual_temporal_embedding", kSource = "image_feature_source";
  const Json* moments = object.find(kMoments);
  if (moments == nullptr || !moments->is_object()) return reader.error(kMoments, "expected an object");
  const ConfigReader of_moments(*moments, str_cat(reader.file(), ": ", kMoments));
  ASSIGN_OR_RETURN(const std::string type, of_moments.string("type"));
  if (type != "COSINE") return refuse(of_moments, "type", str_cat("\"", type.substr(0, 100), "\""));
  ASSIGN_OR_RETURN(out.max_temporal, of_moments.integer("max_temporal_embeddings", 1, kMaxMoments, 100));
  const Json* source = object.find(kSource);
  if (source == nullptr || !source->is_array() || source->as_array().size() != 2) {
    return refuse(reader, kSource, "other than spatial_avg_pool and temporal_avg_pool");
  }
  constexpr std::string_view kParts[] = {"spatial_avg_pool", "temporal_avg_pool"};
  for (size_t i = 0; i < 2; ++i) {
    const Json& part = source->as_array()[i];
    if (part.is_string() && part.as_string() == kParts[i]) continue;
    return refuse(reader, kSource, "other than spatial_avg_pool and temporal_avg_pool");
  }
  for (const char* key : {"conv_at_attn", "conv_at_ffn"}) {
    ASSIGN_OR_RETURN(const bool has_conv, reader.boolean(key, true));
    if (!has_conv) return refuse(reader, key, "false");
  }
  return ok_status();
}

}  // namespace

StatusOr<DavitConfig> read_davit_config(const Json& object, const std::string& file) {
  const ConfigReader reader(object, file);
  DavitConfig out;
  out.has_original_names = is_original_davit(object);
  ASSIGN_OR_RETURN(const int64_t channels, reader.integer("in_channels", 1, kMaxDavitDim, 3));
  if (channels != 3) return refuse(reader, "in_channels", str_cat(channels));
  RETURN_IF_ERROR(read_stages(object, reader, out));
  ASSIGN_OR_RETURN(out.window_side, reader.integer("window_size", 1, kMaxWindow, 12));
  ASSIGN_OR_RETURN(out.qkv_bias, reader.boolean("qkv_bias", true));
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "activation_function", "gelu"));
  ASSIGN_OR_RETURN(out.width, reader.integer("projection_dim", 1, kMaxDavitDim, 1024));
  ASSIGN_OR_RETURN(out.max_side, read_max_map_side(object, reader));
  if (out.has_original_names) {
    RETURN_IF_ERROR(read_original(object, reader, out));
  } else {
    ASSIGN_OR_RETURN(out.max_temporal, reader.integer("max_temporal_embeddings", 1, kMaxMoments, 100));
  }
  return out;
}

std::vector<PictureConv> DavitConfig::convs() const {
  std::vector<PictureConv> convs;
  for (const Stage& stage : stages) convs.push_back(stage.conv);
  return convs;
}

int64_t DavitConfig::widest_rows(int64_t most) const {
  const auto first_side = [&](int64_t side) {
    for (size_t i = stages.size(); --i > 0;) side = std::min(kMaxSide, stages[i].conv.longest_input(side));
    return side;
  };
  int64_t widest = 0;
  for (int64_t height = 1; height <= std::min(max_side, most); ++height) {
    widest = std::max(widest, first_side(height) * first_side(std::min(max_side, most / height)));
  }
  return widest;
}

}  // namespace transept
