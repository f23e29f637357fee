// Common parts of the tokenizers of transformers' Python classes, used once their vocabulary is laid out: special
// tokens from the configuration and the class, languages, the frame around a text. For loading, on one thread.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/pipeline/pipeline_tokenizer.h"
#include "text/pipeline/tokenizer_config.h"
#include "text/pipeline/tokenizer_kind.h"
#include "text/tokenizer_hints.h"

namespace transept {

// The special tokens around a text, by the names that TokenizerConfig::named takes.
struct Frame {
  std::vector<std::string_view> prefix, suffix;
};

// Gives tokens the ids that their class reserves for them. Tokens that the configuration lists keep their ids and
// rules. Borrows the configuration.
class TokenLister final {
 public:
  explicit TokenLister(TokenizerConfig& config);

  void add(AddedToken token, int32_t id);

 private:
  TokenizerConfig* config_;
  absl::flat_hash_set<std::string> listed_;
};

// A special token without rules.
AddedToken plain_special_token(std::string_view content);

// Returns a number of added tokens from tokenizer_config.json; `fallback` if it is missing or null. Errors name the
// field: not a number from 0 to 20,000.
StatusOr<int32_t> small_number_or(const JsonField& field, int32_t fallback);

// Returns the number of sentinels of T5 and ByT5 (<extra_id_0>, ...): extra_ids, else as many as
// additional_special_tokens names, else `fallback`. Errors: small_number_or's; the two numbers differ.
StatusOr<int32_t> num_sentinels(const TokenizerConfig& config, int32_t fallback);
std::string sentinel(int32_t number);

// Names <s>, </s>, ... where no file does, as the classes that come from fairseq.
void set_fairseq_names(TokenizerConfig& config);

// Fills the added tokens and the frame of a side. Tokens match in the text before normalisation, as in the Python
// classes: sets `normalized` of all tokens of the configuration to false. REQUIRES: side.model. Errors:
// add_config_tokens'; a token of the frame is missing (names `file`).
Status finish_side(std::string_view file, TokenizerConfig& config, const Frame& frame, PipelineTokenizer::Side& side);

// Finishes the encoder's side, finds the languages (unless `parts` has some) and makes the tokenizer. REQUIRES:
// parts.model, parts.decoder. Errors: those of finish_side, Languages::of_kind and PipelineTokenizer::create.
StatusOr<std::unique_ptr<Tokenizer>> assemble_family(std::string_view file, TokenizerKind kind, TokenizerConfig& config,
                                                     const Frame& frame, const TokenizerHints& hints,
                                                     PipelineTokenizer::Parts parts);

}  // namespace transept
