// `transept transcribe`: audio files to transcripts, several at once.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "apps/engine_flags.h"
#include "apps/epd_session.h"
#include "apps/interrupt.h"
#include "apps/live_flags.h"
#include "apps/live_job.h"
#include "apps/rank_processes.h"
#include "apps/stats_json.h"
#include "apps/transcribe_flags.h"
#include "apps/transcribe_job.h"
#include "apps/verbs.h"
#include "base/log.h"
#include "startup/load_engine.h"

namespace transept {
namespace {

constexpr std::string_view kVerb = "transcribe";

struct Work {
  TranscribeSettings settings;
  std::vector<FoundFile> inputs;  // without --live
  std::optional<LiveSettings> live;
};

Status make_output_folder(const Flags& flags, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const bool is_folder = std::filesystem::is_directory(folder, error);
  if (is_folder && ::access(folder.c_str(), W_OK | X_OK) == 0) return ok_status();
  const std::string reason = is_folder ? std::strerror(errno) : error ? error.message() : "is a file";
  return invalid_argument(flags.name_of("output-dir"), ": ", folder, ": ", reason);
}

void leave_out_finished(Work& work) {
  std::vector<FoundFile>& inputs = work.inputs;
  const auto is_done = [&](const FoundFile& input) {
    return input.problem.ok() && input.path != "-" && has_outputs(work.settings.files, input);
  };
  const size_t num_inputs = inputs.size();
  std::erase_if(inputs, is_done);
  const size_t num_done = num_inputs - inputs.size();
  if (!work.settings.has_notes) return;
  write_log(LogLevel::kInfo,
            str_cat("resume: ", num_done, " of ", num_inputs, num_inputs == 1 ? " file" : " files", " done already"));
}

// Everything that needs no model.
StatusOr<Work> prepare(const Flags& flags) {
  const std::vector<std::string>& arguments = flags.positional();
  const bool is_live = flags.is_on("live");
  if (arguments.empty() || (arguments.size() < 2 && !is_live)) {
    return invalid_argument(arguments.empty() ? "which model, and which audio?" : "which audio?",
                            " transept transcribe MODEL AUDIO...");
  }
  Work work;
  ASSIGN_OR_RETURN(work.settings, transcribe_settings(flags));
  const TranscribeSettings& settings = work.settings;
  for (const std::string& warning : settings.warnings) log_warning(warning);
  ASSIGN_OR_RETURN(work.live, live_settings(flags));
  if (work.live.has_value()) {
    if (work.live->has_files) RETURN_IF_ERROR(make_output_folder(flags, settings.files.folder));
    return work;
  }
  FoundFiles found = find_audio(std::span(arguments).subspan(1), settings.recursive);
  work.inputs = std::move(found.inputs);
  if (found.num_repeated > 0) {
    log_warning(found.num_repeated, found.num_repeated == 1 ? " file was given more than once, and is done once"
                                                            : " files were given more than once, and are done once");
  }
  const TranscriptFormat format = settings.files.formats.front();
  const bool is_list = format == TranscriptFormat::kTxt || format == TranscriptFormat::kJson;
  if (settings.to_stdout && !is_list && work.inputs.size() > 1) {
    return invalid_argument(flags.name_of("output-dir"), ": standard output takes ", transcript_extension(format),
                            " of one file, and there are ", work.inputs.size());
  }
  name_outputs(work.inputs, settings.files);
  keep_shard(settings.shard, work.inputs);  // behind the names: files of one name are told apart in all shards alike
  if (!settings.to_stdout) RETURN_IF_ERROR(make_output_folder(flags, settings.files.folder));
  if (settings.resume) leave_out_finished(work);
  return work;
}

Status write_stats(const Flags& flags, const LoadedModel& model, const TranscribeJob& job) {
  const auto path = flags.text("stats-json");
  if (!path.has_value()) return ok_status();
  const TranscribeJob::Counts counts = job.counts();
  Json stats = engine_stats_json(model, job.elapsed_seconds());
  stats.set("num_files", counts.num_written);
  stats.set("num_failed", counts.num_failed);
  stats.set("audio_seconds", counts.audio_seconds);
  stats.set("num_windows", counts.windows.num_windows);
  stats.set("num_requests", counts.windows.num_requests);
  stats.set("num_fallbacks", counts.windows.num_fallbacks);
  Json files = Json::array();
  for (const TranscribeJob::Report& report : job.reports()) {
    Json file = Json::object();
    file.set("path", report.path);
    file.set("audio_seconds", report.audio_seconds);
    file.set("seconds", report.seconds);
    file.set("num_windows", report.windows.num_windows);
    file.set("num_requests", report.windows.num_requests);
    file.set("num_fallbacks", report.windows.num_fallbacks);
    files.push_back(std::move(file));
  }
  stats.set("files", std::move(files));
  return write_file(*path, stats.dump() + "\n");
}

void report_interrupt(const TranscribeJob& job) {
  constexpr size_t kMaxListed = 32;
  const std::vector<std::string> paths = job.unfinished();
  std::vector<std::string> listed(paths.begin(),
                                  paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), kMaxListed)));
  std::string text = listed.empty() ? "" : "; not finished: " + join(listed, ", ");
  if (paths.size() > kMaxListed) text += str_cat(", ... (", paths.size(), " in all)");
  log_error("interrupted: ", job.counts().num_written, " of ", job.num_inputs(), " files finished and written", text);
}

