// The special tokens around a text. A value. Source: processors/ of Hugging Face's tokenizers, as far as they change
// ids of a single text.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"

namespace transept {

struct PostProcessor {
  std::vector<int32_t> prefix, suffix;

  // Parses the member "post_processor" of a tokenizer.json (null: none): RobertaProcessing, BertProcessing,
  // TemplateProcessing, ByteLevel (which only moves offsets), Sequence. Errors name the field; another type is
  // kUnimplemented, by name.
  static StatusOr<PostProcessor> parse(const JsonField& field);
};

}  // namespace transept
