#include "device_vulkan/vulkan_timeline.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr uint64_t kWord = 4;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kAlignment = 64;  // what DeviceMemory promises
constexpr uint64_t kSmallBytes = uint64_t{256} << 10, kSharedBytes = uint64_t{8} << 20;
constexpr uint64_t kUploadBytes = uint64_t{8} << 20, kReadbackBytes = uint64_t{4} << 20;

constexpr uint64_t whole(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

StatusOr<std::unique_ptr<VulkanTimeline>> VulkanTimeline::create(std::shared_ptr<VulkanDevice> device,
                                                                 Options options) {
  std::unique_ptr<VulkanTimeline> timeline(new VulkanTimeline(std::move(device), options));
  RETURN_IF_ERROR(timeline->open());
  return timeline;
}

Status VulkanTimeline::open() {
  ASSIGN_OR_RETURN(memory_, VulkanMemory::create(device_, options_.memory));
  ASSIGN_OR_RETURN(stream_, VulkanStream::create(device_, *memory_));
  upload_size_ = std::min(kUploadBytes, memory_->max_bytes());
  ASSIGN_OR_RETURN(upload_, memory_->allocate(upload_size_, MemoryKind::kUpload));
  ASSIGN_OR_RETURN(readback_, memory_->allocate(std::min(kReadbackBytes, memory_->max_bytes()), MemoryKind::kReadback));
  return ok_status();
}

VulkanTimeline::~VulkanTimeline() {
  for (const auto& [address, chunk] : chunks_) ::munmap(chunk->address, whole(chunk->size, kPage));
}

StatusOr<VulkanTimeline::Chunk*> VulkanTimeline::make_chunk(uint64_t size) {
  auto chunk = std::make_unique<Chunk>();
  chunk->size = size;
  ASSIGN_OR_RETURN(chunk->buffer, memory_->allocate_long(size));
  void* const address =
      ::mmap(nullptr, whole(size, kPage), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    memory_->free(chunk->buffer);
    return resource_exhausted("the process has no ", format_bytes(size), " of addresses left");
  }
  chunk->address = static_cast<std::byte*>(address);
  return chunks_.emplace(chunk->address, std::move(chunk)).first->second.get();
}

void VulkanTimeline::release(Chunk* chunk) {
  memory_->free(chunk->buffer);
  ::munmap(chunk->address, whole(chunk->size, kPage));
  chunks_.erase(chunk->address);
}

StatusOr<std::byte*> VulkanTimeline::allocate(uint64_t bytes) {
  RETURN_IF_ERROR(failure_);
  if (bytes == 0) return invalid_argument("no bytes to allocate");
  const bool is_small = bytes <= kSmallBytes;
  Chunk* chunk = is_small ? shared_ : nullptr;
  if (chunk == nullptr || bytes > chunk->size - chunk->used) {
    const uint64_t size = is_small ? std::min(kSharedBytes, memory_->max_bytes()) : whole(bytes, kWord);
    ASSIGN_OR_RETURN(chunk, make_chunk(std::max(size, whole(bytes, kWord))));
  }
  if (is_small) shared_ = chunk;
  Memory memory{chunk, chunk->used, whole(bytes, kWord)};
  chunk->used = std::min(chunk->size, whole(chunk->used + bytes, kAlignment));
  ++chunk->num_memories;
  std::byte* const first = chunk->address + memory.begin;
  memories_.emplace(first, memory);
  return first;
}

void VulkanTimeline::free(std::byte* address) {
  flush();
  const auto found = memories_.find(address);
  CHECK(found != memories_.end());
  if (!failure_.ok()) return;  // the device may be at it still
  Chunk* const chunk = found->second.chunk;
  memories_.erase(found);
  if (--chunk->num_memories > 0) return;
  if (chunk == shared_) {
    chunk->used = 0;
  } else {
    release(chunk);
  }
}

BufferRange VulkanTimeline::range(const void* address, uint64_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(address);
  auto found = memories_.upper_bound(first);
  const bool is_there = found != memories_.begin();
  if (is_there) --found;
  const uint64_t begin = is_there ? static_cast<uint64_t>(first - found->first) : 0;
  CHECK(is_there && begin <= found->second.size && bytes <= found->second.size - begin, "an op was given ", bytes,
        " bytes at ", reinterpret_cast<uintptr_t>(address), ", which is no address of the device");
  return {found->second.chunk->buffer, found->second.begin + begin, bytes};
}

void VulkanTimeline::copy_in(void* to, const void* from_host, uint64_t bytes) {
  const auto* from = static_cast<const std::byte*>(from_host);
  for (uint64_t done = 0; done < bytes && failure_.ok();) {
    const uint64_t size = std::min(bytes - done, upload_size_);
    Recorder& to_run = recorder();
    const BufferRange room = stage_room(size);
    if (!failure_.ok()) return;
    if (const Status written = memory_->write(room.buffer, room.begin, {from + done, size}); !written.ok()) {
      return fail(written);
    }
    to_run.copy(room, range(static_cast<std::byte*>(to) + done, size));
    done += size;
  }
}

void VulkanTimeline::copy_out(void* to_host, const void* from, uint64_t bytes) {
  const uint64_t most = std::min(kReadbackBytes, memory_->max_bytes());
  auto* const to = static_cast<std::byte*>(to_host);
  for (uint64_t done = 0; done < bytes && failure_.ok(); done += most) {
    const uint64_t size = std::min(bytes - done, most);
    recorder_.copy(range(static_cast<const std::byte*>(from) + done, size), {readback_, 0, size});
    flush();
    if (failure_.ok()) fail(memory_->read(readback_, 0, {to + done, size}));
  }
  if (!failure_.ok() && bytes > 0) std::memset(to_host, 0, bytes);
}

void VulkanTimeline::copy(void* to, const void* from, uint64_t bytes) {
  if (bytes > 0 && failure_.ok()) recorder().copy(range(from, bytes), range(to, bytes));
}

void VulkanTimeline::fill(void* to, uint8_t value, uint64_t bytes) {
  if (bytes > 0 && failure_.ok()) recorder().fill(range(to, bytes), value * 0x01010101u);
}

Recorder& VulkanTimeline::recorder() {
  if (recorder_.num_ops() >= options_.most_ops) flush();
  return recorder_;
}

BufferRange VulkanTimeline::stage_room(uint64_t bytes) {
  const uint64_t size = whole(std::max(bytes, kWord), kWord);
  if (upload_used_ + size > upload_size_) flush();  // what was staged has been read then
  if (size > upload_size_ && failure_.ok()) {
    const StatusOr<BufferId> larger = memory_->allocate(size, MemoryKind::kUpload);
    if (!larger.ok()) fail(larger.status());
    if (larger.ok()) {
      memory_->free(upload_);
      upload_ = *larger;
      upload_size_ = size;
    }
  }
  if (size > upload_size_) return {upload_, 0, upload_size_};  // failed: nothing will run
  const BufferRange room{upload_, upload_used_, size};
  // The next begins where ops of any device may begin to read without words of this one in front.
  upload_used_ = std::min(upload_size_, whole(upload_used_ + size, 64));
  return room;
}

std::vector<BufferRange> VulkanTimeline::stage(std::initializer_list<std::span<const std::byte>> lists) {
  uint64_t size = 0;
  for (const auto& list : lists) size += whole(std::max<uint64_t>(list.size(), kWord), kWord);
  BufferRange rest = stage_room(size);
  std::vector<BufferRange> ranges;
  for (const auto& list : lists) {
    const uint64_t words = whole(std::max<uint64_t>(list.size(), kWord), kWord);
    if (failure_.ok() && !list.empty()) fail(memory_->write(rest.buffer, rest.begin, list));
    ranges.push_back({rest.buffer, rest.begin, words});
    rest.begin += words;
  }
  return ranges;
}

void VulkanTimeline::flush() {
  if (failure_.ok() && !recorder_.empty()) fail(run());
  recorder_.finish();
  upload_used_ = 0;
}

Status VulkanTimeline::run() {
  ASSIGN_OR_RETURN(const std::unique_ptr<PreparedRecording> prepared, stream_->prepare(recorder_.finish()));
  ASSIGN_OR_RETURN(const Ticket ticket, stream_->submit(*prepared));
  return stream_->wait(ticket, std::chrono::steady_clock::now() + options_.longest_run);
}

void VulkanTimeline::fail(const Status& status) {
  if (status.ok() || !failure_.ok()) return;
  failure_ = with_prefix(status, device_->info().name);
  log_error(error_message(failure_));
}

}  // namespace transept
