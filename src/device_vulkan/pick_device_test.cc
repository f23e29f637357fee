// Names of devices, and why each is left out.
#include "device_vulkan/pick_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

VulkanDeviceInfo device_named(int32_t index, std::string name, VulkanDeviceType type, std::string refusal = "") {
  VulkanDeviceInfo info;
  info.index = index;
  info.name = std::move(name);
  info.type = type;
  info.driver = "driver of " + info.name;
  info.refusal = std::move(refusal);
  return info;
}

std::vector<VulkanDeviceInfo> machine() {
  std::vector<VulkanDeviceInfo> devices{device_named(0, "llvmpipe (LLVM 15.0.6, 256 bits)", VulkanDeviceType::kCpu),
                                        device_named(1, "Intel Iris Xe", VulkanDeviceType::kIntegrated),
                                        device_named(2, "NVIDIA GeForce GT 710", VulkanDeviceType::kDiscrete,
                                                     "its driver has Vulkan 1.1.0, and 1.2 is needed"),
                                        device_named(3, "NVIDIA GeForce RTX 4090", VulkanDeviceType::kDiscrete),
                                        device_named(4, "NVIDIA GeForce RTX 4090", VulkanDeviceType::kDiscrete)};
  devices[0].alias = "lavapipe";
  return devices;
}

int picked(const std::vector<VulkanDeviceInfo>& devices, std::string_view name) {
  const StatusOr<size_t> result = pick_vulkan_device(devices, name);
  return result.ok() ? static_cast<int>(*result) : -1;
}
std::string error(const std::vector<VulkanDeviceInfo>& devices, std::string_view name) {
  return error_message(pick_vulkan_device(devices, name).status());
}

TEST(PickDeviceTest, TakesTheBestTypeThatCanBeUsed) {
  EXPECT_EQ(picked(machine(), "vulkan"), 3);
  std::vector<VulkanDeviceInfo> devices = machine();
  devices.resize(3);
  EXPECT_EQ(picked(devices, "vulkan"), 1);
  devices = {device_named(0, "a", VulkanDeviceType::kOther), device_named(1, "b", VulkanDeviceType::kVirtual)};
  EXPECT_EQ(picked(devices, "vulkan"), 1);
}

TEST(PickDeviceTest, TakesADeviceByNumberAndByName) {
  EXPECT_EQ(picked(machine(), "vulkan:1"), 1);
  EXPECT_EQ(picked(machine(), "vulkan:4"), 4);
  EXPECT_EQ(picked(machine(), "vulkan:iris"), 1);
  EXPECT_EQ(picked(machine(), "vulkan:rtx 4090"), 3);  // the first of equals
  EXPECT_EQ(picked(machine(), "vulkan:driver of Intel"), 1);
}

TEST(PickDeviceTest, TheProcessorIsTakenByItsNameAlone) {
  EXPECT_EQ(picked(machine(), "vulkan:lavapipe"), 0);
  EXPECT_EQ(picked(machine(), "vulkan:LLVMpipe"), 0);
  EXPECT_THAT(error(machine(), "vulkan:0"), HasSubstr("computes on the processor"));
  std::vector<VulkanDeviceInfo> devices = machine();
  devices.resize(1);
  EXPECT_EQ(
      error(devices, "vulkan"),
      "no Vulkan device can be used: vulkan:0 (llvmpipe (LLVM 15.0.6, 256 bits)): it computes on the processor, as "
      "Transept does without it; its name alone means it: vulkan:lavapipe");
}

TEST(PickDeviceTest, SaysWhatIsWrong) {
  EXPECT_THAT(error({}, "vulkan"), HasSubstr("install the driver of your card"));
  EXPECT_THAT(error(machine(), "vulkan:2"), HasSubstr("1.2 is needed"));
  EXPECT_THAT(error(machine(), "vulkan:GT 710"), HasSubstr("1.2 is needed"));
  EXPECT_THAT(error(machine(), "vulkan:7"), HasSubstr("no vulkan:7"));
  EXPECT_THAT(error(machine(), "vulkan:99999999999999999999"), HasSubstr("no vulkan:9999"));
  EXPECT_THAT(error(machine(), "vulkan:radeon"), HasSubstr("\"radeon\""));
  EXPECT_THAT(error(machine(), "vulkan:r"), HasSubstr("give a number"));
  for (const std::string_view name : {"", "vulkan:", "vulkans", "cuda", "Vulkan:0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(pick_vulkan_device(machine(), name).status())) << name;
  }
}

}  // namespace
}  // namespace transept
