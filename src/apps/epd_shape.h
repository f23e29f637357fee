// The shape of a fleet on one machine (--epd 1E1D), and what each instance gets of the machine. Pure functions:
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "encoder_cache/broker.h"

namespace transept {

struct EpdShape {
  int32_t num_encode = 1;
  int32_t num_decode = 1;

  int32_t num_instances() const { return num_encode + num_decode; }
  std::string text() const;  // "1E1D"

  bool operator==(const EpdShape&) const = default;
};

// Threads of each encode instance and of each decode instance.
struct EpdThreads {
  int32_t encode = 1;
  int32_t decode = 1;

  bool operator==(const EpdThreads&) const = default;
};

struct EpdInstance {
  std::string name;  // e0, e1, .., p0, ..
  InstanceRole role = InstanceRole::kEncode;
  int32_t num_threads = 1;
  std::string cpus;  // the value of --cpu-affinity: one processor a thread; "none": not pinned
};

// "2E1D", in any case; 1 to 64 of each. Errors: kInvalidArgument, which begins with the flag: --epd 0E1D: ..
StatusOr<EpdShape> parse_epd_shape(std::string_view text);
// "E,D": 1 to kMaxThreads each. Errors: kInvalidArgument, which begins with --epd-threads.
StatusOr<EpdThreads> parse_epd_threads(std::string_view text);

// Encode instances come first. Without `threads`, `num_cpus` are divided among all instances, at least 1 each. `cores`
// has the processors of each core (apps/cpu_cores.h). Each instance gets cores of its own, and one processor a core
// while there are enough cores for that; else processors of its own; else none is pinned.
std::vector<EpdInstance> plan_epd(const EpdShape& shape, const std::optional<EpdThreads>& threads, int32_t num_cpus,
                                  std::span<const std::vector<int>> cores);

}  // namespace transept
