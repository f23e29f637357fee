// What the kernels of attention share: their arguments, and the score of a key. A row has kRowWords words in `rows`:
// where its table begins (dense: its first key), its first key and the end, its position, its place in the sequence, and
// the sequence. A kernel names MORE_ARGUMENTS of its own, and operands 2 and 6.
const uint kRowWords = 8, kMostDims = 256;
const uint kMaterialized = 1, kByDistance = 2, kAlibi = 3;  // BiasKind (attention/bias_kind.h)

ARGUMENTS(uint q_stride; uint q_head_stride; uint out_stride; uint out_head_stride; uint heads_a_kv_head; uint head_dim;
          float scale; uint block_size; uint block_stride; uint num_blocks; uint k_stride; uint k_head_stride;
          uint v_stride; uint v_head_stride; uint bias_kind; uint bias_seq_stride; uint bias_head_stride;
          uint bias_row_stride; uint bias_key_stride; uint max_distance; uint bias_origin; MORE_ARGUMENTS)
READS(0, float, q)
READS(1, float, keys)
READS(3, uint, rows)
READS(4, uint, tables)
READS(5, float, bias)

shared float queries[kMostDims];

void fetch_query(uint row, uint head) {
  for (uint d = lane(); d < head_dim; d += LANES) queries[d] = q(row * q_stride + head * q_head_stride + d);
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

// Of a key that the row sees. -inf: its bias is.
float score_of(uint row, uint head, uint key) {
  const uint kv_head = head / heads_a_kv_head, table = rows(row * kRowWords);
  const uint block = block_size == 0 ? 0 : min(tables(table + key / block_size), num_blocks - 1);
  const uint at = block_size == 0 ? (table + key) * k_stride + kv_head * k_head_stride
                                  : block * block_stride + kv_head * 2 * block_size * head_dim + key % block_size;
  const uint step_ = block_size == 0 ? 1 : block_size;
  float dot_ = 0;
  for (uint d = 0; d < head_dim; ++d) dot_ = fma(queries[d], keys(at + d * step_), dot_);
  const int position = int(rows(row * kRowWords + 3));
  const uint place = rows(row * kRowWords + 4), seq = rows(row * kRowWords + 5);
  const float added = bias_kind == 0 ? 0.0 : bias_of(seq, head, place, position, key);
  return is_lowest(added) ? kLowest : fma(dot_, scale, added);
}
