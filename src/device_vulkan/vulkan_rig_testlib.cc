#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/sanitized_testing.h"
#include "device_vulkan/pick_device.h"
#include "device_vulkan/vulkan_library.h"
#include "device_vulkan/vulkan_rig_testing.h"

// For LeakSanitizer: the validation layer of 1.3.239 keeps shaders whose parts refer to each other in a circle. Our own
// handles are counted by the fake Vulkan.
extern "C" const char* __lsan_default_suppressions();  // NOLINT: its name
extern "C" const char* __lsan_default_suppressions() { return "leak:libVkLayer_khronos_validation.so\n"; }  // NOLINT

namespace transept::testing {
namespace {

// Of Mesa: other drivers of the machine are not asked. A developer's own choice stays.
constexpr char kLavapipe[] = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";
constexpr char kDevice[] = "TRANSEPT_TEST_DEVICE";

std::string& reason() {
  static std::string reason;
  return reason;
}

// What a driver and its compiler keep until the process ends is no leak to LeakSanitizer while they are loaded, and the
// loader unloads them with the last instance.
void keep_drivers_loaded() {
  for (const char* library : {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so"}) {
    ::dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  }
}

// The process's own. They end with the tests: the objects of newer layers end before those of here that were made
// first.
struct Rigs final : ::testing::Environment {
  void TearDown() override {
    straight.reset();
    reversed.reset();
    are_opened = false;
  }
  bool are_opened = false;
  std::unique_ptr<VulkanRig> straight, reversed;
};
Rigs* const rigs = static_cast<Rigs*>(::testing::AddGlobalTestEnvironment(new Rigs));

template <typename T>
T expect_value(StatusOr<T> result) {
  CHECK(result.ok(), result.status().ToString());
  return *std::move(result);
}

}  // namespace

const std::string& VulkanRig::why() { return reason(); }

VulkanRig* VulkanRig::get(bool is_reversed) {
  const auto opened = [](bool reversed) {
    if (kSanitized) keep_drivers_loaded();
    const bool is_chosen = std::getenv(kDevice) != nullptr;
    if (!is_chosen && std::filesystem::exists(kLavapipe)) ::setenv("VK_ICD_FILENAMES", kLavapipe, 0);
    StatusOr<std::unique_ptr<VulkanRig>> rig = open(reversed);
    if (rig.ok()) return *std::move(rig);
    reason() = rig.status().ToString();
    return std::unique_ptr<VulkanRig>();
  };
  if (!rigs->are_opened) {
    rigs->straight = opened(false);
    rigs->reversed = opened(true);
    rigs->are_opened = true;
  }
  return is_reversed ? rigs->reversed.get() : rigs->straight.get();
}

StatusOr<std::unique_ptr<VulkanRig>> VulkanRig::open(bool is_reversed) {
  ASSIGN_OR_RETURN(const PFN_vkGetInstanceProcAddr entry, load_vulkan());
  auto rig = std::make_unique<VulkanRig>();
  const auto tell = [problems = rig->problems_](std::string_view problem) { problems->emplace_back(problem); };
  const char* const chosen = std::getenv(kDevice);
  StatusOr<std::shared_ptr<VulkanInstance>> opened = VulkanInstance::create(entry, {tell});
  if (!opened.ok() && chosen != nullptr) {
    rig->is_watched_ = false;
    opened = VulkanInstance::create(entry);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<VulkanInstance> instance, std::move(opened));
  ASSIGN_OR_RETURN(const std::vector<VulkanDeviceInfo> devices, instance->devices());
  ASSIGN_OR_RETURN(const size_t index, pick_vulkan_device(devices, chosen == nullptr ? "vulkan:lavapipe" : chosen));
  ASSIGN_OR_RETURN(rig->device_,
                   VulkanDevice::create(instance, devices[index], {.is_robust = true, .is_reversed = is_reversed}));
  rig->recorder_ = Recorder(rig->device_->info().range_alignment);
  ASSIGN_OR_RETURN(rig->memory_, VulkanMemory::create(rig->device_));
  ASSIGN_OR_RETURN(rig->stream_, VulkanStream::create(rig->device_, *rig->memory_));
  return rig;
}

BufferId VulkanRig::allocate(uint64_t bytes, MemoryKind kind) {
  buffers_.push_back(expect_value(memory_->allocate(bytes, kind)));
  return buffers_.back();
}

BufferId VulkanRig::put(std::span<const std::byte> bytes) {
  const uint64_t size = (bytes.size() + 3) / 4 * 4;
  const BufferId up = allocate(size, MemoryKind::kUpload), there = allocate(size, MemoryKind::kDevice);
  CHECK(memory_->write(up, 0, bytes).ok());
  recorder_.copy({up, 0, size}, {there, 0, size});
  return there;
}

BufferId VulkanRig::make(uint64_t words, uint32_t word) {
  const BufferId there = allocate(words * 4, MemoryKind::kDevice);
  recorder_.fill({there, 0, words * 4}, word);
  return there;
}

void VulkanRig::run_unchecked() {
  const auto prepared = expect_value(stream_->prepare(recorder_.finish()));
  const Ticket ticket = expect_value(stream_->submit(*prepared));
  const Status ended = stream_->wait(ticket, std::chrono::steady_clock::now() + std::chrono::minutes(2));
  CHECK(ended.ok(), ended.ToString());
}

void VulkanRig::run() {
  run_unchecked();
  for (const std::string& problem : take_problems()) ADD_FAILURE() << problem;
}

std::vector<std::byte> VulkanRig::bytes(BufferId buffer, uint64_t begin, uint64_t size) {
  const BufferId back = allocate(size, MemoryKind::kReadback);
  recorder_.copy({buffer, begin, size}, {back, 0, size});
  run();
  std::vector<std::byte> result(size);
  CHECK(memory_->read(back, 0, result).ok());
  return result;
}

void VulkanRig::clear() {
  for (const BufferId buffer : buffers_) memory_->free(buffer);
  buffers_.clear();
  recorder_.finish();
}

namespace {
constexpr float kUntouched = 7;
}  // namespace

DeviceMatrix VulkanRigTest::put_matrix(const std::vector<float>& values, uint32_t rows, uint32_t columns) {
  std::vector<float> wide(size_t{rows} * (columns + 4), kUntouched);
  for (uint32_t i = 0; i < rows; ++i) {
    std::memcpy(&wide[size_t{i} * (columns + 4) + 2], &values[size_t{i} * columns], columns * sizeof(float));
  }
  return {rig().put(wide), 8, rows, columns, columns + 4};
}

DeviceMatrix VulkanRigTest::make(uint32_t rows, uint32_t columns) {
  return put_matrix(std::vector<float>(size_t{rows} * columns, std::nanf("")), rows, columns);
}

std::vector<float> VulkanRigTest::get(const DeviceMatrix& matrix) {
  const uint32_t width = matrix.columns + 4;
  const std::vector<float> wide = rig().values(matrix.buffer, uint64_t{matrix.rows} * width);
  std::vector<float> values;
  for (uint32_t i = 0; i < matrix.rows; ++i) {
    const float* row = &wide[size_t{i} * width];
    for (const uint32_t beside : {0u, 1u, width - 2, width - 1}) EXPECT_EQ(row[beside], kUntouched);
    values.insert(values.end(), row + 2, row + 2 + matrix.columns);
  }
  return values;
}

std::vector<std::string> VulkanRig::take_problems() { return std::exchange(*problems_, {}); }

}  // namespace transept::testing
