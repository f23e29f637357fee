// What is found again, what is given up, and that a recording runs again with what its memory has by then.
#include "recording/kept_recordings.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "recording/checking_device_testing.h"

namespace transept {
namespace {

using testing::CheckingDevice;

constexpr Use kUses[] = {Use::kRead, Use::kWrite};
constexpr KernelSpec kMove{"move", kUses, 4};
constexpr KernelSpec kOther{"other", kUses, 4};

BufferRange range(uint32_t buffer, uint64_t begin, uint64_t size) { return {BufferId{buffer}, begin, size}; }

struct Call {
  const KernelSpec* kernel = &kMove;
  uint32_t argument = 7;
  BufferRange from = range(1, 0, 64), to = range(2, 0, 64);
  Grid grid = {};
};

Recorder recorded(const Call& call) {
  Recorder recorder;
  recorder.run(*call.kernel, std::as_bytes(std::span(&call.argument, 1)), std::array{call.from, call.to}, call.grid);
  return recorder;
}

std::unique_ptr<PreparedRecording> nothing() { return std::make_unique<PreparedRecording>(); }

TEST(KeptRecordingsTest, WhatIsTheSameIsFound) {
  KeptRecordings kept(8);
  kept.keep(recorded({}).finish(), nothing());
  EXPECT_NE(kept.find(recorded({}).ops()), nullptr);
  const std::vector<Call> others = {
      {.kernel = &kOther},
      {.argument = 8},
      {.from = range(1, 4, 64)},
      {.from = range(3, 0, 64)},
      {.to = range(2, 0, 60)},
      {.grid = {.y = 2}},
      {.grid = {.indirect = range(3, 0, 12)}},
  };
  for (size_t i = 0; i < others.size(); ++i) EXPECT_EQ(kept.find(recorded(others[i]).ops()), nullptr) << i;
  Recorder longer = recorded({});
  longer.fill(range(5, 0, 4), 1);
  EXPECT_EQ(kept.find(longer.ops()), nullptr);
  KeptRecording& of_two = kept.keep(Recorder(longer).finish(), nothing());
  EXPECT_EQ(kept.find(longer.ops()), &of_two);
  Recorder other_word = recorded({});
  other_word.fill(range(5, 0, 4), 2);
  EXPECT_EQ(kept.find(other_word.ops()), nullptr);
  Recorder copy;
  copy.copy(range(1, 0, 64), range(2, 0, 64));
  EXPECT_EQ(kept.find(copy.ops()), nullptr);
}

TEST(KeptRecordingsTest, WhatWasNotUsedForLongestIsGivenUp) {
  KeptRecordings kept(3);
  for (uint32_t i = 0; i < 3; ++i) kept.keep(recorded({.argument = i}).finish(), nothing());
  ASSERT_NE(kept.find(recorded({.argument = 0}).ops()), nullptr);
  kept.keep(recorded({.argument = 3}).finish(), nothing());
  EXPECT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept.find(recorded({.argument = 1}).ops()), nullptr);
  for (const uint32_t i : {0u, 2u, 3u}) EXPECT_NE(kept.find(recorded({.argument = i}).ops()), nullptr) << i;
}

TEST(KeptRecordingsTest, ABufferThatGoesTakesItsRecordings) {
  KeptRecordings kept(8);
  kept.keep(recorded({}).finish(), nothing());
  kept.keep(recorded({.from = range(3, 0, 64)}).finish(), nothing());
  kept.keep(recorded({.from = range(4, 0, 64), .grid = {.indirect = range(3, 0, 12)}}).finish(), nothing());
  kept.forget(BufferId{9});
  EXPECT_EQ(kept.size(), 3u);
  kept.forget(BufferId{3});
  EXPECT_EQ(kept.size(), 1u);
  EXPECT_NE(kept.find(recorded({}).ops()), nullptr);
}

// Sums over a chain of ops, of other numbers each time, on a device that runs a wave's ops in random order and refuses
// what the host may not touch.
TEST(KeptRecordingsTest, EachRunHasWhatItsMemoryHas) {
  constexpr uint64_t kBytes = 32;
  CheckingDevice device(5);
  device.add_kernel(
      kMove, [](std::span<const std::byte> arguments, std::span<const std::span<std::byte>> operands, const Grid&) {
        uint32_t added = 0;
        std::memcpy(&added, arguments.data(), sizeof added);
        for (size_t i = 0; i < kBytes; i += 4) {
          uint32_t word = 0;
          std::memcpy(&word, operands[0].data() + i, 4);
          word += added;
          std::memcpy(operands[1].data() + i, &word, 4);
        }
      });
  const BufferId up = *device.allocate(kBytes, MemoryKind::kUpload),
                 back = *device.allocate(kBytes, MemoryKind::kReadback);
  const BufferId one = *device.allocate(kBytes, MemoryKind::kDevice),
                 two = *device.allocate(kBytes, MemoryKind::kDevice);
  KeptRecordings kept(4);
  std::mt19937 rng(1);
  int num_recorded = 0;
  for (int step = 0; step < 1000; ++step) {
    const uint32_t last = step % 10 == 9 ? 5 : 3;  // now and then another step
    const std::vector<uint32_t> words(kBytes / 4, static_cast<uint32_t>(rng()));
    ASSERT_TRUE(device.write(up, 0, std::as_bytes(std::span(words))).ok()) << "the last run has ended";
    Recorder recorder;
    const auto move = [&](BufferId from, BufferId to, uint32_t added) {
      recorder.run(kMove, std::as_bytes(std::span(&added, 1)),
                   std::array{BufferRange{from, 0, kBytes}, BufferRange{to, 0, kBytes}}, {});
    };
    move(up, one, 1);
    move(one, two, 2);
    move(two, back, last);
    KeptRecording* run = kept.find(recorder.ops());
    if (run == nullptr) {
      Recording recording = recorder.finish();
      EXPECT_EQ(recording.num_waves, 3);
      auto prepared = *device.prepare(recording);
      run = &kept.keep(std::move(recording), std::move(prepared));
      ++num_recorded;
    }
    run->last = *device.submit(*run->prepared);
    EXPECT_TRUE(absl::IsFailedPrecondition(device.write(up, 0, std::as_bytes(std::span(words))))) << "it may run";
    ASSERT_TRUE(device.wait(run->last, {}).ok());
    std::vector<uint32_t> read(words.size());
    ASSERT_TRUE(device.read(back, 0, std::as_writable_bytes(std::span(read))).ok());
    for (const uint32_t word : read) ASSERT_EQ(word, words[0] + 3 + last) << step;
  }
  EXPECT_EQ(num_recorded, 2);
}

}  // namespace
}  // namespace transept
