#include "apps/generate_job.h"

#include "base/log.h"
#include "request/result_json.h"

namespace transept {
namespace {

std::string line_of(const JobItem& item, Json result) {
  if (item.input.has_value()) result.set("index", static_cast<int64_t>(*item.input));
  return result.dump() + "\n";
}

}  // namespace

Status GenerateJob::begin(const LoadedModel& model) {
  tokenizer_ = model.tokenizer.get();
  return ok_status();
}

std::string GenerateJob::result(const JobItem& item, const RequestOutput& output) {
  if (as_json_) {
    const auto token_text = [&](int32_t id) {
      return tokenizer_ == nullptr ? std::string() : tokenizer_->decode({&id, 1}, false);
    };
    return line_of(item, to_json(item.id, output, token_text));
  }
  std::string lines;
  for (const CompletionOutput& completion : output.outputs) {
    lines += (completion.structured.has_value() ? completion.structured->dump() : completion.text) + "\n";
  }
  return lines;
}

std::string GenerateJob::failure(const JobItem& item, const Status& status) {
  if (as_json_) return line_of(item, error_json(item.id, status));
  log_error("prompt ", item.index + 1, ": ", error_message(status));
  return "\n";
}

}  // namespace transept
