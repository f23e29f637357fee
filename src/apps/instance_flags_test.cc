#include "apps/instance_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/fleet_flags.h"
#include "apps/serve_flags.h"
#include "base/folder_testing.h"
#include "startup/encoder_part.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

Flags flags_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "g2p");
  return Flags::parse(serve_flags(), arguments).value();
}
StatusOr<std::optional<Instance::Options>> options_of(std::vector<std::string> arguments) {
  return instance_options(flags_of(std::move(arguments)));
}
std::string error_of(std::vector<std::string> arguments) {
  return error_message(options_of(std::move(arguments)).status());
}

TEST(InstanceFlags, AServerOfItsOwnHasNone) {
  EXPECT_EQ(options_of({}).value(), std::nullopt);
  for (const char* flag :
       {"broker", "instance-name", "instance-url", "ec-bulk-address", "ec-secret-file", "ec-buffer-memory",
        "ec-namespace", "max-num-injected-tokens", "ec-transfer-dtype", "ec-fallback", "ec-lease"}) {
    EXPECT_THAT(error_of({str_cat("--", flag, "=1")}), HasSubstr(str_cat("--", flag, ": is for instances"))) << flag;
  }
}

TEST(InstanceFlags, RolesAreRefusedByName) {
  const auto role = [](const char* name) {
    return options_of({str_cat("--role=", name), "--broker=local:/b"}).status();
  };
  EXPECT_TRUE(absl::IsUnimplemented(role("prefill")));
  EXPECT_TRUE(absl::IsUnimplemented(role("both")));
  EXPECT_EQ(error_message(role("x")), "--role x: unknown; one of encode, decode");
  EXPECT_THAT(error_of({"--role=encode"}), HasSubstr("needs --broker"));
}

TEST(InstanceFlags, WhatIsGivenIsTaken) {
  const auto options = options_of({"--role=decode", "--broker=redis://h/1", "--instance-name=p7", "--ec-namespace=n",
                                   "--ec-bulk-address=tcp://h:1", "--instance-url=http://h:2/p"})
                           .value()
                           .value();
  EXPECT_EQ(options.role, InstanceRole::kDecode);
  EXPECT_EQ(options.broker, "redis://h/1");
  EXPECT_EQ(options.name, "p7");
  EXPECT_EQ(options.ns, "n");
  EXPECT_EQ(options.bulk_address, "tcp://h:1");
  EXPECT_EQ(options.bulk, BulkKind::kZmq);
  EXPECT_EQ(options.url, "http://h:2/p");
  EXPECT_EQ(options.secret, nullptr);
}

TEST(InstanceFlags, WrongOnesAreRefusedByName) {
  const auto with = [](std::string flag) { return error_of({"--role=encode", "--broker=local:/b", std::move(flag)}); };
  EXPECT_EQ(with("--ec-bulk=nats"), "--ec-bulk nats: unknown; one of zmq, broker, ucx");
  EXPECT_THAT(with("--ec-bulk=broker"), HasSubstr("--ec-bulk broker: needs --broker redis://"));
  EXPECT_THAT(with("--instance-name="), HasSubstr("--instance-name: the name is empty"));
  EXPECT_THAT(with("--instance-url=ftp://x"), HasSubstr("--instance-url: expected http://"));
  EXPECT_THAT(with("--ec-secret-file=/none"), HasSubstr("--ec-secret-file: /none"));
  const testing::TestFolder folder;
  folder.write("short", "0123");
  EXPECT_THAT(with(str_cat("--ec-secret-file=", folder.path(), "/short")), HasSubstr("--ec-secret-file: "));
}

TEST(InstanceFlags, OfTheEngineAreCheckedByName) {
  const auto config_of = [](std::vector<std::string> arguments) -> StatusOr<EngineConfig> {
    EngineConfig config;
    RETURN_IF_ERROR(set_instance_config(flags_of(std::move(arguments)), config));
    RETURN_IF_ERROR(check_instance_config(config));
    return config;
  };
  const EngineConfig usual = config_of({}).value();
  EXPECT_EQ(transfer_dtype(usual).value(), DType::kFloat32);
  EXPECT_EQ(falls_back(usual).value(), false);
  EXPECT_EQ(transfer_times(usual)->lease, std::chrono::seconds(30));
  const EngineConfig given = config_of({"--ec-transfer-dtype=bfloat16", "--ec-fallback=local", "--ec-lease=7"}).value();
  EXPECT_EQ(transfer_dtype(given).value(), DType::kBFloat16);
  EXPECT_EQ(falls_back(given).value(), true);
  EXPECT_EQ(transfer_times(given)->lease, std::chrono::seconds(7));
  const auto error = [&](std::string flag) { return error_message(config_of({std::move(flag)}).status()); };
  EXPECT_EQ(error("--ec-transfer-dtype=float16"), "--ec-transfer-dtype float16: unknown; one of float32, bfloat16");
  EXPECT_EQ(error("--ec-fallback=remote"), "--ec-fallback remote: unknown; one of none, local");
  for (const char* lease : {"0", "-1", "3601", "1.5", "x", "99999999999999999999"}) {
    EXPECT_THAT(error(str_cat("--ec-lease=", lease)), StartsWith(str_cat("--ec-lease ", lease, ": "))) << lease;
  }
}

