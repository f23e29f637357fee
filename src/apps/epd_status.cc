// `transept epd status`: who is there in a fleet, and what waits.
#include <cstdio>
#include <map>

#include "apps/exit_codes.h"
#include "apps/fleet_flags.h"
#include "apps/verbs.h"
#include "base/json.h"
#include "base/quoted.h"
#include "startup/connect_broker.h"

namespace transept {
namespace {

struct FleetStatus {
  std::vector<InstanceRecord> instances;
  int64_t num_tickets = 0;
};

Json status_json(const FleetStatus& status) {
  Json instances = Json::array();
  for (const InstanceRecord& record : status.instances) {
    Json entry = Json::object();
    entry.set("name", record.id.name);
    entry.set("role", name(record.role));
    entry.set("url", record.url);
    entry.set("model", digest_hex(record.model));
    entry.set("num_running", record.load.num_running);
    entry.set("num_queued", record.load.num_queued);
    entry.set("num_transfers", record.load.num_transfers);
    entry.set("is_draining", record.is_draining);
    if (!record.last_error.empty()) {
      Json error = Json::object();
      error.set("message", record.last_error);
      error.set("seconds_ago", seconds(record.last_error_age));
      entry.set("last_error", std::move(error));
    }
    instances.push_back(std::move(entry));
  }
  Json body = Json::object();
  body.set("instances", std::move(instances));
  body.set("num_tickets", status.num_tickets);
  return body;
}

// Models are numbered in the order in which they come: what matters is which instances have the same one.
std::string status_text(const FleetStatus& status) {
  std::map<std::string, size_t> models;
  std::string out;
  for (const InstanceRecord& record : status.instances) {
    const size_t model = models.try_emplace(digest_hex(record.model), models.size() + 1).first->second;
    out += str_cat(record.id.name, ": ", name(record.role), ", ", record.url, ", model ", model, ", ",
                   record.load.num_running, " running, ", record.load.num_queued, " queued, ",
                   record.load.num_transfers, " transfers in work", record.is_draining ? ", draining" : "", "\n");
    if (record.last_error.empty()) continue;
    out += str_cat("  last error, ", std::chrono::duration_cast<std::chrono::seconds>(record.last_error_age).count(),
                   " s ago: ", in_quotes(record.last_error, InstanceRecord::kMaxErrorBytes), "\n");
  }
  return str_cat(out, status.instances.size(), " instances, ", models.size(), " models, ", status.num_tickets,
                 " encodes wait\n");
}

StatusOr<FleetStatus> ask(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::string url, broker_url(flags));
  ASSIGN_OR_RETURN(const std::shared_ptr<Broker> broker,
                   connect_broker(url, flags.text_or("ec-namespace", "default"), std::chrono::seconds(2)));
  FleetStatus status;
  ASSIGN_OR_RETURN(status.instances, broker->peers());
  ASSIGN_OR_RETURN(status.num_tickets, broker->num_tickets());
  return status;
}

}  // namespace

int run_epd_status(const Flags& flags) {
  if (!flags.positional().empty()) return usage_error("epd status", invalid_argument("takes no arguments, only flags"));
  const StatusOr<FleetStatus> status = ask(flags);
  if (!status.ok()) return usage_error("epd status", status.status());
  const std::string text = flags.is_on("json") ? status_json(*status).dump() + "\n" : status_text(*status);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace transept
