#include "device_vulkan/vulkan_timeline.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/clock.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr uint64_t kWord = 4;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kAlignment = 64;  // what DeviceMemory promises
constexpr uint64_t kSmallBytes = uint64_t{256} << 10, kSharedBytes = uint64_t{8} << 20;
constexpr uint64_t kUploadBytes = uint64_t{8} << 20, kReadbackBytes = uint64_t{4} << 20;
constexpr uint64_t kTableBytes = uint64_t{1} << 20;
// Of fused ops: of 64 rows of the largest models, or of more rows of smaller ones.
constexpr uint64_t kArrivalBytes = uint64_t{16} << 10, kSumBytes = uint64_t{8} << 20;
constexpr uint64_t kRoundingBytes = uint64_t{1} << 20;  // 64 rows of 4096 inputs, twice, and more
constexpr uint64_t kRoomAlignment = 256;                // of ranges of any device
constexpr size_t kMostOnce = 8;                         // recordings that are submitted and not waited for

// Of the processor, that this thread has had.
double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

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
  RETURN_IF_ERROR(open_area(kUploadBytes, upload_));
  if (options_.keeps_recordings) {
    RETURN_IF_ERROR(open_area(kUploadBytes, step_upload_));
    RETURN_IF_ERROR(open_area(kTableBytes, tables_));
  }
  if (options_.fuses) RETURN_IF_ERROR(open_fusion());
  ASSIGN_OR_RETURN(readback_, memory_->allocate(std::min(kReadbackBytes, memory_->max_bytes()), MemoryKind::kReadback));
  return ok_status();
}

Status VulkanTimeline::open_fusion() {
  const uint64_t sum_bytes = std::min(kSumBytes, memory_->max_bytes());
  ASSIGN_OR_RETURN(const BufferId arrivals, memory_->allocate(kArrivalBytes, MemoryKind::kDevice));
  ASSIGN_OR_RETURN(const BufferId sums, memory_->allocate(sum_bytes, MemoryKind::kDevice));
  fusion_ = {{arrivals, 0, kArrivalBytes}, {sums, 0, sum_bytes}, info().max_operands};
  recorder_.fill(fusion_.arrivals, 0);
  return ok_status();
}

Status VulkanTimeline::open_area(uint64_t bytes, UploadArea& area) {
  area.size = std::min(bytes, memory_->max_bytes());
  ASSIGN_OR_RETURN(area.buffer, memory_->allocate(area.size, MemoryKind::kUpload));
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
  kept_.forget(chunk->buffer);
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
    const uint64_t size = std::min(bytes - done, (in_step_ ? step_upload_ : upload_).size);
    Recorder& to_run = recorder();
    const BufferRange room = take_room(size);
    if (!failure_.ok()) return;
    if (const Status written = memory_->write(room.buffer, room.begin, {from + done, size}); !written.ok()) {
      return fail(written);
    }
    to_run.copy(room, range(static_cast<std::byte*>(to) + done, size));
    done += size;
  }
}

