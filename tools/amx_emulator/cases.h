// What ./dev amx runs three times: on AMX's instructions without an operating system (bare.cc), and here (host.cc) on
// tiles in software, as defined and with Bochs's fault. All print the same lines where all do the same;
// tools/amx_emulator.py compares them. No C++ library, because there is none without an operating system.
//   NAME: right | WRONG ...             an instruction, against what Intel's manual defines
//   NAME #CHECKSUM                      of all bytes of what a kernel gave
//   NAME #CHECKSUM BITS BITS ...        the same, and some of its floats
// in_question, TilesInQuestion: the ones that are compiled for (TRANSEPT_BARE: the real ones; TRANSEPT_ERRING: with
// signed bytes taken for unsigned ones).
#pragma once

#include <stdint.h>

#include <initializer_list>

#include "attention/encoder_int8.h"
#include "ops/kernels.h"
#ifdef TRANSEPT_BARE
#include "ops/tile_amx.h"
#else
#include "ops/tile_software_testing.h"
#endif

namespace transept {

#ifdef TRANSEPT_BARE
typedef amx::Tiles TilesInQuestion;
namespace in_question = amx;
#elif defined(TRANSEPT_ERRING)
namespace erring_amx {  // erring_tiles.cc
extern const TileGemmKernels kTileGemmKernels;
void attend_encoder(const AttentionTask& task);
}  // namespace erring_amx
typedef SoftwareTiles<void, uint8_t> TilesInQuestion;
namespace in_question = erring_amx;
#else
namespace software_amx {  // src/ops/tile_test_avx512_vnni.cc and src/attention/encoder_tiles_test_avx512_vnni.cc
extern const TileGemmKernels kTileGemmKernels;
void attend_encoder(const AttentionTask& task);
}  // namespace software_amx
typedef SoftwareTiles<void> TilesInQuestion;
namespace in_question = software_amx;
#endif

// --- words

void put_character(char c);

struct Hex {
  uint64_t value;
  int digits = 16;
};
void put_one(const char* text);
void put_one(int64_t value);
void put_one(Hex value);
inline void put_one(int value) { put_one(int64_t{value}); }
inline void put_one(uint64_t value) { put_one(static_cast<int64_t>(value)); }
template <class... Parts>
void put(Parts... parts) {
  (put_one(parts), ...);
}

// FNV-1a.
uint64_t checksum(const void* bytes, int64_t count);

// --- numbers and memory

uint32_t bits_of(float x);
float float_of(uint32_t bits);

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  uint32_t next();
  float between_ones() { return static_cast<float>(static_cast<int32_t>(next()) >> 8) * 0x1p-23f; }
  int integer(int least, int most) {
    return least + static_cast<int>(next() % static_cast<uint32_t>(most - least + 1));
  }

 private:
  uint64_t state_;
};

// A case's memory: all of it is given back when it ends. Pieces begin at lines of the cache and hold what is no number.
class Memory {
 public:
  Memory() : begin_(used_) {}
  ~Memory() { used_ = begin_; }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T>
  T* take(int64_t count) {
    return static_cast<T*>(take_bytes(count * static_cast<int64_t>(sizeof(T))));
  }

 private:
  static void* take_bytes(int64_t count);

  static int64_t used_;
  int64_t begin_;
};

// --- cases

void run_cases();
void probe_instructions();  // probes.cc
void multiply_layers();     // products.cc
void attend_encoders();     // attention.cc

}  // namespace transept
