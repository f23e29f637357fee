#include "apps/generate_run.h"

#include <algorithm>

#include "apps/interrupt.h"
#include "apps/request_flags.h"
#include "base/log.h"
#include "engine/prepare_request.h"
#include "request/result_json.h"

namespace transept {
namespace {

// Results that wait for an earlier one to finish, at most: bounds memory when one request is very long.
constexpr size_t kMaxWaitingResults = 65536;

}  // namespace

Status GenerateRun::run_lines(LineReader& reader) {
  bool ended = false;
  std::string line;
  while (!interrupted()) {
    bool is_dry = false;  // nothing to read yet
    while (!ended && has_room() && !interrupted()) {
      const LineReader::Result got = reader.next(false, line);
      ended = got == LineReader::Result::kEnd;
      is_dry = got == LineReader::Result::kNothingYet;
      if (got != LineReader::Result::kLine) break;
      if (!trim(line).empty()) add_line(line);
    }
    if (ended) total_ = num_requests_;
    RETURN_IF_ERROR(collect());
    if (in_flight_.empty() && ended) return reader.status();
    show_progress();
    const bool may_read_on = !ended && !is_dry && has_room();
    if (!may_read_on) ready_.wait(is_dry ? reader.fd() : -1);
  }
  return collect_last();
}

Status GenerateRun::run_texts(const std::vector<std::string>& texts) {
  total_ = static_cast<int64_t>(texts.size());
  size_t next = 0;
  while (!interrupted() && (next < texts.size() || !in_flight_.empty())) {
    for (; next < texts.size() && has_room(); ++next) {
      Json body = Json::object();
      body.set("prompt", texts[next]);
      ++num_requests_;
      add_request(body, Json(static_cast<int64_t>(next)));
    }
    if (!in_flight_.empty()) ready_.wait(-1);
    RETURN_IF_ERROR(collect());
    show_progress();
  }
  return collect_last();
}

bool GenerateRun::has_room() const { return in_flight_.size() < kMaxInFlight && slots_.size() < kMaxWaitingResults; }

// ---- Requests

void GenerateRun::add_line(const std::string& line) {
  const Json fallback_id(num_requests_++);
  const StatusOr<Json> body = Json::parse(line);
  if (!body.ok()) {
    slots_.push_back({fallback_id, {}, {}});
    fail(first_slot_ + slots_.size() - 1, with_prefix(body.status(), str_cat("line ", num_requests_)));
    return;
  }
  add_request(*body, fallback_id);
}

void GenerateRun::add_request(const Json& body, const Json& fallback_id) {
  const size_t index = first_slot_ + slots_.size();
  slots_.push_back({request_id(body, fallback_id), {}, {}});
  StatusOr<RequestSpec> spec = make_spec(index, body, fallback_id);
  if (!spec.ok()) return fail(index, spec.status());
  std::string id = spec->id;
  StatusOr<RequestStream> stream = engine_.add_request(std::move(spec).value());
  if (!stream.ok()) return fail(index, stream.status());
  slots_.back().stream = std::move(stream).value();
  in_flight_.insert(std::move(id));
}

StatusOr<RequestSpec> GenerateRun::make_spec(size_t index, const Json& body, const Json& fallback_id) {
  ASSIGN_OR_RETURN(const ParsedRequest parsed, parse_request(with_defaults(body, options_.defaults), fallback_id));
  for (const std::string& warning : parsed.warnings) log_warning("request ", slots_.back().id.dump(), ": ", warning);
  PrepareOptions options;
  options.engine_seed = model_.config.seed;
  options.request_key = seed_key(parsed.id.dump());
  options.score_only = options_.score_only;
  ASSIGN_OR_RETURN(PreparedRequest prepared, prepare_request(parsed, *model_.prompts, model_.generation, options));
  if (options_.stream && prepared.params.n > 1) {
    return field_error("n", str_cat("--stream shows one answer, and n is ", prepared.params.n));
  }
  RequestSpec spec;
  spec.id = parsed.id.is_string() ? parsed.id.as_string() : parsed.id.dump();
  if (in_flight_.contains(spec.id)) spec.id += str_cat("#", num_requests_);  // users may repeat ids; the engine may not
  spec.inputs = std::move(prepared.inputs);
  spec.params = std::move(prepared.params);
  spec.stream = options_.stream;
  if (options_.request_timeout.has_value()) spec.deadline = clock_.now() + *options_.request_timeout;
  spec.on_ready = [ready = &ready_, index] { ready->push(index); };
  return spec;
}

// ---- Results

// Takes what has ended, and writes it as far as nothing unfinished stands before it.
Status GenerateRun::collect() {
  Status status;
  for (const size_t index : ready_.take()) status.Update(read_news(index));
  for (; !slots_.empty() && slots_.front().line.has_value(); ++first_slot_) {
    write_line(*slots_.front().line);
    slots_.pop_front();
  }
  return status;
}

// Nothing more is waited for: what has ended is written, whatever stands before it.
Status GenerateRun::collect_last() {
  RETURN_IF_ERROR(collect());
  for (const Slot& slot : slots_) {
    if (slot.line.has_value()) write_line(*slot.line);
  }
  return ok_status();
}

Status GenerateRun::read_news(size_t index) {
  // A call may come after what it tells of was read: the slot has ended then, or is written already.
  while (index >= first_slot_ && slots_[index - first_slot_].stream.has_value()) {
    std::optional<StatusOr<RequestOutput>> output = slots_[index - first_slot_].stream->try_next();
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
    resolve_slot(index, options_.stream ? "" : result_line(index, **output));
  }
  return ok_status();
}

void GenerateRun::end_slot(size_t index) {
  Slot& slot = slots_[index - first_slot_];
  in_flight_.erase(slot.stream->request_id());
  slot.stream.reset();
}

void GenerateRun::fail(size_t index, const Status& status) {
  ++num_failed_;
  if (options_.as_json) {
    resolve_slot(index, error_json(slots_[index - first_slot_].id, status).dump());
  } else {
    log_error("prompt ", index + 1, ": ", error_message(status));
    resolve_slot(index, "");
  }
}

void GenerateRun::resolve_slot(size_t index, std::string line) {
  slots_[index - first_slot_].line = std::move(line);
  ++num_done_;
}

std::string GenerateRun::result_line(size_t index, const RequestOutput& output) const {
  const auto token_text = [&](int32_t id) {
    return model_.tokenizer == nullptr ? std::string() : model_.tokenizer->decode({&id, 1}, false);
  };
  if (options_.as_json) return to_json(slots_[index - first_slot_].id, output, token_text).dump();
  std::string lines;
  for (const CompletionOutput& completion : output.outputs) lines += (lines.empty() ? "" : "\n") + completion.text;
  return lines;
}

void GenerateRun::write_line(const std::string& line) {
  progress_.clear();
  output_.write_line(line);
}

std::vector<std::string> GenerateRun::unfinished() const {
  std::vector<std::string> ids;
  for (const Slot& slot : slots_) {
    if (!slot.line.has_value()) ids.push_back(slot.id.dump());
  }
  return ids;
}

void GenerateRun::show_progress() {
  if (options_.stream || !progress_.is_due()) return;
  const EngineSnapshot engine = engine_.snapshot();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double rate = static_cast<double>(engine.stats.num_generated_tokens) / std::max(elapsed, 1e-9);
  progress_.update(num_done_, total_,
                   str_cat(static_cast<int64_t>(rate), " tokens/s, ", engine.running.size(), " running, ",
                           engine.waiting.size(), " waiting"));
}

}  // namespace transept
