#include "apps/ordered_run.h"

#include <algorithm>

#include "apps/interrupt.h"
#include "apps/request_flags.h"
#include "base/log.h"
#include "prompts/prepare_request.h"

namespace transept {
namespace {

// Results that wait for an earlier one to finish, at most: bounds memory when one request is very long.
constexpr size_t kMaxWaitingResults = 65536;

}  // namespace

Status OrderedRun::run(Job& job) {
  job_ = &job;
  progress_.emplace(job.unit());
  Status status = pump(job);
  progress_->clear();
  return status;
}

Status OrderedRun::pump(Job& job) {
  while (!interrupted() && output_.is_ok()) {
    Job::Next next = Job::Next::kAdded;
    while (next == Job::Next::kAdded && !has_read_all_ && has_room() && !interrupted()) {
      next = job.next(*this);
      has_read_all_ = next == Job::Next::kEnd;
      if (feature_bytes_ > 0) break;  // media take long to decode, and results are there meanwhile
    }
    RETURN_IF_ERROR(collect());
    if (in_flight_.empty() && has_read_all_) return job.status();
    show_progress();
    const bool is_dry = next == Job::Next::kNothingYet;
    const bool may_read_on = !has_read_all_ && !is_dry && has_room();
    if (!may_read_on) ready_.wait(is_dry ? job.fd() : -1);
  }
  return collect_last();
}

bool OrderedRun::has_room() const {
  return in_flight_.size() < kMaxInFlight && slots_.size() < kMaxWaitingResults && feature_bytes_ < kMaxFeatureBytes;
}

// ---- Requests

size_t OrderedRun::add_slot(JobItem item) {
  const size_t index = num_added();
  item.index = index;
  slots_.push_back({.item = std::move(item)});
  return index;
}

void OrderedRun::add_failure(JobItem item, const Status& status) { fail(add_slot(std::move(item)), status); }

void OrderedRun::add_text(JobItem item, std::string text) { resolve_slot(add_slot(std::move(item)), std::move(text)); }

void OrderedRun::add_request(const Json& body, JobItem item) {
  const size_t index = add_slot(std::move(item));
  StatusOr<RequestSpec> spec = make_spec(index, body);
  if (!spec.ok()) return fail(index, spec.status());
  std::string id = spec->id;
  size_t feature_bytes = 0;
  for (const EncoderItem& one : spec->inputs.items) {
    if (one.features != nullptr) feature_bytes += one.features->values.size() * sizeof(float);
  }
  StatusOr<RequestStream> stream = engine_.add_request(std::move(spec).value());
  if (!stream.ok()) return fail(index, stream.status());
  slot(index).stream = std::move(stream).value();
  in_flight_.insert(std::move(id));
  slot(index).feature_bytes = feature_bytes;
  feature_bytes_ += feature_bytes;
}

StatusOr<RequestSpec> OrderedRun::make_spec(size_t index, const Json& body) {
  const Json& item_id = slot(index).item.id;
  ASSIGN_OR_RETURN(const ParsedRequest parsed, parse_request(with_defaults(body, options_.defaults), item_id));
  for (const std::string& warning : parsed.warnings) log_warning("request ", item_id.dump(), ": ", warning);
  PrepareOptions options;
  options.engine_seed = model_.config.seed;
  options.request_key = seed_key(parsed.id.dump());
  options.score_only = options_.score_only;
  options.media.local_paths = true;  // whoever runs the command may read what it may read
  ASSIGN_OR_RETURN(PreparedRequest prepared, prepare_request(parsed, *model_.prompts, model_.generation, options));
  if (options_.stream && prepared.params.n > 1) {
    return field_error("n", str_cat("--stream shows one answer, and n is ", prepared.params.n));
  }
  slot(index).is_structured = parsed.return_structured.value_or(false);
  if (options_.stream && slot(index).is_structured) {
    return field_error("return_structured", "--stream shows texts as they come, and a form is that of a whole answer");
  }
  RequestSpec spec;
  spec.id = parsed.id.is_string() ? parsed.id.as_string() : parsed.id.dump();
  if (in_flight_.contains(spec.id)) spec.id += str_cat("#", index + 1);  // users may repeat ids; the engine may not
  spec.inputs = std::move(prepared.inputs);
  spec.params = std::move(prepared.params);
  spec.params.skip_cumulative_logprob = options_.skip_cumulative_logprob;
  spec.stream = options_.stream;
  if (options_.request_timeout.has_value()) spec.deadline = clock_.now() + *options_.request_timeout;
  spec.on_ready = [ready = &ready_, index] { ready->push(index); };
  return spec;
}

// ---- Results

// Takes what has ended, and writes it as far as nothing unfinished stands before it.
Status OrderedRun::collect() {
  Status status;
  for (const size_t index : ready_.take()) status.Update(read_news(index));
  for (; !slots_.empty() && slots_.front().text.has_value(); ++first_slot_) {
    write(slots_.front());
    slots_.pop_front();
  }
  return status;
}

// Nothing more is waited for: what has ended is written; with gaps, whatever stands before it.
Status OrderedRun::collect_last() {
  RETURN_IF_ERROR(collect());
  if (!job_->may_leave_gaps()) return ok_status();
  for (Slot& slot : slots_) {
    if (slot.text.has_value()) write(slot);
  }
  return ok_status();
}

Status OrderedRun::read_news(size_t index) {
  // A call may come after what it tells of was read: the slot has ended then, or is written already.
  while (index >= first_slot_ && slot(index).stream.has_value()) {
    std::optional<StatusOr<RequestOutput>> output = slot(index).stream->try_next();
    if (!output.has_value()) break;
    if (!output->ok()) {
      RETURN_IF_ERROR(engine_.failure());  // nobody's request is at fault
      end_slot(index);
      fail(index, output->status());
      continue;
    }
    if (options_.stream && !(*output)->outputs.empty()) output_.write((*output)->outputs.front().text);
    if (!(*output)->finished) continue;
    end_slot(index);
    if (slot(index).is_structured) add_structured(*model_.media->structured(), *model_.tokenizer, **output);
    resolve_slot(index, options_.stream ? "\n" : job_->result(slot(index).item, **output));
  }
  return ok_status();
}

void OrderedRun::end_slot(size_t index) {
  in_flight_.erase(slot(index).stream->request_id());
  feature_bytes_ -= slot(index).feature_bytes;
  slot(index).stream.reset();
}

void OrderedRun::fail(size_t index, const Status& status) {
  ++num_failed_;
  progress_->clear();  // the job may have something to say
  resolve_slot(index, job_->failure(slot(index).item, status));
}

void OrderedRun::resolve_slot(size_t index, std::string text) {
  slot(index).text = std::move(text);
  ++num_done_;
}

void OrderedRun::write(Slot& slot) {
  slot.is_written = true;
  if (slot.text->empty()) return;
  progress_->clear();
  output_.write(*slot.text);
}

std::vector<std::string> OrderedRun::unfinished() const {
  std::vector<std::string> ids;
  for (const Slot& slot : slots_) {
    if (!slot.is_written) ids.push_back(slot.item.id.dump());
  }
  return ids;
}

void OrderedRun::show_progress() {
  if (options_.stream || !options_.shows_progress || !progress_->is_due()) return;
  const EngineSnapshot engine = engine_.snapshot();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double rate = static_cast<double>(engine.stats.num_generated_tokens) / std::max(elapsed, 1e-9);
  progress_->update(num_done_, has_read_all_ ? num_requests() : job_->total().value_or(-1),
                    str_cat(static_cast<int64_t>(rate), " tokens/s, ", engine.running.size(), " running, ",
                            engine.waiting.size(), " waiting"));
}

}  // namespace transept
