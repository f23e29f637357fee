// The rules of a family's prompts: what of (texts, media, options) its encoder and decoder are given. A family with
// rules of its own (task prompts, placeholders of images) derives from InputRules; the rest is the default. Owned by
// the prompt processor. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "core/prompt.h"
#include "core/prompt_options.h"
#include "core/speech_tokens.h"
#include "text/tokenizer.h"

namespace transept {

// What the rules know of a model's files. Borrows what it points to.
struct InputContext {
  std::string family;         // for messages
  int32_t decoder_start = 0;  // the first token of a decoder prompt
  std::optional<int32_t> bos = {};
  std::optional<int32_t> forced_bos = {};  // generation_config's
  std::vector<int32_t> eos = {};
  int32_t vocab_size = 0;         // of the decoder
  int32_t prompt_vocab_size = 0;  // ModelSpec's
  int32_t encoder_vocab_size = 0;
  int32_t media_token_id = -1;                  // ModelSpec's
  bool draws_question = false;                  // MultiModalRegistry's
  std::vector<std::string> modalities = {};     // ModelSpec's
  const Tokenizer* tokenizer = nullptr;         // null: there is none, and
  std::string no_tokenizer = {};                // why
  const SpeechTokens* speech_tokens = nullptr;  // null: a model without transcript tokens

  // Ids of the decoder's prompts are below it.
  int32_t prompt_vocab() const { return prompt_vocab_size > 0 ? prompt_vocab_size : vocab_size; }
};

// Errors: kInvalidArgument under `param`: an id outside the vocabulary.
Status check_token_ids(std::span<const int32_t> ids, std::string_view param, int32_t vocab_size);

// Tokenises a text of a side, under the prompt processor's limits and error names.
using TokenizeText = FunctionRef<StatusOr<std::vector<int32_t>>(const std::string& text, bool add_special_tokens)>;

class InputRules {
 public:
  virtual ~InputRules() = default;

  // Returns whether the encoder takes what the request gives it. Nothing was tokenised or decoded yet. Errors name the
  // field: text beside media; media or ids where the encoder takes the other; an unknown source language.
  virtual Status check_encoder(const EncoderDecoderPrompt& prompt, const PromptOptions& options) const;

  // Whether the model is a decoder alone: without media, a request's text or ids are the decoder's whole prompt, and
  // what is encoded belongs to places of that prompt.
  virtual bool is_decoder_alone() const { return false; }

  // What the decoder does with the rows of these media, of a family that reads a picture in several forms; kNone: what
  // the model's spec says of all items.
  virtual Consumers consumers_of(const EncoderFeatures& /*media*/) const { return Consumers::kNone; }

  // Whether a text or ids beside media are the encoder's, or drawn for it. Default: they are the decoder's.
  virtual bool text_beside_media_is_encoders() const { return false; }

  // Of a family whose encoder reads media among ids: the ids of an item, with a place for each of `num_rows` rows of
  // its media. content: what the request gives beside the media, under `param`. Default: there are none. Errors name
  // the field; those of `tokenize`.
  virtual StatusOr<std::vector<int32_t>> ids_around_media(const PromptContent& content, const std::string& param,
                                                          int32_t num_rows, const PromptOptions& options,
                                                          TokenizeText tokenize) const;

  // Of a family whose processor draws a question above each picture: the question. content, param: as above. Default:
  // there is none. Errors name the field: no question, an empty one, one that is no text or too long.
  virtual StatusOr<std::optional<std::string>> question_of(const PromptContent& content,
                                                           const std::string& param) const;

  // Fills the decoder's ids, and what belongs to them (open token, layout), from the request's decoder prompt or the
  // family's default. `inputs` has the items already, a handle's if the request is over one. Errors name the field: an
  // unknown language (lists those that the model knows); a language, task or timestamps for a model without transcript
  // tokens; ids outside the vocabulary; those of `tokenize`.
  Status fill_decoder(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                      EncoderDecoderInputs& inputs) const;

 protected:
  explicit InputRules(InputContext context) : context_(std::move(context)) {}
  const InputContext& context() const { return context_; }

  // Errors: a language of `target_lang` that the model does not know.
  virtual Status check_options(const PromptOptions& options) const;
  // The decoder prompt of a request that gives none.
  virtual Status fill_default(const PromptOptions& options, EncoderDecoderInputs& inputs) const = 0;
  // The decoder prompt of a request that gives a text or ids. Default: the start token, unless it stands there, and
  // these; a trailing end token of a text is dropped unless the request asks for special tokens.
  virtual Status fill_given(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                            EncoderDecoderInputs& inputs) const;

  // Makes of the decoder's ids what the model reads, by the items: their places, positions. Called last. Default:
  // nothing. Errors name the field.
  virtual Status place_items(const EncoderDecoderPrompt& prompt, const PromptOptions& options,
                             EncoderDecoderInputs& inputs) const;

  // Whether a text of the decoder gets special tokens where the request does not say.
  virtual bool adds_special_tokens() const { return true; }

  // Returns the token of a language; none for "". Errors (under `field`): no tokenizer; an unknown language.
  StatusOr<std::optional<int32_t>> language_token(const std::optional<std::string>& language,
                                                  std::string_view field) const;

 private:
  Status fill_ids(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                  EncoderDecoderInputs& inputs) const;

  InputContext context_;
};

}  // namespace transept
