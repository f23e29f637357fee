// Normalizer steps that clean a text character by character, as the trainers of old models did. Functions that make
// immutable steps; thread-safe. Source: normalizers/unicode.rs (Nmt) and normalizers/bert.rs of Hugging Face's
// tokenizers.
#pragma once

#include <memory>

#include "base/status.h"
#include "text/json_field.h"
#include "text/pipeline/normalizer_step.h"

namespace transept {

// Removes some control characters. Replaces by a space: tabs, line ends, form feeds, U+1680, U+200B to U+200F (zero
// width), U+2028, U+2029, U+2581, U+FEFF and U+FFFD. Other white space stays.
std::unique_ptr<NormalizerStep> make_nmt_step();

// By the members of a BertNormalizer: removes control characters and replaces white space by spaces (clean_text), puts
// spaces around ideographs, removes accents, lowercases. Missing members are true, a missing strip_accents is as
// lowercase. Errors name the field.
StatusOr<std::unique_ptr<NormalizerStep>> parse_bert_step(const JsonField& field);

}  // namespace transept
