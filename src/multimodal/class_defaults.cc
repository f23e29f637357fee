#include "multimodal/class_defaults.h"

#include <string>

#include "base/strings.h"

namespace transept {
namespace {

constexpr int64_t kMaxWidth = 1 << 20;

// text_config, or an empty object.
Json text_side(const ModelConfig& config) {
  const Json* object = config.raw.find("text_config");
  return object != nullptr && object->is_object() ? *object : Json::object();
}

struct TextSizes {
  int64_t vocab_size, width;
};

Status settle_sizes(const ConfigReader& reader, const TextSizes& defaults, ModelConfig& config) {
  ASSIGN_OR_RETURN(config.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize, defaults.vocab_size));
  config.decoder_vocab_size = config.vocab_size;
  ASSIGN_OR_RETURN(config.width, reader.integer("hidden_size", 1, kMaxWidth, defaults.width));
  return ok_status();
}

// The id `key`, or the class's.
StatusOr<int32_t> read_id(const ConfigReader& reader, std::string_view key, int32_t fallback, int64_t vocab_size) {
  ASSIGN_OR_RETURN(const std::optional<int32_t> id, reader.token_id(key));
  if (id.value_or(fallback) < vocab_size) return id.value_or(fallback);
  return reader.error(key, str_cat("id ", id.value_or(fallback), id.has_value() ? "" : " (the default)",
                                   " is outside the vocabulary of ", vocab_size));
}

}  // namespace

Status settle_blip_config(ModelConfig& config) {
  const Json text = text_side(config);
  const ConfigReader reader(text, config.path + "/config.json: text_config");
  RETURN_IF_ERROR(settle_sizes(reader, {30524, 768}, config));
  ASSIGN_OR_RETURN(const int32_t start, read_id(reader, "bos_token_id", 30522, config.vocab_size));
  ASSIGN_OR_RETURN(const int32_t end, read_id(reader, "sep_token_id", 102, config.vocab_size));
  ASSIGN_OR_RETURN(const int32_t padding, read_id(reader, "pad_token_id", 0, config.vocab_size));
  config.bos_token_id = config.decoder_start_token_id = start;
  config.pad_token_id = padding;
  config.eos_token_ids = {end};
  config.fixes_special_ids = true;
  return ok_status();
}

Status settle_pix2struct_config(ModelConfig& config) {
  const Json text = text_side(config);
  const ConfigReader reader(text, config.path + "/config.json: text_config");
  RETURN_IF_ERROR(settle_sizes(reader, {50244, 768}, config));
  if (!config.decoder_start_token_id.has_value()) config.decoder_start_token_id = 0;
  if (!config.pad_token_id.has_value()) config.pad_token_id = 0;
  if (!config.eos_token_ids.empty()) return ok_status();
  ASSIGN_OR_RETURN(const int32_t end, read_id(reader, "eos_token_id", 1, config.vocab_size));
  config.eos_token_ids = {end};
  return ok_status();
}

}  // namespace transept
