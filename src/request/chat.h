// The body of POST /v1/chat/completions: its fields, which are those of a completion under OpenAI's names for chats,
// and its messages. What the messages become is a prompt as any other: of a model with a chat template the rendered
// text, of one without the text of the one turn that it takes. Values and pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "core/prompt.h"
#include "request/request.h"

namespace transept {

// An item of media in a message.
struct ChatMedia {
  std::string modality;  // "image" or "audio": a key of multi_modal_data
  Json item;             // as multi_modal_data has it: a data: URL, {"base64": ".."}
  std::string param;     // where it stands: "messages[0].content[1].image_url.url"
};

struct Chat {
  // As chat templates read them: objects of role (system, user or assistant; developer became system), content and, if
  // given, name. The content is a text or a list of {"type": "text", "text": ".."}, {"type": "image"} and
  // {"type": "audio"}. Not empty.
  Json messages = Json::array();
  std::vector<ChatMedia> media;  // of all messages, in order
};

struct ParsedChat {
  ParsedRequest request;  // its prompt is empty
  Chat chat;
};

// Parses a body. sampling.logprobs is what logprobs and top_logprobs ask for, and sampling.max_tokens may come from
// max_completion_tokens. Errors: as parse_body; max_completion_tokens and max_tokens that differ; top_logprobs without
// logprobs; of messages, with their place ("messages[1].content[0].image_url.url"): another role, tool calls, another
// type of part, images or audio of another role than user, and a URL that is no data: URL, since URLs are not fetched.
StatusOr<ParsedChat> parse_chat(const Json& body, const RequestLimits& limits);

// The prompt of a model without a chat template: its one turn's text, or texts with line ends between them, as `prompt`
// of a completion has it, beside the media. Errors (kInvalidArgument): a system message or a further turn, naming the
// family and the message.
StatusOr<EncoderDecoderPrompt> plain_chat_prompt(Chat chat, std::string_view family);

// The prompt of a model with a chat template: `text` as `prompt` of a completion has it, beside the media.
EncoderDecoderPrompt rendered_chat_prompt(Chat chat, std::string text);

}  // namespace transept
