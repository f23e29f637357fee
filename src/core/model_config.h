// config.json as read: the fields that all families share, and the whole object for the fields of one family. Values; a
// ConfigReader only reads, so both are thread-safe once constructed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/model_folder.h"
#include "base/status.h"

namespace transept {

struct ModelConfig {
  static constexpr int64_t kMaxVocabSize = 2'000'000;  // docs/server.md, Limits

  ModelFolder folder;                      // where its other files are
  std::string path;                        // folder.path(), for messages
  std::string model_type;                  // "bart"; may be "" only if `architectures` is not empty
  std::vector<std::string> architectures;  // ["BartForConditionalGeneration"]
  int64_t vocab_size = 0;                  // 0: not in the file (a folder with only a tokenizer)
  int64_t decoder_vocab_size = 0;          // differs from vocab_size only where each side has its own (Marian)
  int64_t width = 0;  // d_model, or hidden_size or n_embd where a family calls it so; 0: none is a whole number
  std::optional<int32_t> bos_token_id, pad_token_id, decoder_start_token_id;
  std::vector<int32_t> eos_token_ids;
  // Whether these ids hold over those of generation_config.json: the family's class gives them to its generate()
  // (BLIP). The family says so, not the file (multimodal/class_defaults.h).
  bool fixes_special_ids = false;
  Json raw;  // the whole file

  // The object of the decoder, or of the whole text model, in the file of a composite model: "decoder"
  // (vision-encoder-decoder) or "text_config" (BLIP, Florence-2; Qwen2-VL as 5.x writes it). Null: the file is of one
  // model. decoder_key: its name; "": there is none.
  const Json* decoder() const;
  std::string_view decoder_key() const;

  // Reads config.json. A composite model's vocabulary and width are its decoder's; its special ids are those of the
  // top level, and where that lacks one the decoder's, as in transformers. Errors: kNotFound: no such file;
  // kInvalidArgument, naming file and field: not a JSON object, a value of the wrong type or range, a special id
  // outside decoder_vocab_size.
  static StatusOr<ModelConfig> load(const ModelFolder& folder);
};

// Typed reading of a config object: every number is range-checked. Absent and null are the same; whole numbers may be
// written 3.0. Errors: kInvalidArgument, naming file and field. `object` must outlive the reader.
class ConfigReader final {
 public:
  ConfigReader(const Json& object, std::string file) : object_(object), file_(std::move(file)) {}

  // Values outside [min, max] are errors. Without a fallback the key is required.
  StatusOr<int64_t> integer(std::string_view key, int64_t min, int64_t max,
                            std::optional<int64_t> fallback = std::nullopt) const;
  StatusOr<double> number(std::string_view key, double min, double max,
                          std::optional<double> fallback = std::nullopt) const;
  StatusOr<bool> boolean(std::string_view key, bool fallback) const;
  // At most 4096 bytes.
  StatusOr<std::string> string(std::string_view key, std::optional<std::string> fallback = std::nullopt) const;
  StatusOr<std::optional<int32_t>> token_id(std::string_view key) const;  // absent: none
  // Reads a number, or a list of at most 100,000 numbers. Absent: empty.
  StatusOr<std::vector<int32_t>> token_ids(std::string_view key) const;
  bool has(std::string_view key) const;  // false: absent or null
  // Returns kInvalidArgument "FILE: KEY: REASON"; its error_param is `key`.
  Status error(std::string_view key, std::string_view reason) const;
  const std::string& file() const { return file_; }

 private:
  const Json& object_;
  std::string file_;
};

}  // namespace transept