TEST(InstanceFlags, TheAddressIsThatOfTheServer) {
  const auto addressed = [](const std::string& address, Instance::Options options) {
    const Status set = set_instance_address(address, options);
    return set.ok() ? str_cat(options.url, " ", options.name) : error_message(set);
  };
  Instance::Options local;
  local.broker = "local:/run/b";
  local.name = "p0";
  EXPECT_EQ(addressed("127.0.0.1:8000", local), "http://127.0.0.1:8000 p0");
  EXPECT_EQ(addressed("0.0.0.0:8000", local), "http://127.0.0.1:8000 p0");
  EXPECT_EQ(addressed("[::]:8000", local), "http://[::1]:8000 p0");
  Instance::Options redis;
  redis.broker = "redis://h";
  EXPECT_THAT(addressed("0.0.0.0:8000", redis), HasSubstr("--instance-url has to say"));
  EXPECT_THAT(addressed("10.0.0.1:8000", redis), MatchesRegex("http://10.0.0.1:8000 decode-.*-8000"));
  redis.url = "http://outside";
  EXPECT_THAT(addressed("0.0.0.0:8000", redis), StartsWith("http://outside decode-"));
}

TEST(InstanceFlags, RowsTravelAsIsSaid) {
  const auto kind = [](const char* bulk) {
    return options_of({"--role=decode", "--broker=redis://h/1", str_cat("--ec-bulk=", bulk)}).value().value().bulk;
  };
  EXPECT_EQ(kind("zmq"), BulkKind::kZmq);
  EXPECT_EQ(kind("broker"), BulkKind::kBroker);
  EXPECT_EQ(kind("ucx"), BulkKind::kUcx);
  EXPECT_THAT(error_of({"--role=decode", "--broker=redis://h", "--ec-bulk=broker", "--ec-bulk-address=tcp://h:1"}),
              HasSubstr("--ec-bulk-address tcp://h:1: does not go with --ec-bulk broker"));
}

TEST(FleetFlags, AProxyNeedsABroker) {
  const auto settings = [](const std::vector<std::string>& arguments) {
    return proxy_settings(Flags::parse(proxy_flags(), arguments).value());
  };
  EXPECT_THAT(error_message(settings({}).status()), HasSubstr("--broker is missing"));
  EXPECT_THAT(error_message(settings({"--broker=x", "--port=70000"}).status()), HasSubstr("--port 70000"));
  const ProxySettings given =
      settings({"--broker=redis://h", "--ec-namespace=n", "--host=::", "--port=0", "--max-upload-size=1GiB"}).value();
  EXPECT_EQ(given.broker, "redis://h");
  EXPECT_EQ(given.ns, "n");
  EXPECT_EQ(given.proxy.http.host, "::");
  EXPECT_GT(given.proxy.service.max_body_bytes, size_t{1} << 30);
}

TEST(FleetFlags, WhatAProxyHolds) {
  const auto settings = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--broker=x");
    return proxy_settings(Flags::parse(proxy_flags(), arguments).value());
  };
  EXPECT_EQ(settings({}).value().proxy.service.hold, ProxyService::Hold::kNever);
  EXPECT_EQ(settings({"--hold=auto"}).value().proxy.service.hold, ProxyService::Hold::kSeveral);
  EXPECT_EQ(settings({"--hold=always"}).value().proxy.service.hold, ProxyService::Hold::kAlways);
  EXPECT_EQ(settings({"--hold=never"}).value().proxy.service.hold, ProxyService::Hold::kNever);
  EXPECT_EQ(error_message(settings({"--hold=some"}).status()), "--hold some: unknown; one of auto, always, never");
  EXPECT_EQ(settings({"--proxy-url=http://h:1"}).value().proxy.held.url, "http://h:1");
  EXPECT_THAT(error_message(settings({"--proxy-url=h"}).status()), HasSubstr("--proxy-url"));
  EXPECT_THAT(error_message(settings({"--ec-secret-file=/no/such"}).status()), HasSubstr("--ec-secret-file"));
}

}  // namespace
}  // namespace transept
