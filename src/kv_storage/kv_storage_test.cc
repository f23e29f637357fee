#include "kv_storage/kv_storage.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace transept {
namespace {

using Layout = KvStorage::Layout;

Layout small_layout() {
  return {.num_device_blocks = 4,
          .num_host_blocks = 3,
          .specs = {{.num_layers = 3, .layer_bytes = 100}, {.num_layers = 2, .layer_bytes = 256}}};
}

std::unique_ptr<KvStorage> make(const Layout& layout) {
  auto storage = KvStorage::create(layout);
  CHECK(storage.ok(), error_message(storage.status()));
  return *std::move(storage);
}

uint8_t* at(const TensorView& layer, int64_t block) {
  return static_cast<uint8_t*>(layer.raw) + block * layer.stride[0];
}

void fill(const KvStorage& storage, BlockId block, uint8_t value) {
  for (const TensorView& layer : storage.layers(0)) {
    std::memset(at(layer, block), value + static_cast<int>(&layer - storage.layers(0).data()), 100);
  }
}

bool is_filled(const KvStorage& storage, BlockId block, uint8_t value) {
  for (size_t i = 0; i < storage.layers(0).size(); ++i) {
    const uint8_t* bytes = at(storage.layers(0)[i], block);
    for (int j = 0; j < 100; ++j) {
      if (bytes[j] != value + i) return false;
    }
  }
  return true;
}

TEST(KvStorage, ABlockHoldsAllLayersOfOneTable) {
  const auto storage = make(small_layout());
  // Self: 3 layers of 100 bytes, each begun at a multiple of 64; cross: 2 of 256. The larger one is the block.
  EXPECT_EQ(storage->block_bytes(), 512u);
  ASSERT_EQ(storage->layers(0).size(), 3u);
  ASSERT_EQ(storage->layers(1).size(), 2u);
  const TensorView& first = storage->layers(0)[0];
  EXPECT_EQ(first.dtype, DType::kUInt8);
  EXPECT_EQ(first.dim(0), 4);
  EXPECT_EQ(first.dim(1), 100);
  EXPECT_EQ(first.stride[0], 512);
  EXPECT_EQ(at(storage->layers(0)[2], 1) - at(first, 0), 512 + 2 * 128);
  EXPECT_EQ(at(storage->layers(1)[1], 3) - at(first, 0), 3 * 512 + 256);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.raw) % 64, 0u);
}

// A draft model's own layers: a third spec, whose layers are the widest.
TEST(KvStorage, ABlockHoldsTheLargestOfAnyNumberOfSpecs) {
  Layout layout = small_layout();
  layout.specs.push_back({.num_layers = 1, .layer_bytes = 700});
  const auto storage = make(layout);
  EXPECT_EQ(storage->block_bytes(), 704u);
  ASSERT_EQ(storage->layers().size(), 3u);
  EXPECT_EQ(storage->layers(2)[0].stride[0], 704);
  EXPECT_EQ(storage->layers(2)[0].raw, storage->layers(0)[0].raw);
}

TEST(KvStorage, ADecoderOnlyModelHasNoCrossLayers) {
  Layout layout = small_layout();
  layout.specs.pop_back();
  layout.num_host_blocks = 0;
  const auto storage = make(layout);
  EXPECT_EQ(storage->block_bytes(), 384u);
  EXPECT_EQ(storage->layers().size(), 1u);
}

TEST(KvStorage, MovesRealBytesAndCountsThem) {
  const auto storage = make(small_layout());
  fill(*storage, 0, 10);
  fill(*storage, 1, 20);
  const BlockCopy copy{.src = 0, .dst = 3};
  storage->copy({&copy, 1});
  EXPECT_TRUE(is_filled(*storage, 3, 10));

  const std::vector<BlockCopy> out = {{.src = 1, .dst = 2}, {.src = 3, .dst = 0}};
  storage->swap_out(out);
  fill(*storage, 1, 0);
  fill(*storage, 3, 0);
  const std::vector<BlockCopy> in = {{.src = 2, .dst = 3}};
  storage->swap_in(in);
  EXPECT_TRUE(is_filled(*storage, 3, 20));
  EXPECT_EQ(storage->bytes_copied(), 512u);
  EXPECT_EQ(storage->bytes_swapped_out(), 1024u);
  EXPECT_EQ(storage->bytes_swapped_in(), 512u);
}

TEST(KvStorage, PoisonIsNaNInEveryFloatFormat) {
  const auto storage = make(small_layout());
  const std::vector<BlockId> blocks = {2};
  storage->poison(MemoryPool::kDevice, blocks);
  const uint8_t* bytes = at(storage->layers(0)[1], 2);
  float f32;
  uint16_t half;
  std::memcpy(&f32, bytes, 4);
  std::memcpy(&half, bytes, 2);
  EXPECT_TRUE(std::isnan(f32));
  EXPECT_TRUE(std::isnan(bfloat16_to_float(half)));
  EXPECT_TRUE(std::isnan(float16_to_float(half)));
  EXPECT_EQ(*at(storage->layers(0)[0], 1), 0);
}

