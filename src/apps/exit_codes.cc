#include "apps/exit_codes.h"

#include <cstdio>

#include "base/quoted.h"

namespace transept {

int usage_error(std::string_view verb, const Status& status) {
  std::fprintf(stderr, "transept %.*s: %s\n", static_cast<int>(verb.size()), verb.data(),
               printable(error_message(status)).c_str());
  if (absl::IsInvalidArgument(status)) {
    std::fprintf(stderr, "transept %.*s --help shows what it takes\n", static_cast<int>(verb.size()), verb.data());
  }
  return kExitUsage;
}

}  // namespace transept
