// Every call that can fail fails in turn, with each result: an error that names call and result, nothing leaked,
// nothing destroyed twice. And drivers that say what cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <cstring>

#include "device_vulkan/fake_vulkan_testing.h"
#include "device_vulkan/instance.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/pick_device.h"
#include "device_vulkan/record_ops.h"
#include "device_vulkan/vulkan_stream.h"

namespace transept {
namespace {

using testing::FakeVulkan;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

struct Opened {
  std::shared_ptr<VulkanDevice> device;
  std::unique_ptr<VulkanMemory> memory;
  std::unique_ptr<VulkanStream> stream;
};

StatusOr<Opened> open(const FakeVulkan& fake, VulkanMemory::Options options = {}) {
  ASSIGN_OR_RETURN(const std::shared_ptr<VulkanInstance> instance, VulkanInstance::create(fake.entry()));
  ASSIGN_OR_RETURN(const std::vector<VulkanDeviceInfo> devices, instance->devices());
  ASSIGN_OR_RETURN(const size_t index, pick_vulkan_device(devices, "vulkan"));
  Opened opened;
  ASSIGN_OR_RETURN(opened.device, VulkanDevice::create(instance, devices[index]));
  ASSIGN_OR_RETURN(opened.memory, VulkanMemory::create(opened.device, options));
  ASSIGN_OR_RETURN(opened.stream, VulkanStream::create(opened.device, *opened.memory));
  return opened;
}

// All that a step does: memory of each kind, memory in pieces, ops of each kind, two submits.
Status run_everything(const FakeVulkan& fake) {
  ASSIGN_OR_RETURN(const Opened opened, open(fake, {.max_bytes = 4096}));
  VulkanMemory& memory = *opened.memory;
  ASSIGN_OR_RETURN(const BufferId up, memory.allocate(1024, MemoryKind::kUpload));
  ASSIGN_OR_RETURN(const BufferId there, memory.allocate(4096, MemoryKind::kDevice));
  ASSIGN_OR_RETURN(const BufferId back, memory.allocate(1024, MemoryKind::kReadback));
  ASSIGN_OR_RETURN(PiecedBuffer pieces, PiecedBuffer::create(memory, 10, 1024, MemoryKind::kDevice));
  const std::array<uint32_t, 4> words{1, 2, 3, 4};
  RETURN_IF_ERROR(memory.write(up, 0, std::as_bytes(std::span(words))));
  Recorder recorder;
  recorder.copy({up, 0, 1024}, {there, 0, 1024});
  recorder.fill(pieces.unit(9), 7);
  const DeviceMatrix x = DeviceMatrix::dense(there, 4, 16), y = DeviceMatrix::dense(there, 4, 16, 1024);
  record_rms_norm(recorder, x, {there, 2048, 64}, 1e-5f, y);
  record_choose(recorder, y, {there, 3072, 48});
  recorder.copy({there, 3072, 48}, {back, 0, 48});
  ASSIGN_OR_RETURN(const std::unique_ptr<PreparedRecording> prepared, opened.stream->prepare(recorder.finish()));
  for (int step = 0; step < 2; ++step) {
    ASSIGN_OR_RETURN(const Ticket ticket, opened.stream->submit(*prepared));
    RETURN_IF_ERROR(opened.stream->wait(ticket, soon()));
  }
  std::array<std::byte, 48> result;
  RETURN_IF_ERROR(memory.read(back, 0, result));
  memory.free(there);
  pieces.free();
  return ok_status();
}

TEST(VulkanErrorsTest, EveryCallMayFail) {
  int num_calls = 0;
  {
    FakeVulkan fake;
    const Status status = run_everything(fake);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(fake.misuse, IsEmpty());
    EXPECT_EQ(fake.num_live(), 0u);
    EXPECT_EQ(fake.commands["dispatch"], 2);
    EXPECT_EQ(fake.commands["copy"], 2);
    EXPECT_EQ(fake.commands["fill"], 1);
    EXPECT_EQ(fake.commands["barrier"], 5);  // four waves, and the host's
    num_calls = fake.num_calls;
  }
  EXPECT_GT(num_calls, 35);
  for (const VkResult result :
       {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_INITIALIZATION_FAILED,
        VK_ERROR_DEVICE_LOST, VK_TIMEOUT, static_cast<VkResult>(-777)}) {
    for (int call = 0; call < num_calls; ++call) {
      FakeVulkan fake;
      fake.fail_at = call;
      fake.result = result;
      const Status status = run_everything(fake);
      ASSERT_FALSE(status.ok()) << fake.failed;
      EXPECT_THAT(error_message(status), HasSubstr(str_cat(fake.failed, ": ", vulkan_result_name(result))));
      EXPECT_THAT(fake.misuse, IsEmpty()) << fake.failed;
      EXPECT_EQ(fake.num_live(), 0u) << fake.failed;
    }
  }
}

TEST(VulkanErrorsTest, ResultsHaveCodes) {
  EXPECT_TRUE(vulkan_status("x", VK_INCOMPLETE).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(vulkan_status("x", VK_ERROR_OUT_OF_DEVICE_MEMORY)));
  EXPECT_TRUE(absl::IsUnavailable(vulkan_status("x", VK_ERROR_DEVICE_LOST)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(vulkan_status("x", VK_TIMEOUT)));
  EXPECT_EQ(error_message(vulkan_status("vkX", static_cast<VkResult>(-777))), "vkX: VkResult -777");
}

TEST(VulkanErrorsTest, ALoaderThatLacksAFunctionIsNamed) {
  for (const char* name : {"vkCreateInstance", "vkEnumerateInstanceVersion", "vkWaitSemaphores", "vkCmdDispatch"}) {
    FakeVulkan fake;
    fake.missing = name;
    const Status status = run_everything(fake);
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(error_message(status), HasSubstr(name));
    EXPECT_EQ(fake.num_live(), 0u);
  }
}

TEST(VulkanErrorsTest, ALostDeviceStaysLost) {
  FakeVulkan fake;
  const Opened opened = open(fake).value();
  const BufferId buffer = opened.memory->allocate(64, MemoryKind::kDevice).value();
  Recorder recorder;
  recorder.fill({buffer, 0, 64}, 1);
  const Recording recording = recorder.finish();
  {
    const auto prepared = opened.stream->prepare(recording).value();
    const Ticket ticket = opened.stream->submit(*prepared).value();
    fake.fail_at = fake.num_calls;
    fake.result = VK_ERROR_DEVICE_LOST;
    EXPECT_TRUE(absl::IsUnavailable(opened.stream->wait(ticket, soon())));
    EXPECT_TRUE(absl::IsUnavailable(opened.stream->wait(ticket, soon())));
    EXPECT_TRUE(absl::IsUnavailable(opened.stream->prepare(recording).status()));
  }
  EXPECT_THAT(fake.misuse, IsEmpty());
}

TEST(VulkanErrorsTest, ARecordingIsNotSubmittedTwiceAtOnce) {
  FakeVulkan fake;
  const Opened opened = open(fake).value();
  const BufferId buffer = opened.memory->allocate(64, MemoryKind::kDevice).value();
  Recorder recorder;
  recorder.fill({buffer, 0, 64}, 1);
  const auto prepared = opened.stream->prepare(recorder.finish()).value();
  const Ticket ticket = opened.stream->submit(*prepared).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened.stream->submit(*prepared).status()));
  ASSERT_TRUE(opened.stream->wait(ticket, {}).ok());
  EXPECT_TRUE(opened.stream->submit(*prepared).ok());
}

TEST(VulkanErrorsTest, RecordingsNameWhatIsThere) {
  FakeVulkan fake;
  const Opened opened = open(fake).value();
  const BufferId buffer = opened.memory->allocate(64, MemoryKind::kDevice).value();
  const auto prepared = [&](const BufferRange& range) {
    Recorder recorder;
    recorder.fill(range, 1);
    return opened.stream->prepare(recorder.finish()).status();
  };
  EXPECT_TRUE(prepared({buffer, 0, 64}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(prepared({buffer, 4, 64})));
  EXPECT_TRUE(absl::IsInvalidArgument(prepared({buffer, 68, 4})));
  EXPECT_TRUE(absl::IsInvalidArgument(prepared({BufferId{99}, 0, 4})));
  constexpr Use kOne[] = {Use::kRead};
  const KernelSpec unknown{"unknown", kOne};
  Recorder recorder;
  recorder.run(unknown, {}, std::array{BufferRange{buffer, 0, 64}}, {});
  EXPECT_TRUE(absl::IsNotFound(opened.stream->prepare(recorder.finish()).status()));
  const DeviceMatrix x = DeviceMatrix::dense(buffer, 1, 8);
  const std::array<uint32_t, 2> sizes{8, 8};
  recorder.run(kChooseKernel, std::as_bytes(std::span(sizes)), std::array{x.range(), BufferRange{buffer, 32, 12}},
               {.x = 65536});
  EXPECT_THAT(error_message(opened.stream->prepare(recorder.finish()).status()), HasSubstr("a grid of 65536"));
}

TEST(VulkanErrorsTest, MemoryHasABudgetAndASize) {
  FakeVulkan fake;
  fake.device.budget = VkDeviceSize{1} << 30;
  fake.device.used = VkDeviceSize{1} << 29;
  const Opened opened = open(fake, {.share = 0.5}).value();
  VulkanMemory& memory = *opened.memory;
  EXPECT_EQ(memory.limit_bytes(), uint64_t{1} << 28);
  EXPECT_EQ(memory.max_bytes(), uint64_t{1} << 27);
  EXPECT_TRUE(absl::IsInvalidArgument(memory.allocate(0, MemoryKind::kDevice).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(memory.allocate((uint64_t{1} << 27) + 1, MemoryKind::kDevice).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(memory.allocate(UINT64_MAX, MemoryKind::kDevice).status()));
  fake.more_memory = 0;
  const BufferId first = memory.allocate(uint64_t{1} << 27, MemoryKind::kDevice).value();
  ASSERT_TRUE(memory.allocate((uint64_t{1} << 27) - 4, MemoryKind::kDevice).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(memory.allocate(8, MemoryKind::kDevice).status()));
  EXPECT_TRUE(memory.allocate(8, MemoryKind::kUpload).ok());  // the host's
  EXPECT_TRUE(memory.allocate(3, MemoryKind::kDevice).ok());  // a word
  memory.free(first);
  EXPECT_TRUE(memory.allocate(8, MemoryKind::kDevice).ok());
}

TEST(VulkanErrorsTest, TheHostReachesItsOwnKindsAlone) {
  FakeVulkan fake;
  const Opened opened = open(fake).value();
  VulkanMemory& memory = *opened.memory;
  std::array<std::byte, 8> bytes{};
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kUpload, MemoryKind::kReadback}) {
    const BufferId buffer = memory.allocate(16, kind).value();
    EXPECT_EQ(memory.write(buffer, 8, bytes).ok(), kind == MemoryKind::kUpload);
    EXPECT_EQ(memory.read(buffer, 8, bytes).ok(), kind == MemoryKind::kReadback);
    EXPECT_FALSE(memory.write(buffer, 9, bytes).ok());
    EXPECT_FALSE(memory.read(buffer, UINT64_MAX, bytes).ok());
  }
  EXPECT_FALSE(memory.write(BufferId{99}, 0, bytes).ok());
}

TEST(VulkanErrorsTest, PiecesHoldWholeUnits) {
  FakeVulkan fake;
  const Opened opened = open(fake, {.max_bytes = 1000}).value();
  VulkanMemory& memory = *opened.memory;
  PiecedBuffer buffer = PiecedBuffer::create(memory, 10, 300, MemoryKind::kDevice).value();
  EXPECT_EQ(buffer.pieces().size(), 4u);  // three units each
  EXPECT_EQ(buffer.unit(0), (BufferRange{buffer.pieces()[0], 0, 300}));
  EXPECT_EQ(buffer.unit(5), (BufferRange{buffer.pieces()[1], 600, 300}));
  EXPECT_EQ(buffer.unit(9), (BufferRange{buffer.pieces()[3], 0, 300}));
  EXPECT_EQ(memory.used_bytes(), 3000u);
  buffer.free();
  EXPECT_EQ(memory.used_bytes(), 0u);
  EXPECT_FALSE(PiecedBuffer::create(memory, 1, 1004, MemoryKind::kDevice).ok());
  EXPECT_FALSE(PiecedBuffer::create(memory, 1, 0, MemoryKind::kDevice).ok());
  EXPECT_FALSE(PiecedBuffer::create(memory, 1, 6, MemoryKind::kDevice).ok());
  EXPECT_FALSE(PiecedBuffer::create(memory, 0, 4, MemoryKind::kDevice).ok());
  EXPECT_FALSE(PiecedBuffer::create(memory, UINT64_MAX / 2, 4, MemoryKind::kDevice).ok());
  fake.device.budget = 10000;
  const Opened small = open(fake, {.share = 1, .max_bytes = 1000}).value();
  EXPECT_TRUE(absl::IsResourceExhausted(PiecedBuffer::create(*small.memory, 11, 1000, MemoryKind::kDevice).status()));
  EXPECT_EQ(small.memory->used_bytes(), 0u);  // nothing of it is kept
  EXPECT_TRUE(PiecedBuffer::create(*small.memory, 10, 1000, MemoryKind::kDevice).ok());
}

// What a driver says -> why the device is refused.
TEST(VulkanErrorsTest, ADriverIsNotBelieved) {
  struct Case {
    const char* why;
    void (*change)(FakeVulkan& fake);
  };
  const Case cases[] = {
      {"", [](FakeVulkan&) {}},
      {"1.2 is needed", [](FakeVulkan& f) { f.device.properties.apiVersion = VK_API_VERSION_1_1; }},
      {"timeline", [](FakeVulkan& f) { f.device.has_timeline = false; }},
      {"no queue", [](FakeVulkan& f) { f.device.queue_flags = VK_QUEUE_GRAPHICS_BIT; }},
      {"maxStorageBufferRange 0", [](FakeVulkan& f) { f.device.properties.limits.maxStorageBufferRange = 0; }},
      {"maxMemoryAllocationSize 4", [](FakeVulkan& f) { f.device.max_allocation = 4; }},
      {"Alignment 0", [](FakeVulkan& f) { f.device.properties.limits.minStorageBufferOffsetAlignment = 0; }},
      {"Alignment 48", [](FakeVulkan& f) { f.device.properties.limits.minStorageBufferOffsetAlignment = 48; }},
      {"Alignment 18446744073709551615",
       [](FakeVulkan& f) { f.device.properties.limits.minStorageBufferOffsetAlignment = ~VkDeviceSize{0}; }},
      {"maxComputeWorkGroupInvocations 64",
       [](FakeVulkan& f) { f.device.properties.limits.maxComputeWorkGroupInvocations = 64; }},
      {"maxComputeWorkGroupCount 1", [](FakeVulkan& f) { f.device.properties.limits.maxComputeWorkGroupCount[1] = 1; }},
      {"maxComputeSharedMemorySize", [](FakeVulkan& f) { f.device.properties.limits.maxComputeSharedMemorySize = 1; }},
      {"maxPushConstantsSize 64", [](FakeVulkan& f) { f.device.properties.limits.maxPushConstantsSize = 64; }},
      {"StorageBuffers 4", [](FakeVulkan& f) { f.device.properties.limits.maxPerStageDescriptorStorageBuffers = 4; }},
      {"more memory than Vulkan", [](FakeVulkan& f) { f.device.memory.memoryTypeCount = 1000; }},
      {"more memory than Vulkan", [](FakeVulkan& f) { f.device.memory.memoryHeapCount = UINT32_MAX; }},
      {"a heap of memory", [](FakeVulkan& f) { f.device.memory.memoryTypes[1].heapIndex = 1; }},
      {"no memory of its own", [](FakeVulkan& f) { f.device.memory.memoryHeaps[0].flags = 0; }},
  };
  for (const Case& at : cases) {
    FakeVulkan fake;
    at.change(fake);
    const std::vector<VulkanDeviceInfo> devices = VulkanInstance::create(fake.entry()).value()->devices().value();
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_THAT(devices[0].refusal, HasSubstr(at.why));
    EXPECT_EQ(devices[0].refusal.empty(), *at.why == 0) << devices[0].refusal;
    EXPECT_EQ(open(fake).ok(), *at.why == 0);
    EXPECT_EQ(fake.num_live(), 0u);
  }
}

TEST(VulkanErrorsTest, TextsAndCountsOfADriverAreBounded) {
  FakeVulkan fake;
  fake.claimed = UINT32_MAX - 8;  // in every list
  std::memset(fake.device.properties.deviceName, 'x', sizeof fake.device.properties.deviceName);
  std::memset(fake.device.driver.driverInfo, '\x1b', sizeof fake.device.driver.driverInfo);
  fake.device.extensions = {std::string(VK_MAX_EXTENSION_NAME_SIZE, 'e'), "VK_EXT_memory_budget"};
  const auto instance = VulkanInstance::create(fake.entry()).value();
  const StatusOr<std::vector<VulkanDeviceInfo>> devices = instance->devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].name, std::string(VK_MAX_PHYSICAL_DEVICE_NAME_SIZE, 'x'));
  EXPECT_THAT((*devices)[0].driver_version, HasSubstr("\\x1b"));
  EXPECT_THAT((*devices)[0].driver_version, ::testing::Not(HasSubstr("\x1b")));
  EXPECT_TRUE((*devices)[0].has_budget);
}

