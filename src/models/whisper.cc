// Whisper (Radford et al. 2022): pre-norm BART layers whose keys have no bias, over log-mel frames that two
// convolutions halve in number. Checkpoints: openai/whisper-tiny to -large-v3, -large-v3-turbo and *.en,
// distil-whisper/distil-*. Source: transformers, models/whisper/modeling_whisper.py.
#include <algorithm>

#include "base/log.h"
#include "core/config_file.h"
#include "layers/conv1d.h"
#include "models/bart_like.h"
#include "models/bart_like_config.h"
#include "models/encoder_decoder_model.h"
#include "models/families.h"

namespace transept {
namespace {

constexpr BartLikeTraits kTraits{
    .family = "whisper",
    .norm_place = NormPlace::kBefore,
    .positions = {.kind = PositionTraits::Kind::kLearned},
    .encoder_positions_key = "max_source_positions",
    .decoder_positions_key = "max_target_positions",
    .output_layer = "proj_out.weight",
    .k_has_bias = false,
    .encodes_media = true,
};

// Log-mel [num_mel_bins, num_frames] -> gelu(conv1) -> gelu(conv2), which takes every second frame -> + positions.
class MelInput final : public EncoderInput {
 public:
  static StatusOr<std::unique_ptr<EncoderInput>> load(const ConfigReader& reader, const BartLikeConfig& sizes,
                                                      WeightMap& weights, const PackOptions& packing) {
    constexpr int64_t kMaxBins = 4096;
    ASSIGN_OR_RETURN(const int64_t bins, reader.integer("num_mel_bins", 1, kMaxBins));
    const auto conv = [&](const std::string& name, int64_t in, int64_t stride) {
      return Conv1d::load(weights, {"encoder." + name, in, sizes.d_model, {3, stride, 1}}, packing);
    };
    ASSIGN_OR_RETURN(Conv1d conv1, conv("conv1", bins, 1));
    ASSIGN_OR_RETURN(Conv1d conv2, conv("conv2", sizes.d_model, 2));
    ASSIGN_OR_RETURN(Embedding positions, Embedding::load(weights, "encoder.embed_positions.weight",
                                                          sizes.encoder.max_positions, sizes.d_model));
    return std::unique_ptr<EncoderInput>(new MelInput(std::move(conv1), std::move(conv2), std::move(positions)));
  }

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    positions_.look_up(context, batch.positions, 0, 1.0f, x);
    int64_t row = 0;
    for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
      const int64_t end = row + batch.attention.seq_lens[i];
      add_frames(context, context.dry_run ? nullptr : &batch.features[i], x.rows(row, end));
      row = end;
    }
  }

 private:
  MelInput(Conv1d conv1, Conv1d conv2, Embedding positions)
      : conv1_(std::move(conv1)), conv2_(std::move(conv2)), positions_(std::move(positions)) {}

  // y: what positions say; the convolutions' output is added. mel: null in a dry run.
  void add_frames(Context& context, const FeaturesView* mel, const TensorView& y) const {
    const int64_t bins = conv1_.in_channels();
    int64_t num_frames = conv1d_longest_input(y.dim(0), conv2_.shape());
    if (mel != nullptr) {
      CHECK(mel->shape.size() == 2 && mel->shape[0] == bins && conv2_.output_length(mel->shape[1]) == y.dim(0),
            "log-mel of ", mel->shape.size(), " axes for ", bins, " bins and ", y.dim(0), " positions");
      num_frames = mel->shape[1];
    }
    Arena::Scope scope(context.arena);
    const PaddedRows frames = padded_rows(context, num_frames, bins, conv1_.shape().padding);
    const PaddedRows hidden = padded_rows(context, num_frames, conv1_.out_channels(), conv2_.shape().padding);
    if (mel != nullptr) to_time_major(context, mel->values, frames.rows);
    conv1_.forward(context, frames.whole, {.activation = Activation::kGelu}, hidden.rows);
    conv2_.forward(context, hidden.whole, {.activation = Activation::kGelu, .residual = y}, y);
  }

  Conv1d conv1_, conv2_;
  Embedding positions_;
};

// generation_config.json's alignment_heads: pairs of a decoder layer and a head of it. None where the file or the field
// is missing, and where they are not this model's: distilled checkpoints kept the list of the model that taught them.
StatusOr<std::vector<LayerHead>> read_alignment_heads(const ModelFolder& folder, const BartLikeConfig::Side& decoder) {
  constexpr std::string_view kFile = "generation_config.json";
  std::vector<LayerHead> heads;
  if (!folder.has(kFile)) return heads;
  const std::string file = folder.name_of(kFile);
  constexpr std::string_view kKey = "alignment_heads";
  ASSIGN_OR_RETURN(const Json object, read_json_object(folder, kFile));
  const ConfigReader reader(object, file);
  const Json* list = object.find(kKey);
  if (list == nullptr || list->is_null()) return heads;
  constexpr size_t kMaxListed = 1 << 20;
  if (!list->is_array() || list->as_array().size() > kMaxListed) {
    return reader.error(kKey, "expected a list of pairs of a layer and a head");
  }
  for (const Json& pair : list->as_array()) {
    const bool is_pair =
        pair.is_array() && pair.as_array().size() == 2 && pair.as_array()[0].is_int() && pair.as_array()[1].is_int();
    if (!is_pair) return reader.error(kKey, "expected pairs of a layer and a head");
    const int64_t layer = pair.as_array()[0].as_int(), head = pair.as_array()[1].as_int();
    if (layer < 0 || head < 0) return reader.error(kKey, str_cat("layer ", layer, ", head ", head, " is below 0"));
    if (layer >= decoder.layers || head >= decoder.heads) {
      log_warning(file, ": ", kKey, ": layer ", layer, ", head ", head, " is not among the model's ", decoder.layers,
                  " decoder layers of ", decoder.heads, " heads: the list is another model's, and has no effect");
      return std::vector<LayerHead>();
    }
    heads.push_back({static_cast<int32_t>(layer), static_cast<int32_t>(head)});
  }
  const auto place = [](const LayerHead& at) { return std::pair(at.layer, at.head); };
  std::ranges::sort(heads, {}, place);
  const auto twice = std::ranges::adjacent_find(heads, {}, place);
  if (twice == heads.end()) return heads;
  return reader.error(kKey, str_cat("layer ", twice->layer, ", head ", twice->head, " stands there twice"));
}

}  // namespace

StatusOr<std::unique_ptr<Model>> load_whisper(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                              const ModelLoadOptions& options) {
  const ConfigReader reader(config.raw, config.path + "/config.json");
  ASSIGN_OR_RETURN(BartLikeConfig sizes, read_bart_like_config(kTraits, config));
  if (sizes.scale_embedding) {
    log_warning(reader.file(), ": scale_embedding: has no effect: the reference never scales");
    sizes.scale_embedding = false;
  }
  weights->set_optional_prefix("model.");
  std::unique_ptr<EncoderInput> input;
  if (has_encoder(options.part)) {
    ASSIGN_OR_RETURN(input, MelInput::load(reader, sizes, *weights, options.packing));
  }
  ASSIGN_OR_RETURN(EncoderDecoderParts parts,
                   load_bart_like_parts(kTraits, sizes, std::move(input), *weights, options));
  parts.spec.modalities = {"audio"};
  ASSIGN_OR_RETURN(parts.spec.alignment_heads, read_alignment_heads(config.folder, sizes.decoder));
  return make_encoder_decoder_model(std::move(parts), std::move(weights));
}

}  // namespace transept
