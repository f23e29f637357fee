#include "apps/epd_supervisor.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "apps/exit_codes.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);  // for ends and interrupts; lines are passed on at once

std::string format_delay(Duration delay) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(delay).count();
  return str_cat(static_cast<double>(milliseconds) / 1000, " s");
}

}  // namespace

EpdSupervisor::EpdSupervisor(std::vector<SupervisedChild> children, Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  for (SupervisedChild& child : children) {
    instances_.push_back({.child = std::move(child), .policy = RestartPolicy(options_.restarts)});
  }
}

EpdSupervisor::~EpdSupervisor() = default;

StatusOr<int> EpdSupervisor::run() {
  for (Instance& instance : instances_) {
    if (const Status status = start(instance); !status.ok()) {
      end_all();
      return with_prefix(status, instance.child.name);
    }
  }
  while (true) {
    pass_lines_on();
    if (options_.num_interrupts() > 0) break;
    const StatusOr<std::optional<int>> code = look_after_all();
    if (!code.ok() || code->has_value()) {
      log_error("ending all instances");
      end_all();
      if (!code.ok()) return code.status();
      return **code;
    }
    look_whether_ready();
  }
  options_.on_ending();
  log_info("shutting down: decode instances first, then encode instances (a second signal does not wait)");
  return end_all() ? kExitOk : kExitSomeFailed;
}

Status EpdSupervisor::start(Instance& instance) {
  ASSIGN_OR_RETURN(instance.process, ChildProcess::start(instance.child.command));
  options_.on_started(instance.child, instance.process->pid());
  return ok_status();
}

// The first code or error ends the fleet.
StatusOr<std::optional<int>> EpdSupervisor::look_after_all() {
  for (Instance& instance : instances_) {
    ASSIGN_OR_RETURN(const std::optional<int> code, look_after(instance));
    if (code.has_value()) return code;
  }
  return std::optional<int>();
}

// An exit code: the fleet cannot run with these flags.
StatusOr<std::optional<int>> EpdSupervisor::look_after(Instance& instance) {
  if (instance.process == nullptr) {
    if (clock_.now() < instance.start_at) return std::optional<int>();
    if (const Status status = start(instance); !status.ok()) {
      RETURN_IF_ERROR(start_again_later(instance, error_message(status)));
    }
    return std::optional<int>();
  }
  const std::optional<ChildEnd> end = instance.process->poll();
  if (!end.has_value()) return std::optional<int>();
  write_rest(instance);
  instance.process.reset();
  if (!is_ready_ && *end == ChildEnd{.code = kExitUsage}) {
    log_error(instance.child.name, " ", end->text(), " before all instances were ready: it is not started again");
    return std::optional<int>(kExitUsage);
  }
  RETURN_IF_ERROR(start_again_later(instance, end->text()));
  return std::optional<int>();
}

Status EpdSupervisor::start_again_later(Instance& instance, std::string_view what) {
  const TimePoint now = clock_.now();
  const std::optional<TimePoint> at = instance.policy.on_death(now);
  if (!at.has_value()) {
    return absl::UnavailableError(str_cat(instance.child.name, " ", what, "; it was started again ",
                                          options_.restarts.max_restarts, " times within ",
                                          format_delay(options_.restarts.window), ", and is given up"));
  }
  instance.start_at = *at;
  log_warning(instance.child.name, " ", what, "; it is started again in ", format_delay(*at - now));
  return ok_status();
}

void EpdSupervisor::look_whether_ready() {
  if (is_ready_) return;
  const std::optional<std::string> line = options_.ready_line();
  if (!line.has_value()) return;
  is_ready_ = true;
  log_info(*line);
}

void EpdSupervisor::pass_lines_on() {
  std::vector<pollfd> items;
  for (const Instance& instance : instances_) {
    if (instance.process == nullptr || instance.process->descriptor() < 0) continue;
    items.push_back({.fd = instance.process->descriptor(), .events = POLLIN, .revents = 0});
  }
  ::poll(items.data(), items.size(), static_cast<int>(kLook.count()));
  for (const Instance& instance : instances_) {
    if (instance.process == nullptr) continue;
    // Once: one that writes all the time must not hold the others up.
    for (const std::string& line : instance.process->read_lines()) write_line(instance, line);
  }
}

// What is left of one that has ended.
void EpdSupervisor::write_rest(const Instance& instance) const {
  while (true) {
    const std::vector<std::string> lines = instance.process->read_lines();
    if (lines.empty()) return;
    for (const std::string& line : lines) write_line(instance, line);
  }
}

// Lines of JSON stay what they are.
void EpdSupervisor::write_line(const Instance& instance, std::string_view line) const {
  options_.write_line(line.starts_with('{') ? std::string(line) : str_cat(instance.child.name, " | ", line));
}

bool EpdSupervisor::end_all() {
  const bool is_ok = end_role(InstanceRole::kDecode);
  return end_role(InstanceRole::kEncode) && is_ok;
}

bool EpdSupervisor::end_role(InstanceRole role) {
  bool is_ok = take_ends(role);  // who died meanwhile
  bool is_killed = false;
  signal_all(role, SIGTERM);
  const TimePoint end = clock_.now() + options_.end_timeout;
  while (is_running(role)) {
    const bool is_hurried = options_.num_interrupts() > 1;
    if (!is_killed && (is_hurried || clock_.now() >= end)) {
      kill_all(role, is_hurried ? "a second signal came"
                                : str_cat("it did not end within ", format_delay(options_.end_timeout)));
      is_killed = true;
    }
    pass_lines_on();
    is_ok = take_ends(role) && is_ok;
  }
  return is_ok && !is_killed;
}

void EpdSupervisor::kill_all(InstanceRole role, std::string_view why) {
  for (const Instance& instance : instances_) {
    if (instance.child.role != role || instance.process == nullptr) continue;
    log_warning(instance.child.name, " is killed: ", why);
    instance.process->send_signal(SIGKILL);
  }
}

void EpdSupervisor::signal_all(InstanceRole role, int signal) {
  for (const Instance& instance : instances_) {
    if (instance.child.role == role && instance.process != nullptr) instance.process->send_signal(signal);
  }
}

bool EpdSupervisor::is_running(InstanceRole role) const {
  return std::ranges::any_of(
      instances_, [&](const Instance& instance) { return instance.child.role == role && instance.process != nullptr; });
}

bool EpdSupervisor::take_ends(InstanceRole role) {
  bool is_ok = true;
  for (Instance& instance : instances_) {
    if (instance.child.role != role || instance.process == nullptr) continue;
    const std::optional<ChildEnd> end = instance.process->poll();
    if (!end.has_value()) continue;
    write_rest(instance);
    instance.process.reset();
    if (end->is_ok()) continue;
    log_warning(instance.child.name, " ", end->text());
    is_ok = false;
  }
  return is_ok;
}

}  // namespace transept
