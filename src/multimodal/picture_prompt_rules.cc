#include "multimodal/picture_prompt_rules.h"

namespace transept {

Status PicturePromptRules::fill_default(const PromptOptions& /*options*/, EncoderDecoderInputs& inputs) const {
  return field_error("prompt", str_cat("the request has ", counted_pictures(inputs.items.size()),
                                       " and no prompt: its text has one ", image_name(), " for each of them"));
}

Status PicturePromptRules::fill_given(const EncoderDecoderPrompt& prompt, const PromptOptions& options,
                                      TokenizeText tokenize, EncoderDecoderInputs& inputs) const {
  if (const auto* text = std::get_if<TextPrompt>(&prompt.decoder->content)) {
    ASSIGN_OR_RETURN(inputs.prompt_token_ids, tokenize(text->text, options.add_special_tokens.value_or(true)));
    if (inputs.prompt_token_ids.empty()) return field_error(prompt.decoder_param, "the text has no tokens");
  } else {
    inputs.prompt_token_ids = std::get<TokensPrompt>(prompt.decoder->content).token_ids;
  }
  return check_token_ids(inputs.prompt_token_ids, prompt.decoder_param, context().prompt_vocab());
}

std::string PicturePromptRules::name_of(int32_t id, std::string_view published) const {
  const Tokenizer* const tokenizer = context().tokenizer;
  const std::string name = tokenizer == nullptr || id >= tokenizer->vocab_size()
                               ? std::string()
                               : std::string(tokenizer->side_token_to_string(id, TokenizerSide::kDecoder));
  return name.empty() ? std::string(published) : name;
}

std::string PicturePromptRules::counted_pictures(size_t count) {
  return str_cat(count, count == 1 ? " picture" : " pictures");
}

Status PicturePromptRules::truncate(const PromptOptions& options, EncoderDecoderInputs& inputs) {
  const auto keep = options.truncate_prompt_tokens;
  if (!keep.has_value()) return ok_status();
  if (!inputs.items.empty()) {
    return field_error("truncate_prompt_tokens",
                       "truncate_prompt_tokens cuts the prompt, in which the pictures have their places");
  }
  std::vector<int32_t>& ids = inputs.prompt_token_ids;
  if (std::ssize(ids) > *keep) ids.erase(ids.begin(), ids.end() - *keep);
  return ok_status();
}

}  // namespace transept
