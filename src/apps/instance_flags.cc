#include "apps/instance_flags.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "apps/epd_flags.h"
#include "base/environment.h"
#include "net/http_client.h"
#include "startup/connect_broker.h"
#include "startup/encoder_part.h"
#include "startup/engine_ranges.h"

namespace transept {
namespace {

constexpr const char* kFleet = "Instances of a fleet";

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "host";
  std::string text(name.data());
  const auto is_other = [](char c) {
    return !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '.' && c != '-';
  };
  std::ranges::replace_if(text, is_other, '-');
  constexpr size_t kMaxHostBytes = 48;
  return text.substr(0, kMaxHostBytes);
}

}  // namespace

std::vector<FlagSpec> instance_flags() {
  std::vector<FlagSpec> table = {
      {"role", "encode|decode", "",
       "encode: run the encoder alone, for decode instances; decode: have inputs encoded by encode instances; both "
       "need --broker",
       kFleet},
      {"broker", "URL", "",
       "how instances find each other: local:PATH, of a launcher's socket on this machine, or "
       "redis://[USER:PASSWORD@]HOST[:PORT][/DB]",
       kFleet},
      {"ec-namespace", "NAME", "default", "fleet of this instance, where several share a Redis server", kFleet},
      {"instance-name", "NAME", "role-host-port", "name of this instance, which no other has", kFleet},
      {"instance-url", "URL", "http://host:port", "how other instances reach this one's server", kFleet},
      {"ec-bulk", "zmq|broker|ucx", "zmq",
       "how rows travel between instances: zmq, from peer to peer; broker, through the Redis server of --broker; ucx, "
       "from peer to peer by UCX (RDMA, shared memory), which has to be installed",
       kFleet},
      {"ec-bulk-address", "ADDRESS", "beside a local broker's socket, else any port of --host",
       "where this instance takes rows: ipc://PATH, tcp://HOST:PORT, or tcp://HOST:* for any port; with --ec-bulk ucx "
       "ucx://HOST:PORT or ucx://HOST:*",
       kFleet},
      {"ec-buffer-memory", "SIZE", "room for --max-num-seqs inputs, at most a tenth of the machine",
       "bytes for encoded inputs: of a decode instance a part of --kv-cache-memory, for those on their way; of an "
       "encode "
       "instance for those that are not sent yet, or kept to be sent again",
       kFleet},
      {"ec-secret-file", "FILE", "",
       "secret that all instances share, at least 16 bytes; without one they believe each other on this machine alone, "
       "and do not start with a broker or an address of rows that others reach",
       kFleet},
      {"max-num-injected-tokens", "N", "four times --max-num-encoder-tokens",
       "rows from encode instances that a decode instance takes in a step", kFleet},
  };
  keep_common(table, {"role", "broker"});
  return table;
}

StatusOr<std::optional<Instance::Options>> instance_options(const Flags& flags) {
  if (!flags.has("role")) {
    if (flags.has("epd")) return std::optional<Instance::Options>();  // the launcher's; its children have roles
    std::vector<FlagSpec> of_instances = instance_flags();
    for (FlagSpec& flag : transfer_flags()) of_instances.push_back(std::move(flag));
    for (const FlagSpec& flag : of_instances) {
      if (!flags.has(flag.name)) continue;
      return invalid_argument(flags.name_of(flag.name),
                              ": is for instances of a fleet: --role says which half they run");
    }
    return std::optional<Instance::Options>();
  }
  Instance::Options options;
  ASSIGN_OR_RETURN(options.role, parse_instance_role(*flags.text("role")));
  if (!flags.has("broker")) {
    return invalid_argument("--role ", name(options.role), ": needs --broker, where the other instances are");
  }
  options.broker = *flags.text("broker");
  options.ns = flags.text_or("ec-namespace", options.ns);
  options.url = flags.text_or("instance-url", "");
  if (!options.url.empty()) {
    const Status url = HttpUrl::parse(options.url).status();
    if (!url.ok()) return with_prefix(url, flags.name_of("instance-url"));
  }
  options.name = flags.text_or("instance-name", "");
  if (flags.has("instance-name") && options.name.empty()) {
    return invalid_argument(flags.name_of("instance-name"), ": the name is empty");
  }
  ASSIGN_OR_RETURN(options.bulk, parse_bulk_kind(flags.text_or("ec-bulk", "zmq")));
  options.bulk_address = flags.text_or("ec-bulk-address", "");
  RETURN_IF_ERROR(check_bulk({options.bulk, options.bulk_address, options.broker}));
  if (const auto path = flags.text("ec-secret-file"); path.has_value()) {
    StatusOr<EcSecret> secret = EcSecret::read(*path);
    if (!secret.ok()) return with_prefix(secret.status(), flags.name_of("ec-secret-file"));
    options.secret = std::make_shared<const EcSecret>(std::move(secret).value());
  }
  return std::optional(std::move(options));
}

Status set_transfer_config(const Flags& flags, EngineConfig& config) {
  config.ec_transfer_dtype = flags.text_or("ec-transfer-dtype", config.ec_transfer_dtype);
  config.ec_fallback = flags.text_or("ec-fallback", config.ec_fallback);
  ASSIGN_OR_RETURN(const int64_t lease, flags.integer("ec-lease", 1, kMaxEcLeaseSeconds, config.ec_lease_seconds));
  config.ec_lease_seconds = static_cast<int32_t>(lease);
  // Before instances are started with them.
  const Status type = transfer_dtype(config).status(), fallback = falls_back(config).status();
  return blame_environment(type.ok() ? fallback : type, flags.from_environment());
}

Status set_instance_config(const Flags& flags, EngineConfig& config) {
  RETURN_IF_ERROR(set_transfer_config(flags, config));
  ASSIGN_OR_RETURN(config.ec_buffer_memory, flags.bytes("ec-buffer-memory"));
  if (flags.has("max-num-injected-tokens")) {
    ASSIGN_OR_RETURN(const int64_t rows, flags.integer("max-num-injected-tokens", 1, kMaxEngineCount, 1));
    config.max_num_injected_tokens = static_cast<int32_t>(rows);
  }
  return ok_status();
}

Status set_instance_address(const std::string& address, Instance::Options& options) {
  const size_t colon = address.rfind(':');
  const std::string port = address.substr(colon + 1);
  std::string host = address.substr(0, colon);
  if (host == "0.0.0.0" || host == "[::]") {
    if (options.url.empty() && !is_local_broker(options.broker)) {
      return invalid_argument("--host ", host, ": --instance-url has to say how other instances reach this one");
    }
    host = host == "[::]" ? "[::1]" : "127.0.0.1";
  }
  if (options.url.empty()) options.url = str_cat("http://", host, ":", port);
  if (options.name.empty()) options.name = str_cat(name(options.role), "-", host_name(), "-", port);
  return ok_status();
}

}  // namespace transept
