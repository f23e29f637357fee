// Ranks on several nodes: how they meet, and the process of a node that is not the first.
#include <signal.h>

#include <algorithm>

#include "apps/engine_flags.h"
#include "apps/exit_codes.h"
#include "apps/rank_processes.h"
#include "apps/version.h"
#include "base/input_file.h"
#include "base/log.h"
#include "comm/control_socket.h"
#include "comm/gloo_communicator.h"
#include "comm/group_link.h"
#include "startup/rank_worker.h"

namespace transept {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
constexpr size_t kOutboxBytes = size_t{4} << 20, kMailboxBytes = size_t{4} << 20;

// Verbs that run a model, each of which may be a rank's.
constexpr std::string_view kVerbs[] = {"serve",      "generate",      "translate",
                                       "transcribe", "bench latency", "bench throughput"};

// What hosts may have otherwise: where files are, processors, and who they are.
constexpr std::string_view kOfTheHost[] = {"revision",
                                           "download-dir",
                                           "cache-dir",
                                           "log-level",
                                           "quiet",
                                           "threads",
                                           "cpu-affinity",
                                           "nnodes",
                                           "node-rank",
                                           "master-addr",
                                           "master-port",
                                           "header-font",
                                           "group-token-file",
                                           "tensor-parallel-size",
                                           "pipeline-parallel-size"};

std::vector<GroupSetting> settings_of(const Flags& flags, const EngineConfig& config) {
  std::vector<GroupSetting> settings = {
      {"the build", str_cat(kVersion, " (", kCommit, ")")},
      {"--tensor-parallel-size", str_cat(config.tensor_parallel_size)},
      {"--pipeline-parallel-size", str_cat(config.pipeline_parallel_size)},
      {"--nnodes", str_cat(config.num_nodes)},
  };
  for (const FlagSpec& flag : engine_flags()) {
    const bool is_of_host = std::ranges::find(kOfTheHost, flag.name) != std::end(kOfTheHost);
    if (is_of_host || !flag.refusal.empty()) continue;
    settings.push_back({"--" + flag.name, flags.text_or(flag.name, flag.default_text)});
  }
  return settings;
}

// The content of a file, without the end of its line.
StatusOr<std::string> read_token(const std::string& path) {
  if (path.empty()) return std::string();
  StatusOr<std::string> token = read_file(path, kMaxTokenBytes);
  if (!token.ok()) return with_prefix(token.status(), "--group-token-file");
  while (token->ends_with('\n') || token->ends_with('\r')) token->pop_back();
  if (token->empty()) return invalid_argument("--group-token-file ", path, ": it is empty");
  return token;
}

// The first signal is the first rank's to obey, which has answers to finish: launchers send it to all. The second ends
// this process.
void take_one_signal() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

Status work(const Flags& flags, const EngineConfig& config) {
  ASSIGN_OR_RETURN(const std::shared_ptr<RankProcesses> ranks, RankProcesses::start(flags, config));
  log_info("node ", config.node_rank, " of ", config.num_nodes, ": works for the first rank at ", config.master_addr,
           " port ", config.master_port);
  const std::shared_ptr<Communicator> communicator = RankProcesses::communicator(ranks);
  const Status ended = work_as_rank(config, *communicator);
  return absl::IsCancelled(ended) ? ok_status() : ended;
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> meet_other_nodes(const Flags& flags, const EngineConfig& config, int rank,
                                                         const std::function<Status()>& check) {
  // Gloo writes to connections whose other end has gone.
  ::signal(SIGPIPE, SIG_IGN);
  GroupLink::Options options;
  options.rank = rank;
  options.size = config.num_ranks();
  options.host = config.master_addr;
  options.port = static_cast<uint16_t>(config.master_port);
  ASSIGN_OR_RETURN(options.token, read_token(config.group_token_file));
  options.settings = settings_of(flags, config);
  options.check = check;
  std::unique_ptr<GroupLink> link;
  if (rank == 0) {
    const StatusOr<ControlListener> listener = ControlListener::open(options.host, options.port);
    if (!listener.ok()) return with_prefix(listener.status(), "--master-addr");
    const bool is_loopback = options.host.starts_with("127.") || options.host == "::1" || options.host == "localhost";
    if (options.token.empty() && !is_loopback) {
      log_warning("--nnodes ", config.num_nodes, ": no --group-token-file: whoever reaches ", options.host, " port ",
                  options.port, " may join");
    }
    log_info("waiting at ", options.host, " port ", options.port, " for the ranks of ", config.num_nodes - 1,
             config.num_nodes == 2 ? " other node" : " other nodes");
    ASSIGN_OR_RETURN(link, GroupLink::host(*listener, options));
  } else {
    ASSIGN_OR_RETURN(link, GroupLink::join(options));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<GlooCommunicator> communicator,
                   GlooCommunicator::create(std::move(link), {.rank_timeout = kRankLoadTimeout,
                                                              .outbox_bytes = kOutboxBytes,
                                                              .mailbox_bytes = kMailboxBytes}));
  return std::unique_ptr<Communicator>(std::move(communicator));
}

std::optional<int> run_other_node(std::string_view verb, const Flags& flags) {
  if (std::ranges::find(kVerbs, verb) == std::end(kVerbs)) return std::nullopt;
  const StatusOr<int32_t> node = node_rank(flags);
  if (!node.ok() || *node == 0) return std::nullopt;  // the verb says what is wrong
  const StatusOr<EngineConfig> config = engine_config(flags);
  if (!config.ok()) return usage_error(verb, config.status());
  if (config->num_nodes == 1) return std::nullopt;
  take_one_signal();
  const Status worked = work(flags, *config);
  return worked.ok() ? kExitOk : usage_error(verb, worked);
}

}  // namespace transept
