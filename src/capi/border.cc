#include "capi/border.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/utf8.h"

struct transept_error {
  transept_code code;
  const char* message;
  const char* field;
};

namespace transept {
namespace {

constexpr const char* kForked = "transept/forked";
constexpr size_t kMaxStructSize = 4096;

// The one error that exists without memory; all others are OwnedErrors.
constinit transept_error out_of_memory{TRANSEPT_OUT_OF_MEMORY, "there is not enough memory", ""};

struct OwnedError : transept_error {
  OwnedError(transept_code of, std::string message_of, std::string field_of)
      : transept_error{of, "", ""}, message_text(std::move(message_of)), field_text(std::move(field_of)) {
    message = message_text.c_str();
    field = field_text.c_str();
  }

  const std::string message_text, field_text;
};

template <typename T>
T* copy_of(std::span<const T> values) {
  auto* copy = static_cast<T*>(std::malloc(std::max<size_t>(values.size_bytes(), 1)));
  if (copy == nullptr) throw std::bad_alloc();
  std::ranges::copy(values, copy);
  return copy;
}

}  // namespace

Status forked_error(std::string_view message) {
  Status status = absl::FailedPreconditionError(std::string(message));
  status.SetPayload(kForked, absl::Cord());
  return status;
}

transept_code code_of(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return TRANSEPT_OK;
    case absl::StatusCode::kInvalidArgument: return TRANSEPT_INVALID_ARGUMENT;
    case absl::StatusCode::kOutOfRange: return TRANSEPT_OUT_OF_RANGE;
    case absl::StatusCode::kUnimplemented: return TRANSEPT_UNIMPLEMENTED;
    case absl::StatusCode::kNotFound: return TRANSEPT_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted: return TRANSEPT_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kUnavailable: return TRANSEPT_UNAVAILABLE;
    case absl::StatusCode::kDeadlineExceeded: return TRANSEPT_DEADLINE_EXCEEDED;
    case absl::StatusCode::kCancelled: return TRANSEPT_CANCELLED;
    case absl::StatusCode::kDataLoss: return TRANSEPT_DATA_LOSS;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied: return TRANSEPT_PERMISSION_DENIED;
    case absl::StatusCode::kFailedPrecondition:
      return status.GetPayload(kForked).has_value() ? TRANSEPT_FORKED : TRANSEPT_FAILED_PRECONDITION;
    default: return TRANSEPT_INTERNAL;
  }
}

transept_code report(const Status& status, transept_error** error) noexcept {
  if (status.ok()) return TRANSEPT_OK;
  try {
    const transept_code code = code_of(status);
    if (error == nullptr) return code;
    *error = new OwnedError(code, sanitize_utf8(error_message(status)), sanitize_utf8(error_param(status)));
    return code;
  } catch (...) {
    return report_out_of_memory(error);
  }
}

transept_code report_out_of_memory(transept_error** error) noexcept {
  if (error != nullptr) *error = &out_of_memory;
  return TRANSEPT_OUT_OF_MEMORY;
}

Status require(const void* pointer, std::string_view name) {
  return pointer != nullptr ? ok_status() : field_error(name, str_cat(name, " is NULL"));
}

StatusOr<std::string_view> read_text(const transept_text& text, std::string_view name) {
  ASSIGN_OR_RETURN(const std::span<const char> bytes, read_array(text.data, text.size, name));
  return std::string_view(bytes.data(), bytes.size());
}

Status check_struct_size(size_t struct_size, size_t first_size, std::string_view name) {
  if (struct_size >= first_size && struct_size <= kMaxStructSize) return ok_status();
  return field_error(str_cat(name, ".struct_size"), str_cat(name, ".struct_size is ", struct_size,
                                                            "; set it to sizeof, which is at least ", first_size));
}

Status check_unknown_members(std::span<const char> bytes, std::string_view name) {
  if (std::ranges::all_of(bytes, [](char byte) { return byte == 0; })) return ok_status();
  return with_param(unimplemented(name, ": a member is set that Transept " TRANSEPT_VERSION
                                        " does not know; the caller was built with a later transept.h"),
                    name);
}

char* copy_text(std::string_view text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::copy(text.begin(), text.end(), copy);
  copy[text.size()] = 0;
  return copy;
}

int32_t* copy_ids(std::span<const int32_t> ids) { return copy_of(ids); }
float* copy_samples(std::span<const float> samples) { return copy_of(samples); }

}  // namespace transept

// ---- Errors and versions of transept.h

transept_code transept_error_code(const transept_error* error) { return error == nullptr ? TRANSEPT_OK : error->code; }

const char* transept_error_message(const transept_error* error) { return error == nullptr ? "" : error->message; }

const char* transept_error_field(const transept_error* error) { return error == nullptr ? "" : error->field; }

void transept_error_free(transept_error* error) {
  if (error != &transept::out_of_memory) delete static_cast<transept::OwnedError*>(error);
}

const char* transept_code_name(transept_code code) {
  static constexpr const char* kNames[] = {"ok",        "invalid_argument",    "out_of_range",     "unimplemented",
                                           "not_found", "resource_exhausted",  "unavailable",      "deadline_exceeded",
                                           "cancelled", "data_loss",           "internal",         "out_of_memory",
                                           "forked",    "failed_precondition", "permission_denied"};
  return code >= 0 && static_cast<size_t>(code) < std::size(kNames) ? kNames[code] : "unknown";
}

const char* transept_version() { return TRANSEPT_VERSION; }

void transept_free(void* memory) { std::free(memory); }
