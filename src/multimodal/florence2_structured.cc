// Florence-2's answers by the task word of their prompt, in pixels of the picture that was sent.
#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "multimodal/florence_answers.h"
#include "multimodal/structured_answers.h"

namespace transept {
namespace {

constexpr std::string_view kLeftOut[] = {"<s>", "</s>", "<pad>"};  // as the reference's processor removes them

class FlorenceAnswers final : public StructuredAnswers {
 public:
  // A prompt without a task word is its own task, whose answer is text.
  Json parse(const RequestOutput& request, const CompletionOutput& answer, const Tokenizer& tokenizer) const override {
    std::vector<int32_t> ids;
    for (const int32_t id : answer.token_ids) {
      const std::string token = tokenizer.token_to_string(id);
      if (std::ranges::find(kLeftOut, token) == std::end(kLeftOut)) ids.push_back(id);
    }
    if (request.images.empty()) return {};
    const ImageSizes& sizes = request.images.front().sizes;
    const std::string prompt = request.encoder_prompt.value_or("");
    const size_t end = prompt.starts_with('<') ? prompt.find('>') : std::string::npos;
    const std::string task = end == std::string::npos ? prompt : prompt.substr(0, end + 1);
    return florence_answer(task, tokenizer.decode(ids, false), sizes.width, sizes.height);
  }
};

}  // namespace

StatusOr<std::unique_ptr<StructuredAnswers>> make_florence2_answers(const ModelConfig& /*config*/) {
  return std::unique_ptr<StructuredAnswers>(new FlorenceAnswers());
}

}  // namespace transept
