// `transept generate`: prompts from arguments or JSONL lines through the engine, results in input order.
#include <deque>
#include <map>
#include <optional>

#include "apps/engine_flags.h"
#include "apps/interrupt.h"
#include "apps/line_reader.h"
#include "apps/output_file.h"
#include "apps/progress.h"
#include "apps/request_flags.h"
#include "apps/stats_json.h"
#include "apps/verbs.h"
#include "base/log.h"
#include "engine/prepare_request.h"
#include "request/result_json.h"

namespace transept {
namespace {

// Requests handed to the engine and not finished, at most: more would only wait there.
constexpr size_t kMaxInFlight = 512;
// Results that wait for an earlier one to finish, at most: bounds memory when one request is very long.
constexpr size_t kMaxWaitingResults = 65536;

class GenerateRun final {
 public:
  GenerateRun(LoadedModel& model, const Flags& flags, Json defaults, OutputFile& output)
      : model_(model),
        defaults_(std::move(defaults)),
        output_(output),
        score_only_(flags.is_on("score")),
        as_json_(flags.has("input") || flags.is_on("json") || flags.is_on("score") || flags.has("logprobs")),
        progress_("requests") {}

  // Reads, steps and writes until everything is done or the user interrupts. Errors: the engine's.
  Status run_lines(LineReader& reader);
  Status run_texts(const std::vector<std::string>& texts);

  int64_t num_requests() const { return num_requests_; }
  int64_t num_failed() const { return num_failed_; }
  bool has_unread() const { return total_ < 0; }
  std::vector<std::string> unfinished() const;

 private:
  struct Slot {
    Json id;
    std::optional<std::string> line;  // the result, once there is one
  };

  void add_line(const std::string& line);
  void add_request(const Json& body, const Json& fallback_id);
  void resolve_slot(size_t index, std::string line);
  void fail(size_t index, const Status& status);
  Status step();
  void flush();
  std::string text_lines(const RequestOutput& output) const;
  void show_progress();

