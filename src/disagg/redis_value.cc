#include "disagg/redis_value.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/check.h"
#include "base/quoted.h"
#include "disagg/redis_library.h"

namespace transept {
namespace {

using Kind = RedisValue::Kind;

#if HIREDIS_MAJOR == 0
using ReaderSize = int;
#else
using ReaderSize = size_t;
#endif

// hiredis makes objects from the outside in: a task has its place in the array that it is part of. Arrays have their
// elements when they are made, so that places do not move.
RedisValue* place_of(const redisReadTask* task, Kind kind) {
  auto* value = task->parent == nullptr
                    ? new RedisValue
                    : &static_cast<RedisValue*>(task->parent->obj)->elements[static_cast<size_t>(task->idx)];
  value->kind = kind;
  return value;
}

void* make_text(const redisReadTask* task, char* text, size_t size) {
  const Kind kind = task->type == REDIS_REPLY_ERROR    ? Kind::kError
                    : task->type == REDIS_REPLY_STATUS ? Kind::kStatus
                                                       : Kind::kText;
  RedisValue* value = place_of(task, kind);
  value->text.assign(text, size);
  return value;
}

void* make_array(const redisReadTask* task, ReaderSize size) {
  if (size < 0 || static_cast<size_t>(size) > RedisReader::kMaxElements) return nullptr;  // the reader fails
  RedisValue* value = place_of(task, Kind::kArray);
  value->elements.resize(static_cast<size_t>(size));
  return value;
}

void* make_integer(const redisReadTask* task, long long integer) {
  RedisValue* value = place_of(task, Kind::kInteger);
  value->integer = integer;
  return value;
}

void* make_nil(const redisReadTask* task) { return place_of(task, Kind::kNil); }

void free_value(void* value) { delete static_cast<RedisValue*>(value); }

redisReplyObjectFunctions& makers() {
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions all{};
    all.createString = make_text;
    all.createArray = make_array;
    all.createInteger = make_integer;
    all.createNil = make_nil;
    all.freeObject = free_value;
    return all;
  }();
  return functions;
}

redisReader* reader_of(void* reader) { return static_cast<redisReader*>(reader); }

Status unreadable(const redisReader* reader) {
  return absl::UnavailableError(str_cat("no reply of Redis: ", in_quotes(reader->errstr)));
}

Status wrong_shape(std::string_view what) { return invalid_argument("a reply of Redis is not ", what); }

}  // namespace

void append_redis_command(const RedisCommand& command, std::string& out) {
  std::vector<const char*> parts;
  std::vector<size_t> sizes;
  parts.reserve(command.size());
  sizes.reserve(command.size());
  for (const std::string& part : command) {
    parts.push_back(part.data());
    sizes.push_back(part.size());
  }
  char* bytes = nullptr;
  const auto size =
      redis_library().redisFormatCommandArgv(&bytes, static_cast<int>(parts.size()), parts.data(), sizes.data());
  CHECK(size > 0, "a command has a name");
  out.append(bytes, static_cast<size_t>(size));
  redis_library().redisFreeCommand(bytes);
}

RedisReader::RedisReader() : reader_(redis_library().redisReaderCreateWithFunctions(&makers())) {
  CHECK(reader_ != nullptr, "memory for a reader");
}

void RedisReader::Free::operator()(void* reader) const { redis_library().redisReaderFree(reader_of(reader)); }

Status RedisReader::feed(std::string_view bytes) {
  num_bytes_ += bytes.size();
  if (num_bytes_ > max_bytes_) {
    return absl::UnavailableError(str_cat("a reply of Redis has more than ", max_bytes_, " bytes"));
  }
  redisReader* const reader = reader_of(reader_.get());
  const bool is_good = redis_library().redisReaderFeed(reader, bytes.data(), bytes.size()) == REDIS_OK;
  return is_good ? ok_status() : unreadable(reader);
}

StatusOr<std::optional<RedisValue>> RedisReader::next() {
  redisReader* const reader = reader_of(reader_.get());
  void* made = nullptr;
  if (redis_library().redisReaderGetReply(reader, &made) != REDIS_OK) return unreadable(reader);
  if (made == nullptr) return std::optional<RedisValue>();
  const std::unique_ptr<RedisValue> value(static_cast<RedisValue*>(made));
  num_bytes_ = reader->len - reader->pos;
  return std::optional<RedisValue>(std::move(*value));
}

Status redis_status(const RedisValue& value) {
  if (value.kind != Kind::kError) return ok_status();
  const std::string_view text = value.text;
  const std::string_view code = text.substr(0, text.find(' '));
  const std::string message = str_cat("Redis: ", printable(text.substr(0, kMaxQuotedBytes * 4)));
  const auto is = [&](std::initializer_list<std::string_view> codes) { return std::ranges::count(codes, code) > 0; };
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (is({"OOM"})) return absl::ResourceExhaustedError(message);
  if (is({"NOPERM", "NOAUTH", "WRONGPASS"}) || has("invalid password") || has("without any password configured")) {
    return absl::PermissionDeniedError(message);
  }
  if (has("DB index is out of range")) return absl::InvalidArgumentError(message);
  if (is({"NOGROUP"})) return absl::NotFoundError(message);
  if (is({"MOVED", "ASK", "CROSSSLOT"})) return unimplemented(message, " (a Redis Cluster cannot be the broker)");
  if (has("unknown command") || has("syntax error") || has("nsupported option")) {
    return absl::FailedPreconditionError(str_cat(message, " (Redis 7.0 or later is needed)"));
  }
  if (is({"LOADING", "BUSY", "READONLY", "MASTERDOWN", "MISCONF", "NOREPLICAS", "TRYAGAIN"}) ||
      has("max number of clients")) {
    return absl::UnavailableError(message);
  }
  return absl::FailedPreconditionError(message);
}

