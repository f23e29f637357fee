// Prompts of Qwen2-VL and Qwen2.5-VL: a decoder alone, whose prompt has one <|image_pad|> a picture, in order. It is
// expanded to the rows of the picture, which are spliced there. Immutable objects: thread-safe. Source: transformers,
// models/qwen2_vl/processing_qwen2_vl.py.
#pragma once

#include <memory>

#include "core/model_config.h"
#include "multimodal/input_rules.h"

namespace transept {

// Ids that config.json has wrong are the model's to refuse; the rules take the class's for them.
std::unique_ptr<InputRules> make_qwen2_vl_rules(const ModelConfig& config, InputContext context);

}  // namespace transept
