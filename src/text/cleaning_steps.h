// Steps of a normalizer that clean a text character by character, as the trainers of old models did.
// Source: normalizers/unicode.rs (Nmt) and normalizers/bert.rs of Hugging Face's tokenizers.
#pragma once

#include <memory>

#include "base/status.h"
#include "text/json_field.h"
#include "text/normalizer_step.h"

namespace transept {

// Some control characters go; white space of all kinds, U+2581 and U+FFFD become spaces.
std::unique_ptr<NormalizerStep> make_nmt_step();

// Control characters go, white space becomes spaces, ideographs get spaces around them, accents and capitals go: as the
// members of a BertNormalizer say. Errors name the field.
StatusOr<std::unique_ptr<NormalizerStep>> parse_bert_step(const JsonField& field);

}  // namespace transept
