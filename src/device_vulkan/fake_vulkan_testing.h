// For tests: a Vulkan of functions that compute nothing and count. Any call can be made to fail; what was created and
// not destroyed is counted, and misuse (destroying twice, parents before children) is told. One at a time in a process:
// Vulkan's functions have no state of their own. Used by one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device_vulkan/cooperative_matrix.h"
#include "device_vulkan/vulkan_functions.h"

namespace transept::testing {

class FakeVulkan final {
 public:
  FakeVulkan();
  ~FakeVulkan();
  FakeVulkan(const FakeVulkan&) = delete;
  FakeVulkan& operator=(const FakeVulkan&) = delete;

  PFN_vkGetInstanceProcAddr entry() const;

  // What its one device says; a test changes it. The texts are not ended where a test fills them.
  struct Device {
    VkPhysicalDeviceProperties properties{};
    VkPhysicalDeviceDriverProperties driver{};
    VkPhysicalDeviceMemoryProperties memory{};
    VkDeviceSize max_allocation = VkDeviceSize{1} << 31;
    VkDeviceSize budget = VkDeviceSize{1} << 30, used = 0;
    bool has_timeline = true;
    VkQueueFlags queue_flags = VK_QUEUE_COMPUTE_BIT;
    std::vector<std::string> extensions{"VK_EXT_memory_budget"};
    // Of matrices; give_matrices() offers them.
    std::vector<MatrixProperties> matrices;
    bool has_matrices = false, has_full_subgroups = false, has_memory_model = true;
    uint32_t subgroup_size = 32;
  };
  Device device;
  uint32_t num_devices = 1;
  uint32_t claimed = 0;            // beside what is there: counts that lists claim to have
  VkDeviceSize more_memory = 256;  // what a buffer needs beyond its size; wraps
  std::string missing;             // a function that entry() does not find

  // The device offers these matrices and what they need.
  void give_matrices(std::vector<MatrixProperties> matrices);

  // The call with this number (from 0) of those that return a VkResult gives `result`. -1: none.
  int fail_at = -1;
  VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY;

  int num_calls = 0;
  std::string failed;  // the call that did
  // Objects that live, by kind; empty at the end.
  std::map<std::string, std::set<uint64_t>> live;
  std::vector<std::string> misuse;
  // What the last command buffers were given, by name of the command.
  std::map<std::string, int> commands;
  // What the last pipeline was specialized by, and the size of its subgroups; empty and 0: nothing.
  std::vector<uint32_t> constants;
  uint32_t required_subgroup = 0;
  std::vector<std::string> enabled;  // extensions of the last device

  size_t num_live() const;
};

}  // namespace transept::testing