  LoadedModel& model_;
  Json defaults_;
  OutputFile& output_;
  bool score_only_;
  bool as_json_;
  Progress progress_;
  std::deque<Slot> slots_;  // from first_slot_ on, in input order
  size_t first_slot_ = 0;
  std::map<std::string, size_t> in_flight_;  // engine request id -> slot
  std::vector<RequestOutput> finished_;
  int64_t num_requests_ = 0, num_done_ = 0, num_failed_ = 0, total_ = -1;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Status GenerateRun::run_lines(LineReader& reader) {
  bool ended = false;
  std::string line;
  while (!interrupted()) {
    while (!ended && in_flight_.size() < kMaxInFlight && slots_.size() < kMaxWaitingResults && !interrupted()) {
      flush();  // before waiting for more input
      const LineReader::Result got = reader.next(in_flight_.empty(), line);
      ended = got == LineReader::Result::kEnd;
      if (got != LineReader::Result::kLine) break;
      if (!trim(line).empty()) add_line(line);
    }
    if (ended) total_ = num_requests_;
    flush();
    if (in_flight_.empty() && ended) return reader.status();
    if (!in_flight_.empty()) RETURN_IF_ERROR(step());
  }
  flush();
  return ok_status();
}

Status GenerateRun::run_texts(const std::vector<std::string>& texts) {
  total_ = static_cast<int64_t>(texts.size());
  size_t next = 0;
  while (!interrupted() && (next < texts.size() || !in_flight_.empty())) {
    for (; next < texts.size() && in_flight_.size() < kMaxInFlight; ++next) {
      Json body = Json::object();
      body.set("prompt", texts[next]);
      ++num_requests_;
      add_request(body, Json(static_cast<int64_t>(next)));
    }
    flush();
    if (!in_flight_.empty()) RETURN_IF_ERROR(step());
  }
  flush();
  return ok_status();
}

void GenerateRun::add_line(const std::string& line) {
  const Json fallback_id(num_requests_++);
  const StatusOr<Json> body = Json::parse(line);
  if (!body.ok()) {
    slots_.push_back({fallback_id, {}});
    fail(first_slot_ + slots_.size() - 1, with_prefix(body.status(), str_cat("line ", num_requests_)));
    return;
  }
  add_request(*body, fallback_id);
}

void GenerateRun::add_request(const Json& body, const Json& fallback_id) {
  const size_t index = first_slot_ + slots_.size();
  slots_.push_back({request_id(body, fallback_id), {}});
  const Json whole = with_defaults(body, defaults_);
  const StatusOr<ParsedRequest> parsed = parse_request(whole, fallback_id);
  if (!parsed.ok()) return fail(index, parsed.status());
  for (const std::string& warning : parsed->warnings) log_warning("request ", slots_.back().id.dump(), ": ", warning);
  PrepareOptions options;
  options.engine_seed = model_.config.seed;
  options.request_key = seed_key(parsed->id.dump());
  options.score_only = score_only_;
  StatusOr<PreparedRequest> prepared = prepare_request(*parsed, *model_.prompts, model_.generation, options);
  if (!prepared.ok()) return fail(index, prepared.status());
  std::string id = parsed->id.is_string() ? parsed->id.as_string() : parsed->id.dump();
  if (in_flight_.contains(id)) id = str_cat(id, "#", num_requests_);  // users may repeat ids; the engine may not
  const Status added = model_.engine->add_request(id, std::move(prepared->inputs), prepared->params);
  if (!added.ok()) return fail(index, added);
  in_flight_.emplace(std::move(id), index);
}

void GenerateRun::fail(size_t index, const Status& status) {
  ++num_failed_;
  if (as_json_) {
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

Status GenerateRun::step() {
  finished_.clear();
  RETURN_IF_ERROR(model_.engine->step(finished_));
  for (const RequestOutput& output : finished_) {
    const auto found = in_flight_.find(output.request_id);
    const size_t index = found->second;
    in_flight_.erase(found);
    if (!output.error.empty()) {
      fail(index, output.error_param.empty() ? absl::InternalError(output.error)
                                             : field_error(output.error_param, output.error));
      continue;
    }
    const auto token_text = [&](int32_t id) {
      return model_.tokenizer == nullptr ? std::string() : model_.tokenizer->decode({&id, 1}, false);
    };
    resolve_slot(index,
                 as_json_ ? to_json(slots_[index - first_slot_].id, output, token_text).dump() : text_lines(output));
  }
  show_progress();
  return ok_status();
}

std::string GenerateRun::text_lines(const RequestOutput& output) const {
  std::string lines;
  for (const CompletionOutput& completion : output.outputs) lines += (lines.empty() ? "" : "\n") + completion.text;
  return lines;
}

// Writes what is finished, as far as nothing unfinished stands before it.
void GenerateRun::flush() {
  const auto write = [&](const std::string& line) {
    progress_.clear();
    output_.write_line(line);
  };
  while (!slots_.empty() && slots_.front().line.has_value()) {
    write(*slots_.front().line);
    slots_.pop_front();
    ++first_slot_;
  }
  if (!interrupted()) return;
  for (Slot& slot : slots_) {
    if (slot.line.has_value()) write(*slot.line);
  }
}

std::vector<std::string> GenerateRun::unfinished() const {
  std::vector<std::string> ids;
  for (const Slot& slot : slots_) {
    if (!slot.line.has_value()) ids.push_back(slot.id.dump());
  }
  return ids;
}

void GenerateRun::show_progress() {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double rate = static_cast<double>(model_.engine->stats().num_generated_tokens) / std::max(elapsed, 1e-9);
  progress_.update(num_done_, total_,
                   str_cat(static_cast<int64_t>(rate), " tokens/s, ", model_.engine->scheduler().running().size(),
                           " running, ", model_.engine->scheduler().waiting().size(), " waiting"));
}

Status write_stats(const Flags& flags, const LoadedModel& model, const GenerateRun& run, double elapsed) {
  const auto path = flags.text("stats-json");
  if (!path.has_value()) return ok_status();
  Json stats = engine_stats_json(model, elapsed);
  stats.set("num_requests", run.num_requests());
  stats.set("num_failed", run.num_failed());
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(*path, false));
  file.write_line(stats.dump());
  return file.close();
}

// Prompts: arguments, else --input, else lines of standard input as plain texts would be a guess: JSONL is asked for.
Status check_inputs(const Flags& flags) {
  const bool has_texts = flags.positional().size() > 1;
  if (flags.positional().empty()) return invalid_argument("which model? transept generate MODEL [PROMPT...]");
  if (has_texts && flags.has("input")) return invalid_argument("give prompts as arguments or by --input, not both");
  if (!has_texts && !flags.has("input")) {
    return invalid_argument("no prompt: give texts as arguments, or JSON lines by --input FILE (- for standard input)");
  }
  return check_distinct_files(flags, {"input", "output", "stats-json"});
}

// At most a screenful of ids; `unread` lines of the input were not even looked at.
std::string describe_unfinished(const std::vector<std::string>& ids, bool has_unread, int64_t num_read) {
  constexpr size_t kMaxListed = 32;
  std::string text;
  if (!ids.empty()) {
    std::vector<std::string> listed(ids.begin(),
                                    ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), kMaxListed)));
    text = "; not finished: " + join(listed, ", ");
    if (ids.size() > kMaxListed) text += str_cat(", ... (", ids.size(), " in all, the last ", ids.back(), ")");
  }
  if (has_unread) text += str_cat("; the input behind request ", num_read, " was not read");
  return text;
}

}  // namespace

