#include "disagg/ucx_bulk.h"

#include "base/scoped_variable_testing.h"
#include "disagg/bulk_conformance_testing.h"

namespace transept::testing {
namespace {

// No test needs hardware: TCP, shared memory, and what a process sends to itself.
const bool kTransports = ::setenv("UCX_TLS", "tcp,sm,self", 0) == 0;
#ifdef __SANITIZE_THREAD__
// UCX writes jumps into functions that ThreadSanitizer has replaced, to hear of memory that is unmapped.
const bool kNoMemoryEvents = ::setenv("UCX_MEM_EVENTS", "n", 0) == 0;
#endif

StatusOr<std::unique_ptr<BulkTransport>> created(const std::string& address) {
  return create_ucx_bulk(address, std::make_shared<FrameWriter>(1, nullptr));
}

// What a test needs and this build or machine lacks; empty: nothing.
std::string what_is_missing() {
  const Status status = created("ucx://127.0.0.1:*").status();
  return absl::IsUnimplemented(status) || absl::IsNotFound(status) ? error_message(status) : "";
}

void skip_without_ucx() {
  if (const std::string missing = what_is_missing(); !missing.empty()) {
    GTEST_SKIP() << "no shared library of UCX: " << missing;
  }
}

struct UcxWorld {
  UcxWorld() { skip_without_ucx(); }  // within the fixture's constructor: the test does not begin
  std::unique_ptr<BulkTransport> transport(const std::string& /*name*/) {
    auto bulk = created("ucx://127.0.0.1:*");
    EXPECT_TRUE(bulk.ok()) << bulk.status();
    return bulk.ok() ? *std::move(bulk) : nullptr;
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Ucx, BulkConformance, UcxWorld);

class UcxBulkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kTransports);
    skip_without_ucx();
  }
};

TEST_F(UcxBulkTest, RefusesAddresses) {
  for (const char* address : {"tcp://127.0.0.1:1", "ucx://", "ucx://h", "ucx://:1", "ucx://h:", "ucx://h:0",
                              "ucx://h:65536", "ucx://h:1x", "ucx://::1:80"}) {
    const Status status = created(address).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address << status;
    EXPECT_NE(status.message().find(address), std::string::npos) << status;
  }
  const auto first = created("ucx://127.0.0.1:*");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(created((*first)->address()).status().code(), absl::StatusCode::kUnavailable) << "it is taken";
}

TEST_F(UcxBulkTest, FailsOutputsForAnAddressThatIsNone) {
  const auto sender = created("ucx://127.0.0.1:*");
  SendCount count;
  for (const char* address : {"tcp://127.0.0.1:1", "ucx://127.0.0.1:*"}) {
    (*sender)->send(address, count.sending(str_cat("r", count.num_failed.load()), rows_of(1000, 1)));
  }
  EXPECT_TRUE(becomes([&] { return count.num_failed == 2; }));
}

// A receiver that dies takes what was on its way with it; the next one at its address is reached. UCX lets the port be
// taken again at once with its own variable alone (docs/scaling.md).
TEST_F(UcxBulkTest, ConnectsAgain) {
  const ScopedVariable again("UCX_TCP_CM_REUSEADDR", "y");
  TakenRows taken, taken_again;
  auto receiver = created("ucx://127.0.0.1:*");
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  const std::string address = (*receiver)->address();
  (*receiver)->receive(taken.taker());
  const auto sender = created("ucx://127.0.0.1:*");
  ASSERT_TRUE(sender.ok()) << sender.status();
  SendCount count;
  (*sender)->send(address, count.sending("r0", rows_of(3 * kBulkChunkBytes, 1)));
  ASSERT_TRUE(becomes([&] { return taken.bytes("r0").size() == 3 * kBulkChunkBytes; }));
  receiver->reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  auto next = created(address);
  ASSERT_TRUE(next.ok()) << next.status();
  (*next)->receive(taken_again.taker());
  (*sender)->send(address, count.sending("r1", rows_of(3 * kBulkChunkBytes, 2)));
  EXPECT_TRUE(becomes([&] { return taken_again.bytes("r1").size() == 3 * kBulkChunkBytes; }));
}

}  // namespace
}  // namespace transept::testing
