#include "apps/translate_job.h"

#include <algorithm>
#include <cstdio>

#include "apps/ordered_run.h"
#include "base/log.h"
#include "base/utf8.h"
#include "prompts/prepare_request.h"
#include "request/request.h"

namespace transept {
namespace {

// What ranks the answers of a search; without one, its unit: the mean log-probability of a token.
double ranking_score(const CompletionOutput& output) {
  const double num_tokens = static_cast<double>(std::max<size_t>(output.token_ids.size(), 1));
  return output.beam_score.value_or(output.cumulative_logprob / num_tokens);
}

}  // namespace

Status TranslateJob::begin(const LoadedModel& model) {
  tokenizer_ = model.tokenizer.get();
  if (options_.wants_beams && *options_.n_best > 1) {
    options_.fields.set("num_beams", std::max(*options_.n_best, model.generation.num_beams));
  }
  options_.fields.set("n", options_.n_best.value_or(1));
  if (options_.count_lines) total_ = lines_.count();
  // Without a tokenizer no text passes. Any text will do: what is wrong with it is wrong with every line.
  Json body = options_.fields;
  body.set("prompt", "a");
  ASSIGN_OR_RETURN(const ParsedRequest parsed, parse_request(body, Json(0)));
  return prepare_request(parsed, *model.prompts, model.generation, {}).status();
}

Job::Next TranslateJob::next(OrderedRun& run) {
  const LineReader::Result got = lines_.next(line_);
  if (got == LineReader::Result::kEnd) return Next::kEnd;
  if (got == LineReader::Result::kNothingYet) return Next::kNothingYet;
  JobItem item{.id = Json(line_.place), .index = run.num_added(), .line_end = line_.is_crlf ? "\r\n" : "\n"};
  if (line_.is_too_long) {
    run.add_failure(std::move(item),
                    absl::OutOfRangeError(str_cat("the line is longer than ", lines_.max_bytes(), " bytes")));
    return Next::kAdded;
  }
  if (is_blank(line_.text)) {
    std::string text = blank(item);
    run.add_text(std::move(item), std::move(text));
    return Next::kAdded;
  }
  if (!is_valid_utf8(line_.text)) log_warning(line_.place, ": is not UTF-8; what is broken is read as U+FFFD");
  Json body = options_.fields;
  body.set("prompt", line_.text);
  run.add_request(body, std::move(item));
  return Next::kAdded;
}

std::string TranslateJob::result(const JobItem& item, const RequestOutput& output) {
  if (output.outputs.empty()) return blank(item);
  const CompletionOutput& best = output.outputs.front();
  const bool has_prefix = options_.fields.find("decoder_prompt") != nullptr;
  const std::string prefix = has_prefix ? tokenizer_->decode(output.prompt_token_ids, true) : "";
  if (options_.warn_of_cuts && best.finish_reason == FinishReason::kLength) {
    log_warning(item.id.as_string(), ": the answer is cut at ", best.token_ids.size(), " tokens, the model's limit");
  }
  if (!options_.n_best.has_value()) return as_one_line(prefix + best.text) + std::string(item.line_end);
  std::string lines;
  for (const CompletionOutput& one : output.outputs) {
    lines += n_best_line(item.index, prefix + one.text, ranking_score(one)) + std::string(item.line_end);
  }
  return lines;
}

// Numbered lines need no one to stand in for what failed.
std::string TranslateJob::failure(const JobItem& item, const Status& status) {
  log_error(item.id.as_string(), ": ", error_message(status));
  return options_.n_best.has_value() ? "" : std::string(item.line_end);
}

// The translation of nothing is nothing, and certain.
std::string TranslateJob::blank(const JobItem& item) const {
  return (options_.n_best.has_value() ? n_best_line(item.index, "", 0) : "") + std::string(item.line_end);
}

std::string as_one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::string n_best_line(size_t index, std::string_view text, double score) {
  char number[32];
  std::snprintf(number, sizeof number, "%.6f", score);
  return str_cat(index, " ||| ", as_one_line(text), " ||| ", number);
}

}  // namespace transept
