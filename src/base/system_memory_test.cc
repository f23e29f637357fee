// A KV pool that cannot be is refused before anything is taken, with what was asked for and what there is.
#include "base/system_memory.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(SystemMemory, WhatIsFreeIsPartOfWhatThereIs) {
  EXPECT_GT(available_memory_bytes(), 0u);
  EXPECT_LE(available_memory_bytes(), total_memory_bytes());
}

TEST(SystemMemory, APoolLargerThanTheMachineIsRefused) {
  EXPECT_TRUE(check_kv_memory(16 * kGiB, 4096, 16 * kGiB).ok());
  const Status status = check_kv_memory(16 * kGiB + 1, 4096, 16 * kGiB);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(error_message(check_kv_memory(64 * kGiB, 4096, 16 * kGiB)),
            "--kv-cache-memory: 64.0 GiB is more than the 16.0 GiB of memory that this machine has");
}

TEST(SystemMemory, MoreBlocksThanIdsAreRefused) {
  EXPECT_TRUE(check_kv_memory(128 * kGiB, 128, 256 * kGiB).ok());
  EXPECT_EQ(error_message(check_kv_memory(128 * kGiB + 128, 128, 256 * kGiB)),
            "--kv-cache-memory: 128 GiB is 1073741825 blocks, more than the 1073741824 that can be counted: raise "
            "--block-size");
}

}  // namespace
}  // namespace transept
