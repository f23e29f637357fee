#include "multimodal/transcript_rules.h"

#include <algorithm>

namespace transept {
namespace {

class TranscriptRules final : public InputRules {
 public:
  explicit TranscriptRules(InputContext context) : InputRules(std::move(context)) {}

 private:
  // Leaves the language open if neither the request nor the model's files name one.
  Status fill_default(const PromptOptions& options, EncoderDecoderInputs& inputs) const override {
    inputs.prompt_token_ids = {context().decoder_start};
    if (context().speech_tokens == nullptr) return ok_status();
    const SpeechTokens& tokens = *context().speech_tokens;
    const std::string asked = options.language.value_or("");
    const std::string code = !asked.empty() ? asked : tokens.default_language.value_or("");
    std::optional<int32_t> language;
    if (!code.empty()) {
      ASSIGN_OR_RETURN(language, tokens.language_token(code, "language"));
    } else if (!tokens.languages.empty()) {
      OpenToken open{.index = static_cast<int32_t>(inputs.prompt_token_ids.size()), .choices = {}};
      open.choices.reserve(tokens.languages.size());
      for (const SpeechTokens::Language& known : tokens.languages) open.choices.push_back(known.token_id);
      language = open.choices.front();
      inputs.open_token = std::move(open);
    }
    const std::string asked_task = options.task.value_or("");
    const std::string task = !asked_task.empty() ? asked_task : tokens.default_task.value_or("transcribe");
    ASSIGN_OR_RETURN(const std::optional<int32_t> task_id, tokens.task_token(task, "task"));
    const bool timestamps = options.timestamps.value_or(false);
    if (timestamps && !tokens.no_timestamps.has_value()) {
      return field_error("timestamps", "this model has no timestamps");
    }
    inputs.prompt_token_ids = transcript_prompt(&tokens, context().decoder_start, language, task_id, timestamps);
    return check_token_ids(inputs.prompt_token_ids, "prompt", context().vocab_size);
  }

  // A prompt is whole if it says where the transcript starts (behind previous text, maybe); else it is the text that
  // follows the default one.
  Status fill_given(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                    EncoderDecoderInputs& inputs) const override {
    std::vector<int32_t> ids;
    const auto* text = std::get_if<TextPrompt>(&prompt.decoder->content);
    if (text != nullptr) {
      ASSIGN_OR_RETURN(ids, tokenize(text->text, false));
    } else {
      ids = std::get<TokensPrompt>(prompt.decoder->content).token_ids;
    }
    RETURN_IF_ERROR(check_token_ids(ids, prompt.decoder_param, context().vocab_size));
    const bool is_whole = std::ranges::find(ids, context().decoder_start) != ids.end();
    if (!is_whole && text != nullptr) {
      RETURN_IF_ERROR(fill_default(options, inputs));
    } else if (!is_whole) {
      inputs.prompt_token_ids = {context().decoder_start};
    }
    inputs.prompt_token_ids.insert(inputs.prompt_token_ids.end(), ids.begin(), ids.end());
    return ok_status();
  }
};

}  // namespace

std::vector<int32_t> transcript_prompt(const SpeechTokens* tokens, int32_t start, std::optional<int32_t> language,
                                       std::optional<int32_t> task, bool timestamps) {
  std::vector<int32_t> ids = {start};
  if (language.has_value()) ids.push_back(*language);
  if (task.has_value()) ids.push_back(*task);
  if (!timestamps && tokens != nullptr && tokens->no_timestamps.has_value()) ids.push_back(*tokens->no_timestamps);
  return ids;
}

std::unique_ptr<InputRules> make_transcript_rules(InputContext context) {
  return std::make_unique<TranscriptRules>(std::move(context));
}

}  // namespace transept
