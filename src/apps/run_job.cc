#include "apps/run_job.h"

#include <algorithm>
#include <chrono>

#include "apps/engine_flags.h"
#include "apps/epd_session.h"
#include "apps/interrupt.h"
#include "apps/rank_processes.h"
#include "apps/stats_json.h"
#include "apps/verbs.h"
#include "base/environment.h"
#include "base/log.h"
#include "request/resolve.h"

namespace transept {
namespace {

Status write_stats(const Flags& flags, const LoadedModel& model, const OrderedRun& run, double elapsed) {
  const auto path = flags.text("stats-json");
  if (!path.has_value()) return ok_status();
  Json stats = engine_stats_json(model, elapsed);
  stats.set("num_requests", run.num_requests());
  stats.set("num_failed", run.num_failed());
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(*path, false));
  file.write_line(stats.dump());
  return file.close();
}

void show_notes(const GenerationConfig& generation) {
  for (const std::string& note : startup_notes(generation)) {
    const bool is_missing = note.find("not supported") != std::string::npos;
    is_missing ? log_warning(note) : log_info(note);
  }
}

// At most a screenful of ids; what is behind the last request was not even looked at.
void report_interrupt(const Job& job, const OrderedRun& run) {
  constexpr size_t kMaxListed = 32;
  const std::vector<std::string> ids = run.unfinished();
  std::string text;
  if (!ids.empty() && !job.may_leave_gaps()) {
    text = "; the first that is not: " + ids.front();
  } else if (!ids.empty()) {
    std::vector<std::string> listed(ids.begin(),
                                    ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), kMaxListed)));
    text = "; not finished: " + join(listed, ", ");
    if (ids.size() > kMaxListed) text += str_cat(", ... (", ids.size(), " in all, the last ", ids.back(), ")");
  }
  if (run.has_unread()) {
    std::string_view one = job.unit();
    if (one.ends_with('s')) one.remove_suffix(1);
    text += str_cat("; the input behind ", one, " ", run.num_requests(), " was not read");
  }
  log_error("interrupted: ", run.num_requests() - static_cast<int64_t>(ids.size()), " of ", run.num_requests(), " ",
            job.unit(), " finished and written", text);
}

// The error of a request's field as its flag's, where there is one.
Status blame_flag(const Status& status, const Flags& flags) {
  std::string flag = error_param(status);
  for (char& c : flag) c = c == '_' ? '-' : c;
  if (flag == "n") flag = "n-best";
  if (status.ok() || !flags.has(flag)) return status;
  return blame_environment(with_prefix(status, str_cat("--", flag, " ", *flags.text(flag))), flags.from_environment());
}

Status run_engine(const Flags& flags, EngineConfig config, OrderedRun::Options options, Job& job, int* exit_code) {
  const auto begin = std::chrono::steady_clock::now();
  config.max_trace_steps = flags.has("stats-json") ? 100000 : 0;
  const SteadyClock clock;
  // Behind the model, into which it receives rows.
  LoadedModel model;
  ASSIGN_OR_RETURN(const std::shared_ptr<RankProcesses> ranks, RankProcesses::start(flags, config));
  ASSIGN_OR_RETURN(const std::unique_ptr<EpdSession> session, EpdSession::start(flags, config));
  ASSIGN_OR_RETURN(model, ranks == nullptr ? EpdSession::load(session.get(), config, clock)
                                           : load_engine(config, clock, RankProcesses::communicator(ranks)));
  show_notes(model.generation);
  RETURN_IF_ERROR(blame_flag(job.begin(model), flags));
  StatusOr<OutputFile> output = OutputFile::open(flags.text_or("output", "-"), true, flags.is_on("resume"));
  if (!output.ok()) return with_prefix(output.status(), flags.name_of("output"));
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadyQueue> ready, ReadyQueue::create());

  catch_interrupts();
  AsyncEngine engine(std::move(model.engine), {.max_queued_requests = OrderedRun::kMaxInFlight}, clock);
  OrderedRun run(model, engine, clock, std::move(options), *ready, *output);
  if (session != nullptr) RETURN_IF_ERROR(session->begin(engine, model));
  const Status ran = run.run(job);
  if (session != nullptr) session->end_work();
  model.engine = engine.stop();
  RETURN_IF_ERROR(ran);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RETURN_IF_ERROR(output->close());
  RETURN_IF_ERROR(write_stats(flags, model, run, elapsed));
  *exit_code = run.num_failed() > 0 ? kExitSomeFailed : kExitOk;
  if (interrupted()) {
    report_interrupt(job, run);
    *exit_code = kExitInterrupted;
  }
  return ok_status();
}

}  // namespace

int run_job(std::string_view verb, const Flags& flags, OrderedRun::Options options, Job& job) {
  StatusOr<EngineConfig> config = engine_config(flags);
  if (!config.ok()) return usage_error(verb, config.status());
  options.shows_progress = !flags.is_on("quiet");
  int exit_code = kExitOk;
  const Status status = run_engine(flags, std::move(config).value(), std::move(options), job, &exit_code);
  return status.ok() ? exit_code : usage_error(verb, status);
}

StatusOr<std::optional<Duration>> request_timeout(const Flags& flags) {
  if (!flags.has("request-timeout")) return std::optional<Duration>();
  ASSIGN_OR_RETURN(const double timeout, flags.number("request-timeout", 0.001, 1e6, 0));
  return std::optional<Duration>(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout)));
}

}  // namespace transept
