// Weights in panels of 32 outputs (ops/packed_matrix.h), by FORMAT: 0 float32, 1 float16, 2 bfloat16. A kernel has them as
// the operand w of words.
//
// Sums over inputs have one order in all kernels, which depends on k alone: quarters in order. A quarter of few inputs is
// summed in order from 0. From kParts * kBlock inputs on quarters are of whole blocks, each of which is summed so, and
// added in order: blocks may then be summed apart (attention.comp).
const uint kColumns = 32, kParts = 4, kBlock = 64;

// Output `column` of the panel, input t of k.
float weight(uint panel, uint t, uint column, uint k_) {
#if FORMAT == 1
  const vec2 pair = unpackHalf2x16(w((panel * k_ + t) * 16 + column / 2));
  return column % 2 == 0 ? pair.x : pair.y;
#elif FORMAT == 2
  const uint pair = w((panel * ((k_ + 31) / 32 * 16) + t / 2) * 32 + column);
  return uintBitsToFloat(t % 2 == 0 ? pair << 16 : pair & 0xFFFF0000u);
#else
  return uintBitsToFloat(w((panel * k_ + t) * 32 + column));
#endif
}

// Of k inputs: inputs of a quarter; blocks, and blocks of a quarter.
uint num_blocks_of(uint k_) { return (k_ + kBlock - 1) / kBlock; }
uint quarter_of(uint k_) { return (num_blocks_of(k_) + kParts - 1) / kParts; }
uint share_of(uint k_) { return k_ < kParts * kBlock ? (k_ + kParts - 1) / kParts : quarter_of(k_) * kBlock; }
