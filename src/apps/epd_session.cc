#include "apps/epd_session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "apps/engine_flags.h"
#include "apps/epd_child.h"
#include "apps/epd_supervisor.h"
#include "apps/instance_flags.h"
#include "base/cpus.h"
#include "base/log.h"

namespace transept {

StatusOr<std::unique_ptr<EpdSession>> EpdSession::start(const Flags& flags, EngineConfig& config) {
  ASSIGN_OR_RETURN(std::optional<EpdPlan> plan, epd_plan(flags, available_cpus()));
  const std::vector<FlagSpec> of_transfers = transfer_flags();
  if (!plan.has_value()) {
    const auto given = std::ranges::find_if(of_transfers, [&](const FlagSpec& flag) { return flags.has(flag.name); });
    if (given == of_transfers.end()) return std::unique_ptr<EpdSession>();
    return invalid_argument(flags.name_of(given->name), ": goes with --epd alone");
  }
  RETURN_IF_ERROR(set_transfer_config(flags, config));
  if (plan->shape.num_decode > 1) {
    return invalid_argument("--epd ", plan->shape.text(), ": this process is the one decode instance: 1E1D, 2E1D, ..");
  }
  ASSIGN_OR_RETURN(EpdBroker broker, start_epd_broker(plan->redis_url));
  std::unique_ptr<EpdSession> session(new EpdSession(*std::move(plan), std::move(broker)));
  RETURN_IF_ERROR(session->connect());
  config.threads = session->self().num_threads;
  config.cpu_affinity = session->self().cpus;
  session->children_ =
      std::thread([self = session.get(), &flags, model = config.model] { self->run_children(flags, model); });
  return session;
}

EpdSession::~EpdSession() {
  is_ending_ = true;
  if (children_.joinable()) children_.join();
  if (server_ != nullptr) server_->stop();  // before what it gives goes
}

Status EpdSession::connect() {
  ASSIGN_OR_RETURN(EcSecret read, EcSecret::read(broker_.secret_path()));
  const auto secret = std::make_shared<const EcSecret>(std::move(read));
  inputs_ = std::make_unique<InputService>(secret);
  HttpServer::Options http;
  http.port = 0;
  http.num_threads = 1;
  ASSIGN_OR_RETURN(server_, HttpServer::start(http, *inputs_));
  Instance::Options instance;
  instance.role = InstanceRole::kDecode;
  instance.name = self().name;
  instance.broker = broker_.url();
  instance.ns = broker_.links.ns;
  instance.bulk_address = str_cat("ipc://", broker_.folder.path(), "/", self().name);
  instance.secret = secret;
  instance.url = str_cat("http://", server_->address());
  ASSIGN_OR_RETURN(instance_, Instance::connect(instance));
  inputs_->set_asker(instance_->asker());
  return ok_status();
}

StatusOr<LoadedModel> EpdSession::load(EpdSession* session, const EngineConfig& config, const Clock& clock) {
  if (session == nullptr) return load_engine(config, clock);
  return load_engine(config, clock, session->instance_->links());
}

Status EpdSession::begin(AsyncEngine& engine, const LoadedModel& model) {
  instance_->begin(engine, model);
  const MutexLock lock(mutex_);
  while (!are_ready_ && !ended_.has_value()) changed_.wait(mutex_);
  return ended_.value_or(ok_status());
}

// ---- The thread of the children, which must live as long as they do

void EpdSession::run_children(const Flags& flags, const std::string& model) {
  const SteadyClock clock;
  std::vector<SupervisedChild> children;
  std::vector<FlagSpec> table = engine_flags();
  for (FlagSpec& flag : transfer_flags()) table.push_back(std::move(flag));
  const std::vector<std::string> environment = epd_environment(::environ, broker_.links);
  for (const EpdInstance& instance : plan_.instances) {
    if (instance.role != InstanceRole::kEncode) continue;
    std::vector<std::string> arguments = epd_arguments(flags, table, {model, "model"}, instance, broker_.links);
    if (!flags.has("log-level") && !flags.is_on("quiet"))
      arguments.insert(arguments.begin() + 2, "--log-level=warning");
    children.push_back(
        {.name = instance.name,
         .role = instance.role,
         .command = {.program = "/proc/self/exe", .arguments = std::move(arguments), .environment = environment}});
  }
  EpdSupervisor::Options options;
  options.num_interrupts = [this] { return is_ending_ ? 1 : 0; };
  options.ready_line = [this] { return ready_line(); };
  options.on_started = [](const SupervisedChild& child, pid_t pid) { log_info(child.name, ": process ", pid); };
  options.write_line = write_child_line;
  const StatusOr<int> code = EpdSupervisor(std::move(children), std::move(options), clock).run();
  const MutexLock lock(mutex_);
  ended_ = code.ok() ? absl::UnavailableError("an encode instance has ended; what it wrote says why") : code.status();
  changed_.notify_all();
}

// Tells begin(), too.
std::optional<std::string> EpdSession::ready_line() {
  const auto peers = instance_->broker().peers();
  if (!peers.ok()) return std::nullopt;
  const auto count = std::ranges::count(*peers, InstanceRole::kEncode, &InstanceRecord::role);
  if (count < plan_.shape.num_encode) return std::nullopt;
  const MutexLock lock(mutex_);
  are_ready_ = true;
  changed_.notify_all();
  return str_cat("--epd ", plan_.shape.text(), ": ready");
}

}  // namespace transept
