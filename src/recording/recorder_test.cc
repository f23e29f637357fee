// Waves by hand, and random programs on the checking device against the same program run op by op. A declaration that
// is taken away, and a barrier that is, must show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "recording/checking_device_testing.h"
#include "recording/recording.h"

namespace transept {
namespace {

using testing::CheckingDevice;
using ::testing::ElementsAre;

constexpr Use kCopyUses[] = {Use::kRead, Use::kWrite};
constexpr KernelSpec kMove{"move", kCopyUses};

BufferRange range(uint32_t buffer, uint64_t begin, uint64_t size) { return {BufferId{buffer}, begin, size}; }

void move(Recorder& recorder, const BufferRange& from, const BufferRange& to, const Grid& grid = {}) {
  recorder.run(kMove, {}, std::array{from, to}, grid);
}

std::vector<int> waves(const Recording& recording) {
  std::vector<int> all;
  for (const RecordedOp& op : recording.ops) all.push_back(op.wave);
  return all;
}

TEST(RecorderTest, OpsThatTouchNothingInCommonAreOneWave) {
  Recorder recorder;
  move(recorder, range(1, 0, 64), range(2, 0, 64));
  move(recorder, range(1, 0, 64), range(2, 64, 64));  // the same is read, neighbours are written
  move(recorder, range(1, 64, 64), range(3, 0, 64));  // the same bytes of another buffer
  const Recording recording = recorder.finish();
  EXPECT_THAT(waves(recording), ElementsAre(0, 0, 0));
  EXPECT_EQ(recording.num_waves, 1);
  EXPECT_TRUE(recorder.empty());
}

TEST(RecorderTest, AnOpWaitsForWhatItReadsAndOverwrites) {
  Recorder recorder;
  move(recorder, range(1, 0, 64), range(2, 0, 64));
  move(recorder, range(2, 60, 4), range(3, 0, 4));   // reads what was written
  move(recorder, range(4, 0, 64), range(2, 0, 64));  // overwrites what is read
  move(recorder, range(4, 0, 4), range(2, 60, 4));   // overwrites what was written
  recorder.fill(range(4, 0, 4), 7);                  // overwrites what is read
  recorder.copy(range(4, 0, 4), range(5, 0, 4));     // reads it
  recorder.copy(range(6, 0, 4), range(5, 4, 4));     // waits for nothing
  EXPECT_THAT(waves(recorder.finish()), ElementsAre(0, 1, 2, 3, 4, 5, 5));
}

TEST(RecorderTest, AnOpWaitsForOpsOfItsWaveThatCameEarlier) {
  Recorder recorder;
  move(recorder, range(1, 0, 4), range(2, 0, 4));
  move(recorder, range(1, 0, 4), range(3, 0, 4));
  move(recorder, range(2, 0, 4), range(4, 0, 4));
  move(recorder, range(3, 0, 4), range(5, 0, 4));  // its writer is a wave before
  EXPECT_THAT(waves(recorder.finish()), ElementsAre(0, 0, 1, 1));
}

// What a device binds for the second begins within what the first writes.
TEST(RecorderTest, AnOpWaitsForWhatLiesInTheWayOfItsAlignment) {
  for (const uint64_t alignment : {4u, 16u}) {
    Recorder recorder(alignment);
    move(recorder, range(1, 0, 64), range(2, 0, 8));
    move(recorder, range(1, 0, 64), range(2, 8, 64));
    move(recorder, range(1, 0, 64), range(2, 80, 8));
    const Recording recording = recorder.finish();
    EXPECT_EQ(recording.ops[1].wave, alignment == 4 ? 0 : 1);
    EXPECT_EQ(recording.ops[2].wave, recording.ops[1].wave) << "its own line";
  }
}

TEST(RecorderTest, AGridInABufferIsRead) {
  Recorder recorder;
  move(recorder, range(1, 0, 64), range(2, 0, 64));
  move(recorder, range(3, 0, 4), range(4, 0, 4), {.indirect = range(2, 4, 12)});
  EXPECT_THAT(waves(recorder.finish()), ElementsAre(0, 1));
}

TEST(RecorderTest, AnotherRecordingBeginsAtItsFirstWave) {
  Recorder recorder;
  recorder.fill(range(1, 0, 4), 1);
  recorder.fill(range(1, 0, 4), 2);
  EXPECT_EQ(recorder.finish().num_waves, 2);
  recorder.fill(range(1, 0, 4), 3);
  const Recording second = recorder.finish();
  EXPECT_THAT(waves(second), ElementsAre(0));
  EXPECT_EQ(second.num_waves, 1);
}

TEST(RecorderDeathTest, RefusesWhatIsNoOp) {
  Recorder recorder;
  EXPECT_DEATH(recorder.run(kMove, {}, std::array{range(1, 0, 4)}, {}), "move has 2 operands, not 1");
  EXPECT_DEATH(move(recorder, range(1, 0, 4), range(2, 0, 0)), "no memory");
  EXPECT_DEATH(move(recorder, range(0, 0, 4), range(2, 0, 4)), "no memory");
  EXPECT_DEATH(move(recorder, range(1, 2, 4), range(2, 0, 4)), "whole words");
  EXPECT_DEATH(move(recorder, range(1, 0, 4), range(2, 0, 4), {.y = 0}), "empty grid");
  EXPECT_DEATH(recorder.copy(range(1, 0, 8), range(1, 4, 8)), "overlap");
  const std::byte argument{};
  EXPECT_DEATH(recorder.run(kMove, std::span(&argument, 1), std::array{range(1, 0, 4), range(2, 0, 4)}, {}), "bytes");
}

// Random programs. An instruction works on ranges of kSpan words.
constexpr uint32_t kNumBuffers = 3, kWords = 48, kSpan = 8;

enum class What : uint8_t { kAdd, kStep, kEverySecond, kCopy, kFill };
constexpr int kNumKernels = 3;  // the first three
struct Place {
  uint32_t buffer, word;
};
struct Instruction {
  What what;
  std::array<Place, 3> at;  // kAdd: 0 and 1 to 2; kStep: 0; kEverySecond, kCopy: 0 to 1; kFill: 0
  uint32_t number;
};

using Words = std::vector<uint32_t>;

// The definition: one instruction on memory as it is.
void step(What what, uint32_t number, const std::array<uint32_t*, 3>& at) {
  for (uint32_t i = 0; i < kSpan; ++i) {
    if (what == What::kAdd) at[2][i] = at[0][i] + at[1][i];
    if (what == What::kStep) at[0][i] = at[0][i] * 3 + number;
    if (what == What::kEverySecond && i % 2 == 0) at[1][i] = at[0][i] ^ number;
    if (what == What::kCopy) at[1][i] = at[0][i];
    if (what == What::kFill) at[0][i] = number;
  }
}

std::vector<Words> run_in_order(const std::vector<Instruction>& program, std::vector<Words> memory) {
  for (const Instruction& instruction : program) {
    std::array<uint32_t*, 3> at{};
    for (size_t i = 0; i < 3; ++i) at[i] = memory[instruction.at[i].buffer].data() + instruction.at[i].word;
    step(instruction.what, instruction.number, at);
  }
  return memory;
}

bool apart(const Place& a, const Place& b) {
  return a.buffer != b.buffer || a.word + kSpan <= b.word || b.word + kSpan <= a.word;
}

std::vector<Instruction> random_program(std::mt19937& rng) {
  std::vector<Instruction> program;
  while (program.size() < 40) {
    Instruction next{What(rng() % 5), {}, static_cast<uint32_t>(rng())};
    for (Place& place : next.at) {
      place = {static_cast<uint32_t>(rng() % kNumBuffers), static_cast<uint32_t>(rng() % (kWords - kSpan + 1))};
    }
    const bool is_apart = apart(next.at[0], next.at[1]) &&
                          (next.what != What::kAdd || (apart(next.at[0], next.at[2]) && apart(next.at[1], next.at[2])));
    if (is_apart) program.push_back(next);
  }
  return program;
}

// The declarations of kAdd, kStep and kEverySecond; a test changes one.
struct Declarations {
  std::array<std::array<Use, 3>, kNumKernels> uses{
      {{Use::kRead, Use::kRead, Use::kWrite}, {Use::kReadWrite}, {Use::kRead, Use::kWrite}}};

