#include "layers/window_attention.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/rows.h"

namespace transept {
namespace {

// 2 MiB a tensor; five are there at a time.
constexpr int64_t kElementsAtOnce = 1 << 19;
// Keys of windows that are rounded lie in tiles of so many: smaller windows take as much memory.
constexpr int64_t kRowsOfTile = 64;
// What a score gets between regions: the reference's, no infinity.
constexpr float kOtherRegion = -100;

// One bias, [num_heads * rows of a window, rows of a window], for every window.
AttentionBias bias_of_windows(const TensorView& bias, int64_t num_windows) {
  if (bias.rank == 0) return AttentionBias::none();
  const int64_t rows = bias.dim(1), heads = bias.dim(0) / rows;
  TensorView view(bias.raw, DType::kFloat32, {num_windows, heads, rows, rows});
  view.stride[0] = 0;
  return AttentionBias::tensor(view);
}

}  // namespace

// The metadata of windows of one size.
class WindowAttention::Windows final {
 public:
  Windows(int64_t most, int64_t rows, DType kv_dtype) : rows_(static_cast<int32_t>(rows)), kv_dtype_(kv_dtype) {
    for (int32_t i = 0; i <= most; ++i) starts_.push_back(i * rows_);
    lengths_.assign(static_cast<size_t>(most), rows_);
  }

  AttentionMetadata metadata(int64_t count) const {
    const auto num_windows = static_cast<size_t>(count);
    AttentionMetadata metadata;
    metadata.num_seqs = static_cast<int32_t>(count);
    metadata.max_query_len = metadata.max_kv_len = rows_;
    metadata.query_start_loc = metadata.kv_start_loc = std::span(starts_).first(num_windows + 1);
    metadata.seq_lens = std::span(lengths_).first(num_windows);
    metadata.kv_dtype = kv_dtype_;
    return metadata;
  }

 private:
  int32_t rows_;
  DType kv_dtype_;
  std::vector<int32_t> starts_, lengths_;
};

int64_t WindowAttention::rows_at_once(int64_t dim) { return std::max<int64_t>(1, kElementsAtOnce / dim); }

int64_t WindowAttention::bias_bytes(int64_t side, int64_t num_heads) {
  return num_heads * side * side * side * side * static_cast<int64_t>(sizeof(float));
}

int64_t WindowAttention::windows_at_once(int64_t side) const {
  return std::max<int64_t>(1, rows_at_once(dim_) / round_up(side * side, kRowsOfTile));
}

StatusOr<WindowAttention> WindowAttention::load(WeightMap& weights, const Options& options,
                                                const PackOptions& packing) {
  ASSIGN_OR_RETURN(SelfAttention attention, SelfAttention::load(weights, options.attention, packing));
  ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, options.norm, options.attention.dim, options.norm_options));
  if (options.bias_table.empty()) {
    CHECK(options.shift == 0 && options.small_maps == SmallMaps::kFillUp);
    return WindowAttention(std::move(attention), std::move(norm), {}, options);
  }
  const int64_t heads = options.attention.num_heads, places = (2 * options.side - 1) * (2 * options.side - 1);
  ASSIGN_OR_RETURN(const WeightView view, weights.get(options.bias_table, {places, heads}));
  const std::vector<float> by_place = columns_of_rank(to_floats(view), heads, packing.ranks);
  std::vector<float> table(by_place.size());
  const int64_t own_heads = std::ssize(table) / places;
  for (int64_t i = 0; i < places * own_heads; ++i) {
    table[static_cast<size_t>(i % own_heads * places + i / own_heads)] = by_place[static_cast<size_t>(i)];
  }
  return WindowAttention(std::move(attention), std::move(norm), std::move(table), options);
}

// The bias of windows of a kind; empty: none. The table is the host's: rows are made there.
TensorView WindowAttention::make_bias(Context& context, const WindowPartition& windows, WindowKind kind) const {
  if (table_.empty()) return {};
  const int64_t side = windows.side(), rows = windows.window_rows(), reach = 2 * side_ - 1;
  const TensorView bias = context.arena.tensor(DType::kFloat32, {heads().wanted().num_heads * rows, rows});
  const auto make_row = [&](int64_t index, std::span<float> out) {
    const int64_t head = index / rows, query = index % rows;
    const std::span<const float> values = std::span(table_).subspan(static_cast<size_t>(head * reach * reach));
    for (int64_t key = 0; key < rows; key += side) {
      const int64_t down = query / side - key / side + side_ - 1, right = query % side + side_ - 1;
      for (int64_t x = 0; x < side; ++x)
        out[static_cast<size_t>(key + x)] = values[static_cast<size_t>(down * reach + right - x)];
    }
    if (kind == WindowKind::kInner) return;
    for (int64_t key = 0; key < rows; ++key) {
      if (!windows.is_one_region(kind, query, key)) out[static_cast<size_t>(key)] += kOtherRegion;
    }
  };
  write_rows(context, make_row, bias);
  return bias;
}

