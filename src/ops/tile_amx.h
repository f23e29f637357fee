// The tiles of AMX (ops/tile.h describes the operations). The configuration belongs to the thread: one thread makes,
// uses and destroys a Tiles, and makes no other meanwhile.
//
// Written as assembly because of the intrinsics of GCC 12: they do not take a template's constant, they declare as read
// only 8 of the 64 bytes of a configuration, and none of a tile's. So the compiler could move a store behind the load
// that needs it.
#pragma once

#include "ops/tile.h"

namespace transept::amx {

class Tiles {
 public:
  explicit Tiles(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config) : "memory"); }
  ~Tiles() { __asm__ volatile("tilerelease" : : : "memory"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int kTile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  static void load(const void* from, int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* to, int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  // This assembler takes operands from the last to the first: b, a, sum.
  template <int kSum, int kA, int kB>
  static void dot_u8s8() {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
  template <int kSum, int kA, int kB>
  static void dot_s8u8() {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
  template <int kSum, int kA, int kB>
  static void dot_bfloat16() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
};

}  // namespace transept::amx
