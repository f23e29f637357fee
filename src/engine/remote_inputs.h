// The decode instance's side of separated encoders (decisions 31 and 35): what peers announce gets room in the block
// pool, rows are received into blocks, and requests wait here until the rows of all their items are there. So a request
// without its inputs is in no queue of the scheduler, and no other waits behind it.
//
// A proxy asks for the encodes, or this instance does (Options::asker): of requests that come with
// their content, unless a proxy had the rows sent under their ids, and of rows that were given up while a request
// waited in the scheduler, after a recompute for instance.
//
// An input's room is a reservation from its announcement to the first step that decodes over it; its rows lie in the
// blocks of the reservation, where the connector's thread writes them. The engine's thread decodes nothing of the wire
// and never waits: a step takes at most kMaxEvents events, or as many as kMaxTime allows.
//
// Owned by the engine. Not thread-safe (engine thread), except for the inbox that the connector fills.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/status.h"
#include "core/request_output.h"
#include "encoder_cache/connector.h"
#include "encoder_cache/ec_receiver_table.h"
#include "encoder_cache/encoder_cache_manager.h"
#include "engine/encode_asker.h"
#include "engine/input_stage.h"
#include "rank/executor.h"
#include "scheduling/scheduler.h"

namespace transept {

class RemoteInputs final {
 public:
  struct Options {
    EncoderCacheConnector* connector = nullptr;  // borrowed; null: the engine takes no remote inputs
    EncodeAsker* asker = nullptr;                // borrowed; null: this instance asks for nothing itself
    ModelFingerprint model;
    DType dtype = DType::kFloat32;  // of rows on the wire and in their blocks (ExecutorInfo::rows_dtype)
    // Requests of the asker's whose rows will not come are given back to be encoded here (--ec-fallback local): if no
    // encode instance is there, attempts are over, or max_wait is. REQUIRES: the ranks have the encoder.
    bool falls_back = false;
    EcTimes times;
    Duration max_wait = std::chrono::seconds(60);  // of a request for its inputs, unless it has a deadline
    size_t max_messages = 4096;                    // of peers, that wait for the engine
    size_t max_waiting = 1024;                     // EcReceiverTable::Options
    size_t max_transfers = 4096;
    std::function<uint64_t()> draw;  // 64 random bits: secrets of reservations; null: the system's
  };

  // Of one step.
  static constexpr size_t kMaxEvents = 64;
  static constexpr Duration kMaxTime = std::chrono::microseconds(50);

  // Errors: kUnimplemented, by name: an executor or a device that takes no rows; kInvalidArgument: it takes rows of
  // another type, both by name.
  static Status check(const Options& options, Executor& executor);

  // Borrows all but the options, and starts the connector. REQUIRES: check().ok(), and BlockSpaceManager::Options has
  // keep_unused_items.
  RemoteInputs(Options options, Scheduler& scheduler, Executor& executor, const Clock& clock);

  // EcInbox: something came. Null: none is told.
  void set_wake(std::function<void()> wake) { inbox_->set_wake(std::move(wake)); }

  // Takes what peers and the receiving thread have said, gives room in order of arrival, and answers through the
  // connector. Call at the beginning of a step. Appends the requests whose inputs are all here now, in order of
  // arrival, those that fall back, whose items are no longer remote, and the results of those that ended here: by their
  // deadlines, or as their inputs are not what they say.
  void maybe_allocate_recvd_metadata(std::vector<InputStage::Request>& ready, std::vector<RequestOutput>& ended);

  // Makes items remote that this instance asks for: their content stays with them. No-op without an asker.
  void make_remote(std::vector<EncoderItem>& items) const;

  // Checks a request, and keeps it if some rows are not here yet; false then. True: they are, and stay until
  // consume() or end(). True also of a request over a handle that this instance asks for: cross KV of the handle may be
  // here, so ask_again() follows if it is not. Errors: items that are encoded here beside remote ones, or of a
  // decoder's part; a length that the model cannot have; an input that was announced as another one, or was here and is
  // gone.
  StatusOr<bool> take(InputStage::Request& request);
  bool awaits(const std::string& request_id) const { return awaiting_inputs_.contains(request_id); }
  size_t num_awaiting() const { return awaiting_inputs_.size(); }
  // Replaces `ids` by those requests, in order of arrival.
  void list_awaiting(std::vector<std::string>& ids) const;
  // Ends a request that waits. REQUIRES: awaits(request_id).
  RequestOutput abort(const std::string& request_id);