Status run_files(const Flags& flags, Work& work, const SpeechModel& speech, AsyncEngine& engine, LoadedModel& model,
                 EpdSession* session, int* exit_code) {
  const Transcriber transcriber(speech);
  OrderedConsole console(stdout, stderr);
  TranscribeJob job(
      [&](const AudioSource& audio, const TranscribeOptions& options, const TranscribeObserver& observer,
          const TranscribeLimits& limits) { return transcriber.transcribe(audio, options, observer, limits); },
      [&] { return engine.failure(); }, work.settings, std::move(work.inputs), console);
  if (session != nullptr) RETURN_IF_ERROR(session->begin(engine, model));
  const Status ran = job.run();
  if (session != nullptr) session->end_work();
  model.engine = engine.stop();
  RETURN_IF_ERROR(blame_transcribe_flag(ran, flags));
  if (!console.is_ok()) return absl::DataLossError("standard output: not everything could be written");
  RETURN_IF_ERROR(write_stats(flags, model, job));
  *exit_code = job.counts().num_failed > 0 ? kExitSomeFailed : kExitOk;
  if (interrupted()) {
    report_interrupt(job);
    *exit_code = kExitInterrupted;
  }
  return ok_status();
}

// Ctrl-C is how a recording ends: the exit code is that of the turns.
Status run_live(const Flags& flags, const Work& work, const SpeechModel& speech, AsyncEngine& engine,
                LoadedModel& model, EpdSession* session, int* exit_code) {
  if (session != nullptr) RETURN_IF_ERROR(session->begin(engine, model));
  LiveReport report;
  const Status ran = transcribe_live(speech, *work.live, work.settings, engine, &report);
  if (session != nullptr) session->end_work();
  model.engine = engine.stop();
  RETURN_IF_ERROR(blame_transcribe_flag(ran, flags));
  if (const auto path = flags.text("stats-json")) {
    Json stats = engine_stats_json(model, report.elapsed_seconds);
    stats.set("num_turns", report.turns.num_turns);
    stats.set("num_failed", report.turns.num_failed);
    stats.set("audio_seconds", report.turns.transcript.duration);
    stats.set("num_words_told", report.turns.num_words_told);
    stats.set("num_words_revised", report.turns.num_words_revised);
    RETURN_IF_ERROR(write_file(*path, stats.dump() + "\n"));
  }
  *exit_code = report.turns.num_failed > 0 ? kExitSomeFailed : kExitOk;
  return ok_status();
}

Status run_transcriptions(const Flags& flags, EngineConfig config, Work work, int* exit_code) {
  config.max_trace_steps = flags.has("stats-json") ? 100000 : 0;
  work.settings.options.seed = config.seed;
  const SteadyClock clock;
  // Behind the model, into which it receives rows.
  LoadedModel model;
  ASSIGN_OR_RETURN(const std::shared_ptr<RankProcesses> ranks, RankProcesses::start(flags, config));
  ASSIGN_OR_RETURN(const std::unique_ptr<EpdSession> session, EpdSession::start(flags, config));
  ASSIGN_OR_RETURN(model, ranks == nullptr ? EpdSession::load(session.get(), config, clock)
                                           : load_engine(config, clock, RankProcesses::communicator(ranks)));
  catch_interrupts();
  // A request waits for each window that is worked on.
  const int32_t num_windows = work.settings.num_workers * work.settings.options.batch_size;
  AsyncEngine engine(std::move(model.engine), {.max_queued_requests = std::max(512, 2 * num_windows)}, clock);
  ASSIGN_OR_RETURN(const SpeechModel speech, SpeechModel::of(model, engine));
  if (work.live.has_value()) return run_live(flags, work, speech, engine, model, session.get(), exit_code);
  return run_files(flags, work, speech, engine, model, session.get(), exit_code);
}

}  // namespace

int run_transcribe(const Flags& flags) {
  StatusOr<Work> work = prepare(flags);
  if (!work.ok()) return usage_error(kVerb, work.status());
  StatusOr<EngineConfig> config = engine_config(flags);
  if (!config.ok()) return usage_error(kVerb, config.status());
  if (work->inputs.empty() && !work->live.has_value()) return kExitOk;  // all done already, or more shards than files
  int exit_code = kExitOk;
  const Status status = run_transcriptions(flags, std::move(config).value(), std::move(work).value(), &exit_code);
  return status.ok() ? exit_code : usage_error(kVerb, status);
}

}  // namespace transept
