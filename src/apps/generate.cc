// `transept generate`: prompts from arguments or JSONL lines through the engine, results in input order.
#include <algorithm>
#include <optional>

#include "apps/engine_flags.h"
#include "apps/generate_run.h"
#include "apps/interrupt.h"
#include "apps/request_flags.h"
#include "apps/stats_json.h"
#include "apps/verbs.h"
#include "base/log.h"
#include "request/resolve.h"

namespace transept {
namespace {

Status write_stats(const Flags& flags, const LoadedModel& model, const GenerateRun& run, double elapsed) {
  const auto path = flags.text("stats-json");
  if (!path.has_value()) return ok_status();
  Json stats = engine_stats_json(model, elapsed);
  stats.set("num_requests", run.num_requests());
  stats.set("num_failed", run.num_failed());
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(*path, false));
  file.write_line(stats.dump());
  return file.close();
}

// What is shown as it comes is one text, and is certain from its first word on.
Status check_stream(const Flags& flags) {
  if (flags.positional().size() != 2) return invalid_argument("--stream shows one answer: give one PROMPT");
  for (const char* name : {"json", "score", "logprobs", "num-beams", "use-beam-search", "best-of"}) {
    if (flags.has(name)) return invalid_argument("--stream shows one text as it comes: leave --", name, " out");
  }
  return ok_status();
}

// Prompts: arguments, else --input, else lines of standard input as plain texts would be a guess: JSONL is asked for.
Status check_inputs(const Flags& flags) {
  const bool has_texts = flags.positional().size() > 1;
  if (flags.positional().empty()) return invalid_argument("which model? transept generate MODEL [PROMPT...]");
  if (has_texts && flags.has("input")) return invalid_argument("give prompts as arguments or by --input, not both");
  if (!has_texts && !flags.has("input")) {
    return invalid_argument("no prompt: give texts as arguments, or JSON lines by --input FILE (- for standard input)");
  }
  if (flags.is_on("stream")) RETURN_IF_ERROR(check_stream(flags));
  return check_distinct_files(flags, {"input", "output", "stats-json"});
}

StatusOr<GenerateRun::Options> run_options(const Flags& flags) {
  GenerateRun::Options options;
  ASSIGN_OR_RETURN(options.defaults, request_defaults(flags));
  options.score_only = flags.is_on("score");
  options.as_json = flags.has("input") || flags.is_on("json") || options.score_only || flags.has("logprobs");
  options.stream = flags.is_on("stream");
  if (flags.has("request-timeout")) {
    ASSIGN_OR_RETURN(const double timeout, flags.number("request-timeout", 0.001, 1e6, 0));
    options.request_timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout));
  }
  return options;
}

// At most a screenful of ids; `unread` lines of the input were not even looked at.
std::string describe_unfinished(const std::vector<std::string>& ids, bool has_unread, int64_t num_read) {
  constexpr size_t kMaxListed = 32;
  std::string text;
  if (!ids.empty()) {
    std::vector<std::string> listed(ids.begin(),
                                    ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), kMaxListed)));
    text = "; not finished: " + join(listed, ", ");
    if (ids.size() > kMaxListed) text += str_cat(", ... (", ids.size(), " in all, the last ", ids.back(), ")");
  }
  if (has_unread) text += str_cat("; the input behind request ", num_read, " was not read");
  return text;
}

}  // namespace

int run_generate(const Flags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  if (const Status inputs = check_inputs(flags); !inputs.ok()) return usage_error("generate", inputs);
  StatusOr<EngineConfig> config = engine_config(flags);
  if (!config.ok()) return usage_error("generate", config.status());
  StatusOr<GenerateRun::Options> options = run_options(flags);
  if (!options.ok()) return usage_error("generate", options.status());
  const bool is_text_run = flags.positional().size() > 1;
  if (is_text_run && !flags.has("log-level")) set_log_level(LogLevel::kWarning);
  config->max_trace_steps = flags.has("stats-json") ? 100000 : 0;

  std::optional<LineReader> reader;
  if (!is_text_run) {
    StatusOr<LineReader> opened = LineReader::open(*flags.text("input"));
    if (!opened.ok()) return usage_error("generate", with_prefix(opened.status(), flags.name_of("input")));
    reader.emplace(std::move(opened).value());
  }
  const SteadyClock clock;
  StatusOr<LoadedModel> model = load_engine(*config, clock);
  if (!model.ok()) return usage_error("generate", model.status());
  for (const std::string& note : startup_notes(model->generation)) {
    const bool is_missing = note.find("not supported") != std::string::npos;
    is_missing ? log_warning(note) : log_info(note);
  }
  StatusOr<OutputFile> output = OutputFile::open(flags.text_or("output", "-"), true);
  if (!output.ok()) return usage_error("generate", with_prefix(output.status(), flags.name_of("output")));

  const StatusOr<std::unique_ptr<ReadyQueue>> ready = ReadyQueue::create();
  if (!ready.ok()) return usage_error("generate", ready.status());

  catch_interrupts();
  AsyncEngine engine(std::move(model->engine), {.max_queued_requests = GenerateRun::kMaxInFlight}, clock);
  GenerateRun run(*model, engine, clock, *std::move(options), **ready, *output);
  std::vector<std::string> texts(flags.positional().begin() + 1, flags.positional().end());
  Status status = is_text_run ? run.run_texts(texts) : run.run_lines(*reader);
  model->engine = engine.stop();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::vector<std::string> unfinished = run.unfinished();
  if (status.ok()) status = output->close();
  if (status.ok()) status = write_stats(flags, *model, run, elapsed);
  if (!status.ok()) return usage_error("generate", status);
  if (interrupted()) {
    log_error("interrupted: ", static_cast<size_t>(run.num_requests()) - unfinished.size(), " of ", run.num_requests(),
              " requests finished and written", describe_unfinished(unfinished, run.has_unread(), run.num_requests()));
    return kExitInterrupted;
  }
  return run.num_failed() > 0 ? kExitSomeFailed : kExitOk;
}

}  // namespace transept
