// A tokenizer as Hugging Face's library builds it: added tokens are cut out, the rest is normalised, split into words
// and given to a model; special tokens are set around it; decoding goes through the spelling of tokens.
// Immutable, so thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/subword_model.h"
#include "text/token_decoder.h"
#include "text/tokenizer.h"

namespace transept {

class PipelineTokenizer final : public Tokenizer {
 public:
  struct Parts {
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    std::unique_ptr<SubwordModel> model;
    AddedTokens added_tokens;  // finished
    PostProcessor post_processor;
    std::unique_ptr<TokenDecoder> decoder;
  };

  // Errors: a special token of the post-processor that is in no vocabulary.
  static StatusOr<std::unique_ptr<PipelineTokenizer>> create(Parts parts);

  StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override;
  void append_bytes(std::span<const int32_t> previous, int32_t token_id, std::string& out) const override;
  std::string token_to_string(int32_t token_id) const override { return std::string(spelling(token_id)); }
  std::optional<int32_t> string_to_token(std::string_view token) const override;
  bool is_special(int32_t token_id) const override;
  int32_t vocab_size() const override;
  bool replaces_each_byte() const override { return parts_.decoder->replaces_each_byte(); }

 private:
  explicit PipelineTokenizer(Parts parts) : parts_(std::move(parts)) {}

  Status encode_text(std::string_view text, SearchBudget& budget, std::vector<int32_t>& ids) const;
  Status encode_normalized(std::string_view text, bool at_front, SearchBudget& budget, std::vector<int32_t>& ids) const;
  std::string_view spelling(int32_t token_id) const;

  Parts parts_;
};

}  // namespace transept
