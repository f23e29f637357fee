#include "apps/bench_serve.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "apps/bench_serve_flags.h"
#include "apps/exit_codes.h"
#include "apps/interrupt.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/version.h"
#include "base/descriptor_limit.h"
#include "base/environment.h"
#include "base/log.h"
#include "load/api_server.h"
#include "load/openai_target.h"
#include "load/served_model.h"

namespace transept {
namespace {

// Warm-up's inputs are other ones than the measurement's.
constexpr int64_t kWarmupIndex = LoadPlan::kMaxRequests;

StatusOr<Json> ask(const BenchServeSettings& settings, const std::string& path) {
  return ask_server(settings.url, path, settings.api_key, settings.timeout);
}

// Chooses the model, unless --model did, and makes requests that it takes.
Status fit_to_model(BenchServeSettings& settings) {
  LoadRequests::Options& requests = settings.requests;
  ASSIGN_OR_RETURN(const Json list, ask(settings, settings.url.path + "/models"));
  const std::optional<ServedModel> model = find_served_model(list, requests.model);
  if (!model.has_value() && requests.model.empty()) {
    return invalid_argument("the server lists no model at ", settings.url.path, "/models: name one with --model",
                            settings.api_key.empty() ? " (does it want --api-key?)" : "");
  }
  if (!model.has_value()) return ok_status();  // it may know names that it does not list
  requests.model = model->id;
  const std::string shortened = fit_lengths(*model, settings.asked, requests);
  if (!shortened.empty()) {
    log_info("requests fit the ", *model->max_input_tokens, " and ", *model->max_output_tokens,
             " positions that the server names: ", shortened);
  }
  return ok_status();
}

// Every request in flight has a descriptor.
void check_descriptors(int64_t num_workers) {
  constexpr uint64_t kOthers = 64;
  const uint64_t limit = raise_descriptor_limit();
  if (limit < static_cast<uint64_t>(num_workers) + kOthers) {
    log_warning("the limit of open files (ulimit -n) is ", limit, ": ", num_workers,
                " requests in flight may want more");
  }
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

void warm_up(const BenchServeSettings& settings, Target& target, const LoadClock& clock) {
  if (settings.warmup == 0) return;
  LoadPlan plan;
  plan.num_requests = settings.warmup;
  plan.first_index = kWarmupIndex;
  plan.is_open_loop = false;
  plan.num_workers = settings.plan.num_workers;
  plan.is_stopped = interrupted;
  const LoadMetrics metrics = measure_load(run_load(plan, target, clock), {});
  for (const auto& [kind, count] : metrics.errors) log_warning("warm-up: ", count, " failed: ", kind);
}

LoadResult run_measured(const BenchServeSettings& settings, Target& target, const LoadClock& clock) {
  LoadPlan plan = settings.plan;
  Progress progress("requests");
  const TimePoint begin = clock.now();
  const int64_t total = plan.num_requests < LoadPlan::kMaxRequests ? plan.num_requests : -1;
  plan.is_stopped = interrupted;
  plan.on_done = [&](int64_t num_done, int64_t num_failed) {
    if (!progress.is_due()) return;
    const double elapsed = std::max(seconds(clock.now() - begin), 1e-9);
    const auto per_second = static_cast<int64_t>(static_cast<double>(num_done) / elapsed);
    const std::string failed = num_failed == 0 ? "" : str_cat(", ", num_failed, " failed");
    progress.update(num_done, total, str_cat(per_second, "/s", failed));
  };
  return run_load(plan, target, clock);
}

struct Outcome {
  Json report;
  std::string table;
  bool has_failures = false;
};

StatusOr<Outcome> run_serve_bench(BenchServeSettings& settings) {
  ASSIGN_OR_RETURN(const Json server, ask(settings, settings.root + "/version"));
  RETURN_IF_ERROR(fit_to_model(settings));
  const LoadRequests requests(settings.requests);
  if (!requests.are_unique()) {
    log_warning("some inputs cannot be made unique: a server that caches or shares looks faster than it is");
  }
  check_descriptors(settings.plan.num_workers);
  const SteadyLoadClock clock;
  OpenAiTarget target(
      {settings.url, settings.api_key, settings.requests.endpoint, settings.requests.stream, settings.timeout},
      requests, clock);
  warm_up(settings, target, clock);
  Json report = Json::object();
  report.set("bench", "serve");
  report.set("version", kVersion);
  report.set("commit", kCommit);
  report.set("started_at", utc_now());
  report.set("url", str_cat("http://", settings.url.host, ":", settings.url.port, settings.url.path,
                            endpoint_path(settings.requests.endpoint)));
  report.set("model", settings.requests.model);
  report.set("server", server);
  report.set("seed", settings.requests.seed);
  describe_lengths(settings);
  settings.described.set("unique_inputs", requests.are_unique());
  report.set("settings", settings.described);
  const LoadMetrics metrics = measure_load(run_measured(settings, target, clock), settings.goodput);
  const Json measured = load_metrics_json(metrics, settings.goodput);
  for (const auto& [name, value] : measured.as_object()) report.set(name, value);
  report.set("interrupted", interrupted());
  const std::string heading =
      str_cat(report.find("url")->as_string(), ", model ", settings.requests.model,
              settings.plan.is_open_loop ? ", open loop" : ", closed loop", ", seed ", settings.requests.seed, "\n\n");
  return Outcome{std::move(report), heading + load_metrics_table(metrics, settings.goodput),
                 metrics.num_ok < metrics.num_requests};
}

}  // namespace

int run_bench_serve(const Flags& flags) {
  constexpr const char* kName = "bench serve";
  StatusOr<BenchServeSettings> settings = bench_serve_settings(flags);
  if (!settings.ok()) return usage_error(kName, blame_environment(settings.status(), flags.from_environment()));
  std::optional<OutputFile> file;
  if (settings->output.has_value()) {
    StatusOr<OutputFile> opened = OutputFile::open(*settings->output, false);
    if (!opened.ok()) return usage_error(kName, opened.status());
    file.emplace(*std::move(opened));
  }
  catch_interrupts();
  const StatusOr<Outcome> outcome = run_serve_bench(*settings);
  if (!outcome.ok()) return usage_error(kName, outcome.status());
  const std::string line = outcome->report.dump() + "\n";
  const std::string& shown = settings->json ? line : outcome->table;
  bool is_written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0;
  if (file.has_value()) {
    file->write(line);
    is_written &= file->close().ok();
  }
  if (!is_written) return usage_error(kName, absl::DataLossError("not everything could be written"));
  if (interrupted()) return kExitInterrupted;
  return outcome->has_failures ? kExitSomeFailed : kExitOk;
}

}  // namespace transept
