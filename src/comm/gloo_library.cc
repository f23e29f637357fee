#include "comm/gloo_library.h"

#include "base/dynamic_library.h"

namespace transept {
namespace {

// gloo::transport::tcp::CreateDevice(const gloo::transport::tcp::attr&)
constexpr const char* kCreateDevice = "_ZN4gloo9transport3tcp12CreateDeviceERKNS1_4attrE";

struct Functions {
  CreateGlooDevice* create_device = nullptr;
};

Status load(Functions& functions) {
  const StatusOr<DynamicLibrary> library = DynamicLibrary::open("libgloo.so.0");
  Status found = library.status();
  if (found.ok()) found = library->find(kCreateDevice, functions.create_device);
  if (!found.ok()) return not_found("Gloo cannot be used: ", error_message(found), "; install it (Debian: libgloo0)");
  return found;
}

}  // namespace

StatusOr<CreateGlooDevice*> load_gloo() {
  static const LoadedOnce<Functions> loaded(load);
  RETURN_IF_ERROR(loaded.status);
  return loaded.functions.create_device;
}

}  // namespace transept
