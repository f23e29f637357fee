// `transept generate`: prompts from arguments, lines of standard input or JSON lines through the engine, results in
// input order.
#include <unistd.h>

#include <optional>

#include "apps/generate_job.h"
#include "apps/images_job.h"
#include "apps/line_reader.h"
#include "apps/request_flags.h"
#include "apps/run_job.h"
#include "apps/text_lines.h"
#include "apps/translate_job.h"
#include "apps/verbs.h"
#include "base/log.h"
#include "request/request.h"
#include "request/result_json.h"

namespace transept {
namespace {

class ArgumentsJob final : public GenerateJob {
 public:
  ArgumentsJob(std::vector<std::string> texts, bool as_json) : GenerateJob(as_json, {}), texts_(std::move(texts)) {}

  std::optional<int64_t> total() const override { return static_cast<int64_t>(texts_.size()); }

  Next next(OrderedRun& run) override {
    if (run.num_added() == texts_.size()) return Next::kEnd;
    Json body = Json::object();
    body.set("prompt", texts_[run.num_added()]);
    run.add_request(body, {.id = Json(run.num_requests())});
    return Next::kAdded;
  }

 private:
  std::vector<std::string> texts_;
};

class JsonLinesJob final : public GenerateJob {
 public:
  JsonLinesJob(LineReader reader, std::optional<Shard> shard) : GenerateJob(true, shard), reader_(std::move(reader)) {}

  int fd() const override { return reader_.fd(); }
  Status status() const override { return reader_.status(); }

  Next next(OrderedRun& run) override {
    LineReader::Result got;
    do {
      got = reader_.next(false, line_);
      num_lines_ += got == LineReader::Result::kLine ? 1 : 0;
    } while (got == LineReader::Result::kLine && (trim(line_).empty() || !take_input()));
    if (got == LineReader::Result::kEnd) return Next::kEnd;
    if (got == LineReader::Result::kNothingYet) return Next::kNothingYet;
    const StatusOr<Json> body = Json::parse(line_);
    if (body.ok()) {
      run.add_request(*body, item(request_id(*body, place())));
    } else {
      run.add_failure(item(place()), with_prefix(body.status(), str_cat("line ", num_lines_)));
    }
    return Next::kAdded;
  }

 private:
  LineReader reader_;
  std::string line_;
  int64_t num_lines_ = 0;
};

// Every line of standard input is a prompt, every answer a line.
class LinesJob final : public GenerateJob {
 public:
  LinesJob(TextLines lines, bool as_json, std::optional<Shard> shard)
      : GenerateJob(as_json, shard), lines_(std::move(lines)) {}

  std::string_view unit() const override { return "lines"; }
  int fd() const override { return lines_.fd(); }
  Status status() const override { return lines_.status(); }

  Next next(OrderedRun& run) override {
    LineReader::Result got;
    do {
      got = lines_.next(line_);
    } while (got == LineReader::Result::kLine && !take_input());
    if (got == LineReader::Result::kEnd) return Next::kEnd;
    if (got == LineReader::Result::kNothingYet) return Next::kNothingYet;
    if (run.num_added() == 0 && line_.text.starts_with("{\"")) {
      log_warning("standard input is read as lines of text; --input - reads it as JSON lines");
    }
    JobItem item = this->item(as_json() ? place() : Json(line_.place));
    item.line_end = line_.is_crlf ? "\r\n" : "\n";
    if (line_.is_too_long) {
      run.add_failure(std::move(item),
                      absl::OutOfRangeError(str_cat("the line is longer than ", lines_.max_bytes(), " bytes")));
    } else if (!as_json() && is_blank(line_.text)) {
      std::string end(item.line_end);
      run.add_text(std::move(item), std::move(end));
    } else {
      Json body = Json::object();
      body.set("prompt", line_.text);
      run.add_request(body, std::move(item));
    }
    return Next::kAdded;
  }

  std::string result(const JobItem& item, const RequestOutput& output) override {
    if (as_json()) return GenerateJob::result(item, output);
    std::string answers;
    for (const CompletionOutput& one : output.outputs) answers += as_one_line(one.text) + std::string(item.line_end);
    return answers;
  }

  std::string failure(const JobItem& item, const Status& status) override {
    if (as_json()) return GenerateJob::failure(item, status);
    log_error(item.id.as_string(), ": ", error_message(status));
    return std::string(item.line_end);
  }

