// The special tokens that stand around a text's own. A value.
// Source: processors/ of Hugging Face's tokenizers, as far as they change ids of a single text.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"

namespace transept {

struct PostProcessor {
  std::vector<int32_t> prefix, suffix;

  // The member "post_processor" of a tokenizer.json (null: none): RobertaProcessing, BertProcessing,
  // TemplateProcessing, ByteLevel (which moves offsets only), Sequence. Errors name the field.
  static StatusOr<PostProcessor> parse(const JsonField& field);
};

}  // namespace transept
