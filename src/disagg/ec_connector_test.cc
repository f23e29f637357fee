// Two instances, each with its table of transfers and its connector, over brokers and transports that are real.
#include "disagg/ec_connector.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/folder_testing.h"
#include "disagg/bulk_conformance_testing.h"
#include "disagg/inproc_broker.h"
#include "disagg/inproc_bulk.h"
#include "disagg/local_broker.h"
#include "disagg/local_server.h"
#include "disagg/zmq_bulk.h"
#include "encoder_cache/ec_receiver_table.h"
#include "encoder_cache/ec_sender_table.h"

namespace transept::testing {
namespace {

constexpr int32_t kWidth = 256, kRowsOfBlock = 4, kNumBlocks = 4096;
constexpr size_t kRowBytes = kWidth * sizeof(float);

struct InprocWorld {
  std::shared_ptr<Broker> broker() { return std::make_shared<InprocBroker>(hub); }
  std::shared_ptr<BulkTransport> bulk(const std::string& name, std::shared_ptr<FrameWriter> writer) {
    return std::make_shared<InprocBulk>(net, name, std::move(writer));
  }
  void go_away() { hub->go_away(); }
  void come_back_empty() { hub->come_back_empty(); }

  std::shared_ptr<InprocHub> hub = std::make_shared<InprocHub>(InprocHub::Options());
  std::shared_ptr<InprocBulkNet> net = std::make_shared<InprocBulkNet>();
};

struct LocalWorld {
  LocalWorld() { come_back_empty(); }
  std::shared_ptr<Broker> broker() { return LocalBroker::connect(folder.path() + "/broker").value(); }
  std::shared_ptr<BulkTransport> bulk(const std::string& name, std::shared_ptr<FrameWriter> writer) {
    return ZmqBulk::create(str_cat("ipc://", folder.path(), "/", name), std::move(writer)).value();
  }
  void go_away() { server.reset(); }
  void come_back_empty() { server = LocalServer::start(folder.path() + "/broker", ++num_started, {}).value(); }

  TestFolder folder;
  uint64_t num_started = 0;
  std::unique_ptr<LocalServer> server;
};

std::shared_ptr<const EcSecret> secret_of(std::string_view text) {
  return std::make_shared<const EcSecret>(std::as_bytes(std::span(text)));
}

// An instance without its engine: renews its record, and takes events.
template <typename World>
class Instance {
 public:
  Instance(World& world, std::string name, uint64_t incarnation, const std::shared_ptr<const EcSecret>& secret)
      : id{std::move(name), incarnation}, writer(std::make_shared<FrameWriter>(incarnation, secret)) {
    broker = world.broker();
    auto bulk = world.bulk(id.name, writer);
    EcConnector::Options options;
    options.self = id;
    options.secret = secret;
    connector = std::make_unique<EcConnector>(options, broker, std::move(bulk), writer);
    announce();
    connector->start(inbox);
  }

  std::vector<EcEvent> events() {
    if (steady_now() - announced_at > std::chrono::milliseconds(500)) announce();
    std::vector<EcEvent> taken;
    inbox->take(64, taken);
    return taken;
  }

  InstanceId id;
  std::shared_ptr<FrameWriter> writer;
  std::shared_ptr<Broker> broker;
  std::shared_ptr<EcInbox> inbox = std::make_shared<EcInbox>(1024, nullptr);
  std::unique_ptr<EcConnector> connector;

 private:
  void announce() {
    InstanceRecord record = record_of(id.name, id.incarnation);
    record.bulk_address = connector->bulk_address();
    static_cast<void>(broker->announce(record, std::chrono::seconds(3)));  // again, if the broker is away
    announced_at = steady_now();
  }
  TimePoint announced_at;
};

template <typename World>
struct Encoder : Instance<World> {
  using Instance<World>::Instance;

