#include "disagg/redis_url.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

RedisUrl parsed(std::string_view text) {
  auto url = parse_redis_url(text);
  EXPECT_TRUE(url.ok()) << text << ": " << url.status();
  return url.value_or(RedisUrl());
}

TEST(RedisUrl, HasDefaults) {
  EXPECT_EQ(parsed("redis://h"), (RedisUrl{.host = "h"}));
  EXPECT_EQ(parsed("redis://h/"), (RedisUrl{.host = "h"}));
  EXPECT_EQ(parsed("redis://h").port, 6379);
}

TEST(RedisUrl, HasAllFields) {
  EXPECT_EQ(parsed("redis://ann:secret@redis.example:7000/15"),
            (RedisUrl{.host = "redis.example", .port = 7000, .user = "ann", .password = "secret", .db = 15}));
  EXPECT_EQ(parsed("redis://:secret@10.0.0.1:1/300"),
            (RedisUrl{.host = "10.0.0.1", .port = 1, .password = "secret", .db = 300}));
  EXPECT_EQ(parsed("redis://[::1]:65535"), (RedisUrl{.host = "::1", .port = 65535}));
  EXPECT_EQ(parsed("redis://[fe80::1%eth0]/2"), (RedisUrl{.host = "fe80::1%eth0", .db = 2}));
}

TEST(RedisUrl, DecodesUserAndPassword) {
  const RedisUrl url = parsed("redis://a%3Ab:p%40%2F%25%3a+@h");
  EXPECT_EQ(url.user, "a:b");
  EXPECT_EQ(url.password, "p@/%:+");
  EXPECT_EQ(parsed("redis://:a:b@h").password, "a:b") << "the first colon divides";
  EXPECT_EQ(parsed("redis://:a@b@h").password, "a@b") << "the last @ divides";
}

TEST(RedisUrl, NamesUnixSockets) {
  EXPECT_EQ(parsed("redis+unix:///run/redis.sock"), (RedisUrl{.path = "/run/redis.sock"}));
  EXPECT_EQ(parsed("redis+unix://u:p@/run/a%20b?db=3"),
            (RedisUrl{.path = "/run/a b", .user = "u", .password = "p", .db = 3}));
}

TEST(RedisUrl, PrintsNoPassword) {
  EXPECT_EQ(parsed("redis://ann:secret@[::1]:7000/15").text(), "redis://ann:***@[::1]:7000/15");
  EXPECT_EQ(parsed("redis://:secret@h").text(), "redis://:***@h:6379/0");
  EXPECT_EQ(parsed("redis://h").text(), "redis://h:6379/0");
  EXPECT_EQ(parsed("redis+unix://:secret@/run/s?db=1").text(), "redis+unix://:***@/run/s?db=1");
}

TEST(RedisUrl, NamesTheFieldThatIsWrong) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"http://h", "scheme"},
      {"redis:h", "scheme"},
      {"redis://", "host"},
      {"redis:///0", "host"},
      {"redis://:secret@", "host"},
      {"redis://a b", "host"},
      {"redis://[::1", "host"},
      {"redis://[::1]x", "host"},
      {"redis://::1", "host"},
      {"redis://h:", "port"},
      {"redis://h:0", "port"},
      {"redis://h:65536", "port"},
      {"redis://h:6379x", "port"},
      {"redis://h:-1", "port"},
      {"redis://h/x", "db"},
      {"redis://h/-1", "db"},
      {"redis://h/1/2", "db"},
      {"redis://h/99999999999", "db"},
      {"redis://h/0?db=1", "db"},
      {"redis://ann@h", "password"},
      {"redis://ann:@h", "password"},
      {"redis://ann:%4@h", "password"},
      {"redis://%zz:p@h", "user"},
      {"redis://ann:%00@h", "password"},
      {"redis://:secret/more@h", "password"},
      {"redis+unix://", "path"},
      {"redis+unix:///", "path"},
      {"redis+unix://run/s", "path"},
      {"redis+unix:///run/%", "path"},
      {"redis+unix:///run/s?x=1", "db"},
      {"redis+unix:///run/s?db=", "db"},
  };
  for (const auto& [text, field] : cases) {
    const Status status = parse_redis_url(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(error_param(status), field) << text << ": " << status;
    EXPECT_TRUE(error_message(status).starts_with(field)) << status;
    EXPECT_EQ(status.message().find("secret"), std::string::npos) << status;
  }
}

TEST(RedisUrl, SaysWhatToDoForTls) {
  const Status status = parse_redis_url("rediss://:secret@h").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  for (const char* word : {"rediss://", "WireGuard", "stunnel"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << status;
  }
  EXPECT_EQ(status.message().find("secret"), std::string::npos) << status;
}

}  // namespace
}  // namespace transept
