// Turns prompts as users write them into what the engine runs: ids or features for the encoder, and ids for the
// decoder. SEMANTICS of prompts live here (docs/api.md, Prompts). Immutable after construction, so thread-safe. Media
// are decoded on the calling thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/model_config.h"
#include "core/prompt.h"
#include "core/speech_tokens.h"
#include "models/model.h"
#include "multimodal/registry.h"
#include "text/tokenizer.h"

namespace transept {

class PromptProcessor final {
 public:
  struct Options {
    std::optional<bool> add_special_tokens;  // unset: yes for the encoder; a trailing end token of decoder text dropped
    std::optional<int32_t> truncate_prompt_tokens;  // keeps the last so many encoder ids
    std::string source_lang, target_lang;
    std::string language, task;  // of a transcript; "": detect it, and transcribe
    bool timestamps = false;
    MediaAccess media;
    MediaLimits media_limits;
  };
  struct Limits {
    int32_t max_encoder_len = 0;
    int32_t max_decoder_len = 0;  // prompt and output
  };

  // What a model that transcribes has in addition; borrowed.
  struct Speech {
    const MultiModalRegistry* media = nullptr;  // null: no media
    const SpeechTokens* tokens = nullptr;       // null: a model without transcript tokens
  };

  // Borrows the tokenizer. Null: there is none, for the given reason, and texts are refused.
  PromptProcessor(const ModelConfig& config, const GenerationConfig& generation, const ModelSpec& spec,
                  const Limits& limits, const Tokenizer* tokenizer, std::string no_tokenizer = "")
      : PromptProcessor(config, generation, spec, limits, tokenizer, std::move(no_tokenizer), Speech()) {}
  PromptProcessor(const ModelConfig& config, const GenerationConfig& generation, const ModelSpec& spec,
                  const Limits& limits, const Tokenizer* tokenizer, std::string no_tokenizer, const Speech& speech);

  // Errors (with the field's name): an empty prompt; only a decoder prompt; ids outside the vocabulary; more ids than
  // the model has positions (both counts); a text over a bound of bytes, which is not tokenised; media for a model
  // without that modality, and ids for an encoder of media; media that cannot be decoded or are longer than a window;
  // text without a tokenizer; an unknown language (lists those that the model knows); a language, task or timestamps
  // for a model without transcript tokens.
  // The bound is positions times the longest token, at least 64 KiB; 16 times that with truncate_prompt_tokens. A text
  // over the bound might still have fitted: normalizers shrink texts, and unknown characters can be fused into one
  // token.
  StatusOr<EncoderDecoderInputs> process(const EncoderDecoderPrompt& prompt, const Options& options) const;
  // One side alone, for requests over a handle (LLMEngine::encode); the fields of the other side stay empty. Errors: as
  // above.
  StatusOr<EncoderDecoderInputs> process_encoder(const EncoderDecoderPrompt& prompt, const Options& options) const;
  StatusOr<EncoderDecoderInputs> process_decoder(const EncoderDecoderPrompt& prompt, const Options& options) const;

  // Tokenises each word bare and with one leading space, without special tokens. The second form counts only if it has
  // as many ids and a different first id (vLLM's bad words).
  StatusOr<std::vector<std::vector<int32_t>>> bad_words_ids(const std::vector<std::string>& words) const;

  int32_t decoder_start_token_id() const { return decoder_start_; }
  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  int32_t vocab_size() const { return spec_.vocab_size; }
  bool has_alignment_heads() const { return !spec_.alignment_heads.empty(); }
  const SpeechTokens* speech_tokens() const { return speech_.tokens; }
  const Limits& limits() const { return limits_; }
  // Whether --max-model-len or its default is below what the model has.
  bool encoder_len_is_set() const { return limits_.max_encoder_len < spec_.max_encoder_positions; }
  bool decoder_len_is_set() const { return limits_.max_decoder_len < spec_.max_decoder_positions; }

 private:
  Status fill_encoder_side(const EncoderDecoderPrompt& prompt, const Options& options,
                           EncoderDecoderInputs& inputs) const;
  Status fill_decoder_side(const EncoderDecoderPrompt& prompt, const Options& options,
                           EncoderDecoderInputs& inputs) const;
  StatusOr<std::vector<int32_t>> encoder_ids(const SingletonPrompt& prompt, const std::string& param,
                                             const Options& options) const;
  StatusOr<std::vector<int32_t>> decoder_ids(const SingletonPrompt& prompt, const std::string& param,
                                             const Options& options) const;
  Status check_num_bytes(const std::string& text, const std::string& param, TokenizerSide side,
                         const Options& options) const;
  int64_t longest_token_bytes(TokenizerSide side) const;
  StatusOr<std::vector<int32_t>> tokenize(const std::string& text, const std::string& param, bool add_special_tokens,
                                          TokenizerSide side, const Options& options) const;
  Status check_ids(const std::vector<int32_t>& ids, const std::string& param, int32_t vocab_size) const;
  Status refuse_media(const EncoderDecoderPrompt& prompt) const;
  Status fill_features(const EncoderDecoderPrompt& prompt, const Options& options, EncoderDecoderInputs& inputs) const;
  Status fill_given_decoder_prompt(const EncoderDecoderPrompt& prompt, const Options& options,
                                   EncoderDecoderInputs& inputs) const;
  Status check_transcript_options(const Options& options) const;
  // Fills what precedes the text of a transcript; leaves its language open if the request names none.
  Status fill_transcript_prefix(const Options& options, EncoderDecoderInputs& inputs) const;
  // Returns the token of the request's language; none if the request names none.
  StatusOr<std::optional<int32_t>> language_token(const std::string& language, std::string_view field) const;
  void fill_default_decoder_prompt(std::optional<int32_t> target_language, EncoderDecoderInputs& inputs) const;

  ModelSpec spec_;
  Limits limits_;
  const Tokenizer* tokenizer_;
  std::string no_tokenizer_;  // why there is none
  Speech speech_;
  int32_t decoder_start_ = 0;
  std::optional<int32_t> bos_;
  std::optional<int32_t> forced_bos_;  // generation_config's
  std::vector<int32_t> eos_;
  // Per TokenizerSide; computed when a text is so long that it matters.
  mutable std::array<std::once_flag, 2> longest_is_known_;
  mutable std::array<int64_t, 2> longest_token_bytes_{};
};

}  // namespace transept
