#include "async/async_engine.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/check.h"

namespace transept {
namespace {

std::vector<std::unique_ptr<StepEngine>> list_of(std::unique_ptr<StepEngine> engine) {
  std::vector<std::unique_ptr<StepEngine>> engines;
  engines.push_back(std::move(engine));
  return engines;
}

std::vector<std::unique_ptr<StepEngine>> list_of(std::vector<std::unique_ptr<LLMEngine>> replicas) {
  std::vector<std::unique_ptr<StepEngine>> engines;
  engines.reserve(replicas.size());
  for (std::unique_ptr<LLMEngine>& engine : replicas) engines.push_back(std::move(engine));
  return engines;
}

// By which requests with the same items find each other's replica.
std::optional<ContentDigest> first_digest(const EncoderDecoderInputs& inputs) {
  return inputs.items.empty() ? std::nullopt : inputs.items.front().digest;
}

}  // namespace

// ---- RequestStream

RequestStream& RequestStream::operator=(RequestStream&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  channel_ = std::move(other.channel_);
  mailbox_ = std::move(other.mailbox_);
  return *this;
}

void RequestStream::let_go() {
  if (channel_ != nullptr && channel_->close()) mailbox_->abort(channel_);
  channel_ = nullptr;
}

// ---- AsyncEngine

AsyncEngine::AsyncEngine(std::unique_ptr<LLMEngine> engine, const Options& options, const Clock& clock)
    : AsyncEngine(list_of(std::move(engine)), options, clock) {}

AsyncEngine::AsyncEngine(std::unique_ptr<EncoderEngine> engine, const Options& options, const Clock& clock)
    : AsyncEngine(list_of(std::move(engine)), options, clock) {}

AsyncEngine::AsyncEngine(std::vector<std::unique_ptr<LLMEngine>> replicas, const Options& options, const Clock& clock)
    : AsyncEngine(list_of(std::move(replicas)), options, clock) {}

AsyncEngine::AsyncEngine(std::vector<std::unique_ptr<StepEngine>> replicas, const Options& options, const Clock& clock)
    : clock_(clock), shares_identical_inputs_(!replicas.empty() && replicas.front()->shares_identical_inputs()) {
  CHECK(!replicas.empty(), "there is no engine");
  for (std::unique_ptr<StepEngine>& engine : replicas) {
    replicas_.push_back(std::make_unique<EngineThread>(std::move(engine), options.max_queued_requests, clock));
  }
}

AsyncEngine::~AsyncEngine() {
  for (const auto& replica : replicas_) replica->ask_to_stop();
}

StatusOr<RequestStream> AsyncEngine::add_request(RequestSpec spec) {
  auto channel = std::make_shared<RequestChannel>(std::move(spec.id), std::move(spec.on_ready));
  const TimePoint now = clock_.now();
  EngineMailbox::NewRequest request{.channel = channel,
                                    .encoded = std::move(spec.encoded),
                                    .inputs = std::move(spec.inputs),
                                    .params = std::move(spec.params),
                                    .options = {.stream = spec.stream,
                                                .arrival_time = now,
                                                .deadline = spec.deadline,
                                                .priority = spec.priority,
                                                .consumer = spec.consumer,
                                                .trace = std::move(spec.trace)},
                                    .arrival = now,
                                    .deadline = spec.deadline,
                                    .is_continuation = spec.is_continuation};
  if (!request.encoded.has_value()) make_digest(request.inputs);
  if (replicas_.size() > 1) return dispatch(std::move(request));
  const std::shared_ptr<EngineMailbox>& mailbox = replicas_.front()->mailbox();
  RETURN_IF_ERROR(mailbox->add(std::move(request)));
  return RequestStream(std::move(channel), mailbox);
}

// The queue and the ids are of all replicas together.
StatusOr<RequestStream> AsyncEngine::dispatch(EngineMailbox::NewRequest request) {
  RETURN_IF_ERROR(failure());
  const std::shared_ptr<RequestChannel> channel = request.channel;
  request.load = load_of(request);
  const MutexLock lock(dispatching_);
  const size_t taker = request.encoded.has_value() ? owner_of(request.encoded) : choose(request.load);
  int32_t num_queued_elsewhere = 0;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    if (i == taker) continue;
    const EngineMailbox& other = *replicas_[i]->mailbox();
    if (other.has(channel->request_id())) return id_is_taken(channel->request_id());
    num_queued_elsewhere += other.num_queued();
  }
  const std::shared_ptr<EngineMailbox>& mailbox = replicas_[taker]->mailbox();
  RETURN_IF_ERROR(mailbox->add(std::move(request), num_queued_elsewhere));
  next_replica_ = taker + 1;
  return RequestStream(channel, mailbox);
}

RequestLoad AsyncEngine::load_of(const EngineMailbox::NewRequest& request) const {
  const int64_t num_encoder_tokens =
      request.encoded.has_value() ? num_positions(request.encoded.items()) : request.inputs.num_encoder_tokens();
  return {.num_tokens = num_expected_tokens(request.inputs, num_encoder_tokens, request.params),
          .content = first_digest(request.inputs)};
}