void WindowAttention::attend(Context& context, const AttentionInputs& inputs, std::span<const int32_t> rows,
                             bool any_is_missing, const TensorView& x) const {
  const Arena::Scope scope(context.arena);
  const TensorView some = context.arena.tensor(DType::kFloat32, {static_cast<int64_t>(rows.size()), dim_});
  gather_rows(context, x, rows, some);
  norm_.forward(context, some, some);
  if (any_is_missing) clear_missing_rows(context, rows, some);
  attention_.forward(context, inputs, some, TensorView(), some);
  scatter_add_rows(context, some, rows, x);
}

void WindowAttention::forward(Context& context, const AttentionBackend& backend, DType kv_dtype, const MapSize& map,
                              const TensorView& x) const {
  CHECK(x.rank == 2 && x.dim(0) == map.num_rows() && x.dim(1) == dim_);
  if (context.dry_run) return measure(context, backend, kv_dtype, map.num_rows(), x);
  const WindowPartition windows(map, side_, shift_, small_maps_);
  const int64_t at_once = windows_at_once(windows.side());
  const Windows lists(at_once, windows.window_rows(), kv_dtype);
  std::vector<int32_t> rows;
  for (const WindowKind kind : kWindowKinds) {
    const int64_t count = windows.num_windows(kind);
    if (count == 0) continue;
    const Arena::Scope scope(context.arena);
    const TensorView bias = make_bias(context, windows, kind);
    for (int64_t begin = 0; begin < count; begin += at_once) {
      const int64_t num_windows = std::min(at_once, count - begin);
      rows.resize(static_cast<size_t>(num_windows * windows.window_rows()));
      const bool any_is_missing = windows.fill_rows(kind, begin, rows);
      const AttentionMetadata metadata = lists.metadata(num_windows);
      const AttentionBias scores = bias_of_windows(bias, num_windows);
      AttentionInputs inputs{backend, AttentionType::kEncoder, metadata};
      if (!table_.empty()) inputs.bias = &scores;
      attend(context, inputs, rows, any_is_missing, x);
    }
  }
}

// How large windows are depends on the sides of the map, of which a dry run knows the product alone: it takes the
// memory of windows of every size.
void WindowAttention::measure(Context& context, const AttentionBackend& backend, DType kv_dtype, int64_t num_rows,
                              const TensorView& x) const {
  // A row of the map needs a window of its own at most.
  if (small_maps_ == SmallMaps::kFillUp) {
    return measure_windows(context, backend, kv_dtype, side_, std::min(windows_at_once(side_), num_rows), x);
  }
  for (int64_t side = 1; side <= side_ && side * side <= num_rows; ++side) {
    // Filled up to whole windows, a side is less than twice as long: it has at least a window's.
    const int64_t num_windows = std::min(windows_at_once(side), ceil_div(4 * num_rows, side * side));
    measure_windows(context, backend, kv_dtype, side, num_windows, x);
  }
}

void WindowAttention::measure_windows(Context& context, const AttentionBackend& backend, DType kv_dtype, int64_t side,
                                      int64_t num_windows, const TensorView& x) const {
  const Arena::Scope scope(context.arena);
  const TensorView bias = make_bias(context, WindowPartition({side, side}, side, 0), WindowKind::kInner);
  const Windows lists(num_windows, side * side, kv_dtype);
  const AttentionMetadata metadata = lists.metadata(num_windows);
  const AttentionBias scores = bias_of_windows(bias, num_windows);
  AttentionInputs inputs{backend, AttentionType::kEncoder, metadata};
  if (!table_.empty()) inputs.bias = &scores;
  const std::vector<int32_t> rows(static_cast<size_t>(num_windows * side * side), kNoRow);
  attend(context, inputs, rows, true, x);
}

}  // namespace transept
