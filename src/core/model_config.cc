#include "core/model_config.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/config_file.h"

namespace transept {
namespace {

// Of the object of a composite model's decoder, or of its whole text model.
constexpr std::string_view kDecoderKeys[] = {"decoder", "text_config"};

constexpr size_t kMaxListedIds = 100'000;
constexpr size_t kMaxArchitectures = 100;
constexpr size_t kMaxStringBytes = 4096;
constexpr int64_t kMaxTokenId = std::numeric_limits<int32_t>::max();

bool is_absent(const Json* value) { return value == nullptr || value->is_null(); }

// A whole number, written 3 or 3.0.
std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_int()) return value.as_int();
  if (!value.is_number()) return std::nullopt;
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it not every whole number is a double
  const double number = value.as_double();
  if (std::abs(number) > kExact || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string shown(const Json& value) {
  constexpr size_t kShown = 60;
  if (value.is_array() || value.is_object()) return std::string(value.kind_name());
  const std::string text = value.dump();
  return text.size() <= kShown ? text : std::string(value.kind_name());
}

// Reads the special ids that `config` lacks. Ids of the model's own files lie inside its vocabulary (where config.json
// says how large that is): what the decoder gives and takes inside the decoder's.
Status read_special_ids(const ConfigReader& reader, ModelConfig& config) {
  const auto check = [&](std::string_view key, int32_t id) {
    const int64_t size = config.decoder_vocab_size;
    if (size == 0 || id < size) return ok_status();
    return reader.error(key, str_cat("id ", id, " is outside the vocabulary of ", size));
  };
  const std::pair<const char*, std::optional<int32_t>*> singles[] = {
      {"bos_token_id", &config.bos_token_id},
      {"pad_token_id", &config.pad_token_id},
      {"decoder_start_token_id", &config.decoder_start_token_id}};
  for (const auto& [key, id] : singles) {
    if (id->has_value()) continue;
    ASSIGN_OR_RETURN(*id, reader.token_id(key));
    if (id->has_value()) RETURN_IF_ERROR(check(key, **id));
  }
  if (!config.eos_token_ids.empty()) return ok_status();
  ASSIGN_OR_RETURN(config.eos_token_ids, reader.token_ids("eos_token_id"));
  for (const int32_t id : config.eos_token_ids) RETURN_IF_ERROR(check("eos_token_id", id));
  return ok_status();
}

// Vocabulary and width.
Status read_sizes(const Json& object, const ConfigReader& reader, ModelConfig& config) {
  if (reader.has("vocab_size")) {
    ASSIGN_OR_RETURN(config.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize));
  }
  for (const char* key : {"n_embd", "hidden_size", "d_model"}) {
    const Json* value = object.find(key);
    if (!is_absent(value)) config.width = whole_number(*value).value_or(0);
  }
  return ok_status();
}

Status read_architectures(const ConfigReader& reader, ModelConfig& config) {
  const Json* list = config.raw.find("architectures");
  if (is_absent(list)) return ok_status();
  if (!list->is_array() || list->as_array().size() > kMaxArchitectures) {
    return reader.error("architectures", str_cat("expected a list of at most ", kMaxArchitectures, " names"));
  }
  for (const Json& name : list->as_array()) {
    if (!name.is_string() || name.as_string().size() > kMaxStringBytes) {
      return reader.error("architectures", str_cat("expected names, got ", name.kind_name()));
    }
    config.architectures.push_back(name.as_string());
  }
  return ok_status();
}

}  // namespace

Status ConfigReader::error(std::string_view key, std::string_view reason) const {
  return with_param(invalid_argument(file_, ": ", key, ": ", reason), key);
}

bool ConfigReader::has(std::string_view key) const { return !is_absent(object_.find(key)); }

StatusOr<int64_t> ConfigReader::integer(std::string_view key, int64_t min, int64_t max,
                                        std::optional<int64_t> fallback) const {
  const Json* value = object_.find(key);
  if (is_absent(value)) {
    if (fallback.has_value()) return *fallback;
    return error(key, "is missing");
  }
  const std::optional<int64_t> number = whole_number(*value);
  if (!number.has_value() || *number < min || *number > max) {
    return error(key, str_cat("expected a whole number from ", min, " to ", max, ", got ", shown(*value)));
  }
  return *number;
}

