#include "core/generation_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/config_file.h"

namespace transept {
namespace {

constexpr std::string_view kFile = "generation_config.json";
constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr double kMaxPenalty = 1000;
constexpr int64_t kMaxBeams = 64, kMaxOutputs = 16;  // docs/server.md, Limits
constexpr int32_t kDefaultTopK = 50;                 // of Hugging Face's GenerationConfig
constexpr size_t kMaxEosIds = 1024, kMaxBadWords = 10'000, kMaxBadWordIds = 1024;

using EarlyStopping = SamplingParams::EarlyStopping;

// Decoding fields of Hugging Face's GenerationConfig that nothing here implements, with the value that changes nothing
// (null does not either). transformers, generation/configuration_utils.py.
struct Unsupported {
  std::string_view key;
  double neutral;  // a number, or 0 and 1 for false and true
};
constexpr double kOnlyNull = std::numeric_limits<double>::quiet_NaN();
constexpr Unsupported kUnsupported[] = {
    {"num_beam_groups", 1},
    {"diversity_penalty", 0},
    {"guidance_scale", 1},
    {"penalty_alpha", 0},
    {"typical_p", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"top_h", kOnlyNull},
    {"encoder_repetition_penalty", 1},
    {"exponential_decay_length_penalty", kOnlyNull},
    {"sequence_bias", kOnlyNull},
    {"constraints", kOnlyNull},
    {"force_words_ids", kOnlyNull},
    {"forced_decoder_ids", kOnlyNull},
    {"remove_invalid_values", 0},
    {"stop_strings", kOnlyNull},
    {"max_time", kOnlyNull},
    {"watermarking_config", kOnlyNull},
    {"prompt_lookup_num_tokens", kOnlyNull},
    {"dola_layers", kOnlyNull},
    {"token_healing", 0},
};

bool is_neutral(const Json& value, double neutral) {
  if (value.is_null()) return true;
  if (value.is_bool()) return (value.as_bool() ? 1.0 : 0.0) == neutral;
  if (value.is_number()) return value.as_double() == neutral;
  return (value.is_array() && value.as_array().empty()) || (value.is_object() && value.as_object().empty());
}

void list_unsupported(const Json& object, std::vector<std::string>& out) {
  constexpr size_t kShown = 80;
  for (const Unsupported& field : kUnsupported) {
    const Json* value = object.find(field.key);
    if (value == nullptr || is_neutral(*value, field.neutral)) continue;
    const std::string text = value->dump();
    out.push_back(str_cat(field.key, ": ", text.size() <= kShown ? text : std::string(value->kind_name())));
  }
}

// One file's object, read into a GenerationConfig.
class Loader final {
 public:
  Loader(const Json& object, std::string file, int64_t vocab_size)
      : object_(object), reader_(object, std::move(file)), vocab_size_(vocab_size) {}

  Status read(GenerationConfig& out) const {
    RETURN_IF_ERROR(read_lengths(out));
    RETURN_IF_ERROR(read_sampling(out));
    RETURN_IF_ERROR(read_beams(out));
    RETURN_IF_ERROR(read_constraints(out));
    list_unsupported(object_, out.unsupported);
    return ok_status();
  }

  // bos, eos, pad and decoder_start, where `out` has none yet.
  Status read_special_ids(GenerationConfig& out) const {
    if (!out.bos_token_id) RETURN_IF_ERROR(read_id("bos_token_id", out.bos_token_id));
    if (!out.pad_token_id) RETURN_IF_ERROR(read_id("pad_token_id", out.pad_token_id));
    if (!out.decoder_start_token_id) RETURN_IF_ERROR(read_id("decoder_start_token_id", out.decoder_start_token_id));
    if (!out.eos_token_ids.empty()) return ok_status();
    RETURN_IF_ERROR(read_ids("eos_token_id", out.eos_token_ids));
    return check_count("eos_token_id", out.eos_token_ids.size(), kMaxEosIds);
  }

 private:
  Status read_lengths(GenerationConfig& out) const {
    RETURN_IF_ERROR(read_count("max_length", 1, out.max_length));
    RETURN_IF_ERROR(read_count("min_length", 0, out.min_length));
    RETURN_IF_ERROR(read_count("max_new_tokens", 1, out.max_new_tokens));
    return read_count("min_new_tokens", 0, out.min_new_tokens);
  }

