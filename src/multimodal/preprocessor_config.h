// Reads preprocessor_config.json of a model's folder. Without the file all keys are absent. Immutable: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "core/model_config.h"

namespace transept {

class PreprocessorConfig final {
 public:
  // Errors name the file: not readable, over 8 MiB, not JSON, or not an object.
  static StatusOr<PreprocessorConfig> load(const ModelFolder& folder);

  const ConfigReader& reader() const { return *reader_; }

 private:
  std::unique_ptr<const Json> object_;  // on the heap: the reader borrows it, and the config can be moved
  std::unique_ptr<const ConfigReader> reader_;
};

}  // namespace transept
