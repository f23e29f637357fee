#include "engine/remote_inputs.h"

#include <algorithm>
#include <random>
#include <variant>

#include "base/check.h"
#include "rank/largest_step.h"

namespace transept {
namespace {

constexpr size_t kEventsAtOnce = 16;  // between two looks at the clock

uint64_t draw_of_system() {
  std::random_device device;  // of /dev/urandom or the processor
  return uint64_t{device()} << 32 | device();
}

EcReceiverTable::Options table_options(const RemoteInputs::Options& options, const ExecutorInfo& info) {
  EcReceiverTable::Options table;
  table.model = options.model;
  for (const Consumers kind : kinds_of_items(info.spec)) table.widths.push_back(info.spec.width_of(kind));
  table.dtype = options.dtype;
  table.bulk_address = options.connector->bulk_address();
  table.times = options.times;
  table.max_waiting = options.max_waiting;
  table.max_transfers = options.max_transfers;
  return table;
}

template <typename... Why>
Status refuse(const Why&... why) {
  return field_error("encoded_inputs", str_cat(why...));
}

// Names of what an instance asks for: NAME.INCARNATION.NUMBER.
std::string prefix_of(const InstanceId& self) {
  return str_cat(self.name.substr(0, kMaxEcNameBytes / 2), ".", self.incarnation, ".");
}

}  // namespace

Status RemoteInputs::check(const Options& options, Executor& executor) {
  const ExecutorInfo& info = executor.info();
  if (info.rows_spec < 0) return unimplemented("the ranks keep no rows of items that are encoded elsewhere");
  if (options.dtype != info.rows_dtype) {
    return invalid_argument("--ec-transfer-dtype ", dtype_name(options.dtype), ": the ranks keep rows as ",
                            dtype_name(info.rows_dtype));
  }
  if (options.falls_back && !has_encoder(info.spec.part)) {
    return invalid_argument("--ec-fallback local: the ranks have no encoder");
  }
  return executor.row_places({}, 0, 0).status();
}

RemoteInputs::RemoteInputs(Options options, Scheduler& scheduler, Executor& executor, const Clock& clock)
    : options_(std::move(options)),
      asking_prefix_(prefix_of(options_.connector->self())),
      scheduler_(scheduler),
      executor_(executor),
      clock_(clock),
      info_(executor.info()),
      cache_(scheduler.reservable_blocks(), info_.rows_spec),
      table_(cache_, table_options(options_, info_), options_.draw != nullptr ? options_.draw : draw_of_system),
      inbox_(std::make_shared<EcInbox>(options_.max_messages, nullptr)) {
  info_.packed_layers.clear();
  info_.report.clear();
  options_.connector->start(inbox_);
  if (options_.asker != nullptr) options_.asker->start(inbox_);
}

// ---- What came

void RemoteInputs::maybe_allocate_recvd_metadata(std::vector<InputStage::Request>& ready,
                                                 std::vector<RequestOutput>& ended) {
  take_events();
  collect_ready(ready, ended);
  end_failed(ready, ended);
  end_overdue(ready, ended);
}

void RemoteInputs::take_events() {
  const TimePoint begin = clock_.now();
  TimePoint now = begin;
  size_t num_taken = 0;
  while (num_taken < kMaxEvents && now - begin < kMaxTime) {
    inbox_->take(std::min(kEventsAtOnce, kMaxEvents - num_taken), events_);
    if (events_.empty()) break;
    num_taken += events_.size();
    for (const EcEvent& event : events_) handle(event, now);
    perform();
    now = clock_.now();
  }
  if (table_.next_time() <= now) table_.on_time(now, outputs_, kMaxEvents);
  if (table_.num_waiting() > 0) table_.allocate_waiting(now, kMaxEvents, outputs_);
  perform();
}

void RemoteInputs::handle(const EcEvent& event, TimePoint now) {
  if (const auto* message = std::get_if<EcPeerMessage>(&event)) return handle_message(*message, now);
  if (const auto* failed = std::get_if<EcAskFailed>(&event)) {
    failed_.push_back({.request_id = failed->input.request_id, .why = failed->why});
    return;
  }
  if (const auto* path = std::get_if<EcPathEvent>(&event)) {
    if (!path->is_away && options_.asker != nullptr) options_.asker->ask_again();
    return;
  }
  const auto* sink = std::get_if<EcSinkEvent>(&event);
  if (sink == nullptr) return;  // of senders; a peer that has gone is found by its lease
  switch (sink->kind) {
    case EcSinkEvent::Kind::kChunk: return table_.on_chunk(sink->reservation, now);
    case EcSinkEvent::Kind::kComplete: return table_.on_complete(sink->reservation, now, outputs_);
    case EcSinkEvent::Kind::kClosed: return table_.on_sink_closed(sink->reservation, now, outputs_);
  }
}

void RemoteInputs::handle_message(const EcPeerMessage& message, TimePoint now) {
  if (const auto* meta = std::get_if<EcMeta>(&message.message)) {
    if (!check_ec_meta(*meta).ok()) return;
    if (is_withdrawn(meta->key)) return refuse_withdrawn(message.from, meta->key);
    table_.on_metadata(message.from, *meta, now, outputs_, askers_.contains(meta->key.request_id));
  } else if (const auto* query = std::get_if<EcQuery>(&message.message)) {
    table_.on_query(message.from, query->key, now, outputs_);
  } else if (const auto* cancel = std::get_if<EcCancel>(&message.message)) {
    if (cancel->channel == EcChannel::kMetadata) table_.on_cancel(message.from, cancel->key, now, outputs_);
  }
}

// Empties outputs_.
void RemoteInputs::perform() {
  for (const EcReceiverOutput& output : outputs_) perform(output);
  outputs_.clear();
}

void RemoteInputs::perform(const EcReceiverOutput& output) {
  using Kind = EcReceiverOutput::Kind;
  EncoderCacheConnector& connector = *options_.connector;
  switch (output.kind) {
    case Kind::kAllocation:
      return connector.send(output.to,
                            EcAllocation{output.key, output.verdict, output.reservation, output.bulk_address});
    case Kind::kInjection: return connector.send(output.to, EcInjection{output.key, output.verdict});
    case Kind::kCancel: return connector.send(output.to, EcCancel{output.key, EcChannel::kAllocation});
    case Kind::kOpenSink: {
      const EcInput input = input_of(output.key);
      const EcMeta& meta = table_.find_receiver(input)->meta();
      StatusOr<EcPlaces> places = executor_.row_places(cache_.blocks_of(input), meta.num_positions, meta.width);
      CHECK(places.ok(), error_message(places.status()));  // check() asked
      return connector.open_sink(output.reservation, output.key, output.num_bytes, *std::move(places));
    }
    case Kind::kCloseSink: return connector.close_sink(output.reservation);
    case Kind::kReady: return has_news_.push_back(output.key.request_id);
  }
}

// ---- Requests

Status RemoteInputs::check_items(std::span<const EncoderItem> items) const {
  const auto num_remote = std::ranges::count_if(items, [](const EncoderItem& item) { return item.remote.has_value(); });
  if (num_remote != std::ssize(items)) {
    if (num_remote > 0) return refuse("some items of the request are encoded elsewhere, and some are not");
    if (has_encoder(info_.spec.part)) return ok_status();
    return field_error("prompt", "this decode instance encodes nothing: an encode instance has to send its rows first");
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const RemoteInput& remote = *items[i].remote;
    const bool is_crossed = has(items[i].consumers, Consumers::kCross);
    const int32_t most =
        std::min(is_crossed ? info_.max_encoder_len : info_.max_decoder_len, info_.max_num_encoder_tokens);
    if (remote.input_id != i) return refuse("input ", i, " has the number ", remote.input_id);
    if (remote.num_positions < 1 || remote.num_positions > most) {
      return refuse("input ", i, " has ", remote.num_positions, " positions: expected 1 to ", most);
    }
    if (!items[i].token_ids.empty() && std::ssize(items[i].token_ids) != remote.num_positions) {
      return refuse("input ", i, " has ", items[i].token_ids.size(), " ids for ", remote.num_positions, " positions");
    }
    if (info_.reads_encoder_ids && items[i].token_ids.empty()) {
      return refuse("input ", i, " has no ids, and the model's shortlist reads them: give --shortlist none");
    }
    if (items[i].features != nullptr) return refuse("input ", i, " has media, and is encoded elsewhere");
  }
  return ok_status();
}

// What was announced under the request's name must be what it asks for.
Status RemoteInputs::check_announced(const std::string& name, std::span<const EncoderItem> items) const {
  for (size_t i = 0; i < items.size(); ++i) {
    const RemoteInput& remote = *items[i].remote;
    const EcInput input{name, static_cast<uint32_t>(i)};
    const EcReceiver* receiver = table_.find_receiver(input);
    if (receiver == nullptr) continue;
    const bool was_here = receiver->state() == EcReceiverState::kConsumed && receiver->meta().digest == remote.digest;
    if (was_here && !cache_.has_use(input)) {
      const BlockSpaceManager& blocks = scheduler_.blocks();
      if (blocks.find_written(remote.digest, info_.rows_spec) == remote.num_positions) continue;
      return with_param(absl::UnavailableError(str_cat("input ", i,
                                                       " was here, waited too long for its request, and is gone: it "
                                                       "has to be encoded again")),
                        "encoded_inputs");
    }
    if (receiver->is_over()) continue;
    const EcMeta& meta = receiver->meta();
    if (meta.digest != remote.digest) return refuse("input ", i, " was announced with another digest");
    if (meta.num_positions != remote.num_positions) {
      return refuse("input ", i, " was announced with ", meta.num_positions, " positions, not ", remote.num_positions);
    }
    if (const int32_t width = info_.spec.width_of(items[i].consumers); meta.width != width) {
      return refuse("input ", i, " was announced with rows of width ", meta.width, ", not ", width);
    }
  }
  return ok_status();
}

// Whether all rows are here. Equal outputs that came for other requests count.
bool RemoteInputs::claim(const std::string& name, std::span<const EncoderItem> items) {
  for (size_t i = 0; i < items.size(); ++i) {
    const RemoteInput& remote = *items[i].remote;
    cache_.check_and_update_cache({{name, static_cast<uint32_t>(i)}, remote.digest, remote.num_positions});
  }
  const bool is_here = table_.claim(name, static_cast<int32_t>(items.size()), clock_.now(), outputs_);
  perform();
  return is_here;
}

void RemoteInputs::keep_trace(const InputStage::Request& request) {
  if (request.options.trace != nullptr) traces_.insert_or_assign(request.id, request.options.trace);
}

StatusOr<bool> RemoteInputs::take(InputStage::Request& request) {
  const std::vector<EncoderItem>& items = request.inputs.items;
  RETURN_IF_ERROR(check_items(items));
  if (items.empty() || !items.front().remote.has_value()) return true;
  if (request.params.encoder_no_repeat_ngram_size > 0 && info_.spec.encoder_reads_ids() &&
      items.front().token_ids.empty()) {
    return field_error("encoder_no_repeat_ngram_size", "the ids of the encoder's input did not come with its rows");
  }
  const Status fits = scheduler_.check_admission(
      items, std::ssize(request.inputs.prompt_token_ids) + request.params.max_tokens, request.params.num_seqs());
  if (!fits.ok()) return with_advice(fits, request.params);
  const bool asks = items.front().content != nullptr;
  const std::string id = request.id;
  if (asks && (request.encoded.has_value() || take_held(id, items))) {
    keep_trace(request);
    return true;
  }
  const std::string name = asks ? begin_asking(id).name : id;
  RETURN_IF_ERROR(check_announced(name, items));
  has_uses_.insert(id);
  if (asks) keep_trace(request);
  if (claim(name, items)) {
    if (asks) table_.count_hits(std::ssize(items));
    return true;
  }
  const TimePoint arrival = *request.options.arrival_time;
  Awaiting awaiting{std::move(request), arrival + options_.max_wait, next_arrival_++};
  if (awaiting.request.options.deadline.has_value()) awaiting.deadline = *awaiting.request.options.deadline;
  if (asks) ask(name, awaiting.request.inputs.items, awaiting.deadline);
  deadlines_.emplace(awaiting.deadline, id);
  awaiting_inputs_.emplace(id, std::move(awaiting));
  return false;
}

void RemoteInputs::collect_ready(std::vector<InputStage::Request>& ready, std::vector<RequestOutput>& ended) {
  if (has_news_.empty()) return;
  std::vector<std::pair<uint64_t, std::string>> ids;  // in order of arrival
  for (const std::string& name : has_news_) {
    const std::string& id = request_of(name);
    const auto found = awaiting_inputs_.find(id);
    if (found != awaiting_inputs_.end()) {
      ids.emplace_back(found->second.arrival, id);
    } else if (asked_.contains(id)) {
      collect_group(id, ended);
    }
  }
  has_news_.clear();
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const auto& [arrival, id] : ids) {
    const std::vector<EncoderItem>& items = awaiting_inputs_.at(id).request.inputs.items;
    if (const Status same = check_announced(name_of(id), items); !same.ok()) {
      lose(id, same, ended);
    } else if (claim(name_of(id), items)) {
      ready.push_back(remove(id));
    }
  }
}