 private:
  TextLines lines_;
  TextLine line_;
};

// What is shown as it comes is one text, and is certain from its first word on.
Status check_stream(const Flags& flags) {
  if (flags.positional().size() != 2) return invalid_argument("--stream shows one answer: give one PROMPT");
  for (const char* name : {"json", "score", "logprobs", "num-beams", "use-beam-search", "best-of"}) {
    if (flags.has(name)) return invalid_argument("--stream shows one text as it comes: leave --", name, " out");
  }
  return ok_status();
}

Status check_image_flags(const Flags& flags) {
  for (const char* name : {"input", "stream"}) {
    if (flags.has(name)) return invalid_argument("--image and ", flags.name_of(name), " do not go together");
  }
  if (flags.is_on("resume") && flags.text_or("output", "-") == "-") {
    return invalid_argument("--resume: standard output keeps no results that could be there already; give --output");
  }
  return check_distinct_files(flags, {"output", "stats-json"});
}

// A request for each picture of --image, and of the arguments behind the model.
int run_images(const Flags& flags, OrderedRun::Options options, std::optional<Shard> shard) {
  std::vector<std::string> arguments = flags.texts("image");
  arguments.insert(arguments.end(), flags.positional().begin() + 1, flags.positional().end());
  FoundFiles found = find_images(arguments, flags.is_on("recursive"));
  if (found.num_repeated > 0) log_warning(found.num_repeated, " images were given more than once");
  std::vector<std::string> paths;
  for (const FoundFile& file : found.inputs) paths.push_back(file.path);
  if (const Status apart = check_output_apart(flags, paths); !apart.ok()) return usage_error("generate", apart);
  std::set<std::string> done;
  if (flags.is_on("resume")) {
    StatusOr<std::set<std::string>> kept = keep_image_results(*flags.text("output"));
    if (!kept.ok()) return usage_error("generate", with_prefix(kept.status(), "--resume"));
    done = *std::move(kept);
  }
  ImagesJob job(std::move(found), flags.text("prompt"), done, shard);
  return run_job("generate", flags, std::move(options), job);
}

// Prompts: arguments, else the JSON lines of --input, else the lines of standard input, which a terminal is not.
Status check_inputs(const Flags& flags) {
  if (flags.positional().empty()) return invalid_argument("which model? transept generate MODEL [PROMPT...]");
  if (flags.has("image")) return check_image_flags(flags);
  for (const char* name : {"prompt", "recursive", "resume"}) {
    if (flags.has(name)) return invalid_argument(flags.name_of(name), " goes with --image alone");
  }
  const bool has_texts = flags.positional().size() > 1;
  if (has_texts && flags.has("input")) return invalid_argument("give prompts as arguments or by --input, not both");
  if (!has_texts && !flags.has("input") && isatty(STDIN_FILENO) == 1) {
    return invalid_argument("no prompt: give texts as arguments, lines of text on standard input, or JSON lines by ",
                            "--input FILE (- for standard input)");
  }
  if (flags.has("shard") && has_texts) {
    return invalid_argument(flags.name_of("shard"), " is for files of inputs: give --input, --image or lines of text");
  }
  if (flags.is_on("stream")) RETURN_IF_ERROR(check_stream(flags));
  return check_distinct_files(flags, {"input", "output", "stats-json"});
}

StatusOr<OrderedRun::Options> run_options(const Flags& flags) {
  OrderedRun::Options options;
  ASSIGN_OR_RETURN(options.defaults, request_defaults(flags));
  options.score_only = flags.is_on("score");
  options.stream = flags.is_on("stream");
  ASSIGN_OR_RETURN(options.request_timeout, request_timeout(flags));
  return options;
}

}  // namespace

int run_generate(const Flags& flags) {
  if (const Status inputs = check_inputs(flags); !inputs.ok()) return usage_error("generate", inputs);
  StatusOr<OrderedRun::Options> options = run_options(flags);
  if (!options.ok()) return usage_error("generate", options.status());
  const StatusOr<std::optional<Shard>> shard = shard_of(flags);
  if (!shard.ok()) return usage_error("generate", shard.status());
  if (flags.has("image")) return run_images(flags, std::move(options).value(), *shard);
  const bool as_json = flags.is_on("json") || options->score_only || flags.has("logprobs") || shard->has_value();
  if (flags.positional().size() > 1) {
    ArgumentsJob job({flags.positional().begin() + 1, flags.positional().end()}, as_json);
    return run_job("generate", flags, std::move(options).value(), job);
  }
  if (!flags.has("input")) {
    StatusOr<TextLines> lines = TextLines::open({"-"});
    if (!lines.ok()) return usage_error("generate", lines.status());
    LinesJob job(std::move(lines).value(), as_json, *shard);
    return run_job("generate", flags, std::move(options).value(), job);
  }
  StatusOr<LineReader> reader = LineReader::open(*flags.text("input"));
  if (!reader.ok()) return usage_error("generate", with_prefix(reader.status(), flags.name_of("input")));
  JsonLinesJob job(std::move(reader).value(), *shard);
  return run_job("generate", flags, std::move(options).value(), job);
}

}  // namespace transept