  void add(const InstanceId& to, const std::string& request, size_t num_positions, int seed) {
    EcMeta meta;
    meta.key = {request, 0, 0};
    meta.digest = digest_of(static_cast<uint8_t>(seed));
    meta.num_positions = static_cast<int32_t>(num_positions);
    meta.width = kWidth;
    meta.time_left = std::chrono::minutes(2);
    rows[request] = rows_of(num_positions * kRowBytes, seed);
    EcSenderTable::Outputs outputs;
    ASSERT_TRUE(table.add(to, meta, steady_now(), outputs).ok());
    table.on_encoded({request, 0}, steady_now(), outputs);
    perform(outputs);
  }

  void pump() {
    EcSenderTable::Outputs outputs;
    const TimePoint now = steady_now();
    for (EcEvent& event : this->events()) {
      if (const auto* const path = std::get_if<EcPathEvent>(&event)) table.on_path(path->is_away, now);
      if (const auto* const gone = std::get_if<EcPeerGone>(&event)) table.on_peer_gone(gone->peer, now, outputs);
      if (const auto* const send = std::get_if<EcSendEvent>(&event)) {
        table.on_transport(send->event, send->key, now, outputs);
      }
      const auto* const peer = std::get_if<EcPeerMessage>(&event);
      if (peer == nullptr) continue;
      const EcMessage& message = peer->message;
      if (const auto* const m = std::get_if<EcAllocation>(&message)) table.on_allocation(peer->from, *m, now, outputs);
      if (const auto* const m = std::get_if<EcInjection>(&message)) table.on_injection(peer->from, *m, now, outputs);
      if (const auto* const m = std::get_if<EcCancel>(&message)) table.on_cancel(peer->from, m->key, now, outputs);
    }
    table.on_time(now, outputs);
    perform(outputs);
  }

  void perform(const EcSenderTable::Outputs& outputs) {
    for (const EcSenderOutput& output : outputs) {
      const EcKey& key = output.meta.key;
      EcConnector& out = *this->connector;
      switch (output.action) {
        case EcSenderAction::kSendMetadata: out.send(output.to, output.meta); break;
        case EcSenderAction::kSendQuery: out.send(output.to, EcQuery{key}); break;
        case EcSenderAction::kSendCancel: out.send(output.to, EcCancel{key, EcChannel::kMetadata}); break;
        case EcSenderAction::kSendCache:
          out.send_rows(output.to, key, output.reservation, output.bulk_address, rows.at(key.request_id));
          break;
        case EcSenderAction::kStopSending: out.stop_sending(input_of(key)); break;
        case EcSenderAction::kAnswer: answers[key.request_id] = output.status; break;
      }
    }
  }

  EcSenderTable table{EcSenderTable::Options()};
  std::map<std::string, EcRows> rows;
  std::map<std::string, Status> answers;
};

template <typename World>
struct Decoder : Instance<World> {
  Decoder(World& world, std::string name, uint64_t incarnation, std::shared_ptr<const EcSecret> secret)
      : Instance<World>(world, std::move(name), incarnation, std::move(secret)), blocks(block_options()) {
    table = std::make_unique<EcReceiverTable>(
        cache,
        EcReceiverTable::Options{
            .model = {}, .widths = {kWidth}, .dtype = DType::kFloat32, .bulk_address = this->connector->bulk_address()},
        [this] { return ++num_drawn; });
  }
  ~Decoder() { this->connector.reset(); }  // before the bytes that it writes

  static BlockSpaceManager::Options block_options() {
    BlockSpaceManager::Options options;
    options.specs = {{TableOwner::kSequence}, {TableOwner::kItem, kRowsOfBlock}};
    options.num_device_blocks = kNumBlocks;
    options.keep_unused_items = true;
    options.max_reserved_blocks = kNumBlocks - 100;
    return options;
  }

