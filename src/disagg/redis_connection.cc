#include "disagg/redis_connection.h"

#include "disagg/redis_library.h"

namespace transept {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

// A deadline is the broker's, not the caller's: what is late is away.
Status away(const Status& status) {
  return absl::IsDeadlineExceeded(status) ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::open(const RedisUrl& url, TimePoint deadline) {
  RETURN_IF_ERROR(load_redis());
  std::unique_ptr<RedisConnection> connection(new RedisConnection);
  const Status status = connection->connect(url, deadline);
  if (!status.ok()) return with_prefix(status, url.text());
  return connection;
}

Status RedisConnection::connect(const RedisUrl& url, TimePoint deadline) {
  RETURN_IF_ERROR(away(url.path.empty() ? socket_.connect(url.host, url.port, deadline)
                                        : socket_.connect_unix(url.path, deadline)));
  std::vector<RedisCommand> commands;
  if (!url.password.empty()) {
    commands.push_back({"AUTH"});
    if (!url.user.empty()) commands.back().push_back(url.user);
    commands.back().push_back(url.password);
  }
  if (url.db != 0) commands.push_back({"SELECT", str_cat(url.db)});
  commands.push_back({"PING"});
  ASSIGN_OR_RETURN(const auto replies, run(commands, deadline));
  return redis_status(replies);
}

StatusOr<std::vector<RedisValue>> RedisConnection::run(std::span<const RedisCommand> commands, TimePoint deadline) {
  RETURN_IF_ERROR(broken_);
  auto replies = exchange(commands, deadline);
  broken_ = replies.status();
  return replies;
}

StatusOr<std::vector<RedisValue>> RedisConnection::exchange(std::span<const RedisCommand> commands,
                                                            TimePoint deadline) {
  outgoing_.clear();
  for (const RedisCommand& command : commands) append_redis_command(command, outgoing_);
  RETURN_IF_ERROR(away(socket_.write(outgoing_, deadline)));
  std::vector<RedisValue> replies;
  replies.reserve(commands.size());
  while (replies.size() < commands.size()) {
    ASSIGN_OR_RETURN(RedisValue reply, read_value(deadline));
    replies.push_back(std::move(reply));
  }
  return replies;
}

StatusOr<RedisValue> RedisConnection::read_value(TimePoint deadline) {
  while (true) {
    StatusOr<std::optional<RedisValue>> value = reader_.next();
    if (!value.ok()) return refuse(value.status());
    if (value->has_value()) return **std::move(value);
    incoming_.resize(kReadBytes);
    const StatusOr<size_t> size = socket_.read(incoming_, deadline);
    if (!size.ok()) return away(size.status());
    if (*size == 0) return absl::UnavailableError("the server has closed the connection");
    const Status fed = reader_.feed({incoming_.data(), *size});
    if (!fed.ok()) return refuse(fed);
  }
}

Status RedisConnection::refuse(Status why) {
  has_refused_ = true;
  return why;
}

}  // namespace transept