int run_generate(const Flags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  if (const Status inputs = check_inputs(flags); !inputs.ok()) return usage_error("generate", inputs);
  StatusOr<EngineConfig> config = engine_config(flags);
  if (!config.ok()) return usage_error("generate", config.status());
  StatusOr<Json> defaults = request_defaults(flags);
  if (!defaults.ok()) return usage_error("generate", defaults.status());
  const bool is_text_run = flags.positional().size() > 1;
  if (is_text_run && !flags.has("log-level")) set_log_level(LogLevel::kWarning);
  config->max_trace_steps = flags.has("stats-json") ? 100000 : 0;

  std::optional<LineReader> reader;
  if (!is_text_run) {
    StatusOr<LineReader> opened = LineReader::open(*flags.text("input"));
    if (!opened.ok()) return usage_error("generate", with_prefix(opened.status(), "--input"));
    reader.emplace(std::move(opened).value());
  }
  const SteadyClock clock;
  StatusOr<LoadedModel> model = load_engine(*config, clock);
  if (!model.ok()) return usage_error("generate", model.status());
  for (const std::string& note : startup_notes(model->generation)) {
    const bool is_missing = note.find("not supported") != std::string::npos;
    is_missing ? log_warning(note) : log_info(note);
  }
  StatusOr<OutputFile> output = OutputFile::open(flags.text_or("output", "-"), true);
  if (!output.ok()) return usage_error("generate", with_prefix(output.status(), "--output"));

  catch_interrupts();
  GenerateRun run(*model, flags, std::move(defaults).value(), *output);
  std::vector<std::string> texts(flags.positional().begin() + 1, flags.positional().end());
  Status status = is_text_run ? run.run_texts(texts) : run.run_lines(*reader);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::vector<std::string> unfinished = run.unfinished();
  if (status.ok()) status = output->close();
  if (status.ok()) status = write_stats(flags, *model, run, elapsed);
  if (!status.ok()) return usage_error("generate", status);
  if (interrupted()) {
    log_error("interrupted: ", static_cast<size_t>(run.num_requests()) - unfinished.size(), " of ", run.num_requests(),
              " requests finished and written", describe_unfinished(unfinished, run.has_unread(), run.num_requests()));
    return kExitInterrupted;
  }
  return run.num_failed() > 0 ? kExitSomeFailed : kExitOk;
}

}  // namespace transept
