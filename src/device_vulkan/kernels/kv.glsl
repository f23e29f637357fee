// Where K and V of a block lie, by KV (KvType, attention/kv_format.h): 0 float32, 1 float16, 2 bfloat16, 3 int8. A block
// is words; of 16 bits two neighbours share one, of int8 four: dimensions of a key in K, keys of a dimension in V. An
// operand of them is words of KvWord.
#if KV == 0
#define KvWord float
#else
#define KvWord uint
#endif

// Words of the part of one KV head.
uint part_words(uint block_size, uint head_dim) {
#if KV == 0
  return 2 * block_size * head_dim;
#elif KV == 3
  return 2 * block_size + (head_dim + 3) / 4 * block_size + (block_size + 3) / 4 * head_dim;
#else
  return block_size * head_dim;
#endif
}
#if KV == 3
// From the part on: of dimensions 4 g to 4 g + 3 of K at a place of the block; of dimension d of V there and at the
// places that share its word. Scales of K lie at 0, those of V behind them.
uint k_word(uint block_size, uint g, uint place) { return 2 * block_size + g * block_size + place; }
uint v_word(uint block_size, uint head_dim, uint place, uint d) {
  return 2 * block_size + (head_dim + 3) / 4 * block_size + place / 4 * head_dim + d;
}
#endif
// Elements from the part on, where they are numbers.
uint k_element(uint block_size, uint d, uint place) { return d * block_size + place; }
uint v_element(uint block_size, uint head_dim, uint place, uint d) { return (block_size + place) * head_dim + d; }

#if KV == 1 || KV == 2
float element_of_word(uint word, uint element) {
#if KV == 1
  const vec2 pair = unpackHalf2x16(word);
  return element % 2 == 0 ? pair.x : pair.y;
#else
  return uintBitsToFloat(element % 2 == 0 ? word << 16 : word & 0xFFFF0000u);
#endif
}
#endif
