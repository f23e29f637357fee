#include "request/prompt_reader.h"

#include <algorithm>

#include "base/quoted.h"
#include "request/field_reader.h"

namespace transept {
namespace {

// The member of an object, where null is the same as absent.
const Json* present(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

constexpr std::string_view kMembers[] = {"prompt",           "prompt_token_ids", "prompt_tokens",
                                         "multi_modal_data", "encoder_prompt",   "decoder_prompt"};

// What a singleton holds.
constexpr std::string_view kContents[] = {"prompt", "prompt_token_ids", "prompt_tokens", "multi_modal_data"};

void warn_unknown(const Json& object, std::string_view where, std::vector<std::string>& warnings) {
  constexpr size_t kMaxWarnings = 20, kMaxShownName = 100;
  for (const auto& [key, value] : object.as_object()) {
    if (std::ranges::find(kMembers, key) != std::end(kMembers)) continue;
    if (warnings.size() >= kMaxWarnings) return;
    const std::string name = key.substr(0, kMaxShownName);
    const std::string guess = nearest(name, {std::begin(kMembers), std::end(kMembers)});
    warnings.push_back(str_cat("unknown field ", in_quotes(name, kMaxShownName), " in ", where, " is ignored",
                               guess.empty() ? "" : str_cat("; did you mean \"", guess, "\"?")));
  }
}

// Ids of one side. `param` is where they stand.
StatusOr<TokensPrompt> read_ids(const Json& value, std::string_view param) {
  if (!value.is_array()) {
    return field_error(param, str_cat(param, " must be a list of token ids, not ", shown(value)));
  }
  if (value.as_array().empty()) return field_error(param, str_cat(param, " is an empty list"));
  TokensPrompt prompt;
  prompt.token_ids.reserve(value.as_array().size());
  for (const Json& item : value.as_array()) {
    const std::optional<int32_t> id = token_id_of(item);
    if (!id.has_value()) {
      return field_error(param, str_cat(param, ": ", shown(item), " is not a token id (", kTokenIdRange, ")"));
    }
    prompt.token_ids.push_back(*id);
  }
  return prompt;
}

struct Side {
  SingletonPrompt prompt;
  std::string param;  // where its text or ids stand
};

// A singleton as an object: text or ids, and media. `where` is the field that holds it.
StatusOr<Side> read_singleton_object(const Json& object, std::string_view where, std::vector<std::string>& warnings) {
  warn_unknown(object, where, warnings);
  if (present(object, "encoder_prompt") != nullptr || present(object, "decoder_prompt") != nullptr) {
    return field_error(where, str_cat(where, " cannot hold an encoder_prompt or decoder_prompt of its own"));
  }
  const Json* text = present(object, "prompt");
  const Json* ids = present(object, "prompt_token_ids");
  const Json* alias = present(object, "prompt_tokens");
  const Json* media = present(object, "multi_modal_data");
  if ((text != nullptr) + (ids != nullptr) + (alias != nullptr) > 1) {
    return field_error(where, str_cat(where, ": give one of prompt, prompt_token_ids and prompt_tokens"));
  }
  Side side;
  side.param = where;
  if (text != nullptr) {
    if (!text->is_string()) {
      return field_error(where, str_cat("the text of ", where, " must be a string, not ", shown(*text),
                                        text->is_array() ? "; ids stand in prompt_token_ids" : ""));
    }
    side.prompt.content = TextPrompt{text->as_string()};
  } else if (ids != nullptr || alias != nullptr) {
    // Inside an explicit prompt the side is the better name.
    const std::string_view own = ids != nullptr ? "prompt_token_ids" : "prompt_tokens";
    side.param = where == "prompt" ? own : where;
    ASSIGN_OR_RETURN(side.prompt.content, read_ids(ids != nullptr ? *ids : *alias, side.param));
  }
  if (media != nullptr) {
    if (!media->is_object() || media->as_object().empty()) {
      return field_error("multi_modal_data", str_cat("multi_modal_data must be an object that names a modality, not ",
                                                     media->is_object() ? "an empty one" : shown(*media)));
    }
    side.prompt.multi_modal_data = *media;
  }
  if (text == nullptr && ids == nullptr && alias == nullptr && media == nullptr) {
    return field_error(where, str_cat(where, " holds no prompt, prompt_token_ids or multi_modal_data"));
  }
  return side;
}

StatusOr<Side> read_singleton(const Json& value, std::string_view where, std::vector<std::string>& warnings) {
  if (value.is_object()) return read_singleton_object(value, where, warnings);
  Side side;
  side.param = where;
  if (value.is_string()) {
    side.prompt.content = TextPrompt{value.as_string()};
  } else if (value.is_array()) {
    ASSIGN_OR_RETURN(side.prompt.content, read_ids(value, where));
  } else {
    return field_error(where, str_cat(where, " must be a text, a list of token ids or an object, not ", shown(value)));
  }
  return side;
}

Status read_decoder(const Json& value, EncoderDecoderPrompt& out, std::vector<std::string>& warnings) {
  constexpr std::string_view kWhere = "decoder_prompt";
  if (out.decoder.has_value()) {
    return field_error(kWhere, "decoder_prompt is given, and the prompt has a decoder part already");
  }
  ASSIGN_OR_RETURN(Side side, read_singleton(value, kWhere, warnings));
  if (side.prompt.multi_modal_data.has_value()) {
    return field_error("multi_modal_data", "media belong to the encoder, not to decoder_prompt");
  }
  out.decoder = std::move(side.prompt);
  out.decoder_param = std::move(side.param);
  return ok_status();
}

StatusOr<EncoderDecoderPrompt> read_explicit(const Json& object, std::vector<std::string>& warnings) {
  for (const std::string_view key : kContents) {
    if (present(object, key) != nullptr) {
      return field_error("prompt", str_cat("prompt: ", key, " cannot stand beside encoder_prompt and decoder_prompt; ",
                                           "it belongs inside one of them"));
    }
  }
  warn_unknown(object, "prompt", warnings);
  const Json* encoder = present(object, "encoder_prompt");
  if (encoder == nullptr) return field_error("encoder_prompt", "encoder_prompt is missing");
  EncoderDecoderPrompt out;
  ASSIGN_OR_RETURN(Side side, read_singleton(*encoder, "encoder_prompt", warnings));
  out.encoder = std::move(side.prompt);
  out.encoder_param = std::move(side.param);
  if (const Json* decoder = present(object, "decoder_prompt"); decoder != nullptr) {
    RETURN_IF_ERROR(read_decoder(*decoder, out, warnings));
  }
  return out;
}

// Text or ids beside media are the decoder's (docs/api.md, Prompt forms).
EncoderDecoderPrompt from_singleton(Side side) {
  EncoderDecoderPrompt out;
  out.encoder_param = side.param;
  if (side.prompt.multi_modal_data.has_value()) {
    out.encoder_param = "multi_modal_data";
    out.encoder.multi_modal_data = std::move(side.prompt.multi_modal_data);
    side.prompt.multi_modal_data.reset();
    if (!std::holds_alternative<std::monostate>(side.prompt.content)) {
      out.decoder = std::move(side.prompt);
      out.decoder_param = std::move(side.param);
      out.decoder_beside_media = true;
    }
  } else {
    out.encoder = std::move(side.prompt);
  }
  return out;
}

// null is absent; an object of nothing but a side that is null is still meant to be explicit.
bool is_explicit(const Json& prompt) {
  if (!prompt.is_object()) return false;
  if (present(prompt, "encoder_prompt") != nullptr || present(prompt, "decoder_prompt") != nullptr) return true;
  if (prompt.find("encoder_prompt") == nullptr && prompt.find("decoder_prompt") == nullptr) return false;
  return std::ranges::none_of(kContents, [&](std::string_view key) { return present(prompt, key) != nullptr; });
}

StatusOr<EncoderDecoderPrompt> read_main(const Json& prompt, std::vector<std::string>& warnings) {
  if (is_explicit(prompt)) return read_explicit(prompt, warnings);
  ASSIGN_OR_RETURN(Side side, read_singleton(prompt, "prompt", warnings));
  return from_singleton(std::move(side));
}

}  // namespace

StatusOr<EncoderDecoderPrompt> read_prompt(const Json& request, std::vector<std::string>& warnings) {
  const Json* prompt = present(request, "prompt");
  if (prompt == nullptr) return field_error("prompt", "prompt is missing");
  ASSIGN_OR_RETURN(EncoderDecoderPrompt out, read_main(*prompt, warnings));
  if (const Json* decoder = present(request, "decoder_prompt"); decoder != nullptr) {
    RETURN_IF_ERROR(read_decoder(*decoder, out, warnings));
  }
  return out;
}

namespace {

// A list of prompts, and not one prompt of ids.
bool is_batch(const Json& value) {
  if (!value.is_array() || value.as_array().empty()) return false;
  const Json& first = value.as_array().front();
  return first.is_string() || first.is_array() || first.is_object();
}

// The error of one prompt of a list, with its place.
Status at_place(const Status& status, std::string_view field, size_t index) {
  const std::string place = str_cat(field, "[", index, "]");
  return with_param(with_prefix(absl::Status(status.code(), status.message()), str_cat(place, ": ")), place);
}

}  // namespace

StatusOr<std::vector<EncoderDecoderPrompt>> read_prompts(const Json& body, size_t max_prompts,
                                                         std::vector<std::string>& warnings) {
  const Json* prompts = present(body, "prompt");
  const Json* decoders = present(body, "decoder_prompt");
  std::vector<EncoderDecoderPrompt> out;
  if (prompts == nullptr || !is_batch(*prompts)) {
    ASSIGN_OR_RETURN(EncoderDecoderPrompt prompt, read_prompt(body, warnings));
    out.push_back(std::move(prompt));
    return out;
  }
  const size_t count = prompts->as_array().size();
  if (count > max_prompts) {
    return field_error("prompt",
                       str_cat("prompt is a list of ", count, "; at most ", max_prompts, " are taken at once"));
  }
  const bool has_list = decoders != nullptr && is_batch(*decoders);
  if (has_list && decoders->as_array().size() != count) {
    return field_error("decoder_prompt", str_cat("decoder_prompt is a list of ", decoders->as_array().size(),
                                                 ", and prompt one of ", count));
  }
  for (size_t i = 0; i < count; ++i) {
    Json one = Json::object();
    one.set("prompt", prompts->as_array()[i]);
    if (decoders != nullptr) one.set("decoder_prompt", has_list ? decoders->as_array()[i] : *decoders);
    StatusOr<EncoderDecoderPrompt> prompt = read_prompt(one, warnings);
    if (!prompt.ok()) {
      return at_place(prompt.status(), error_param(prompt.status()) == "decoder_prompt" ? "decoder_prompt" : "prompt",
                      i);
    }
    out.push_back(std::move(prompt).value());
  }
  return out;
}

}  // namespace transept
