// What an instance of a fleet (--role encode, --role decode) has beside its engine: the broker, the transport of rows,
// the connector, the tickets that it takes or offers, and the record that makes it known.
//
//   ASSIGN_OR_RETURN(auto instance, Instance::connect(options));
//   ASSIGN_OR_RETURN(LoadedModel model, load_engine(config, clock, instance->links()));
//   AsyncEngine engine(..);
//   instance->begin(engine, model);
//   ... instance->drain(timeout), instance->end_work(), engine.stop_..(), and at last ~Instance: before the engine's
//   memory goes, into which rows are received.
//
// Owned by the server. begin(), drain() and end_work() are for one thread; the other functions are thread-safe between
// begin() and end_work().
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "async/async_engine.h"
#include "base/mutex.h"
#include "base/status.h"
#include "disagg/ec_connector.h"
#include "disagg/ticket_asker.h"
#include "disagg/ticket_taker.h"
#include "encoder_cache/broker.h"
#include "encoder_cache/ec_secret.h"
#include "startup/connect_bulk.h"
#include "startup/instance_links.h"
#include "startup/instance_stats.h"
#include "startup/loaded_model.h"

namespace transept {

class Instance final {
 public:
  struct Options {
    InstanceRole role = InstanceRole::kDecode;  // kEncode or kDecode
    std::string name;                           // 1 to 64 characters, as check_ec_name() has them; others differ
    std::string broker;                         // connect_broker()
    std::string ns = "default";                 // --ec-namespace
    BulkKind bulk = BulkKind::kZmq;             // --ec-bulk
    std::string bulk_address;                   // where rows are taken (connect_bulk())
    std::shared_ptr<const EcSecret> secret;     // null: none
    std::string url;                            // of this instance's server, as others reach it
    Duration announce_every = std::chrono::seconds(1);
    Duration record_ttl = std::chrono::seconds(6);
    Duration wait_for_broker = std::chrono::seconds(10);  // at the start; also how long others may lack its record
  };

  // Errors: a name or a broker that is none; check_without_secret(); kUnimplemented, a kind of broker that this version
  // lacks; kUnavailable, no broker answers; those of connect_bulk().
  static StatusOr<std::unique_ptr<Instance>> connect(const Options& options);
  // The record goes, and no row is written from here on.
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceId& id() const { return id_; }
  InstanceRole role() const { return options_.role; }
  const EcSecret* secret() const { return options_.secret.get(); }
  InstanceLinks links() { return {options_.role, connector_.get(), asker_.get()}; }
  TicketAsker* asker() const { return asker_.get(); }  // null: an encode instance
  Broker& broker() { return *broker_; }

  // The record is announced from here on, and an encode instance takes tickets. Borrows both. Call once.
  // `on_ticket`: TicketTaker::Options::on_end.
  void begin(AsyncEngine& engine, const LoadedModel& model, std::function<void(const TicketEnd&)> on_ticket = nullptr);
  // The record says so. An encode instance takes no more tickets, and ends those in work. False: some are after
  // `timeout`.
  bool drain(Duration timeout);
  // Before the engine is stopped: what is in work is left to others, and the engine is not used any longer. Idempotent.
  void end_work();

  // Errors: kUnavailable, the broker does not answer.
  Status health() const;
  InstanceStats stats() const;

 private:
  class Intake;

  Instance(const Options& options, InstanceId id, std::shared_ptr<Broker> broker);
  void run_announcer();
  void renew_record();
  void look_at_peers();
  InstanceLoad load() const;

  const Options options_;
  const InstanceId id_;
  const std::shared_ptr<Broker> broker_;
  std::shared_ptr<const std::atomic<int64_t>> num_too_large_;  // frames that the broker has dropped
  std::unique_ptr<EcConnector> connector_;
  std::unique_ptr<TicketAsker> asker_;
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<TicketTaker> taker_;
  AsyncEngine* engine_ = nullptr;  // of begin()
  InstanceRecord record_;          // of the announcer once it runs
  std::atomic<TimePoint> announced_{TimePoint::min()};
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_said_so_ ABSL_GUARDED_BY(mutex_) = false;  // that it drains
  PeerCounts peers_ ABSL_GUARDED_BY(mutex_);
  std::thread announcer_;
};

// Parses a --role. Errors: kUnimplemented for prefill and both; kInvalidArgument for what is none.
StatusOr<InstanceRole> parse_instance_role(const std::string& role);

}  // namespace transept
