#include "proxy/idle_clients.h"

#include <gtest/gtest.h>

#include "proxy/proxy_testing.h"

namespace transept::testing {
namespace {

class IdleClientsTest : public ::testing::Test {
 protected:
  // Connected, and back.
  HttpClient* kept(const std::string& url) {
    IdleClients::Client client = clients_.take(url).value();
    HttpClient* const http = client.http.get();
    EXPECT_EQ(http->get("/")->status, 200);
    clients_.keep(url, std::move(client.http));
    return http;
  }
  // Whether the next one is connected.
  bool has(const std::string& url) { return clients_.take(url).value().http->is_connected(); }

  const Upstream first_{"p0"}, second_{"p1"};
  IdleClients clients_{{}};
};

TEST_F(IdleClientsTest, GivesAConnectionAgain) {
  const HttpClient* const client = kept(first_.record.url);
  EXPECT_FALSE(has(second_.record.url)) << "it is another's";
  EXPECT_EQ(kept(first_.record.url), client);
  EXPECT_TRUE(has(first_.record.url));
  EXPECT_FALSE(has(first_.record.url)) << "it was taken, and not kept";
}

TEST_F(IdleClientsTest, ClosesThoseOfOtherUrls) {
  kept(first_.record.url);
  kept(second_.record.url);
  clients_.prune({second_.record.url, "http://127.0.0.1:1"});
  EXPECT_FALSE(has(first_.record.url));
  EXPECT_TRUE(has(second_.record.url));
}

TEST_F(IdleClientsTest, KeepsNoneThatIsNotConnected) {
  clients_.keep(first_.record.url, clients_.take(first_.record.url).value().http);
  EXPECT_FALSE(has(first_.record.url));
  kept(first_.record.url);
  first_.server->stop();
  clients_.prune({first_.record.url});
  EXPECT_FALSE(has(first_.record.url));
}

TEST_F(IdleClientsTest, TheUrlsPathIsThePrefix) {
  EXPECT_EQ(clients_.take("http://127.0.0.1:1/a/b//")->prefix, "/a/b");
  EXPECT_EQ(clients_.take("http://127.0.0.1:1")->prefix, "");
  EXPECT_FALSE(clients_.take("ftp://127.0.0.1").ok());
}

}  // namespace
}  // namespace transept::testing