  Status read_sampling(GenerationConfig& out) const {
    ASSIGN_OR_RETURN(out.do_sample, reader_.boolean("do_sample", false));
    RETURN_IF_ERROR(read_float("temperature", 0, 100, out.temperature));
    ASSIGN_OR_RETURN(const int64_t top_k, reader_.integer("top_k", 0, kMaxInt, out.do_sample ? kDefaultTopK : 0));
    out.top_k = static_cast<int32_t>(top_k);
    RETURN_IF_ERROR(read_float("top_p", 0, 1, out.top_p));
    if (out.top_p <= 0) return reader_.error("top_p", "expected a number above 0");
    return read_float("min_p", 0, 1, out.min_p);
  }

  Status read_beams(GenerationConfig& out) const {
    ASSIGN_OR_RETURN(const int64_t num_beams, reader_.integer("num_beams", 1, kMaxBeams, 1));
    out.num_beams = static_cast<int32_t>(num_beams);
    ASSIGN_OR_RETURN(const int64_t returned, reader_.integer("num_return_sequences", 1, kMaxOutputs, 1));
    out.num_return_sequences = static_cast<int32_t>(returned);
    RETURN_IF_ERROR(read_float("length_penalty", -100, 100, out.length_penalty));
    const Json* value = object_.find("early_stopping");
    if (value == nullptr || value->is_null()) return ok_status();
    if (value->is_string() && value->as_string() == "never") {
      out.early_stopping = EarlyStopping::kNever;
    } else if (value->is_bool()) {
      out.early_stopping = value->as_bool() ? EarlyStopping::kTrue : EarlyStopping::kFalse;
    } else {
      return reader_.error("early_stopping", "expected true, false or \"never\"");
    }
    return ok_status();
  }

  Status read_constraints(GenerationConfig& out) const {
    RETURN_IF_ERROR(read_float("repetition_penalty", 0, kMaxPenalty, out.repetition_penalty));
    if (out.repetition_penalty <= 0) return reader_.error("repetition_penalty", "expected a number above 0");
    ASSIGN_OR_RETURN(const int64_t ngram, reader_.integer("no_repeat_ngram_size", 0, kMaxInt, 0));
    out.no_repeat_ngram_size = static_cast<int32_t>(ngram);
    ASSIGN_OR_RETURN(const int64_t encoder_ngram, reader_.integer("encoder_no_repeat_ngram_size", 0, kMaxInt, 0));
    out.encoder_no_repeat_ngram_size = static_cast<int32_t>(encoder_ngram);
    ASSIGN_OR_RETURN(out.renormalize_logits, reader_.boolean("renormalize_logits", false));
    RETURN_IF_ERROR(read_id("forced_bos_token_id", out.forced_bos_token_id));
    RETURN_IF_ERROR(read_ids("forced_eos_token_id", out.forced_eos_token_ids));
    RETURN_IF_ERROR(check_count("forced_eos_token_id", out.forced_eos_token_ids.size(), kMaxEosIds));
    RETURN_IF_ERROR(read_ids("suppress_tokens", out.suppress_tokens));
    RETURN_IF_ERROR(read_ids("begin_suppress_tokens", out.begin_suppress_tokens));
    return read_bad_words(out);
  }

  Status read_bad_words(GenerationConfig& out) const {
    constexpr std::string_view kKey = "bad_words_ids";
    const Json* value = object_.find(kKey);
    if (value == nullptr || value->is_null()) return ok_status();
    if (!value->is_array()) return reader_.error(kKey, "expected a list of lists of token ids");
    RETURN_IF_ERROR(check_count(kKey, value->as_array().size(), kMaxBadWords));
    for (const Json& word : value->as_array()) {
      // One word at a time through the reader, so that ids have one set of rules.
      Json::Object one;
      one.emplace_back(std::string(kKey), word);
      const Json object{std::move(one)};
      const ConfigReader reader(object, reader_.file());
      if (!word.is_array() || word.as_array().empty()) {
        return reader.error(kKey, "expected a list of non-empty lists of token ids");
      }
      RETURN_IF_ERROR(check_count(kKey, word.as_array().size(), kMaxBadWordIds));
      ASSIGN_OR_RETURN(std::vector<int32_t> ids, reader.token_ids(kKey));
      for (const int32_t id : ids) RETURN_IF_ERROR(check_id(kKey, id));
      out.bad_words_ids.push_back(std::move(ids));
    }
    return ok_status();
  }

