// --device: what is opened, and what is refused before anything is.
#include "startup/choose_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "startup/load_engine.h"
#include "startup/rank_worker.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

EngineConfig on(const std::string& device) {
  EngineConfig config;
  config.device = device;
  return config;
}

std::string refusal(const EngineConfig& config) { return error_message(choose_device(config).status()); }

// The loader finds no driver: what drivers keep when they are unloaded is a leak to LeakSanitizer.
class ChooseDeviceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const char* files : {"VK_ICD_FILENAMES", "VK_DRIVER_FILES"}) ::setenv(files, "/no/driver.json", 1);
  }
};

TEST_F(ChooseDeviceTest, TheProcessorIsNothingToOpen) {
  for (const char* device : {"auto", "cpu"}) {
    const auto chosen = choose_device(on(device));
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(*chosen, nullptr);
  }
}

// Before a driver is asked for: machines without one say the same.
TEST_F(ChooseDeviceTest, WhatDoesNotGoWithAVulkanDeviceIsRefusedByName) {
  EngineConfig config = on("vulkan:0");
  config.quantization = "int4";
  EXPECT_THAT(refusal(config), HasSubstr("--device vulkan:0 with --quantization int4: "));
  config.quantization = "auto";
  EXPECT_THAT(refusal(config), HasSubstr("--quantization auto: "));
  config.quantization = "int8";
  EXPECT_THAT(refusal(config), Not(HasSubstr("--quantization")));
  config = on("vulkan");
  for (const char* type : {"float16", "bfloat16", "int8"}) {
    config.kv_cache_dtype = type;
    EXPECT_THAT(refusal(config), Not(HasSubstr("--kv-cache-dtype")));
  }
  config = on("vulkan");
  config.tensor_parallel_size = 2;
  EXPECT_THAT(refusal(config), HasSubstr("--tensor-parallel-size 2: "));
  EXPECT_EQ(error_message(check_rank_flags(config)), refusal(config)) << "asked before ranks are started";
  config = on("vulkan");
  config.encode_slice = "5";
  EXPECT_THAT(refusal(config), HasSubstr("--encode-slice 5: "));
  config.encode_slice = "auto";
  EXPECT_THAT(refusal(config), Not(HasSubstr("--encode-slice")));
}

TEST_F(ChooseDeviceTest, HowProductsAreMadeIsADevicesAffair) {
  for (const char* device : {"auto", "cpu"}) {
    EngineConfig config = on(device);
    config.device_matrices = "on";
    EXPECT_EQ(refusal(config), str_cat("--device-matrices on is of a Vulkan device alone, and --device is ", device));
    config = on(device);
    config.device_arithmetic = "float16";
    EXPECT_THAT(refusal(config), HasSubstr("--device-arithmetic float16 is of a Vulkan device alone"));
  }
  EngineConfig config = on("vulkan:no such card");
  config.device_matrices = "yes";
  EXPECT_EQ(refusal(config), "--device-matrices yes: unknown; one of auto, on, off");
  config.device_matrices = "off";
  EXPECT_THAT(refusal(config), HasSubstr("--device vulkan:no such card: ")) << "the flag is taken";
  config.device_arithmetic = "bfloat16";
  EXPECT_EQ(refusal(config), "--device-arithmetic bfloat16: unknown; one of float32, float16");
  config.device_arithmetic = "float16";
  EXPECT_THAT(refusal(config), HasSubstr("--device-matrices is off"));
  config.device_matrices = "auto";
  EXPECT_THAT(refusal(config), HasSubstr("--device vulkan:no such card: ")) << "both are taken";
}

TEST_F(ChooseDeviceTest, ADeviceThatIsNotThereIsNamedWithAReason) {
  const auto chosen = choose_device(on("vulkan:no such card"));
  ASSERT_FALSE(chosen.ok());
  EXPECT_THAT(error_message(chosen.status()), HasSubstr("--device vulkan:no such card: "));
}

}  // namespace
}  // namespace transept
