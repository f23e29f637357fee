#include "multimodal/input_rules.h"

#include <algorithm>

namespace transept {
namespace {

bool is_text(const SingletonPrompt& prompt) { return std::holds_alternative<TextPrompt>(prompt.content); }

}  // namespace

Status check_token_ids(std::span<const int32_t> ids, std::string_view param, int32_t vocab_size) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return field_error(param, str_cat("token id ", id, " is outside the vocabulary of ", vocab_size));
    }
  }
  return ok_status();
}

Status InputRules::check_encoder(const EncoderDecoderPrompt& prompt, const PromptOptions& options) const {
  const bool has_content = !std::holds_alternative<std::monostate>(prompt.encoder.content);
  if (prompt.encoder.multi_modal_data.has_value()) {
    if (has_content) {
      return field_error("encoder_prompt",
                         str_cat("this model (", context_.family, ") has no place for text beside media in ",
                                 "its encoder: give it as decoder_prompt"));
    }
    if (!options.truncate_prompt_tokens.has_value()) return ok_status();
    return field_error("truncate_prompt_tokens",
                       str_cat("truncate_prompt_tokens cuts token ids, and the encoder input is ",
                               context_.modalities.empty() ? "media" : context_.modalities.front()));
  }
  if (!context_.modalities.empty()) {
    // Who sends text to it most likely wants something else of it.
    const std::string_view whole_recordings =
        context_.modalities.front() == "audio"
            ? "; whole recordings are for `transept transcribe` and POST /v1/audio/transcriptions"
            : "; files are for `transept generate --image`";
    return field_error(
        prompt.encoder_param,
        str_cat("this model (", context_.family, ") encodes ", context_.modalities.front(),
                ": give it in multi_modal_data; text and ids beside it are the decoder's", whole_recordings));
  }
  if (has_content) return ok_status();
  return field_error(
      "encoder_prompt",
      str_cat("this model (", context_.family, ") needs an encoder prompt, which its decoder reads; the ",
              "request has only a decoder prompt: give the text as prompt or encoder_prompt"));
}

StatusOr<std::vector<int32_t>> InputRules::ids_around_media(const PromptContent& /*content*/,
                                                            const std::string& /*param*/, int32_t /*num_rows*/,
                                                            const PromptOptions& /*options*/,
                                                            TokenizeText /*tokenize*/) const {
  return std::vector<int32_t>();
}

StatusOr<std::optional<std::string>> InputRules::question_of(const PromptContent& /*content*/,
                                                             const std::string& /*param*/) const {
  return std::optional<std::string>();
}

Status InputRules::check_options(const PromptOptions& options) const {
  if (context_.speech_tokens == nullptr) {
    const std::string_view field = !options.language.value_or("").empty() ? "language"
                                   : !options.task.value_or("").empty()   ? "task"
                                   : options.timestamps.value_or(false)   ? "timestamps"
                                                                          : "";
    if (!field.empty()) {
      return field_error(field, str_cat("this model (", context_.family, ") has no ", field, " to choose"));
    }
  }
  return language_token(options.target_lang, "target_lang").status();
}

Status InputRules::fill_decoder(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                                EncoderDecoderInputs& inputs) const {
  RETURN_IF_ERROR(check_options(options));
  RETURN_IF_ERROR(fill_ids(prompt, options, tokenize, inputs));
  return place_items(prompt, options, inputs);
}

Status InputRules::place_items(const EncoderDecoderPrompt& /*prompt*/, const PromptOptions& /*options*/,
                               EncoderDecoderInputs& /*inputs*/) const {
  return ok_status();
}

Status InputRules::fill_ids(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                            EncoderDecoderInputs& inputs) const {
  const bool is_encoders = prompt.decoder_beside_media && text_beside_media_is_encoders();
  if (is_encoders || !prompt.decoder.has_value() || std::holds_alternative<std::monostate>(prompt.decoder->content)) {
    return fill_default(options, inputs);
  }
  if (const auto* text = std::get_if<TextPrompt>(&prompt.decoder->content)) inputs.prompt = text->text;
  if (is_text(*prompt.decoder) || !prompt.decoder_beside_media) return fill_given(prompt, options, tokenize, inputs);
  inputs.prompt_token_ids = std::get<TokensPrompt>(prompt.decoder->content).token_ids;
  if (inputs.prompt_token_ids.empty()) return field_error(prompt.decoder_param, "the list of token ids is empty");
  return check_token_ids(inputs.prompt_token_ids, prompt.decoder_param, context_.prompt_vocab());
}

Status InputRules::fill_given(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                              EncoderDecoderInputs& inputs) const {
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<TextPrompt>(&prompt.decoder->content)) {
    ASSIGN_OR_RETURN(ids, tokenize(text->text, options.add_special_tokens.value_or(adds_special_tokens())));
    // Nobody continues a finished sentence: a trailing end token goes, unless the request insists.
    const bool ends = !ids.empty() && std::ranges::find(context_.eos, ids.back()) != context_.eos.end();
    if (ends && options.add_special_tokens != true) ids.pop_back();
  } else {
    ids = std::get<TokensPrompt>(prompt.decoder->content).token_ids;
  }
  RETURN_IF_ERROR(check_token_ids(ids, prompt.decoder_param, context_.prompt_vocab()));
  if (ids.empty() || ids.front() != context_.decoder_start) ids.insert(ids.begin(), context_.decoder_start);
  inputs.prompt_token_ids = std::move(ids);
  return ok_status();
}

StatusOr<std::optional<int32_t>> InputRules::language_token(const std::optional<std::string>& language,
                                                            std::string_view field) const {
  if (language.value_or("").empty()) return std::optional<int32_t>();
  if (context_.tokenizer == nullptr) {
    return field_error(field, str_cat("languages need a tokenizer (", context_.no_tokenizer, ")"));
  }
  ASSIGN_OR_RETURN(const int32_t id, context_.tokenizer->language_token(*language, field));
  return std::optional<int32_t>(id);
}

}  // namespace transept
