#include "request/chat.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "request/field_reader.h"

namespace transept {
namespace {

// The member of an object, where null is the same as absent.
const Json* present(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Status wrong(std::string_view place, std::string_view wanted, const Json& got) {
  return field_error(place, str_cat(place, " must be ", wanted, ", not ", shown(got)));
}

StatusOr<std::string> read_string(const Json& object, std::string_view key, std::string_view where) {
  const std::string place = str_cat(where, ".", key);
  const Json* value = present(object, key);
  if (value == nullptr) return field_error(place, str_cat(place, " is missing"));
  if (!value->is_string()) return wrong(place, "a string", *value);
  return value->as_string();
}

Status check_optional_string(const Json& object, std::string_view key, std::string_view where) {
  const Json* value = present(object, key);
  if (value == nullptr || value->is_string()) return ok_status();
  return wrong(str_cat(where, ".", key), "a string", *value);
}

StatusOr<const Json*> read_object(const Json& object, std::string_view key, std::string_view where) {
  const std::string place = str_cat(where, ".", key);
  const Json* value = present(object, key);
  if (value == nullptr) return field_error(place, str_cat(place, " is missing"));
  if (!value->is_object()) return wrong(place, "an object", *value);
  return value;
}

bool has_scheme(std::string_view url, std::string_view scheme) {
  return ascii_lower(url.substr(0, scheme.size())) == scheme;
}

// No server is asked for what a client names, and no file is read for it.
StatusOr<ChatMedia> read_image(const Json& part, const std::string& where) {
  ASSIGN_OR_RETURN(const Json* image, read_object(part, "image_url", where));
  const std::string place = str_cat(where, ".image_url");
  ASSIGN_OR_RETURN(std::string url, read_string(*image, "url", place));
  RETURN_IF_ERROR(check_optional_string(*image, "detail", place));
  std::string param = str_cat(place, ".url");
  if (has_scheme(url, "http://") || has_scheme(url, "https://")) {
    return field_error(param, str_cat(param, ": URLs are not fetched: send a data: URL"));
  }
  if (!has_scheme(url, "data:")) {
    return field_error(param, str_cat(param, " must be a data: URL, \"data:image/png;base64,..\""));
  }
  return ChatMedia{"image", Json(std::move(url)), std::move(param)};
}

StatusOr<ChatMedia> read_audio(const Json& part, const std::string& where) {
  ASSIGN_OR_RETURN(const Json* audio, read_object(part, "input_audio", where));
  const std::string place = str_cat(where, ".input_audio");
  ASSIGN_OR_RETURN(std::string data, read_string(*audio, "data", place));
  RETURN_IF_ERROR(check_optional_string(*audio, "format", place));
  return ChatMedia{"audio", Json(Json::Object{{"base64", Json(std::move(data))}}), str_cat(place, ".data")};
}

// One part of a message's content, as templates read it. Its media go to `media`.
StatusOr<Json> read_part(const Json& part, const std::string& where, std::string_view role,
                         std::vector<ChatMedia>& media) {
  if (!part.is_object()) return wrong(where, "an object", part);
  ASSIGN_OR_RETURN(const std::string type, read_string(part, "type", where));
  if (type == "text") {
    ASSIGN_OR_RETURN(std::string text, read_string(part, "text", where));
    return Json(Json::Object{{"type", "text"}, {"text", Json(std::move(text))}});
  }
  const std::string place = str_cat(where, ".type");
  const bool is_image = type == "image_url";
  if (!is_image && type != "input_audio") {
    return field_error(place, str_cat(place, " must be text, image_url or input_audio, not ", shown(Json(type))));
  }
  if (role != "user") return field_error(place, str_cat(place, ": ", type, " is for messages of the role user"));
  ASSIGN_OR_RETURN(ChatMedia item, is_image ? read_image(part, where) : read_audio(part, where));
  const std::string modality = item.modality;
  media.push_back(std::move(item));
  return Json(Json::Object{{"type", Json(modality)}});
}

StatusOr<Json> read_content(const Json& message, const std::string& where, std::string_view role,
                            std::vector<ChatMedia>& media) {
  const std::string place = str_cat(where, ".content");
  const Json* content = present(message, "content");
  if (content == nullptr) return field_error(place, str_cat(place, " is missing"));
  if (content->is_string()) return *content;
  if (!content->is_array()) return wrong(place, "a text or a list of parts", *content);
  const Json::Array& given = content->as_array();
  if (given.empty()) return field_error(place, str_cat(place, " is an empty list"));
  Json parts = Json::array();
  for (size_t i = 0; i < given.size(); ++i) {
    ASSIGN_OR_RETURN(Json part, read_part(given[i], str_cat(place, "[", i, "]"), role, media));
    parts.push_back(std::move(part));
  }
  return parts;
}

StatusOr<std::string> read_role(const Json& message, const std::string& where) {
  ASSIGN_OR_RETURN(std::string role, read_string(message, "role", where));
  const std::string place = str_cat(where, ".role");
  if (role == "tool" || role == "function") {
    return with_param(unimplemented(place, ": tools are not supported"), place);
  }
  if (role == "developer") return "system";  // its newer name
  if (role == "system" || role == "user" || role == "assistant") return role;
  return field_error(place, str_cat(place, " must be system, developer, user or assistant, not ", shown(Json(role))));
}

// What an earlier answer had beside its text: clients send it back, null or empty where there was none.
Status refuse_calls(const Json& message, const std::string& where) {
  for (const std::string_view key : {"tool_calls", "function_call", "audio"}) {
    const Json* value = present(message, key);
    if (value == nullptr || (value->is_array() && value->as_array().empty())) continue;
    const std::string place = str_cat(where, ".", key);
    return with_param(unimplemented(place, key == "audio" ? ": answers are text" : ": tools are not supported"), place);
  }
  return ok_status();
}

StatusOr<Json> read_message(const Json& message, const std::string& where, std::vector<ChatMedia>& media) {
  if (!message.is_object()) return wrong(where, "an object", message);
  ASSIGN_OR_RETURN(const std::string role, read_role(message, where));
  RETURN_IF_ERROR(refuse_calls(message, where));
  RETURN_IF_ERROR(check_optional_string(message, "name", where));
  ASSIGN_OR_RETURN(Json content, read_content(message, where, role, media));
  Json read = Json(Json::Object{{"role", Json(role)}});
  read.set("content", std::move(content));
  if (const Json* name = present(message, "name"); name != nullptr) read.set("name", *name);
  return read;
}

StatusOr<Chat> read_messages(const Json& messages) {
  if (!messages.is_array()) return wrong("messages", "a list of messages", messages);
  const Json::Array& given = messages.as_array();
  if (given.empty()) return field_error("messages", "messages is an empty list");
  Chat chat;
  for (size_t i = 0; i < given.size(); ++i) {
    ASSIGN_OR_RETURN(Json message, read_message(given[i], str_cat("messages[", i, "]"), chat.media));
    chat.messages.push_back(std::move(message));
  }
  return chat;
}

// OpenAI's names for chats, as the fields that a completion has.
Status join_fields(ParsedRequest& request) {
  const BodyFields& body = request.body;
  RequestOverrides& sampling = request.sampling;
  if (body.max_completion_tokens.has_value()) {
    if (sampling.max_tokens.has_value() && *sampling.max_tokens != *body.max_completion_tokens) {
      return field_error("max_completion_tokens",
                         str_cat("max_completion_tokens is ", *body.max_completion_tokens, ", but max_tokens is ",
                                 *sampling.max_tokens, ": they are one limit"));
    }
    sampling.max_tokens = body.max_completion_tokens;
  }
  const int32_t top = body.top_logprobs.value_or(0);
  if (body.with_logprobs.value_or(false)) {
    sampling.logprobs = top;
  } else if (top > 0) {
    return field_error("top_logprobs", "top_logprobs needs logprobs: true");
  }
  return ok_status();
}

// {"image": X}, or {"image": [X, Y]} for several.
Json multi_modal_data(std::vector<ChatMedia> media) {
  std::vector<std::pair<std::string, Json::Array>> items;
  for (ChatMedia& one : media) {
    auto found = std::ranges::find(items, one.modality, &std::pair<std::string, Json::Array>::first);
    if (found == items.end()) found = items.insert(found, {one.modality, {}});
    found->second.push_back(std::move(one.item));
  }
  Json data = Json::object();
  for (auto& [modality, list] : items) {
    data.set(modality, list.size() == 1 ? std::move(list.front()) : Json(std::move(list)));
  }
  return data;
}

// Text beside media is the decoder's, as in `prompt` of a completion (docs/api.md, Prompt forms).
EncoderDecoderPrompt make_prompt(std::vector<ChatMedia> media, std::optional<std::string> text, std::string param) {
  EncoderDecoderPrompt prompt;
  prompt.encoder_param = param;
  if (media.empty()) {
    prompt.encoder.content = TextPrompt{std::move(text).value_or("")};
    return prompt;
  }
  prompt.encoder_param = media.size() == 1 ? media.front().param : "messages";
  prompt.encoder.multi_modal_data = multi_modal_data(std::move(media));
  if (!text.has_value()) return prompt;
  prompt.decoder.emplace();
  prompt.decoder->content = TextPrompt{*std::move(text)};
  prompt.decoder_param = std::move(param);
  prompt.decoder_beside_media = true;
  return prompt;
}

// The texts of a message; nullopt: it has media alone.
std::optional<std::string> text_of(const Json& content) {
  if (content.is_string()) return content.as_string();
  std::optional<std::string> text;
  for (const Json& part : content.as_array()) {
    const Json* piece = part.find("text");
    if (piece == nullptr) continue;
    if (!text.has_value()) {
      text.emplace();
    } else {
      *text += '\n';
    }
    *text += piece->as_string();
  }
  return text;
}

}  // namespace

StatusOr<ParsedChat> parse_chat(const Json& body, const RequestLimits& limits) {
  ParsedChat parsed;
  ASSIGN_OR_RETURN(parsed.request, parse_body(body, field_routes::kChat, limits));
  RETURN_IF_ERROR(join_fields(parsed.request));
  ASSIGN_OR_RETURN(parsed.chat, read_messages(*body.find("messages")));
  return parsed;
}

StatusOr<EncoderDecoderPrompt> plain_chat_prompt(Chat chat, std::string_view family) {
  const Json::Array& messages = chat.messages.as_array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].find("role")->as_string();
    if (i == 0 && role == "user") continue;
    const std::string place = str_cat("messages[", i, "]");
    return field_error(place, str_cat(place, ": this model (", family,
                                      ") has no chat template, and takes one message of the role user, not ",
                                      role == "user" ? "several" : str_cat("one of the role ", role)));
  }
  std::optional<std::string> text = text_of(*messages.front().find("content"));
  return make_prompt(std::move(chat.media), std::move(text), "messages[0].content");
}

EncoderDecoderPrompt rendered_chat_prompt(Chat chat, std::string text) {
  return make_prompt(std::move(chat.media), std::move(text), "messages");
}

}  // namespace transept
