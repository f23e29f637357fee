#include "cases.h"

#include <string.h>

namespace transept {
namespace {

constexpr int64_t kRoom = int64_t{32} << 20;
alignas(64) unsigned char room[kRoom];

}  // namespace

void put_one(const char* text) {
  for (; *text != 0; ++text) put_character(*text);
}
void put_one(int64_t value) {
  if (value < 0) put_character('-');
  uint64_t left = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char digits[20];
  int count = 0;
  do digits[count++] = static_cast<char>('0' + left % 10);
  while ((left /= 10) > 0);
  while (count > 0) put_character(digits[--count]);
}
void put_one(Hex value) {
  for (int i = value.digits - 1; i >= 0; --i) put_character("0123456789abcdef"[value.value >> (4 * i) & 15]);
}

uint64_t checksum(const void* bytes, int64_t count) {
  uint64_t sum = 0xCBF29CE484222325;
  const auto* from = static_cast<const unsigned char*>(bytes);
  for (int64_t i = 0; i < count; ++i) sum = (sum ^ from[i]) * 0x100000001B3;
  return sum;
}

uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

uint32_t Numbers::next() {  // splitmix64
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 16);
}

int64_t Memory::used_ = 0;

void* Memory::take_bytes(int64_t count) {
  unsigned char* const begin = room + used_;
  used_ += (count + 63) / 64 * 64;
  if (used_ > kRoom) {
    put("the cases have no more memory\n");
    __builtin_trap();
  }
  memset(begin, 0xFF, static_cast<size_t>(count));
  return begin;
}

void run_cases() {
  probe_instructions();
  multiply_layers();
  attend_encoders();
  put("all cases ran\n");
}

}  // namespace transept
