// Prompts of CogAgent: a decoder alone, whose prompt has one picture behind its first token: the rows of the small form
// are spliced there, and every token crosses those of the large one. A text is a question, which the words of the
// checkpoint's template stand around. Immutable objects: thread-safe. Source: the checkpoint's remote code,
// modeling_cogagent.py.
#pragma once

#include <memory>

#include "core/decoder_layout.h"
#include "core/model_config.h"
#include "multimodal/input_rules.h"

namespace transept {

// Where tokens stand and which expert computes them. A picture's rows are num_rows tokens from `offset` on: those
// between its first and its last have one position. The last one is text to the experts. num_keys: rows that all
// tokens cross. REQUIRES: they lie within num_tokens, and are more than two.
DecoderLayout cogagent_layout(int32_t num_tokens, int32_t offset, int32_t num_rows, int32_t num_keys);

// Fields that config.json has wrong are the model's to refuse; the rules take the class's for them.
std::unique_ptr<InputRules> make_cogagent_rules(const ModelConfig& config, InputContext context);

}  // namespace transept
