#include "device_vulkan/vulkan_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "device_vulkan/query_device.h"

namespace transept {
namespace {

constexpr uint64_t kWord = 4;
// Ranges count words in 32 bits, beside what aligning may add.
constexpr uint64_t kMostRange = (uint64_t{1} << 32) - 4096;

struct Wanted {
  VkMemoryPropertyFlags needed, better;
};

constexpr Wanted wanted(MemoryKind kind) {
  constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  switch (kind) {
    case MemoryKind::kUpload: return {kHost, 0};
    case MemoryKind::kReadback: return {kHost, VK_MEMORY_PROPERTY_HOST_CACHED_BIT};
    case MemoryKind::kDevice: break;
  }
  return {0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
}

}  // namespace

StatusOr<std::unique_ptr<VulkanMemory>> VulkanMemory::create(std::shared_ptr<VulkanDevice> device, Options options) {
  ASSIGN_OR_RETURN(const VkPhysicalDeviceMemoryProperties properties,
                   query_memory(device->functions(), device->physical()));
  return std::unique_ptr<VulkanMemory>(new VulkanMemory(std::move(device), properties, options));
}

VulkanMemory::VulkanMemory(std::shared_ptr<VulkanDevice> device, const VkPhysicalDeviceMemoryProperties& properties,
                           Options options)
    : device_(std::move(device)), properties_(properties) {
  const VulkanDeviceInfo& info = device_->info();
  max_bytes_ = std::min({info.max_range, info.max_allocation, kMostRange}) / kWord * kWord;
  longest_bytes_ = std::max(max_bytes_, info.max_allocation / kWord * kWord);
  if (options.max_bytes > 0) max_bytes_ = std::min(max_bytes_, options.max_bytes / kWord * kWord);
  limit_bytes_ = static_cast<uint64_t>(static_cast<double>(info.free_bytes) * std::clamp(options.share, 0.0, 1.0));
}

VulkanMemory::~VulkanMemory() {
  for (const auto& [id, buffer] : buffers_) destroy(buffer);
}

StatusOr<BufferId> VulkanMemory::allocate(uint64_t bytes, MemoryKind kind) { return allocate(bytes, kind, max_bytes_); }

StatusOr<BufferId> VulkanMemory::allocate_long(uint64_t bytes) {
  return allocate(bytes, MemoryKind::kDevice, longest_bytes_);
}

StatusOr<BufferId> VulkanMemory::allocate(uint64_t bytes, MemoryKind kind, uint64_t most) {
  if (bytes == 0 || bytes > most) {
    return invalid_argument("a buffer of ", bytes, " bytes: 1 to ", most, " are possible");
  }
  Buffer buffer{.size = (bytes + kWord - 1) / kWord * kWord, .kind = kind};
  if (kind == MemoryKind::kDevice && buffer.size > limit_bytes_ - std::min(limit_bytes_, used_bytes_)) {
    return resource_exhausted(device_->info().name, " has ", format_bytes(limit_bytes_), " for this process, of which ",
                              format_bytes(used_bytes_), " are in use: no room for ", format_bytes(buffer.size));
  }
  if (const Status filled = fill(buffer); !filled.ok()) {
    destroy(buffer);
    return filled;
  }
  (kind == MemoryKind::kDevice ? used_bytes_ : host_bytes_) += buffer.size;
  const BufferId id{++last_};
  buffers_.emplace(id, buffer);
  return id;
}

Status VulkanMemory::fill(Buffer& buffer) const {
  const VulkanFunctions& f = device_->functions();
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = buffer.size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  TRANSEPT_VULKAN_CALL(f, vkCreateBuffer, device_->handle(), &info, nullptr, &buffer.buffer);
  VkMemoryRequirements needs{};
  f.vkGetBufferMemoryRequirements(device_->handle(), buffer.buffer, &needs);
  if (needs.size < buffer.size || needs.size > buffer.size + (uint64_t{64} << 20)) {
    return absl::InternalError(str_cat("its driver wants ", needs.size, " bytes for a buffer of ", buffer.size));
  }
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = needs.size;
  ASSIGN_OR_RETURN(allocate.memoryTypeIndex, memory_type(needs.memoryTypeBits, buffer.kind));
  TRANSEPT_VULKAN_CALL(f, vkAllocateMemory, device_->handle(), &allocate, nullptr, &buffer.memory);
  TRANSEPT_VULKAN_CALL(f, vkBindBufferMemory, device_->handle(), buffer.buffer, buffer.memory, 0);
  if (buffer.kind == MemoryKind::kDevice) return ok_status();
  void* host = nullptr;
  TRANSEPT_VULKAN_CALL(f, vkMapMemory, device_->handle(), buffer.memory, 0, VK_WHOLE_SIZE, 0, &host);
  if (host == nullptr) return absl::InternalError("vkMapMemory: it gave no address");
  buffer.host = static_cast<std::byte*>(host);
  return ok_status();
}

void VulkanMemory::destroy(const Buffer& buffer) const {
  device_->functions().vkDestroyBuffer(device_->handle(), buffer.buffer, nullptr);
  device_->functions().vkFreeMemory(device_->handle(), buffer.memory, nullptr);  // unmaps it
}

StatusOr<uint32_t> VulkanMemory::memory_type(uint32_t allowed, MemoryKind kind) const {
  const Wanted flags = wanted(kind);
  for (const VkMemoryPropertyFlags all : {flags.needed | flags.better, flags.needed}) {
    for (uint32_t i = 0; i < properties_.memoryTypeCount; ++i) {
      if ((allowed >> i & 1) != 0 && (properties_.memoryTypes[i].propertyFlags & all) == all) return i;
    }
  }
  return absl::InternalError("its driver has no memory that buffers may lie in");
}

void VulkanMemory::free(BufferId buffer) {
  const auto found = buffers_.find(buffer);
  CHECK(found != buffers_.end());
  (found->second.kind == MemoryKind::kDevice ? used_bytes_ : host_bytes_) -= found->second.size;
  destroy(found->second);
  buffers_.erase(found);
}

StatusOr<VkBuffer> VulkanMemory::find(const BufferRange& range) const {
  const auto found = buffers_.find(range.buffer);
  if (found == buffers_.end()) return invalid_argument("an op names a buffer that is not there");
  const uint64_t size = found->second.size;
  if (range.begin > size || range.size > size - range.begin) {
    return invalid_argument("an op names ", range.size, " bytes at ", range.begin, " of a buffer of ", size);
  }
  return found->second.buffer;
}

Status VulkanMemory::write(BufferId buffer, uint64_t begin, std::span<const std::byte> from) {
  RETURN_IF_ERROR(find({buffer, begin, from.size()}).status());
  const Buffer& to = buffers_.at(buffer);
  if (to.kind != MemoryKind::kUpload) return invalid_argument("the host does not write this buffer");
  std::copy(from.begin(), from.end(), to.host + begin);
  return ok_status();
}

std::byte* VulkanMemory::host_place(const BufferRange& range) const {
  if (!find(range).ok()) return nullptr;
  const Buffer& to = buffers_.at(range.buffer);
  return to.kind == MemoryKind::kUpload ? to.host + range.begin : nullptr;
}

Status VulkanMemory::read(BufferId buffer, uint64_t begin, std::span<std::byte> to) const {
  RETURN_IF_ERROR(find({buffer, begin, to.size()}).status());
  const Buffer& from = buffers_.at(buffer);
  if (from.kind != MemoryKind::kReadback) return invalid_argument("the host does not read this buffer");
  std::copy_n(from.host + begin, to.size(), to.begin());
  return ok_status();
}

StatusOr<PiecedBuffer> PiecedBuffer::create(Buffers& memory, uint64_t num_units, uint64_t unit_bytes, MemoryKind kind) {
  if (unit_bytes == 0 || unit_bytes % kWord != 0 || unit_bytes > memory.max_bytes()) {
    return invalid_argument("a unit of ", unit_bytes, " bytes does not fit a buffer of ", memory.max_bytes());
  }
  if (num_units == 0 || !checked_mul(num_units, unit_bytes).has_value()) {
    return invalid_argument(num_units, " units of ", unit_bytes, " bytes");
  }
  PiecedBuffer buffer(memory);
  buffer.num_units_ = num_units;
  buffer.unit_bytes_ = unit_bytes;
  buffer.units_a_piece_ = memory.max_bytes() / unit_bytes;
  for (uint64_t done = 0; done < num_units; done += buffer.units_a_piece_) {
    const uint64_t units = std::min(buffer.units_a_piece_, num_units - done);
    const StatusOr<BufferId> piece = memory.allocate(units * unit_bytes, kind);
    if (!piece.ok()) {
      buffer.free();
      return piece.status();
    }
    buffer.pieces_.push_back(*piece);
  }
  return buffer;
}

void PiecedBuffer::free() {
  for (const BufferId piece : pieces_) memory_->free(piece);
  pieces_.clear();
}

BufferRange PiecedBuffer::unit(uint64_t unit) const {
  CHECK(unit < num_units_ && !pieces_.empty());
  return {pieces_[unit / units_a_piece_], unit % units_a_piece_ * unit_bytes_, unit_bytes_};
}

}  // namespace transept