void VulkanTimeline::copy_out(void* to_host, const void* from, uint64_t bytes, uint64_t most) {
  CHECK(bytes <= most);
  const uint64_t piece = std::min(kReadbackBytes, memory_->max_bytes());
  auto* const to = static_cast<std::byte*>(to_host);
  for (uint64_t done = 0; done < bytes && failure_.ok(); done += piece) {
    const uint64_t size = std::min(most - done, piece);
    if (in_step_) counts_.read_back_bytes += static_cast<int64_t>(size);
    usage_.read_back_bytes += static_cast<int64_t>(size);
    recorder_.copy(range(static_cast<const std::byte*>(from) + done, size), {readback_, 0, size});
    flush();
    if (failure_.ok()) fail(memory_->read(readback_, 0, {to + done, std::min(bytes - done, size)}));
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
  if (in_step_ && !host_at_.has_value()) host_at_ = thread_seconds();
  if (recorder_.num_ops() >= options_.most_ops) submit();
  return recorder_;
}

// REQUIRES: nothing is recorded that was not submitted.
void VulkanTimeline::enlarge(uint64_t bytes, UploadArea& area) {
  wait_for_all();
  if (!failure_.ok()) return;
  const StatusOr<BufferId> larger = memory_->allocate(bytes, MemoryKind::kUpload);
  if (!larger.ok()) return fail(larger.status());
  kept_.forget(area.buffer);
  memory_->free(area.buffer);
  area = {*larger, bytes, 0};
}

BufferRange VulkanTimeline::take_room(uint64_t bytes) {
  UploadArea& area = in_step_ ? step_upload_ : upload_;
  const uint64_t size = whole(std::max(bytes, kWord), kWord);
  if (area.used + size > area.size) flush();  // what was staged has been read then
  if (size > area.size) enlarge(size, area);
  if (size > area.size) return {area.buffer, 0, area.size};  // failed: nothing will run
  const BufferRange room{area.buffer, area.used, size};
  if (in_step_) counts_.uploaded_bytes += static_cast<int64_t>(size);
  // The next begins where ops of any device may begin to read without words of this one in front.
  area.used = std::min(area.size, whole(area.used + size, 64));
  return room;
}

VulkanTimeline::StagedRoom VulkanTimeline::stage_room(uint64_t bytes) {
  const BufferRange range = take_room(bytes);
  return {range, failure_.ok() ? memory_->host_place(range) : nullptr};
}

std::vector<BufferRange> VulkanTimeline::stage(std::initializer_list<std::span<const std::byte>> lists) {
  uint64_t size = 0;
  for (const auto& list : lists) size += whole(std::max<uint64_t>(list.size(), kWord), kWord);
  BufferRange rest = take_room(size);
  std::vector<BufferRange> ranges;
  ranges.reserve(lists.size());
  for (const auto& list : lists) {
    const uint64_t words = whole(std::max<uint64_t>(list.size(), kWord), kWord);
    if (failure_.ok() && !list.empty()) fail(memory_->write(rest.buffer, rest.begin, list));
    ranges.push_back({rest.buffer, rest.begin, words});
    rest.begin += words;
  }
  return ranges;
}

BufferRange VulkanTimeline::stage_once(std::span<const std::byte> list) {
  if (in_step_) {
    for (const StagedList& other : staged_once_) {
      if (std::ranges::equal(other.bytes, list)) return other.range;
    }
  }
  const BufferRange range = stage({list})[0];
  if (in_step_) staged_once_.push_back({{list.begin(), list.end()}, range});
  return range;
}

// All layers of a spec have the same table: it is there once.
VulkanTimeline::StagedTable VulkanTimeline::stage_table(std::span<const std::byte> table) {
  CHECK(in_step_ && table.size() % kWord == 0);
  const auto is_there = [&](const Table& other) {
    return other.size == table.size() && std::equal(table.begin(), table.end(), &staged_tables_[other.begin]);
  };
  const auto found = table.empty() ? tables_of_step_.end() : std::ranges::find_if(tables_of_step_, is_there);
  if (found != tables_of_step_.end()) {
    return {{tables_.buffer, 0, tables_.size}, static_cast<uint32_t>(found->begin / kWord)};
  }
  if (table.size() > tables_.size - staged_tables_.size()) {
    flush();
    enlarge(std::max(2 * tables_.size, whole(2 * table.size(), kWord)), tables_);
    staged_tables_.clear();
    tables_of_step_.clear();
  }
  const uint64_t begin = staged_tables_.size();
  if (failure_.ok()) {
    fail(memory_->write(tables_.buffer, begin, table));
    counts_.uploaded_bytes += static_cast<int64_t>(table.size());
    staged_tables_.insert(staged_tables_.end(), table.begin(), table.end());
    tables_of_step_.push_back({begin, table.size()});
  }
  return {{tables_.buffer, 0, tables_.size}, static_cast<uint32_t>(begin / kWord)};
}

std::optional<VulkanTimeline::RoundingRoom> VulkanTimeline::next_rounding_room(uint64_t q_bytes, uint64_t codes_bytes) {
  const uint64_t first_code = whole(q_bytes, kRoomAlignment);
  if (!options_.fuses || !failure_.ok() || first_code + codes_bytes > std::min(kRoundingBytes, memory_->max_bytes())) {
    return std::nullopt;
  }
  BufferId& room = rounding_rooms_[next_rounding_];
  if (room == BufferId::kNone) {
    const StatusOr<BufferId> made =
        memory_->allocate(std::min(kRoundingBytes, memory_->max_bytes()), MemoryKind::kDevice);
    if (!made.ok()) return std::nullopt;
    room = *made;
  }
  next_rounding_ = 1 - next_rounding_;
  return RoundingRoom{{room, 0, q_bytes}, {room, first_code, codes_bytes}};
}

void VulkanTimeline::begin_step() {
  CHECK(!in_step_);
  next_rounding_ = 0;
  submit();
  if (!options_.keeps_recordings) return;
  if (failure_.ok()) fail(wait(last_of_step_));
  in_step_ = true;
  step_upload_.used = 0;
  staged_tables_.clear();
  tables_of_step_.clear();
  staged_once_.clear();
  counts_ = {};
  host_at_ = thread_seconds();
}

StepCounts VulkanTimeline::end_step() {
  submit();
  in_step_ = false;
  host_at_.reset();
  return counts_;
}

void VulkanTimeline::flush() {
  submit();
  wait_for_all();
}

void VulkanTimeline::submit() {
  if (failure_.ok() && !recorder_.empty()) fail(in_step_ ? submit_kept() : submit_once());
  recorder_.clear();
  if (!in_step_ || !host_at_.has_value()) return;
  const double now = thread_seconds();
  counts_.host_seconds += now - *host_at_;
  host_at_ = now;
}

Recording VulkanTimeline::to_submit() const {
  std::vector<RecordedOp> ops;
  if (options_.fuses) {
    ops = fuse_ops(recorder_.ops(), fusion_);
  } else {
    ops.assign(recorder_.ops().begin(), recorder_.ops().end());
  }
  return arrange(std::move(ops), info().range_alignment);
}

Status VulkanTimeline::submit_once() {
  if (once_.size() >= kMostOnce) {
    RETURN_IF_ERROR(wait(last_));
    once_.clear();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<PreparedRecording> prepared, stream_->prepare(to_submit()));
  ASSIGN_OR_RETURN(last_, submit(*prepared));
  once_.push_back(std::move(prepared));
  return ok_status();
}

Status VulkanTimeline::submit_kept() {
  KeptRecording* kept = kept_.find(recorder_.ops());
  if (kept == nullptr) {
    const Recording fused = to_submit();
    ASSIGN_OR_RETURN(std::unique_ptr<PreparedRecording> prepared, stream_->prepare(fused));
    kept = &kept_.keep({.ops = {recorder_.ops().begin(), recorder_.ops().end()}}, std::move(prepared));
    kept->num_dispatches = std::count_if(fused.ops.begin(), fused.ops.end(),
                                         [](const RecordedOp& op) { return op.kind == RecordedOp::Kind::kKernel; });
    ++counts_.num_recorded;
  } else {
    RETURN_IF_ERROR(wait(kept->last));  // a step may have the same ops twice
    ++counts_.num_replayed;
  }
  ASSIGN_OR_RETURN(last_, submit(*kept->prepared));
  kept->last = last_of_step_ = last_;
  counts_.num_dispatches += kept->num_dispatches;
  return ok_status();
}

StatusOr<Ticket> VulkanTimeline::submit(PreparedRecording& prepared) {
  ASSIGN_OR_RETURN(const Ticket ticket, stream_->submit(prepared));
  if (!busy_since_.has_value()) busy_since_ = steady_now();
  ++usage_.num_submits;
  return ticket;
}

Status VulkanTimeline::wait(Ticket ticket) {
  Status ended = stream_->wait(ticket, steady_now() + options_.longest_run);
  if (ended.ok() && ticket == last_ && busy_since_.has_value()) {
    usage_.busy_seconds += std::chrono::duration<double>(steady_now() - *busy_since_).count();
    busy_since_.reset();
  }
  return ended;
}

DeviceUsage VulkanTimeline::usage() const {
  DeviceUsage usage = usage_;
  usage.own_bytes = memory_->used_bytes();
  usage.transfer_bytes = memory_->host_bytes();
  return usage;
}

// REQUIRES: nothing is recorded that was not submitted.
void VulkanTimeline::wait_for_all() {
  host_at_.reset();
  if (failure_.ok()) fail(wait(last_));
  once_.clear();
  staged_once_.clear();
  upload_.used = step_upload_.used = 0;
}

void VulkanTimeline::fail(const Status& status) {
  if (status.ok() || !failure_.ok()) return;
  failure_ = with_prefix(status, device_->info().name);
  log_error(error_message(failure_));
}

}  // namespace transept
