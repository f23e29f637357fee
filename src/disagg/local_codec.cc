#include "disagg/local_codec.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/byte_stream.h"

namespace transept {
namespace {

using std::chrono::microseconds;
using Request = LocalRequest::Kind;

constexpr uint64_t kVersion = 1;
constexpr size_t kMaxErrorBytes = 1024;
constexpr int64_t kMaxMicroseconds = int64_t{366} * 24 * 3600 * 1000 * 1000;

// One description of all fields serves both ways: an archive writes values, or replaces them.
class Saver final {
 public:
  explicit Saver(std::vector<std::byte>& out) : writer_(out) {}

  void value(std::string_view, uint64_t v) { writer_.varint(v); }
  void value(std::string_view, uint32_t v) { writer_.varint(v); }
  void value(std::string_view, int32_t v) { writer_.zigzag(v); }
  void value(std::string_view, int64_t v) { writer_.zigzag(v); }
  void value(std::string_view, bool v) { writer_.flag(v); }
  void value(std::string_view, Duration v) {
    const auto us = std::chrono::duration_cast<microseconds>(v).count();
    writer_.varint(static_cast<uint64_t>(std::clamp<int64_t>(us, 0, kMaxMicroseconds)));
  }
  void value(std::string_view, const ContentDigest& v) { writer_.bytes(std::as_bytes(std::span(v.bytes))); }
  void value(std::string_view, std::span<const std::byte> v) { writer_.bytes(v); }
  void text(std::string_view, const std::string& v, size_t /*max*/) { writer_.bytes(std::as_bytes(std::span(v))); }
  template <typename E>
  void choice(std::string_view, E v, int /*count*/) {
    writer_.varint(static_cast<uint64_t>(v));
  }

 private:
  ByteWriter writer_;
};

class Loader final {
 public:
  explicit Loader(std::span<const std::byte> bytes) : reader_(bytes, "a broker's message") {}

  void value(std::string_view name, uint64_t& v) { v = reader_.varint(name); }
  void value(std::string_view name, uint32_t& v) {
    const uint64_t wide = reader_.varint(name);
    if (wide > std::numeric_limits<uint32_t>::max()) return reader_.fail(name, "is out of range");
    v = static_cast<uint32_t>(wide);
  }
  void value(std::string_view name, int32_t& v) { v = reader_.integer<int32_t>(name); }
  void value(std::string_view name, int64_t& v) { v = reader_.zigzag(name); }
  void value(std::string_view name, bool& v) { v = reader_.flag(name); }
  void value(std::string_view name, Duration& v) {
    const uint64_t us = reader_.varint(name);
    if (us > static_cast<uint64_t>(kMaxMicroseconds)) return reader_.fail(name, "is out of range");
    v = microseconds(static_cast<int64_t>(us));
  }
  void value(std::string_view name, ContentDigest& v) {
    const auto from = reader_.bytes(name);
    if (!reader_.ok()) return;
    if (from.size() != v.bytes.size()) return reader_.fail(name, "is no SHA-256");
    std::memcpy(v.bytes.data(), from.data(), from.size());
  }
  void value(std::string_view name, std::span<const std::byte>& v) {
    v = reader_.bytes(name);
    if (v.size() > kMaxBrokerFrameBytes) reader_.fail(name, "is too large");
  }
  void text(std::string_view name, std::string& v, size_t max) {
    const auto from = reader_.bytes(name);
    if (from.size() > max) return reader_.fail(name, "is too long");
    v.assign(reinterpret_cast<const char*>(from.data()), from.size());
  }
  template <typename E>
  void choice(std::string_view name, E& v, int count) {
    const uint64_t number = reader_.varint(name);
    if (number >= static_cast<uint64_t>(count)) return reader_.fail(name, "is unknown");
    v = static_cast<E>(number);
  }

  ByteReader& reader() { return reader_; }