  Status read_count(std::string_view key, int64_t min, std::optional<int32_t>& out) const {
    const Json* value = object_.find(key);
    if (value == nullptr || value->is_null()) return ok_status();
    ASSIGN_OR_RETURN(const int64_t count, reader_.integer(key, min, kMaxInt));
    out = static_cast<int32_t>(count);
    return ok_status();
  }

  Status read_float(std::string_view key, double min, double max, float& out) const {
    ASSIGN_OR_RETURN(const double value, reader_.number(key, min, max, static_cast<double>(out)));
    out = static_cast<float>(value);
    return ok_status();
  }

  Status read_id(std::string_view key, std::optional<int32_t>& out) const {
    ASSIGN_OR_RETURN(out, reader_.token_id(key));
    return out.has_value() ? check_id(key, *out) : ok_status();
  }

  Status read_ids(std::string_view key, std::vector<int32_t>& out) const {
    ASSIGN_OR_RETURN(out, reader_.token_ids(key));
    for (const int32_t id : out) RETURN_IF_ERROR(check_id(key, id));
    return ok_status();
  }

  Status check_id(std::string_view key, int32_t id) const {
    if (vocab_size_ == 0 || id < vocab_size_) return ok_status();
    return reader_.error(key, str_cat("id ", id, " is outside the vocabulary of ", vocab_size_));
  }

  Status check_count(std::string_view key, size_t count, size_t max) const {
    return count <= max ? ok_status() : reader_.error(key, str_cat(count, " entries are over the ", max, " allowed"));
  }

  const Json& object_;
  ConfigReader reader_;
  int64_t vocab_size_;
};

// Ids that config.json does not hold by these names: those of the family's class.
void take_ids(const ModelConfig& config, GenerationConfig& out) {
  const auto take = [&](const auto& of_config, auto& id) {
    if (of_config.has_value() && (!id.has_value() || config.fixes_special_ids)) id = of_config;
  };
  take(config.bos_token_id, out.bos_token_id);
  take(config.pad_token_id, out.pad_token_id);
  take(config.decoder_start_token_id, out.decoder_start_token_id);
  if (out.eos_token_ids.empty() || config.fixes_special_ids) out.eos_token_ids = config.eos_token_ids;
}

// config.json's fields, and those of its text model where it has none of that name: the reference's legacy form.
Json legacy_fields(const ModelConfig& config) {
  const Json* decoder = config.decoder();
  if (decoder == nullptr) return config.raw;
  Json fields = config.raw;
  for (const auto& [key, value] : decoder->as_object()) {
    const Json* own = fields.find(key);
    if (own == nullptr || own->is_null()) fields.set(key, value);
  }
  return fields;
}

}  // namespace

StatusOr<GenerationConfig> GenerationConfig::load(const ModelFolder& folder, const ModelConfig& config) {
  GenerationConfig out;
  const std::string config_file = folder.name_of("config.json");
  const Loader legacy(config.raw, config_file, config.decoder_vocab_size);
  if (folder.has(kFile)) {
    ASSIGN_OR_RETURN(const Json object, read_json_object(folder, kFile));
    const Loader loader(object, folder.name_of(kFile), config.decoder_vocab_size);
    out.source = kFile;
    RETURN_IF_ERROR(loader.read(out));
    RETURN_IF_ERROR(loader.read_special_ids(out));
    out.raw = object;
  } else {
    out.source = "config.json";
    const Json fields = legacy_fields(config);
    RETURN_IF_ERROR(Loader(fields, config_file, config.decoder_vocab_size).read(out));
    out.raw = fields;
  }
  RETURN_IF_ERROR(legacy.read_special_ids(out));
  if (const Json* decoder = config.decoder(); decoder != nullptr) {
    const std::string file = str_cat(config_file, ": ", config.decoder_key());
    RETURN_IF_ERROR(Loader(*decoder, file, config.decoder_vocab_size).read_special_ids(out));
  }
  take_ids(config, out);
  return out;
}

}  // namespace transept
