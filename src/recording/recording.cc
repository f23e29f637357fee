#include "recording/recording.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace transept {
namespace {

constexpr uint64_t kWord = 4;

void check_range(const BufferRange& range) {
  CHECK(range.buffer != BufferId::kNone && range.size > 0, "an op was given no memory");
  CHECK(range.begin % kWord == 0 && range.size % kWord == 0, "a range of ", range.size, " bytes at ", range.begin,
        " is not of whole words");
  CHECK(range.begin <= UINT64_MAX - range.size);
}

bool conflict(const Access& a, const Access& b) {
  return (writes(a.use) || writes(b.use)) && overlap(a.range, b.range);
}

}  // namespace

bool overlap(const BufferRange& a, const BufferRange& b) {
  return a.buffer == b.buffer && a.begin < b.begin + b.size && b.begin < a.begin + a.size;
}

std::vector<Access> RecordedOp::accesses() const {
  switch (kind) {
    case Kind::kCopy: return {{operands[0], Use::kRead}, {operands[1], Use::kWrite}};
    case Kind::kFill: return {{operands[0], Use::kWrite}};
    case Kind::kKernel: break;
  }
  std::vector<Access> all;
  for (size_t i = 0; i < operands.size(); ++i) all.push_back({operands[i], kernel->operands[i]});
  if (grid.indirect.size > 0) all.push_back({grid.indirect, Use::kRead});
  return all;
}

void Recorder::run(const KernelSpec& kernel, std::span<const std::byte> arguments,
                   std::span<const BufferRange> operands, const Grid& grid) {
  CHECK(kernel.operands.size() <= kMaxOperands && kernel.argument_bytes <= kMaxArgumentBytes, kernel.name);
  CHECK(operands.size() == kernel.operands.size(), kernel.name, " has ", kernel.operands.size(), " operands, not ",
        operands.size());
  CHECK(arguments.size() == kernel.argument_bytes, kernel.name, " has ", kernel.argument_bytes, " bytes, not ",
        arguments.size());
  for (const BufferRange& operand : operands) check_range(operand);
  CHECK(grid.x > 0 && grid.y > 0 && grid.z > 0, kernel.name, " has an empty grid");
  if (grid.indirect.size > 0) {
    check_range(grid.indirect);
    CHECK(grid.indirect.size == 3 * kWord, kernel.name, ": a grid is three words");
  }
  ops_.push_back({.kind = RecordedOp::Kind::kKernel,
                  .kernel = &kernel,
                  .arguments = Few<std::byte, kMaxArgumentBytes>(arguments),
                  .operands = Few<BufferRange, kMaxOperands>(operands),
                  .grid = grid});
}

void Recorder::copy(const BufferRange& from, const BufferRange& to) {
  check_range(from);
  check_range(to);
  CHECK(from.size == to.size && !overlap(from, to));
  ops_.push_back({.kind = RecordedOp::Kind::kCopy, .operands = {from, to}});
}

void Recorder::fill(const BufferRange& to, uint32_t word) {
  check_range(to);
  ops_.push_back({.kind = RecordedOp::Kind::kFill, .operands = {to}, .word = word});
}

Recording Recorder::finish() { return arrange(std::exchange(ops_, {}), alignment_); }

Recording arrange(std::vector<RecordedOp> ops, uint64_t alignment) {
  Recording recording{.ops = std::move(ops)};
  std::vector<Access> of_wave;  // what the last wave's ops touch, aligned
  for (RecordedOp& op : recording.ops) {
    std::vector<Access> accesses = op.accesses();
    for (Access& access : accesses) {
      const uint64_t before = access.range.begin % alignment;
      access.range.begin -= before;
      access.range.size += before;
    }
    const bool waits = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return std::any_of(of_wave.begin(), of_wave.end(),
                         [&](const Access& before) { return conflict(access, before); });
    });
    if (waits) of_wave.clear();
    if (waits || recording.num_waves == 0) ++recording.num_waves;
    of_wave.insert(of_wave.end(), accesses.begin(), accesses.end());
    op.wave = recording.num_waves - 1;
  }
  return recording;
}

}  // namespace transept
