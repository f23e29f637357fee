#include "kv_storage/kv_storage.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

constexpr size_t kLayerAlignment = 64;
constexpr uint8_t kPoisonByte = 0xFF;

// Four lanes of multiply and rotate (as in xxHash): fast enough to hash every cross block in debug runs. Not secure.
uint64_t hash_bytes(const std::byte* data, size_t size) {
  constexpr uint64_t kMultiplier = 0x9E3779B185EBCA87u;
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    for (size_t lane = 0; lane < 4; ++lane) {
      uint64_t word;
      std::memcpy(&word, data + i + lane * 8, 8);
      lanes[lane] = std::rotl(lanes[lane] + word * kMultiplier, 31) * kMultiplier;
    }
  }
  uint64_t hash = size;
  for (; i < size; ++i) hash = std::rotl(hash ^ static_cast<uint64_t>(data[i]), 11) * kMultiplier;
  for (const uint64_t lane : lanes) hash = std::rotl(hash ^ lane, 27) * kMultiplier;
  return hash ^ (hash >> 32);
}

}  // namespace

size_t KvStorage::Layout::layer_stride(const SpecLayout& spec) {
  return static_cast<size_t>(ceil_div(static_cast<int64_t>(spec.layer_bytes), kLayerAlignment)) * kLayerAlignment;
}

size_t KvStorage::Layout::block_bytes() const {
  size_t most = 0;
  for (const SpecLayout& spec : specs) most = std::max(most, static_cast<size_t>(spec.num_layers) * layer_stride(spec));
  return most;
}

StatusOr<std::unique_ptr<KvStorage>> KvStorage::create(const Layout& layout, DeviceMemory& memory) {
  constexpr size_t kMaxLayerBytes = size_t{1} << 40;
  constexpr int32_t kMaxLayers = 1 << 16;
  for (const SpecLayout& spec : layout.specs) {
    if (spec.num_layers < 0 || spec.num_layers > kMaxLayers || spec.layer_bytes > kMaxLayerBytes) {
      return invalid_argument("KV layout: ", spec.num_layers, " layers of ", spec.layer_bytes, " bytes a block");
    }
  }
  if (layout.num_device_blocks < 1 || layout.num_host_blocks < 0) {
    return invalid_argument("KV layout: ", layout.num_device_blocks, " device and ", layout.num_host_blocks,
                            " host blocks");
  }
  std::unique_ptr<KvStorage> storage(new KvStorage(layout, memory));
  for (Pool* pool : {&storage->device_, &storage->host_}) {
    const auto bytes = checked_mul(static_cast<uint64_t>(pool->num_blocks), uint64_t{storage->block_bytes_});
    if (!bytes || *bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return invalid_argument("KV layout: ", pool->num_blocks, " blocks of ", storage->block_bytes_, " bytes overflow");
    }
    pool->bytes = pool->memory->allocate(*bytes, MemoryUse::kKv);
    if (*bytes > 0 && pool->bytes.data() == nullptr) {
      return resource_exhausted("no memory for ", pool->num_blocks, " KV blocks of ", storage->block_bytes_, " bytes (",
                                format_bytes(*bytes), ")");
    }
  }
  for (const SpecLayout& spec : layout.specs) storage->layers_.push_back(storage->layer_views(spec));
  storage->spans_.assign(storage->layers_.begin(), storage->layers_.end());
  return storage;
}

KvStorage::KvStorage(const Layout& layout, DeviceMemory& memory) : layout_(layout), block_bytes_(layout.block_bytes()) {
  device_.memory = &memory;
  host_.memory = &host_memory();
  device_.num_blocks = layout.num_device_blocks;
  host_.num_blocks = layout.num_host_blocks;
}

std::vector<TensorView> KvStorage::layer_views(const SpecLayout& spec) const {
  std::vector<TensorView> views;
  for (int32_t layer = 0; layer < spec.num_layers; ++layer) {
    std::byte* data = device_.bytes.data() + static_cast<size_t>(layer) * Layout::layer_stride(spec);
    TensorView view(data, DType::kUInt8, {device_.num_blocks, static_cast<int64_t>(spec.layer_bytes)});
    view.stride[0] = static_cast<int64_t>(block_bytes_);
    views.push_back(view);
  }
  return views;
}

std::byte* KvStorage::block(const Pool& pool, BlockId id) const {
  CHECK(id >= 0 && id < pool.num_blocks, "block ", id, " of ", pool.num_blocks);
  return pool.bytes.data() + static_cast<size_t>(id) * block_bytes_;
}

