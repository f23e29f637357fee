// The cases on this processor, with the tiles that tests have in software.
#include <cstdio>

#include "cases.h"

namespace transept {
void put_character(char c) { std::putchar(c); }
}  // namespace transept

int main() {
  if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    std::fprintf(stderr, "this processor has no AVX-512 with VNNI: the kernels cannot run on tiles in software here\n");
    return 1;
  }
  transept::run_cases();
  return 0;
}
