#include "engine/encoder_engine.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "rank/check_plan.h"
#include "scheduling/plan_item.h"

namespace transept {

namespace {

const std::string& name_of(const std::string& request_id, const RowsConsumer& consumer) {
  return consumer.name.empty() ? request_id : consumer.name;
}

}  // namespace

EncoderEngine::Options EncoderEngine::Options::of(const ExecutorInfo& info) {
  Options options;
  options.scheduler.max_num_encoder_tokens = info.max_num_encoder_tokens;
  options.scheduler.max_num_seqs = info.max_num_seqs;
  return options;
}

EncoderEngine::EncoderEngine(const Options& options, std::unique_ptr<Executor> executor,
                             EncoderCacheConnector& connector, const Clock& clock)
    : options_(options),
      executor_(std::move(executor)),
      connector_(connector),
      clock_(clock),
      scheduler_(options.scheduler),
      senders_(options.senders) {
  CHECK(executor_->info().spec.part == ModelPart::kEncoder, "an encode instance has the encoder's part alone");
}

EncoderEngine::~EncoderEngine() = default;

void EncoderEngine::start(std::function<void()> wake) {
  executor_->enter_thread();
  // A message for each transfer, and as many that come again.
  inbox_ = std::make_shared<EcInbox>(2 * options_.senders.max_transfers, std::move(wake));
  connector_.start(inbox_);
}

// ---- Requests

Status EncoderEngine::check(const std::string& request_id, const std::vector<EncoderItem>& items,
                            const RowsConsumer& consumer) const {
  const std::string& name = name_of(request_id, consumer);
  RETURN_IF_ERROR(check_ec_name("request_id", name));
  if (requests_.contains(request_id)) {
    return absl::AlreadyExistsError(str_cat("a request \"", request_id, "\" is in flight already"));
  }
  if (items.size() > size_t{std::numeric_limits<uint32_t>::max() - consumer.first_input}) {
    return field_error("input_id", "the request has more inputs than can be counted");
  }
  for (uint32_t i = 0; i < items.size(); ++i) {
    const EcInput input{name, consumer.first_input + i};
    if (!senders_.has(input)) continue;
    return absl::AlreadyExistsError(
        str_cat("input ", input.input_id, " of a request \"", name, "\" is in flight already"));
  }
  if (num_unfinished_requests() >= static_cast<size_t>(options_.max_requests)) {
    return resource_exhausted(num_unfinished_requests(), " requests are in flight, and at most ", options_.max_requests,
                              " may be (--max-queued-requests)");
  }
  if (senders_.num_transfers() + items.size() > options_.senders.max_transfers) {
    return resource_exhausted(senders_.num_transfers(), " outputs are in flight, and the request has ", items.size(),
                              ": at most ", options_.senders.max_transfers, " may be");
  }
  if (items.empty()) return field_error("items", "the request has nothing to encode");
  for (const EncoderItem& item : items) RETURN_IF_ERROR(check_item(item));
  return ok_status();
}

// What comes from another process is checked as a plan of it alone would be, before it shares a step with others.
Status EncoderEngine::check_item(const EncoderItem& item) const {
  const ExecutorInfo& info = executor_->info();
  if ((item.consumers & info.spec.consumers()) != item.consumers || item.consumers == Consumers::kNone) {
    return field_error("items", "an item's rows have a use that this model does not have");
  }
  const auto elements = checked_mul<int64_t>(item.num_positions(), info.spec.width_of(item.consumers));
  const auto bytes =
      elements ? checked_mul<int64_t>(*elements, static_cast<int64_t>(dtype_bytes(options_.dtype))) : std::nullopt;
  if (!bytes) return field_error("items", "an item has more rows than can be counted");
  RETURN_IF_ERROR(scheduler_.check(item, static_cast<uint64_t>(*bytes)));
  StepPlan alone;
  PlannedEncode& encode = alone.scheduled.encodes.push();
  encode.group_id = GroupId(1);
  plan_item(item, encode, alone.scheduled.bulk);
  const Status checked = check_plan(alone, info);
  return checked.ok() ? checked : field_error("items", error_message(checked));
}

EcMeta EncoderEngine::meta_of(const EcInput& input, const EncoderItem& item, const RowsConsumer& consumer) const {
  EcMeta meta;
  meta.key = {input.request_id, input.input_id, consumer.attempt};
  meta.digest = *item.digest;
  meta.model = options_.model;
  meta.num_positions = item.num_positions();
  meta.width = executor_->info().spec.width_of(item.consumers);
  meta.dtype = options_.dtype;
  meta.place = {has(item.consumers, Consumers::kSplice) ? item.splice_offset : 0, item.num_positions(), {}};
  meta.time_left = consumer.time_left;
  return meta;
}

Status EncoderEngine::add_request(const std::string& request_id, std::vector<EncoderItem> items,
                                  const RowsConsumer& consumer) {
  RETURN_IF_ERROR(check(request_id, items, consumer));
  make_digests(items, {});
  std::vector<EcMeta> metas;
  for (const EncoderItem& item : items) {
    const EcInput input{name_of(request_id, consumer), consumer.first_input + static_cast<uint32_t>(metas.size())};
    metas.push_back(meta_of(input, item, consumer));
    RETURN_IF_ERROR(check_ec_meta(metas.back()));
  }
  const TimePoint now = clock_.now();
  InFlight& request = requests_[request_id];
  request.arrival = now;
  for (size_t i = 0; i < items.size(); ++i) {
    const GroupId id(next_id_++);
    const EncodedItem encoded{*items[i].digest, metas[i].num_positions, metas[i].place.offset};
    request.items.push_back({id, encoded});
    inputs_.emplace(id, input_of(metas[i].key));
    places_.emplace(input_of(metas[i].key), Place{request_id, i});
    const uint64_t num_bytes = ec_payload_bytes(metas[i]);
    scheduler_.add(id, std::move(items[i]), num_bytes);
    const Status added = senders_.add(consumer.instance, std::move(metas[i]), now, wanted_);
    CHECK(added.ok(), error_message(added));  // check() has asked what it refuses
  }
  is_stuck_ = false;
  return ok_status();
}

Status EncoderEngine::add(Request request) {
  if (request.encoded.has_value()) return field_error("encoded_input", "an encode instance keeps no handles of inputs");
  if (!request.options.consumer.has_value()) {
    return field_error("consumer",
                       "this is an encode instance: a request names the decode instance that gets its rows");
  }
  return add_request(request.id, std::move(request.inputs.items), *request.options.consumer);
}

StatusOr<RequestOutput> EncoderEngine::abort_request(const std::string& request_id) {
  if (!requests_.contains(request_id)) return not_found("no request \"", request_id, "\" is in flight");
  ++stats_.num_aborted;
  const TimePoint now = clock_.now();
  stop_sending(request_id, now);
  RequestOutput output = end(request_id);
  // Done at once: what its senders answer must not meet a new request of this name.
  perform(now, finished_);
  return output;
}

void EncoderEngine::stop_sending(const std::string& request_id, TimePoint now) {
  for (const Item& item : requests_.at(request_id).items) senders_.abort(inputs_.at(item.id), now, wanted_);
}

// Forgets a request.
RequestOutput EncoderEngine::end(const std::string& request_id) {
  const auto found = requests_.find(request_id);
  RequestOutput output;
  output.request_id = request_id;
  output.finished = true;
  output.metrics.total_s = seconds(clock_.now() - found->second.arrival);
  for (const Item& item : found->second.items) {
    if (item.is_there) output.encoded_items.push_back(item.encoded);
    scheduler_.remove(item.id);
    const auto input = inputs_.find(item.id);
    places_.erase(input->second);
    inputs_.erase(input);
  }
  requests_.erase(found);
  is_stuck_ = false;
  return output;
}

// ---- A step

Status EncoderEngine::step(std::vector<RequestOutput>& outputs) {
  const TimePoint begin = clock_.now();
  TimePoint now = begin;
  std::ranges::move(finished_, std::back_inserter(outputs));
  finished_.clear();
  take_events(now);
  senders_.on_time(now, wanted_);
  perform(now, outputs);
  if (schedule(now)) {
    RETURN_IF_ERROR(execute());
    now = clock_.now();
    update(now);
  }
  perform(now, outputs);
  stats_.step_seconds += seconds(clock_.now() - begin);
  return ok_status();
}

void EncoderEngine::describe(EngineState& state) const {
  state.running.clear();
  state.waiting.clear();
  state.swapped.clear();
  for (const auto& [id, request] : requests_) state.running.push_back(id);
  state.blocks = {};
  state.num_queued = static_cast<int32_t>(scheduler_.num_waiting());
  state.stats = {};
  state.stats.num_steps = stats_.num_steps;
  state.stats.num_encoder_tokens = stats_.num_encoder_tokens;
  state.stats.num_encoder_cache_hits = scheduler_.num_hits();
  state.stats.encode_seconds = stats_.encode_seconds;
  state.stats.step_seconds = stats_.step_seconds;
  state.executor = executor_->stats();
  state.ec = ec_stats();
}

// Slots are positions of the model's width, though an item with other uses may have narrower rows.
EcStats EncoderEngine::ec_stats() const {
  EcStats stats = senders_.stats();
  stats.seconds[static_cast<size_t>(EcPhase::kEncode)] = encodes_;
  stats.num_hits = scheduler_.num_hits();
  stats.num_transfers = static_cast<int64_t>(senders_.num_transfers());
  stats.num_dropped_messages = num_dropped_messages();
  const ModelSpec& spec = executor_->info().spec;
  const auto row_bytes = static_cast<uint64_t>(spec.width_of(spec.consumers())) * dtype_bytes(options_.dtype);
  const EncodedOutputs& outputs = scheduler_.outputs();
  stats.num_slots = static_cast<int64_t>(outputs.max_bytes() / row_bytes);
  stats.num_reserved_slots = static_cast<int64_t>(outputs.unmade_bytes() / row_bytes);
  stats.num_used_slots = static_cast<int64_t>((outputs.used_bytes() - outputs.unmade_bytes()) / row_bytes);
  return stats;
}

TimePoint EncoderEngine::next_step_time() const {
  const bool has_events = inbox_ != nullptr && !inbox_->is_empty();
  const bool has_work = scheduler_.num_waiting() > 0 && !is_stuck_;
  return has_events || has_work || !wanted_.empty() || !finished_.empty() ? TimePoint::min() : senders_.next_time();
}

void EncoderEngine::take_events(TimePoint now) {
  if (inbox_ == nullptr) return;
  inbox_->take(options_.max_events, events_);
  for (const EcEvent& event : events_) take(event, now);
  events_.clear();
}

void EncoderEngine::take(const EcEvent& event, TimePoint now) {
  if (const auto* message = std::get_if<EcPeerMessage>(&event)) return take_message(*message, now);
  if (const auto* sending = std::get_if<EcSendEvent>(&event)) {
    return senders_.on_transport(sending->event, sending->key, now, wanted_);
  }
  if (const auto* path = std::get_if<EcPathEvent>(&event)) return senders_.on_path(path->is_away, now);
  if (const auto* gone = std::get_if<EcPeerGone>(&event)) return senders_.on_peer_gone(gone->peer, now, wanted_);
}

void EncoderEngine::take_message(const EcPeerMessage& message, TimePoint now) {
  if (const auto* allocation = std::get_if<EcAllocation>(&message.message)) {
    senders_.on_allocation(message.from, *allocation, now, wanted_);
  } else if (const auto* injection = std::get_if<EcInjection>(&message.message)) {
    senders_.on_injection(message.from, *injection, now, wanted_);
  } else if (const auto* cancel = std::get_if<EcCancel>(&message.message)) {
    if (cancel->channel == EcChannel::kAllocation) senders_.on_cancel(message.from, cancel->key, now, wanted_);
  }
}

void EncoderEngine::perform(TimePoint now, std::vector<RequestOutput>& outputs) {
  // An answer may want more: the list grows while it is done.
  for (size_t i = 0; i < wanted_.size(); ++i) {
    const EcSenderOutput wanted = std::move(wanted_[i]);
    switch (wanted.action) {
      case EcSenderAction::kSendMetadata: connector_.send(wanted.to, wanted.meta); break;
      case EcSenderAction::kSendQuery: connector_.send(wanted.to, EcQuery{wanted.meta.key}); break;
      case EcSenderAction::kSendCancel:
        connector_.send(wanted.to, EcCancel{wanted.meta.key, EcChannel::kMetadata});
        break;
      case EcSenderAction::kSendCache: send_rows(wanted); break;
      case EcSenderAction::kStopSending: connector_.stop_sending(input_of(wanted.meta.key)); break;
      case EcSenderAction::kAnswer: answer(input_of(wanted.meta.key), wanted.status, now, outputs); break;
    }
  }
  wanted_.clear();
}

void EncoderEngine::send_rows(const EcSenderOutput& output) {
  const auto place = places_.find(input_of(output.meta.key));
  if (place == places_.end()) return;  // its request has ended since, and so has the sender
  EcRows rows = scheduler_.rows_of(requests_.at(place->second.request_id).items[place->second.index].id);
  CHECK(rows != nullptr, "an output is sent before it was made");
  ++stats_.num_sent;
  connector_.send_rows(output.to, output.meta.key, output.reservation, output.bulk_address, std::move(rows));
}

void EncoderEngine::answer(const EcInput& input, const Status& status, TimePoint now,
                           std::vector<RequestOutput>& outputs) {
  const auto place = places_.find(input);
  if (place == places_.end()) return;  // another item has failed, or it was aborted
  const std::string request_id = place->second.request_id;
  InFlight& request = requests_.at(request_id);
  if (status.ok()) {
    ++stats_.num_injected;
    Item& item = request.items[place->second.index];
    item.is_there = true;
    item.encoded.seconds = seconds(now - request.arrival);
    scheduler_.remove(item.id);
    is_stuck_ = false;
    if (++request.num_there == request.items.size()) outputs.push_back(end(request_id));
    return;
  }
  ++stats_.num_failed;
  stop_sending(request_id, now);
  RequestOutput output = end(request_id);
  output.error = error_message(status);
  output.error_code = status.code();
  outputs.push_back(std::move(output));
}

// False: there is nothing to encode.
bool EncoderEngine::schedule(TimePoint now) {
  scheduler_.schedule(plan_.scheduled);
  const bool encodes = !plan_.scheduled.encodes.empty();
  scheduler_.take_ready(ready_);
  for (const GroupId id : ready_) senders_.on_encoded(inputs_.at(id), now, wanted_);
  is_stuck_ = !encodes && scheduler_.num_waiting() > 0;
  return encodes;
}

Status EncoderEngine::execute() {
  plan_.step = static_cast<uint64_t>(stats_.num_steps++);
  plan_.encoder_captures.clear();
  for (const PlannedEncode& encode : plan_.scheduled.encodes) plan_.encoder_captures.push_back(encode.group_id);
  RETURN_IF_ERROR(executor_->submit(plan_));
  return executor_->collect(plan_.step, output_);
}

void EncoderEngine::update(TimePoint now) {
  const SchedulerOutputs& scheduled = plan_.scheduled;
  CHECK(output_.captured_encodes.size() == scheduled.encodes.size(), "an encode without rows");
  for (CapturedEncode& captured : output_.captured_encodes) {
    scheduler_.mark_encoded(captured.group_id, to_rows(std::move(captured.values)));
  }
  output_.captured_encodes.clear();
  scheduler_.take_ready(ready_);
  for (const GroupId id : ready_) senders_.on_encoded(inputs_.at(id), now, wanted_);
  const auto num_items = static_cast<int64_t>(scheduled.encodes.size());
  stats_.num_encoded_items += num_items;
  stats_.num_encoder_tokens += scheduled.num_encoder_tokens;
  stats_.max_step_items = std::max(stats_.max_step_items, num_items);
  stats_.encode_seconds += output_.encode_seconds;
  const auto took = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(output_.encode_seconds));
  for (int64_t i = 0; i < num_items; ++i) encodes_.observe(took);
}

EcRows EncoderEngine::to_rows(std::vector<float> values) const {
  if (options_.dtype == DType::kFloat32) return make_ec_rows(std::move(values));
  std::vector<uint16_t> rows(values.size());
  std::ranges::transform(values, rows.begin(), float_to_bfloat16);
  return make_ec_rows(std::move(rows));
}

}  // namespace transept
