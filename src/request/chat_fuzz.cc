// Any bytes as the body of a chat: a chat whose media are no URLs to be fetched and whose prompts hold all that was
// said, or an error that names a field of the body.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "request/chat.h"

namespace {

using namespace transept;

void require(bool condition) {
  if (!condition) std::abort();
}

// Of every role and type that templates may ask for, and no other.
void check_messages(const Chat& chat) {
  size_t num_media = 0;
  require(!chat.messages.as_array().empty());
  for (const Json& message : chat.messages.as_array()) {
    const std::string& role = message.find("role")->as_string();
    require(role == "system" || role == "user" || role == "assistant");
    const Json& content = *message.find("content");
    if (content.is_string()) continue;
    require(!content.as_array().empty());
    for (const Json& part : content.as_array()) {
      const std::string& type = part.find("type")->as_string();
      const bool is_text = type == "text";
      require(is_text ? part.find("text")->is_string() : type == "image" || type == "audio");
      require(is_text || role == "user");
      if (!is_text) ++num_media;
    }
  }
  require(num_media == chat.media.size());
  for (const ChatMedia& one : chat.media) {
    require(one.param.starts_with("messages["));
    if (one.modality == "image") require(ascii_lower(one.item.as_string().substr(0, 5)) == "data:");
    if (one.modality == "audio") require(one.item.find("base64")->is_string());
  }
}

void check_prompt(const EncoderDecoderPrompt& prompt, bool has_media) {
  require(prompt.encoder.multi_modal_data.has_value() == has_media);
  require(has_media != std::holds_alternative<TextPrompt>(prompt.encoder.content));
  require(has_media || !prompt.decoder.has_value());
  require(prompt.encoder_param.starts_with("messages"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const StatusOr<Json> body = Json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!body.ok()) return 0;
  const StatusOr<ParsedChat> parsed = parse_chat(*body, {});
  if (!parsed.ok()) {
    require(!error_message(parsed.status()).empty());
    require(!body->is_object() || !error_param(parsed.status()).empty());
    return 0;
  }
  check_messages(parsed->chat);
  const bool has_media = !parsed->chat.media.empty();
  check_prompt(rendered_chat_prompt(parsed->chat, "text"), has_media);
  const StatusOr<EncoderDecoderPrompt> plain = plain_chat_prompt(parsed->chat, "family");
  if (plain.ok()) {
    require(parsed->chat.messages.as_array().size() == 1);
    check_prompt(*plain, has_media);
  } else {
    require(error_param(plain.status()).starts_with("messages["));
  }
  return 0;
}
