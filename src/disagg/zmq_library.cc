#include "disagg/zmq_library.h"

namespace transept {
namespace {

Status missing(std::string_view what) {
  return not_found("instances cannot be connected: ", what, "; install it (Debian: libzmq5)");
}

Status find_functions(ZmqLibrary& functions) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::open("libzmq.so.5"));
  TRANSEPT_ZMQ_FUNCTIONS(TRANSEPT_FIND_FUNCTION)
  return ok_status();
}

Status load(ZmqLibrary& functions) {
  if (const Status found = find_functions(functions); !found.ok()) return missing(error_message(found));
  int major = 0, minor = 0, patch = 0;
  functions.zmq_version(&major, &minor, &patch);
  if (major == 4 && minor >= 3) return ok_status();
  return missing(str_cat("libzmq ", major, ".", minor, ".", patch, " is not 4.3 or later"));
}

const LoadedOnce<ZmqLibrary>& loaded() {
  static const LoadedOnce<ZmqLibrary> loaded(load);
  return loaded;
}

}  // namespace

Status load_zmq() { return loaded().status; }

const ZmqLibrary& zmq() { return loaded().functions; }

}  // namespace transept
