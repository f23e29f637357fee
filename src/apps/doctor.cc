// `transept doctor`: what this machine has for inference, and what to do about what it lacks.
#include <algorithm>
#include <cstdio>

#include "apps/exit_codes.h"
#include "apps/machine_checks.h"
#include "apps/verbs.h"
#include "apps/version.h"

namespace transept {
namespace {

Json report_json(const std::vector<MachineCheck>& checks, bool ok) {
  Json list = Json::array();
  for (const MachineCheck& check : checks) {
    Json entry = Json::object();
    entry.set("name", check.name);
    entry.set("state", state_name(check.state));
    entry.set("found", check.found);
    entry.set("remedy", check.remedy.empty() ? Json() : Json(check.remedy));
    for (const auto& [name, value] : check.data) entry.set(name, value);
    list.push_back(std::move(entry));
  }
  Json report = Json::object();
  report.set("version", kVersion);
  report.set("ok", ok);
  report.set("checks", std::move(list));
  return report;
}

std::string padded(std::string_view text, size_t width) {
  std::string out(text);
  out.resize(std::max(width, out.size() + 1), ' ');
  return out;
}

std::string report_text(const std::vector<MachineCheck>& checks) {
  std::string out;
  int64_t num_wrong = 0, num_better = 0;
  for (const MachineCheck& check : checks) {
    num_wrong += check.state == MachineCheck::State::kWrong ? 1 : 0;
    num_better += check.state == MachineCheck::State::kCouldBeBetter ? 1 : 0;
    out += str_cat(padded(state_name(check.state), 8), padded(check.name, 13), check.found, "\n");
    if (!check.remedy.empty()) out += str_cat(std::string(21, ' '), "-> ", check.remedy, "\n");
  }
  return str_cat(out, num_wrong, num_wrong == 1 ? " thing is" : " things are", " wrong, ", num_better,
                 " could be better\n");
}

}  // namespace

int run_doctor(const Flags& flags) {
  if (!flags.positional().empty()) return usage_error("doctor", invalid_argument("takes no arguments, only flags"));
  const StatusOr<int64_t> port = flags.integer("port", 1, 65535, 8000);
  if (!port.ok()) return usage_error("doctor", port.status());
  const std::vector<MachineCheck> checks =
      check_machine({.port = static_cast<uint16_t>(*port), .measures_bandwidth = !flags.is_on("quick")});
  const bool ok = std::none_of(checks.begin(), checks.end(),
                               [](const MachineCheck& check) { return check.state == MachineCheck::State::kWrong; });
  const std::string text = flags.is_on("json") ? report_json(checks, ok).dump() + "\n" : report_text(checks);
  std::fputs(text.c_str(), stdout);
  return ok ? kExitOk : kExitSomeFailed;
}

}  // namespace transept
