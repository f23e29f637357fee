#include "multimodal/florence2_rules.h"

#include <algorithm>

#include "base/strings.h"
#include "multimodal/python_strip.h"

namespace transept {
namespace {

struct Task {
  std::string_view word, sentence;  // "{}": what stands beside the word
};

constexpr Task kAlone[] = {
    {"<OCR>", "What is the text in the image?"},
    {"<OCR_WITH_REGION>", "What is the text in the image, with regions?"},
    {"<CAPTION>", "What does the image describe?"},
    {"<DETAILED_CAPTION>", "Describe in detail what is shown in the image."},
    {"<MORE_DETAILED_CAPTION>", "Describe with a paragraph what is shown in the image."},
    {"<OD>", "Locate the objects with category name in the image."},
    {"<DENSE_REGION_CAPTION>", "Locate the objects in the image, with their descriptions."},
    {"<REGION_PROPOSAL>", "Locate the region proposals in the image."},
};

constexpr Task kWithText[] = {
    {"<CAPTION_TO_PHRASE_GROUNDING>", "Locate the phrases in the caption: {}"},
    {"<REFERRING_EXPRESSION_SEGMENTATION>", "Locate {} in the image with mask"},
    {"<REGION_TO_SEGMENTATION>", "What is the polygon mask of region {}"},
    {"<OPEN_VOCABULARY_DETECTION>", "Locate {} in the image."},
    {"<REGION_TO_CATEGORY>", "What is the region {}?"},
    {"<REGION_TO_DESCRIPTION>", "What does the region {} describe?"},
    {"<REGION_TO_OCR>", "What text is in the region {}?"},
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

class Florence2Rules final : public InputRules {
 public:
  explicit Florence2Rules(InputContext context) : InputRules(std::move(context)) {}

  bool text_beside_media_is_encoders() const override { return true; }

  // A text may stand beside the media.
  Status check_encoder(const EncoderDecoderPrompt& prompt, const PromptOptions& options) const override {
    if (!prompt.encoder.multi_modal_data.has_value()) {
      return field_error(prompt.encoder_param,
                         str_cat("this model (", context().family,
                                 ") encodes an image with its text: give the image "
                                 "in multi_modal_data; files are for `transept generate --image`"));
    }
    if (!options.truncate_prompt_tokens.has_value()) return ok_status();
    return field_error("truncate_prompt_tokens",
                       "truncate_prompt_tokens cuts token ids from the front, where the image stands");
  }

  StatusOr<std::vector<int32_t>> ids_around_media(const PromptContent& content, const std::string& param,
                                                  int32_t num_rows, const PromptOptions& options,
                                                  TokenizeText tokenize) const override {
    std::vector<int32_t> ids;
    if (const auto* tokens = std::get_if<TokensPrompt>(&content)) {
      ids = tokens->token_ids;
      RETURN_IF_ERROR(check_token_ids(ids, param, context().encoder_vocab_size));
    } else {
      const auto* text = std::get_if<TextPrompt>(&content);
      ASSIGN_OR_RETURN(const std::string sentence, florence2_sentence(text == nullptr ? "" : text->text, param));
      std::vector<int32_t> words;
      if (!sentence.empty()) {
        ASSIGN_OR_RETURN(words, tokenize(sentence, false));
      }
      RETURN_IF_ERROR(check_token_ids(words, param, context().encoder_vocab_size));
      const bool has_ends = options.add_special_tokens.value_or(true);
      ids.assign(static_cast<size_t>(num_rows), context().media_token_id);
      if (has_ends && context().bos.has_value()) ids.push_back(*context().bos);
      ids.insert(ids.end(), words.begin(), words.end());
      if (has_ends && !context().eos.empty()) ids.push_back(context().eos.front());
    }
    const int64_t num_places = std::ranges::count(ids, context().media_token_id);
    if (num_places == num_rows) return ids;
    return field_error(param, str_cat(param, ": ", num_places, " ids are places for rows of the image (token ",
                                      context().media_token_id, "), which has ", num_rows));
  }

 private:
  Status fill_default(const PromptOptions& /*options*/, EncoderDecoderInputs& inputs) const override {
    inputs.prompt_token_ids = {context().decoder_start};
    return ok_status();
  }
};

}  // namespace

StatusOr<std::string> florence2_sentence(const std::string& text, const std::string& param) {
  for (const Task& task : kAlone) {
    if (text.find(task.word) == std::string::npos) continue;
    if (text == task.word) return std::string(task.sentence);
    return field_error(param, str_cat("the task word ", task.word, " takes no text: it is the whole prompt"));
  }
  for (const Task& task : kWithText) {
    if (text.find(task.word) == std::string::npos) continue;
    std::string input = text, sentence(task.sentence);
    replace_all(input, task.word, "");
    const size_t place = sentence.find("{}");
    return sentence.replace(place, 2, python_strip(input));
  }
  return text;
}

std::unique_ptr<InputRules> make_florence2_rules(InputContext context) {
  return std::make_unique<Florence2Rules>(std::move(context));
}

}  // namespace transept
