// Which of a repository's files the engine reads (weights/weight_map.h, text/families/load_tokenizer.h, core,
// multimodal, startup/shortlist_file.h): these are fetched, and no others. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

enum class ModelParts {
  kAll,
  kTokenizer,  // no weights: tokenize and detokenize
};

struct SelectedFiles {
  std::vector<std::string> small;    // config.json, generation_config.json, tokenizer files, ...; also the index
  std::vector<std::string> weights;  // one file; empty if an index names them
  std::string index;                 // model.safetensors.index.json or that of pytorch_model.bin; "": none
};

// Chooses among the paths of a listing. Of weights: model.safetensors, else its shards, else pytorch_model.bin, else
// its shards, else CTranslate2's model.bin with its lists of tokens. Errors (kNotFound): no config.json, or no weights
// in these forms; says what is there instead.
StatusOr<SelectedFiles> select_files(std::span<const std::string> paths, ModelParts parts);

// Returns the shards that an index names, in order. Errors (kInvalidArgument): no JSON of that form, a shard that is no
// plain file name, none, or more than 10,000.
StatusOr<std::vector<std::string>> parse_shards(std::string_view index_json);

// The model that an adapter was made for, as its adapter_config.json has it (base_model_name_or_path); "": it names
// none that a hub may have.
std::string base_of_adapter(std::string_view adapter_config_json);

// Files that a folder may lack, but that nearly every published model has: a snapshot without a listing counts as
// complete only if it has each or a note that the repository has not (hub/find_cached.h). `model_type` is
// config.json's.
std::vector<std::string> expected_files(std::string_view model_type);

// Whether the weights are CTranslate2's: config.json does not say what the model is then.
bool is_ctranslate2(const SelectedFiles& selected);

// Whether `has` knows a tokenizer's vocabulary, in any form that is read.
bool has_vocabulary(std::span<const std::string> files);

}  // namespace transept
