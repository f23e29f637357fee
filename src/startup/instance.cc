#include "startup/instance.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "request/request.h"
#include "startup/connect_broker.h"
#include "startup/encoder_part.h"

namespace transept {
namespace {

constexpr size_t kMaxNameBytes = 64;  // a name of a transfer holds it, an incarnation and a number
constexpr Duration kBrokerMayBeAway = std::chrono::seconds(5);

uint64_t draw_incarnation() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

StatusOr<InstanceRole> parse_instance_role(const std::string& role) {
  if (role == "encode") return InstanceRole::kEncode;
  if (role == "decode") return InstanceRole::kDecode;
  if (role == "both") {
    return unimplemented("--role both: an instance encodes or decodes; without --role one does both for itself");
  }
  if (role == "prefill") {
    return unimplemented("--role prefill: the decoder's prompt is short, so decode instances run it themselves");
  }
  return invalid_argument("--role ", role, ": unknown; one of encode, decode");
}

// Encodes of tickets, by this instance's engine. Borrows both.
class Instance::Intake final : public EncodeIntake {
 public:
  Intake(AsyncEngine& engine, const LoadedModel& model) : engine_(engine), model_(model) {}

  StatusOr<EncoderItem> read(const Ticket& /*ticket*/, const std::string& prompt) override {
    ASSIGN_OR_RETURN(const Json json, Json::parse(prompt));
    ASSIGN_OR_RETURN(ParsedRequest parsed, parse_body(json, field_routes::kEncode, {}));
    ASSIGN_OR_RETURN(const std::vector<EncoderDecoderPrompt> prompts, read_prompts(json, 1, parsed.warnings));
    const PromptProcessor::Options options(std::move(parsed.prompt_options));
    ASSIGN_OR_RETURN(EncoderDecoderInputs inputs, model_.prompts->process_encoder(prompts.front(), options));
    if (inputs.items.size() == 1) return std::move(inputs.items.front());
    return unimplemented("a prompt of ", inputs.items.size(), " inputs: one is encoded for a ticket");
  }
  Status encode(const Ticket& ticket, EncoderItem item) override {
    RETURN_IF_ERROR(model_.prompts->check_item(item));
    RequestSpec spec;
    spec.id = id_of(input_of(ticket.key));
    spec.inputs.items.push_back(std::move(item));
    spec.consumer =
        RowsConsumer{ticket.consumer, ticket.key.attempt, ticket.time_left, ticket.key.request_id, ticket.key.input_id};
    StatusOr<RequestStream> stream = engine_.add_request(std::move(spec));
    if (!stream.ok()) return of_engine(stream.status());
    const StatusOr<RequestOutput> output = stream->next();
    if (!output.ok()) return of_engine(output.status());
    return output->encoded_items.size() == 1 ? ok_status() : absl::AbortedError("the encode was aborted");
  }
  void abort(const EcInput& input) override {
    const Status aborted = engine_.abort(id_of(input));  // not found: it has ended, or not begun
  }

 private:
  // Of the engine's request: one for each input. No name of a request has the character.
  static std::string id_of(const EcInput& input) {
    return input.input_id == 0 ? input.request_id : str_cat(input.request_id, "/", input.input_id);
  }
  // An engine that fails or stops says nothing of the input: another instance may encode it.
  Status of_engine(const Status& status) const {
    const Status failure = engine_.failure();
    return failure.ok() ? status : absl::AbortedError(error_message(failure));
  }

