#include "disagg/redis_library.h"

#include <dlfcn.h>

namespace transept {
namespace {

#define TRANSEPT_TEXT_OF(macro) TRANSEPT_TEXT_OF_VALUE(macro)
#define TRANSEPT_TEXT_OF_VALUE(value) #value
constexpr const char* kName = "libhiredis.so." TRANSEPT_TEXT_OF(HIREDIS_SONAME);

Status missing(std::string_view what) {
  return not_found("Redis cannot be used: ", what, "; install it (Debian 12: libhiredis0.14)");
}

struct Loaded {
  RedisLibrary library;
  Status status;

  Loaded() { status = load(); }

  Status load() {
    void* const handle = ::dlopen(kName, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) return missing(str_cat(kName, " cannot be loaded"));
#define TRANSEPT_FIND(name)                                                        \
  library.name = reinterpret_cast<decltype(library.name)>(::dlsym(handle, #name)); \
  if (library.name == nullptr) return missing(str_cat(kName, " has no ", #name));
    TRANSEPT_REDIS_FUNCTIONS(TRANSEPT_FIND)
#undef TRANSEPT_FIND
    return ok_status();
  }
};

const Loaded& loaded() {
  static const Loaded loaded;
  return loaded;
}

}  // namespace

Status load_redis() { return loaded().status; }

const RedisLibrary& redis_library() { return loaded().library; }

}  // namespace transept
