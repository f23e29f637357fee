#include "server/client_secrets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace transept {
namespace {

constexpr std::string_view kTokenChars = "-_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

TEST(ClientSecrets, AKeyHoldsUntilItExpires) {
  const ClientSecrets secrets;
  const std::string key = secrets.make(1000, "payload");
  EXPECT_TRUE(key.starts_with("ek_"));
  EXPECT_EQ(secrets.payload_of(key, 0), "payload");
  EXPECT_EQ(secrets.payload_of(key, 999), "payload");
  EXPECT_EQ(secrets.payload_of(key, 1000), std::nullopt);
  EXPECT_EQ(secrets.payload_of(secrets.make(1000, ""), 0), "");
}

TEST(ClientSecrets, EveryPayloadIsTheNameOfASubprotocol) {
  const ClientSecrets secrets;
  std::string payload;
  for (int i = 0; i < 256; ++i) {
    payload.push_back(static_cast<char>(255 - i));
    const std::string key = secrets.make(1000, payload);
    EXPECT_EQ(key.find_first_not_of(kTokenChars), std::string::npos) << key;
    EXPECT_EQ(secrets.payload_of(key, 0), payload) << i;
  }
}

TEST(ClientSecrets, KeysOfAFleetHoldForAllOfIt) {
  const auto secret_of = [](std::string_view text) {
    return EcSecret(std::as_bytes(std::span(text.data(), text.size())));
  };
  const ClientSecrets one(secret_of("a secret of the fleet")), other(secret_of("a secret of the fleet"));
  const ClientSecrets stranger(secret_of("a secret of another one"));
  const std::string key = one.make(1000, "payload");
  EXPECT_EQ(other.payload_of(key, 999), "payload");
  EXPECT_EQ(other.payload_of(key, 1000), std::nullopt);
  EXPECT_EQ(stranger.payload_of(key, 0), std::nullopt);
  EXPECT_EQ(ClientSecrets().payload_of(key, 0), std::nullopt);
}

TEST(ClientSecrets, NoByteMayChange) {
  const ClientSecrets secrets;
  const std::string key = secrets.make(1000, "payload");
  for (size_t i = 0; i < key.size(); ++i) {
    std::string other = key;
    other[i] = other[i] == '1' ? '2' : '1';
    EXPECT_EQ(secrets.payload_of(other, 0), std::nullopt) << other;
    EXPECT_EQ(secrets.payload_of(key.substr(0, i), 0), std::nullopt) << i;
  }
  EXPECT_EQ(secrets.payload_of(key + "A", 0), std::nullopt);
  EXPECT_EQ(secrets.payload_of(key + "=", 0), std::nullopt);
  EXPECT_EQ(secrets.payload_of("", 0), std::nullopt);
}

TEST(ClientSecrets, AnotherServersKeysAreNothing) {
  const std::string key = ClientSecrets().make(1000, "payload");
  EXPECT_EQ(ClientSecrets().payload_of(key, 0), std::nullopt);
}

}  // namespace
}  // namespace transept
