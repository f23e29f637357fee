// What a device is to do, as a value: ops in order, each with the ranges of memory that it reads and writes. The
// recorder finds the barriers, and no op writes one: ops of one wave touch nothing that another of them writes and may
// run in any order or at once; waves run one after the other.
//
// A recording behaves as if its ops ran one by one. It holds no address of the host and no device: any device that has
// its kernels and buffers runs it, as often as is wanted (recording/stream.h). Values; a Recorder belongs to one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/few.h"

namespace transept {

// A buffer of a device (Buffers, recording/stream.h). 0 is none, and numbers are not used twice.
enum class BufferId : uint32_t { kNone = 0 };

// Bytes [begin, begin + size) of a buffer.
struct BufferRange {
  BufferId buffer = BufferId::kNone;
  uint64_t begin = 0, size = 0;

  bool operator==(const BufferRange&) const = default;
};

// Whether they share a byte.
bool overlap(const BufferRange& a, const BufferRange& b);

// What an op does to a range. A kernel with kWrite may leave bytes of the range as they are (rows with gaps), but reads
// none.
enum class Use : uint8_t { kRead, kWrite, kReadWrite };
constexpr bool reads(Use use) { return use != Use::kWrite; }
constexpr bool writes(Use use) { return use != Use::kRead; }

struct Access {
  BufferRange range;
  Use use = Use::kRead;
};

// A kind of op: the declaration that every call of it shares. Lives as long as the process.
struct KernelSpec {
  std::string_view name;
  std::span<const Use> operands;  // what it does to each range that a call gives
  size_t argument_bytes = 0;      // beside them: numbers, at most kMaxArgumentBytes
};

constexpr size_t kMaxArgumentBytes = 112;
constexpr size_t kMaxOperands = 16;

// How many groups of lanes run. `indirect` (12 bytes, or none): the three counts stand there when the op begins.
struct Grid {
  uint32_t x = 1, y = 1, z = 1;
  BufferRange indirect = {};

  bool operator==(const Grid&) const = default;
};

struct RecordedOp {
  enum class Kind : uint8_t { kKernel, kCopy, kFill };

  Kind kind = Kind::kKernel;
  const KernelSpec* kernel = nullptr;           // kKernel
  Few<std::byte, kMaxArgumentBytes> arguments;  // kKernel
  Few<BufferRange, kMaxOperands> operands;      // kKernel: as its spec says; kCopy: from, to; kFill: to
  Grid grid;                                    // kKernel
  uint32_t word = 0;                            // kFill: what each 4 bytes become
  int32_t wave = 0;                             // as arrange() finds it

  // All that it reads and writes, as it declares it; grids in buffers too.
  std::vector<Access> accesses() const;
};

struct Recording {
  std::vector<RecordedOp> ops;  // in order; their waves never fall
  int32_t num_waves = 0;
};

// Puts ops into waves. `alignment`: a device binds ranges from such a multiple of bytes on, and its checks of barriers
// see what is bound: ops conflict where that does. A power of two.
Recording arrange(std::vector<RecordedOp> ops, uint64_t alignment);

class Recorder final {
 public:
  // `alignment`: arrange()'s.
  explicit Recorder(uint64_t alignment = 4) : alignment_(alignment) {}

  // Fails a CHECK where the kernel declares other numbers of operands or bytes, where a range is of no buffer, empty or
  // not of whole words (4 bytes), or where a grid is 0. Ranges of one op may overlap only where the kernel's own header
  // says so.
  void run(const KernelSpec& kernel, std::span<const std::byte> arguments, std::span<const BufferRange> operands,
           const Grid& grid);
  // REQUIRES: equal sizes, no overlap.
  void copy(const BufferRange& from, const BufferRange& to);
  void fill(const BufferRange& to, uint32_t word);

  bool empty() const { return ops_.empty(); }
  size_t num_ops() const { return ops_.size(); }
  // In order, and in no wave yet. Valid until the recorder is used again.
  std::span<const RecordedOp> ops() const { return ops_; }
  // Returns what was recorded, in waves. The recorder is empty then.
  Recording finish();
  // Forgets what was recorded, and keeps its memory.
  void clear() { ops_.clear(); }

 private:
  uint64_t alignment_;
  std::vector<RecordedOp> ops_;
};

}  // namespace transept
