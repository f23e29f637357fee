// What the kernels of attention share: their arguments, and the score of a key. A row has kRowWords words in `rows`:
// where its table begins (dense: its first key), its first key and the end, its position, its place in the sequence, and
// the sequence. A kernel names MORE_ARGUMENTS of its own, and operands 2 and 6. Keys are of a type by KV (kv.glsl); dense
// ones (block_size 0) are float32.
#include "kv.glsl"
const uint kRowWords = 8, kMostDims = 256;
const uint kMaterialized = 1, kByDistance = 2, kAlibi = 3;  // BiasKind (attention/bias_kind.h)

ARGUMENTS(uint q_stride; uint q_head_stride; uint out_stride; uint out_head_stride; uint heads_a_kv_head; uint head_dim;
          float scale; uint block_size; uint block_stride; uint num_blocks; uint k_stride; uint k_head_stride;
          uint v_stride; uint v_head_stride; uint bias_kind; uint bias_seq_stride; uint bias_head_stride;
          uint bias_row_stride; uint bias_key_stride; uint max_distance; uint bias_origin; MORE_ARGUMENTS)
READS(0, float, q)
READS(1, KvWord, keys)
READS(3, uint, rows)
READS(4, uint, tables)
READS(5, float, bias)

// Keys go by tiles of so many, by position: a tile is a key a lane of neighbours, and its sums are theirs alone.
const uint kTile = 32;

shared float queries[kMostDims];

// NaN is the highest: a key that was never written shows.
float higher(float a, float b) { return is_nan(a) || a > b ? a : b; }
float highest_of_tile(float x) {
  for (uint distance = 1; distance < kTile; distance *= 2) {
    exchange_[lane()] = x;
    barrier();
    x = higher(x, exchange_[lane() ^ distance]);
    barrier();
  }
  return x;
}
float sum_of_tile(float x) {
  for (uint distance = 1; distance < kTile; distance *= 2) {
    exchange_[lane()] = x;
    barrier();
    x += exchange_[lane() ^ distance];
    barrier();
  }
  return x;
}

void fetch_query(uint row, uint head) {
  for (uint d = lane(); d < (head_dim + 3) / 4 * 4; d += LANES) {  // zeros up to a word of keys
    queries[d] = d < head_dim ? q(row * q_stride + head * q_head_stride + d) : 0.0;
  }
  barrier();
}

float bias_of(uint seq, uint head, uint row, int position, uint key) {
  if (bias_kind == kMaterialized) {
    return bias(seq * bias_seq_stride + head * bias_head_stride + row * bias_row_stride + key * bias_key_stride);
  }
  const int distance = int(key) - position;
  if (bias_kind == kByDistance) {
    return bias(head * bias_head_stride + uint(int(bias_origin) + clamp(distance, -int(max_distance), int(max_distance))));
  }
  return bias_kind == kAlibi ? -bias(head) * float(abs(distance)) : 0.0;
}

// Where the part of a block that has the key begins. REQUIRES: block_size is not 0.
uint part_of(uint table, uint kv_head, uint key) {
  const uint block = min(tables(table + key / block_size), num_blocks - 1);
  return block * block_stride + kv_head * part_words(block_size, head_dim);
}

float product_with_key(uint table, uint kv_head, uint key) {
  float sum = 0;
#if KV == 0
  const bool is_dense = block_size == 0;
  const uint at = is_dense ? (table + key) * k_stride + kv_head * k_head_stride
                           : part_of(table, kv_head, key) + k_element(block_size, 0, key % block_size);
  const uint step_ = is_dense ? 1 : block_size;
  for (uint d = 0; d < head_dim; ++d) sum = fma(queries[d], keys(at + d * step_), sum);
#else
  const uint part = part_of(table, kv_head, key), place = key % block_size;
#if KV == 3
  for (uint g = 0; g * 4 < head_dim; ++g) {
    const int four = int(keys(part + k_word(block_size, g, place)) ^ 0x80808080u);
    for (int i = 0; i < 4; ++i) sum = fma(queries[g * 4 + i], float(bitfieldExtract(four, 8 * i, 8)), sum);
  }
  sum *= uintBitsToFloat(keys(part + place));
#else
  for (uint d = 0; d < head_dim; ++d) {
    const uint element = k_element(block_size, d, place);
    sum = fma(queries[d], element_of_word(keys(part + element / 2), element), sum);
  }
#endif
#endif
  return sum;
}

// Of a key that the row sees. -inf: its bias is.
float score_of(uint row, uint head, uint key) {
  const float product = product_with_key(rows(row * kRowWords), head / heads_a_kv_head, key);
  const int position = int(rows(row * kRowWords + 3));
  const uint place = rows(row * kRowWords + 4), seq = rows(row * kRowWords + 5);
  const float added = bias_kind == 0 ? 0.0 : bias_of(seq, head, place, position, key);
  return is_lowest(added) ? kLowest : fma(product, scale, added);
}
