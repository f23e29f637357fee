// How rows of the table of foreign flags are written (foreign_flags.h). Of its sources alone. Pure: thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "apps/flags.h"

namespace transept {

constexpr ForeignFlag stands(std::string_view tool, std::string_view spellings, std::string_view value_name,
                             std::string_view value, std::string_view ours, std::string_view verbs = "") {
  return {ForeignFlag::Kind::kStandsFor, tool, spellings, value_name, value, ours, "", verbs};
}
constexpr ForeignFlag nothing(std::string_view tool, std::string_view spellings, std::string_view value_name,
                              std::string_view why, std::string_view verbs = "", std::string_view value = "") {
  return {ForeignFlag::Kind::kNothing, tool, spellings, value_name, value, "", why, verbs};
}
constexpr ForeignFlag refused(std::string_view tool, std::string_view spellings, std::string_view value_name,
                              std::string_view why, std::string_view verbs = "", std::string_view value = "") {
  return {ForeignFlag::Kind::kRefused, tool, spellings, value_name, value, "", why, verbs};
}

// vLLM's, which are the most.
std::span<const ForeignFlag> vllm_flags();

}  // namespace transept
