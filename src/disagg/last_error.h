// The last thing that failed in a part of an instance, for its record (encoder_cache/broker.h). A value.
#pragma once

#include <string>

#include "base/clock.h"

namespace transept {

struct LastError {
  std::string message;  // empty: nothing has failed
  TimePoint at = TimePoint::min();
};

}  // namespace transept