TEST(VulkanErrorsTest, MemoryRequirementsAreChecked) {
  FakeVulkan fake;
  const Opened opened = open(fake).value();
  for (const VkDeviceSize more : {~VkDeviceSize{0}, VkDeviceSize{1} << 40}) {  // less than asked for, and absurd
    fake.more_memory = more;
    EXPECT_THAT(error_message(opened.memory->allocate(64, MemoryKind::kDevice).status()),
                HasSubstr("its driver wants"));
  }
  fake.more_memory = 0;
  EXPECT_TRUE(opened.memory->allocate(64, MemoryKind::kDevice).ok());
}

TEST(VulkanErrorsTest, AMachineWithoutDrivers) {
  FakeVulkan fake;
  fake.fail_at = 3;  // behind the version and two lists
  fake.result = VK_ERROR_INCOMPATIBLE_DRIVER;
  const Status status = open(fake).status();
  EXPECT_EQ(fake.failed, "vkCreateInstance");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(error_message(status), HasSubstr("install the driver of your card"));
}

TEST(VulkanErrorsTest, AMachineWithoutDevices) {
  FakeVulkan fake;
  fake.num_devices = 0;
  EXPECT_THAT(error_message(open(fake).status()), HasSubstr("install the driver of your card"));
}

}  // namespace
}  // namespace transept
