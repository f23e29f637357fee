#include "device_vulkan/vulkan_library.h"

#include "base/dynamic_library.h"

namespace transept {
namespace {

struct Entry {
  std::remove_pointer_t<PFN_vkGetInstanceProcAddr>* get = nullptr;
};

Status load(Entry& entry) {
  const StatusOr<DynamicLibrary> library = DynamicLibrary::open("libvulkan.so.1");
  Status found = library.ok() ? library->find("vkGetInstanceProcAddr", entry.get) : library.status();
  if (found.ok()) return found;
  return not_found("Vulkan cannot be used: ", error_message(found),
                   "; install it and the driver of your card (Debian: libvulkan1)");
}

}  // namespace

StatusOr<PFN_vkGetInstanceProcAddr> load_vulkan() {
  static const LoadedOnce<Entry> loaded(load);
  RETURN_IF_ERROR(loaded.status);
  return loaded.functions.get;
}

}  // namespace transept
