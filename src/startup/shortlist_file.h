// Resolves --shortlist to the shortlist that a model runs with. Pure but for reading the folder.
#pragma once

#include <string>

#include "base/status.h"
#include "core/generation_config.h"
#include "core/model_config.h"
#include "rank/group_shortlists.h"

namespace transept {

// `asked` is a file, "none", or "auto": the one lex*.s2t.bin in a Marian model's folder, if there is one. Errors: a
// file for another family; several files for auto to choose from (names them); any error of reading the file.
StatusOr<ShortlistOptions> read_shortlist(const std::string& asked, const ModelConfig& model,
                                          const GenerationConfig& generation);

}  // namespace transept
