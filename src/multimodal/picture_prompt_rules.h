// What families have in common whose pictures stand in the decoder's prompt: a decoder alone, and a token of the prompt
// for each picture, in order (Qwen2-VL, Mllama). What becomes of the tokens is the family's. Owned by the prompt
// processor. Immutable, so thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "multimodal/input_rules.h"

namespace transept {

class PicturePromptRules : public InputRules {
 public:
  bool is_decoder_alone() const override { return true; }

 protected:
  // image: the token of a picture; published: its name, where the tokenizer has none.
  PicturePromptRules(InputContext context, int32_t image, std::string_view published)
      : InputRules(std::move(context)), image_(image), published_(published) {}

  // Errors: the request has pictures and no prompt.
  Status fill_default(const PromptOptions& options, EncoderDecoderInputs& inputs) const override;
  // As it stands: no token begins or ends a prompt of its own.
  Status fill_given(const EncoderDecoderPrompt& prompt, const PromptOptions& options, TokenizeText tokenize,
                    EncoderDecoderInputs& inputs) const override;

  // A token as the tokenizer spells it, for messages; else `published`.
  std::string name_of(int32_t id, std::string_view published) const;
  std::string image_name() const { return name_of(image_, published_); }
  int32_t image() const { return image_; }

  // "1 picture", "2 pictures".
  static std::string counted_pictures(size_t count);
  // Keeps the last ids of a prompt without pictures, if the request wants no more. Errors: it has pictures, whose
  // places are among the ids.
  static Status truncate(const PromptOptions& options, EncoderDecoderInputs& inputs);

 private:
  int32_t image_;
  std::string published_;
};

}  // namespace transept
