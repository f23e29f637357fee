// For tests: a decode instance with the bytes of its blocks, which a receiving thread writes while it holds a
// reservation. It checks itself: invariants, the cap, no announcement overtaken, no byte without a reservation, the
// right bytes.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "encoder_cache/ec_intake.h"
#include "encoder_cache/ec_receiver_table.h"

namespace transept {

inline constexpr int32_t kSimulatedWidth = 2;
inline constexpr size_t kSimulatedRowBytes = kSimulatedWidth * sizeof(float);

// The bytes of an output follow from its digest.
inline std::byte simulated_byte(const ContentDigest& digest, uint64_t at) {
  return static_cast<std::byte>(std::to_integer<uint64_t>(digest.bytes[0]) * 31 + at * 7 + at / 256);
}

class SimulatedDecoder {
 public:
  // A new start: nothing of an earlier one is left.
  void start(std::string name, const EcTimes& times, std::mt19937_64& random) {
    const auto draw = [&random](int low, int high) {
      return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
    };
    id = {std::move(name), random()};
    is_up = true;
    per_block_ = draw(1, 4);
    BlockSpaceManager::Options options;
    options.specs = {{TableOwner::kSequence}, {TableOwner::kItem, per_block_}};
    options.num_device_blocks = draw(16, 40);
    options.keep_unused_items = true;
    options.max_reserved_blocks = draw(12, options.num_device_blocks);
    options.watermark = draw(0, 1) * 0.05;
    options.shuffle_seed = random();
    blocks = std::make_unique<BlockSpaceManager>(options);
    cache = std::make_unique<EncoderCacheManager>(*blocks, 1);
    EcReceiverTable::Options wanted{.model = {}, .widths = {kSimulatedWidth}, .bulk_address = "bulk", .times = times};
    if (draw(0, 3) == 0) wanted.max_waiting = static_cast<size_t>(draw(1, 3));
    if (draw(0, 7) == 0) wanted.max_transfers = static_cast<size_t>(draw(1, 3));
    if (draw(0, 3) == 0) wanted.max_tombstones = static_cast<size_t>(draw(1, 3));
    remembers_ = wanted.max_tombstones > 100;
    // Numbers that collide, so that the table must look.
    table = std::make_unique<EcReceiverTable>(*cache, wanted, [this] { return ++num_drawn_ / 2 % 64; });
    intake_ = {};
    sinks_.clear();
    inputs_.clear();
    injected_.clear();
    bytes_.assign(static_cast<size_t>(options.num_device_blocks * per_block_) * kSimulatedRowBytes, std::byte{});
  }

  // ---- The engine's side

  // After each step of the engine, with what it put out.
  void check(const EcReceiverTable::Outputs& outputs, TimePoint now) {
    check_order(outputs);
    for (const Status& status : {blocks->check_invariants(), table->check_invariants()}) {
      expect(status.ok(), error_message(status));
    }
    expect(cache->num_used_slots() <= cache->max_slots(), "more is held than the cap");
    expect(table->next_time() > now, "a receiver's time is over and nothing happened");
  }

  // An input is ready.
  void check_injected(const EcKey& key) {
    const bool is_first = injected_.emplace(key.request_id, key.input_id, key.attempt).second;
    expect(is_first || !remembers_, "an attempt was injected twice");
    check_content(input_of(key));
  }

  void check_content(const EcInput& input) {
    const auto held = cache->blocks_of(input);
    const EcReceiver* receiver = table->find_receiver(input);
    if (receiver == nullptr) return;
    const uint64_t size = ec_payload_bytes(receiver->meta());
    for (uint64_t i = 0; i < size && problem.empty(); ++i) {
      expect(byte_at(held, i) == simulated_byte(receiver->meta().digest, i), "wrong bytes");
    }
  }

  void check_end() {
    if (!is_up) return;
    expect(table->num_transfers() == 0, "a transfer is not over");
    expect(table->num_waiting() == 0 && table->num_sinks() == 0, "one waits");
    expect(table->num_tombstones() == 0, "a tombstone stays for ever");
    expect(cache->num_uses() == 0 && blocks->num_reserved_blocks() == 0, "room is still held");
    expect(blocks->num_available_device_blocks() == blocks->num_device_blocks(), "blocks are lost");
    blocks->reset();
    expect(blocks->get_num_free_device_blocks() == blocks->num_device_blocks(), "blocks are lost");
  }

  // ---- The receiving thread's side