StatusOr<double> ConfigReader::number(std::string_view key, double min, double max,
                                      std::optional<double> fallback) const {
  const Json* value = object_.find(key);
  if (is_absent(value)) {
    if (fallback.has_value()) return *fallback;
    return error(key, "is missing");
  }
  // Written so that a NaN is refused too.
  if (!value->is_number() || !(value->as_double() >= min && value->as_double() <= max)) {
    return error(key, str_cat("expected a number from ", min, " to ", max, ", got ", shown(*value)));
  }
  return value->as_double();
}

StatusOr<bool> ConfigReader::boolean(std::string_view key, bool fallback) const {
  const Json* value = object_.find(key);
  if (is_absent(value)) return fallback;
  if (!value->is_bool()) return error(key, str_cat("expected true or false, got ", shown(*value)));
  return value->as_bool();
}

StatusOr<std::string> ConfigReader::string(std::string_view key, std::optional<std::string> fallback) const {
  const Json* value = object_.find(key);
  if (is_absent(value)) {
    if (fallback.has_value()) return *std::move(fallback);
    return error(key, "is missing");
  }
  if (!value->is_string()) return error(key, str_cat("expected a string, got ", shown(*value)));
  if (value->as_string().size() > kMaxStringBytes) {
    return error(key, str_cat(value->as_string().size(), " bytes are over the ", kMaxStringBytes, " allowed"));
  }
  return value->as_string();
}

StatusOr<std::optional<int32_t>> ConfigReader::token_id(std::string_view key) const {
  if (is_absent(object_.find(key))) return std::optional<int32_t>();
  ASSIGN_OR_RETURN(const int64_t id, integer(key, 0, kMaxTokenId));
  return std::optional<int32_t>(static_cast<int32_t>(id));
}

StatusOr<std::vector<int32_t>> ConfigReader::token_ids(std::string_view key) const {
  std::vector<int32_t> ids;
  const Json* value = object_.find(key);
  if (is_absent(value)) return ids;
  if (!value->is_array()) {
    ASSIGN_OR_RETURN(const int64_t id, integer(key, 0, kMaxTokenId));
    ids.push_back(static_cast<int32_t>(id));
    return ids;
  }
  const Json::Array& list = value->as_array();
  if (list.size() > kMaxListedIds) {
    return error(key, str_cat(list.size(), " ids are over the ", kMaxListedIds, " allowed"));
  }
  for (const Json& item : list) {
    const std::optional<int64_t> id = whole_number(item);
    if (!id.has_value() || *id < 0 || *id > kMaxTokenId) {
      return error(key, str_cat("expected token ids from 0 to ", kMaxTokenId, ", got ", shown(item)));
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

std::string_view ModelConfig::decoder_key() const {
  for (const std::string_view key : kDecoderKeys) {
    const Json* object = raw.find(key);
    if (object != nullptr && object->is_object()) return key;
  }
  return "";
}

const Json* ModelConfig::decoder() const {
  const std::string_view key = decoder_key();
  return key.empty() ? nullptr : raw.find(key);
}

StatusOr<ModelConfig> ModelConfig::load(const ModelFolder& folder) {
  const std::string file = folder.name_of("config.json");
  ModelConfig config;
  config.folder = folder;
  config.path = folder.path();
  ASSIGN_OR_RETURN(config.raw, read_json_object(folder, "config.json"));
  const ConfigReader reader(config.raw, file);
  RETURN_IF_ERROR(read_architectures(reader, config));
  // umT5 as published names its architecture alone.
  const auto nameless = config.architectures.empty() ? std::nullopt : std::optional<std::string>("");
  ASSIGN_OR_RETURN(config.model_type, reader.string("model_type", nameless));
  RETURN_IF_ERROR(read_sizes(config.raw, reader, config));
  const Json* const decoder = config.decoder();
  const ConfigReader of_decoder(decoder == nullptr ? config.raw : *decoder, str_cat(file, ": ", config.decoder_key()));
  if (decoder != nullptr) RETURN_IF_ERROR(read_sizes(*decoder, of_decoder, config));
  config.decoder_vocab_size = config.vocab_size;
  ASSIGN_OR_RETURN(const bool is_shared, reader.boolean("share_encoder_decoder_embeddings", true));
  if (!is_shared && config.vocab_size != 0) {
    ASSIGN_OR_RETURN(config.decoder_vocab_size,
                     reader.integer("decoder_vocab_size", 1, ModelConfig::kMaxVocabSize, config.vocab_size));
  }
  RETURN_IF_ERROR(read_special_ids(reader, config));
  if (decoder != nullptr) RETURN_IF_ERROR(read_special_ids(of_decoder, config));
  return config;
}

}  // namespace transept
