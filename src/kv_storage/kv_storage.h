// The bytes of the two block pools. Executes the block moves of a plan: copies and swaps. In debug runs it poisons
// freed blocks and checks that cross blocks do not change once they are written.
//
// A block has block_bytes() bytes and belongs to a table of one spec at a time: layer l of spec s starts at l * the
// stride of s in it; block_bytes() is the largest sum of a spec's strides. The attention backend defines the format of
// a layer's bytes (AttentionBackend::block_bytes).
//
// Owned by the model runner. Not thread-safe (engine thread). Memory is committed on first use, so a host pool that is
// never swapped to costs address space only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "kv/block.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace transept {

class KvStorage final {
 public:
  struct SpecLayout {
    int32_t num_layers = 0;
    size_t layer_bytes = 0;  // of one layer of one block
  };
  struct Layout {
    int32_t num_device_blocks = 0;
    int32_t num_host_blocks = 0;
    std::vector<SpecLayout> specs = {};  // as ModelSpec::kv

    // layer_bytes rounded up to a multiple of 64.
    static size_t layer_stride(const SpecLayout& spec);
    size_t block_bytes() const;
  };

  // Errors: kInvalidArgument: a count or size out of range, or a total size that overflows; kResourceExhausted: the
  // system refuses the memory (says how much was asked for).
  static StatusOr<std::unique_ptr<KvStorage>> create(const Layout& layout, DeviceMemory& memory = host_memory());

  // The layers of each spec, one view a layer: uint8 [num_device_blocks, layer_bytes], stride[0] = block_bytes()
  // (KvCaches).
  std::span<const std::span<const TensorView>> layers() const { return spans_; }
  std::span<const TensorView> layers(size_t spec) const { return spans_.at(spec); }
  const Layout& layout() const { return layout_; }
  size_t block_bytes() const { return block_bytes_; }

  // The bytes of the first `num_rows` rows of `row_bytes` in these device blocks of layer 0 of a spec, `per_block` rows
  // in each: a span a block. Seals of these blocks end. REQUIRES: the device's memory is the host's, and as many blocks
  // as the rows need.
  std::vector<std::span<std::byte>> row_places(size_t spec, std::span<const BlockId> blocks, int32_t num_rows,
                                               int32_t per_block, size_t row_bytes);

  // Executes the moves in the order of BlockMoves. Checks freed blocks that are sealed, then poisons all freed blocks.
  void apply(const BlockMoves& moves);

  void copy(std::span<const BlockCopy> copies);      // device -> device
  void swap_out(std::span<const BlockCopy> copies);  // device -> host
  void swap_in(std::span<const BlockCopy> copies);   // host -> device
  // Fills blocks with 0xFF: NaN as float32 (also the scales of int8 KV), bfloat16 and float16, so that reading a freed
  // block shows.
  void poison(MemoryPool pool, std::span<const BlockId> blocks);

  // For debug runs: records a hash of cross blocks after they were written. A swap moves the seal with the block. When
  // a sealed block is swapped or freed (apply), changed content is a CHECK that names the block.
  void seal(std::span<const BlockId> device_blocks);
  uint64_t hash(MemoryPool pool, BlockId block) const;  // of the block's bytes; never 0

  uint64_t bytes_copied() const { return bytes_copied_; }
  uint64_t bytes_swapped_out() const { return bytes_swapped_out_; }
  uint64_t bytes_swapped_in() const { return bytes_swapped_in_; }

 private:
  struct Pool {
    DeviceMemory* memory = nullptr;
    DeviceBuffer bytes;
    int32_t num_blocks = 0;
    std::vector<uint64_t> seals;  // 0: not sealed; empty until seal() is first called
  };

  KvStorage(const Layout& layout, DeviceMemory& memory);
  std::vector<TensorView> layer_views(const SpecLayout& spec) const;
  std::byte* block(const Pool& pool, BlockId id) const;
  Pool& pool(MemoryPool which) { return which == MemoryPool::kDevice ? device_ : host_; }
  const Pool& pool(MemoryPool which) const { return which == MemoryPool::kDevice ? device_ : host_; }
  void transfer(Pool& from, Pool& to, std::span<const BlockCopy> copies);
  void retire(MemoryPool which, std::span<const BlockId> blocks);  // freed blocks: checks seals, poisons
  void check_seal(const Pool& pool, BlockId id) const;
  uint64_t hash_of(const Pool& pool, BlockId id) const;

  Layout layout_;
  size_t block_bytes_;
  Pool device_;
  Pool host_;
  std::vector<std::vector<TensorView>> layers_;     // of each spec
  std::vector<std::span<const TensorView>> spans_;  // of layers_
  uint64_t bytes_copied_ = 0;
  uint64_t bytes_swapped_out_ = 0;
  uint64_t bytes_swapped_in_ = 0;
};

}  // namespace transept
