#include "disagg/redis_library.h"

namespace transept {
namespace {

#define TRANSEPT_TEXT_OF(macro) TRANSEPT_TEXT_OF_VALUE(macro)
#define TRANSEPT_TEXT_OF_VALUE(value) #value
constexpr const char* kName = "libhiredis.so." TRANSEPT_TEXT_OF(HIREDIS_SONAME);

Status find_functions(RedisLibrary& functions) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::open(kName));
  TRANSEPT_REDIS_FUNCTIONS(TRANSEPT_FIND_FUNCTION)
  return ok_status();
}

Status load(RedisLibrary& functions) {
  Status found = find_functions(functions);
  if (found.ok()) return found;
  return not_found("Redis cannot be used: ", error_message(found), "; install it (Debian 12: libhiredis0.14)");
}

const LoadedOnce<RedisLibrary>& loaded() {
  static const LoadedOnce<RedisLibrary> loaded(load);
  return loaded;
}

}  // namespace

Status load_redis() { return loaded().status; }

const RedisLibrary& redis_library() { return loaded().functions; }

}  // namespace transept
