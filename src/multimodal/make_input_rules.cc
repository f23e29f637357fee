#include "multimodal/make_input_rules.h"

#include "multimodal/florence2_rules.h"
#include "multimodal/input_families.h"
#include "multimodal/mllama_rules.h"
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
    case DefaultPrompt::kTask: return std::make_unique<TaskRules>(std::move(context));
    case DefaultPrompt::kPictures: return make_qwen2_vl_rules(config, std::move(context));
    case DefaultPrompt::kMllama: return make_mllama_rules(config, std::move(context));
    case DefaultPrompt::kFlorence2: return make_florence2_rules(std::move(context));
    case DefaultPrompt::kTranscript: return make_transcript_rules(std::move(context));
    case DefaultPrompt::kStart: break;
  }
  return std::make_unique<StartRules>(std::move(context), std::nullopt);
}

}  // namespace transept
