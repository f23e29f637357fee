// `transept serve`: listens, loads, serves, drains.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "apps/end_within.h"
#include "apps/engine_flags.h"
#include "apps/epd_flags.h"
#include "apps/epd_launcher.h"
#include "apps/instance_flags.h"
#include "apps/interrupt.h"
#include "apps/rank_processes.h"
#include "apps/serve_banner.h"
#include "apps/serve_flags.h"
#include "apps/verbs.h"
#include "base/cpus.h"
#include "base/descriptor_limit.h"
#include "base/log_sink.h"
#include "base/quoted.h"
#include "request/resolve.h"
#include "server/server.h"

namespace transept {
namespace {

constexpr std::string_view kVerb = "serve";
constexpr auto kLook = std::chrono::milliseconds(50);
constexpr int kLooksAtLast = 5;
// In which answers are written when the engine has failed: of many clients, on a machine that has other work.
constexpr auto kLastAnswers = std::chrono::seconds(2);
// For the first rank's part of a step, whose result no one waits for; then its supervisor waits for the end.
constexpr auto kLastStep = std::chrono::seconds(1);

// What has ended the engine: a step, or a rank while no step ran.
Status failure_of(const Server& server, const RankProcesses* ranks) {
  const Status failure = server.engine_failure();
  return failure.ok() && ranks != nullptr ? ranks->failure() : failure;
}

// What was open when a first signal came is finished; a second one ends the process (catch_interrupts).
int shut_down(Server& server, std::chrono::milliseconds timeout) {
  log_info("shutting down: new requests are answered 503; waiting at most ",
           static_cast<double>(timeout.count()) / 1000, " s for those in flight (a second signal does not wait)");
  const bool is_done = server.drain(timeout, [&] { return server.engine_failure().ok(); });
  server.stop();
  if (is_done) {
    log_info("all requests were answered");
    return kExitOk;
  }
  log_error("requests were cut off: they took longer than --shutdown-timeout");
  return kExitSomeFailed;
}

// Answers who waits, and stops. Returns why; or ends the process, where the first rank computes for longer yet.
Status end_failed(Server& server, const RankProcesses* ranks) {
  // Requests in flight are told by the engine's next step, which is named then.
  for (int i = 0; i < kLooksAtLast && server.engine_failure().ok(); ++i) std::this_thread::sleep_for(kLook);
  // That step may take long: its first rank finds out when its own part of a layer is done. And where it has failed,
  // who waited is told, but the answers may not be written yet.
  server.give_up(failure_of(server, ranks), kLastAnswers);
  const auto told = [](const Status& failure) { return with_prefix(failure, "the engine failed"); };
  const EndWithin end(kLastStep, [&] {
    const Status failure = failure_of(server, ranks);
    const bool lacks_step = ranks != nullptr && failure == ranks->failure();  // the engine names it when it has ended
    return usage_error(kVerb, told(lacks_step ? with_prefix(failure, str_cat("step ", ranks->step())) : failure));
  });
  server.stop();
  return told(failure_of(server, ranks));
}

Status run_server(const Flags& flags, ServeSettings settings, const EngineConfig& config, int* exit_code) {
#ifdef M_ARENA_MAX
  // Dozens of threads would each keep a heap of what they once needed.
  ::mallopt(M_ARENA_MAX, 2);
  // JSON bodies (8 MiB at most) come and go. Giving their pages back each time takes a millisecond, under a lock that
  // every thread wants: a few of them are kept. What is larger, pictures' features among it, has pages of its own.
  ::mallopt(M_MMAP_THRESHOLD, 12 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  const std::chrono::milliseconds shutdown_timeout = settings.shutdown_timeout;
  catch_interrupts();
  ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::start(std::move(settings.options), settings.log, clock));
  log_info("listening on ", server->http().address(), " after ", format_seconds(clock.now() - begin), "; loading ",
           flags.positional().at(0));
  const TimePoint listening = clock.now();
  std::unique_ptr<Instance> instance;
  if (settings.instance.has_value()) {
    RETURN_IF_ERROR(set_instance_address(server->http().address(), *settings.instance));
    ASSIGN_OR_RETURN(instance, Instance::connect(*settings.instance));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<RankProcesses> ranks, RankProcesses::start(flags, config));
  ASSIGN_OR_RETURN(LoadedModel model, instance == nullptr
                                          ? load_engine(config, clock, RankProcesses::communicator(ranks))
                                          : load_engine(config, clock, instance->links()));
  for (const std::string& note : startup_notes(model.generation)) {
    note.find("not supported") != std::string::npos ? log_warning(note) : log_info(note);
  }
  if (model.chat_prompts != nullptr) {
    for (const std::string& warning : model.chat_prompts->warnings()) log_warning(warning);
  }
  log_info("model loaded in ", format_seconds(clock.now() - listening));
  server->serve(std::move(model), std::move(instance));
  print_banner(*server, clock.now() - begin);
  while (!interrupted() && failure_of(*server, ranks.get()).ok()) std::this_thread::sleep_for(kLook);
  if (!failure_of(*server, ranks.get()).ok()) return end_failed(*server, ranks.get());
  *exit_code = shut_down(*server, shutdown_timeout);
  return ok_status();
}

// A fleet on this machine, with an instance of this program for each half.
int run_fleet(const Flags& flags, EpdPlan plan, const ServeSettings& settings, const EngineConfig& config) {
  EpdSettings fleet;
  fleet.plan = std::move(plan);
  fleet.model = {config.model, settings.options.served_model_names.front()};
  fleet.shutdown_timeout = settings.shutdown_timeout;
  if (fleet.plan.shape.num_decode > 1) {
    Proxy::Options proxy;
    proxy.http = settings.options.http;
    proxy.service.log = settings.log;
    proxy.service.max_body_bytes = std::max(settings.options.max_upload_bytes, settings.options.json.max_bytes) +
                                   std::max(settings.options.max_field_bytes, size_t{1} << 20);
    proxy.service.max_bodies_bytes = static_cast<size_t>(settings.options.queue.max_body_bytes);
    // Each has a thread.
    constexpr int32_t kMaxRequests = 1 << 14;
    proxy.service.max_requests = std::min(
        kMaxRequests, fleet.plan.shape.num_decode * std::min(kMaxRequests, settings.options.queue.max_requests));
    std::random_device random;
    proxy.pool.seed = random();
    fleet.proxy = proxy;
  }
  std::vector<FlagSpec> table = serve_flags();
  for (FlagSpec& flag : engine_flags()) table.push_back(std::move(flag));
  const StatusOr<int> code = run_epd(flags, table, fleet);
  return code.ok() ? *code : usage_error(kVerb, code.status());
}

// vLLM's flags of several values or another meaning leave words over.
Status one_model_at_a_time(const Flags& flags) {
  RETURN_IF_ERROR(served_model_names(flags).status());
  const std::vector<std::string>& words = flags.positional();
  std::string hint;
  if (flags.has("served-model-name")) hint = "; each of several names has a --served-model-name of its own";
  if (flags.is_on("quiet")) hint += "; -q is --quiet: a quantisation is given by --quantization";
  return invalid_argument("one model at a time: ", in_quotes(words[0]), " and ", in_quotes(words[1]),
                          " are two: transept serve MODEL", hint);
}

}  // namespace

int run_serve(const Flags& flags) {
  if (flags.positional().empty()) return usage_error(kVerb, invalid_argument("which model? transept serve MODEL"));
  if (flags.positional().size() > 1) return usage_error(kVerb, one_model_at_a_time(flags));
  StatusOr<ServeSettings> settings = serve_settings(flags);
  if (!settings.ok()) return usage_error(kVerb, settings.status());
  StatusOr<std::optional<EpdPlan>> plan = epd_plan(flags, available_cpus());
  if (!plan.ok()) return usage_error(kVerb, plan.status());
  StatusOr<EngineConfig> config = engine_config(flags);
  if (!config.ok()) return usage_error(kVerb, config.status());
  if (const Status set = set_instance_config(flags, *config); !set.ok()) return usage_error(kVerb, set);
  if (const Status fits = fit_connections(flags, raise_descriptor_limit(), settings->options); !fits.ok()) {
    return usage_error(kVerb, fits);
  }
  if (settings->log.as_json) set_log_sink(write_json_notice);
  // The reader of the log may go away (a launcher that was killed, a pipe to another program): answers go on.
  std::signal(SIGPIPE, SIG_IGN);
  if (config->num_ranks() > 1) {
    const std::string_view other = plan->has_value() ? "epd" : settings->instance.has_value() ? "role" : "";
    if (!other.empty()) {
      return usage_error(kVerb, unimplemented(config->ranks_flag(), ": not with --", other, ": give 1"));
    }
  }
  if (plan->has_value()) return run_fleet(flags, *std::move(*plan), *settings, *config);
  // Others wait for their next tokens here.
  if (!flags.has("encode-slice") && config->num_ranks() == 1) config->encode_slice = "auto";
  config->replicas = settings->replicas;
  config->chat_template = settings->chat_template;
  if (settings->options.cache_scope == CacheScope::kOff) config->share_identical_inputs = false;
  int exit_code = kExitOk;
  const Status status = run_server(flags, std::move(settings).value(), *config, &exit_code);
  return status.ok() ? exit_code : usage_error(kVerb, status);
}

}  // namespace transept
