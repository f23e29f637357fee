// For tests: what every bulk transport must do. A transport's test defines a fixture:
//
//   struct World { std::unique_ptr<BulkTransport> transport(const std::string& name); };  // of incarnation 1
//   INSTANTIATE_TYPED_TEST_SUITE_P(Inproc, BulkConformance, World);
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "disagg/broker_conformance_testing.h"
#include "disagg/frame_writer.h"
#include "disagg/send_queue.h"

namespace transept::testing {

inline EcRows rows_of(size_t size, int seed) {
  std::vector<std::byte> rows(size);
  for (size_t i = 0; i < size; ++i) rows[i] = static_cast<std::byte>(i * 7 + i / 256 + seed * 31);
  return make_ec_rows(std::move(rows));
}

// What a transport's receiver took: chunks of each request, put together.
class TakenRows final {
 public:
  std::function<void(std::span<const std::byte>)> taker() {
    return [this](std::span<const std::byte> frame) {
      while (is_held_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto decoded = decode_ec_frame(frame, nullptr);
      const MutexLock lock(mutex_);
      ++num_frames_;
      if (!decoded.ok()) return;
      const auto& chunk = std::get<EcChunk>(decoded->message);
      auto& bytes = bytes_[chunk.key.request_id];
      if (chunk.offset != bytes.size()) ++num_disordered_;
      bytes.insert(bytes.end(), chunk.bytes.begin(), chunk.bytes.end());
    };
  }
  std::vector<std::byte> bytes(const std::string& request) const {
    const MutexLock lock(mutex_);
    const auto found = bytes_.find(request);
    return found == bytes_.end() ? std::vector<std::byte>() : found->second;
  }
  int num_disordered() const {
    const MutexLock lock(mutex_);
    return num_disordered_;
  }
  int num_frames() const {
    const MutexLock lock(mutex_);
    return num_frames_;
  }
  void hold(bool is_held) { is_held_ = is_held; }  // the receiver takes nothing

 private:
  mutable Mutex mutex_;
  std::atomic<bool> is_held_{false};
  std::map<std::string, std::vector<std::byte>> bytes_ ABSL_GUARDED_BY(mutex_);
  int num_disordered_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_frames_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Of sendings, whose transport may end them while it is destroyed: outlives it.
struct SendCount {
  std::atomic<int> num_progress{0}, num_done{0}, num_failed{0};

  BulkTransport::Sending sending(const std::string& request, EcRows rows) {
    return {{request, 0, 1},
            7,
            std::move(rows),
            [this] { ++num_progress; },
            [this](const Status& status) { ++(status.ok() ? num_done : num_failed); }};
  }
};

template <typename World>
class BulkConformance : public ::testing::Test {
 protected:
  World world_;
};
TYPED_TEST_SUITE_P(BulkConformance);

TYPED_TEST_P(BulkConformance, CarriesOutputsInOrder) {
  TakenRows taken;
  SendCount count;
  const auto receiver = this->world_.transport("d0");
  receiver->receive(taken.taker());
  const auto sender = this->world_.transport("e0");
  ASSERT_FALSE(receiver->address().empty());
  ASSERT_LE(receiver->address().size(), kMaxEcAddressBytes);
  const std::vector<EcRows> rows = {rows_of(1, 1), rows_of(kBulkChunkBytes, 2), rows_of((size_t{20} << 20) + 3, 3)};
  for (size_t i = 0; i < rows.size(); ++i) {
    sender->send(receiver->address(), count.sending(str_cat("r", i), rows[i]));
  }
  ASSERT_TRUE(becomes([&] { return count.num_done == 3; }));
  EXPECT_EQ(count.num_failed, 0);
  EXPECT_GE(count.num_progress, 82) << "20 MiB are 80 chunks and one";
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_TRUE(becomes([&] { return taken.bytes(str_cat("r", i)).size() >= rows[i]->size(); })) << i;
    EXPECT_TRUE(std::ranges::equal(taken.bytes(str_cat("r", i)), *rows[i])) << i;
  }
  EXPECT_EQ(taken.num_disordered(), 0);
}

TYPED_TEST_P(BulkConformance, StopsForAReceiverThatReadsNothing) {
  TakenRows taken, other_taken;
  taken.hold(true);
  const auto slow = this->world_.transport("d0"), other = this->world_.transport("d1");
  slow->receive(taken.taker());
  other->receive(other_taken.taker());
  const auto sender = this->world_.transport("e0");
  SendCount count, other_count;
  const EcRows rows = rows_of(size_t{64} << 20, 1);
  sender->send(slow->address(), count.sending("r0", rows));
  // No more than the queues on both sides hold: far from all of it.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(count.num_done, 0);
  EXPECT_LT(count.num_progress, 64);
  sender->send(other->address(), other_count.sending("r1", rows_of(1000, 2)));
  EXPECT_TRUE(becomes([&] { return other_count.num_done == 1; })) << "nobody else waits for it";
  EXPECT_TRUE(becomes([&] { return other_taken.bytes("r1").size() == 1000; }));
  taken.hold(false);
  EXPECT_TRUE(becomes([&] { return count.num_done == 1; }));
  EXPECT_TRUE(becomes([&] { return taken.bytes("r0").size() == rows->size(); }));
  EXPECT_TRUE(std::ranges::equal(taken.bytes("r0"), *rows));
}

TYPED_TEST_P(BulkConformance, SaysNothingOfWhatIsCancelled) {
  TakenRows taken;
  taken.hold(true);
  const auto receiver = this->world_.transport("d0");
  receiver->receive(taken.taker());
  const auto sender = this->world_.transport("e0");
  SendCount count, next_count;
  sender->send(receiver->address(), count.sending("r0", rows_of(size_t{64} << 20, 1)));
  sender->send(receiver->address(), next_count.sending("r1", rows_of(1000, 2)));
  ASSERT_TRUE(becomes([&] { return count.num_progress > 0; }));
  sender->cancel({"r0", 0});
  const int num_progress = count.num_progress;
  taken.hold(false);
  ASSERT_TRUE(becomes([&] { return next_count.num_done == 1; })) << "the next one's turn";
  ASSERT_TRUE(becomes([&] { return taken.bytes("r1").size() == 1000; }));
  EXPECT_EQ(count.num_progress, num_progress);
  EXPECT_EQ(count.num_done + count.num_failed, 0);
  EXPECT_LE(taken.bytes("r0").size(), static_cast<size_t>(num_progress) * kBulkChunkBytes);
  sender->cancel({"unknown", 0});
}

TYPED_TEST_P(BulkConformance, CancelsInItsOwnCallback) {
  TakenRows taken;
  const auto receiver = this->world_.transport("d0");
  receiver->receive(taken.taker());
  const auto sender = this->world_.transport("e0");
  SendCount count, next_count;
  BulkTransport::Sending sending = count.sending("r0", rows_of(4 * kBulkChunkBytes, 1));
  sending.progress = [&] {
    ++count.num_progress;
    sender->cancel({"r0", 0});
  };
  sender->send(receiver->address(), std::move(sending));
  sender->send(receiver->address(), next_count.sending("r1", rows_of(1000, 2)));
  ASSERT_TRUE(becomes([&] { return next_count.num_done == 1; }));
  EXPECT_EQ(count.num_progress, 1);
  EXPECT_EQ(count.num_done, 0);
}

TYPED_TEST_P(BulkConformance, EndsWhileAPeerIsMissing) {
  SendCount count;
  {
    const auto sender = this->world_.transport("e0");
    std::string address;
    {
      const auto receiver = this->world_.transport("d0");
      address = receiver->address();
    }
    sender->send(address, count.sending("r0", rows_of(1000, 1)));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(count.num_done, 0) << "a dead peer looks like a slow one";
    sender->cancel({"r0", 0});
    sender->send(address, count.sending("r1", rows_of(1000, 1)));
  }
  EXPECT_EQ(count.num_done, 0);
}

TYPED_TEST_P(BulkConformance, LetsGoOfRows) {
  TakenRows taken;
  SendCount count;
  const auto receiver = this->world_.transport("d0");
  receiver->receive(taken.taker());
  const auto sender = this->world_.transport("e0");
  EcRows rows = rows_of(4 * kBulkChunkBytes, 1);
  const std::weak_ptr<const std::span<const std::byte>> watched = rows;
  sender->send(receiver->address(), count.sending("r0", std::move(rows)));
  ASSERT_TRUE(becomes([&] { return taken.bytes("r0").size() == 4 * kBulkChunkBytes; }));
  EXPECT_TRUE(becomes([&] { return watched.expired(); }));
}

TYPED_TEST_P(BulkConformance, ServesManyThreads) {
  TakenRows taken;
  SendCount count;
  const auto receiver = this->world_.transport("d0");
  receiver->receive(taken.taker());
  const auto sender = this->world_.transport("e0");
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        sender->send(receiver->address(), count.sending(str_cat("r", t, ".", i), rows_of(100000, t)));
        if (i % 5 == 4) sender->cancel({str_cat("r", t, ".", i), 0});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(becomes([&] { return count.num_done >= 80; }));
  EXPECT_TRUE(becomes([&] { return taken.num_frames() >= 80; }));
  EXPECT_EQ(taken.num_disordered(), 0);
}

REGISTER_TYPED_TEST_SUITE_P(BulkConformance, CarriesOutputsInOrder, StopsForAReceiverThatReadsNothing,
                            SaysNothingOfWhatIsCancelled, CancelsInItsOwnCallback, EndsWhileAPeerIsMissing,
                            LetsGoOfRows, ServesManyThreads);

}  // namespace transept::testing
