// Where recordings run, and the memory that they are about. A stream is a timeline: what is submitted runs in order,
// and a ticket is the place on the timeline where it has ended. The host touches memory only of tickets that it has
// waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "recording/recording.h"

namespace transept {

// A number that grows on its stream. 0: before everything.
enum class Ticket : uint64_t { kNone = 0 };

// kDevice: the device's own, which the host does not reach. kUpload: the host writes, ops read. kReadback: ops write,
// the host reads. Ops take memory of any kind.
enum class MemoryKind : uint8_t { kDevice, kUpload, kReadback };

// The memory of a device. Used by one thread at a time.
class Buffers {
 public:
  virtual ~Buffers() = default;

  // The largest buffer, and the largest range of an op: larger things are kept in pieces.
  virtual uint64_t max_bytes() const = 0;
  // Returns memory whose content is undefined. `bytes` is rounded up to whole words. Errors: kInvalidArgument, 0 bytes
  // or more than max_bytes(); kResourceExhausted, the device or its budget has no more; kUnavailable, it is lost.
  virtual StatusOr<BufferId> allocate(uint64_t bytes, MemoryKind kind) = 0;
  // REQUIRES: no open ticket's recording has it, and no recording with it is submitted later.
  virtual void free(BufferId buffer) = 0;

  // The host's access. Errors: kInvalidArgument, a range that is not within its buffer, or a kind that does not allow
  // it.
  virtual Status write(BufferId buffer, uint64_t begin, std::span<const std::byte> from) = 0;
  virtual Status read(BufferId buffer, uint64_t begin, std::span<std::byte> to) const = 0;
};

// A recording in the device's own form. Borrows its stream, and the buffers that it is about. Its destructor waits for
// its last ticket.
class PreparedRecording {
 public:
  virtual ~PreparedRecording() = default;
};

// Used by one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;

  // Errors: kInvalidArgument, a range is not within its buffer or a grid is larger than the device's; kNotFound, it has
  // no such kernel; kResourceExhausted.
  virtual StatusOr<std::unique_ptr<PreparedRecording>> prepare(const Recording& recording) = 0;
  // Runs it after all that was submitted before. Errors: kFailedPrecondition, its last ticket is open; kUnavailable,
  // the device is lost: every later call says so too.
  virtual StatusOr<Ticket> submit(PreparedRecording& recording) = 0;
  // Waits until the ticket's recording has ended; the host then sees what it wrote. A deadline in the past asks without
  // waiting. Errors: kDeadlineExceeded, kUnavailable.
  virtual Status wait(Ticket ticket, TimePoint deadline) = 0;
};

}  // namespace transept
