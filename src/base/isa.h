// Instruction-set levels, by which kernels are dispatched at run time. Each level includes the ones before it.
// Thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

enum class Isa { kGeneric, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAvx512Fp16, kAmx };

// "generic", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "avx512_fp16" or "amx".
std::string_view isa_name(Isa isa);

// Returns the highest level of this processor and operating system; detects it once per process. kAmx only if the
// kernel grants the tile state (arch_prctl(ARCH_REQ_XCOMP_PERM)).
Isa detect_isa();

// Returns every level up to detect_isa(), lowest first.
std::vector<Isa> present_isas();

// Parses the value of --isa: "auto" (detect_isa()) or a level's name. Errors: kInvalidArgument for an unknown name or a
// level above detect_isa(); the message names the flag.
StatusOr<Isa> parse_isa(std::string_view name);

}  // namespace transept