  // The scheduler has found no rows for a group (SchedulerOutputs::without_rows). Asks for those that are not here, and
  // keeps what comes until consume() or end(). Told again while the group waits: no-op. False: this instance cannot ask
  // for them, or all are here and the group has no room.
  bool ask_again(const std::string& request_id, std::span<const EncoderItem> items);
  // Whether a group of these items may be encoded here after ask_again() was false.
  bool may_fall_back(std::span<const EncoderItem> items) const;
  // Groups that wait so.
  size_t num_asking_groups() const { return num_asking_groups_; }
  // Replaces `lost` by the groups whose rows will not come, and why: the engine ends them, or encodes their items.
  struct Lost {
    std::string request_id;
    Status why;
    bool falls_back = false;
  };
  void take_lost(std::vector<Lost>& lost);

  // The rows of a request's items are in its tables, and its reservations end. No-op if that was told.
  void consume(const std::string& request_id, size_t num_items);
  // The request is over, or was refused. No-op for requests that are not known.
  void end(const std::string& request_id);

  // When to step at the latest though nothing else is to be done; TimePoint::min(): at once.
  TimePoint next_time() const;

  const EncoderCacheManager& cache() const { return cache_; }
  const EcReceiverTable& receivers() const { return table_; }
  int64_t num_dropped_messages() const { return inbox_->num_dropped(); }
  EcStats stats() const;

 private:
  struct Awaiting {
    InputStage::Request request;
    TimePoint deadline;
    uint64_t arrival = 0;
  };
  using Deadline = std::pair<TimePoint, std::string>;
  // What this instance has asked for, for one request.
  struct Asked {
    std::string name;  // EcKey::request_id of the transfers
    // Of a group whose rows are not all here; else empty.
    std::vector<EncoderItem> group_items;
    TimePoint deadline{};  // of the group
  };

  void take_events();
  void handle(const EcEvent& event, TimePoint now);
  void handle_message(const EcPeerMessage& message, TimePoint now);
  void perform();
  void perform(const EcReceiverOutput& output);
  void collect_ready(std::vector<InputStage::Request>& ready, std::vector<RequestOutput>& ended);
  void collect_group(const std::string& request_id, std::vector<RequestOutput>& ended);
  void end_overdue(std::vector<InputStage::Request>& ready, std::vector<RequestOutput>& ended);
  void end_failed(std::vector<InputStage::Request>& ready, std::vector<RequestOutput>& ended);
  bool fall_back(const std::string& request_id, std::vector<InputStage::Request>& ready);
  void lose(const std::string& request_id, const Status& why, std::vector<RequestOutput>& ended);
  const std::string& name_of(const std::string& request_id) const;
  const std::string& request_of(const std::string& name) const;
  bool is_withdrawn(const EcKey& key) const;
  void refuse_withdrawn(const InstanceId& from, const EcKey& key);
  bool take_held(const std::string& request_id, std::span<const EncoderItem> items);
  Asked& begin_asking(const std::string& request_id);
  void ask(const std::string& name, std::span<const EncoderItem> items, TimePoint deadline);
  void stop_waiting(Asked& asked);
  void forget_asked(const std::string& request_id);
  Status check_items(std::span<const EncoderItem> items) const;
  Status check_announced(const std::string& name, std::span<const EncoderItem> items) const;
  bool claim(const std::string& name, std::span<const EncoderItem> items);
  void keep_trace(const InputStage::Request& request);
  InputStage::Request remove(const std::string& request_id);
  RequestOutput output_of(InputStage::Request request, const Status& error) const;

  Options options_;
  const std::string asking_prefix_;  // of names that this instance gives
  Scheduler& scheduler_;
  Executor& executor_;
  const Clock& clock_;
  ExecutorInfo info_;
  EncoderCacheManager cache_;
  EcReceiverTable table_;
  std::shared_ptr<EcInbox> inbox_;
  std::vector<EcEvent> events_;        // of this step
  EcReceiverTable::Outputs outputs_;   // to be performed
  std::vector<std::string> has_news_;  // names of requests with an input that is ready
  std::vector<Lost> failed_;           // asks, by their names
  std::vector<Lost> lost_;
  absl::flat_hash_map<std::string, Awaiting> awaiting_inputs_;
  std::set<Deadline> deadlines_;                          // of awaiting_inputs_, and of groups that wait
  absl::flat_hash_map<std::string, Asked> asked_;         // by their requests
  absl::flat_hash_map<std::string, std::string> askers_;  // by name: the request
  // Of requests for which this instance may ask, until their end.
  absl::flat_hash_map<std::string, std::shared_ptr<const TraceContext>> traces_;
  size_t num_asking_groups_ = 0;
  uint64_t num_asked_ = 0;
  absl::flat_hash_set<std::string> has_uses_;  // requests whose inputs may have uses
  uint64_t next_arrival_ = 0;
};

}  // namespace transept
