// Both sides of the handshake over a network that loses, doubles, delays and reorders, on a fake clock: encode
// instances and decode instances that stall, die and are restarted, deadlines, clients that go, a broker that is away,
// peers that are wrong. A decode instance has blocks with bytes, which a receiving thread writes while it holds a
// reservation.
//
// After every event: what SimulatedDecoder checks. In the end: each transfer has had one answer, no attempt was
// injected twice, the pools are full.
//
// A failure prints its seed. TRANSEPT_PROPERTY_SEED=n runs that one history; TRANSEPT_PROPERTY_HISTORIES=n runs so
// many.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <tuple>

#include "base/content_digest_testing.h"
#include "base/sanitized_testing.h"
#include "encoder_cache/ec_sender_table.h"
#include "encoder_cache/ec_simulated_decoder_testing.h"

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kNumHistories = kSanitized ? 300 : 10000;
struct Totals {
  int64_t transfers = 0, done = 0, failed = 0, broken = 0, sent_again = 0, hits = 0, injected = 0, waits = 0, busy = 0;
  int64_t reopened = 0, expired = 0, wrong = 0, claimed = 0, consumed = 0, deaths = 0, gaps = 0, refused = 0,
          idle_ends = 0;
};

using Decoder = SimulatedDecoder;

struct Faults {
  double loss = 0, doubled = 0, send_failure = 0, send_stall = 0, wrong_peer = 0;
  int max_delay_ms = 1;
  bool deaths = false, clients_go = false, path_away = false, short_deadlines = false;
  bool none = true;  // every transfer must succeed
};

class World {
 public:
  World(uint64_t seed, Totals& totals) : random_(seed), totals_(totals) {
    draw_faults();
    times_.lease = seconds(draw(2, 30));
    times_.unclaimed = seconds(draw(5, 60));
    for (int i = draw(1, 3); i > 0; --i) start_encoder(encoders_.emplace_back());
    for (int i = draw(1, 2); i > 0; --i) start_decoder(decoders_.emplace_back());
    for (int i = draw(1, 10); i > 0; --i) add_request();
    if (faults_.deaths) {
      for (int i = draw(1, 3); i > 0; --i) at(milliseconds(draw(0, 20000)), [this] { kill_one(); });
    }
    if (faults_.path_away) at(milliseconds(draw(0, 5000)), [this] { lose_path(); });
  }

  // "" or what is wrong.
  std::string run() {
    for (int num_events = 0; !events_.empty(); ++num_events) {
      if (num_events > 200000) return "it does not end";
      const Event event = events_.top();
      events_.pop();
      clock_.advance(event.at - clock_.now());
      event.run();
      for (const Decoder& decoder : decoders_) expect(decoder.problem.empty(), decoder.problem);
      if (!problem_.empty()) return str_cat("after ", seconds_text(), " s: ", problem_);
    }
    for (Decoder& decoder : decoders_) {
      totals_.idle_ends += decoder.blocks->device_usage().pinned > 0 ? 1 : 0;
      decoder.check_end();
      expect(decoder.problem.empty(), decoder.problem);
    }
    for (const Encoder& encoder : encoders_) expect(encoder.table->num_transfers() == 0, "a transfer goes on");
    for (const auto& [id, request] : requests_) {
      for (const Input& input : request.inputs) expect(!input.is_in_flight, str_cat(id, " has no answer"));
    }
    return problem_;
  }

 private:
  struct Event {
    TimePoint at;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
  };
  struct Encoder {
    InstanceId id;
    bool is_up = false;
    TimePoint wake_at = TimePoint::max();
    std::unique_ptr<EcSenderTable> table;
    std::map<EcInput, uint64_t> sending;  // the number of the last sending; another: it was stopped
  };
  struct Input {
    EcMeta meta;
    bool is_in_flight = false, is_done = false;
  };
  struct Request {
    std::vector<Input> inputs;
    size_t encoder = 0, decoder = 0;
    bool is_over = false;
  };

  // ---- Drawing