Status redis_status(std::span<const RedisValue> values) {
  Status first;
  for (const RedisValue& value : values) {
    if (first.ok()) first = redis_status(value);
    // What MULTI has queued fails within EXEC's reply.
    if (first.ok() && value.kind == Kind::kArray) {
      for (const RedisValue& element : value.elements) {
        if (first.ok()) first = redis_status(element);
      }
    }
  }
  return first;
}

Status redis_probe_status(std::span<const RedisCommand> commands, std::span<const RedisValue> replies) {
  if (absl::IsResourceExhausted(redis_status(replies))) return ok_status();
  for (size_t i = 0; i < replies.size(); ++i) {
    const Status status = redis_status(replies.subspan(i, 1));
    if (!status.ok()) return with_prefix(status, commands[i].front());
  }
  return ok_status();
}

std::string_view RedisEntry::field(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &std::pair<std::string, std::string>::first);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

StatusOr<std::vector<RedisEntry>> redis_entries(const RedisValue& value) {
  RETURN_IF_ERROR(redis_status(value));
  if (value.kind != Kind::kArray) return wrong_shape("a list of entries");
  std::vector<RedisEntry> entries;
  for (const RedisValue& each : value.elements) {
    if (each.kind != Kind::kArray || each.elements.size() != 2 || each.elements[0].kind != Kind::kText) {
      return wrong_shape("an entry");
    }
    RedisEntry& entry = entries.emplace_back();
    entry.id = each.elements[0].text;
    const auto& fields = each.elements[1];
    if (fields.is_nil()) continue;
    if (fields.kind != Kind::kArray || fields.elements.size() % 2 != 0) return wrong_shape("an entry's fields");
    for (size_t i = 0; i < fields.elements.size(); i += 2) {
      entry.fields.emplace_back(fields.elements[i].text, fields.elements[i + 1].text);
    }
  }
  return entries;
}

StatusOr<std::vector<RedisEntry>> redis_stream_entries(const RedisValue& value) {
  RETURN_IF_ERROR(redis_status(value));
  if (value.is_nil()) return std::vector<RedisEntry>();
  if (value.kind != Kind::kArray || value.elements.size() != 1) return wrong_shape("one stream");
  const RedisValue& stream = value.elements[0];
  if (stream.kind != Kind::kArray || stream.elements.size() != 2) return wrong_shape("a stream");
  return redis_entries(stream.elements[1]);
}

StatusOr<std::optional<RedisPending>> redis_pending(const RedisValue& value) {
  RETURN_IF_ERROR(redis_status(value));
  if (value.kind != Kind::kArray || value.elements.size() > 1) return wrong_shape("a pending entry");
  if (value.elements.empty()) return std::optional<RedisPending>();
  const RedisValue& entry = value.elements[0];
  const auto is_right = [&] {
    return entry.kind == Kind::kArray && entry.elements.size() == 4 && entry.elements[0].kind == Kind::kText &&
           entry.elements[1].kind == Kind::kText && entry.elements[2].kind == Kind::kInteger &&
           entry.elements[3].kind == Kind::kInteger;
  };
  if (!is_right()) return wrong_shape("a pending entry");
  RedisPending pending{entry.elements[0].text, entry.elements[1].text, entry.elements[2].integer,
                       entry.elements[3].integer};
  if (pending.idle_ms < 0 || pending.num_deliveries < 0 ||
      pending.num_deliveries > std::numeric_limits<uint32_t>::max()) {
    return wrong_shape("a pending entry: a number is out of range");
  }
  return std::optional<RedisPending>(std::move(pending));
}

StatusOr<std::vector<RedisConsumer>> redis_consumers(const RedisValue& value) {
  RETURN_IF_ERROR(redis_status(value));
  if (value.kind != Kind::kArray) return wrong_shape("a list of consumers");
  std::vector<RedisConsumer> consumers;
  for (const RedisValue& each : value.elements) {
    // Names and values in turn; later servers tell more.
    if (each.kind != Kind::kArray || each.elements.size() % 2 != 0) return wrong_shape("a consumer");
    RedisConsumer& consumer = consumers.emplace_back();
    for (size_t i = 0; i < each.elements.size(); i += 2) {
      const RedisValue& field = each.elements[i + 1];
      if (each.elements[i].is_text("name")) consumer.name = field.text;
      if (each.elements[i].is_text("pending")) consumer.num_pending = field.integer;
      if (each.elements[i].is_text("idle")) consumer.idle_ms = field.integer;
    }
    if (consumer.idle_ms < 0 || consumer.num_pending < 0) return wrong_shape("a consumer: a number is out of range");
  }
  return consumers;
}

StatusOr<int64_t> redis_integer(const RedisValue& value) {
  RETURN_IF_ERROR(redis_status(value));
  if (value.kind != Kind::kInteger) return wrong_shape("a number");
  return value.integer;
}

StatusOr<uint64_t> redis_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return wrong_shape("a number");
  return number;
}

}  // namespace transept
