#include "disagg/zmq_library.h"

#include <dlfcn.h>

namespace transept {
namespace {

constexpr const char* kName = "libzmq.so.5";

Status missing(std::string_view what) {
  return not_found("instances cannot be connected: ", what, "; install it (Debian: libzmq5)");
}

struct Loaded {
  ZmqLibrary library;
  Status status;

  Loaded() { status = load(); }

  Status load() {
    void* const handle = ::dlopen(kName, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) return missing(str_cat(kName, " cannot be loaded"));
#define TRANSEPT_FIND(name)                                                        \
  library.name = reinterpret_cast<decltype(library.name)>(::dlsym(handle, #name)); \
  if (library.name == nullptr) return missing(str_cat(kName, " has no ", #name));
    TRANSEPT_ZMQ_FUNCTIONS(TRANSEPT_FIND)
#undef TRANSEPT_FIND
    int major = 0, minor = 0, patch = 0;
    library.zmq_version(&major, &minor, &patch);
    if (major == 4 && minor >= 3) return ok_status();
    return missing(str_cat("libzmq ", major, ".", minor, ".", patch, " is not 4.3 or later"));
  }
};

const Loaded& loaded() {
  static const Loaded loaded;
  return loaded;
}

}  // namespace

Status load_zmq() { return loaded().status; }

const ZmqLibrary& zmq() { return loaded().library; }

}  // namespace transept
