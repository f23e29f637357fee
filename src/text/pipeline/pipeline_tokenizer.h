// A tokenizer with the stages of Hugging Face's library. Encoding cuts out added tokens, normalises the rest, splits it
// into words, passes them to a model, and puts special tokens around the ids. Decoding goes through the spellings of
// tokens. Immutable, so thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pipeline/added_tokens.h"
#include "text/pipeline/languages.h"
#include "text/pipeline/normalizer.h"
#include "text/pipeline/post_processor.h"
#include "text/pipeline/pre_tokenizer.h"
#include "text/subword/subword_model.h"
#include "text/subword/token_decoder.h"
#include "text/tokenizer.h"
#include "text/tokenizer_hints.h"

namespace transept {

class PipelineTokenizer final : public Tokenizer {
 public:
  // The parts that the encoder's and the decoder's side may have separately.
  struct Side {
    std::unique_ptr<SubwordModel> model;
    AddedTokens added_tokens;  // finished
    PostProcessor post_processor;
  };
  struct Parts : Side {
    std::optional<Side> decoder_side;  // unset: the encoder's
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    std::unique_ptr<TokenDecoder> decoder;
    Languages languages;  // their tokens stand outside the post-processor's
  };

  // REQUIRES: parts.model, parts.decoder. Errors (kInvalidArgument, with `file`): a special token of the post-processor
  // is not in the vocabulary; an ordinary token or a language has an id beyond the model's embedding (the vocabulary
  // sizes of `hints`). Added tokens may lie beyond it.
  static StatusOr<std::unique_ptr<PipelineTokenizer>> create(Parts parts, std::string_view file,
                                                             const TokenizerHints& hints);

  // Texts of at most 64 MiB. Errors: those of Tokenizer::encode, and of the model (SubwordModel::append_ids).
  StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override;
  void append_bytes(std::span<const int32_t> previous, int32_t token_id, std::string& out) const override;
  void append_end(std::span<const int32_t> token_ids, std::string& out) const override;
  // Spells by the decoder's side, as answers are its tokens.
  std::string token_to_string(int32_t token_id) const override { return std::string(spelling(token_id)); }
  std::string side_token_to_string(int32_t token_id, TokenizerSide side) const override {
    return std::string(spelling(token_id, side));
  }
  std::optional<int32_t> string_to_token(std::string_view token) const override;
  StatusOr<int32_t> language_token(std::string_view language, std::string_view field) const override {
    return parts_.languages.find(language, field);
  }
  bool is_special(int32_t token_id) const override;
  int32_t vocab_size() const override;
  bool replaces_each_byte() const override { return parts_.decoder->replaces_each_byte(); }

 private:
  explicit PipelineTokenizer(Parts parts) : parts_(std::move(parts)) {}

  const Side& side(TokenizerSide side) const {
    return side == TokenizerSide::kDecoder && parts_.decoder_side.has_value() ? *parts_.decoder_side : parts_;
  }
  Status check_frame(TokenizerSide side) const;
  Status check_embedding(TokenizerSide side, int64_t num_embeddings) const;
  Status encode_text(std::string_view text, const Side& side, SearchBudget& budget, std::vector<int32_t>& ids) const;
  Status encode_normalized(std::string_view text, const Side& side, bool at_front, SearchBudget& budget,
                           std::vector<int32_t>& ids) const;
  std::string_view spelling(int32_t token_id, TokenizerSide side = TokenizerSide::kDecoder) const;

  Parts parts_;
};

}  // namespace transept
