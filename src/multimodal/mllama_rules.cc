#include "multimodal/mllama_rules.h"

#include "multimodal/mllama_pictures.h"
#include "multimodal/picture_prompt_rules.h"

namespace transept {
namespace {

class MllamaRules final : public PicturePromptRules {
 public:
  MllamaRules(InputContext context, int32_t image, bool is_strict)
      : PicturePromptRules(std::move(context), image, "<|image|>"), is_strict_(is_strict) {}

 private:
  Status place_items(const EncoderDecoderPrompt& prompt, const PromptOptions& options,
                     EncoderDecoderInputs& inputs) const override {
    const std::vector<int32_t>& ids = inputs.prompt_token_ids;
    std::vector<MllamaPlace> pictures;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == image()) pictures.push_back({.token = static_cast<int32_t>(i)});
    }
    const size_t count = inputs.items.size();
    if (pictures.size() != count) {
      return field_error(prompt.decoder_param,
                         str_cat("the prompt has ", pictures.size(), " ", image_name(), ", and the request ",
                                 counted_pictures(count), ": one stands for each, in order"));
    }
    RETURN_IF_ERROR(truncate(options, inputs));
    for (size_t i = 0; i < count; ++i) {
      const EncoderItem& item = inputs.items[i];
      pictures[i].num_rows = item.num_positions() - item.num_last_positions();
    }
    inputs.layout.ranges = mllama_ranges(pictures, is_strict_ ? 0 : num_cross_positions(inputs.items));
    return ok_status();
  }

  bool is_strict_;
};

}  // namespace

std::vector<RowRange> mllama_ranges(std::span<const MllamaPlace> pictures, int32_t num_before) {
  std::vector<RowRange> ranges;
  if (pictures.empty() || pictures.front().token > 0) ranges.push_back({0, 0, num_before, kMllamaBeforePictures});
  int32_t begin = 0, end = 0;  // keys of the pictures that are seen together
  for (size_t i = 0; i < pictures.size(); ++i) {
    const bool is_next_to_last = i > 0 && pictures[i - 1].token + 1 == pictures[i].token;
    if (!is_next_to_last) begin = end;
    end += pictures[i].num_rows;
    ranges.push_back({pictures[i].token, begin, end, 0});
  }
  return ranges;
}

std::unique_ptr<InputRules> make_mllama_rules(const ModelConfig& config, InputContext context) {
  return std::make_unique<MllamaRules>(std::move(context), read_mllama_image_token(config).value_or(128256),
                                       read_mllama_strict_mask(config).value_or(false));
}

}  // namespace transept
