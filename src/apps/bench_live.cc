#include "apps/bench_live.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/audio_files.h"
#include "apps/exit_codes.h"
#include "apps/interrupt.h"
#include "apps/output_file.h"
#include "base/environment.h"
#include "base/log.h"
#include "load/api_server.h"
#include "load/live_load.h"
#include "load/served_model.h"
#include "speech/live_options.h"
#include "speech/local_agreement.h"

namespace transept {
namespace {

constexpr const char* kLoad = "Load";
constexpr const char* kServer = "Server";
constexpr const char* kOutput = "Output";
constexpr double kMaxClipSeconds = 600;
constexpr int64_t kMaxSessions = 512;  // each has two threads

struct Settings {
  LiveLoad load;
  std::vector<std::string> audio;
  std::chrono::milliseconds timeout{};
  bool json = false;
  std::optional<std::string> output;
  std::string wire;  // "": not asked for
};

StatusOr<Settings> settings_of(const Flags& flags) {
  Settings settings;
  LiveLoad& load = settings.load;
  const std::vector<std::string>& given = flags.positional();
  if (given.empty()) return invalid_argument("expected: transept bench live URL --audio FILE");
  ASSIGN_OR_RETURN(const ApiUrl api, ApiUrl::parse(given[0]));
  load.url = api.url;
  settings.audio = flags.texts("audio");
  settings.audio.insert(settings.audio.end(), given.begin() + 1, given.end());  // a pattern of the shell's
  if (settings.audio.empty()) return invalid_argument("expected --audio FILE: what is spoken");
  ASSIGN_OR_RETURN(load.num_sessions, flags.integer("sessions", 1, kMaxSessions, 1));
  ASSIGN_OR_RETURN(load.seconds, flags.number("seconds", 0, 86400, 0));
  ASSIGN_OR_RETURN(load.pause_seconds, flags.number("pause", 0, 60, 1));
  ASSIGN_OR_RETURN(const double timeout, flags.number("timeout", 0.1, 3600, 30));
  settings.timeout = std::chrono::milliseconds(std::llround(1000 * timeout));
  load.patience = settings.timeout;
  load.delay = flags.text_or("delay", "low");
  if (!parse_live_delay(load.delay).has_value()) {
    return invalid_argument("--delay ", load.delay, ": one of minimal, low, medium, high, xhigh");
  }
  load.language = flags.text_or("language", "");
  settings.wire = flags.text_or("wire", "");
  if (!settings.wire.empty() && settings.wire != "binary" && settings.wire != "base64") {
    return invalid_argument("--wire ", settings.wire, ": one of binary, base64");
  }
  load.sends_binary = settings.wire == "binary";
  load.model = flags.text_or("model", "");
  load.api_key = flags.text_or("api-key", "");
  load.is_stopped = interrupted;
  settings.json = flags.is_on("json");
  settings.output = flags.text("output");
  return settings;
}

// Each file as 16-bit mono at LiveLoad::kRate.
Status read_clips(const std::vector<std::string>& arguments, std::vector<std::vector<int16_t>>& clips) {
  for (const FoundFile& file : find_audio(arguments, false).inputs) {
    if (!file.problem.ok()) return with_prefix(file.problem, file.path);
    StatusOr<AudioSource> source = read_audio(file.path, interrupted);
    if (!source.ok()) return with_prefix(source.status(), file.path);
    auto reader = source->open({.sampling_rate = LiveLoad::kRate, .max_seconds = kMaxClipSeconds});
    if (!reader.ok()) return with_prefix(reader.status(), file.path);
    const StatusOr<std::vector<float>> samples = read_all(**reader);
    if (!samples.ok()) return with_prefix(samples.status(), file.path);
    std::vector<int16_t>& clip = clips.emplace_back();
    clip.reserve(samples->size());
    for (const float sample : *samples) {
      clip.push_back(static_cast<int16_t>(std::clamp(std::round(sample * 32768.0F), -32768.0F, 32767.0F)));
    }
  }
  return clips.empty() ? invalid_argument("--audio: no file was found") : ok_status();
}

// Asks what is served there.
Status fit_to_server(Settings& settings) {
  LiveLoad& load = settings.load;
  ASSIGN_OR_RETURN(const Json list, ask_server(load.url, load.url.path + "/models", load.api_key, settings.timeout));
  const std::optional<ServedModel> model = find_served_model(list, load.model);
  if (!model.has_value() && load.model.empty()) {
    return invalid_argument("the server lists no model at ", load.url.path, "/models: name one with --model",
                            load.api_key.empty() ? " (does it want --api-key?)" : "");
  }
  if (!model.has_value()) return ok_status();  // it may know names that it does not list
  load.model = model->id;
  load.wants_hypotheses = model->is_transept;
  if (settings.wire.empty()) load.sends_binary = model->is_transept;
  return ok_status();
}

StatusOr<bool> run_live_bench(Settings& settings) {
  RETURN_IF_ERROR(read_clips(settings.audio, settings.load.clips));
  RETURN_IF_ERROR(fit_to_server(settings));
  const std::vector<LiveSessionMeasure> sessions = run_live_load(settings.load);
  const LivePolicy policy = live_policy(*parse_live_delay(settings.load.delay));
  const LiveMetrics metrics =
      measure_live(sessions, policy.hop_seconds, [](std::string_view told, std::string_view transcript) {
        return std::pair(std::ssize(split_heard(told)), num_revised_words(told, transcript));
      });
  for (const LiveSessionMeasure& session : sessions) {
    if (!session.error.empty()) log_warning("a session: ", session.error);
  }
  Json report = Json::object();
  report.set("bench", "live");
  report.set("model", settings.load.model);
  report.set("delay", settings.load.delay);
  const Json measured = live_metrics_json(metrics);
  for (const auto& [name, value] : measured.as_object()) report.set(name, value);
  report.set("interrupted", interrupted());
  const std::string line = report.dump() + "\n";
  const std::string shown = settings.json ? line : live_metrics_table(metrics);
  bool is_written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0;
  if (settings.output.has_value()) {
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(*settings.output, false));
    file.write(line);
    is_written &= file.close().ok();
  }
  if (!is_written) return absl::DataLossError("not everything could be written");
  return metrics.num_failed == 0 && metrics.num_failed_turns == 0;
}

}  // namespace

