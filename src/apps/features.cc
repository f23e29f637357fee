// `transept features`: what this version does, and what it refuses and why. --markdown prints docs/features.md.
#include <cstdio>

#include "apps/verbs.h"
#include "startup/features.h"

namespace transept {

int run_features(const Flags& flags) {
  if (!flags.positional().empty()) return usage_error("features", invalid_argument("takes no arguments, only flags"));
  const std::string table = flags.is_on("markdown") ? features_markdown() : features_text();
  const bool written = std::fwrite(table.data(), 1, table.size(), stdout) == table.size() && std::fflush(stdout) == 0;
  return written ? kExitOk
                 : usage_error("features", absl::DataLossError("standard output: not everything was written"));
}

}  // namespace transept
