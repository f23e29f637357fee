// What the tokenizers of transformers' Python classes have in common once their vocabulary is laid out: special tokens
// from the configuration and the class, languages, the frame around a text.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/pipeline_tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_hints.h"
#include "text/tokenizer_kind.h"

namespace transept {

// Names of special tokens, as TokenizerConfig::named takes them, around a text.
struct Frame {
  std::vector<std::string_view> prefix, suffix;
};

// Gives tokens the ids that their class reserves for them. What the configuration lists keeps the ids that stand there.
// Borrows the configuration.
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

// A number of tokenizer_config.json that adds tokens by the hundred, never by the million.
StatusOr<int32_t> small_number_or(const JsonField& field, int32_t fallback);

// T5's and ByT5's <extra_id_0>, ...: how many of them the configuration asks for (extra_ids, else as many as
// additional_special_tokens names, else `fallback`). Errors: the two numbers differ.
StatusOr<int32_t> num_sentinels(const TokenizerConfig& config, int32_t fallback);
std::string sentinel(int32_t number);

// Gives <s>, </s>, ... their names where no file does: those of the classes that come from fairseq.
void set_fairseq_names(TokenizerConfig& config);

// Fills a side's added tokens and its frame. Tokens are looked for in the text as it is given, as the Python classes
// do. REQUIRES: side.model. Errors name `file` where a token of the frame is not in the vocabulary.
Status finish_side(std::string_view file, TokenizerConfig& config, const Frame& frame, PipelineTokenizer::Side& side);

// Finishes the encoder's side, finds the languages and makes the tokenizer. REQUIRES: parts.model, parts.decoder.
StatusOr<std::unique_ptr<Tokenizer>> assemble_family(std::string_view file, TokenizerKind kind, TokenizerConfig& config,
                                                     const Frame& frame, const TokenizerHints& hints,
                                                     PipelineTokenizer::Parts parts);

}  // namespace transept
