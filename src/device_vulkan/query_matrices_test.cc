// What drivers say of matrices: the shape is theirs, and a device whose driver says nonsense of them has none.
#include "device_vulkan/query_matrices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device_vulkan/fake_vulkan_testing.h"
#include "device_vulkan/instance.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/vulkan_device.h"

namespace transept {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeVulkan;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

MatrixProperties matrix(uint32_t m, uint32_t n, uint32_t k, uint32_t inputs = kComponentFloat16,
                        uint32_t sums = kComponentFloat32) {
  MatrixProperties of;
  of.MSize = m;
  of.NSize = n;
  of.KSize = k;
  of.AType = of.BType = inputs;
  of.CType = of.ResultType = sums;
  of.scope = kScopeSubgroup;
  return of;
}
MatrixProperties int8_matrix(uint32_t m, uint32_t n, uint32_t k) {
  return matrix(m, n, k, kComponentSint8, kComponentSint32);
}

VulkanDeviceInfo query(const FakeVulkan& fake) {
  const auto instance = VulkanInstance::create(fake.entry()).value();
  const std::vector<VulkanDeviceInfo> devices = instance->devices().value();
  EXPECT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].refusal, "") << "matrices are no reason";
  return devices[0];
}
std::string why_none(const FakeVulkan& fake) {
  const VulkanDeviceInfo info = query(fake);
  EXPECT_FALSE(info.half_tile.has_value() || info.int8_tile.has_value());
  return info.no_matrices;
}

TEST(QueryMatricesTest, TheLargestThatFitsIsTaken) {
  FakeVulkan fake;
  fake.give_matrices({matrix(16, 8, 8), matrix(16, 8, 16), matrix(16, 16, 16), matrix(32, 32, 32),
                      int8_matrix(16, 16, 32), int8_matrix(16, 8, 32)});
  const VulkanDeviceInfo info = query(fake);
  EXPECT_EQ(info.half_tile, (MatrixTile{16, 16, 16}));
  EXPECT_EQ(info.int8_tile, (MatrixTile{16, 16, 32}));
  EXPECT_EQ(info.no_matrices, "");
  EXPECT_EQ(info.matrices.size(), 6u);
  EXPECT_EQ(matrix_kind_text(info.matrices[2]), "16x16x16 float16 to float32");
  EXPECT_EQ(matrix_kind_text(info.matrices[4]), "16x16x32 int8 to int32");
}

TEST(QueryMatricesTest, OddOnesAreLeftOut) {
  FakeVulkan fake;
  MatrixProperties mixed = matrix(16, 16, 16), saturating = int8_matrix(16, 16, 16), of_a_group = matrix(16, 16, 16),
                   other_result = matrix(16, 16, 16);
  mixed.BType = kComponentFloat32;
  saturating.saturatingAccumulation = VK_TRUE;
  of_a_group.scope = 2;
  other_result.ResultType = kComponentFloat16;
  fake.give_matrices({mixed, saturating, of_a_group, other_result, matrix(0, 0, 0), matrix(~0u, ~0u, ~0u),
                      matrix(16, 16, 16, kComponentFloat16, kComponentFloat16), matrix(16, 16, 16, 1000, 1000),
                      matrix(16, 12, 16), matrix(24, 16, 16), matrix(16, 16, 64), matrix(4, 8, 8)});
  EXPECT_EQ(why_none(fake), "none of its matrices is one that products are made of");
  fake.device.matrices.push_back(matrix(8, 16, 16));
  const VulkanDeviceInfo info = query(fake);
  EXPECT_EQ(info.half_tile, (MatrixTile{8, 16, 16}));
  EXPECT_FALSE(info.int8_tile.has_value());
}

