// T5 in a GGUF file (llama.cpp), with its configuration and tokenizer: T5 v1.0, v1.1 and Flan. A function: thread-safe.
#pragma once

#include <string>

#include "base/status.h"
#include "foreign/foreign_model.h"

namespace transept {

// Reads the file `path`. Weights stay mapped. Errors name file, key or tensor, and reason: those of GgufFile::parse;
// another architecture than t5; an encoder alone; a tokenizer that is no unigram model; a tensor whose name no T5 has.
StatusOr<ForeignModel> open_gguf_t5(const std::string& path);

}  // namespace transept
