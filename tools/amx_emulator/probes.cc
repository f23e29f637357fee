// Single instructions, against what Intel's manual defines (TDPBUSD, TDPBSUD, TDPBF16PS, TILELOADD, TILESTORED,
// TILEZERO, LDTILECFG): numbers that were worked out by hand, and loops without tiles.
#include <string.h>

#include "cases.h"

namespace transept {
namespace {

// A tile of sums, one of a (A) and one of b (B): rows x fours times fours x columns.
struct Shape {
  int rows, columns, fours;
};
constexpr int kSum = 0, kA = 4, kB = 6;
constexpr Shape kWhole = {16, 16, 16};

TileConfig config_of(Shape shape) {
  TileConfig config = {};
  config.palette = 1;
  const auto set = [&](int tile, int rows, int fours) {
    config.rows[tile] = static_cast<uint8_t>(rows);
    config.row_bytes[tile] = static_cast<uint16_t>(4 * fours);
  };
  set(kSum, shape.rows, shape.columns);
  set(kA, shape.rows, shape.fours);
  set(kB, shape.fours, shape.columns);
  return config;
}

typedef uint32_t Tile[16][16];

enum class Dot { kU8S8, kS8U8, kBFloat16 };
const char* name_of(Dot dot) { return dot == Dot::kU8S8 ? "tdpbusd" : dot == Dot::kS8U8 ? "tdpbsud" : "tdpbf16ps"; }

void multiply(Dot dot, Shape shape, const Tile& a, const Tile& b, Tile& sums) {
  TilesInQuestion tiles(config_of(shape));
  tiles.template load<kSum>(sums, 64);
  tiles.template load<kA>(a, 64);
  tiles.template load<kB>(b, 64);
  if (dot == Dot::kU8S8) tiles.template dot_u8s8<kSum, kA, kB>();
  if (dot == Dot::kS8U8) tiles.template dot_s8u8<kSum, kA, kB>();
  if (dot == Dot::kBFloat16) tiles.template dot_bfloat16<kSum, kA, kB>();
  tiles.template store<kSum>(sums, 64);
}

bool is_nan(uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }

void judge(uint32_t got, uint32_t want) {
  if (got == want) return put(": right\n");
  put(": WRONG, ", Hex{got, 8}, " for ", Hex{want, 8}, "\n");
}

// Every byte of each operand the same, so that every sum is.
struct Extreme {
  Dot dot;
  int a, b;
  int64_t start, want;
};
constexpr Extreme kExtremes[] = {
    {Dot::kU8S8, 0xFF, 0x80, 0, -2088960},  // 64 x 255 x -128
    {Dot::kU8S8, 0xFF, 0x7F, 0, 2072640},
    {Dot::kU8S8, 0x80, 0xFF, 0, -8192},                 // 128 x -1
    {Dot::kU8S8, 0x01, 0xFF, -2147483648, 2147483584},  // wraps
    {Dot::kU8S8, 0x01, 0x01, 2147483647, -2147483585},  //
    {Dot::kS8U8, 0x80, 0xFF, 0, -2088960},              // -128 x 255
    {Dot::kS8U8, 0x7F, 0xFF, 0, 2072640},               //
    {Dot::kS8U8, 0xFF, 0x80, 0, -8192},                 // -1 x 128
    {Dot::kS8U8, 0xFF, 0x01, -2147483648, 2147483584},  //
    {Dot::kS8U8, 0x01, 0x01, 2147483647, -2147483585},  //
};

void probe_extremes() {
  for (const Extreme& extreme : kExtremes) {
    Tile a, b, sums;
    memset(a, extreme.a, sizeof a);
    memset(b, extreme.b, sizeof b);
    for (auto& row : sums) {
      for (uint32_t& sum : row) sum = static_cast<uint32_t>(extreme.start);
    }
    multiply(extreme.dot, kWhole, a, b, sums);
    const auto want = static_cast<uint32_t>(extreme.want);
    uint32_t seen = want;
    for (const auto& row : sums) {
      for (const uint32_t sum : row) seen = sum == want ? seen : sum;
    }
    put(name_of(extreme.dot), " of ", Hex{static_cast<uint64_t>(extreme.a), 2}, " and ",
        Hex{static_cast<uint64_t>(extreme.b), 2}, " from ", extreme.start);
    judge(seen, want);
  }
}

// One sum of four products in bfloat16: bits of a, of b, of the sum before and after.
struct FloatProbe {
  const char* what;
  uint16_t a[4], b[4];
  uint32_t start, want;
};
constexpr uint16_t kOne = 0x3F80, kHuge = 0x7F7F, kInfinity = 0x7F80, kMinus = 0x8000;
constexpr FloatProbe kFloatProbes[] = {
    // In order, 2^24 + 1 - 2^24 would lose the 1.
    {"even and odd apart", {0x4B80, kOne, 0x4B80 | kMinus, 0}, {kOne, kOne, kOne, 0}, 0x3F000000, 0x3FC00000},
    {"a subnormal input", {0x0040, 0, 0, 0}, {0x7000, 0, 0, 0}, 0, 0},
    {"a subnormal of B", {0x7000, 0, 0, 0}, {0x0040, 0, 0, 0}, 0, 0},
    {"a subnormal sum", {0, 0, 0, 0}, {0, 0, 0, 0}, 0x00400000, 0},
    {"a subnormal product", {0x1C80, 0, 0, 0}, {0x1C80, 0, 0, 0}, 0, 0},                // 2^-70 x 2^-70
    {"the least normal product", {0x2000, 0, 0, 0}, {0x2000, 0, 0, 0}, 0, 0x00800000},  // 2^-63 x 2^-63 = 2^-126
    {"a tie to even, down", {kOne, 0, 0, 0}, {kOne, 0, 0, 0}, 0x4B800000, 0x4B800000},  // 2^24 + 1
    {"a tie to even, up", {kOne, 0, 0, 0}, {kOne, 0, 0, 0}, 0x4B800001, 0x4B800002},
    {"a tie in a part", {kOne, 0, kOne, 0}, {kOne, 0, 0x3380, 0}, 0, 0x3F800000},        // 1 + 2^-24
    {"above a tie in a part", {kOne, 0, kOne, 0}, {kOne, 0, 0x33C0, 0}, 0, 0x3F800001},  // 1 + 1.5 x 2^-24
    {"a tie between parts", {kOne, kOne, 0, 0}, {kOne, 0x3380, 0, 0}, 0, 0x3F800000},    //
    {"all bits of a product", {0x3FFF, 0, 0, 0}, {0x3FFF, 0, 0, 0}, 0, 0x407E0100},      // (255/128)^2
    {"too large", {kHuge, 0, 0, 0}, {kHuge, 0, 0, 0}, 0, 0x7F800000},
    {"too small", {kHuge, 0, 0, 0}, {kHuge | kMinus, 0, 0, 0}, 0, 0xFF800000},
    {"a product past the range beside its opposite", {kHuge, 0, kHuge, 0}, {0x4000, 0, 0xC000, 0}, 0, 0x7F800000},
    {"infinity", {kInfinity, 0, 0, 0}, {kOne, 0, 0, 0}, 0x3F800000, 0x7F800000},
    {"infinity times 0", {kInfinity, 0, 0, 0}, {0, 0, 0, 0}, 0, 0x7FC00000},
    {"infinity times a subnormal", {kInfinity, 0, 0, 0}, {0x0040, 0, 0, 0}, 0, 0x7FC00000},
    {"infinity less infinity", {kInfinity, kInfinity, 0, 0}, {kOne, kOne | kMinus, 0, 0}, 0, 0x7FC00000},
    {"no number", {0, 0x7FC0, 0, 0}, {0, kOne, 0, 0}, 0, 0x7FC00000},
    {"-0 and 0", {0, 0, 0, 0}, {0, 0, 0, 0}, 0x80000000, 0},
};

void probe_floats() {
  for (const FloatProbe& probe : kFloatProbes) {
    Tile a = {}, b = {}, sums = {};
    memcpy(a[0], probe.a, 8);
    memcpy(b[0], probe.b, 4);
    memcpy(b[1], probe.b + 2, 4);
    sums[0][0] = probe.start;
    multiply(Dot::kBFloat16, {1, 1, 2}, a, b, sums);
    put("tdpbf16ps, ", probe.what);
    judge(is_nan(probe.want) && is_nan(sums[0][0]) ? probe.want : sums[0][0], probe.want);
  }
}

// What a sum becomes, without tiles. Numbers are such that nothing is subnormal.
uint32_t sum_of(Dot dot, const Tile& a, const Tile& b, uint32_t start, int m, int n, int fours) {
  uint32_t sum = start;
  float parts[2] = {};
  for (int k = 0; k < fours; ++k) {
    const uint32_t of_a = a[m][k], of_b = b[k][n];
    for (int i = 0; i < 4; ++i) {
      const auto x = static_cast<uint8_t>(of_a >> (8 * i)), y = static_cast<uint8_t>(of_b >> (8 * i));
      const int product = dot == Dot::kU8S8 ? x * static_cast<int8_t>(y) : static_cast<int8_t>(x) * y;
      if (dot != Dot::kBFloat16) sum += static_cast<uint32_t>(product);
    }
    parts[0] = __builtin_fmaf(float_of(of_a << 16), float_of(of_b << 16), parts[0]);
    parts[1] = __builtin_fmaf(float_of(of_a & 0xFFFF0000), float_of(of_b & 0xFFFF0000), parts[1]);
  }
  return dot == Dot::kBFloat16 ? bits_of(float_of(start) + (parts[0] + parts[1])) : sum;
}

void fill(Dot dot, Numbers& numbers, Tile& tile) {
  for (auto& row : tile) {
    for (uint32_t& four : row) {
      four = numbers.next();
      if (dot == Dot::kBFloat16) four = (four & 0x80FF80FF) | 0x3F003F00;  // of 0.5 to 2, either sign
    }
  }
}

// Of parts of tiles, too; what is not of the tile of sums stays as it was.
void probe_products() {
  constexpr Shape kShapes[] = {kWhole,    {1, 1, 1},   {1, 16, 16}, {16, 1, 16}, {16, 16, 1},
                               {3, 5, 7}, {7, 16, 16}, {9, 16, 16}, {15, 2, 16}, {2, 15, 3}};
  for (const Dot dot : {Dot::kU8S8, Dot::kS8U8, Dot::kBFloat16}) {
    for (const Shape shape : kShapes) {
      Numbers numbers(static_cast<uint64_t>(shape.rows * 10000 + shape.columns * 100 + shape.fours));
      Tile a, b, sums, want;
      fill(dot, numbers, a);
      fill(dot, numbers, b);
      fill(dot, numbers, sums);
      memcpy(want, sums, sizeof want);
      for (int m = 0; m < shape.rows; ++m) {
        for (int n = 0; n < shape.columns; ++n) want[m][n] = sum_of(dot, a, b, sums[m][n], m, n, shape.fours);
      }
      multiply(dot, shape, a, b, sums);
      int wrong = 0;
      for (int i = 0; i < 256; ++i) wrong += sums[i / 16][i % 16] != want[i / 16][i % 16];
      put(name_of(dot), " of ", shape.rows, " x ", 4 * shape.fours, " and ", shape.columns, " columns");
      wrong == 0 ? put(": right\n") : put(": WRONG in ", wrong, " places\n");
    }
  }
}

// Rows of a tile lie as far apart as one likes.
void probe_strides() {
  constexpr int kRows = 11, kBytes = 36;
  constexpr int64_t kStrides[] = {36, 64, 72, 4096, 0, -64, -100};
  constexpr int64_t kMiddle = 64 * 1024;
  for (const int64_t stride : kStrides) {
    Memory memory;
    auto* const from = memory.take<unsigned char>(2 * kMiddle);
    auto* const to = memory.take<unsigned char>(2 * kMiddle);
    auto* const want = memory.take<unsigned char>(2 * kMiddle);
    Numbers numbers(static_cast<uint64_t>(stride + 1000));
    for (int64_t i = 0; i < 2 * kMiddle; ++i) from[i] = static_cast<unsigned char>(numbers.next());
    const int64_t other = stride == 0 ? 64 : stride;  // stores would overlap
    for (int r = 0; r < kRows; ++r) memcpy(want + kMiddle + r * other, from + kMiddle + r * stride, kBytes);
    TilesInQuestion tiles(config_of({kRows, kBytes / 4, kBytes / 4}));
    tiles.template load<kSum>(from + kMiddle, stride);
    tiles.template store<kSum>(to + kMiddle, other);
    put("rows ", stride, " bytes apart",
        checksum(to, 2 * kMiddle) == checksum(want, 2 * kMiddle) ? ": right\n" : ": WRONG\n");
  }
}

bool is_zero(const Tile& tile) {
  uint32_t any = 0;
  for (const auto& row : tile) {
    for (const uint32_t four : row) any |= four;
  }
  return any == 0;
}

void probe_zeros() {
  Tile full, out;
  memset(full, 0x5A, sizeof full);
  {
    TilesInQuestion tiles(config_of(kWhole));
    tiles.template load<kB>(full, 64);
    tiles.template load<kSum>(full, 64);
    tiles.template zero<kSum>();
    tiles.template store<kSum>(out, 64);
    put("tilezero", is_zero(out) ? ": right\n" : ": WRONG\n");
    tiles.template store<kB>(out, 64);
    put("tilezero leaves others", memcmp(out, full, sizeof out) == 0 ? ": right\n" : ": WRONG\n");
  }
  TilesInQuestion tiles(config_of(kWhole));
  tiles.template store<kB>(out, 64);
  put("ldtilecfg zeroes", is_zero(out) ? ": right\n" : ": WRONG\n");
}

}  // namespace

void probe_instructions() {
  probe_extremes();
  probe_floats();
  probe_products();
  probe_strides();
  probe_zeros();
}

}  // namespace transept
