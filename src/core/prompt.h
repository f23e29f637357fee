// The two prompts of a request, as clients write them and as the engine takes them. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "core/decoder_layout.h"
#include "core/encoder_item.h"

namespace transept {

struct TextPrompt {
  std::string text;
  bool operator==(const TextPrompt&) const = default;
};

struct TokensPrompt {
  std::vector<int32_t> token_ids;
  bool operator==(const TokensPrompt&) const = default;
};

using PromptContent = std::variant<std::monostate, TextPrompt, TokensPrompt>;

// One side of a request: text or ids, with media beside it or media alone.
struct SingletonPrompt {
  PromptContent content;
  std::optional<Json> multi_modal_data;  // an object: modality -> data
};

// All prompt forms of docs/api.md reduce to this: an encoder part, and a decoder part if one was given. The text or ids
// of a singleton with media are its decoder part.
struct EncoderDecoderPrompt {
  SingletonPrompt encoder;
  std::optional<SingletonPrompt> decoder;
  // The decoder part was given beside the media. If it is ids, they are the whole decoder prompt, exactly as given.
  bool decoder_beside_media = false;
  // The request's fields that held the parts, for error messages.
  std::string encoder_param = "prompt";
  std::string decoder_param = "decoder_prompt";
};

// A token of the decoder prompt that the model chooses: the most probable of `choices` after the tokens before it.
// Takes a pass of its own over the encoded input (Whisper's language).
struct OpenToken {
  int32_t index = 0;  // in prompt_token_ids; > 0
  std::vector<int32_t> choices;
};

// The inputs that the engine runs (vLLM's EncoderDecoderLLMInputs): what is encoded, the decoder's ids, and the texts
// that were given.
struct EncoderDecoderInputs {
  std::optional<std::string> encoder_prompt;
  std::vector<EncoderItem> items;         // in the order of the cross table; empty: a decoder-only request
  std::optional<std::string> prompt;      // of the decoder
  std::vector<int32_t> prompt_token_ids;  // of the decoder; never empty
  std::optional<OpenToken> open_token;    // in prompt_token_ids
  DecoderLayout layout;                   // of the decoder's rows
  // Tokens of the default prompt that count as generated in the length of a beam search: its bos or language, 0 or 1.
  int32_t num_default_generated = 0;
  bool names_language = false;  // the default prompt has the target language, so forced_bos_token_id is dropped
  // Requests of different salts share nothing, at the same time or one after the other. Part of item_digest().
  std::string cache_salt;

  // Makes ids the one item, or none if they are empty.
  void set_encoder_ids(std::vector<int32_t> ids) {
    items.clear();
    if (!ids.empty()) items.emplace_back(std::move(ids));
  }
  // Makes each of these media an item.
  void set_encoder_features(std::vector<std::shared_ptr<const EncoderFeatures>> features) {
    items.clear();
    for (std::shared_ptr<const EncoderFeatures>& one : features) items.emplace_back(EncoderItem({}, std::move(one)));
  }
  void set_encoder_features(std::shared_ptr<const EncoderFeatures> features) {
    items.assign(1, EncoderItem({}, std::move(features)));
  }
  // Makes an input that is encoded elsewhere the one item; what the decoder does with its rows is what it would have
  // done with those of the item before.
  void set_remote_input(const RemoteInput& input) {
    EncoderItem item(input);
    if (!items.empty()) {
      const EncoderItem& before = items.front();
      item.consumers = before.consumers, item.splice_offset = before.splice_offset;
      item.remote->num_last_positions = before.num_last_positions();
    }
    items.assign(1, item);
  }
  // The ids of the first item; empty: there are none.
  const std::vector<int32_t>& encoder_token_ids() const {
    static const std::vector<int32_t> kNone;
    return items.empty() ? kNone : items.front().token_ids;
  }
  // Sets the digests of items that have none.
  void make_digests() { transept::make_digests(items, cache_salt); }
  // Rows of the encoder's output, of all items.
  int32_t num_encoder_tokens() const { return num_positions(items); }
};

}  // namespace transept
