// The two prompts of a request, as users write them and as the engine takes them. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "core/encoder_features.h"

namespace transept {

struct TextPrompt {
  std::string text;
  bool operator==(const TextPrompt&) const = default;
};

struct TokensPrompt {
  std::vector<int32_t> token_ids;
  bool operator==(const TokensPrompt&) const = default;
};

// One side of a request: text or ids, with media beside it or media alone.
struct SingletonPrompt {
  std::variant<std::monostate, TextPrompt, TokensPrompt> content;
  std::optional<Json> multi_modal_data;  // an object: modality -> data; handed on unread by models without media
};

// Every form of API.md comes down to this: an encoder part, and a decoder part if one was given. (A singleton with
// media has its text or ids in the decoder part: SEMANTICS.md, Prompts.)
struct EncoderDecoderPrompt {
  SingletonPrompt encoder;
  std::optional<SingletonPrompt> decoder;
  // The decoder's ids stood beside the media: they are the whole decoder prompt, exactly as given.
  bool decoder_beside_media = false;
  // Field names for error messages: where each part stood in the request.
  std::string encoder_param = "prompt";
  std::string decoder_param = "decoder_prompt";
};

// A place of the decoder prompt that the model fills: the most probable of `choices` after the tokens before it, a pass
// over the encoded input of its own (Whisper's language).
struct OpenToken {
  int32_t index = 0;  // in prompt_token_ids; not the first
  std::vector<int32_t> choices;
};

// What the engine runs (vLLM's EncoderDecoderLLMInputs): ids on both sides, or features for the encoder, and the texts
// where texts were given.
struct EncoderDecoderInputs {
  std::optional<std::string> encoder_prompt;
  std::vector<int32_t> encoder_prompt_token_ids;            // empty: media, or a decoder-only request
  std::shared_ptr<const EncoderFeatures> encoder_features;  // null: ids
  std::optional<std::string> prompt;                        // the decoder's
  std::vector<int32_t> prompt_token_ids;                    // the decoder's, never empty
  std::optional<OpenToken> open_token;                      // of prompt_token_ids
  int32_t num_default_generated = 0;  // a bos or language that the default prompt supplied (beam search counts it)
  bool names_language = false;        // the default prompt holds the target language: no token is forced again for it

  // content_digest of encoder_content(), made on the caller's thread; none: the engine makes it.
  std::optional<ContentDigest> encoder_digest;

  EncoderContent encoder_content() const {
    EncoderContent content(encoder_prompt_token_ids, encoder_features);
    content.digest = encoder_digest;
    return content;
  }
  // Positions of the encoder; 0: a decoder-only request.
  int32_t num_encoder_tokens() const {
    return encoder_features != nullptr ? encoder_features->num_positions
                                       : static_cast<int32_t>(encoder_prompt_token_ids.size());
  }
};

}  // namespace transept