TEST(QueryMatricesTest, WhatIsMissingIsNamed) {
  const auto with = [](const auto& change) {
    FakeVulkan fake;
    fake.give_matrices({matrix(16, 16, 16)});
    change(fake);
    return why_none(fake);
  };
  EXPECT_EQ(with([](FakeVulkan& fake) { fake.device.extensions = {}; }), "its driver has no VK_KHR_cooperative_matrix");
  EXPECT_EQ(with([](FakeVulkan& fake) { fake.device.extensions = {kMatrixExtension}; }),
            "its driver has no VK_EXT_subgroup_size_control");
  EXPECT_THAT(with([](FakeVulkan& fake) { fake.missing = kMatrixQuery; }), HasSubstr(kMatrixQuery));
  EXPECT_THAT(with([](FakeVulkan& fake) { fake.device.has_matrices = false; }), HasSubstr("does not offer them"));
  EXPECT_THAT(with([](FakeVulkan& fake) { fake.device.has_full_subgroups = false; }), HasSubstr("size of subgroups"));
  EXPECT_THAT(with([](FakeVulkan& fake) { fake.device.has_memory_model = false; }), HasSubstr("memory model"));
  for (const uint32_t size : {0u, 1u, 24u, 128u, 4u}) {  // the driver's sizes are 8 to 64
    EXPECT_THAT(with([&](FakeVulkan& fake) { fake.device.subgroup_size = size; }),
                HasSubstr(str_cat("subgroups of ", size)));
  }
  EXPECT_THAT(with([](FakeVulkan& fake) { fake.device.matrices = {}; }), HasSubstr("none of its matrices"));
  // Groups of 16 KiB have no room for the tile.
  EXPECT_THAT(with([](FakeVulkan& fake) {
                fake.device.properties.limits.maxComputeSharedMemorySize = 16384;
                fake.device.matrices = {matrix(16, 16, 32)};
              }),
              HasSubstr("none of its matrices"));
  EXPECT_THAT(with([](FakeVulkan& fake) {
                fake.device.driver.driverID = VK_DRIVER_ID_MESA_LLVMPIPE;
                fake.device.subgroup_size = 16;
              }),
              HasSubstr("512 bits"));
}

// Each call of the query, with each result: the device has no matrices, and is as good as it was.
TEST(QueryMatricesTest, AQueryThatFailsGivesNone) {
  int num_failed = 0;
  for (const VkResult result : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST, static_cast<VkResult>(-777)}) {
    for (int call = 0; call < 12; ++call) {
      FakeVulkan fake;
      fake.give_matrices({matrix(16, 16, 16)});
      fake.fail_at = call;
      fake.result = result;
      const auto instance = VulkanInstance::create(fake.entry());
      if (!instance.ok()) continue;
      const auto devices = (*instance)->devices();
      if (fake.failed != kMatrixQuery) continue;
      ++num_failed;
      ASSERT_TRUE(devices.ok()) << devices.status();
      EXPECT_EQ((*devices)[0].refusal, "");
      EXPECT_EQ((*devices)[0].no_matrices, str_cat(kMatrixQuery, ": ", vulkan_result_name(result)));
      EXPECT_FALSE((*devices)[0].half_tile.has_value());
    }
  }
  EXPECT_EQ(num_failed, 6) << "the count and the list";
}

// A driver that lists more than it counted, and one that counts more than it lists.
TEST(QueryMatricesTest, CountsAreNotBelieved) {
  FakeVulkan fake;
  fake.give_matrices({matrix(16, 16, 16)});
  fake.claimed = 3;
  const auto instance = VulkanInstance::create(fake.entry()).value();
  const std::vector<VulkanDeviceInfo> devices = instance->devices().value();
  for (const VulkanDeviceInfo& info : devices) {
    for (const MatrixKind& kind : info.matrices) EXPECT_EQ(kind.tile, (MatrixTile{16, 16, 16}));
  }
  EXPECT_FALSE(devices.empty());
}

// The device is opened with what its kernels need, and a kernel is specialized by its tile.
TEST(QueryMatricesTest, KernelsAreSpecializedByTheirTile) {
  FakeVulkan fake;
  fake.give_matrices({matrix(8, 16, 16), int8_matrix(8, 16, 32)});
  fake.device.subgroup_size = 16;
  const auto instance = VulkanInstance::create(fake.entry()).value();
  const std::vector<VulkanDeviceInfo> devices = instance->devices().value();
  {
    const auto device = VulkanDevice::create(instance, devices[0]).value();
    EXPECT_THAT(fake.enabled, Contains(kMatrixExtension));
    EXPECT_TRUE(device->pipeline(kProductMatrixKernels[0]).ok());
    EXPECT_THAT(fake.constants, ElementsAre(8, 16, 16, 8));
    EXPECT_EQ(fake.required_subgroup, 16u);
    EXPECT_TRUE(device->pipeline(kProductTailKernels[6][1]).ok());
    EXPECT_THAT(fake.constants, ElementsAre(8, 16, 32, 8));
    EXPECT_TRUE(device->pipeline(kProductKernels[1]).ok());
    EXPECT_THAT(fake.constants, IsEmpty());
    EXPECT_EQ(fake.required_subgroup, 0u);
  }
  const auto without = VulkanDevice::create(instance, devices[0], {.has_matrices = false}).value();
  EXPECT_THAT(fake.enabled, Not(Contains(kMatrixExtension)));
  EXPECT_FALSE(without->info().half_tile.has_value());
  EXPECT_THAT(error_message(without->pipeline(kProductMatrixKernels[0]).status()), HasSubstr("has no matrices"));
}

}  // namespace
}  // namespace transept
