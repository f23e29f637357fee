#include "apps/jsonl_loop.h"

#include <optional>

#include "apps/line_reader.h"
#include "apps/output_file.h"
#include "apps/verbs.h"
#include "request/request.h"
#include "request/result_json.h"

namespace transept {
namespace {

// {"id": id, ...members of answer}
Json with_id(const Json& id, const Json& answer) {
  Json line = Json::object();
  line.set("id", id);
  for (const auto& [name, value] : answer.as_object()) line.set(name, value);
  return line;
}

StatusOr<Json> parse_object(const std::string& text) {
  ASSIGN_OR_RETURN(Json body, Json::parse(text));
  if (!body.is_object()) return invalid_argument("expected an object, not ", body.kind_name());
  return body;
}

}  // namespace

int run_jsonl(std::string_view verb, const Flags& flags, const std::vector<Json>& inline_bodies,
              FunctionRef<StatusOr<Json>(const Json& body)> answer) {
  if (const Status files = check_distinct_files(flags, {"input", "output"}); !files.ok())
    return usage_error(verb, files);
  StatusOr<OutputFile> output = OutputFile::open(flags.text_or("output", "-"), true);
  if (!output.ok()) return usage_error(verb, with_prefix(output.status(), flags.name_of("output")));
  bool failed = false;
  int64_t count = 0;
  const auto handle = [&](const StatusOr<Json>& body) {
    const Json fallback_id(count++);
    const Json id = body.ok() ? request_id(*body, fallback_id) : fallback_id;
    const StatusOr<Json> result = body.ok() ? answer(*body) : StatusOr<Json>(body.status());
    failed |= !result.ok();
    output->write_line((result.ok() ? with_id(id, *result) : error_json(id, result.status())).dump());
  };
  for (const Json& body : inline_bodies) handle(body);
  if (flags.has("input")) {
    StatusOr<LineReader> reader = LineReader::open(*flags.text("input"));
    if (!reader.ok()) return usage_error(verb, with_prefix(reader.status(), flags.name_of("input")));
    std::string line;
    int64_t num_lines = 0;
    while (reader->next(true, line) != LineReader::Result::kEnd) {
      ++num_lines;
      if (trim(line).empty()) continue;
      StatusOr<Json> body = parse_object(line);
      handle(body.ok() ? std::move(body) : StatusOr<Json>(with_prefix(body.status(), str_cat("line ", num_lines))));
    }
    if (!reader->status().ok()) return usage_error(verb, reader->status());
  }
  if (const Status closed = output->close(); !closed.ok()) return usage_error(verb, closed);
  return failed ? kExitSomeFailed : kExitOk;
}

}  // namespace transept
