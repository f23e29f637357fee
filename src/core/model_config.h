// config.json as read: the fields common to every family, and the whole object for what a family reads itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace transept {

struct ModelConfig {
  std::string path;                        // the model's folder
  std::string model_type;                  // "bart"; "" only where architectures say what it is
  std::vector<std::string> architectures;  // ["BartForConditionalGeneration"]
  int64_t vocab_size = 0;                  // 0: the file does not say (a folder with a tokenizer alone)
  int64_t decoder_vocab_size = 0;          // vocab_size, but where each side has its own (Marian)
  std::optional<int32_t> bos_token_id, pad_token_id, decoder_start_token_id;
  std::vector<int32_t> eos_token_ids;
  Json raw;  // the whole file

  // Reads DIR/config.json. Errors name the file and the field.
  static StatusOr<ModelConfig> load(const std::string& dir);
};

// Typed reading of a config object: every number is range-checked, every error names file and field.
// Absent and null are the same; whole numbers may be written 3.0. `object` must outlive the reader.
class ConfigReader final {
 public:
  ConfigReader(const Json& object, std::string file) : object_(object), file_(std::move(file)) {}

  // From min to max; without a fallback the key must be there.
  StatusOr<int64_t> integer(std::string_view key, int64_t min, int64_t max,
                            std::optional<int64_t> fallback = std::nullopt) const;
  StatusOr<double> number(std::string_view key, double min, double max,
                          std::optional<double> fallback = std::nullopt) const;
  StatusOr<bool> boolean(std::string_view key, bool fallback) const;
  StatusOr<std::string> string(std::string_view key, std::optional<std::string> fallback = std::nullopt) const;
  StatusOr<std::optional<int32_t>> token_id(std::string_view key) const;  // absent, null: none
  StatusOr<std::vector<int32_t>> token_ids(std::string_view key) const;   // a number or a list of at most 100,000
  bool has(std::string_view key) const;                                   // and it is not null
  // "FILE: KEY: REASON", naming the key.
  Status error(std::string_view key, std::string_view reason) const;
  const std::string& file() const { return file_; }

 private:
  const Json& object_;
  std::string file_;
};

}  // namespace transept
