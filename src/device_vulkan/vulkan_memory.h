// The memory of a Vulkan device. A buffer is one allocation; what is larger than an op may reach in one range is kept
// in pieces (PiecedBuffer). Used by one thread at a time, as its device.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device_vulkan/vulkan_device.h"
#include "recording/stream.h"

namespace transept {

class VulkanMemory final : public Buffers {
 public:
  struct Options {
    double share = 0.9;      // of what the driver's budget has free when the memory is created
    uint64_t max_bytes = 0;  // below the device's own limit: tests; 0: that
  };

  // Errors: as query_memory().
  static StatusOr<std::unique_ptr<VulkanMemory>> create(std::shared_ptr<VulkanDevice> device, Options options);
  static StatusOr<std::unique_ptr<VulkanMemory>> create(std::shared_ptr<VulkanDevice> device) {
    return create(std::move(device), {});
  }
  ~VulkanMemory() override;

  uint64_t max_bytes() const override { return max_bytes_; }
  StatusOr<BufferId> allocate(uint64_t bytes, MemoryKind kind) override;
  // The same of kind kDevice, and up to the device's largest allocation: an op still reaches max_bytes() of it in one
  // range, a copy all.
  StatusOr<BufferId> allocate_long(uint64_t bytes);
  void free(BufferId buffer) override;
  Status write(BufferId buffer, uint64_t begin, std::span<const std::byte> from) override;
  Status read(BufferId buffer, uint64_t begin, std::span<std::byte> to) const override;

  // Where the host writes bytes of a buffer of kUpload; it reads them slowly. Null: as write() refuses.
  std::byte* host_place(const BufferRange& range) const;

  // What may be allocated of the device's own, and what is.
  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t host_bytes() const { return host_bytes_; }  // of kUpload and kReadback

  // For streams. Errors: kInvalidArgument, the range is not within a buffer.
  StatusOr<VkBuffer> find(const BufferRange& range) const;

 private:
  struct Buffer {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    std::byte* host = nullptr;  // of kUpload and kReadback
    uint64_t size = 0;
    MemoryKind kind = MemoryKind::kDevice;
  };

  VulkanMemory(std::shared_ptr<VulkanDevice> device, const VkPhysicalDeviceMemoryProperties& properties,
               Options options);
  StatusOr<BufferId> allocate(uint64_t bytes, MemoryKind kind, uint64_t most);
  Status fill(Buffer& buffer) const;
  void destroy(const Buffer& buffer) const;
  StatusOr<uint32_t> memory_type(uint32_t allowed, MemoryKind kind) const;

  std::shared_ptr<VulkanDevice> device_;
  VkPhysicalDeviceMemoryProperties properties_;
  uint64_t max_bytes_, longest_bytes_, limit_bytes_, used_bytes_ = 0, host_bytes_ = 0;
  uint32_t last_ = 0;
  std::map<BufferId, Buffer> buffers_;
};

// Memory of any size in buffers that a range of an op may span, so that no unit of so many bytes stands in two. A value
// that borrows the memory; free() gives it back.
class PiecedBuffer final {
 public:
  // Errors: kInvalidArgument, a unit is 0, no whole words, or larger than max_bytes(), or the size overflows; those of
  // allocate(), after which nothing is kept.
  static StatusOr<PiecedBuffer> create(Buffers& memory, uint64_t num_units, uint64_t unit_bytes, MemoryKind kind);
  void free();

  uint64_t units_a_piece() const { return units_a_piece_; }
  const std::vector<BufferId>& pieces() const { return pieces_; }
  // REQUIRES: unit < num_units.
  BufferRange unit(uint64_t unit) const;

 private:
  explicit PiecedBuffer(Buffers& memory) : memory_(&memory) {}

  Buffers* memory_;
  uint64_t num_units_ = 0, unit_bytes_ = 0, units_a_piece_ = 0;
  std::vector<BufferId> pieces_;
};

}  // namespace transept