  void pump() {
    EcReceiverTable::Outputs outputs;
    const TimePoint now = steady_now();
    for (EcEvent& event : this->events()) {
      if (const auto* const sink = std::get_if<EcSinkEvent>(&event)) {
        using Kind = EcSinkEvent::Kind;
        if (sink->kind == Kind::kChunk) table->on_chunk(sink->reservation, now);
        if (sink->kind == Kind::kComplete) table->on_complete(sink->reservation, now, outputs);
        if (sink->kind == Kind::kClosed) table->on_sink_closed(sink->reservation, now, outputs);
      }
      const auto* const peer = std::get_if<EcPeerMessage>(&event);
      if (peer == nullptr) continue;
      const EcMessage& message = peer->message;
      if (const auto* const m = std::get_if<EcMeta>(&message)) table->on_metadata(peer->from, *m, now, outputs);
      if (const auto* const m = std::get_if<EcQuery>(&message)) table->on_query(peer->from, m->key, now, outputs);
      if (const auto* const m = std::get_if<EcCancel>(&message)) table->on_cancel(peer->from, m->key, now, outputs);
    }
    table->allocate_waiting(now, 64, outputs);
    table->on_time(now, outputs);
    perform(outputs);
  }

  void perform(const EcReceiverTable::Outputs& outputs) {
    for (const EcReceiverOutput& output : outputs) {
      using Kind = EcReceiverOutput::Kind;
      EcConnector& out = *this->connector;
      switch (output.kind) {
        case Kind::kAllocation:
          out.send(output.to, EcAllocation{output.key, output.verdict, output.reservation, output.bulk_address});
          break;
        case Kind::kInjection: out.send(output.to, EcInjection{output.key, output.verdict}); break;
        case Kind::kCancel: out.send(output.to, EcCancel{output.key, EcChannel::kAllocation}); break;
        case Kind::kOpenSink:
          out.open_sink(output.reservation, output.key, output.num_bytes,
                        places(input_of(output.key), output.num_bytes));
          break;
        case Kind::kCloseSink: out.close_sink(output.reservation); break;
        case Kind::kReady: ready.insert(output.key.request_id); break;
      }
    }
  }

  EcPlaces places(const EcInput& input, uint64_t num_bytes) {
    EcPlaces all;
    for (const BlockId block : cache.blocks_of(input)) {
      const size_t size = std::min<size_t>(num_bytes, kBlockBytes);
      all.push_back(std::span(bytes).subspan(static_cast<size_t>(block) * kBlockBytes, size));
      num_bytes -= size;
    }
    return all;
  }

  std::vector<std::byte> output(const std::string& request, size_t num_bytes) {
    std::vector<std::byte> joined;
    for (const auto& place : places({request, 0}, num_bytes)) joined.insert(joined.end(), place.begin(), place.end());
    return joined;
  }

  static constexpr size_t kBlockBytes = kRowsOfBlock * kRowBytes;
  BlockSpaceManager blocks;
  EncoderCacheManager cache{blocks, 1};
  std::vector<std::byte> bytes = std::vector<std::byte>(kNumBlocks * kBlockBytes);
  std::unique_ptr<EcReceiverTable> table;
  std::set<std::string> ready;
  uint64_t num_drawn = 1000;
};

template <typename World>
class EcConnectorPair : public ::testing::Test {
 protected:
  std::unique_ptr<Decoder<World>> decoder(uint64_t incarnation = 77) {
    return std::make_unique<Decoder<World>>(world_, "d0", incarnation, secret_);
  }
  std::unique_ptr<Encoder<World>> encoder() { return std::make_unique<Encoder<World>>(world_, "e0", 5, secret_); }

  // Both engines run until it holds.
  static bool run_until(Encoder<World>& encoder, Decoder<World>* decoder, const std::function<bool()>& holds) {
    return becomes([&] {
      encoder.pump();
      if (decoder != nullptr) decoder->pump();
      return holds();
    });
  }

