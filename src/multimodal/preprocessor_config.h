// preprocessor_config.json, which may be missing: then every key is.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "core/model_config.h"

namespace transept {

class PreprocessorConfig final {
 public:
  // Errors name the file: not JSON, not an object, too large.
  static StatusOr<PreprocessorConfig> load(const std::string& model_dir);

  const ConfigReader& reader() const { return *reader_; }

 private:
  std::unique_ptr<const Json> object_;  // at a fixed address: the reader borrows it
  std::unique_ptr<const ConfigReader> reader_;
};

}  // namespace transept
