// The cases on a processor without an operating system (start.S): words go to the first serial line, and the end
// switches Bochs off.
#include <stddef.h>

#include "cases.h"

namespace {

using transept::put;

void out_byte(uint16_t port, uint8_t value) { __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port)); }
uint8_t in_byte(uint16_t port) {
  uint8_t value;
  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

constexpr uint16_t kSerialLine = 0x3F8, kSwitchOff = 0x8900;

void set_up_serial_line() {
  out_byte(kSerialLine + 1, 0);     // no interrupts
  out_byte(kSerialLine + 3, 0x80);  // the speed: 115200
  out_byte(kSerialLine, 1);
  out_byte(kSerialLine + 1, 0);
  out_byte(kSerialLine + 3, 3);  // eight bits
}

[[noreturn]] void end() {
  while ((in_byte(kSerialLine + 5) & 0x40) == 0) {  // the last word is still on its way
  }
  for (const char* c = "Shutdown"; *c != 0; ++c) out_byte(kSwitchOff, static_cast<uint8_t>(*c));
  for (;;) __asm__ volatile("hlt");
}

struct Gate {
  uint16_t low, segment;
  uint8_t stack, kind;
  uint16_t middle;
  uint32_t high, nothing;
};
struct [[gnu::packed]] Table {
  uint16_t last;
  const void* gates;
};
constexpr int kNumExceptions = 32;
Gate gates[kNumExceptions];

void catch_exceptions(const char* entries) {
  for (int i = 0; i < kNumExceptions; ++i) {
    const auto at = reinterpret_cast<uint64_t>(entries + 16 * i);
    gates[i] = {static_cast<uint16_t>(at),       0x08, 0, 0x8E, static_cast<uint16_t>(at >> 16),
                static_cast<uint32_t>(at >> 32), 0};
  }
  const Table table = {sizeof gates - 1, gates};
  __asm__ volatile("lidt %0" : : "m"(table));
}

}  // namespace

namespace transept {
void put_character(char c) {
  while ((in_byte(kSerialLine + 5) & 0x20) == 0) {
  }
  out_byte(kSerialLine, static_cast<uint8_t>(c));
}
}  // namespace transept

extern "C" {

extern const char exception_entries[];

[[noreturn]] void on_exception(uint64_t number, uint64_t where);
void on_exception(uint64_t number, uint64_t where) {
  uint64_t address;
  __asm__ volatile("movq %%cr2, %0" : "=r"(address));
  put("exception ", number, " at ", transept::Hex{where}, ", page fault's address ", transept::Hex{address}, "\n");
  end();
}

[[noreturn]] void bare_main();
void bare_main() {
  set_up_serial_line();
  catch_exceptions(exception_entries);
  transept::run_cases();
  end();
}

// What compilers call of their own accord.
void* memcpy(void* to, const void* from, size_t n) {
  void* const begin = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  return begin;
}
void* memset(void* to, int value, size_t n) {
  void* const begin = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
  return begin;
}
int memcmp(const void* a, const void* b, size_t n) {
  const auto *x = static_cast<const unsigned char*>(a), *y = static_cast<const unsigned char*>(b);
  for (; n > 0; --n, ++x, ++y) {
    if (*x != *y) return *x - *y;
  }
  return 0;
}
}
