// The connector of an instance (encoder_cache/connector.h) over any broker and any bulk transport. Its own thread
// publishes messages, opens and closes sinks, and hands outputs to the transport; frames are decoded, and chunks
// stored, on the threads of broker and transport. Engine threads only queue. Messages wait here while the broker is
// away.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/ec_incoming.h"
#include "disagg/frame_writer.h"
#include "encoder_cache/broker.h"
#include "encoder_cache/bulk_transport.h"
#include "encoder_cache/connector.h"

namespace transept {

class EcConnector final : public EncoderCacheConnector {
 public:
  struct Options {
    InstanceId self;
    std::shared_ptr<const EcSecret> secret;  // may be null; the writer's
    size_t max_outbox = 1024;                // messages that wait to be published
    Duration look_for_peers = std::chrono::milliseconds(250);
    Duration grace = std::chrono::seconds(10);  // PeerNames; longer than records are renewed
  };
  // Broker and transport are not used yet, and by no other connector; the broker's tickets and records are anyone's.
  // `writer`: the transport's, of this incarnation.
  EcConnector(const Options& options, std::shared_ptr<Broker> broker, std::shared_ptr<BulkTransport> bulk,
              std::shared_ptr<FrameWriter> writer);
  // No event follows, and no place is written any longer.
  ~EcConnector() override;
  EcConnector(const EcConnector&) = delete;
  EcConnector& operator=(const EcConnector&) = delete;

  const InstanceId& self() const override { return options_.self; }
  std::string bulk_address() const override { return bulk_->address(); }
  void start(std::shared_ptr<EcInbox> inbox) override;
  void send(const InstanceId& to, EcMessage message) override;
  void send_rows(const InstanceId& to, const EcKey& key, uint64_t reservation, const std::string& bulk_address,
                 EcRows rows) override;
  void stop_sending(const EcInput& input) override;
  void open_sink(uint64_t reservation, const EcKey& key, uint64_t num_bytes, EcPlaces places) override;
  void close_sink(uint64_t reservation) override;

  const FrameCounts& counts() const { return incoming_->counts(); }

 private:
  struct Letter {
    InstanceId to;
    EcMessage message;
  };

  void run();
  void subscribe();
  void push(std::function<void()> task);
  bool publish(const Letter& letter);
  void look_for_peers();

  const Options options_;
  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<BulkTransport> bulk_;
  const std::shared_ptr<FrameWriter> writer_;
  std::shared_ptr<EcIncoming> incoming_;
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);  // at most a few for each transfer
  std::deque<Letter> outbox_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace transept