std::vector<FlagSpec> bench_live_flags() {
  return {
      {.name = "audio",
       .value_name = "FILE",
       .default_text = "",
       .help = "what is spoken: files, folders or patterns; may be repeated, and session I begins with the I-th",
       .group = kLoad,
       .is_repeatable = true},
      {"sessions", "N", "1", "people who speak at once", kLoad},
      {"seconds", "S", "0", "audio that each session sends, in real time; 0: each file once", kLoad},
      {"pause", "S", "1", "silence behind each file, which ends its turn", kLoad},
      {"delay", "minimal|low|medium|high|xhigh", "low", "how long words wait to be confirmed", kLoad},
      {"language", "CODE", "", "of the speech; else it is detected", kLoad},
      {"model", "NAME", "the first that the server lists", "the served model", kServer},
      {"api-key", "KEY", "", "sent as Authorization: Bearer KEY", kServer},
      {"wire", "binary|base64", "",
       "how audio is sent: as binary messages, which a Transept takes and is sent by default, or in events, as "
       "OpenAI's "
       "clients do",
       kServer},
      {"timeout", "S", "30", "for a session to begin, and for its last transcript", kServer},
      {"json", "", "", "one JSON line instead of a table", kOutput},
      {"output", "FILE", "", "the JSON line, into a file", kOutput},
  };
}

int run_bench_live(const Flags& flags) {
  constexpr const char* kName = "bench live";
  StatusOr<Settings> settings = settings_of(flags);
  if (!settings.ok()) return usage_error(kName, blame_environment(settings.status(), flags.from_environment()));
  catch_interrupts();
  const StatusOr<bool> is_good = run_live_bench(*settings);
  if (!is_good.ok()) return usage_error(kName, is_good.status());
  if (interrupted()) return kExitInterrupted;
  return *is_good ? kExitOk : kExitSomeFailed;
}

}  // namespace transept
