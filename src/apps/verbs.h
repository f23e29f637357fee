// The verbs of the binary: what `transept VERB` is, its flags, its help.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/flags.h"
#include "base/status.h"

namespace transept {

// Exit codes (docs/api.md): 0 ok, 1 some inputs failed, 2 usage, start-up, or no memory to go on with.
inline constexpr int kExitOk = 0;
inline constexpr int kExitSomeFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

struct Verb {
  std::string_view name;     // of one word, or of two: "bench serve"
  std::string_view usage;    // after "transept NAME "
  std::string_view summary;  // one line
  std::vector<FlagSpec> (*flags)();
  int (*run)(const Flags& flags);  // an exit code
};

const std::vector<Verb>& verbs();

// Prints "transept VERB: message" and a pointer to the help; gives kExitUsage.
int usage_error(std::string_view verb, const Status& status);

int run_generate(const Flags& flags);
int run_translate(const Flags& flags);
int run_transcribe(const Flags& flags);
int run_tokenize(const Flags& flags);
int run_detokenize(const Flags& flags);
int run_dump(const Flags& flags);
int run_bench(const Flags& flags);
int run_pack(const Flags& flags);
int run_serve(const Flags& flags);
int run_features(const Flags& flags);

}  // namespace transept
