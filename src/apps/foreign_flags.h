// Flags of the tools that people come from: openai-whisper, faster-whisper (whisper-ctranslate2), whisper.cpp, vLLM,
// CTranslate2, transformers. Each row says what stands in a flag's place, or what to do instead. The parser reads the
// rows beside a verb's own table (flags.h), and docs/flags.md prints them. Constant data: thread-safe.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "apps/flags.h"

namespace transept {

// Returns all rows, by tool.
std::span<const ForeignFlag> all_foreign_flags();

// Returns the rows that hold for a verb with this table. A row holds if its `verbs` name the verb, or are "" and the
// verb takes a MODEL; and if the table has the flags that the row stands for.
std::vector<ForeignFlag> foreign_flags(std::string_view verb, bool takes_model, const std::vector<FlagSpec>& table);

}  // namespace transept
