#include "disagg/local_codec.h"

#include <gtest/gtest.h>

#include "disagg/broker_conformance_testing.h"

namespace transept::testing {
namespace {

using Request = LocalRequest::Kind;
using Bytes = std::vector<std::byte>;

// Requests of all kinds, with all fields that travel.
std::vector<LocalRequest> requests() {
  static const Bytes frame = frame_of("frame");
  std::vector<LocalRequest> all;
  for (int kind = 0; kind < kNumLocalRequestKinds; ++kind) {
    LocalRequest request;
    request.kind = static_cast<Request>(kind);
    request.id = 300;
    request.instance = {"e0", ~uint64_t{0}};
    request.channel = EcChannel::kMetadata;
    request.frame = frame;
    request.delivery = 9;
    request.ticket = ticket_of("r1");
    request.model = digest_of(4);
    request.key = {"r2", 1, 2};
    request.record = record_of("d0", 5);
    request.duration = std::chrono::seconds(3);
    all.push_back(request);
  }
  return all;
}

TEST(LocalCodec, RequestsComeBack) {
  for (const LocalRequest& request : requests()) {
    Bytes bytes, again;
    encode_local_request(request, bytes);
    const auto decoded = decode_local_request(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->kind, request.kind);
    EXPECT_EQ(decoded->id, request.id);
    switch (request.kind) {
      case Request::kPublish: EXPECT_TRUE(std::ranges::equal(decoded->frame, request.frame)); break;
      case Request::kAcknowledge: EXPECT_EQ(decoded->delivery, 9u); break;
      case Request::kOffer: EXPECT_EQ(decoded->ticket, request.ticket); break;
      case Request::kRenew: EXPECT_EQ(decoded->key, request.key); break;
      case Request::kTake:
        EXPECT_EQ(decoded->model, request.model);
        EXPECT_EQ(decoded->duration, request.duration);
        break;
      case Request::kAnnounce: EXPECT_EQ(decoded->record, request.record); break;
      default: break;
    }
    encode_local_request(*decoded, again);
    EXPECT_EQ(again, bytes);
  }
}

TEST(LocalCodec, RepliesComeBack) {
  LocalReply reply;
  reply.id = 7;
  reply.server = 8;
  reply.ticket = ticket_of("r1");
  reply.number = -3;
  reply.records = {record_of("a", 1), record_of("b", 2)};
  Bytes bytes;
  encode_local_reply(reply, bytes);
  const auto decoded = decode_local_reply(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->id, 7u);
  EXPECT_EQ(decoded->server, 8u);
  EXPECT_EQ(decoded->ticket, reply.ticket);
  EXPECT_EQ(decoded->number, -3);
  EXPECT_EQ(decoded->records, reply.records);
  reply.status = not_found("no ", "such");
  encode_local_reply(reply, bytes);
  EXPECT_EQ(decode_local_reply(bytes)->status, reply.status);
}

TEST(LocalCodec, RefusesEveryCutAndWhatFollows) {
  for (const LocalRequest& request : requests()) {
    Bytes bytes;
    encode_local_request(request, bytes);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_local_request(std::span(bytes).first(size)).ok()) << size;
    }
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(decode_local_request(bytes).ok());
  }
}

// What lies in a Redis server may be of an older or a later build.
TEST(LocalCodec, StoredTicketsAndRecordsMayHaveFewerOrMoreFields) {
  Bytes bytes;
  encode_ticket(ticket_of("r1"), bytes);
  bytes.push_back(std::byte{77});
  EXPECT_EQ(decode_ticket(bytes).value(), ticket_of("r1")) << "later fields are not looked at";
  Ticket old = ticket_of("r1");
  old.time_offered = {};
  old.trace = {};
  Bytes of_old;
  encode_ticket(old, of_old);
  of_old.resize(of_old.size() - 3);  // an empty duration and two empty texts: a byte each
  EXPECT_EQ(decode_ticket(of_old).value(), old);
  of_old.pop_back();
  EXPECT_FALSE(decode_ticket(of_old).ok()) << "cut within the fields that always were";

  encode_instance_record(record_of("d0", 5), bytes);
  bytes.push_back(std::byte{77});
  EXPECT_EQ(decode_instance_record(bytes).value(), record_of("d0", 5));
  InstanceRecord old_record = record_of("d0", 5);
  old_record.load.num_transfers = 0;
  old_record.is_draining = false;
  old_record.last_error.clear();
  old_record.last_error_age = {};
  old_record.secret_mark.clear();
  encode_instance_record(old_record, of_old);
  of_old.pop_back();  // an empty mark
  EXPECT_EQ(decode_instance_record(of_old).value(), old_record);
  of_old.resize(of_old.size() - 4);
  EXPECT_EQ(decode_instance_record(of_old).value(), old_record);
  InstanceRecord marked = record_of("d0", 5);
  marked.secret_mark = std::string(InstanceRecord::kMaxMarkBytes, 'a');
  encode_instance_record(marked, bytes);
  EXPECT_EQ(decode_instance_record(bytes).value(), marked);
  marked.secret_mark += 'a';
  encode_instance_record(marked, bytes);
  EXPECT_FALSE(decode_instance_record(bytes).ok());
}

TEST(LocalCodec, TracesThatWouldForgeAHeaderOrALineAreRefused) {
  Bytes bytes;
  for (const std::string& bad :
       {std::string("a\r\nX: y"), std::string("a b"), std::string("\x7f"), std::string("\0", 1)}) {
    Ticket ticket = ticket_of("r1");
    ticket.trace.request_id = bad;
    encode_ticket(ticket, bytes);
    EXPECT_FALSE(decode_ticket(bytes).ok()) << bad;
    ticket.trace = {"r", bad};
    encode_ticket(ticket, bytes);
    EXPECT_FALSE(decode_ticket(bytes).ok()) << bad;
  }
  Ticket ticket = ticket_of("r1");
  ticket.trace.request_id = std::string(129, 'a');
  encode_ticket(ticket, bytes);
  EXPECT_FALSE(decode_ticket(bytes).ok());
}

TEST(LocalCodec, RefusesWhatIsOutOfRange) {
  const auto refuses = [](auto change) {
    LocalRequest request = requests().front();
    change(request);
    Bytes bytes;
    encode_local_request(request, bytes);
    return !decode_local_request(bytes).ok();
  };
  const Bytes large(kMaxBrokerFrameBytes + 1);
  EXPECT_TRUE(refuses([&](LocalRequest& r) { r.kind = Request::kPublish, r.frame = large; }));
  EXPECT_TRUE(refuses([](LocalRequest& r) { r.kind = Request::kPublish, r.channel = EcChannel::kCache; }));
  EXPECT_TRUE(refuses([](LocalRequest& r) { r.kind = static_cast<Request>(kNumLocalRequestKinds); }));
  EXPECT_TRUE(refuses([](LocalRequest& r) { r.kind = Request::kLeave, r.instance.name = std::string(129, 'n'); }));
  Bytes bytes;
  encode_local_request({}, bytes);
  bytes[0] = std::byte{2};
  EXPECT_FALSE(decode_local_request(bytes).ok()) << "another version";
}

}  // namespace
}  // namespace transept::testing
