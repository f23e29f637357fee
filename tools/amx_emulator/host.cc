// The cases on this processor, with the tiles that tests have in software.
#include <cstdio>

#include "cases.h"

namespace transept {
void put_character(char c) { std::putchar(c); }
}  // namespace transept

int main() {
  transept::run_cases();
  return 0;
}
