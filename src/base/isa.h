// Instruction-set levels that kernels are dispatched by. Each level includes the ones before it.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

enum class Isa { kGeneric, kAvx2, kAvx512, kAvx512Vnni, kAvx512Fp16, kAmx };

std::string_view isa_name(Isa isa);

// The highest level that this processor and operating system offer. kAmx only if the kernel grants the tile state
// (arch_prctl(ARCH_REQ_XCOMP_PERM), asked once a process).
Isa detect_isa();

// Every level present here, lowest first.
std::vector<Isa> present_isas();

// "auto" or a level's name (API.md, --isa). Errors: unknown name; a level that this processor does not have.
StatusOr<Isa> parse_isa(std::string_view name);

}  // namespace transept