 private:
  ByteReader reader_;
};

template <typename A, typename T>
void id_fields(A& archive, T& id) {
  archive.text("name", id.name, kMaxEcNameBytes);
  archive.value("incarnation", id.incarnation);
}

template <typename A, typename T>
void key_fields(A& archive, T& key) {
  archive.text("request_id", key.request_id, kMaxEcNameBytes);
  archive.value("input_id", key.input_id);
  archive.value("attempt", key.attempt);
}

template <typename A, typename T>
void ticket_fields(A& archive, T& ticket) {
  key_fields(archive, ticket.key);
  archive.value("digest", ticket.digest);
  archive.value("model", ticket.model);
  archive.value("num_positions", ticket.num_positions);
  archive.value("num_bytes", ticket.num_bytes);
  archive.value("time_left", ticket.time_left);
  id_fields(archive, ticket.consumer);
  archive.text("asker_url", ticket.asker_url, kMaxEcAddressBytes);
}

// Fields that came later: behind the others where a ticket or a record lies alone, so that they may be missing.
template <typename A, typename T>
void later_ticket_fields(A& archive, T& ticket) {
  archive.value("time_offered", ticket.time_offered);
  archive.text("trace.request_id", ticket.trace.request_id, TraceContext::kMaxBytes);
  archive.text("trace.traceparent", ticket.trace.traceparent, TraceContext::kMaxBytes);
}

template <typename A, typename T>
void later_record_fields(A& archive, T& record) {
  archive.value("num_transfers", record.load.num_transfers);
  archive.value("is_draining", record.is_draining);
  archive.text("last_error", record.last_error, InstanceRecord::kMaxErrorBytes);
  archive.value("last_error_age", record.last_error_age);
}

// Later than those.
template <typename A, typename T>
void latest_record_fields(A& archive, T& record) {
  archive.text("secret_mark", record.secret_mark, InstanceRecord::kMaxMarkBytes);
}

template <typename A, typename T>
void whole_ticket_fields(A& archive, T& ticket) {
  ticket_fields(archive, ticket);
  later_ticket_fields(archive, ticket);
}

template <typename A, typename T>
void record_fields(A& archive, T& record) {
  id_fields(archive, record.id);
  archive.choice("role", record.role, 3);
  archive.text("url", record.url, kMaxEcAddressBytes);
  archive.text("bulk_address", record.bulk_address, kMaxEcAddressBytes);
  archive.value("model", record.model);
  archive.value("num_queued", record.load.num_queued);
  archive.value("num_running", record.load.num_running);
  archive.value("num_promised_tokens", record.load.num_promised_tokens);
  archive.value("num_free_slots", record.load.num_free_slots);
}

template <typename A, typename T>
void whole_record_fields(A& archive, T& record) {
  record_fields(archive, record);
  later_record_fields(archive, record);
  latest_record_fields(archive, record);
}

template <typename A, typename T>
void request_fields(A& archive, T& request) {
  archive.choice("kind", request.kind, kNumLocalRequestKinds);
  archive.value("id", request.id);
  switch (request.kind) {
    case Request::kPing:
    case Request::kNumTickets:
    case Request::kPeers: return;
    case Request::kOffer: return whole_ticket_fields(archive, request.ticket);
    case Request::kWithdraw: return key_fields(archive, request.key);
    case Request::kAnnounce:
      whole_record_fields(archive, request.record);
      return archive.value("ttl", request.duration);
    case Request::kLeave: return id_fields(archive, request.instance);
    case Request::kTake:
      id_fields(archive, request.instance);
      archive.value("model", request.model);
      return archive.value("wait", request.duration);
    case Request::kRenew:
    case Request::kDone: id_fields(archive, request.instance); return key_fields(archive, request.key);
    case Request::kPublish:
    case Request::kSubscribe:
    case Request::kAcknowledge: break;
  }
  id_fields(archive, request.instance);
  archive.choice("channel", request.channel, kNumBrokerChannels);
  if (request.kind == Request::kPublish) archive.value("frame", request.frame);
  if (request.kind == Request::kSubscribe) archive.value("takes_over", request.takes_over);
  if (request.kind == Request::kAcknowledge) archive.value("delivery", request.delivery);
}

void save_version(std::vector<std::byte>& bytes) {
  bytes.clear();
  Saver(bytes).value("version", kVersion);
}

void load_version(Loader& loader) {
  uint64_t version = 0;
  loader.value("version", version);
  if (version != kVersion) loader.reader().fail("version", "is not 1");
}

// Of a ticket or a record that another version may have written: later fields may be missing, and bytes behind those
// that are known are not looked at.
bool has_more(Loader& loader) { return loader.reader().ok() && loader.reader().num_left() > 0; }

Status end_of(Loader& loader) {
  if (loader.reader().ok() && loader.reader().num_left() > 0) loader.reader().fail("end", "is followed by bytes");
  return loader.reader().status();
}

}  // namespace

void encode_local_request(const LocalRequest& request, std::vector<std::byte>& bytes) {
  save_version(bytes);
  Saver saver(bytes);
  request_fields(saver, request);
}

StatusOr<LocalRequest> decode_local_request(std::span<const std::byte> bytes) {
  Loader loader(bytes);
  load_version(loader);
  LocalRequest request;
  request_fields(loader, request);
  RETURN_IF_ERROR(end_of(loader));
  return request;
}

void encode_local_reply(const LocalReply& reply, std::vector<std::byte>& bytes) {
  save_version(bytes);
  Saver saver(bytes);
  saver.choice("kind", reply.kind, 2);
  saver.value("id", reply.id);
  saver.value("server", reply.server);
  if (reply.kind == LocalReply::Kind::kDelivery) {
    saver.choice("channel", reply.channel, kNumBrokerChannels);
    saver.value("frame", reply.frame);
    return;
  }
  saver.value("code", static_cast<int32_t>(reply.status.raw_code()));
  saver.text("message", error_message(reply.status).substr(0, kMaxErrorBytes), kMaxErrorBytes);
  saver.value("has_ticket", reply.ticket.has_value());
  if (reply.ticket.has_value()) whole_ticket_fields(saver, *reply.ticket);
  saver.value("number", reply.number);
  saver.value("num_records", static_cast<uint64_t>(reply.records.size()));
  for (const InstanceRecord& record : reply.records) whole_record_fields(saver, record);
}

StatusOr<LocalReply> decode_local_reply(std::span<const std::byte> bytes) {
  Loader loader(bytes);
  load_version(loader);
  LocalReply reply;
  loader.choice("kind", reply.kind, 2);
  loader.value("id", reply.id);
  loader.value("server", reply.server);
  if (reply.kind == LocalReply::Kind::kDelivery) {
    loader.choice("channel", reply.channel, kNumBrokerChannels);
    loader.value("frame", reply.frame);
    RETURN_IF_ERROR(end_of(loader));
    return reply;
  }
  int32_t code = 0;
  std::string message;
  loader.value("code", code);
  loader.text("message", message, kMaxErrorBytes);
  bool has_ticket = false;
  loader.value("has_ticket", has_ticket);
  if (has_ticket) whole_ticket_fields(loader, reply.ticket.emplace());
  loader.value("number", reply.number);
  constexpr size_t kLeastRecordBytes = 40;
  const size_t num_records = loader.reader().count("records", kLeastRecordBytes);
  for (size_t i = 0; i < num_records && loader.reader().ok(); ++i) {
    whole_record_fields(loader, reply.records.emplace_back());
  }
  RETURN_IF_ERROR(end_of(loader));
  if (code < 0 || code > static_cast<int32_t>(absl::StatusCode::kUnauthenticated)) {
    return invalid_argument("a broker's message: code ", code, " is no status");
  }
  if (code != 0) reply.status = Status(static_cast<absl::StatusCode>(code), message);
  return reply;
}

void encode_ticket(const Ticket& ticket, std::vector<std::byte>& bytes) {
  save_version(bytes);
  Saver saver(bytes);
  whole_ticket_fields(saver, ticket);
}

void encode_instance_record(const InstanceRecord& record, std::vector<std::byte>& bytes) {
  save_version(bytes);
  Saver saver(bytes);
  whole_record_fields(saver, record);
}

StatusOr<Ticket> decode_ticket(std::span<const std::byte> bytes) {
  Loader loader(bytes);
  load_version(loader);
  Ticket ticket;
  ticket_fields(loader, ticket);
  if (has_more(loader)) later_ticket_fields(loader, ticket);
  RETURN_IF_ERROR(loader.reader().status());
  RETURN_IF_ERROR(check_trace(ticket.trace));
  RETURN_IF_ERROR(check_ec_name("request_id", ticket.key.request_id));
  RETURN_IF_ERROR(check_ec_name("consumer", ticket.consumer.name));
  return ticket;
}

StatusOr<InstanceRecord> decode_instance_record(std::span<const std::byte> bytes) {
  Loader loader(bytes);
  load_version(loader);
  InstanceRecord record;
  record_fields(loader, record);
  if (has_more(loader)) later_record_fields(loader, record);
  if (has_more(loader)) latest_record_fields(loader, record);
  RETURN_IF_ERROR(loader.reader().status());
  RETURN_IF_ERROR(check_instance_record(record));
  return record;
}

}  // namespace transept
