// Rows that other processes encode: their tables in the pool, their places there, and how a step takes them.
#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/system_memory.h"
#include "ops/rows.h"
#include "rank/largest_step.h"
#include "rank/lengths.h"
#include "rank/model_runner.h"

namespace transept {
namespace {

// The cache of rows as read_row_slots() takes it.
TensorView typed_rows(const TensorView& layer, DType dtype) {
  if (dtype == DType::kFloat32) return layer;
  const auto size = static_cast<int64_t>(dtype_bytes(dtype));
  TensorView rows(layer.raw, dtype, {layer.dim(0), layer.dim(1) / size});
  rows.stride[0] = layer.stride[0] / size;
  return rows;
}

}  // namespace

// Rows of items that come from other processes lie in the pool, also of models that splice none. One table takes rows
// of every width: a block of it is as large as the widest rows want.
Status EncoderDecoderModelRunner::add_rows_spec() {
  if (!options_.takes_remote_rows) return ok_status();
  info_.rows_spec = spec().find_kv(KvKind::kEncoderRows);
  info_.rows_dtype = options_.remote_rows_dtype;
  if (info_.rows_spec >= 0) {
    // Spliced rows are read by the decoder's model itself, and written by its encoder.
    if (info_.rows_dtype != DType::kFloat32) {
      return unimplemented("--ec-transfer-dtype ", dtype_name(info_.rows_dtype), ": the rows of a model that splices (",
                           spec().family, ") travel as float32 alone");
    }
    KvSpec& rows = kv_specs_[static_cast<size_t>(info_.rows_spec)];
    for (const Consumers kind : kinds_of_items(spec())) rows.head_dim = std::max(rows.head_dim, spec().width_of(kind));
    return ok_status();
  }
  if (!has(spec().consumers(), Consumers::kCross)) {
    return unimplemented("a model without an encoder (", spec().family, ") takes no rows from other processes");
  }
  info_.rows_spec = static_cast<int32_t>(kv_specs_.size());
  kv_specs_.push_back({.kind = KvKind::kEncoderRows,
                       .owner = TableOwner::kItem,
                       .layers = {0},
                       .num_kv_heads = 1,
                       .head_dim = spec().width_of(Consumers::kCross)});
  return ok_status();
}

// Of the pool, what reservations of rows may hold. An input of two forms is an item of each, and a request waits with
// the rows of one for those of the other.
StatusOr<int64_t> EncoderDecoderModelRunner::reserved_blocks(uint64_t block_bytes) const {
  if (info_.rows_spec < 0) return 0;
  const int64_t per_block = info_.tables[static_cast<size_t>(info_.rows_spec)].tokens_per_block;
  int64_t longest = 0, per_input = 0;
  for (const Consumers use : {Consumers::kCross, Consumers::kSplice}) {
    if (!has(spec().consumers(), use)) continue;
    const int64_t of_use = longest_item(spec(), use, {info_.max_encoder_len, info_.max_decoder_len});
    longest += of_use;
    per_input += ceil_div(of_use, per_block);
  }
  const auto num_replicas = static_cast<uint64_t>(options_.num_replicas);
  if (!options_.ec_buffer_memory.has_value()) {
    constexpr uint64_t kShareOfMachine = 10;
    uint64_t most = total_memory_bytes() / kShareOfMachine;
    if (options_.kv_cache_memory.has_value()) most = std::min(most, *options_.kv_cache_memory / kShareOfRows);
    const auto most_blocks = static_cast<int64_t>(std::min(most / num_replicas / block_bytes, kMaxKvBlocks));
    return std::max(std::min(per_input * options_.max_num_seqs, most_blocks), per_input);
  }
  const auto asked =
      static_cast<int64_t>(std::min(*options_.ec_buffer_memory / num_replicas / block_bytes, kMaxKvBlocks));
  if (asked >= per_input) return asked;
  return invalid_argument("--ec-buffer-memory: ", format_bytes(*options_.ec_buffer_memory),
                          num_replicas > 1 ? " for all replicas" : "", " is less than one longest input of ", longest,
                          " positions: give at least ",
                          format_bytes(static_cast<uint64_t>(per_input) * block_bytes * num_replicas));
}

StatusOr<std::vector<std::span<std::byte>>> EncoderDecoderModelRunner::row_places(std::span<const BlockId> blocks,
                                                                                  int32_t num_positions,
                                                                                  int32_t width) {
  CHECK(info_.rows_spec >= 0, "the runner takes no rows");
  if (!device_->memory().is_host()) {
    return unimplemented("rows are received into the host's memory alone, and the KV cache is a device's");
  }
  const auto rows_spec = static_cast<size_t>(info_.rows_spec);
  return kv_->row_places(rows_spec, blocks, num_positions, info_.tables[rows_spec].tokens_per_block,
                         static_cast<size_t>(width) * dtype_bytes(info_.rows_dtype));
}

// What this runner has encoded becomes what would have come from another process.
void EncoderDecoderModelRunner::round_rows(const TensorView& rows) const {
  if (info_.rows_dtype == DType::kFloat32) return;
  CHECK(device_->memory().is_host(), "rows of a device, which no process sends");
  const std::span<float> values(rows.f32(), static_cast<size_t>(rows.num_elements()));
  for (float& value : values) value = bfloat16_to_float(float_to_bfloat16(value));
}

// The rows of injected and resident items, side by side as an encoder leaves them.
void EncoderDecoderModelRunner::take_rows(Context& context, const EncodeInputs& inputs) const {
  if (inputs.source() == RowSource::kResident) {
    const auto rows_spec = static_cast<size_t>(info_.rows_spec);
    read_row_slots(context, typed_rows(kv_->layers(rows_spec)[0], info_.rows_dtype), inputs.row_slots(),
                   info_.tables[rows_spec].tokens_per_block, inputs.packed_rows(), rows_of(inputs));
    return;
  }
  std::byte* next = encoder_buffer_.data();
  for (const std::span<const float> rows : inputs.injected_rows()) {
    device_->memory().copy_in(next, rows.data(), rows.size_bytes());
    next += rows.size_bytes();
  }
}

}  // namespace transept
