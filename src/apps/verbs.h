// The verbs of the binary: what `transept VERB` is, its flags, its help.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/exit_codes.h"
#include "apps/flags.h"
#include "base/status.h"

namespace transept {

struct Verb {
  std::string_view name;     // one word, or two: "bench serve"
  std::string_view usage;    // after "transept NAME "
  std::string_view summary;  // one line
  std::vector<FlagSpec> (*flags)();
  int (*run)(const Flags& flags);  // an exit code
  std::string_view example;        // a command that works, or several with line breaks between them
};

const std::vector<Verb>& verbs();

int run_generate(const Flags& flags);
int run_translate(const Flags& flags);
int run_transcribe(const Flags& flags);
int run_tokenize(const Flags& flags);
int run_detokenize(const Flags& flags);
int run_dump(const Flags& flags);
int run_bench(const Flags& flags);
int run_pack(const Flags& flags);
int run_serve(const Flags& flags);
int run_proxy(const Flags& flags);
int run_epd_status(const Flags& flags);
int run_features(const Flags& flags);
int run_doctor(const Flags& flags);
int run_devices(const Flags& flags);
int run_inspect(const Flags& flags);
int run_help(const Flags& flags);
int run_download(const Flags& flags);
int run_models(const Flags& flags);
int run_rm(const Flags& flags);

}  // namespace transept
