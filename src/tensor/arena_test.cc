// The step arena: what a measuring arena says is what a real one needs; scopes give memory back; too little memory is
// counted and served all the same.
#include "tensor/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace transept {
namespace {

// A step as layers run it: buffers that live through it, and some that live inside a scope.
void step(Arena& arena) {
  const Arena::Scope all(arena);
  arena.tensor(DType::kFloat32, {7, 33});
  for (int layer = 0; layer < 3; ++layer) {
    const Arena::Scope scope(arena);
    arena.allocate_span<int64_t>(13);
    arena.tensor(DType::kFloat32, {100, layer + 1});
  }
  arena.allocate(1);
}

TEST(Arena, MeasuredBytesSuffice) {
  Arena measuring = Arena::measuring();
  EXPECT_TRUE(measuring.is_measuring());
  step(measuring);
  EXPECT_GT(measuring.high_water_bytes(), 0u);

  Arena arena(measuring.high_water_bytes());
  EXPECT_FALSE(arena.is_measuring());
  for (int i = 0; i < 3; ++i) step(arena);
  EXPECT_EQ(arena.num_overflows(), 0);
  EXPECT_EQ(arena.high_water_bytes(), measuring.high_water_bytes());
  EXPECT_EQ(arena.capacity_bytes(), measuring.high_water_bytes());
}

TEST(Arena, AllocationsAreAlignedApartAndWritable) {
  Arena arena(1 << 12);
  char* previous_end = nullptr;
  for (const size_t bytes : {1u, 64u, 65u, 500u, 0u, 3u}) {
    auto* memory = static_cast<char*>(arena.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % Arena::kAlignment, 0u);
    EXPECT_GE(memory, previous_end);
    std::memset(memory, 0x5A, bytes);
    previous_end = memory + bytes;
  }
  EXPECT_EQ(arena.num_overflows(), 0);
}

TEST(Arena, AScopeGivesBackWhatItTook) {
  Arena arena(1 << 12);
  void* outer = arena.allocate(64);
  void* first;
  {
    const Arena::Scope scope(arena);
    first = arena.allocate(128);
  }
  EXPECT_EQ(arena.allocate(128), first);
  EXPECT_NE(first, outer);
}

TEST(Arena, TooLittleMemoryIsCountedAndServed) {
  Arena arena(128);
  {
    const Arena::Scope scope(arena);
    arena.allocate(128);
    auto* spilled = static_cast<char*>(arena.allocate(1000));
    std::memset(spilled, 1, 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(spilled) % Arena::kAlignment, 0u);
    EXPECT_EQ(arena.num_overflows(), 1);
  }
  arena.allocate(128);  // the arena itself is free again
  EXPECT_EQ(arena.num_overflows(), 1);
  EXPECT_GE(arena.high_water_bytes(), 1128u);
}

TEST(Arena, TensorsHaveTheShapeAskedFor) {
  Arena arena(1 << 12);
  const TensorView t = arena.tensor(DType::kFloat16, {3, 5});
  EXPECT_EQ(t.dim(0), 3);
  EXPECT_EQ(t.dim(1), 5);
  EXPECT_EQ(t.dtype, DType::kFloat16);
  const TensorView next = arena.tensor(DType::kFloat32, {1});
  EXPECT_GE(static_cast<char*>(next.raw) - static_cast<char*>(t.raw), 30);
}

TEST(PageBuffer, IsZeroedAndMoves) {
  PageBuffer buffer(10000);
  ASSERT_EQ(buffer.size(), 10000u);
  for (size_t i = 0; i < buffer.size(); ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
  std::byte* const data = buffer.data();
  PageBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  PageBuffer assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.data(), data);
  EXPECT_EQ(assigned.size(), 10000u);
}

TEST(PagePool, PiecesAreZeroedAlignedAndApart) {
  PagePool pool(size_t{1} << 20);
  std::vector<std::span<std::byte>> pieces;
  for (const size_t bytes :
       {size_t{1}, size_t{1000}, size_t{0}, size_t{3} << 20, size_t{700} << 10, size_t{500} << 10}) {
    pieces.push_back(pool.allocate(bytes));
    EXPECT_EQ(pieces.back().size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces.back().data()) % Arena::kAlignment, 0u);
    for (const std::byte byte : pieces.back()) ASSERT_EQ(byte, std::byte{0}) << "of a piece of " << bytes;
    std::fill(pieces.back().begin(), pieces.back().end(), std::byte{0xFF});
  }
}

TEST(PageBuffer, PopulatedPagesAreThereAndKeepTheirBytes) {
  PageBuffer buffer(size_t{4} << 20);
  buffer.data()[5] = std::byte{7};
  populate_pages({buffer.data() + 5, buffer.size() - 5});
  populate_pages({});
  EXPECT_EQ(buffer.data()[5], std::byte{7});
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> is_there(buffer.size() / page);
  ASSERT_EQ(::mincore(buffer.data(), buffer.size(), is_there.data()), 0);
  const PageBuffer other(size_t{4} << 20);
  std::vector<unsigned char> is_there_unasked(is_there.size());
  ASSERT_EQ(::mincore(other.data(), other.size(), is_there_unasked.data()), 0);
  EXPECT_TRUE(std::ranges::none_of(is_there_unasked, [](unsigned char one) { return (one & 1) != 0; }));
  EXPECT_TRUE(std::ranges::all_of(is_there, [](unsigned char one) { return (one & 1) != 0; }));
}

TEST(PageBuffer, WhatTheSystemRefusesIsNull) {
  EXPECT_EQ(PageBuffer::try_allocate(size_t{1} << 60).data(), nullptr);
  EXPECT_EQ(PageBuffer::try_allocate(0).data(), nullptr);
  EXPECT_EQ(PageBuffer(0).size(), 0u);
}

}  // namespace
}  // namespace transept