  int draw(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1)); }
  bool happens(double probability) { return static_cast<double>(random_() >> 11) * 0x1p-53 < probability; }
  Duration delay() { return std::chrono::microseconds(draw(10, faults_.max_delay_ms * 1000)); }

  void draw_faults() {
    if (draw(0, 7) == 0) return;
    faults_.none = false;
    faults_.loss = draw(0, 3) * 0.1;
    faults_.doubled = draw(0, 3) * 0.1;
    faults_.max_delay_ms = std::vector<int>{1, 20, 500, 5000}[static_cast<size_t>(draw(0, 3))];
    faults_.send_failure = draw(0, 2) == 0 ? 0.2 : 0;
    faults_.send_stall = draw(0, 3) == 0 ? 0.2 : 0;
    faults_.wrong_peer = draw(0, 3) == 0 ? 0.2 : 0;
    faults_.deaths = draw(0, 2) == 0;
    faults_.clients_go = draw(0, 2) == 0;
    faults_.path_away = draw(0, 3) == 0;
    faults_.short_deadlines = draw(0, 2) == 0;
  }

  // ---- Time

  void at(Duration from_now, std::function<void()> run) {
    events_.push({clock_.now() + from_now, next_order_++, std::move(run)});
  }
  std::string seconds_text() const { return str_cat(seconds_of(clock_.now())); }
  static double seconds_of(TimePoint time) { return transept::seconds(time.time_since_epoch()); }
  void expect(bool holds, std::string_view what) {
    if (!holds && problem_.empty()) problem_ = what;
  }
  template <typename I, typename F>
  void wake(I& instance, TimePoint time, F run) {
    if (time >= instance.wake_at) return;
    instance.wake_at = time;
    at(time - clock_.now(), [&instance, time, run] {
      if (instance.wake_at != time) return;
      instance.wake_at = TimePoint::max();
      run();
    });
  }

  // ---- The network: at least never, at most twice

  void deliver(const std::function<void()>& run, Duration least = {}) {
    if (happens(faults_.loss)) return;
    for (int copies = happens(faults_.doubled) ? 2 : 1; copies > 0; --copies) at(least + delay(), run);
  }
  // Messages of a broker that is away come when it is back.
  Duration until_path() const { return std::max(path_back_at_ - clock_.now(), Duration::zero()); }

  // ---- Encode instances

  void start_encoder(Encoder& encoder) {
    encoder.id = {str_cat("e", &encoder - encoders_.data()), random_()};
    encoder.is_up = true;
    encoder.table = std::make_unique<EcSenderTable>(EcSenderTable::Options{times_, 64, random_()});
    encoder.sending.clear();
  }

  void run_encoder(Encoder& encoder, const std::function<void(EcSenderTable::Outputs&)>& run) {
    if (!encoder.is_up) return;
    EcSenderTable::Outputs outputs;
    run(outputs);
    encoder.table->on_time(clock_.now(), outputs);
    for (const EcSenderOutput& output : outputs) perform(encoder, output);
    expect(encoder.table->next_time() > clock_.now(), "a sender's time is over and nothing happened");
    if (encoder.table->next_time() == TimePoint::max()) return;
    wake(encoder, encoder.table->next_time(), [this, &encoder] { run_encoder(encoder, [](auto&) {}); });
  }

  void perform(Encoder& encoder, const EcSenderOutput& output) {
    Decoder& decoder = decoder_named(output.to.name);
    const InstanceId from = encoder.id;
    const EcMeta meta = output.meta;
    switch (output.action) {
      case EcSenderAction::kSendMetadata:
        expect(meta.num_positions > 0 && meta.time_left >= Duration::zero(), "metadata is not whole");
        totals_.sent_again += meta.key.attempt > 0 ? 1 : 0;
        return deliver([=, this, &decoder] { announce(decoder, from, meta); }, until_path());
      case EcSenderAction::kSendQuery:
        return deliver(
            [=, this, &decoder] {
              run_decoder(decoder, [&](auto& out) { decoder.table->on_query(from, meta.key, clock_.now(), out); });
            },
            until_path());
      case EcSenderAction::kSendCancel:
        return deliver(
            [=, this, &decoder] {
              run_decoder(decoder, [&](auto& out) { decoder.table->on_cancel(from, meta.key, clock_.now(), out); });
            },
            until_path());
      case EcSenderAction::kSendCache: return send_cache(encoder, decoder, output);
      case EcSenderAction::kStopSending: ++encoder.sending[input_of(meta.key)]; return;
      case EcSenderAction::kAnswer: return answer(input_of(meta.key), output.status);
    }
  }

  // Chunk after chunk, until it is stopped, fails or stalls.
  void send_cache(Encoder& encoder, Decoder& decoder, const EcSenderOutput& output) {
    const EcMeta meta = input_named(input_of(output.meta.key)).meta;
    expect(output.bulk_address == "bulk", "the address is that of the allocation");
    const uint64_t number = ++encoder.sending[input_of(output.meta.key)];
    EcChunk chunk{output.meta.key, output.reservation, 0, ec_payload_bytes(meta), {}};
    send_chunk(encoder, decoder, chunk, meta.digest, number);
  }

  void send_chunk(Encoder& encoder, Decoder& decoder, EcChunk chunk, const ContentDigest& digest, uint64_t number) {
    const uint64_t incarnation = encoder.id.incarnation;
    at(delay(), [=, this, &encoder, &decoder]() mutable {
      const EcInput input = input_of(chunk.key);
      if (!encoder.is_up || encoder.id.incarnation != incarnation || encoder.sending[input] != number) return;
      if (happens(faults_.send_stall)) return;
      EcSenderEvent event = EcSenderEvent::kSendProgress;
      const uint64_t size = std::min<uint64_t>(chunk.total - chunk.offset, static_cast<uint64_t>(draw(1, 60)));
      if (happens(faults_.send_failure)) {
        event = EcSenderEvent::kSendFailed;
      } else {
        std::vector<std::byte> bytes;
        for (uint64_t i = 0; i < size; ++i) bytes.push_back(simulated_byte(digest, chunk.offset + i));
        deliver([=, this, &decoder]() mutable {
          chunk.bytes = bytes;
          take(decoder, chunk);
        });
        chunk.offset += size;
        if (chunk.offset == chunk.total) event = EcSenderEvent::kSendDone;
      }
      if (event == EcSenderEvent::kSendProgress) send_chunk(encoder, decoder, chunk, digest, number);
      run_encoder(encoder, [&](auto& out) { encoder.table->on_transport(event, chunk.key, clock_.now(), out); });
    });
  }

  // ---- Decode instances

  void start_decoder(Decoder& decoder) { decoder.start(str_cat("d", &decoder - decoders_.data()), times_, random_); }

  void announce(Decoder& decoder, const InstanceId& from, const EcMeta& meta) {
    run_decoder(decoder, [&](auto& out) { decoder.table->on_metadata(from, meta, clock_.now(), out); });
  }

  void run_decoder(Decoder& decoder, const std::function<void(EcReceiverTable::Outputs&)>& run) {
    if (!decoder.is_up) return;
    EcReceiverTable::Outputs outputs;
    run(outputs);
    decoder.table->on_time(clock_.now(), outputs);
    decoder.table->allocate_waiting(clock_.now(), 64, outputs);
    for (const EcReceiverOutput& output : outputs) {
      totals_.waits += output.verdict == EcVerdict::kWait ? 1 : 0;
      totals_.busy += output.verdict == EcVerdict::kBusy ? 1 : 0;
      perform(decoder, output);
    }
    decoder.check(outputs, clock_.now());
    if (decoder.table->next_time() == TimePoint::max()) return;
    wake(decoder, decoder.table->next_time(), [this, &decoder] { run_decoder(decoder, [](auto&) {}); });
  }

  void perform(Decoder& decoder, const EcReceiverOutput& output) {
    const InstanceId from = decoder.id;
    const auto tell = [&](auto run) {
      Encoder& encoder = encoder_named(output.to.name);
      deliver([this, &encoder, run] { run_encoder(encoder, [&](auto& out) { run(*encoder.table, out); }); },
              until_path());
    };
    switch (output.kind) {
      case EcReceiverOutput::Kind::kAllocation: {
        const EcAllocation said{output.key, output.verdict, output.reservation, output.bulk_address};
        expect((said.verdict == EcVerdict::kAllocated) == (said.reservation != 0), "a reservation with a grant alone");
        totals_.hits += said.verdict == EcVerdict::kHit ? 1 : 0;
        totals_.wrong += said.verdict == EcVerdict::kIncompatible ? 1 : 0;
        return tell([=, this](auto& table, auto& out) { table.on_allocation(from, said, clock_.now(), out); });
      }
      case EcReceiverOutput::Kind::kInjection: {
        const EcInjection said{output.key, output.verdict};
        totals_.wrong += said.verdict == EcVerdict::kIncompatible ? 1 : 0;
        return tell([=, this](auto& table, auto& out) { table.on_injection(from, said, clock_.now(), out); });
      }
      case EcReceiverOutput::Kind::kCancel:
        return tell(
            [=, this, key = output.key](auto& table, auto& out) { table.on_cancel(from, key, clock_.now(), out); });
      case EcReceiverOutput::Kind::kOpenSink:
        totals_.reopened += output.key.attempt > 0 ? 1 : 0;
        return decoder.open(output);
      case EcReceiverOutput::Kind::kCloseSink: return close_sink(decoder, output.reservation);
      case EcReceiverOutput::Kind::kReady: ++totals_.injected; return decoder.check_injected(output.key);
    }
  }

  // The receiving thread lets go when it likes, and the engine hears of it later.
  void close_sink(Decoder& decoder, uint64_t reservation) {
    ++totals_.expired;
    locally(decoder, [this, &decoder, reservation] {
      decoder.close(reservation);
      locally(decoder, [this, &decoder, reservation] {
        run_decoder(decoder, [&](auto& out) { decoder.table->on_sink_closed(reservation, clock_.now(), out); });
      });
    });
  }

  // On this start of the instance alone, in order.
  void locally(Decoder& decoder, std::function<void()> run) {
    at(milliseconds(2), [&decoder, run = std::move(run), incarnation = decoder.id.incarnation] {
      if (decoder.is_up && decoder.id.incarnation == incarnation) run();
    });
  }

  void take(Decoder& decoder, const EcChunk& chunk) {
    if (!decoder.is_up) return;
    const EcIntake::Answer answer = decoder.take(chunk);
    totals_.gaps += answer.verdict == EcIntake::Verdict::kGap ? 1 : 0;
    totals_.refused += answer.verdict == EcIntake::Verdict::kRefused ? 1 : 0;
    if (answer.verdict == EcIntake::Verdict::kRefused) return;
    locally(decoder, [=, this, &decoder, reservation = chunk.reservation] {
      run_decoder(decoder, [&](auto& out) {
        decoder.table->on_chunk(reservation, clock_.now());
        if (answer.is_complete) decoder.table->on_complete(reservation, clock_.now(), out);
      });
    });
  }

  // ---- Clients, and who holds their requests

  void add_request() {
    const std::string id = str_cat("r", requests_.size());
    Request& request = requests_[id];
    request.encoder = static_cast<size_t>(draw(0, static_cast<int>(encoders_.size()) - 1));
    request.decoder = static_cast<size_t>(draw(0, static_cast<int>(decoders_.size()) - 1));
    const Duration left =
        faults_.none ? Duration(seconds(1000)) : milliseconds(draw(100, faults_.short_deadlines ? 5000 : 90000));
    for (int i = 0, count = draw(1, 4) == 1 ? 2 : 1; i < count; ++i) {
      Input& input = request.inputs.emplace_back();
      const auto number = static_cast<uint64_t>(draw(1, 6));
      input.meta.key = {id, static_cast<uint32_t>(i), 0};
      input.meta.digest = testing::digest_of(number);
      input.meta.num_positions = static_cast<int32_t>(number * 2 - 1);
      if (happens(faults_.wrong_peer)) ++input.meta.num_positions;
      if (happens(faults_.wrong_peer / 4)) input.meta.model = testing::digest_of(9);
      input.meta.width = kSimulatedWidth;
      input.meta.time_left = left;
    }
    at(milliseconds(draw(0, 3000)), [this, id] { begin(id); });
    if (faults_.clients_go && draw(0, 2) == 0) at(milliseconds(draw(0, 9000)), [this, id] { give_up(id); });
  }

  void begin(const std::string& id) {
    for (Input& input : requests_[id].inputs) add(input);
  }

  // To the request's encode instance, or none is there.
  void add(Input& input) {
    Request& request = requests_[input.meta.key.request_id];
    Encoder& encoder = encoders_[request.encoder];
    if (!encoder.is_up || request.is_over) return;
    ++totals_.transfers;
    input.is_in_flight = true;
    run_encoder(encoder, [&](auto& out) {
      const Status status = encoder.table->add(decoders_[request.decoder].id, input.meta, clock_.now(), out);
      expect(status.ok(), error_message(status));
    });
    at(milliseconds(draw(0, 1000)), [this, &encoder, key = input_of(input.meta.key)] {
      run_encoder(encoder, [&](auto& out) { encoder.table->on_encoded(key, clock_.now(), out); });
    });
  }

  void answer(const EcInput& key, const Status& status) {
    Input& input = input_named(key);
    expect(input.is_in_flight, "an answer that was not asked for");
    input.is_in_flight = false;
    input.is_done = status.ok();
    ++(status.ok() ? totals_.done : totals_.failed);
    const bool is_lost = input.meta.num_positions % 2 == 0 || input.meta.model != ModelFingerprint{};
    if (faults_.none && !is_lost) expect(status.ok(), error_message(status));
    Request& request = requests_[key.request_id];
    if (!status.ok()) {
      if (draw(0, 1) == 0) at(delay(), [this, id = key.request_id] { give_up(id); });
    } else if (std::all_of(request.inputs.begin(), request.inputs.end(), [](const Input& i) { return i.is_done; })) {
      at(delay(), [this, id = key.request_id] { decode(id); });
    }
  }

  void decode(const std::string& id) {
    Request& request = requests_[id];
    if (std::exchange(request.is_over, true)) return;
    Decoder& decoder = decoders_[request.decoder];
    const auto count = static_cast<int32_t>(request.inputs.size());
    bool is_claimed = false;
    run_decoder(decoder, [&](auto& out) { is_claimed = decoder.table->claim(id, count, clock_.now(), out); });
    if (!is_claimed) return abort(decoder, id);
    ++totals_.claimed;
    locally_later(decoder, [this, &decoder, id, count] {
      if (happens(0.2)) return abort(decoder, id);
      for (int32_t i = 0; i < count; ++i) {
        const EcInput input{id, static_cast<uint32_t>(i)};
        decoder.check_content(input);
        for (int told = draw(1, 2); told > 0; --told) {
          run_decoder(decoder, [&](auto&) { decoder.table->consume(input, clock_.now()); });
        }
        ++totals_.consumed;
      }
    });
  }
  void locally_later(Decoder& decoder, std::function<void()> run) {
    at(milliseconds(draw(1, 90000)), [&decoder, run = std::move(run), incarnation = decoder.id.incarnation] {
      if (decoder.is_up && decoder.id.incarnation == incarnation) run();
    });
  }

  void abort(Decoder& decoder, const std::string& id) {
    run_decoder(decoder, [&](auto& out) { decoder.table->abort(id, clock_.now(), out); });
  }

  // The client has gone, or an input failed: whoever holds the request tells both sides.
  void give_up(const std::string& id) {
    Request& request = requests_[id];
    if (std::exchange(request.is_over, true)) return;
    Encoder& encoder = encoders_[request.encoder];
    run_encoder(encoder, [&](auto& out) {
      for (const Input& input : request.inputs) encoder.table->abort(input_of(input.meta.key), clock_.now(), out);
    });
    if (draw(0, 1) == 0) abort(decoders_[request.decoder], id);
  }

  // ---- Faults

  void lose_path() {
    path_back_at_ = clock_.now() + milliseconds(draw(10, 8000));
    for (Encoder& encoder : encoders_) {
      if (encoder.is_up) encoder.table->on_path(true, clock_.now());
    }
    at(path_back_at_ - clock_.now(), [this] {
      for (Encoder& encoder : encoders_) {
        if (!encoder.is_up) continue;
        encoder.table->on_path(false, clock_.now());
        run_encoder(encoder, [](auto&) {});
      }
    });
  }

  void kill_one() {
    ++totals_.deaths;
    if (draw(0, 1) == 0) {
      kill(encoders_[static_cast<size_t>(draw(0, static_cast<int>(encoders_.size()) - 1))]);
    } else {
      kill(decoders_[static_cast<size_t>(draw(0, static_cast<int>(decoders_.size()) - 1))]);
    }
  }

  // Its tickets are claimed by another, whose first attempt is one later.
  void kill(Encoder& encoder) {
    if (!encoder.is_up) return;
    encoder.is_up = false;
    const auto index = static_cast<size_t>(&encoder - encoders_.data());
    for (auto& [id, request] : requests_) {
      if (request.encoder != index) continue;
      request.encoder = static_cast<size_t>(draw(0, static_cast<int>(encoders_.size()) - 1));
      for (Input& input : request.inputs) {
        if (!std::exchange(input.is_in_flight, false)) continue;
        ++totals_.broken;
        ++input.meta.key.attempt;
        at(seconds(2), [this, &input] {
          if (!input.is_in_flight) add(input);
        });
      }
    }
    at(milliseconds(draw(100, 20000)), [this, &encoder] { start_encoder(encoder); });
  }

  // Its requests end with it; senders hear of it, or not.
  void kill(Decoder& decoder) {
    if (!decoder.is_up) return;
    decoder.is_up = false;
    const InstanceId gone = decoder.id;
    if (draw(0, 1) == 0) {
      at(seconds(1), [this, gone] {
        for (Encoder& encoder : encoders_) {
          run_encoder(encoder, [&](auto& out) { encoder.table->on_peer_gone(gone, clock_.now(), out); });
        }
      });
    }
    at(milliseconds(draw(100, 20000)), [this, &decoder] { start_decoder(decoder); });
  }

  // ---- Names

  Encoder& encoder_named(const std::string& name) { return encoders_.at(std::stoul(name.substr(1))); }
  Decoder& decoder_named(const std::string& name) { return decoders_.at(std::stoul(name.substr(1))); }
  Input& input_named(const EcInput& input) { return requests_.at(input.request_id).inputs.at(input.input_id); }

  std::mt19937_64 random_;
  Totals& totals_;
  Faults faults_;
  EcTimes times_;
  FakeClock clock_;
  std::priority_queue<Event> events_;
  uint64_t next_order_ = 0;
  std::vector<Encoder> encoders_ = reserved<Encoder>();
  std::vector<Decoder> decoders_ = reserved<Decoder>();
  std::map<std::string, Request> requests_;
  TimePoint path_back_at_{};
  std::string problem_;

  // Events refer to instances.
  template <typename T>
  static std::vector<T> reserved() {
    std::vector<T> list;
    list.reserve(4);
    return list;
  }
};

