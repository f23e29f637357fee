// Encoders' attention over int8 keys and values on tiles (attention/encoder_tiles.h), of one head.
#include <string.h>

#include "cases.h"

namespace transept {
namespace {

enum class Bias { kNone, kMaterialized, kStrided, kByDistance, kAlibi };
constexpr const char* kBiasNames[] = {"", " bias", " strided bias", " bias by distance", " alibi"};
constexpr float kMasked = -__builtin_inff();

struct Case {
  int64_t rows, keys, dim;
  Bias bias = Bias::kNone;
  float strange = 0;         // one entry of q and of K
  bool is_positive = false;  // q and V are not below 0
};

float* make_floats(Memory& memory, Numbers& numbers, int64_t count) {
  auto* const floats = memory.take<float>(count);
  for (int64_t i = 0; i < count; ++i) floats[i] = 3 * numbers.between_ones();
  return floats;
}

struct Cache {
  unsigned char* bytes;
  int32_t* blocks;
};

// In blocks from the last to the first.
Cache write_tiles(const Case& of, Memory& memory, const float* k, const float* v) {
  const int64_t bytes = encoder_tile(of.dim).bytes, tiles = (of.keys + kTileKeys - 1) / kTileKeys;
  const Cache cache = {memory.take<unsigned char>(tiles * bytes), memory.take<int32_t>(tiles)};
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = i * kTileKeys, left = of.keys - first;
    cache.blocks[i] = static_cast<int32_t>(tiles - 1 - i);
    KvWrite write = {};
    write.k = k + first * of.dim;
    write.v = v + first * of.dim;
    write.k_stride = write.v_stride = write.head_dim = of.dim;
    write.num_rows = left < kTileKeys ? left : kTileKeys;
    write.part = cache.bytes + cache.blocks[i] * bytes;
    write.block_size = kTileKeys;
    avx512_vnni::write_encoder_tile(write);
  }
  return cache;
}

// Of every row.
class Biases {
 public:
  Biases(const Case& of, Memory& memory, Numbers& numbers)
      : of_(of), values_(make_floats(memory, numbers, of.rows * of.keys + 2 * (kFarthest + kDistancePadding))) {
    if (of.bias != Bias::kMaterialized && of.bias != Bias::kStrided) return;
    for (int64_t i = 0; i < of.rows * of.keys; i += 5) values_[i] = kMasked;
  }
  RowBias of_row(int64_t row) const {
    switch (of_.bias) {
      case Bias::kNone: break;
      case Bias::kMaterialized: return {BiasKind::kMaterialized, values_ + row * of_.keys, 1, 0, row};
      case Bias::kStrided: return {BiasKind::kMaterialized, values_ + row, of_.rows, 0, row};
      case Bias::kByDistance: return {BiasKind::kByDistance, values_ + kFarthest + kDistancePadding, 0, kFarthest, row};
      case Bias::kAlibi: return {BiasKind::kAlibi, &kSlope, 0, 0, row};
    }
    return {};
  }

 private:
  static constexpr int64_t kFarthest = 20;
  static constexpr float kSlope = 0.25f;

  Case of_;
  float* values_;
};

AttentionRow* make_rows(const Case& of, Memory& memory, const float* q, float* out, const Biases& biases) {
  auto* const rows = memory.take<AttentionRow>(of.rows);
  for (int64_t i = 0; i < of.rows; ++i) {
    rows[i] = AttentionRow{};
    rows[i].q = q + i * of.dim;
    rows[i].out = out + i * of.dim;
    rows[i].bias = biases.of_row(i);
    rows[i].visible = of.keys;
  }
  return rows;
}

float scale_of(int64_t dim) {
  float root = 1;
  for (int i = 0; i < 20; ++i) root = (root + static_cast<float>(dim) / root) / 2;
  return 1 / root;
}

void attend(const Case& of) {
  Memory memory;
  Numbers numbers(static_cast<uint64_t>(of.rows * 1000003 + of.keys * 1009 + of.dim));
  float* const q = make_floats(memory, numbers, of.rows * of.dim);
  float* const k = make_floats(memory, numbers, of.keys * of.dim);
  float* const v = make_floats(memory, numbers, of.keys * of.dim);
  for (int64_t i = 0; of.is_positive && i < of.rows * of.dim; ++i) q[i] = __builtin_fabsf(q[i]);
  for (int64_t i = 0; of.is_positive && i < of.keys * of.dim; ++i) v[i] = __builtin_fabsf(v[i]);
  if (of.strange != 0) {
    q[of.rows / 2 * of.dim + 1] = of.strange;
    k[of.keys / 2 * of.dim + 2] = of.strange;
  }
  const Cache cache = write_tiles(of, memory, k, v);
  const Biases biases(of, memory, numbers);
  float* const out = make_floats(memory, numbers, of.rows * of.dim);
  const int64_t item = of.rows < kEncoderItemRows ? of.rows : kEncoderItemRows, width = (of.dim + 15) / 16 * 16;
  AttentionTask task = {};
  task.rows = make_rows(of, memory, q, out, biases);
  task.num_rows = of.rows;
  task.num_keys = of.keys;
  task.head_dim = static_cast<int>(of.dim);
  task.scale = scale_of(of.dim);
  task.cache = cache.bytes;
  task.blocks = cache.blocks;
  task.block_size = kTileKeys;
  task.block_stride = encoder_tile(of.dim).bytes;
  task.sums = memory.take<float>(item * width);
  task.sums_stride = width;
  task.words = memory.take<unsigned char>(encoder_room(item, of.dim, kEncoderTileRows));
  in_question::attend_encoder(task);
  put("attention rows ", of.rows, " keys ", of.keys, " dim ", of.dim, kBiasNames[static_cast<int>(of.bias)]);
  if (of.strange != 0) put(" with ", Hex{bits_of(of.strange), 8});
  if (of.is_positive) put(" above 0");
  put(" #", Hex{checksum(out, of.rows * of.dim * static_cast<int64_t>(sizeof(float)))}, "\n");
}

}  // namespace

void attend_encoders() {
  for (const int64_t dim : {1, 37, 48, 64, 80, 96, 128, 256}) {
    for (const int64_t rows : {1, 8, 15, 16, 17, 33, 48, 49, 99}) {
      for (const int64_t keys : {1, 16, 63, 64, 65, 130, 200}) attend({rows, keys, dim});
    }
  }
  for (const Bias bias : {Bias::kMaterialized, Bias::kStrided, Bias::kByDistance, Bias::kAlibi}) {
    for (const int64_t dim : {48, 64}) {
      for (const int64_t keys : {5, 64, 200}) {
        for (const int64_t rows : {7, 37}) attend({rows, keys, dim, bias});
      }
    }
  }
  for (const int64_t dim : {37, 64, 128}) {
    for (const int64_t rows : {1, 16, 33, 99}) {
      for (const int64_t keys : {16, 64, 200}) attend({rows, keys, dim, Bias::kNone, 0, true});
    }
  }
  for (const float strange : {3e38f, 1e-40f, __builtin_inff()}) attend({50, 140, 52, Bias::kNone, strange});
}

}  // namespace transept
