// Ranks as threads of a test, over the memory that processes share.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/check.h"
#include "comm/shared_communicator.h"
#include "comm/shared_group.h"

namespace transept::testing {

// Runs `work` once for each rank, at the same time, and returns when all have ended.
inline void run_ranks(SharedGroup& group, const SharedCommunicator::Options& options,
                      const std::function<void(Communicator&)>& work) {
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(group.options().num_ranks));
  for (int rank = 0; rank < group.options().num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      SharedCommunicator communicator(group, rank, options);
      work(communicator);
    });
  }
}

inline std::unique_ptr<SharedGroup> make_group(int num_ranks, size_t outbox_bytes = 4096, size_t mailbox_bytes = 256) {
  StatusOr<std::unique_ptr<SharedGroup>> group =
      SharedGroup::create({.num_ranks = num_ranks, .outbox_bytes = outbox_bytes, .mailbox_bytes = mailbox_bytes});
  CHECK(group.ok(), error_message(group.status()));
  return std::move(group).value();
}

// Spinning threads, of which there are more than processors, would wait for each other's turns.
inline constexpr SharedCommunicator::Options kPatient = {.rank_timeout = std::chrono::seconds(60), .spins = false};

}  // namespace transept::testing
