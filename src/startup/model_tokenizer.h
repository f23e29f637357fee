// The tokenizer of a model folder, without its weights. Functions without state: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "core/model_config.h"
#include "text/tokenizer.h"

namespace transept {

// What tokenising alone needs: no weights.
struct LoadedTokenizer {
  ModelConfig model_config;
  std::unique_ptr<Tokenizer> tokenizer;
};
// Errors: those of the config and of load_tokenizer(), explained (recognise_model.h).
StatusOr<LoadedTokenizer> load_model_tokenizer(const std::string& model_dir);

// Errors: those of load_tokenizer(); kNotFound and kUnimplemented: there are no files, or of a kind that is not read.
StatusOr<std::unique_ptr<Tokenizer>> tokenizer_of(const ModelConfig& config);

// Errors of a folder's tokenizer name files by their bare names, but for those that could not be read.
Status with_tokenizer_folder(const Status& status, const std::string& dir);

}  // namespace transept
