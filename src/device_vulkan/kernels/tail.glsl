// What a product does behind its rows: one of the ops that models have there, with the bits that its own kernel gives.
// A kernel names kYPlace, its operand y, behind which the tail's are, and kFourth, its own fourth argument.
//
// TAIL 1: a norm (RMS: that one), 2: writes keys and values by KV, 3: a gated activation, 4: nothing. y may be `normed`.
// Groups of a tile are a row of the grid. With ROUND what the tail has made (of 4: y) is rounded for the next product
// (round.glsl), a row after the other.
#ifdef ROUND
#define ROUND_ARGUMENTS uint inputs;
#else
#define ROUND_ARGUMENTS
#endif
#if TAIL == 1
ARGUMENTS(uint rows; uint n; uint k; uint kFourth; uint y_stride; uint activation; uint adds; uint normed_stride;
          float epsilon; ROUND_ARGUMENTS)
#elif TAIL == 2
ARGUMENTS(uint rows; uint n; uint k; uint kFourth; uint y_stride; uint activation; uint adds; uint k_first; uint v_first;
          uint kv_heads; uint head_dim; uint block_size; uint block_stride; uint num_slots;)
#elif TAIL == 4
ARGUMENTS(uint rows; uint n; uint k; uint kFourth; uint y_stride; uint activation; uint adds; ROUND_ARGUMENTS)
#else
ARGUMENTS(uint rows; uint n; uint k; uint kFourth; uint y_stride; uint activation; uint adds; uint width; uint gate_first;
          uint x_first; uint made_first; uint gate_activation; ROUND_ARGUMENTS)
#endif
READS_WRITES_COHERENT(kYPlace, float, y)

#if TAIL == 1
READS(kYPlace + 1, float, gain)
#ifdef RMS
#define kNormedPlace (kYPlace + 2)
#else
READS(kYPlace + 2, float, shift)
#define kNormedPlace (kYPlace + 3)
#endif
#ifdef ROUND
READS_WRITES_COHERENT(kNormedPlace, float, normed)
#else
WRITES(kNormedPlace, float, normed)
#endif
#define kEndPlace (kNormedPlace + 1)
#define made_of normed
const uint kNormRows = 8;  // of a tile's 8 or 16
#define x_of y
#include "norm.glsl"

void make_rows(uint first) {
  for (uint from = first; from < first + kRows; from += kNormRows) {
    normalize_rows(from, rows, n, y_stride, normed_stride, epsilon);
  }
}
uint made_at(uint row) { return row * normed_stride; }
uint made_width() { return n; }

#elif TAIL == 2
READS(kYPlace + 1, uint, slots)
#define kCachePlace (kYPlace + 2)
#define kEndPlace (kYPlace + 3)
float k_at(uint row, uint head, uint d) { return y(row * y_stride + k_first + head * head_dim + d); }
float v_at(uint row, uint head, uint d) { return y(row * y_stride + v_first + head * head_dim + d); }
#include "write_kv.glsl"

void make_rows(uint first) {
  for (uint row = first; row < min(first + kRows, rows); ++row) {
    const uint slot = slots(row);
    if (slot >= num_slots) continue;
    for (uint head = 0; head < kv_heads; ++head) {
      const uint part = slot / block_size * block_stride + head * part_words(block_size, head_dim);
      write_row(row, head, part, slot % block_size);
    }
  }
}

#elif TAIL == 4
#define kEndPlace (kYPlace + 1)
#define made_of y

void make_rows(uint first) {}
uint made_at(uint row) { return row * y_stride; }
uint made_width() { return n; }

#else
#define kEndPlace (kYPlace + 1)
#define made_of y

void make_rows(uint first) {
  for (uint row = first; row < min(first + kRows, rows); ++row) {
    const uint at = row * y_stride;
    for (uint i = lane(); i < width; i += LANES) {
      set_y(at + made_first + i, activate(gate_activation, y(at + gate_first + i)) * y(at + x_first + i));
    }
  }
}
uint made_at(uint row) { return row * y_stride + made_first; }
uint made_width() { return width; }
#endif

#ifdef ROUND
WRITES(kEndPlace, uint, next_q)
WRITES(kEndPlace + 1, uint, next_codes)
#define kArrivalsPlace (kEndPlace + 2)
#define round_of made_of
#define set_rounded set_next_q
#define set_codes_of set_next_codes
#include "round.glsl"

void run_tail(uint first) {
  make_rows(first);
  memoryBarrierBuffer();
  barrier();
  for (uint row = first; row < min(first + kRows, rows); ++row) round_row(row, made_at(row), made_width(), inputs);
}
#else
#define kArrivalsPlace kEndPlace
void run_tail(uint first) { make_rows(first); }
#endif

#include "arrivals.glsl"

bool is_last_of_tile() { return is_last(gl_WorkGroupID.y, gl_NumWorkGroups.x); }