void RemoteInputs::end_overdue(std::vector<InputStage::Request>& ready, std::vector<RequestOutput>& ended) {
  for (size_t i = 0; i < kMaxEvents && !deadlines_.empty() && deadlines_.begin()->first <= clock_.now(); ++i) {
    const std::string id = deadlines_.begin()->second;
    const auto found = awaiting_inputs_.find(id);
    const bool is_too_late = found != awaiting_inputs_.end() && found->second.request.options.deadline.has_value();
    if (!is_too_late && fall_back(id, ready)) continue;
    const size_t num_items =
        found != awaiting_inputs_.end() ? found->second.request.inputs.items.size() : asked_.at(id).group_items.size();
    size_t num_missing = 0;
    for (size_t item = 0; item < num_items; ++item) {
      num_missing += cache_.is_written({name_of(id), static_cast<uint32_t>(item)}) ? 0 : 1;
    }
    const Status late = absl::UnavailableError(
        str_cat(num_missing, " of ", num_items, " encoder inputs did not come from an encode instance in time"));
    lose(id, asked_.contains(id) ? late : with_param(late, "encoded_inputs"), ended);
  }
}

void RemoteInputs::end_failed(std::vector<InputStage::Request>& ready, std::vector<RequestOutput>& ended) {
  for (const Lost& failed : failed_) {
    const auto asker = askers_.find(failed.request_id);
    if (asker == askers_.end()) continue;
    const std::string id = asker->second;
    if (absl::IsUnavailable(failed.why) && fall_back(id, ready)) continue;
    lose(id, failed.why, ended);
  }
  failed_.clear();
}