  AsyncEngine& engine_;
  const LoadedModel& model_;
};

StatusOr<std::unique_ptr<Instance>> Instance::connect(const Options& options) {
  if (options.name.size() > kMaxNameBytes) {
    return invalid_argument("--instance-name: longer than ", kMaxNameBytes, " characters");
  }
  RETURN_IF_ERROR(check_ec_name("--instance-name", options.name));
  const InstanceId id{options.name, draw_incarnation()};
  const BulkOptions rows{options.bulk, options.bulk_address, options.broker, options.ns, id, options.url};
  if (options.secret == nullptr) RETURN_IF_ERROR(check_without_secret(rows));
  const auto num_too_large = std::make_shared<std::atomic<int64_t>>(0);
  ASSIGN_OR_RETURN(const std::shared_ptr<Broker> broker,
                   connect_broker(options.broker, options.ns, options.wait_for_broker, num_too_large));
  auto writer = std::make_shared<FrameWriter>(id.incarnation, options.secret);
  ASSIGN_OR_RETURN(std::unique_ptr<BulkTransport> bulk, connect_bulk(rows, writer));

  std::unique_ptr<Instance> instance(new Instance(options, id, broker));
  instance->num_too_large_ = num_too_large;
  instance->record_.bulk_address = bulk->address();
  EcConnector::Options connector;
  connector.self = id;
  connector.secret = options.secret;
  connector.grace = options.wait_for_broker;
  instance->connector_ = std::make_unique<EcConnector>(connector, broker, std::move(bulk), writer);
  if (options.role == InstanceRole::kDecode) {
    TicketAsker::Options asker;
    asker.self = id;
    asker.url = options.url;
    asker.secret = options.secret;
    instance->asker_ = std::make_unique<TicketAsker>(asker, broker);
  }
  return instance;
}

Instance::Instance(const Options& options, InstanceId id, std::shared_ptr<Broker> broker)
    : options_(options), id_(std::move(id)), broker_(std::move(broker)) {}

Instance::~Instance() {
  end_work();
  const Status left = broker_->leave(id_);  // a broker that is away forgets it by its time
}

void Instance::begin(AsyncEngine& engine, const LoadedModel& model, std::function<void(const TicketEnd&)> on_ticket) {
  engine_ = &engine;
  if (asker_ != nullptr) {
    for (const auto& [other, what] : model.other_fingerprints) {
      asker_->explain(other, str_cat("an encode instance ", what));
    }
    if (model.config.ec_fallback == "local") asker_->wait_once();
  }
  record_.id = id_;
  record_.role = options_.role;
  record_.url = options_.url;
  record_.model = model.fingerprint;
  if (options_.secret != nullptr) record_.secret_mark = options_.secret->mark();
  announced_ = steady_now();
  announcer_ = std::thread([this] { run_announcer(); });
  if (options_.role != InstanceRole::kEncode) return;
  intake_ = std::make_unique<Intake>(engine, model);
  TicketTaker::Options taker;
  taker.self = id_;
  taker.bulk_address = record_.bulk_address;
  if (!is_local_broker(options_.broker)) taker.busy_look = std::chrono::milliseconds(20);  // a server of many
  taker.model = model.fingerprint;
  taker.client.secret = options_.secret;
  taker.max_positions = model.info.max_num_encoder_tokens;
  taker.on_end = std::move(on_ticket);
  auto takes = std::make_unique<TicketTaker>(taker, broker_, *intake_);
  const MutexLock lock(mutex_);  // the announcer runs
  taker_ = std::move(takes);
}

bool Instance::drain(Duration timeout) {
  const TimePoint end = steady_now() + timeout;
  if (asker_ != nullptr) asker_->begin_drain();
  {
    const MutexLock lock(mutex_);
    is_draining_ = true;
    changed_.notify_all();
    // Told to others before it takes less.
    while (announcer_.joinable() && !has_said_so_ && !is_ended_ && steady_now() < end) {
      (void)changed_.wait_until(mutex_, end);
    }
  }
  return taker_ == nullptr || taker_->drain(end - steady_now());
}

void Instance::end_work() {
  {
    const MutexLock lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  if (announcer_.joinable()) announcer_.join();  // it reads from the taker
  taker_.reset();
}

Status Instance::health() const {
  const TimePoint announced = announced_;
  if (announced == TimePoint::min() || steady_now() - announced < kBrokerMayBeAway) return ok_status();
  return absl::UnavailableError(str_cat("the broker does not answer (--broker ", options_.broker, ")"));
}

InstanceLoad Instance::load() const {
  const EngineSnapshot snapshot = engine_->snapshot();
  InstanceLoad load;
  load.num_queued = snapshot.num_queued;
  load.num_running = static_cast<int64_t>(snapshot.running.size());
  load.num_transfers = snapshot.ec.num_transfers;
  load.num_free_slots = snapshot.ec.num_slots - snapshot.ec.num_reserved_slots - snapshot.ec.num_used_slots;
  return load;
}

InstanceStats Instance::stats() const {
  InstanceStats stats;
  stats.role = options_.role;
  const FrameCounts& frames = connector_->counts();
  for (size_t i = 0; i < FrameCounts::kNumFaults; ++i) {
    const auto fault = static_cast<EcFrameFault>(i);
    const int64_t num_dropped = fault == EcFrameFault::kSize ? num_too_large_->load() : 0;
    stats.frames_refused.emplace_back(transept::name(fault), frames.num_refused(fault) + num_dropped);
  }
  stats.frames_refused.emplace_back("unknown_sender", frames.num_unknown_senders);
  stats.frames_refused.emplace_back("unreserved", frames.num_unreserved);
  stats.frames_refused.emplace_back("gap", frames.num_gaps);
  if (taker_ != nullptr) {
    const TicketTaker::Counts counts = taker_->counts();
    stats.queue = counts.waited;
    stats.num_retries = counts.num_claimed;
  }
  if (asker_ != nullptr) stats.num_retries = asker_->num_offered_again();
  const MutexLock lock(mutex_);
  stats.peers = peers_;
  return stats;
}

// The broker's records are those that all see, so this one is among them.
void Instance::look_at_peers() {
  const auto records = broker_->peers();
  if (!records.ok()) return;
  PeerCounts counts;
  for (const InstanceRecord& record : *records) {
    const auto state = record.is_draining                          ? PeerCounts::kDraining
                       : record.model != record_.model             ? PeerCounts::kOtherModel
                       : record.secret_mark != record_.secret_mark ? PeerCounts::kOtherSecret
                                                                   : PeerCounts::kReady;
    ++counts.by_role[static_cast<size_t>(record.role)][state];
  }
  const MutexLock lock(mutex_);
  peers_ = counts;
}

void Instance::renew_record() {
  record_.load = load();
  LastError error;
  {
    const MutexLock lock(mutex_);
    if (taker_ != nullptr) error = taker_->last_error();
  }
  if (asker_ != nullptr) error = asker_->last_error();
  record_.last_error = error.message.substr(0, InstanceRecord::kMaxErrorBytes);
  record_.last_error_age = error.message.empty() ? Duration::zero() : steady_now() - error.at;
}

void Instance::run_announcer() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (is_ended_) return;
      record_.is_draining = is_draining_;
    }
    renew_record();
    const Status announced = broker_->announce(record_, options_.record_ttl);
    if (announced.ok()) {
      announced_ = steady_now();
    } else if (!absl::IsUnavailable(announced)) {
      log_warning("this instance is not known to others: ", error_message(announced));
    }
    look_at_peers();
    const MutexLock lock(mutex_);
    has_said_so_ = record_.is_draining;
    changed_.notify_all();
    const TimePoint next = steady_now() + options_.announce_every;
    while (!is_ended_ && has_said_so_ == is_draining_ && steady_now() < next) (void)changed_.wait_until(mutex_, next);
  }
}

}  // namespace transept