  static size_t num_operands(int kernel) {
    return std::array<size_t, kNumKernels>{3, 1, 2}[static_cast<size_t>(kernel)];
  }
};

// Runs the program on a checking device. `spoil` changes what was recorded.
std::vector<Words> run_recorded(const std::vector<Instruction>& program, const std::vector<Words>& memory,
                                uint32_t seed, const Declarations& declarations, void (*spoil)(Recording&) = nullptr) {
  CheckingDevice device(seed);
  std::array<KernelSpec, kNumKernels> specs{};
  for (int kernel = 0; kernel < kNumKernels; ++kernel) {
    const auto k = static_cast<size_t>(kernel);
    specs[k] = {"kernel", std::span(declarations.uses[k]).first(Declarations::num_operands(kernel)), 4};
    device.add_kernel(specs[k], [kernel](std::span<const std::byte> arguments,
                                         std::span<const std::span<std::byte>> operands, const Grid&) {
      std::array<uint32_t*, 3> at{};
      for (size_t i = 0; i < operands.size(); ++i) at[i] = reinterpret_cast<uint32_t*>(operands[i].data());
      uint32_t number = 0;
      std::memcpy(&number, arguments.data(), sizeof number);
      step(What(kernel), number, at);
    });
  }
  constexpr uint64_t kBytes = kWords * sizeof(uint32_t);
  std::array<BufferId, kNumBuffers> up{}, there{}, back{};
  Recorder recorder;
  for (size_t b = 0; b < kNumBuffers; ++b) {
    up[b] = *device.allocate(kBytes, MemoryKind::kUpload);
    there[b] = *device.allocate(kBytes, MemoryKind::kDevice);
    back[b] = *device.allocate(kBytes, MemoryKind::kReadback);
    EXPECT_TRUE(device.write(up[b], 0, std::as_bytes(std::span(memory[b]))).ok());
    recorder.copy({up[b], 0, kBytes}, {there[b], 0, kBytes});
  }
  for (const Instruction& instruction : program) {
    std::array<BufferRange, 3> at;
    for (size_t i = 0; i < 3; ++i) {
      at[i] = {there[instruction.at[i].buffer], instruction.at[i].word * sizeof(uint32_t), kSpan * sizeof(uint32_t)};
    }
    const auto what = static_cast<size_t>(instruction.what);
    if (instruction.what == What::kCopy) {
      recorder.copy(at[0], at[1]);
    } else if (instruction.what == What::kFill) {
      recorder.fill(at[0], instruction.number);
    } else {
      recorder.run(specs[what], std::as_bytes(std::span(&instruction.number, 1)),
                   std::span(at).first(specs[what].operands.size()), {});
    }
  }
  for (size_t b = 0; b < kNumBuffers; ++b) recorder.copy({there[b], 0, kBytes}, {back[b], 0, kBytes});
  Recording recording = recorder.finish();
  if (spoil != nullptr) spoil(recording);
  const auto prepared = device.prepare(recording);
  EXPECT_TRUE(device.wait(device.submit(**prepared).value(), {}).ok());
  std::vector<Words> result(kNumBuffers, Words(kWords));
  for (size_t b = 0; b < kNumBuffers; ++b) {
    EXPECT_TRUE(device.read(back[b], 0, std::as_writable_bytes(std::span(result[b]))).ok());
  }
  return result;
}

// How many of these programs come out as they do in order.
int num_right(const Declarations& declarations, void (*spoil)(Recording&) = nullptr) {
  int right = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 rng(seed);
    std::vector<Words> memory(kNumBuffers, Words(kWords));
    for (Words& words : memory) {
      for (uint32_t& word : words) word = static_cast<uint32_t>(rng());
    }
    const std::vector<Instruction> program = random_program(rng);
    right += run_in_order(program, memory) == run_recorded(program, memory, seed, declarations, spoil) ? 1 : 0;
  }
  return right;
}

TEST(CheckingDeviceTest, ProgramsComeOutAsTheyDoInOrder) { EXPECT_EQ(num_right({}), 60); }

TEST(CheckingDeviceTest, ADeclarationThatIsMissingShows) {
  for (int kernel = 0; kernel < kNumKernels; ++kernel) {
    for (size_t operand = 0; operand < Declarations::num_operands(kernel); ++operand) {
      for (const Use less : {Use::kRead, Use::kWrite}) {
        Declarations declarations;
        Use& use = declarations.uses[static_cast<size_t>(kernel)][operand];
        if (use == less) continue;
        use = less;
        EXPECT_LT(num_right(declarations), 30) << "kernel " << kernel << " operand " << operand;
      }
    }
  }
}

TEST(CheckingDeviceTest, ABarrierThatIsMissingShows) {
  EXPECT_LT(num_right({},
                      [](Recording& recording) {
                        for (RecordedOp& op : recording.ops) op.wave /= 2;
                      }),
            30);
}

class TicketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Recorder recorder;
    recorder.copy({up_, 0, 8}, {there_, 0, 8});
    recorder.copy({there_, 0, 8}, {back_, 0, 8});
    prepared_ = device_.prepare(recorder.finish()).value();
    ASSERT_TRUE(device_.write(up_, 0, std::as_bytes(std::span(words_))).ok());
  }

  CheckingDevice device_{1};
  BufferId up_ = *device_.allocate(16, MemoryKind::kUpload), there_ = *device_.allocate(8, MemoryKind::kDevice),
           back_ = *device_.allocate(16, MemoryKind::kReadback);
  std::unique_ptr<PreparedRecording> prepared_;
  std::array<uint32_t, 2> words_{5, 6}, result_{};
};