// The rows of a request will not come.
void RemoteInputs::lose(const std::string& request_id, const Status& why, std::vector<RequestOutput>& ended) {
  if (awaits(request_id)) {
    ended.push_back(output_of(remove(request_id), why));
    end(request_id);
  } else if (const auto asked = asked_.find(request_id); asked != asked_.end() && !asked->second.group_items.empty()) {
    stop_waiting(asked->second);
    lost_.push_back({.request_id = request_id, .why = why});
  }
}

void RemoteInputs::take_lost(std::vector<Lost>& lost) {
  lost.clear();
  std::swap(lost, lost_);
}

InputStage::Request RemoteInputs::remove(const std::string& request_id) {
  const auto found = awaiting_inputs_.find(request_id);
  deadlines_.erase({found->second.deadline, request_id});
  InputStage::Request request = std::move(found->second.request);
  if (const auto asked = asked_.find(request_id); asked != asked_.end()) {
    for (size_t i = 0; i < request.inputs.items.size(); ++i) {
      options_.asker->withdraw({asked->second.name, static_cast<uint32_t>(i)});
    }
  }
  awaiting_inputs_.erase(found);
  return request;
}

RequestOutput RemoteInputs::abort(const std::string& request_id) {
  RequestOutput output = output_of(remove(request_id), ok_status());
  end(request_id);
  return output;
}

