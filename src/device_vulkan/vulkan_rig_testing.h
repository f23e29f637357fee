// For tests: an open software device (Mesa's lavapipe) under Khronos' validation with its checks of barriers, and
// memory that is filled and read around one recording. Without the packages of `./dev setup` there is none. Another
// device is TRANSEPT_TEST_DEVICE, as --device takes it, with the layer where there is one (./dev gpu-check). Used by
// one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device_vulkan/record_ops.h"
#include "device_vulkan/vulkan_stream.h"
#include "device_vulkan/vulkan_timeline.h"

namespace transept::testing {

class VulkanRig final {
 public:
  // The process's own, of kernels as they are or reversed (kernels/dialect.glsl). Null: there is no lavapipe, or no
  // validation layer: why() says so.
  static VulkanRig* get(bool is_reversed);
  static const std::string& why();
  // Whether the layer watches the device: without it nothing is told.
  bool is_watched() const { return is_watched_; }

  // Memory with this content once the recording has run; with another round of it, too.
  BufferId put(std::span<const std::byte> bytes);
  template <typename T>
  BufferId put(const std::vector<T>& values) {
    return put(std::as_bytes(std::span(values)));
  }
  BufferRange put_range(const std::vector<float>& values) { return {put(values), 0, values.size() * sizeof(float)}; }
  // Memory of so many words, each of this value.
  BufferId make(uint64_t words, uint32_t word = 0x7FC00000u);
  DeviceMatrix make_matrix(uint32_t rows, uint32_t columns) {
    return DeviceMatrix::dense(make(uint64_t{rows} * columns), rows, columns);
  }

  Recorder& recorder() { return recorder_; }
  // Runs what was recorded, and keeps nothing of the recorder. Fails the test where a call fails or the layer speaks.
  void run();
  // What a buffer holds now.
  std::vector<std::byte> bytes(BufferId buffer, uint64_t begin, uint64_t size);
  template <typename T = float>
  std::vector<T> values(BufferId buffer, uint64_t count, uint64_t first = 0) {
    const std::vector<std::byte> read = bytes(buffer, first * sizeof(T), count * sizeof(T));
    std::vector<T> result(count);
    std::copy(read.begin(), read.end(), reinterpret_cast<std::byte*>(result.data()));
    return result;
  }
  // Frees all memory.
  void clear();

  // What the layer has said since the last call.
  std::vector<std::string> take_problems();
  // As run(), but what the layer says is the caller's to take.
  void run_unchecked();

  const std::shared_ptr<VulkanDevice>& shared_device() const { return device_; }
  VulkanMemory& memory() { return *memory_; }
  VulkanStream& stream() { return *stream_; }

 private:
  static StatusOr<std::unique_ptr<VulkanRig>> open(bool is_reversed);
  BufferId allocate(uint64_t bytes, MemoryKind kind);

  bool is_watched_ = true;
  std::shared_ptr<std::vector<std::string>> problems_ = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<VulkanDevice> device_;
  std::unique_ptr<VulkanMemory> memory_;
  std::unique_ptr<VulkanStream> stream_;
  Recorder recorder_;
  std::vector<BufferId> buffers_;
};

// Tests with a rig, straight or reversed as their parameter says.
class VulkanRigTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (VulkanRig::get(GetParam()) == nullptr) GTEST_SKIP() << "no software device: " << VulkanRig::why();
  }
  void TearDown() override {
    if (VulkanRig::get(GetParam()) != nullptr) rig().clear();
  }
  VulkanRig& rig() { return *VulkanRig::get(GetParam()); }

  // Rows with two more columns on either side, which nothing may touch.
  DeviceMatrix put_matrix(const std::vector<float>& values, uint32_t rows, uint32_t columns);
  DeviceMatrix make(uint32_t rows, uint32_t columns);  // of NaN
  // What is in such rows now.
  std::vector<float> get(const DeviceMatrix& matrix);
};

// Tests of timelines over the straight rig's device.
class TimelineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rig_ = VulkanRig::get(false);
    if (rig_ == nullptr) GTEST_SKIP() << "no software device: " << VulkanRig::why();
  }
  void TearDown() override {
    if (rig_ == nullptr) return;
    for (const std::string& problem : rig_->take_problems()) ADD_FAILURE() << problem;
  }

  std::unique_ptr<VulkanTimeline> make(const VulkanTimeline::Options& options = {}) {
    return VulkanTimeline::create(rig_->shared_device(), options).value();
  }

  VulkanRig* rig_ = nullptr;
};

}  // namespace transept::testing