std::vector<std::span<std::byte>> KvStorage::row_places(size_t spec, std::span<const BlockId> blocks, int32_t num_rows,
                                                        int32_t per_block, size_t row_bytes) {
  CHECK(device_.memory->is_host(), "blocks of a device have no place here");
  CHECK(static_cast<size_t>(per_block) * row_bytes <= layout_.specs.at(spec).layer_bytes, "rows larger than a block");
  CHECK(std::ssize(blocks) == ceil_div(num_rows, per_block), blocks.size(), " blocks for ", num_rows, " rows");
  std::vector<std::span<std::byte>> places;
  places.reserve(blocks.size());
  for (const BlockId id : blocks) {
    if (!device_.seals.empty()) device_.seals[static_cast<size_t>(id)] = 0;
    const int32_t count = std::min(num_rows, per_block);
    places.emplace_back(block(device_, id), static_cast<size_t>(count) * row_bytes);
    num_rows -= count;
  }
  return places;
}

void KvStorage::apply(const BlockMoves& moves) {
  swap_out(moves.swap_out);
  retire(MemoryPool::kDevice, moves.freed_device);
  swap_in(moves.swap_in);
  retire(MemoryPool::kHost, moves.freed_host);
  copy(moves.copy);
}

void KvStorage::copy(std::span<const BlockCopy> copies) {
  transfer(device_, device_, copies);
  bytes_copied_ += copies.size() * block_bytes_;
}

void KvStorage::swap_out(std::span<const BlockCopy> copies) {
  transfer(device_, host_, copies);
  bytes_swapped_out_ += copies.size() * block_bytes_;
}

void KvStorage::swap_in(std::span<const BlockCopy> copies) {
  transfer(host_, device_, copies);
  bytes_swapped_in_ += copies.size() * block_bytes_;
}

void KvStorage::transfer(Pool& from, Pool& to, std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    CHECK(&from != &to || copy.src != copy.dst, "block ", copy.src, " is copied onto itself");
    std::byte *const dst = block(to, copy.dst), *const src = block(from, copy.src);
    if (&from == &to) {
      to.memory->copy(dst, src, block_bytes_);
    } else if (&from == &device_) {
      from.memory->copy_out(dst, src, block_bytes_);
    } else {
      to.memory->copy_in(dst, src, block_bytes_);
    }
    // Only swaps meet sealed blocks: cross tables are never written, so never copied on write.
    if (&from != &to && !from.seals.empty() && from.seals[static_cast<size_t>(copy.src)] != 0) {
      check_seal(from, copy.src);
      to.seals.resize(static_cast<size_t>(to.num_blocks));
      to.seals[static_cast<size_t>(copy.dst)] = std::exchange(from.seals[static_cast<size_t>(copy.src)], 0);
    }
  }
}

void KvStorage::retire(MemoryPool which, std::span<const BlockId> blocks) {
  Pool& pool = this->pool(which);
  for (const BlockId id : blocks) {
    if (pool.seals.empty() || pool.seals[static_cast<size_t>(id)] == 0) continue;
    check_seal(pool, id);
    pool.seals[static_cast<size_t>(id)] = 0;
  }
  poison(which, blocks);
}

void KvStorage::poison(MemoryPool which, std::span<const BlockId> blocks) {
  for (const BlockId id : blocks) pool(which).memory->fill(block(pool(which), id), kPoisonByte, block_bytes_);
}

void KvStorage::seal(std::span<const BlockId> device_blocks) {
  device_.seals.resize(static_cast<size_t>(device_.num_blocks));
  for (const BlockId id : device_blocks) device_.seals[static_cast<size_t>(id)] = hash(MemoryPool::kDevice, id);
}

void KvStorage::check_seal(const Pool& pool, BlockId id) const {
  const uint64_t now = hash_of(pool, id);
  CHECK(now == pool.seals[static_cast<size_t>(id)], "cross block ", id, " of the ",
        &pool == &device_ ? "device" : "host", " pool changed after it was written");
}

uint64_t KvStorage::hash(MemoryPool which, BlockId id) const { return hash_of(pool(which), id); }

uint64_t KvStorage::hash_of(const Pool& pool, BlockId id) const {
  if (pool.memory->is_host()) return hash_bytes(block(pool, id), block_bytes_) | 1;
  std::vector<std::byte> bytes(block_bytes_);
  pool.memory->copy_out(bytes.data(), block(pool, id), block_bytes_);
  return hash_bytes(bytes.data(), block_bytes_) | 1;
}

}  // namespace transept
