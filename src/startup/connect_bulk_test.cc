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

}  // namespace
}  // namespace transept
