// Products of layers on tiles of 16 rows of 64 bytes (ops/tile.h), written once (ops/kernels.h has the rule for such
// files): int8, and bfloat16 with inputs rounded to it. T is the type that multiplies tiles, V the level's vectors of
// floats, D the storage of int8 inputs (dot_tile.h), K the kind of product.
//
// Inputs are rounded to [row][depth], whose rows are A's rows. A panel holds B's rows, 64 bytes of 16 columns, 128
// bytes apart (ops/packed_matrix.h). Every sum takes its inputs 64 bytes at a time, from the first to the last,
// whatever the other rows. Sums of floats are made of leaves (ops/gemm.h), each of whole steps of 64 bytes.
#pragma once

#include "ops/bfloat16_kernel.h"
#include "ops/int8_kernel.h"
#include "ops/tile.h"

namespace transept {

static constexpr int kTileStripe = 2 * kTileRows;  // rows that share one reading of the weights
// Bytes of a panel that one step of 64 bytes of inputs reads.
static constexpr int kTileStepBytes = kTileRows * 4 * kPanelWidth;

// The kinds of products: the type of sums, the product of tiles, and finish(), which stores y from the sums of `rows`
// rounded rows from `row` on.
template <class V, class D>
struct Int8Tiles {
  typedef int32_t Sum;
  static constexpr int kBytes = 1;  // of an input
  static constexpr bool kHasLeaves = false;
  template <int kSum, int kA, int kB, class T>
  static inline void dot(T& tiles) {
    tiles.template dot_u8s8<kSum, kA, kB>();
  }
  static inline void finish(const RoundedJob& job, int64_t row, int rows, int64_t column, int columns,
                            const Sum* sums) {
    if (job.is_wide) {
      int8_epilogue<V, D, true>(job, row / 2, rows / 2, column, columns, sums);
    } else {
      int8_epilogue<V, D, false>(job, row, rows, column, columns, sums);
    }
  }
};
template <class V>
struct BFloat16Tiles {
  typedef float Sum;
  static constexpr int kBytes = 2;
  static constexpr bool kHasLeaves = true;
  template <int kSum, int kA, int kB, class T>
  static inline void dot(T& tiles) {
    tiles.template dot_bfloat16<kSum, kA, kB>();
  }
  static inline void finish(const RoundedJob& job, int64_t row, int rows, int64_t column, int columns,
                            const Sum* sums) {
    gemm_epilogue<V>(job.gemm, row, rows, column, columns, sums, columns);
  }
};

// --- inputs

template <class V, class D>
void quantize_dense_rows(const RoundedJob& job, int64_t row_begin, int64_t row_end, void* q, float* scales,
                         int32_t* zeros) {
  const int64_t depth = job.gemm.depth, share = rounded_share(job.is_wide);
  for (int64_t r = row_begin; r < row_end; ++r) {
    const float* x = job.gemm.x + row_of_x(job.rows, r) * job.gemm.x_stride;
    auto* to = static_cast<typename D::Input*>(q) + r * share * depth;
    const RowStatistics* given = given_of_row(job, r);
    const RowCode code = job.is_wide ? quantize_row_wide<V, D>(x, given, job.gemm.k, depth, to, 4, depth)
                                     : quantize_row<V, D>(x, given, job.gemm.k, depth, to, 4);
    scales[r] = code.scale;
    zeros[r] = code.zero;
  }
}

// --- tiles of sums

// The operands of a call: rounded rows of A, and the stride of panels.
struct TileOperands {
  const char* a;
  int64_t row_bytes;    // of a row of A
  int64_t leaf_bytes;   // of a leaf of it
  int64_t panel_bytes;  // row_bytes * kPanelWidth
};

// Weights to prefetch into the second-level cache: `step` bytes for every kTileStepBytes that are read.
struct TileAhead {
  const char* from;
  int step;
};

// The use of the eight tiles: sums in tiles 0 to 3, then kStrips of A, and in the rest those of B, which alternate.
template <int kStrips>
struct TilePlan {
  static constexpr int kColumnTiles = 4 / kStrips;
  static constexpr int kA = 4;
  static constexpr int kB = kA + kStrips;
  static constexpr int kBTiles = 8 - kB;
};

// The rows of a call of tile_sums(): of all strips, and of the first.
struct StripRows {
  int64_t all, first;
};

// Adds leaf number `leaf` to what waits for it, as add_waiting_leaves() (gemm_kernel.h), and leaves the sum in `sums`;
// unless it is the last, which is y's, it waits then. Of `count` floats; levels of the tree are `level` floats apart.
template <class V>
inline void add_tile_leaf(int64_t leaf, bool is_last, int64_t count, int64_t level, float* tree, float* sums) {
  const auto move_to = [&](float* to, bool adds) {
    for (int64_t i = 0; i < count; i += V::kLanes) {
      V::store(to + i, adds ? V::add(V::load(tree + i), V::load(sums + i)) : V::load(sums + i));
    }
  };
  for (; leaf % 2 != 0; leaf /= 2, tree += level) move_to(sums, true);
  if (!is_last) move_to(tree, false);
}

// Adds one leaf, which begins at byte `at` of the rows of A, to the tiles of sums, and moves b and `ahead` behind it.
template <class V, class K, int kStrips, int kPanels, class T>
inline void tile_leaf(T& tiles, const TileOperands& of, const char* a, int64_t first_rows, int64_t at, const char*& b,
                      TileAhead& ahead) {
  using Plan = TilePlan<kStrips>;
  constexpr int kColumnTiles = 2 * kPanels;
  for (const int64_t end = at + of.leaf_bytes; at < end; at += kTileRowBytes) {
    for_constants<0, kStrips>([&](auto s) {
      constexpr int kS = decltype(s)::kValue;
      tiles.template load<Plan::kA + kS>(a + kS * first_rows * of.row_bytes + at, of.row_bytes);
    });
    for_constants<0, kColumnTiles>([&](auto c) {
      constexpr int kC = decltype(c)::kValue, kB = Plan::kB + kC % Plan::kBTiles;
      tiles.template load<kB>(b + kC / 2 * of.panel_bytes + kC % 2 * kTileRowBytes, 4 * kPanelWidth);
      for_constants<0, kStrips>([&](auto s) {
        constexpr int kS = decltype(s)::kValue;
        K::template dot<kS * kColumnTiles + kC, Plan::kA + kS, kB>(tiles);
      });
    });
    for (int p = 0; p < kPanels; ++p) {
      for (int o = 0; o < ahead.step; o += 64) V::prefetch_l2(ahead.from + p * of.panel_bytes + o);
    }
    b += kTileStepBytes;
    ahead.from += ahead.step;
  }
}

// Computes the sums of kStrips tiles of rows and kPanels panels from `b` on, into sums [rows][kPanels * kPanelWidth].
// Two strips take one panel at a time, one strip takes two: four sums at a time hide the latency of each, and two by
// two load one tile for each product instead of 1.25.
template <class V, class K, int kStrips, int kPanels, class T>
inline void tile_sums(T& tiles, const TileOperands& of, const char* a, const char* b, TileAhead ahead,
                      const StripRows& rows, typename K::Sum* sums) {
  constexpr int kColumnTiles = 2 * kPanels, kColumns = kPanels * kPanelWidth;
  constexpr int kSums = kStrips * kTileRows * kColumns;
  static_assert(kColumnTiles <= TilePlan<kStrips>::kColumnTiles, "");
  alignas(64) typename K::Sum tree[K::kHasLeaves ? kTreeLevels * kSums : 1];
  for (int64_t at = 0, leaf = 0;; ++leaf) {
    for_constants<0, kStrips * kColumnTiles>([&](auto i) { tiles.template zero<decltype(i)::kValue>(); });
    tile_leaf<V, K, kStrips, kPanels>(tiles, of, a, rows.first, at, b, ahead);
    for_constants<0, kStrips * kColumnTiles>([&](auto i) {
      constexpr int kI = decltype(i)::kValue;
      typename K::Sum* to = sums + kI / kColumnTiles * rows.first * kColumns + kI % kColumnTiles * kTileRows;
      tiles.template store<kI>(to, kColumns * static_cast<int64_t>(sizeof(typename K::Sum)));
    });
    at += of.leaf_bytes;
    const bool is_last = at >= of.row_bytes;
    if constexpr (K::kHasLeaves) add_tile_leaf<V>(leaf, is_last, rows.all * kColumns, kSums, tree, sums);
    if (is_last) break;
  }
}

// --- rows

// The rows of a stripe, as strips; the first strip has first_rows. If there are 32 rows or more, every strip has 16:
// where the last would have fewer, it begins earlier, and its first `skip` rows are computed twice and stored once. So
// one configuration serves a call.
struct TileStripe {
  int64_t row;  // the first row that is computed
  int rows;
  int skip;
  int strips;
  int first_rows;
};

static inline TileStripe tile_stripe(int64_t num_rows, int64_t stripe) {
  const int64_t begin = stripe * kTileStripe;
  const int rows = num_rows - begin < kTileStripe ? static_cast<int>(num_rows - begin) : kTileStripe;
  const int strips = rows > kTileRows ? 2 : 1;
  if (num_rows < kTileStripe) return {begin, rows, 0, strips, strips == 1 ? rows : (rows + 1) / 2};
  const int computed = strips * kTileRows;
  return {begin + rows - computed, computed, computed - rows, strips, kTileRows};
}

static inline TileConfig tile_config(int64_t num_rows) {
  const TileStripe stripe = tile_stripe(num_rows, 0);
  const auto first = static_cast<uint8_t>(stripe.first_rows);
  const auto second = static_cast<uint8_t>(stripe.strips == 1 ? first : stripe.rows - stripe.first_rows);
  TileConfig config = whole_tiles();
  config.rows[0] = config.rows[1] = config.rows[TilePlan<1>::kA] = first;
  config.rows[2] = config.rows[3] = second;
  if (stripe.strips == 2) config.rows[TilePlan<2>::kA + 1] = second;  // with one strip it is a tile of weights
  return config;
}

template <class V, class K, int kStrips, int kPanels, class T>
inline void tile_stripe_of_panels(T& tiles, const RoundedJob& job, const TileOperands& of, const TileStripe& stripe,
                                  int64_t panel, TileAhead ahead) {
  constexpr int kColumns = kPanels * kPanelWidth;
  alignas(64) typename K::Sum sums[kStrips * kTileRows * kColumns];
  const char* b = static_cast<const char*>(job.gemm.panels) + panel * of.panel_bytes;
  tile_sums<V, K, kStrips, kPanels>(tiles, of, of.a + stripe.row * of.row_bytes, b, ahead,
                                    {stripe.rows, stripe.first_rows}, sums);
  K::finish(job, stripe.row + stripe.skip, stripe.rows - stripe.skip, panel * kPanelWidth, kColumns,
            sums + stripe.skip * kColumns);
}

template <class V, class K, class T>
inline void tile_stripe_of_panel(T& tiles, const RoundedJob& job, const TileOperands& of, const TileStripe& stripe,
                                 int64_t panel, TileAhead ahead) {
  if (stripe.strips == 2) {
    tile_stripe_of_panels<V, K, 2, 1>(tiles, job, of, stripe, panel, ahead);
  } else {
    tile_stripe_of_panels<V, K, 1, 1>(tiles, job, of, stripe, panel, ahead);
  }
}

// Returns what stripe i of `count` prefetches of the next panel. All stripes share it, so that they do not ask for more
// at a time than memory gives.
static inline TileAhead tile_ahead(const char* next, int64_t panel_bytes, int64_t i, int64_t count) {
  const int64_t lines = (kTileStepBytes / 64 + count - 1) / count;
  const int64_t from = i * lines * 64;
  if (from >= kTileStepBytes) return {next, 0};
  return {next + panel_bytes / kTileStepBytes * from, static_cast<int>(lines * 64)};
}

// Computes stripes [begin, end) of rows, in panels [begin, end). Sets the thread's tile configuration and releases it
// at the end: so pool threads keep no state, and a switch of threads between calls saves no tiles. A call takes
// microseconds, the two instructions some ten nanoseconds.
template <class V, class K, class T>
void tile_panels(const RoundedJob& job, int64_t stripe_begin, int64_t stripe_end, int64_t panel_begin,
                 int64_t panel_end) {
  const int64_t num_rows = job.gemm.m * rounded_share(job.is_wide);
  const int64_t row_bytes = job.gemm.depth * K::kBytes;
  // A row's padding belongs to the only leaf: others are whole steps.
  const bool is_whole = !K::kHasLeaves || job.gemm.leaf_k == job.gemm.k;
  const int64_t leaf_bytes = is_whole ? row_bytes : job.gemm.leaf_k * K::kBytes;
  const TileOperands of = {static_cast<const char*>(job.q), row_bytes, leaf_bytes, row_bytes * kPanelWidth};
  const auto panel_at = [&](int64_t panel) {
    return static_cast<const char*>(job.gemm.panels) + panel * of.panel_bytes;
  };
  const auto own = [&](int64_t panel) { return TileAhead{panel_at(panel) + kPrefetchL2Bytes, kTileStepBytes}; };
  T tiles(tile_config(num_rows));
  if (stripe_end - stripe_begin == 1) {
    const TileStripe stripe = tile_stripe(num_rows, stripe_begin);
    int64_t panel = panel_begin;
    if (stripe.strips == 1) {
      for (; panel + 2 <= panel_end; panel += 2)
        tile_stripe_of_panels<V, K, 1, 2>(tiles, job, of, stripe, panel, own(panel));
    }
    for (; panel < panel_end; ++panel) tile_stripe_of_panel<V, K>(tiles, job, of, stripe, panel, own(panel));
    return;
  }
  // A panel stays in the cache for all the stripes.
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t i = stripe_begin; i < stripe_end; ++i) {
      TileAhead ahead = {panel_at(panel), 0};
      if (i == stripe_begin && panel == panel_begin) {
        ahead = own(panel);
      } else if (panel + 1 < panel_end) {
        ahead = tile_ahead(panel_at(panel + 1), of.panel_bytes, i - stripe_begin, stripe_end - stripe_begin);
      }
      tile_stripe_of_panel<V, K>(tiles, job, of, tile_stripe(num_rows, i), panel, ahead);
    }
  }
}

