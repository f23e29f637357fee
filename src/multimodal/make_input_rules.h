// Makes the rules of a family's prompts. A pure function: thread-safe.
#pragma once

#include <memory>

#include "core/model_config.h"
#include "multimodal/input_rules.h"

namespace transept {

// By the config's row of input_families(); a family without one has the rules of kStart.
std::unique_ptr<InputRules> make_input_rules(const ModelConfig& config, InputContext context);

}  // namespace transept
