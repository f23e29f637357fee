#include "disagg/redis_value.h"

#include <gtest/gtest.h>

#include "disagg/redis_library.h"

namespace transept {
namespace {

using Kind = RedisValue::Kind;

RedisValue text(std::string_view content, Kind kind = Kind::kText) {
  RedisValue value;
  value.kind = kind;
  value.text = content;
  return value;
}
RedisValue number(int64_t integer) {
  RedisValue value;
  value.kind = Kind::kInteger;
  value.integer = integer;
  return value;
}
RedisValue array(std::vector<RedisValue> elements) {
  RedisValue value;
  value.kind = Kind::kArray;
  value.elements = std::move(elements);
  return value;
}

class RedisReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status status = load_redis(); !status.ok()) GTEST_SKIP() << "no shared library of hiredis: " << status;
  }
};

TEST_F(RedisReaderTest, ReadsValuesHoweverTheirBytesCome) {
  constexpr std::string_view kBytes =
      "*3\r\n$4\r\na\r\nb\r\n:-7\r\n*2\r\n$-1\r\n*0\r\n+OK\r\n-ERR no\r\n$0\r\n\r\n*-1\r\n";
  const std::vector<RedisValue> expected = {array({text("a\r\nb"), number(-7), array({RedisValue(), array({})})}),
                                            text("OK", Kind::kStatus), text("ERR no", Kind::kError), text(""),
                                            RedisValue()};
  for (const size_t size : {size_t{1}, size_t{5}, kBytes.size()}) {
    RedisReader reader;
    std::vector<RedisValue> values;
    for (size_t at = 0; at < kBytes.size(); at += size) {
      ASSERT_TRUE(reader.feed(kBytes.substr(at, size)).ok());
      while (true) {
        auto value = reader.next();
        ASSERT_TRUE(value.ok()) << value.status();
        if (!value->has_value()) break;
        values.push_back(**std::move(value));
      }
    }
    EXPECT_EQ(values, expected);
  }
}

