#version 450
#extension GL_GOOGLE_include_directive : require
// What the host wants of each row of scores (ops/score_looks.h), a row a group: its edits are applied, and
// it is reduced to the best id and the sum of exp, and to the best `listed` ids where these are asked for. A row is kLookWords words in `looks`.
//
// Edits of a round touch an id once; rounds are one after the other. Words of a round: how many, then (id, kind, value).
// Behind the last round: how many ids, then these; how many ranges, then (begin, end) of each. Both are banned.
#define LANES 128
#include "dialect.glsl"
#include "division.glsl"

ARGUMENTS(uint n; uint x_stride; uint found_stride; uint most_listed;)
READS(0, uint, looks)
READS(1, uint, edits)
READS_WRITES_COHERENT(2, float, x)
WRITES(3, uint, found)

const uint kLookWords = 6, kNone = 0xFFFFFFFFu, kNotNumbers = 0xFFFFFFFFu, kNothingLeft = 0xFFFFFFFEu;
const uint kAdd = 0, kPenalize = 1;  // ScoreEdit::Kind

shared uint places[LANES];

bool is_finite(float x) { return (floatBitsToUint(x) & 0x7F800000u) != 0x7F800000u; }

float edited(float score, uint kind, float value) {
  switch (kind) {
    case kAdd: return score + value;
    case kPenalize: return score < 0.0 ? score * value : is_finite(score) ? divided(score, value) : score;
  }
  return score - value;
}

// All lanes see what any has written.
void meet() {
  memoryBarrierBuffer();
  barrier();
}

void edit(uint from, uint at, uint num_rounds) {
  for (uint round_ = 0; round_ < num_rounds; ++round_) {
    const uint count = edits(at++);
    for (uint i = lane(); i < count; i += LANES) {
      const uint id = edits(at + 3 * i);
      if (id >= n) continue;
      set_x(from + id, edited(x(from + id), edits(at + 3 * i + 1), uintBitsToFloat(edits(at + 3 * i + 2))));
    }
    at += 3 * count;
    meet();
  }
  const uint num_banned = edits(at++);
  for (uint i = lane(); i < num_banned; i += LANES) {
    if (edits(at + i) < n) set_x(from + edits(at + i), kLowest);
  }
  at += num_banned;
  const uint num_ranges = edits(at++);
  for (uint range = 0; range < num_ranges; ++range) {
    const uint end = min(edits(at + 2 * range + 1), n);
    for (uint i = edits(at + 2 * range) + lane(); i < end; i += LANES) set_x(from + i, kLowest);
  }
  meet();
}

// The best of the lanes' ids, and its score: the higher, then the lower id. kNone: there is none.
void best_of_lanes(inout float best, inout uint place) {
  for (uint distance = 1; distance < LANES; distance *= 2) {
    exchange_[lane()] = best;
    places[lane()] = place;
    barrier();
    const float other = exchange_[lane() ^ distance];
    const uint other_place = places[lane() ^ distance];
    barrier();
    if (other_place != kNone && (place == kNone || other > best || (other == best && other_place < place))) {
      best = other;
      place = other_place;
    }
  }
}

struct Piece {
  float most, sum;  // of exp(score - most)
  uint best;
};

// Of ids [begin, end). kNothingLeft: no score is above -inf; kNotNumbers: one is NaN or +inf.
Piece reduced(uint from, uint begin, uint end) {
  float most = kLowest, strange = 0;
  uint place = kNone;
  for (uint i = begin + lane(); i < end; i += LANES) {
    const float value = x(from + i);
    if (is_nan(value) || floatBitsToUint(value) == 0x7F800000u) {
      strange = 1;
    } else if (value > most) {
      most = value;
      place = i;
    }
  }
  best_of_lanes(most, place);
  const bool is_strange = sum_of_lanes(strange) != 0;
  float sum = 0;
  for (uint i = begin + lane(); i < end; i += LANES) {
    const float value = x(from + i);
    if (!is_strange && !is_lowest(value)) sum += exp_(value - most);
  }
  sum = sum_of_lanes(sum);
  return Piece(most, sum, is_strange ? kNotNumbers : place == kNone ? kNothingLeft : place);
}

// Where timestamps (ids from the boundary on) together are likelier than any text, it is a timestamp.
Piece weighed(Piece text, Piece timestamps) {
  if (text.best == kNotNumbers || timestamps.best == kNotNumbers) return Piece(0, 0, kNotNumbers);
  if (timestamps.best == kNothingLeft) return text;
  const float together = timestamps.most + log(timestamps.sum);
  if (text.best == kNothingLeft || !(text.most >= together)) return timestamps;
  return Piece(text.most, fma(timestamps.sum, exp_(timestamps.most - text.most), text.sum), text.best);
}

// The best ids that come behind (score, id), from the best on.
void list(uint from, uint to, uint count) {
  float last = uintBitsToFloat(0x7F800000u);
  uint last_place = 0;
  for (uint i = 0; i < most_listed; ++i) {
    float best = kLowest;
    uint place = kNone;
    for (uint j = lane(); j < n && i < count && last_place != kNone; j += LANES) {
      const float value = x(from + j);
      const bool is_behind = value < last || (value == last && i > 0 && j > last_place);
      if (is_behind && value > best) {
        best = value;
        place = j;
      }
    }
    best_of_lanes(best, place);
    if (lane() == 0) {
      set_found(to + 2 * i, place);
      set_found(to + 2 * i + 1, floatBitsToUint(best));
    }
    last = best;
    last_place = place;
  }
}

void main() {
  const uint row = gl_WorkGroupID.x, at = row * kLookWords, from = row * x_stride, to = row * found_stride;
  const uint kind = looks(at), boundary = min(looks(at + 1), n), listed = looks(at + 2);
  const uint first = looks(at + 3), num_rounds = looks(at + 4);
  Piece piece = Piece(0, 0, kNothingLeft);
  if (kind == 2) piece = reduced(from, 0, n);  // of what is not edited
  if (kind != 0) edit(from, first, num_rounds);
  if (kind == 1) {
    piece = reduced(from, 0, boundary);
    if (boundary < n) piece = weighed(piece, reduced(from, boundary, n));
  }
  if (lane() == 0) {
    set_found(to, floatBitsToUint(piece.most));
    set_found(to + 1, floatBitsToUint(piece.sum));
    set_found(to + 2, piece.best);
  }
  if (most_listed > 0) list(from, to + 3, kind == 2 ? listed : 0);
}
