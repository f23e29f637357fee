// `transept translate`: text files line by line through the engine, for models of every family.
#include <unistd.h>

#include "apps/request_flags.h"
#include "apps/run_job.h"
#include "apps/translate_job.h"
#include "apps/verbs.h"
#include "request/field_table.h"

namespace transept {
namespace {

StatusOr<TranslateJob::Options> job_options(const Flags& flags) {
  TranslateJob::Options options;
  ASSIGN_OR_RETURN(options.fields, request_defaults(flags));
  if (const auto prefix = flags.text("decoder-prompt")) options.fields.set("decoder_prompt", *prefix);
  if (flags.has("n-best")) {
    ASSIGN_OR_RETURN(const int64_t n_best, flags.integer("n-best", 1, kMaxOutputs, 1));
    options.n_best = static_cast<int32_t>(n_best);
  }
  options.wants_beams = options.n_best.has_value();
  for (const char* name : {"num-beams", "temperature", "top-p", "top-k", "min-p"}) {
    if (flags.has(name)) options.wants_beams = false;
  }
  options.warn_of_cuts = !flags.has("max-tokens");
  options.count_lines = isatty(STDERR_FILENO) == 1;
  return options;
}

std::vector<std::string> input_paths(const Flags& flags) {
  std::vector<std::string> paths(flags.positional().begin() + 1, flags.positional().end());
  if (paths.empty()) paths.emplace_back("-");
  return paths;
}

StatusOr<TextLines> open_inputs(const Flags& flags) {
  if (flags.positional().empty()) return invalid_argument("which model? transept translate MODEL [FILE...]");
  const std::vector<std::string> paths = input_paths(flags);
  RETURN_IF_ERROR(check_output_apart(flags, paths));
  RETURN_IF_ERROR(check_distinct_files(flags, {"output", "stats-json"}));
  return TextLines::open(paths);
}

}  // namespace

int run_translate(const Flags& flags) {
  StatusOr<TextLines> lines = open_inputs(flags);
  if (!lines.ok()) return usage_error("translate", lines.status());
  StatusOr<TranslateJob::Options> options = job_options(flags);
  if (!options.ok()) return usage_error("translate", options.status());
  OrderedRun::Options run_options;
  StatusOr<std::optional<Duration>> timeout = request_timeout(flags);
  if (!timeout.ok()) return usage_error("translate", timeout.status());
  run_options.request_timeout = *timeout;
  run_options.skip_cumulative_logprob = !options->n_best.has_value();  // only such answers show scores
  TranslateJob job(std::move(lines).value(), std::move(options).value());
  return run_job("translate", flags, std::move(run_options), job);
}

}  // namespace transept