TEST_F(RedisReaderTest, RefusesWhatIsNoReplyOrTooLarge) {
  for (const std::string_view bytes :
       {"x\r\n", "*1048577\r\n", "*2147483647\r\n", "*99999999999999999999\r\n", "$-2\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"}) {
    RedisReader reader;
    const Status fed = reader.feed(bytes);
    const Status status = fed.ok() ? reader.next().status() : fed;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << bytes << status;
  }
  RedisReader reader;
  ASSERT_TRUE(reader.feed("$100000000\r\n").ok());
  const Status status = reader.feed(std::string(RedisReader::kMaxBytes, 'x'));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST_F(RedisReaderTest, WritesCommands) {
  std::string bytes;
  append_redis_command({"SET", "k", std::string("\0\r\n", 3)}, bytes);
  append_redis_command({"PING"}, bytes);
  EXPECT_EQ(bytes, std::string("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n\0\r\n\r\n*1\r\n$4\r\nPING\r\n", 43));
}

TEST(RedisStatus, SaysWhatAnErrorMeans) {
  using Code = absl::StatusCode;
  const std::pair<std::string_view, Code> cases[] = {
      {"OOM command not allowed when used memory > 'maxmemory'.", Code::kResourceExhausted},
      {"NOAUTH Authentication required.", Code::kPermissionDenied},
      {"WRONGPASS invalid username-password pair or user is disabled.", Code::kPermissionDenied},
      {"NOPERM this user has no permissions to run the 'xadd' command", Code::kPermissionDenied},
      {"ERR invalid password", Code::kPermissionDenied},
      {"LOADING Redis is loading the dataset in memory", Code::kUnavailable},
      {"READONLY You can't write against a read only replica.", Code::kUnavailable},
      {"ERR max number of clients reached", Code::kUnavailable},
      {"NOGROUP No such key 'x' or consumer group 'y'", Code::kNotFound},
      {"MOVED 3999 127.0.0.1:6381", Code::kUnimplemented},
      {"ERR unknown command 'XADD', with args beginning with: 'x'", Code::kFailedPrecondition},
      {"ERR DB index is out of range", Code::kInvalidArgument},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", Code::kFailedPrecondition},
      {"", Code::kFailedPrecondition},
  };
  for (const auto& [message, code] : cases) {
    EXPECT_EQ(redis_status(text(message, Kind::kError)).code(), code) << message;
    EXPECT_TRUE(redis_status(text(message)).ok()) << "it is no error";
  }
  const RedisValue oom = text("OOM x", Kind::kError), abort = text("EXECABORT x", Kind::kError);
  EXPECT_EQ(redis_status(std::vector{text("OK", Kind::kStatus), oom, abort}).code(), Code::kResourceExhausted);
  EXPECT_EQ(redis_status(std::vector{text("OK", Kind::kStatus), array({number(1), oom})}).code(),
            Code::kResourceExhausted);
  EXPECT_EQ(redis_status(text("ERR \x1b[31m", Kind::kError)).message(), "Redis: ERR \\x1b[31m");
}

TEST(RedisEntries, AreReadFromRepliesOfTheirShape) {
  const RedisValue entry = array({text("5-1"), array({text("frame"), text("bytes"), text("n"), text("")})});
  const RedisValue deleted = array({text("5-2"), RedisValue()});
  const auto entries = redis_entries(array({entry, deleted}));
  ASSERT_TRUE(entries.ok() && entries->size() == 2) << entries.status();
  EXPECT_EQ((*entries)[0].id, "5-1");
  EXPECT_EQ((*entries)[0].field("frame"), "bytes");
  EXPECT_EQ((*entries)[0].field("other"), "");
  EXPECT_TRUE((*entries)[1].fields.empty());
  EXPECT_EQ(redis_stream_entries(array({array({text("s"), array({entry})})}))->size(), 1u);
  EXPECT_TRUE(redis_stream_entries(RedisValue())->empty()) << "nil: none came in time";
  for (const RedisValue& wrong :
       {number(1), array({number(1)}), array({array({})}), array({array({number(1), RedisValue()})}),
        array({array({text("5-1"), number(1)})}), array({array({text("5-1"), array({text("odd")})})})}) {
    EXPECT_EQ(redis_entries(wrong).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(redis_stream_entries(wrong).ok());
  }
  EXPECT_EQ(redis_entries(text("NOGROUP x", Kind::kError)).status().code(), absl::StatusCode::kNotFound);
}

TEST(RedisPending, IsReadFromRepliesOfItsShape) {
  const auto reply = [](RedisValue idle, RedisValue count) {
    return array({array({text("5-1"), text("e0:5"), std::move(idle), std::move(count)})});
  };
  const auto pending = redis_pending(reply(number(2000), number(1)));
  ASSERT_TRUE(pending.ok() && pending->has_value());
  EXPECT_EQ((*pending)->id, "5-1");
  EXPECT_EQ((*pending)->consumer, "e0:5");
  EXPECT_EQ((*pending)->idle_ms, 2000);
  EXPECT_EQ((*pending)->num_deliveries, 1);
  EXPECT_FALSE(redis_pending(array({}))->has_value());
  for (const RedisValue& wrong :
       {number(1), array({number(1)}), reply(number(-1), number(1)), reply(number(1), number(-1)),
        reply(number(1), number(int64_t{1} << 33)), reply(text("1"), number(1)), array({array({}), array({})})}) {
    EXPECT_EQ(redis_pending(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(RedisConsumers, AreReadFromRepliesOfTheirShape) {
  const auto consumers = redis_consumers(array({array({text("name"), text("e0:5"), text("pending"), number(2),
                                                       text("idle"), number(9), text("inactive"), number(9)})}));
  ASSERT_TRUE(consumers.ok() && consumers->size() == 1);
  EXPECT_EQ(consumers->front().name, "e0:5");
  EXPECT_EQ(consumers->front().num_pending, 2);
  EXPECT_EQ(consumers->front().idle_ms, 9);
  EXPECT_FALSE(redis_consumers(number(1)).ok());
  EXPECT_FALSE(redis_consumers(array({array({text("name")})})).ok());
  EXPECT_FALSE(redis_consumers(array({array({text("idle"), number(-1)})})).ok());
}

TEST(RedisNumber, IsAllOfTheText) {
  EXPECT_EQ(*redis_number("18446744073709551615"), ~uint64_t{0});
  for (const char* wrong : {"", "-1", "1 ", "18446744073709551616", "x"}) EXPECT_FALSE(redis_number(wrong).ok());
}

}  // namespace
}  // namespace transept