// On the caller's thread: no engine's waits for it.
void AsyncEngine::make_digest(EncoderDecoderInputs& inputs) const {
  if (shares_identical_inputs_) inputs.make_digests();
}

size_t AsyncEngine::choose(const RequestLoad& load) const {
  std::vector<ReplicaLoad> loads;
  loads.reserve(replicas_.size());
  for (const auto& replica : replicas_) loads.push_back(replica->mailbox()->load(load.content));
  return choose_replica(loads, load.num_tokens, next_replica_);
}

// A handle that is nobody's is refused by the first.
size_t AsyncEngine::owner_of(const EncodedInput& handle) const {
  for (size_t i = 0; i < replicas_.size(); ++i) {
    if (replicas_[i]->owns(handle)) return i;
  }
  return 0;
}

std::string AsyncEngine::make_id(std::string_view prefix) {
  return str_cat(prefix, next_id_.fetch_add(1, std::memory_order_relaxed));
}

std::future<StatusOr<EncodedInput>> AsyncEngine::encode(EncoderDecoderInputs inputs) {
  size_t taker = 0;
  make_digest(inputs);
  if (replicas_.size() > 1) {
    const RequestLoad load{.num_tokens = inputs.num_encoder_tokens(), .content = first_digest(inputs)};
    const MutexLock lock(dispatching_);
    taker = choose(load);
    next_replica_ = taker + 1;
  }
  EngineMailbox::EncodeCall call{std::move(inputs), {}};
  std::future<StatusOr<EncodedInput>> handle = call.handle.get_future();
  replicas_[taker]->mailbox()->encode(std::move(call));
  return handle;
}

int64_t AsyncEngine::clear_cache() {
  std::vector<std::future<int64_t>> cleared;
  for (const auto& replica : replicas_) cleared.push_back(replica->mailbox()->clear_cache());
  int64_t sum = 0;
  for (std::future<int64_t>& count : cleared) sum += count.get();
  return sum;
}

Status AsyncEngine::abort(const std::string& request_id) {
  for (const auto& replica : replicas_) {
    if (replica->mailbox()->abort(request_id)) return ok_status();
  }
  return not_found("no request \"", request_id, "\" is in flight");
}

Status AsyncEngine::drain(Duration timeout) {
  for (const auto& replica : replicas_) replica->mailbox()->refuse_new_requests();
  const auto end = std::chrono::steady_clock::now() + timeout;
  int32_t num_left = 0;
  for (const auto& replica : replicas_) {
    const auto left = std::max<Duration>(end - std::chrono::steady_clock::now(), Duration::zero());
    if (!replica->mailbox()->wait_until_idle(left)) num_left += replica->mailbox()->num_in_flight();
  }
  if (num_left == 0) return ok_status();
  return absl::DeadlineExceededError(str_cat(num_left, " requests were not finished within ", seconds_text(timeout)));
}

template <typename Engine>
std::vector<std::unique_ptr<Engine>> AsyncEngine::stop_engines() {
  for (const auto& replica : replicas_) replica->ask_to_stop();
  std::vector<std::unique_ptr<Engine>> engines;
  for (const auto& replica : replicas_) {
    std::unique_ptr<StepEngine> engine = replica->stop();
    CHECK(dynamic_cast<Engine*>(engine.get()) != nullptr, "the engine is of another kind");
    engines.emplace_back(static_cast<Engine*>(engine.release()));
  }
  return engines;
}

std::unique_ptr<LLMEngine> AsyncEngine::stop() {
  CHECK(replicas_.size() == 1, "stop_all() gives several engines back");
  return std::move(stop_all().front());
}

std::vector<std::unique_ptr<LLMEngine>> AsyncEngine::stop_all() { return stop_engines<LLMEngine>(); }

std::unique_ptr<EncoderEngine> AsyncEngine::stop_encoder() { return std::move(stop_engines<EncoderEngine>().front()); }

void AsyncEngine::give_up(const Status& error) {
  for (const auto& replica : replicas_) replica->mailbox()->give_up(error);
}

Status AsyncEngine::failure() const {
  for (const auto& replica : replicas_) RETURN_IF_ERROR(replica->mailbox()->failure());
  return ok_status();
}

int32_t AsyncEngine::num_queued() const {
  int32_t sum = 0;
  for (const auto& replica : replicas_) sum += replica->mailbox()->num_queued();
  return sum;
}

std::vector<EngineSnapshot> AsyncEngine::snapshots() const {
  std::vector<EngineSnapshot> snapshots;
  snapshots.reserve(replicas_.size());
  // Nobody adds in between: requests that one replica has finished and others that the next was given meanwhile would
  // be more than ever were there.
  const MutexLock lock(dispatching_);
  for (const auto& replica : replicas_) snapshots.push_back(replica->mailbox()->snapshot());
  return snapshots;
}

}  // namespace transept
