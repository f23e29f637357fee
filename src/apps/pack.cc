// `transept pack`: a model's folder, written anew so that it loads by being mapped.
#include <cstdio>

#include "apps/engine_flags.h"
#include "apps/interrupt.h"
#include "apps/verbs.h"
#include "base/environment.h"
#include "startup/pack_model.h"

namespace transept {

int run_pack(const Flags& flags) {
  if (flags.positional().size() != 2) return usage_error("pack", invalid_argument("give two folders: MODEL OUT"));
  const StatusOr<EngineConfig> config = engine_config(flags, AskLauncher::kNo);
  if (!config.ok()) return usage_error("pack", config.status());
  catch_interrupts();
  const std::string& out = flags.positional()[1];
  const StatusOr<PackedModel> packed = pack_model(*config, out, [] { return !interrupted(); });
  if (absl::IsCancelled(packed.status())) {
    std::fprintf(stderr, "transept pack: interrupted: %s is not written\n", out.c_str());
    return kExitInterrupted;
  }
  if (!packed.ok()) return usage_error("pack", blame_environment(packed.status(), config->from_environment));
  const std::string of_ranks =
      packed->num_ranks == 1 ? "" : str_cat(" in ", packed->num_ranks, " files, one a rank; the first one");
  std::printf("%s: %s of weights%s (%s), %zu other files\n", out.c_str(), format_bytes(packed->num_bytes).c_str(),
              of_ranks.c_str(), packed->storage.c_str(), packed->num_copied);
  return kExitOk;
}

}  // namespace transept
