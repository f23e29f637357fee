#include "disagg/ec_connector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr Duration kAskAgain = std::chrono::milliseconds(100);  // a broker that is away

}  // namespace

EcConnector::EcConnector(const Options& options, std::shared_ptr<Broker> broker, std::shared_ptr<BulkTransport> bulk,
                         std::shared_ptr<FrameWriter> writer)
    : options_(options), broker_(std::move(broker)), bulk_(std::move(bulk)), writer_(std::move(writer)) {
  incoming_ =
      std::make_shared<EcIncoming>(*broker_, options_.grace, options_.secret,
                                   [this](const InstanceId& to, EcMessage message) { send(to, std::move(message)); });
  broker_->on_path([incoming = incoming_](bool is_away) { incoming->on_path(is_away); });
}

EcConnector::~EcConnector() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  incoming_->stop();
}

void EcConnector::start(std::shared_ptr<EcInbox> inbox) {
  incoming_->start(std::move(inbox));
  thread_ = std::thread([this] { run(); });
}

// ---- What the engine asks

void EcConnector::push(std::function<void()> task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void EcConnector::send(const InstanceId& to, EcMessage message) {
  std::optional<EcKey> refused;
  {
    const MutexLock lock(mutex_);
    if (outbox_.size() < options_.max_outbox) {
      outbox_.push_back({to, std::move(message)});
      changed_.notify_all();
      return;
    }
    if (const auto* const meta = std::get_if<EcMeta>(&message)) refused = meta->key;
    if (const auto* const query = std::get_if<EcQuery>(&message)) refused = query->key;
  }
  ++incoming_->counts().num_outbox_full;
  if (refused.has_value()) incoming_->put(EcSendEvent{EcSenderEvent::kOutboxFull, *refused});
}

void EcConnector::send_rows(const InstanceId& /*to*/, const EcKey& key, uint64_t reservation,
                            const std::string& bulk_address, EcRows rows) {
  const uint64_t number = incoming_->begin_send(input_of(key));
  push([this, key, reservation, bulk_address, number, rows = std::move(rows)] {
    const auto put = [incoming = incoming_, key, number](EcSenderEvent event) {
      incoming->put_send(event, key, number);
    };
    bulk_->send(bulk_address, {key, reservation, rows, [put] { put(EcSenderEvent::kSendProgress); },
                               [put, key, bulk_address](const Status& status) {
                                 if (!status.ok()) {
                                   log_warning("rows of ", key.request_id, " cannot be sent to ", bulk_address, ": ",
                                               error_message(status));
                                 }
                                 put(status.ok() ? EcSenderEvent::kSendDone : EcSenderEvent::kSendFailed);
                               }});
  });
}

void EcConnector::stop_sending(const EcInput& input) {
  incoming_->end_send(input);
  push([this, input] { bulk_->cancel(input); });
}

void EcConnector::open_sink(uint64_t reservation, const EcKey& key, uint64_t num_bytes, EcPlaces places) {
  push([this, reservation, key, num_bytes, places = std::move(places)] {
    incoming_->sinks().open(reservation, key, num_bytes, places);
  });
}

void EcConnector::close_sink(uint64_t reservation) {
  push([this, reservation] { incoming_->sinks().close(reservation); });
}

// ---- The connector's thread

void EcConnector::subscribe() {
  for (const EcChannel channel : {EcChannel::kAllocation, EcChannel::kInjection, EcChannel::kMetadata}) {
    const Status status = broker_->subscribe(
        options_.self, channel,
        [incoming = incoming_, channel](std::span<const std::byte> frame) { incoming->take(channel, frame); });
    if (!status.ok()) ++incoming_->counts().num_unsent;
  }
  bulk_->receive([incoming = incoming_](std::span<const std::byte> frame) { incoming->sinks().take(frame); });
}

// One thing at a time, so that tasks wait for one message at most. Tasks go first: a message speaks of the sinks
// that were opened before it.
void EcConnector::run() {
  subscribe();
  TimePoint look_at = steady_now(), publish_at = look_at;
  while (true) {
    std::function<void()> task;
    std::optional<Letter> letter;
    {
      const MutexLock lock(mutex_);
      const TimePoint now = steady_now();
      if (is_stopped_) return;
      if (now >= look_at + options_.look_for_peers) {
        // Long due: busy queues do not hide a peer that has gone.
      } else if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      } else if (!outbox_.empty() && now >= publish_at) {
        letter = outbox_.front();  // it stays until it is published: the outbox is bounded
      } else if (now < look_at) {
        changed_.wait_until(mutex_, outbox_.empty() ? look_at : std::min(look_at, publish_at));
        continue;
      }
    }
    if (task) {
      task();
    } else if (letter.has_value()) {
      if (publish(*letter)) {
        const MutexLock lock(mutex_);
        outbox_.pop_front();
      } else {
        publish_at = steady_now() + kAskAgain;
      }
    } else {
      look_for_peers();
      look_at = steady_now() + options_.look_for_peers;
    }
  }
}

// Whether it is done with: false, the broker is away.
bool EcConnector::publish(const Letter& letter) {
  std::vector<std::byte> frame;
  Status status = writer_->write(letter.message, frame);
  if (status.ok()) status = broker_->publish(letter.to, channel_of(letter.message), frame);
  if (status.ok()) return true;
  if (status.code() == absl::StatusCode::kUnavailable) return false;
  ++incoming_->counts().num_unsent;
  if (status.code() != absl::StatusCode::kResourceExhausted) return true;
  const auto* const meta = std::get_if<EcMeta>(&letter.message);
  const auto* const query = std::get_if<EcQuery>(&letter.message);
  if (meta != nullptr) incoming_->put(EcSendEvent{EcSenderEvent::kOutboxFull, meta->key});
  if (query != nullptr) incoming_->put(EcSendEvent{EcSenderEvent::kOutboxFull, query->key});
  return true;
}

void EcConnector::look_for_peers() {
  for (InstanceId& gone : incoming_->names().refresh()) incoming_->put(EcPeerGone{std::move(gone)});
}

}  // namespace transept