TEST(KvStorage, AppliesAStepsMovesInOrder) {
  // Block 0 is swapped out, given to a swapped-in table, and block 1 is freed and becomes the copy of block 2.
  const auto storage = make(small_layout());
  fill(*storage, 0, 10);
  fill(*storage, 1, 20);
  fill(*storage, 2, 30);
  BlockMoves moves;
  moves.swap_out = {{.src = 0, .dst = 1}};
  moves.freed_device = {0, 1};
  storage->apply(moves);
  EXPECT_FALSE(is_filled(*storage, 0, 10));

  moves.clear();
  moves.swap_in = {{.src = 1, .dst = 0}};
  moves.freed_host = {1};
  moves.freed_device = {1};
  moves.copy = {{.src = 2, .dst = 1}};
  storage->apply(moves);
  EXPECT_TRUE(is_filled(*storage, 0, 10));
  EXPECT_TRUE(is_filled(*storage, 1, 30));
  EXPECT_TRUE(is_filled(*storage, 2, 30));
}

// Rows are received into the blocks of a table, in its order; the last block may be filled in part.
TEST(KvStorage, RowsHaveAPlaceInEachBlock) {
  KvStorage::Layout layout{.num_device_blocks = 4, .specs = {{1, 100}, {1, 3 * 8 + 5}}};
  const auto storage = KvStorage::create(layout).value();
  const std::vector<BlockId> blocks = {2, 0, 3};
  storage->seal(blocks);
  const auto places = storage->row_places(1, blocks, 7, 3, 8);
  ASSERT_EQ(places.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(places[i].size(), i < 2 ? 24u : 8u);
    EXPECT_EQ(places[i].data(),
              static_cast<std::byte*>(storage->layers(1)[0].raw) + blocks[i] * storage->layers(1)[0].stride[0]);
    std::ranges::fill(places[i], std::byte{1});
  }
  BlockMoves freed;
  freed.freed_device = blocks;
  storage->apply(freed);  // the seals of what they held before have ended
}

TEST(KvStorage, HashesSeeEveryByte) {
  const auto storage = make(small_layout());
  const uint64_t before = storage->hash(MemoryPool::kDevice, 0);
  EXPECT_EQ(before, storage->hash(MemoryPool::kDevice, 1));
  uint8_t* bytes = at(storage->layers(1)[0], 0);
  for (int i = 0; i < 512; ++i) {
    bytes[i] ^= 1;
    EXPECT_NE(storage->hash(MemoryPool::kDevice, 0), before) << i;
    bytes[i] ^= 1;
  }
  EXPECT_EQ(storage->hash(MemoryPool::kDevice, 0), before);
}

TEST(KvStorage, SealsTravelWithSwapsAndEndWithTheBlock) {
  const auto storage = make(small_layout());
  const std::vector<BlockId> blocks = {0};
  fill(*storage, 0, 10);
  storage->seal(blocks);
  BlockMoves moves;
  moves.swap_out = {{.src = 0, .dst = 2}};
  moves.freed_device = {0};
  storage->apply(moves);
  fill(*storage, 0, 99);  // somebody else's now
  moves.clear();
  moves.swap_in = {{.src = 2, .dst = 1}};
  moves.freed_host = {2};
  moves.freed_device = {0};
  storage->apply(moves);
  EXPECT_TRUE(is_filled(*storage, 1, 10));
  moves.clear();
  moves.freed_device = {1};
  storage->apply(moves);  // unchanged: passes
  fill(*storage, 1, 50);
  storage->apply(moves);  // not sealed any more: passes
}

TEST(KvStorageDeathTest, CatchesWhoeverWritesASealedBlock) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto storage = make(small_layout());
  const std::vector<BlockId> blocks = {0};
  storage->seal(blocks);
  at(storage->layers(1)[1], 0)[17] = 1;
  BlockMoves moves;
  moves.freed_device = {0};
  EXPECT_DEATH(storage->apply(moves), "cross block 0 of the device pool changed");
  moves.clear();
  moves.swap_out = {{.src = 0, .dst = 0}};
  EXPECT_DEATH(storage->apply(moves), "cross block 0 of the device pool changed");
  moves.clear();
  moves.copy = {{.src = 0, .dst = 4}};
  EXPECT_DEATH(storage->apply(moves), "block 4 of 4");
}

TEST(KvStorage, RefusesWhatCannotBe) {
  Layout layout = small_layout();
  layout.num_device_blocks = 0;
  EXPECT_EQ(KvStorage::create(layout).status().code(), absl::StatusCode::kInvalidArgument);
  layout = small_layout();
  layout.specs[0].layer_bytes = std::numeric_limits<size_t>::max();
  EXPECT_EQ(KvStorage::create(layout).status().code(), absl::StatusCode::kInvalidArgument);
  layout = small_layout();
  layout.num_device_blocks = std::numeric_limits<int32_t>::max();
  layout.specs[0] = {.num_layers = 1 << 16, .layer_bytes = size_t{1} << 40};
  EXPECT_EQ(KvStorage::create(layout).status().code(), absl::StatusCode::kInvalidArgument);
  // 2^31 blocks of 1 MiB: 2 PiB, more than any address space gives.
  layout.specs[0] = {.num_layers = 1, .layer_bytes = size_t{1} << 20};
  const Status status = KvStorage::create(layout).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(error_message(status).find("KV blocks of 1048576 bytes"), std::string::npos) << status;
}

}  // namespace
}  // namespace transept
