#include "base/dynamic_library.h"

#include <dlfcn.h>

namespace transept {

StatusOr<DynamicLibrary> DynamicLibrary::open(const std::string& file) {
  void* const handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return not_found(file, " cannot be loaded");
  return DynamicLibrary(file, handle);
}

void* DynamicLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

Status DynamicLibrary::lacks(const char* name) const { return not_found(file_, " has no ", name); }

}  // namespace transept
