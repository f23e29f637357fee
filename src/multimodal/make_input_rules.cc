#include "multimodal/make_input_rules.h"

#include "base/utf8.h"
#include "multimodal/cogagent_rules.h"
#include "multimodal/florence2_rules.h"
#include "multimodal/input_families.h"
#include "multimodal/mllama_rules.h"
#include "multimodal/picture_header.h"
#include "multimodal/qwen2_vl_rules.h"
#include "multimodal/transcript_rules.h"

namespace transept {
namespace {

// One token behind the start token, or none.
class StartRules : public InputRules {
 public:
  StartRules(InputContext context, std::optional<int32_t> second) : InputRules(std::move(context)), second_(second) {}

 protected:
  void fill(std::optional<int32_t> second, EncoderDecoderInputs& inputs) const {
    inputs.prompt_token_ids = {context().decoder_start};
    if (!second.has_value() || *second == context().decoder_start) return;
    inputs.prompt_token_ids.push_back(*second);
    inputs.num_default_generated = 1;
  }

  Status fill_default(const PromptOptions& /*options*/, EncoderDecoderInputs& inputs) const override {
    fill(second_, inputs);
    return ok_status();
  }

 private:
  std::optional<int32_t> second_;
};

// The start token alone, or a text as it stands behind it.
class TaskRules final : public StartRules {
 public:
  explicit TaskRules(InputContext context) : StartRules(std::move(context), std::nullopt) {}

 private:
  bool adds_special_tokens() const override { return false; }
};

// The same. Special tokens are [CLS] and [SEP], which no caption has: of "[CLS] text [SEP]" the model reads "[DEC]
// text" (transformers 5.23, BlipForConditionalGeneration.generate).
class CaptionRules final : public StartRules {
 public:
  explicit CaptionRules(InputContext context) : StartRules(std::move(context), std::nullopt) {}

 private:
  bool adds_special_tokens() const override { return false; }

  Status fill_given(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                    EncoderDecoderInputs& inputs) const override {
    const auto* text = std::get_if<TextPrompt>(&prompt.decoder->content);
    if (text == nullptr || options.add_special_tokens != true) {
      return StartRules::fill_given(prompt, options, tokenize, inputs);
    }
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenize(text->text, true));
    RETURN_IF_ERROR(check_token_ids(ids, prompt.decoder_param, context().vocab_size));
    if (!ids.empty()) ids.pop_back();
    if (ids.empty()) ids.resize(1);
    ids.front() = context().decoder_start;
    inputs.prompt_token_ids = std::move(ids);
    return ok_status();
  }
};

// The start token alone: the text is a question, which is drawn above the picture.
class QuestionRules final : public StartRules {
 public:
  explicit QuestionRules(InputContext context) : StartRules(std::move(context), std::nullopt) {}

  bool text_beside_media_is_encoders() const override { return true; }

  // A text may stand beside the media.
  Status check_encoder(const EncoderDecoderPrompt& prompt, const PromptOptions& options) const override {
    if (!prompt.encoder.multi_modal_data.has_value()) {
      return field_error(
          prompt.encoder_param,
          str_cat("this model (", context().family,
                  ") answers questions about an image: give it in multi_modal_data, beside the question; "
                  "files are for `transept generate --image`"));
    }
    if (!options.truncate_prompt_tokens.has_value()) return ok_status();
    return field_error("truncate_prompt_tokens",
                       "truncate_prompt_tokens cuts token ids, and the encoder input is an image with its question");
  }

  StatusOr<std::optional<std::string>> question_of(const PromptContent& content,
                                                   const std::string& param) const override {
    if (std::holds_alternative<TokensPrompt>(content)) {
      return field_error(param, "the question is drawn above the image: give it as text, not as token ids");
    }
    const auto* text = std::get_if<TextPrompt>(&content);
    if (text == nullptr || is_empty_question(text->text)) {
      const std::string_view field = text == nullptr ? "prompt" : std::string_view(param);
      return field_error(field, str_cat("a question is missing: this model (", context().family,
                                        ") reads it above the image (transformers: \"A header text must be provided "
                                        "for VQA models.\"): give it as prompt, beside the image"));
    }
    if (text->text.size() > kMaxQuestionBytes) {
      return field_error(param, str_cat("the question has ", text->text.size(), " bytes: at most ", kMaxQuestionBytes,
                                        " are drawn above an image"));
    }
    return std::optional<std::string>(sanitize_utf8(text->text));
  }
};

// The target language behind the start token.
class LanguageRules final : public StartRules {
 public:
  explicit LanguageRules(InputContext context) : StartRules(std::move(context), std::nullopt) {}

  // Of a text the tokenizer says what its language must be.
  Status check_encoder(const EncoderDecoderPrompt& prompt, const PromptOptions& options) const override {
    RETURN_IF_ERROR(InputRules::check_encoder(prompt, options));
    const bool is_text = std::holds_alternative<TextPrompt>(prompt.encoder.content);
    if (is_text || context().tokenizer == nullptr) return ok_status();
    return language_token(options.source_lang, "source_lang").status();
  }

 private:
  Status check_options(const PromptOptions& options) const override {
    RETURN_IF_ERROR(InputRules::check_options(options));
    ASSIGN_OR_RETURN(const std::optional<int32_t> language, language_token(options.target_lang, "target_lang"));
    if (!language.has_value()) return ok_status();
    return check_token_ids(std::span(&*language, 1), "target_lang", context().vocab_size);
  }

  Status fill_default(const PromptOptions& options, EncoderDecoderInputs& inputs) const override {
    ASSIGN_OR_RETURN(std::optional<int32_t> language, language_token(options.target_lang, "target_lang"));
    if (!language.has_value()) language = context().forced_bos;
    inputs.names_language = language.has_value();
    fill(language, inputs);
    return ok_status();
  }
};

}  // namespace

std::unique_ptr<InputRules> make_input_rules(const ModelConfig& config, InputContext context) {
  const InputFamily* family = find_input_family(config);
  const std::optional<int32_t> bos = context.bos;
  switch (family == nullptr ? DefaultPrompt::kStart : family->default_prompt) {
    case DefaultPrompt::kBos: return std::make_unique<StartRules>(std::move(context), bos);
    case DefaultPrompt::kLanguage: return std::make_unique<LanguageRules>(std::move(context));
    case DefaultPrompt::kTask:
      if (context.draws_question) return std::make_unique<QuestionRules>(std::move(context));
      return std::make_unique<TaskRules>(std::move(context));
    case DefaultPrompt::kCaption: return std::make_unique<CaptionRules>(std::move(context));
    case DefaultPrompt::kPictures: return make_qwen2_vl_rules(config, std::move(context));
    case DefaultPrompt::kMllama: return make_mllama_rules(config, std::move(context));
    case DefaultPrompt::kCogAgent: return make_cogagent_rules(config, std::move(context));
    case DefaultPrompt::kFlorence2: return make_florence2_rules(std::move(context));
    case DefaultPrompt::kTranscript: return make_transcript_rules(std::move(context));
    case DefaultPrompt::kStart: break;
  }
  return std::make_unique<StartRules>(std::move(context), std::nullopt);
}

}  // namespace transept
