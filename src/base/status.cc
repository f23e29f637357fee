#include "base/status.h"

#include "absl/strings/cord.h"

namespace transept {
namespace {

constexpr char kParamPayload[] = "transept/param";

}  // namespace

Status with_param(Status status, std::string_view param) {
  if (!status.ok() && !status.GetPayload(kParamPayload).has_value()) {
    status.SetPayload(kParamPayload, absl::Cord(std::string(param)));
  }
  return status;
}

Status field_error(std::string_view param, std::string_view message) {
  return with_param(absl::InvalidArgumentError(std::string(message)), param);
}

std::string error_param(const Status& status) {
  const auto payload = status.GetPayload(kParamPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

Status with_prefix(const Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  Status prefixed(status.code(), str_cat(prefix, ": ", error_message(status)));
  const std::string param = error_param(status);
  return param.empty() ? prefixed : with_param(std::move(prefixed), param);
}

}  // namespace transept
