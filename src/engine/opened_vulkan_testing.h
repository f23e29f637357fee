// For tests: lavapipe, Mesa's Vulkan device on the processor, opened for models under Khronos' validation with its
// checks of barriers. Thread-safe.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "rank/vulkan_kind.h"

namespace transept::testing {

// Of Mesa: other drivers of the machine are not asked. A developer's own choice stays.
inline constexpr char kLavapipe[] = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";

struct OpenedVulkan {
  Mutex mutex;
  std::vector<std::string> problems ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const DeviceKind> kind;  // null: there is no lavapipe, or no validation layer
  std::string why;

  // matrices: --device-matrices. off: which form is faster would be this machine's affair.
  explicit OpenedVulkan(bool keeps_recordings = true, const std::string& matrices = "off") {
    if (std::filesystem::exists(kLavapipe)) ::setenv("VK_ICD_FILENAMES", kLavapipe, 0);
    const auto tell = [this](std::string_view problem) {
      const MutexLock lock(mutex);
      problems.emplace_back(problem);
    };
    auto opened = open_vulkan_kind("vulkan:lavapipe",
                                   {.on_problem = tell, .keeps_recordings = keeps_recordings, .matrices = matrices});
    if (!opened.ok()) why = error_message(opened.status());
    if (opened.ok()) kind = *std::move(opened);
  }
  std::vector<std::string> take_problems() {
    const MutexLock lock(mutex);
    return std::exchange(problems, {});
  }
};

}  // namespace transept::testing