// Tiles compute a stripe of rows in a fraction of the time of vectors: more stripes must share a panel that comes from
// memory. Processors with AMX have 2 MiB of second-level cache.
static constexpr int64_t kTileBlockBytes = int64_t{1} << 20;
// Up to this many rounded rows, vectors read int8 weights as fast as memory gives them (46 us for 3072 x 768 and 8
// rows, where tiles took 55).
static constexpr int kInt8VectorRows = 8;

// Returns a level's table of products on tiles.
template <class V, class D, class T>
constexpr TileGemmKernels make_tile_gemm_kernels() {
  return {
      .int8_vector_rows = kInt8VectorRows,
      .int8 = {.tile_step = 1,
               .tile_rows = kTileStripe,
               .q_bytes = 1,
               .block_bytes = kTileBlockBytes,
               .quantize = &quantize_dense_rows<V, D>,
               .panels = &tile_panels<V, Int8Tiles<V, D>, T>,
               .finish = &int8_finish_rows<V, D>},
      .bfloat16 = {.tile_step = 1,
                   .tile_rows = kTileStripe,
                   .q_bytes = 2,
                   .block_bytes = kTileBlockBytes,
                   .quantize = &round_rows_to_bfloat16<V>,
                   .panels = &tile_panels<V, BFloat16Tiles<V>, T>,
                   .finish = nullptr},
  };
}

}  // namespace transept
