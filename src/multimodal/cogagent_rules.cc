#include "multimodal/cogagent_rules.h"

#include <algorithm>

#include "multimodal/cogagent_pictures.h"

namespace transept {
namespace {

// The tokens of a picture stand behind the one that begins a prompt.
constexpr size_t kOffset = 1;

class CogAgentRules final : public InputRules {
 public:
  CogAgentRules(InputContext context, CogAgentTemplate words, const CogAgentPictures& pictures, int32_t padding)
      : InputRules(std::move(context)), words_(std::move(words)), pictures_(pictures), padding_(padding) {}

  bool is_decoder_alone() const override { return true; }

  Consumers consumers_of(const EncoderFeatures& media) const override {
    const bool is_small = media.shape.size() == 3 && media.shape.back() == pictures_.small_side;
    return is_small ? Consumers::kSplice : Consumers::kCross;
  }

 private:
  Status fill_default(const PromptOptions& /*options*/, EncoderDecoderInputs& /*inputs*/) const override {
    return field_error("prompt", "the request has a picture and no prompt: give the question about it");
  }

  Status fill_given(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                    EncoderDecoderInputs& inputs) const override {
    if (inputs.items.empty()) return refuse_missing();
    const auto* const text = std::get_if<TextPrompt>(&prompt.decoder->content);
    if (text == nullptr) {
      inputs.prompt_token_ids = std::get<TokensPrompt>(prompt.decoder->content).token_ids;
      return check_token_ids(inputs.prompt_token_ids, prompt.decoder_param, context().prompt_vocab());
    }
    // A text without special tokens is the prompt behind the picture, as it stands.
    const bool is_question = options.add_special_tokens.value_or(true);
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                     tokenize(is_question ? str_cat(words_.before, text->text, words_.behind) : text->text, false));
    if (ids.empty()) return field_error(prompt.decoder_param, "the text has no tokens");
    RETURN_IF_ERROR(check_token_ids(ids, prompt.decoder_param, context().prompt_vocab()));
    inputs.prompt_token_ids.assign(kOffset, first());
    inputs.prompt_token_ids.resize(kOffset + num_rows(inputs), padding_);
    inputs.prompt_token_ids.insert(inputs.prompt_token_ids.end(), ids.begin(), ids.end());
    return ok_status();
  }

  // Ids have one token for the picture, or all of its.
  Status place_items(const EncoderDecoderPrompt& prompt, const PromptOptions& /*options*/,
                     EncoderDecoderInputs& inputs) const override {
    if (inputs.items.empty()) return refuse_missing();
    if (inputs.items.size() != 2) return invalid_argument("a picture has ", inputs.items.size(), " forms, not two");
    std::vector<int32_t>& ids = inputs.prompt_token_ids;
    const size_t rows = num_rows(inputs);
    size_t end = std::min(kOffset, ids.size());
    while (end < ids.size() && ids[end] == padding_) ++end;
    const size_t found = end - std::min(kOffset, end);
    if (ids.empty() || ids.front() != first() || (found != 1 && found < rows)) {
      return field_error(prompt.decoder_param,
                         str_cat("the ids of a prompt begin with ", first(), " and then ", padding_,
                                 ", once or as often as the picture has rows: ", rows, " times"));
    }
    if (found == 1) ids.insert(ids.begin() + static_cast<std::ptrdiff_t>(kOffset), rows - 1, padding_);
    EncoderItem& small = inputs.items[0];
    small.splice_offset = static_cast<int32_t>(kOffset);
    inputs.layout = cogagent_layout(static_cast<int32_t>(ids.size()), small.splice_offset, small.num_positions(),
                                    inputs.items[1].num_positions());
    return ok_status();
  }

  Status refuse_missing() const {
    return field_error("multi_modal_data",
                       str_cat("every decoder layer of this model (", context().family,
                               ") reads a picture, and the request has none: the published code fails without"));
  }

  static size_t num_rows(const EncoderDecoderInputs& inputs) {
    return static_cast<size_t>(inputs.items.front().num_positions());
  }
  int32_t first() const { return context().bos.value_or(1); }

  const CogAgentTemplate words_;
  const CogAgentPictures pictures_;
  const int32_t padding_;
};

}  // namespace

DecoderLayout cogagent_layout(int32_t num_tokens, int32_t offset, int32_t num_rows, int32_t num_keys) {
  DecoderLayout layout;
  const int32_t first_patch = offset + 1, last = offset + num_rows - 1;
  layout.position_delta = -(last - first_patch - 1);
  for (int32_t token = 0; token < num_tokens; ++token) {
    const int32_t position = token < first_patch ? token : token < last ? first_patch : token + layout.position_delta;
    layout.prompt_positions.push_back(position);
  }
  if (offset > 0) layout.ranges.push_back({0, 0, num_keys, 0});
  layout.ranges.push_back({offset, 0, num_keys, kExpertRows});
  layout.ranges.push_back({last, 0, num_keys, 0});
  return layout;
}

std::unique_ptr<InputRules> make_cogagent_rules(const ModelConfig& config, InputContext context) {
  CogAgentTemplate words = read_cogagent_template(config).value_or(CogAgentTemplate{});
  const CogAgentPictures pictures = read_cogagent_pictures(config).value_or(CogAgentPictures{});
  return std::make_unique<CogAgentRules>(std::move(context), std::move(words), pictures,
                                         config.pad_token_id.value_or(0));
}

}  // namespace transept
