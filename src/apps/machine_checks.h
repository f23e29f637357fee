// The checks of `transept doctor`: one of this machine's properties each, what was found, and what to do about it.
// Functions of the system's state; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace transept {

struct MachineCheck {
  enum class State : uint8_t {
    kGood,
    kCouldBeBetter,  // it works, and is slower or smaller than it could be
    kWrong,          // a verb fails or may be ended because of it
  };
  std::string name;  // one word
  State state = State::kGood;
  std::string found;
  std::string remedy;                                   // "": kGood
  std::vector<std::pair<std::string, Json>> data = {};  // the numbers behind `found`, for --json
};

std::string_view state_name(MachineCheck::State state);  // "good", "better", "wrong"

struct MachineCheckOptions {
  uint16_t port = 8000;            // of serve, on loopback
  bool measures_bandwidth = true;  // takes a third of a second
};
std::vector<MachineCheck> check_machine(const MachineCheckOptions& options);

// Returns the processors' worth of time that a control group grants, of a cpu.max file ("200000 100000" is 2); unset:
// no limit, or not in that form.
std::optional<double> parse_cpu_max(std::string_view text);

// Returns the folder of models that Hugging Face's tools share: $HF_HUB_CACHE, $HF_HOME/hub,
// $XDG_CACHE_HOME/huggingface/hub, or ~/.cache/huggingface/hub. "": none of these variables, nor $HOME, is set.
std::string hub_cache_folder();

}  // namespace transept
