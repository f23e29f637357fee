// `transept rank RANK DRIVER FLAGS -- MODEL`: what the first rank's process starts the others with.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#include "apps/engine_flags.h"
#include "apps/exit_codes.h"
#include "apps/rank_processes.h"
#include "base/log.h"
#include "startup/rank_worker.h"

namespace transept {
namespace {

// It is killed with the first rank's process, whatever that dies of, and by nothing that is meant for that: a service
// manager may send SIGTERM to all of a group, and the first rank has answers to finish.
bool bind_to(int64_t driver) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // answers are the first rank's
  return ::getppid() == driver;
}

Status run_rank(const std::vector<std::string>& arguments, int rank) {
  ASSIGN_OR_RETURN(const Flags flags, Flags::parse(engine_flags(), arguments));
  ASSIGN_OR_RETURN(const EngineConfig config, engine_config(flags));
  if (config.num_nodes > 1) {
    const int first = config.first_rank_of_node();
    if (rank <= first || rank >= first + config.ranks_per_node()) {
      return invalid_argument("rank ", rank, " of node ", config.node_rank);
    }
    ASSIGN_OR_RETURN(const auto communicator, meet_other_nodes(flags, config, rank, [] { return ok_status(); }));
    work_as_rank(config, *communicator).IgnoreError();
    return ok_status();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<SharedGroup> group, SharedGroup::attach(ChildProcess::kInherited));
  if (rank < 1 || rank >= group->options().num_ranks || group->options().num_ranks != config.num_ranks()) {
    return invalid_argument("rank ", rank, " of ", group->options().num_ranks, ", and ", config.ranks_flag());
  }
  SharedCommunicator communicator(*group, rank, rank_options(config));
  // The first rank says what ended the group.
  work_as_rank(config, communicator).IgnoreError();
  return ok_status();
}

}  // namespace

int run_rank_process(const std::vector<std::string>& arguments) {
  set_log_level(LogLevel::kError);
  const auto number = [&](size_t i) { return arguments.size() > i ? std::atoll(arguments[i].c_str()) : 0; };
  if (number(0) < 1 || number(0) >= kMostRanks || number(1) < 1) {
    return usage_error("rank", invalid_argument("a rank is started by --tensor-parallel-size of another verb alone"));
  }
  if (!bind_to(number(1))) return kExitUsage;
  const Status status = run_rank({arguments.begin() + 2, arguments.end()}, static_cast<int>(number(0)));
  return status.ok() ? kExitOk : usage_error("rank", status);
}

}  // namespace transept
