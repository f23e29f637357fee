#include "base/isa.h"

#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace transept {
namespace {

constexpr std::string_view kNames[] = {"generic", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx"};
constexpr int kNumLevels = static_cast<int>(std::size(kNames));

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

uint64_t xcr0() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool has(unsigned value, int bit) { return (value >> bit) & 1u; }

bool tiles_granted() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

Isa detect() {
  const Registers one = cpuid(1, 0);
  const Registers seven = cpuid(7, 0);
  if (!has(one.c, 27)) return Isa::kGeneric;  // OSXSAVE: without it xgetbv may not be asked
  const uint64_t states = xcr0();
  const bool avx2 = has(one.c, 12) && has(one.c, 29) && has(seven.b, 5) && (states & 0x6) == 0x6;  // FMA, F16C, AVX2
  if (!avx2) return Isa::kGeneric;
  const bool avx512 = has(seven.b, 16) && has(seven.b, 17) && has(seven.b, 30) && has(seven.b, 31) &&
                      (states & 0xe6) == 0xe6;  // F, DQ, BW, VL
  if (!avx512) return Isa::kAvx2;
  if (!has(seven.c, 11)) return Isa::kAvx512;
  if (!has(cpuid(7, 1).a, 5)) return Isa::kAvx512Vnni;
  if (!has(seven.d, 23)) return Isa::kAvx512Bf16;
  const bool amx =
      has(seven.d, 22) && has(seven.d, 24) && has(seven.d, 25) && (states & 0x60000) == 0x60000;  // BF16, TILE, INT8
  return amx && tiles_granted() ? Isa::kAmx : Isa::kAvx512Fp16;
}
#else
Isa detect() { return Isa::kGeneric; }
#endif

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }

Isa detect_isa() {
  static const Isa detected = detect();
  return detected;
}

std::vector<Isa> present_isas() {
  std::vector<Isa> levels;
  for (int i = 0; i <= static_cast<int>(detect_isa()); ++i) levels.push_back(static_cast<Isa>(i));
  return levels;
}

StatusOr<Isa> parse_isa(std::string_view name) {
  if (name == "auto") return detect_isa();
  for (int i = 0; i < kNumLevels; ++i) {
    if (kNames[i] != name) continue;
    if (i > static_cast<int>(detect_isa())) {
      return invalid_argument("--isa ", name, ": this processor offers ", isa_name(detect_isa()), " at most");
    }
    return static_cast<Isa>(i);
  }
  return invalid_argument("--isa ", name,
                          ": unknown; one of auto, generic, avx2, avx512, avx512_vnni, avx512_bf16, avx512_fp16, amx");
}

}  // namespace transept