  void open(const EcReceiverOutput& output) {
    const EcInput input = input_of(output.key);
    const auto held = cache->blocks_of(input);
    expect(held.size() * static_cast<size_t>(per_block_) * kSimulatedRowBytes >= output.num_bytes, "too few blocks");
    sinks_[output.reservation] = {input, BlockTable(held.begin(), held.end())};
    intake_.open(output.reservation, output.key, output.num_bytes);
  }

  void close(uint64_t reservation) {
    intake_.close(reservation);
    sinks_.erase(reservation);
  }

  EcIntake::Answer take(const EcChunk& chunk) {
    const EcIntake::Answer answer = intake_.take(chunk);
    if (answer.verdict == EcIntake::Verdict::kRefused) return answer;
    const Sink& sink = sinks_.at(chunk.reservation);
    const auto held = cache->blocks_of(sink.input);
    const bool is_held = std::equal(held.begin(), held.end(), sink.blocks.begin(), sink.blocks.end());
    expect(is_held && !cache->is_written(sink.input), "a byte without a reservation");
    if (answer.verdict == EcIntake::Verdict::kStore) {
      for (size_t i = answer.skip; i < chunk.bytes.size(); ++i) byte_at(sink.blocks, chunk.offset + i) = chunk.bytes[i];
    }
    if (answer.is_complete) sinks_.erase(chunk.reservation);
    return answer;
  }

  InstanceId id;
  bool is_up = false;
  TimePoint wake_at = TimePoint::max();
  std::string problem;  // "" or what is wrong
  std::unique_ptr<BlockSpaceManager> blocks;
  std::unique_ptr<EncoderCacheManager> cache;
  std::unique_ptr<EcReceiverTable> table;

 private:
  struct Sink {
    EcInput input;
    BlockTable blocks;
  };

  struct Seen {
    bool is_live = false;
    uint64_t arrival = 0;  // > 0: it waits; in order of arrival
  };

  void expect(bool holds, std::string_view what) {
    if (!holds && problem.empty()) problem = what;
  }

  // Of those that waited, those that have room now came before all that still wait; none that came now has room while
  // others wait. Announcements of a peer that has its share of the room may be overtaken by those of others.
  void check_order(const EcReceiverTable::Outputs& outputs) {
    uint64_t last_given = 0;
    for (const EcReceiverOutput& output : outputs) inputs_.try_emplace(input_of(output.key));
    for (auto& [input, seen] : inputs_) {
      const EcReceiver* receiver = table->find_receiver(input);
      const bool is_live = receiver != nullptr && !receiver->is_over();
      const bool waits = is_live && receiver->state() == EcReceiverState::kWaiting;
      if (is_live && !waits && (seen.arrival > 0 || !seen.is_live)) {
        last_given = std::max(last_given, seen.arrival > 0 ? seen.arrival : next_arrival_ + 1);
      }
      seen.is_live = is_live;
      if (!waits) seen.arrival = 0;
    }
    size_t num_waiting = 0;
    for (const auto& [input, seen] : inputs_) {
      num_waiting += seen.arrival > 0 ? 1 : 0;
      expect(seen.arrival == 0 || seen.arrival > last_given || table->is_held_back(input),
             "an announcement was overtaken");
    }
    for (const EcReceiverOutput& output : outputs) {
      const EcReceiver* receiver = table->find_receiver(input_of(output.key));
      if (receiver == nullptr || receiver->state() != EcReceiverState::kWaiting) continue;
      Seen& seen = inputs_.at(input_of(output.key));
      if (seen.arrival > 0) continue;
      seen.arrival = ++next_arrival_;
      ++num_waiting;
    }
    expect(num_waiting == table->num_waiting(), "one waits without having been told");
  }

  std::byte& byte_at(std::span<const BlockId> table_blocks, uint64_t i) {
    const uint64_t row = i / kSimulatedRowBytes, per_block = static_cast<uint64_t>(per_block_);
    const uint64_t slot = static_cast<uint64_t>(table_blocks[row / per_block]) * per_block + row % per_block;
    return bytes_.at(slot * kSimulatedRowBytes + i % kSimulatedRowBytes);
  }

  EcIntake intake_;
  std::map<uint64_t, Sink> sinks_;
  std::vector<std::byte> bytes_;
  std::map<EcInput, Seen> inputs_;
  std::set<std::tuple<std::string, uint32_t, uint32_t>> injected_;
  int32_t per_block_ = 1;
  bool remembers_ = true;
  uint64_t next_arrival_ = 0, num_drawn_ = 0;
};

}  // namespace transept
