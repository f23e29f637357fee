#include "base/descriptor_limit.h"

#include <sys/resource.h>

#include <limits>

namespace transept {

uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<uint64_t>::max();  // then nobody counts
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return before < limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
}

}  // namespace transept
