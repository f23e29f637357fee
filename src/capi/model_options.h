// The model and the options of transept_model_load as the engine's configuration. Functions: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "startup/engine_config.h"

namespace transept {

// `model` is not set.
struct ModelOptions : EngineConfig {
  std::string revision;           // of a model of the hub; "": as its name says, else main
  std::string download_dir;       // the hub's cache; "": huggingface_hub's
  std::string hf_token;           // of the hub; "": what the environment says
  bool local_files_only = false;  // nothing is fetched
};

// `options`: an object with the options that transept.h lists, which are the engine's flags with underscores and have
// their defaults. Errors (kInvalidArgument) name the option: unknown, of another kind, out of range. load_engine checks
// words.
StatusOr<ModelOptions> model_options_of(const Json& options);

// The error of load_engine in words of options: a flag's name becomes that of its option ("--kv-cache-dtype x:
// unknown": "kv_cache_dtype x: unknown"), and the option that the message begins with is its field.
Status in_words_of_options(const Status& status);

// As FindModelOptions::on_progress; null: not told.
using OnDownload = std::function<void(const std::string& name, int64_t done, int64_t total)>;

// The folder of a folder's, a bundled model's or a hub's name. Fetches what is not in the cache. Errors: find_model's.
StatusOr<std::string> model_folder_of(const std::string& name, const ModelOptions& options,
                                      const OnDownload& on_download);

}  // namespace transept
