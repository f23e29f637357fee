#include "startup/model_tokenizer.h"

#include <string_view>
#include <utility>

#include "multimodal/input_families.h"
#include "startup/model_files.h"
#include "startup/recognise_model.h"
#include "text/families/load_tokenizer.h"

namespace transept {
namespace {

TokenizerHints hints(const ModelConfig& config) {
  TokenizerHints hints;
  hints.model_type = config.model_type;
  hints.vocab_size = config.vocab_size;
  const auto text = [&](std::string_view key) {
    const Json* value = config.raw.find(key);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
  };
  hints.tokenizer_class = text("tokenizer_class");
  const Json* decoder_vocab_size = config.raw.find("decoder_vocab_size");
  if (decoder_vocab_size != nullptr && decoder_vocab_size->is_int()) {
    hints.decoder_vocab_size = decoder_vocab_size->as_int();
  }
  const auto table = [&](std::string_view key) {
    const Json* value = config.raw.find(key);
    return value == nullptr ? Json() : *value;
  };
  hints.grapheme_chars = table("grapheme_chars");
  hints.phoneme_chars = table("phoneme_chars");
  hints.bos_token_id = config.bos_token_id;
  hints.pad_token_id = config.pad_token_id;
  if (!config.eos_token_ids.empty()) hints.eos_token_id = config.eos_token_ids.front();
  return hints;
}

StatusOr<LoadedTokenizer> load_checked_tokenizer(const std::string& model_dir) {
  LoadedTokenizer loaded;
  ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::open(model_dir));
  ASSIGN_OR_RETURN(loaded.model_config, load_family_config(files.folder()));
  StatusOr<std::unique_ptr<Tokenizer>> tokenizer = tokenizer_of(loaded.model_config);
  if (!tokenizer.ok()) return with_tokenizer_folder(tokenizer.status(), model_dir);
  loaded.tokenizer = std::move(tokenizer).value();
  return loaded;
}

}  // namespace

Status with_tokenizer_folder(const Status& status, const std::string& dir) {
  return error_message(status).starts_with(dir) ? status : with_prefix(status, dir);
}

StatusOr<std::unique_ptr<Tokenizer>> tokenizer_of(const ModelConfig& config) {
  return load_tokenizer(config.folder, hints(config));
}

StatusOr<LoadedTokenizer> load_model_tokenizer(const std::string& model_dir) {
  StatusOr<LoadedTokenizer> loaded = load_checked_tokenizer(model_dir);
  if (!loaded.ok()) return explain_model_error(loaded.status(), model_dir);
  return loaded;
}

}  // namespace transept
