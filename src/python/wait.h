// Waiting without the GIL, in slices, between which Python's signal handlers run: Ctrl-C ends a wait within a slice.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <optional>

#include "python/released_gil.h"

namespace transept::python {

constexpr double kSliceSeconds = 0.02;

// Calls `step(seconds)` without the GIL until it is true; it waits for at most `seconds`. Returns false once
// `timeout_seconds` (nullopt: no limit) have passed. REQUIRES: the GIL. Throws what a signal handler raises, such as
// KeyboardInterrupt, and what `step` throws.
template <typename Step>
bool wait_in_slices(std::optional<double> timeout_seconds, const Step& step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (bool is_first = true;; is_first = false) {
    double slice = kSliceSeconds;
    if (timeout_seconds.has_value()) {
      const double left = *timeout_seconds - std::chrono::duration<double>(Clock::now() - begin).count();
      if (left <= 0 && !is_first) return false;
      slice = left < slice ? (left > 0 ? left : 0) : slice;
    }
    {
      const ReleasedGil release;
      if (step(slice)) return true;
    }
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

}  // namespace transept::python
