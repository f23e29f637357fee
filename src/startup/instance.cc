#include "startup/instance.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/log.h"
#include "startup/connect_broker.h"
#include "startup/encoder_part.h"

namespace transept {
namespace {

constexpr size_t kMaxNameBytes = 64;  // a name of a transfer holds it, an incarnation and a number
constexpr Duration kBrokerMayBeAway = std::chrono::seconds(5);

TimePoint steady_now() { return std::chrono::steady_clock::now(); }

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

// Encodes of tickets, by this instance's engine.
class Instance::Intake final : public EncodeIntake {
 public:
  explicit Intake(AsyncEngine& engine) : engine_(engine) {}

  Status encode(const Ticket& ticket, EncoderItem item) override {
    if (ticket.key.input_id != 0) {
      return unimplemented("a ticket of input ", ticket.key.input_id,
                           ": of a request the first input alone is encoded");
    }
    RequestSpec spec;
    spec.id = ticket.key.request_id;
    spec.inputs.items.push_back(std::move(item));
    spec.consumer = RowsConsumer{ticket.consumer, ticket.key.attempt, ticket.time_left};
    StatusOr<RequestStream> stream = engine_.add_request(std::move(spec));
    if (!stream.ok()) return of_engine(stream.status());
    const StatusOr<RequestOutput> output = stream->next();
    if (!output.ok()) return of_engine(output.status());
    return output->encoded_items.size() == 1 ? ok_status() : absl::AbortedError("the encode was aborted");
  }
  void abort(const EcInput& input) override {
    const Status aborted = engine_.abort(input.request_id);  // not found: it has ended, or not begun
  }

 private:
  // An engine that fails or stops says nothing of the input: another instance may encode it.
  Status of_engine(const Status& status) const {
    const Status failure = engine_.failure();
    return failure.ok() ? status : absl::AbortedError(error_message(failure));
  }

  AsyncEngine& engine_;
};

StatusOr<std::unique_ptr<Instance>> Instance::connect(const Options& options) {
  if (options.name.size() > kMaxNameBytes) {
    return invalid_argument("--instance-name: longer than ", kMaxNameBytes, " characters");
  }
  RETURN_IF_ERROR(check_ec_name("--instance-name", options.name));
  ASSIGN_OR_RETURN(const std::shared_ptr<Broker> broker,
                   connect_broker(options.broker, options.ns, options.wait_for_broker));
  const InstanceId id{options.name, draw_incarnation()};
  auto writer = std::make_shared<FrameWriter>(id.incarnation, options.secret);
  ASSIGN_OR_RETURN(
      std::unique_ptr<BulkTransport> bulk,
      connect_bulk({options.bulk, options.bulk_address, options.broker, options.ns, id, options.url}, writer));

  std::unique_ptr<Instance> instance(new Instance(options, id, broker));
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

void Instance::begin(AsyncEngine& engine, const LoadedModel& model) {
  engine_ = &engine;
  if (asker_ != nullptr) {
    const ModelFingerprint& other = model.fingerprint_of_other_dtype;
    asker_->explain(other, explain_other_model(model, other, "an encode instance"));
    if (model.config.ec_fallback == "local") asker_->wait_once();
  }
  record_.id = id_;
  record_.role = options_.role;
  record_.url = options_.url;
  record_.model = model.fingerprint;
  announced_ = steady_now();
  announcer_ = std::thread([this] { run_announcer(); });
  if (options_.role != InstanceRole::kEncode) return;
  intake_ = std::make_unique<Intake>(engine);
  TicketTaker::Options taker;
  taker.self = id_;
  taker.model = model.fingerprint;
  taker.client.secret = options_.secret;
  taker.max_positions = model.info.max_num_encoder_tokens;
  taker_ = std::make_unique<TicketTaker>(taker, broker_, *intake_);
}

bool Instance::drain(Duration timeout) { return taker_ == nullptr || taker_->drain(timeout); }

void Instance::end_work() {
  {
    const MutexLock lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  taker_.reset();
  if (announcer_.joinable()) announcer_.join();
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
  return load;
}

void Instance::run_announcer() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (is_ended_) return;
    }
    record_.load = load();
    const Status announced = broker_->announce(record_, options_.record_ttl);
    if (announced.ok()) {
      announced_ = steady_now();
    } else if (!absl::IsUnavailable(announced)) {
      log_warning("this instance is not known to others: ", error_message(announced));
    }
    const MutexLock lock(mutex_);
    const TimePoint next = steady_now() + options_.announce_every;
    while (!is_ended_ && steady_now() < next) (void)changed_.wait_until(mutex_, next);
  }
}

}  // namespace transept