// Of a request that never was a group. Without an error: it was aborted.
RequestOutput RemoteInputs::output_of(InputStage::Request request, const Status& error) const {
  RequestOutput output;
  output.request_id = request.id;
  output.encoder_prompt = std::move(request.inputs.encoder_prompt);
  output.prompt = std::move(request.inputs.prompt);
  output.prompt_token_ids = std::move(request.inputs.prompt_token_ids);
  output.metrics.total_s = seconds(clock_.now() - *request.options.arrival_time);
  output.finished = true;
  if (!error.ok()) {
    output.error = error_message(error);
    output.error_code = error.code();
    output.error_param = error_param(error);
  } else if (!request.params.score_only) {
    output.outputs.emplace_back().finish_reason = FinishReason::kAbort;
  }
  return output;
}

void RemoteInputs::consume(const std::string& request_id, size_t num_items) {
  if (has_uses_.erase(request_id) == 0) return;
  const std::string name = name_of(request_id);
  for (size_t i = 0; i < num_items; ++i) table_.consume({name, static_cast<uint32_t>(i)}, clock_.now());
  if (!asked_.contains(request_id)) return;
  // Of what it has asked for, equal rows that came for others were taken: the rest is on its way, and would hold its
  // room until it is unclaimed for too long.
  table_.abort(name, clock_.now(), outputs_);
  forget_asked(request_id);
  perform();
}

void RemoteInputs::end(const std::string& request_id) {
  traces_.erase(request_id);
  if (has_uses_.erase(request_id) == 0) return;
  table_.abort(name_of(request_id), clock_.now(), outputs_);
  forget_asked(request_id);
  perform();
}

void RemoteInputs::list_awaiting(std::vector<std::string>& ids) const {
  std::vector<std::pair<uint64_t, const std::string*>> arrivals;
  arrivals.reserve(awaiting_inputs_.size());
  for (const auto& [id, awaiting] : awaiting_inputs_) arrivals.emplace_back(awaiting.arrival, &id);
  std::ranges::sort(arrivals);
  ids.resize(arrivals.size());
  for (size_t i = 0; i < arrivals.size(); ++i) ids[i] = *arrivals[i].second;
}

EcStats RemoteInputs::stats() const {
  EcStats stats = table_.stats();
  stats.num_dropped_messages = num_dropped_messages();
  return stats;
}

TimePoint RemoteInputs::next_time() const {
  if (!inbox_->is_empty() || !has_news_.empty()) return TimePoint::min();
  const TimePoint deadline = deadlines_.empty() ? TimePoint::max() : deadlines_.begin()->first;
  return std::min(deadline, table_.next_time());
}

}  // namespace transept
