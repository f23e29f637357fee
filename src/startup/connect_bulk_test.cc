#include "startup/connect_bulk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

TEST(ConnectBulk, RowsAreTakenBesideTheBrokerOrWhereTheServerIs) {
  BulkOptions options;
  options.self.name = "e0";
  options.broker = "local:/run/b";
  EXPECT_EQ(default_bulk_address(options), "ipc:///run/b.e0");
  options.broker = "redis://h";
  options.url = "http://10.0.0.1:8000";
  EXPECT_EQ(default_bulk_address(options), "tcp://10.0.0.1:*");
  options.url = "http://[::1]:8000/x";
  EXPECT_EQ(default_bulk_address(options), "tcp://[::1]:*");
  options.kind = BulkKind::kUcx;
  EXPECT_EQ(default_bulk_address(options), "ucx://[::1]:*");
  options.broker = "local:/run/b";
  EXPECT_EQ(default_bulk_address(options), "ucx://[::1]:*");
  options.kind = BulkKind::kBroker;
  EXPECT_EQ(default_bulk_address(options), "");
}

TEST(ConnectBulk, WhatDoesNotGoTogetherIsRefusedByName) {
  const auto error = [](const BulkOptions& options) { return error_message(connect_bulk(options, nullptr).status()); };
  BulkOptions options;
  options.kind = BulkKind::kBroker;
  options.self = {"e0", 1};
  options.broker = "local:/run/b";
  EXPECT_EQ(error(options), "--ec-bulk broker: needs --broker redis://..: a broker local:PATH carries no rows");
  options.broker = "redis://127.0.0.1:1";
  options.address = "tcp://h:1";
  EXPECT_THAT(error(options), HasSubstr("--ec-bulk-address tcp://h:1: does not go with --ec-bulk broker"));
  options.address = "";
  EXPECT_THAT(error(options), HasSubstr("--ec-bulk: the broker is away: redis://127.0.0.1:1"));
  options.kind = BulkKind::kZmq;
  options.address = "ucx://h:1";
  EXPECT_THAT(error(options), HasSubstr("--ec-bulk-address: address ucx://h:1: is neither ipc://PATH nor"));
}

TEST(ConnectBulk, WithoutASecretAnInstanceKeepsToThisMachine) {
  const auto check = [](const std::string& broker, const std::string& url, const std::string& address,
                        BulkKind kind = BulkKind::kZmq) {
    return error_message(check_without_secret({kind, address, broker, "default", {"e0", 1}, url}));
  };
  const std::string here = "http://127.0.0.1:8000";
  EXPECT_EQ(check("local:/run/b", "http://10.0.0.1:8000", ""), "") << "rows go beside the broker's socket";
  for (const char* broker : {"redis://127.0.0.1", "redis://127.8.0.1:7/2", "redis://localhost", "redis://[::1]:9",
                             "redis+unix:///run/redis"}) {
    EXPECT_EQ(check(broker, here, ""), "") << broker;
    EXPECT_EQ(check(broker, "http://10.0.0.1:8000", "", BulkKind::kBroker), "") << broker;
  }
  EXPECT_THAT(check("redis://u:password@host.example", here, ""),
              ::testing::MatchesRegex("--broker redis://u:[*]+@host.example.*: other machines reach it, so "
                                      "--ec-secret-file has to name the secret .*"));
  EXPECT_THAT(check("redis://10.0.0.5", here, "", BulkKind::kBroker), HasSubstr("--broker redis://10.0.0.5"));
  EXPECT_THAT(check("redis://[2001:db8::1]", here, ""), HasSubstr("--ec-secret-file"));
  EXPECT_THAT(check("redis://127.0.0.1", "http://10.0.0.1:8000", ""),
              HasSubstr("rows at tcp://10.0.0.1:*: other machines reach it, so --ec-secret-file"));
  for (const char* address : {"tcp://0.0.0.0:5", "tcp://*:5", "tcp://[::]:*", "tcp://host:5"}) {
    EXPECT_THAT(check("local:/run/b", here, address), HasSubstr(str_cat("--ec-bulk-address ", address, ": ")));
  }
  EXPECT_THAT(check("local:/run/b", here, "ucx://10.0.0.1:*", BulkKind::kUcx), HasSubstr("--ec-secret-file"));
  for (const char* address : {"tcp://127.0.0.1:5", "tcp://[::1]:*", "tcp://localhost:5", "ipc:///run/e0"}) {
    EXPECT_EQ(check("local:/run/b", here, address), "") << address;
  }
}

}  // namespace
}  // namespace transept
