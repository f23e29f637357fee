// What an answer says beside its text, of families whose texts have a form: the fields of a document (Donut), boxes and
// polygons (Florence-2). Asked for by return_structured. MultiModalRegistry owns it. Immutable, so thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "core/model_config.h"
#include "core/request_output.h"
#include "text/tokenizer.h"

namespace transept {

class StructuredAnswers {
 public:
  virtual ~StructuredAnswers() = default;

  // `answer` is one of `request`, whole. Any text has a value: one without the form becomes what the reference makes of
  // it.
  virtual Json parse(const RequestOutput& request, const CompletionOutput& answer,
                     const Tokenizer& tokenizer) const = 0;
};

// Sets CompletionOutput::structured of all answers.
void add_structured(const StructuredAnswers& structured, const Tokenizer& tokenizer, RequestOutput& request);

// Of VisionEncoderDecoderModel: null unless the folder's processor is Donut's. Errors: those of ImageProcessorConfig.
StatusOr<std::unique_ptr<StructuredAnswers>> make_composite_answers(const ModelConfig& config);

// Florence-2's: florence_answer() (florence_answers.h). Null without the picture's sizes: another
// process has read it.
StatusOr<std::unique_ptr<StructuredAnswers>> make_florence2_answers(const ModelConfig& config);

// Fields as Donut writes them, "<s_name>value</s_name>" with "<sep/>" between several, as an object: DonutProcessor's
// token2json (transformers 5.23). A text without fields is {"text_sequence": text}. `is_token` tells whether
// "<word/>" is a token: such a value is the word. Below 100 levels fields are text. Differs from the reference where
// names differ by the case of letters outside ASCII, and in white space outside ASCII around values: both are kept.
Json donut_fields(std::string_view text, const std::function<bool(std::string_view)>& is_token);

}  // namespace transept
