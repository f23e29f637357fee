#include "async/engine_thread.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "base/check.h"

namespace transept {
namespace {

Status output_error(const RequestOutput& output) {
  return output.error_param.empty() ? Status(output.error_code, output.error)
                                    : field_error(output.error_param, output.error);
}

}  // namespace

// ---- Its owner

EngineThread::EngineThread(std::unique_ptr<StepEngine> engine, int32_t max_queued_requests, const Clock& clock)
    : mailbox_(std::make_shared<EngineMailbox>(max_queued_requests)),
      clock_(clock),
      input_owner_(engine->input_owner()),
      engine_(std::move(engine)) {
  publish();
  // An engine that sleeps gives back what a dropped handle held, too. By shared ownership: handles may outlive us.
  engine_->set_on_input_dropped(
      std::make_shared<const std::function<void()>>([mailbox = mailbox_] { mailbox->input_dropped(); }));
  thread_ = std::thread([this] { run(); });
}

EngineThread::~EngineThread() {
  if (thread_.joinable()) stop();
}

std::unique_ptr<StepEngine> EngineThread::stop() {
  CHECK(thread_.joinable(), "the engine was stopped before");
  mailbox_->stop();
  thread_.join();
  engine_->set_on_input_dropped(nullptr);
  return std::move(engine_);
}

// ---- The engine thread

void EngineThread::run() {
  engine_->start([mailbox = mailbox_] { mailbox->wake(); });
  EngineMailbox::Work work;
  while (true) {
    mailbox_->take(time_to_sleep(), work);
    if (work.inputs_dropped) engine_->collect_dropped_inputs();
    for (EngineMailbox::EncodeCall& call : work.encodes) call.handle.set_value(engine_->encode(call.inputs));
    for (std::promise<int64_t>& cleared : work.cache_clearings) {
      const int64_t num_blocks = engine_->clear_cache();
      publish();  // whoever is told finds it in the next snapshot
      cleared.set_value(num_blocks);
    }
    for (EngineMailbox::NewRequest& request : work.added) admit(request);
    if (work.stop) break;
    for (const std::shared_ptr<RequestChannel>& channel : work.aborted) abort_in_flight(channel);
    if (num_deadlines_ > 0) expire();
    // Published before it is told: whoever has read an end finds it in the next snapshot.
    if (!work.added.empty() || !endings_.empty() || work.inputs_dropped) publish();
    deliver_endings();
    if (engine_->next_step_time() > clock_.now()) continue;
    step();
    publish();
    deliver_endings();
  }
  end_all(absl::UnavailableError("the engine was stopped before the request was finished"), counts_.aborted);
  publish();
  deliver_endings();
}

// Unset: for as long as nothing comes.
std::optional<Duration> EngineThread::time_to_sleep() const {
  TimePoint until = engine_->next_step_time();
  if (until == TimePoint::min()) return Duration::zero();
  if (num_deadlines_ > 0) {
    for (const auto& [id, request] : in_flight_) until = std::min(until, request.deadline.value_or(until));
  }
  if (until == TimePoint::max()) return std::nullopt;
  return std::max(Duration::zero(), until - clock_.now());
}

void EngineThread::admit(EngineMailbox::NewRequest& request) {
  const std::string& id = request.channel->request_id();
  in_flight_.emplace(id, InFlight{request.channel, request.arrival, request.deadline});
  num_deadlines_ += request.deadline.has_value() ? 1 : 0;
  Status added = mailbox_->failure();
  // Out of the list: the handle is dropped with this call, not when the list is next used.
  StepEngine::Request admitted{id, std::move(request.encoded), std::move(request.inputs), request.params,
                               request.options};
  if (added.ok()) {
    added = engine_->add(std::move(admitted));
  }
  if (added.ok()) return;
  ++counts_.failed;
  end(id, added);
}

void EngineThread::abort_in_flight(const std::shared_ptr<RequestChannel>& channel) {
  const auto found = in_flight_.find(channel->request_id());
  if (found == in_flight_.end() || found->second.channel != channel) return;  // it has ended
  ++counts_.aborted;
  end(channel->request_id(), engine_->abort_request(channel->request_id()));
}

void EngineThread::expire() {
  const TimePoint now = clock_.now();
  std::vector<std::pair<std::string, Status>> expired;
  for (const auto& [id, request] : in_flight_) {
    if (!request.deadline.has_value() || *request.deadline > now) continue;
    const StatusOr<RequestOutput> output = engine_->abort_request(id);
    CHECK(output.ok(), error_message(output.status()));
    size_t num_tokens = 0;
    for (const CompletionOutput& completion : output->outputs) num_tokens += completion.token_ids.size();
    expired.emplace_back(id, absl::DeadlineExceededError(
                                 str_cat("the request was not finished ", seconds_text(now - request.arrival),
                                         " after it arrived, past its deadline (",
                                         output->metrics.queue_s < 0 ? "it still waited to be started"
                                                                     : str_cat(num_tokens, " tokens were generated"),
                                         ")")));
  }
  counts_.expired += static_cast<int64_t>(expired.size());
  for (auto& [id, error] : expired) end(id, std::move(error));
}

void EngineThread::step() {
  outputs_.clear();
  if (const Status stepped = engine_->step(outputs_); !stepped.ok()) return fail(stepped);
  for (RequestOutput& output : outputs_) {
    const auto found = in_flight_.find(output.request_id);
    CHECK(found != in_flight_.end(), "the engine answered \"", output.request_id, "\", which is not in flight");
    if (!output.finished) {
      found->second.channel->push(std::move(output));
    } else if (output.error.empty()) {
      ++counts_.finished;
      const std::string id = output.request_id;
      end(id, std::move(output));
    } else {
      ++counts_.failed;
      end(output.request_id, output_error(output));
    }
  }
}

// Nothing can be done with an executor that has failed: everybody is told, and nothing new is taken.
void EngineThread::fail(const Status& error) {
  mailbox_->fail(error);
  end_all(error, counts_.failed);
}

void EngineThread::end_all(const Status& error, int64_t& count) {
  std::vector<std::string> ids;
  for (const auto& [id, request] : in_flight_) ids.push_back(id);
  for (const std::string& id : ids) {
    const StatusOr<RequestOutput> aborted = engine_->abort_request(id);  // its blocks come back
    CHECK(aborted.ok(), error_message(aborted.status()));
    end(id, error);
    ++count;
  }
}

// The request is the engine's no more; its stream is told by deliver_endings.
void EngineThread::end(const std::string& request_id, StatusOr<RequestOutput> result) {
  const auto found = in_flight_.find(request_id);
  num_deadlines_ -= found->second.deadline.has_value() ? 1 : 0;
  endings_.push_back({std::move(found->second.channel), std::move(result)});
  in_flight_.erase(found);
}

void EngineThread::deliver_endings() {
  ended_ids_.clear();
  for (const Ending& ending : endings_) ended_ids_.push_back(ending.channel->request_id());
  mailbox_->forget(ended_ids_);
  for (Ending& ending : endings_) {
    if (ending.result.ok()) {
      ending.channel->push(std::move(ending.result).value());
    } else {
      ending.channel->fail(ending.result.status());
    }
  }
  endings_.clear();
}

void EngineThread::publish() {
  engine_->describe(snapshot_);
  snapshot_.counts = counts_;
  mailbox_->publish(snapshot_);
}

}  // namespace transept
