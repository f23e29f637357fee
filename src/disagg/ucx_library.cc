#include "disagg/ucx_library.h"

#include <array>
#include <cstdio>

#include "base/log.h"

namespace transept {
namespace {

// Without it UCX writes to the standard output.
ucs_log_func_rc_t log_message(const char* /*file*/, unsigned /*line*/, const char* /*function*/, ucs_log_level_t level,
                              const ucs_log_component_config_t* /*config*/, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  if (std::vsnprintf(text.data(), text.size(), format, arguments) < 0) return UCS_LOG_FUNC_RC_STOP;
  if (level <= UCS_LOG_LEVEL_WARN) {
    log_warning("UCX: ", text.data());
  } else {
    log_info("UCX: ", text.data());
  }
  return UCS_LOG_FUNC_RC_STOP;
}

Status find_functions(UcxLibrary& functions) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::open("libucp.so.0"));
  TRANSEPT_UCX_FUNCTIONS(TRANSEPT_FIND_FUNCTION)
  return ok_status();
}

Status load(UcxLibrary& functions) {
  Status found = find_functions(functions);
  if (!found.ok()) return not_found("UCX cannot be used: ", error_message(found), "; install it (Debian: libucx0)");
  functions.ucs_log_push_handler(log_message);
  return found;
}

const LoadedOnce<UcxLibrary>& loaded() {
  static const LoadedOnce<UcxLibrary> loaded(load);
  return loaded;
}

}  // namespace

Status load_ucx() { return loaded().status; }

const UcxLibrary& ucx() { return loaded().functions; }

}  // namespace transept
