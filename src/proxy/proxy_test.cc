// A whole proxy, which follows the records of a broker.
#include "proxy/proxy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "disagg/inproc_broker.h"
#include "proxy/proxy_testing.h"

namespace transept::testing {
namespace {

auto num_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

template <typename Condition>
bool becomes(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class WholeProxyTest : public ::testing::Test {
 protected:
  WholeProxyTest() {
    Proxy::Options options;
    options.http.port = 0;
    options.look_for_instances = 5ms;
    proxy_ = Proxy::start(options, std::make_shared<InprocBroker>(hub_)).value();
    client_ = std::make_unique<HttpClient>("127.0.0.1", proxy_->http().port(), HttpClient::Options());
    EXPECT_EQ(client_->get("/v1/x")->status, 503);  // what stays open is open
  }
  bool has_ready(size_t num) const {
    return becomes([&] { return proxy_->pool().num_ready(std::chrono::steady_clock::now()) == num; });
  }
  void ask_of(const Upstream& upstream) {
    ASSERT_TRUE(broker_.announce(upstream.record, std::chrono::minutes(5)).ok());
    ASSERT_TRUE(has_ready(1));
    EXPECT_EQ(client_->get("/v1/x")->status, 200);
  }

  std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>(InprocHub::Options());
  InprocBroker broker_{hub_};
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(WholeProxyTest, ClosesWhatTheDeadHaveClosed) {
  const auto before = num_descriptors();
  {
    const Upstream upstream("p0");  // its record stays
    ask_of(upstream);
  }
  EXPECT_TRUE(becomes([&] { return num_descriptors() == before; })) << num_descriptors() << ", and " << before;
}

TEST_F(WholeProxyTest, ClosesConnectionsToWhoHasLeft) {
  const Upstream upstream("p0");  // it still listens
  ask_of(upstream);
  const auto with = num_descriptors();
  ASSERT_TRUE(broker_.leave(upstream.record.id).ok());
  EXPECT_TRUE(becomes([&] { return num_descriptors() == with - 2; }))
      << "both ends: " << num_descriptors() << ", " << with;
}

TEST_F(WholeProxyTest, KeepsAConnectionInUse) {
  const Upstream upstream("p0");
  ask_of(upstream);
  const auto before = num_descriptors();
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(client_->get("/v1/x")->status, 200);
    EXPECT_EQ(num_descriptors(), before) << "no other connection is made";
  }
}

}  // namespace
}  // namespace transept::testing