uint64_t environment_number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(EcProperty, EveryTransferEndsAndNothingStays) {
  const uint64_t only = environment_number("TRANSEPT_PROPERTY_SEED", 0);
  const uint64_t first = only > 0 ? only : 1;
  const uint64_t last = only > 0 ? only : environment_number("TRANSEPT_PROPERTY_HISTORIES", kNumHistories);
  Totals totals;
  int num_failures = 0;
  for (uint64_t seed = first; seed <= last && num_failures < 5; ++seed) {
    const std::string problem = World(seed, totals).run();
    if (problem.empty()) continue;
    ++num_failures;
    ADD_FAILURE() << "TRANSEPT_PROPERTY_SEED=" << seed << ": " << problem;
  }
  std::printf(
      "%ld transfers: %ld done, %ld failed, %ld broken off; %ld announced again as new attempts, %ld hits, %ld "
      "injected, %ld waits, %ld busy, %ld sinks of later attempts, %ld closed, %ld refused as wrong, %ld claimed, %ld "
      "consumed; %ld deaths, %ld chunks after a gap, %ld refused; %ld ends with idle tables\n",
      totals.transfers, totals.done, totals.failed, totals.broken, totals.sent_again, totals.hits, totals.injected,
      totals.waits, totals.busy, totals.reopened, totals.expired, totals.wrong, totals.claimed, totals.consumed,
      totals.deaths, totals.gaps, totals.refused, totals.idle_ends);
  if (only > 0) return;
  const int64_t few = totals.transfers / 100;
  for (const int64_t count :
       {totals.done, totals.failed, totals.broken, totals.sent_again, totals.hits, totals.injected, totals.waits,
        totals.busy, totals.reopened, totals.expired, totals.claimed, totals.consumed, totals.gaps, totals.refused}) {
    EXPECT_GT(count, few);
  }
  EXPECT_GT(totals.wrong, few / 4);
  EXPECT_GT(totals.done, totals.transfers / 4);
}

}  // namespace
}  // namespace transept
