// What shows that a process knows a group's token, without saying it. Pure functions.
#pragma once

#include <string>

#include "comm/control_frame.h"

namespace transept {

enum class ProofOf : uint8_t { kFirst, kOther };

// Of the side that `of` names, for the nonce that the other side has sent.
ControlBytes group_proof(const std::string& token, ProofOf of, const ControlBytes& nonce, int rank);
ControlBytes random_bytes();

}  // namespace transept
