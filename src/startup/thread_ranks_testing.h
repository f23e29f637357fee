// For tests: the other ranks of a model as threads of this process, over the memory that processes share.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "comm/ranks_testing.h"
#include "startup/load_engine.h"
#include "startup/rank_worker.h"

namespace transept::testing {

class ThreadRanks final {
 public:
  // The first rank's end, to be given to load_engine(), which keeps it: when it lets go, it waits for the others.
  static std::shared_ptr<Communicator> start(const EngineConfig& config, size_t outbox_bytes = size_t{1} << 16,
                                             size_t mailbox_bytes = 256) {
    auto ranks = std::make_shared<ThreadRanks>(config, outbox_bytes, mailbox_bytes);
    return {ranks, &ranks->first_};
  }

  ThreadRanks(const EngineConfig& config, size_t outbox_bytes, size_t mailbox_bytes)
      : group_(make_group(config.num_ranks(), outbox_bytes, mailbox_bytes)), first_(*group_, 0, kPatient) {
    for (int rank = 1; rank < config.num_ranks(); ++rank) {
      others_.emplace_back([this, config, rank] {
        SharedCommunicator communicator(*group_, rank, kPatient);
        work_as_rank(config, communicator).IgnoreError();
      });
    }
  }

 private:
  std::unique_ptr<SharedGroup> group_;
  SharedCommunicator first_;
  std::vector<std::jthread> others_;
};

}  // namespace transept::testing
