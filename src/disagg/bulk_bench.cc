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

void bulk(benchmark::State& state, const std::string& in, const std::string& out) {
  const auto writer = std::make_shared<FrameWriter>(1, nullptr);
  const auto receiver = ZmqBulk::create(in, writer).value(), sender = ZmqBulk::create(out, writer).value();
  FrameCounts counts;
  EcSinks sinks(nullptr, counts);
  Counter done;
  std::vector<EcEvent> events;
  std::shared_ptr<EcInbox> inbox = std::make_shared<EcInbox>(64, nullptr);
  sinks.start(inbox);
  receiver->receive([&](std::span<const std::byte> frame) { sinks.take(frame); });
  const auto num_outputs = static_cast<size_t>(state.range(0));  // in flight
  const EcRows rows = std::make_shared<std::vector<std::byte>>(kOutputBytes, std::byte{3});
  std::vector<std::vector<std::byte>> places(num_outputs, std::vector<std::byte>(kOutputBytes));
  uint32_t number = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    for (auto& place : places) {
      const EcKey key{"r", ++number, 0};
      sinks.open(number, key, kOutputBytes, {place});
      sender->send(receiver->address(), {key, number, rows, nullptr, nullptr});
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

void bulk_ipc(benchmark::State& state) { bulk(state, "ipc://" + path_of("in"), "ipc://" + path_of("out")); }
void bulk_tcp(benchmark::State& state) { bulk(state, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"); }
BENCHMARK(bulk_ipc)->Arg(1)->Arg(4)->UseRealTime()->MinTime(2);
BENCHMARK(bulk_tcp)->Arg(4)->UseRealTime()->MinTime(2);

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
