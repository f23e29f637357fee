// Turns prompts as users write them into what the engine runs: ids or features for the encoder, and ids for the
// decoder (docs/api.md, Prompts). What a family makes of them are its rules (multimodal/input_rules.h); tokenising,
// decoding of media, limits and their errors are here. Immutable after construction, so thread-safe. Media
// are decoded on the calling thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/model_config.h"
#include "core/prompt.h"
#include "core/prompt_options.h"
#include "core/speech_tokens.h"
#include "models/model_spec.h"
#include "multimodal/input_rules.h"
#include "multimodal/registry.h"
#include "text/tokenizer.h"

namespace transept {

class PromptProcessor final {
 public:
  struct Options : PromptOptions {
    Options() = default;
    explicit Options(PromptOptions of_request) : PromptOptions(std::move(of_request)) {}

    MediaAccess media;
    bool first_window_alone = false;  // drops the audio beyond one window; else it is an error
  };
  struct Limits {
    int32_t max_encoder_len = 0;
    int32_t max_decoder_len = 0;  // prompt and output
  };
  // What a model's folder has beside its configuration; borrowed.
  struct Parts {
    const Tokenizer* tokenizer = nullptr;         // null: there is none, and texts are refused
    std::string no_tokenizer = {};                // why
    const MultiModalRegistry* media = nullptr;    // null: no media
    const SpeechTokens* speech_tokens = nullptr;  // null: a model without transcript tokens
    MediaLimits media_limits = {};
  };

  PromptProcessor(const ModelConfig& config, const GenerationConfig& generation, const ModelSpec& spec,
                  const Limits& limits, const Parts& parts);

  // Errors (with the field's name): an empty prompt; only a decoder prompt; ids outside the vocabulary; more ids than
  // the model has positions (both counts); a text over a bound of bytes, which is not tokenised; media for a model
  // without that modality, and ids for an encoder of media; media that cannot be decoded or are longer than a window;
  // text without a tokenizer; an unknown language (lists those that the model knows); a language, task or timestamps
  // for a model without transcript tokens.
  // The bound is positions times the longest token, at least 64 KiB; 16 times that with truncate_prompt_tokens. A text
  // over the bound might still have fitted: normalizers shrink texts, and unknown characters can be fused into one
  // token.
  StatusOr<EncoderDecoderInputs> process(const EncoderDecoderPrompt& prompt, const Options& options) const;
  // One side alone, for requests over a handle (LLMEngine::encode). The encoder's: the fields of the decoder stay
  // empty, and a prompt beside media is not read where it is the decoder's. The decoder's: `items` are the handle's,
  // which the prompt may have places for. Errors: as above.
  StatusOr<EncoderDecoderInputs> process_encoder(const EncoderDecoderPrompt& prompt, const Options& options) const;
  StatusOr<EncoderDecoderInputs> process_decoder(const EncoderDecoderPrompt& prompt, const Options& options,
                                                 std::span<const EncoderItem> items = {}) const;

  // Checks an item that another process has prepared, before an engine gets it: models take only what process() makes.
  // Errors (kInvalidArgument) name the field of docs/formats/features.md: ids for an encoder of media, and the other
  // way round; ids outside the vocabulary; those of MultiModalRegistry::check; more positions than the encoder has
  // (kOutOfRange).
  Status check_item(const EncoderItem& item) const;

  // Tokenises each word bare and with one leading space, without special tokens. The second form counts only if it has
  // as many ids and a different first id (vLLM's bad words).
  StatusOr<std::vector<std::vector<int32_t>>> bad_words_ids(const std::vector<std::string>& words) const;

  // Tokenises the text of an expected answer, without special tokens. Errors: those of a text's tokens ("prediction").
  StatusOr<std::vector<int32_t>> prediction_ids(const std::string& text) const;

  int32_t decoder_start_token_id() const { return decoder_start_; }
  bool has_tokenizer() const { return parts_.tokenizer != nullptr; }
  int32_t vocab_size() const { return spec_.vocab_size; }
  // Whether answers can have a form beside their text (CompletionOutput::structured), if there is a tokenizer.
  bool has_structured_answers() const { return parts_.media != nullptr && parts_.media->structured() != nullptr; }
  bool has_alignment_heads() const { return !spec_.alignment_heads.empty(); }
  const SpeechTokens* speech_tokens() const { return parts_.speech_tokens; }
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
  Status check_num_bytes(const std::string& text, const std::string& param, TokenizerSide side,
                         const PromptOptions& options) const;
  int64_t longest_token_bytes(TokenizerSide side) const;
  StatusOr<std::vector<int32_t>> tokenize(const std::string& text, const std::string& param, bool add_special_tokens,
                                          TokenizerSide side, const PromptOptions& options) const;
  Status refuse_media(const EncoderDecoderPrompt& prompt) const;
  Status check_item_of_both(const EncoderItem& item) const;
  Status check_positions(std::span<const EncoderItem> items, const std::string& param) const;
  Status fill_ids_around_media(const EncoderDecoderPrompt& prompt, const Options& options,
                               EncoderDecoderInputs& inputs) const;
  Status fill_features(const EncoderDecoderPrompt& prompt, const Options& options, EncoderDecoderInputs& inputs) const;
  // What stands beside media for the encoder, and its field.
  struct BesideMedia {
    const PromptContent& content;
    const std::string& param;
  };
  BesideMedia beside_media(const EncoderDecoderPrompt& prompt) const;

  ModelSpec spec_;
  Limits limits_;
  Parts parts_;
  int32_t decoder_start_ = 0;
  std::unique_ptr<InputRules> rules_;
  // Per TokenizerSide; computed when a text is so long that it matters.
  mutable std::array<std::once_flag, 2> longest_is_known_;
  mutable std::array<int64_t, 2> longest_token_bytes_{};
};

}  // namespace transept
