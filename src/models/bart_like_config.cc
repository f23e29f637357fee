#include "models/bart_like_config.h"

#include "base/log.h"
#include "models/activation_field.h"

namespace transept {
namespace {

constexpr int64_t kMaxBartLayers = 1000, kMaxHeads = 1024, kMinDim = 4, kMaxDim = 1 << 20;
constexpr int64_t kMaxPositions = ModelSpec::kMaxPositions;

StatusOr<BartLikeConfig::Side> read_side(const ConfigReader& reader, std::string_view side, int64_t d_model) {
  const auto key = [side](std::string_view rest) { return str_cat(side, rest); };
  BartLikeConfig::Side out;
  ASSIGN_OR_RETURN(out.layers, reader.integer(key("_layers"), 1, kMaxBartLayers));
  ASSIGN_OR_RETURN(out.heads, reader.integer(key("_attention_heads"), 1, kMaxHeads));
  ASSIGN_OR_RETURN(out.ffn_dim, reader.integer(key("_ffn_dim"), 1, kMaxDim));
  if (d_model % out.heads != 0) {
    return reader.error(key("_attention_heads"), str_cat(out.heads, " heads do not divide d_model ", d_model));
  }
  return out;
}

Status read_switches(const BartLikeTraits& traits, const ConfigReader& reader, BartLikeConfig& out) {
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "activation_function", traits.activation));
  ASSIGN_OR_RETURN(out.scale_embedding, reader.boolean("scale_embedding", traits.scale_embedding));
  ASSIGN_OR_RETURN(out.tie_word_embeddings, reader.boolean("tie_word_embeddings", true));
  return ok_status();
}

// Switches of the time when one class served all families. transformers reads none of them any more: the family alone
// decides. Checkpoints that were trained since then may hold anything there.
void warn_of_contradictions(const BartLikeTraits& traits, const ConfigReader& reader) {
  const bool is_before = traits.norm_place == NormPlace::kBefore;
  const struct {
    std::string_view key;
    bool value;
  } switches[] = {{"normalize_before", is_before},
                  {"add_final_layer_norm", is_before},
                  {"normalize_embedding", traits.encoder_embedding_norm != EmbeddingNorm::kNone},
                  {"static_position_embeddings", traits.positions.kind != PositionTraits::Kind::kLearned}};
  for (const auto& [key, value] : switches) {
    const StatusOr<bool> given = reader.boolean(key, value);
    if (given.ok() && *given == value) continue;
    log_warning(reader.file(), ": ", key, ": has no effect: ", traits.family, " models are computed as if it were ",
                value ? "true" : "false");
  }
}

StatusOr<BartLikeConfig> read_sides(const BartLikeTraits& traits, const ConfigReader& reader) {
  BartLikeConfig out;
  ASSIGN_OR_RETURN(out.d_model, reader.integer("d_model", kMinDim, kMaxDim));
  ASSIGN_OR_RETURN(out.encoder, read_side(reader, "encoder", out.d_model));
  ASSIGN_OR_RETURN(out.decoder, read_side(reader, "decoder", out.d_model));
  ASSIGN_OR_RETURN(out.encoder.max_positions, reader.integer(traits.encoder_positions_key, 1, kMaxPositions));
  ASSIGN_OR_RETURN(out.decoder.max_positions, reader.integer(traits.decoder_positions_key, 1, kMaxPositions));
  ASSIGN_OR_RETURN(out.share_embeddings, reader.boolean("share_encoder_decoder_embeddings", true));
  out.share_embeddings = out.share_embeddings && !traits.encodes_media;
  RETURN_IF_ERROR(read_switches(traits, reader, out));
  warn_of_contradictions(traits, reader);
  return out;
}

}  // namespace

StatusOr<BartLikeConfig> read_bart_like_config(const BartLikeTraits& traits, const ModelConfig& config) {
  const ConfigReader reader(config.raw, config.path + "/config.json");
  ASSIGN_OR_RETURN(BartLikeConfig out, read_sides(traits, reader));
  if (config.vocab_size == 0) return reader.error("vocab_size", "is missing");
  out.encoder.vocab_size = config.vocab_size;
  out.decoder.vocab_size = config.decoder_vocab_size;
  return out;
}

StatusOr<BartLikeConfig> read_bart_like_text_config(const BartLikeTraits& traits, const ConfigReader& reader) {
  ASSIGN_OR_RETURN(BartLikeConfig out, read_sides(traits, reader));
  ASSIGN_OR_RETURN(out.encoder.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize));
  out.decoder.vocab_size = out.encoder.vocab_size;
  return out;
}

StatusOr<BartLikeConfig> read_bart_like_decoder_config(const BartLikeTraits& traits, const ConfigReader& reader) {
  BartLikeConfig out;
  out.share_embeddings = false;
  ASSIGN_OR_RETURN(out.d_model, reader.integer("d_model", kMinDim, kMaxDim));
  ASSIGN_OR_RETURN(out.decoder, read_side(reader, "decoder", out.d_model));
  ASSIGN_OR_RETURN(out.decoder.max_positions, reader.integer(traits.decoder_positions_key, 1, kMaxPositions));
  ASSIGN_OR_RETURN(out.decoder.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize));
  RETURN_IF_ERROR(read_switches(traits, reader, out));
  return out;
}

}  // namespace transept
