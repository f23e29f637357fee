// Channel 3 of one pair, as a decode instance sees it: float32 rows of whisper-small from the sender's memory to their
// places, with checksums; and the time of a small message by the local broker, there and back.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "disagg/ec_sinks.h"
#include "disagg/local_broker.h"
#include "disagg/local_server.h"
#include "disagg/redis_bulk.h"
#include "disagg/redis_process_testing.h"
#include "disagg/ucx_bulk.h"
#include "disagg/zmq_bulk.h"

namespace transept {
namespace {

constexpr size_t kOutputBytes = size_t{1500} * 768 * sizeof(float);

std::string path_of(std::string_view name) {
  return (std::filesystem::temp_directory_path() / str_cat("transept-bench-", ::getpid(), "-", name)).string();
}

class Counter {
 public:
  void add() { ++count_; }
  void wait_for(int64_t count) const {
    while (count_ < count) std::this_thread::yield();
  }

 private:
  std::atomic<int64_t> count_{0};
};

void bulk(benchmark::State& state, BulkTransport& receiver, BulkTransport& sender) {
  FrameCounts counts;
  EcSinks sinks(nullptr, counts);
  Counter done;
  std::vector<EcEvent> events;
  std::shared_ptr<EcInbox> inbox = std::make_shared<EcInbox>(64, nullptr);
  sinks.start(inbox);
  receiver.receive([&](std::span<const std::byte> frame) { sinks.take(frame); });
  const auto num_outputs = static_cast<size_t>(state.range(0));  // in flight
  const EcRows rows = make_ec_rows(std::vector<std::byte>(kOutputBytes, std::byte{3}));
  std::vector<std::vector<std::byte>> places(num_outputs, std::vector<std::byte>(kOutputBytes));
  uint32_t number = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    for (auto& place : places) {
      const EcKey key{"r", ++number, 0};
      sinks.open(number, key, kOutputBytes, {place});
      sender.send(receiver.address(), {key, number, rows, nullptr, nullptr});
    }
    for (size_t num_complete = 0; num_complete < num_outputs;) {
      inbox->take(64, events);
      for (const EcEvent& event : events) {
        num_complete += std::get<EcSinkEvent>(event).kind == EcSinkEvent::Kind::kComplete ? 1 : 0;
      }
      if (events.empty()) ::usleep(50);
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * num_outputs * kOutputBytes));
}

std::shared_ptr<FrameWriter> new_writer() { return std::make_shared<FrameWriter>(1, nullptr); }

// ---- zmq

void zmq(benchmark::State& state, const std::string& in, const std::string& out) {
  const auto receiver = ZmqBulk::create(in, new_writer()).value(), sender = ZmqBulk::create(out, new_writer()).value();
  bulk(state, *receiver, *sender);
}
void bulk_zmq_ipc(benchmark::State& state) { zmq(state, "ipc://" + path_of("in"), "ipc://" + path_of("out")); }
void bulk_zmq_tcp(benchmark::State& state) { zmq(state, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"); }
BENCHMARK(bulk_zmq_ipc)->Arg(1)->Arg(4)->UseRealTime()->MinTime(2);
BENCHMARK(bulk_zmq_tcp)->Arg(4)->UseRealTime()->MinTime(2);

// ---- broker

void bulk_redis(benchmark::State& state) {
  testing::RedisProcess server;
  if (const std::string missing = server.what_is_missing(); !missing.empty())
    return state.SkipWithError(missing.c_str());
  CHECK(server.start(), "redis-server does not answer");
  const auto create = [&](const std::string& name) {
    return RedisBulk::create(server.url(), {.self = {name, 1}}, new_writer()).value();
  };
  const auto receiver = create("d0"), sender = create("e0");
  bulk(state, *receiver, *sender);
}
BENCHMARK(bulk_redis)->Arg(1)->Arg(4)->UseRealTime()->MinTime(2);

// ---- ucx

void bulk_ucx(benchmark::State& state) {
  auto receiver = create_ucx_bulk("ucx://127.0.0.1:*", new_writer());
  if (!receiver.ok()) return state.SkipWithError(error_message(receiver.status()).c_str());
  const auto sender = create_ucx_bulk("ucx://127.0.0.1:*", new_writer()).value();
  bulk(state, **receiver, *sender);
}
BENCHMARK(bulk_ucx)->Arg(1)->Arg(4)->UseRealTime()->MinTime(2);

// ---- Messages

void message_and_answer(benchmark::State& state) {
  const std::string path = path_of("broker");
  const auto server = LocalServer::start(path, 1, {}).value();
  const auto here = LocalBroker::connect(path).value(), there = LocalBroker::connect(path).value();
  const InstanceId a{"a", 1}, b{"b", 2};
  const std::vector<std::byte> frame(200);
  Counter answers;
  CHECK(there
            ->subscribe(b, EcChannel::kMetadata,
                        [&](std::span<const std::byte> message) {
                          CHECK(there->publish(a, EcChannel::kAllocation, message).ok(), "the broker is away");
                        })
            .ok(),
        "no subscription");
  CHECK(here->subscribe(a, EcChannel::kAllocation, [&](std::span<const std::byte>) { answers.add(); }).ok(),
        "no subscription");
  int64_t number = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    CHECK(here->publish(b, EcChannel::kMetadata, frame).ok(), "the broker is away");
    answers.wait_for(++number);
  }
}
BENCHMARK(message_and_answer)->UseRealTime()->MinTime(2);

}  // namespace
}  // namespace transept
