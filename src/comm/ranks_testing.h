// Ranks as threads of a test, over the memory that processes share or over Gloo on 127.0.0.1.
#pragma once

#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/check.h"
#include "comm/control_socket.h"
#include "comm/gloo_communicator.h"
#include "comm/group_link.h"
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

// The same over Gloo. REQUIRES: gloo_is_here().
inline void run_gloo_ranks(int num_ranks, const GlooCommunicator::Options& options,
                           const std::function<void(Communicator&)>& work) {
  const StatusOr<ControlListener> listener = ControlListener::open("127.0.0.1", 0);
  CHECK(listener.ok(), error_message(listener.status()));
  // A rank that ends tells the others so, and they may be at work.
  std::latch done(num_ranks);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(num_ranks));
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupLink::Options group;
      group.rank = rank;
      group.size = num_ranks;
      group.port = listener->port();
      StatusOr<std::unique_ptr<GroupLink>> link =
          rank == 0 ? GroupLink::host(*listener, group) : GroupLink::join(group);
      CHECK(link.ok(), error_message(link.status()));
      const StatusOr<std::unique_ptr<GlooCommunicator>> communicator =
          GlooCommunicator::create(std::move(link).value(), options);
      CHECK(communicator.ok(), error_message(communicator.status()));
      work(**communicator);
      done.arrive_and_wait();
    });
  }
}

// Whether this build has Gloo, and this machine its library.
inline bool gloo_is_here() { return create_gloo_transport(0, 1, "127.0.0.1").ok(); }

// Spinning threads, of which there are more than processors, would wait for each other's turns.
inline constexpr SharedCommunicator::Options kPatient = {.rank_timeout = std::chrono::seconds(60), .spins = false};

}  // namespace transept::testing
