// Opens the model.bin of a CTranslate2 folder as a model. The files beside it are the tokenizer's, CTranslate2's own
// config.json and its lists of tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "foreign/foreign_model.h"

namespace transept {

// Whether models of this spec (ct2_file.h) are read.
bool is_ct2_spec(std::string_view spec);

// Errors: those of the parser (ct2_file.h); another spec; weights in AWQ's form; what no family that is read has.
StatusOr<ForeignModel> open_ct2_model(const std::string& path);

}  // namespace transept