  World world_;
  std::shared_ptr<const EcSecret> secret_ = secret_of("a secret of all instances");
};
using Worlds = ::testing::Types<InprocWorld, LocalWorld>;
TYPED_TEST_SUITE(EcConnectorPair, Worlds);

TYPED_TEST(EcConnectorPair, CarriesOutputsToTheEnd) {
  const auto decoder = this->decoder();
  const auto encoder = this->encoder();
  const size_t sizes[] = {1500, 1, 4, 1023, 2000};
  for (size_t i = 0; i < 5; ++i) encoder->add(decoder->id, str_cat("r", i), sizes[i], static_cast<int>(i));
  ASSERT_TRUE(this->run_until(*encoder, decoder.get(), [&] { return encoder->answers.size() == 5; }));
  for (size_t i = 0; i < 5; ++i) {
    const std::string request = str_cat("r", i);
    EXPECT_TRUE(encoder->answers[request].ok()) << encoder->answers[request];
    EXPECT_TRUE(decoder->ready.contains(request));
    EXPECT_TRUE(std::ranges::equal(decoder->output(request, sizes[i] * kRowBytes), *encoder->rows[request])) << request;
  }
  EXPECT_TRUE(decoder->table->check_invariants().ok());
  EXPECT_EQ(encoder->table.num_transfers(), 0u);
  // Equal content is a hit: no byte of it is sent.
  encoder->add(decoder->id, "again", 1500, 0);
  ASSERT_TRUE(this->run_until(*encoder, decoder.get(), [&] { return encoder->answers.contains("again"); }));
  EXPECT_TRUE(encoder->answers["again"].ok());
  EXPECT_EQ(decoder->num_drawn, 1005u) << "five reservations were made";
}

TYPED_TEST(EcConnectorPair, RunsOnWhenTheBrokerIsBackAndEmpty) {
  const auto decoder = this->decoder();
  const auto encoder = this->encoder();
  encoder->add(decoder->id, "before", 100, 1);
  ASSERT_TRUE(this->run_until(*encoder, decoder.get(), [&] { return encoder->answers.contains("before"); }));
  this->world_.go_away();
  encoder->add(decoder->id, "during", 100, 2);
  const TimePoint end = steady_now() + std::chrono::milliseconds(1500);
  ASSERT_TRUE(this->run_until(*encoder, decoder.get(), [&] { return steady_now() > end; }));
  EXPECT_FALSE(encoder->answers.contains("during"));
  this->world_.come_back_empty();
  encoder->add(decoder->id, "after", 100, 3);
  ASSERT_TRUE(this->run_until(*encoder, decoder.get(), [&] { return encoder->answers.size() == 3; }));
  for (const auto& [request, status] : encoder->answers) EXPECT_TRUE(status.ok()) << request << ": " << status;
  EXPECT_TRUE(std::ranges::equal(decoder->output("during", 100 * kRowBytes), *encoder->rows["during"]));
}

TYPED_TEST(EcConnectorPair, AnswersForAPeerThatHasGone) {
  auto decoder = this->decoder();
  const auto encoder = this->encoder();
  encoder->add(decoder->id, "r0", 100, 1);
  ASSERT_TRUE(this->run_until(*encoder, decoder.get(), [&] { return encoder->answers.contains("r0"); }));
  const InstanceId gone = decoder->id;
  ASSERT_TRUE(decoder->broker->leave(gone).ok());
  decoder.reset();
  encoder->add(gone, "r1", 100, 2);
  ASSERT_TRUE(this->run_until(*encoder, nullptr, [&] { return encoder->answers.contains("r1"); }));
  EXPECT_EQ(encoder->answers["r1"].code(), absl::StatusCode::kUnavailable) << encoder->answers["r1"];
  // Another start under the same name takes outputs.
  const auto next = this->decoder(78);
  encoder->add(next->id, "r2", 100, 2);
  ASSERT_TRUE(this->run_until(*encoder, next.get(), [&] { return encoder->answers.contains("r2"); }));
  EXPECT_TRUE(encoder->answers["r2"].ok()) << encoder->answers["r2"];
}

TYPED_TEST(EcConnectorPair, RefusesWhatAStrangerSends) {
  const auto decoder = this->decoder();
  const auto encoder = this->encoder();
  const auto broker = this->world_.broker();
  const FrameCounts& counts = decoder->connector->counts();
  const auto send = [&](std::span<const std::byte> frame) {
    const Status sent = broker->publish(decoder->id, EcChannel::kMetadata, frame);
    ASSERT_TRUE(sent.ok()) << sent;
  };
  std::vector<std::byte> frame;
  send(frame_of("no frame"));
  EXPECT_TRUE(becomes([&] { return counts.num_refused(EcFrameFault::kMagic) == 1; }));
  // Of the encoder's incarnation, without the secret, and with another.
  for (const auto& secret : {std::shared_ptr<const EcSecret>(), secret_of("a secret that is a guess")}) {
    ASSERT_TRUE(FrameWriter(5, secret).write(EcQuery{{"r0", 0, 0}}, frame).ok());
    send(frame);
  }
  EXPECT_TRUE(becomes([&] { return counts.num_refused(EcFrameFault::kCode) == 2; }));
  ASSERT_TRUE(FrameWriter(5, this->secret_).write(EcInjection{{"r0", 0, 0}, EcVerdict::kHit}, frame).ok());
  send(frame);  // right, but of another channel
  EXPECT_TRUE(becomes([&] { return counts.num_refused(EcFrameFault::kChannel) == 1; }));
  ASSERT_TRUE(FrameWriter(6, this->secret_).write(EcQuery{{"r0", 0, 0}}, frame).ok());
  send(frame);
  EXPECT_TRUE(becomes([&] { return counts.num_unknown_senders == 1; }));
  EXPECT_TRUE(decoder->inbox->is_empty());
}

TYPED_TEST(EcConnectorPair, StoresNoChunkWithoutItsReservation) {
  const auto decoder = this->decoder();
  const auto encoder = this->encoder();
  std::vector<std::byte> place(3 * kBulkChunkBytes);
  decoder->connector->open_sink(7, {"r0", 0, 0}, place.size(), {place});
  const EcRows rows = rows_of(3 * kBulkChunkBytes, 1);
  const std::string& address = decoder->connector->bulk_address();
  const FrameCounts& counts = decoder->connector->counts();
  encoder->connector->send_rows(decoder->id, {"r0", 0, 0}, 8, address, rows);  // a guess
  EXPECT_TRUE(becomes([&] { return counts.num_unreserved == 3; }));
  encoder->connector->send_rows(decoder->id, {"r0", 0, 1}, 7, address, rows);  // of another attempt
  EXPECT_TRUE(becomes([&] { return counts.num_unreserved == 6; }));
  EXPECT_TRUE(place == std::vector<std::byte>(place.size()));
  EXPECT_TRUE(decoder->inbox->is_empty());
  // Another reservation changes nothing; and ThreadSanitizer, which does not see what libzmq's threads order, sees that
  // the bytes were read before the next come.
  std::vector<std::byte> other(kBulkChunkBytes);
  decoder->connector->open_sink(9, {"r1", 0, 0}, other.size(), {other});
  encoder->connector->send_rows(decoder->id, {"r0", 0, 0}, 7, address, rows);
  std::vector<EcEvent> events;
  const auto has = [&](EcSinkEvent::Kind kind) {
    return becomes([&] {
      for (EcEvent& event : decoder->events()) events.push_back(std::move(event));
      return !events.empty() && std::holds_alternative<EcSinkEvent>(events.back()) &&
             std::get<EcSinkEvent>(events.back()).kind == kind;
    });
  };
  EXPECT_TRUE(has(EcSinkEvent::Kind::kComplete));
  EXPECT_TRUE(std::ranges::equal(place, *rows));
  decoder->connector->close_sink(7);
  EXPECT_TRUE(has(EcSinkEvent::Kind::kClosed)) << "also after it was complete";
}

TYPED_TEST(EcConnectorPair, IsSilentToAPeerWithoutTheSecret) {
  const auto decoder = this->decoder();
  this->secret_ = nullptr;
  const auto encoder = this->encoder();
  encoder->add(decoder->id, "r0", 100, 1);
  const FrameCounts& counts = decoder->connector->counts();
  ASSERT_TRUE(this->run_until(*encoder, decoder.get(), [&] { return encoder->answers.contains("r0"); }));
  EXPECT_EQ(encoder->answers["r0"].code(), absl::StatusCode::kUnavailable) << encoder->answers["r0"];
  EXPECT_GE(counts.num_refused(EcFrameFault::kCode), 3);
  EXPECT_EQ(decoder->table->num_transfers(), 0u);
}

TYPED_TEST(EcConnectorPair, AnswersAnAnnouncementOfAnotherVersion) {
  const auto decoder = this->decoder();
  const auto encoder = this->encoder();
  const auto broker = this->world_.broker();
  EcMeta meta;
  meta.key = {"r0", 0, 0};
  meta.num_positions = meta.width = 1;
  // The frame of version 2, with its code over it if the sender has the secret.
  const auto send = [&](const std::shared_ptr<const EcSecret>& secret) {
    std::vector<std::byte> frame;
    ASSERT_TRUE(FrameWriter(5, nullptr).write(meta, frame).ok());
    frame[4] = std::byte{2};
    if (secret != nullptr) {
      const EcMac mac = secret->mac({std::span(frame).first(32), std::span(frame).subspan(kEcHeadBytes)});
      std::memcpy(frame.data() + 32, mac.data(), mac.size());
    }
    ASSERT_TRUE(broker->publish(decoder->id, EcChannel::kMetadata, frame).ok());
  };
  const auto answer = [&] {
    const auto events = encoder->events();
    const auto* const peer = events.empty() ? nullptr : std::get_if<EcPeerMessage>(&events.front());
    const auto* const allocation = peer == nullptr ? nullptr : std::get_if<EcAllocation>(&peer->message);
    return allocation != nullptr && allocation->verdict == EcVerdict::kIncompatible && allocation->key == meta.key;
  };
  const FrameCounts& counts = decoder->connector->counts();
  send(nullptr);
  EXPECT_TRUE(becomes([&] { return counts.num_refused(EcFrameFault::kVersion) == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(answer()) << "a stranger could end a transfer this way";
  send(this->secret_);
  EXPECT_TRUE(becomes(answer));
  EXPECT_TRUE(decoder->inbox->is_empty());
}

TYPED_TEST(EcConnectorPair, BoundsItsOutbox) {
  const auto encoder = this->encoder();
  ASSERT_TRUE(becomes([&] { return encoder->broker->peers().value_or(std::vector<InstanceRecord>()).size() == 1; }));
  this->world_.go_away();
  ASSERT_TRUE(becomes([&] {  // the broker is known to be away
    return encoder->broker->leave({"nobody", 1}).code() == absl::StatusCode::kUnavailable;
  }));
  encoder->events();
  for (uint32_t i = 0; i < 1026; ++i) encoder->connector->send({"d0", 77}, EcQuery{{"r", i, 0}});
  encoder->connector->send({"d0", 77}, EcCancel{{"r", 0, 0}, EcChannel::kMetadata});
  int num_full = 0;
  for (const EcEvent& event : encoder->events()) {
    const auto* const send = std::get_if<EcSendEvent>(&event);
    num_full += send != nullptr && send->event == EcSenderEvent::kOutboxFull ? 1 : 0;
  }
  EXPECT_EQ(num_full, 2);
  EXPECT_EQ(encoder->connector->counts().num_outbox_full, 3);
}

}  // namespace
}  // namespace transept::testing
