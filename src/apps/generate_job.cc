#include "apps/generate_job.h"

#include "base/log.h"
#include "request/result_json.h"

namespace transept {

Status GenerateJob::begin(const LoadedModel& model) {
  tokenizer_ = model.tokenizer.get();
  return ok_status();
}

std::string GenerateJob::result(const JobItem& item, const RequestOutput& output) {
  if (as_json_) {
    const auto token_text = [&](int32_t id) {
      return tokenizer_ == nullptr ? std::string() : tokenizer_->decode({&id, 1}, false);
    };
    return to_json(item.id, output, token_text).dump() + "\n";
  }
  std::string lines;
  for (const CompletionOutput& completion : output.outputs) {
    lines += (completion.structured.has_value() ? completion.structured->dump() : completion.text) + "\n";
  }
  return lines;
}

std::string GenerateJob::failure(const JobItem& item, const Status& status) {
  if (as_json_) return error_json(item.id, status).dump() + "\n";
  log_error("prompt ", item.index + 1, ": ", error_message(status));
  return "\n";
}

}  // namespace transept
