#include "multimodal/qwen2_vl_rules.h"

#include <algorithm>

#include "base/checked_math.h"
#include "multimodal/picture_prompt_rules.h"
#include "multimodal/qwen2_vl_pictures.h"
#include "multimodal/qwen2_vl_positions.h"

namespace transept {
namespace {

// Tokens of pictures in a row: one that is to be expanded, or all of an expanded one.
struct Run {
  size_t begin = 0, size = 0;
};

class Qwen2VlRules final : public PicturePromptRules {
 public:
  Qwen2VlRules(InputContext context, const Qwen2VlTokens& tokens, int64_t merge)
      : PicturePromptRules(std::move(context), tokens.image, "<|image_pad|>"),
        tokens_(tokens),
        merge_(static_cast<int32_t>(merge)) {}

 private:
  Status place_items(const EncoderDecoderPrompt& prompt, const PromptOptions& options,
                     EncoderDecoderInputs& inputs) const override {
    const std::vector<int32_t>& ids = inputs.prompt_token_ids;
    if (std::ranges::find(ids, tokens_.video) != ids.end()) {
      return field_error(prompt.decoder_param, str_cat("the prompt has ", name_of(tokens_.video, "<|video_pad|>"),
                                                       ": videos are not supported, only images"));
    }
    ASSIGN_OR_RETURN(const std::vector<Run> runs, runs_of(prompt, inputs));
    RETURN_IF_ERROR(truncate(options, inputs));
    return runs.empty() ? ok_status() : expand(runs, inputs);
  }

  // A run for each item, in order. Ids may be expanded already, as results show them; a text is not.
  StatusOr<std::vector<Run>> runs_of(const EncoderDecoderPrompt& prompt, const EncoderDecoderInputs& inputs) const {
    const std::vector<int32_t>& ids = inputs.prompt_token_ids;
    const bool is_text = inputs.prompt.has_value();
    std::vector<Run> runs;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != tokens_.image) continue;
      if (runs.empty() || runs.back().begin + runs.back().size != i) {
        runs.push_back({i, 1});
      } else if (!is_text) {
        ++runs.back().size;
      } else {
        return field_error(
            prompt.decoder_param,
            str_cat("two ", image_name(),
                    " stand next to each other: "
                    "there is a token between two pictures, as <|vision_end|> and <|vision_start|> are"));
      }
    }
    const size_t count = inputs.items.size();
    if (runs.size() != count) {
      const std::string_view of_runs = is_text ? "" : runs.size() == 1 ? "run of " : "runs of ";
      return field_error(prompt.decoder_param,
                         str_cat("the prompt has ", runs.size(), " ", of_runs, image_name(), ", and the request ",
                                 counted_pictures(count), ": one stands for each, in order"));
    }
    for (size_t i = 0; i < count; ++i) {
      const auto rows = static_cast<size_t>(inputs.items[i].num_positions());
      if (runs[i].size == 1 || runs[i].size == rows) continue;
      return field_error(prompt.decoder_param, str_cat("picture ", i, " has ", rows, " rows, and ", runs[i].size, " ",
                                                       image_name(), " in the prompt: give one, or all"));
    }
    return runs;
  }

  Status expand(const std::vector<Run>& runs, EncoderDecoderInputs& inputs) const {
    std::vector<int32_t> expanded;
    std::vector<PlacedPicture> pictures;
    auto next = inputs.prompt_token_ids.begin();
    for (size_t i = 0; i < runs.size(); ++i) {
      EncoderItem& item = inputs.items[i];
      const EncoderFeatures* const media = media_of(item);
      if (media == nullptr || media->extras.size() != 3) return invalid_argument("picture ", i, " has no grid");
      const auto begin = inputs.prompt_token_ids.begin() + static_cast<std::ptrdiff_t>(runs[i].begin);
      expanded.insert(expanded.end(), next, begin);
      item.splice_offset = static_cast<int32_t>(expanded.size());
      pictures.push_back({item.splice_offset, media->extras[1] / merge_, media->extras[2] / merge_});
      if (pictures.back().num_tokens() != item.num_positions()) return invalid_argument("picture ", i, " has no grid");
      expanded.insert(expanded.end(), static_cast<size_t>(item.num_positions()), tokens_.image);
      next = begin + static_cast<std::ptrdiff_t>(runs[i].size);
    }
    expanded.insert(expanded.end(), next, inputs.prompt_token_ids.end());
    inputs.prompt_token_ids = std::move(expanded);
    inputs.layout = qwen2_vl_layout(static_cast<int32_t>(inputs.prompt_token_ids.size()), pictures);
    return ok_status();
  }

  Qwen2VlTokens tokens_;
  int32_t merge_;
};

}  // namespace

std::unique_ptr<InputRules> make_qwen2_vl_rules(const ModelConfig& config, InputContext context) {
  const Qwen2VlTokens tokens = read_qwen2_vl_tokens(config).value_or(Qwen2VlTokens{});
  const Qwen2VlPictures pictures = read_qwen2_vl_pictures(config).value_or(Qwen2VlPictures{});
  return std::make_unique<Qwen2VlRules>(std::move(context), tokens, pictures.merge);
}

}  // namespace transept