TEST_F(TicketTest, TheHostWaitsBeforeItTouchesWhatARecordingHas) {
  const auto out = std::as_writable_bytes(std::span(result_));
  const Ticket ticket = *device_.submit(*prepared_);
  EXPECT_TRUE(absl::IsFailedPrecondition(device_.write(up_, 0, std::as_bytes(std::span(words_)))));
  EXPECT_TRUE(absl::IsFailedPrecondition(device_.write(up_, 4, std::as_bytes(std::span(words_)))));
  EXPECT_TRUE(absl::IsFailedPrecondition(device_.read(back_, 0, out)));
  EXPECT_TRUE(device_.write(up_, 8, std::as_bytes(std::span(words_))).ok());  // beside
  EXPECT_TRUE(device_.read(back_, 8, out).ok());
  ASSERT_TRUE(device_.wait(ticket, {}).ok());
  EXPECT_TRUE(device_.write(up_, 0, std::as_bytes(std::span(words_))).ok());
  ASSERT_TRUE(device_.read(back_, 0, out).ok());
  EXPECT_EQ(result_, words_);
}

TEST_F(TicketTest, ARecordingIsReplayedAfterItsTicket) {
  const Ticket first = *device_.submit(*prepared_);
  EXPECT_TRUE(absl::IsFailedPrecondition(device_.submit(*prepared_).status()));
  ASSERT_TRUE(device_.wait(first, {}).ok());
  const std::array<uint32_t, 2> others{7, 8};
  ASSERT_TRUE(device_.write(up_, 0, std::as_bytes(std::span(others))).ok());
  const Ticket second = *device_.submit(*prepared_);
  EXPECT_GT(second, first);
  ASSERT_TRUE(device_.wait(second, {}).ok());
  ASSERT_TRUE(device_.read(back_, 0, std::as_writable_bytes(std::span(result_))).ok());
  EXPECT_EQ(result_, others);
}

TEST_F(TicketTest, RefusesWhatIsNotThere) {
  EXPECT_FALSE(device_.allocate(0, MemoryKind::kDevice).ok());
  EXPECT_FALSE(device_.allocate(device_.max_bytes() + 1, MemoryKind::kDevice).ok());
  EXPECT_FALSE(device_.write(back_, 0, std::as_bytes(std::span(words_))).ok());
  EXPECT_FALSE(device_.read(up_, 0, std::as_writable_bytes(std::span(result_))).ok());
  EXPECT_FALSE(device_.read(back_, 12, std::as_writable_bytes(std::span(result_))).ok());
  Recorder recorder;
  recorder.copy({there_, 4, 8}, {back_, 0, 8});
  EXPECT_FALSE(device_.prepare(recorder.finish()).ok());
  recorder.run(kMove, {}, std::array{BufferRange{there_, 0, 4}, BufferRange{back_, 0, 4}}, {});
  EXPECT_TRUE(absl::IsNotFound(device_.prepare(recorder.finish()).status()));
}

}  // namespace
}  // namespace transept
