// What the handles of transept.h are.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/json.h"
#include "capi/shared_model.h"
#include "capi/transept.h"
#include "core/request_output.h"
#include "speech/transcriber.h"

struct transept_model {
  std::shared_ptr<transept::SharedModel> shared;
};

struct transept_cancellation {
  pid_t process;
  std::stop_source source;
};

struct transept_encoded {
  std::shared_ptr<transept::SharedModel> shared;
  transept::EncodedInput input;
};

struct transept_stream {
  using OnCancel = std::stop_callback<std::function<void()>>;

  std::shared_ptr<transept::SharedModel> shared;
  transept::Json id;               // the caller's
  transept::RequestStream stream;  // under the engine's id
  std::string request_id;          // that one, for any thread
  bool is_structured = false;      // return_structured
  std::atomic<bool> is_in_use = false;
  std::atomic<bool> has_ended = false;
  std::unique_ptr<OnCancel> on_cancel = nullptr;
};

struct transept_result {
  transept::Json id;
  transept::RequestOutput output;
  std::shared_ptr<const transept::Tokenizer> tokenizer;  // may be null
  int32_t encoder_width = 0;
};

struct transept_transcript {
  transept::Transcript transcript;
  std::vector<std::vector<transept_word>> words;  // of each segment; point into transcript
};

namespace transept {

// The model of a handle. Errors: NULL, or a handle that is older than a fork.
inline StatusOr<std::shared_ptr<SharedModel>> model_of(const transept_model* model) {
  if (model == nullptr) return field_error("model", "model is NULL");
  RETURN_IF_ERROR(model->shared->check_process());
  return model->shared;
}

// Frees a handle of a model, except in a fork, where locks may be held by threads that do not exist.
template <typename Handle>
void free_handle(Handle* handle) {
  if (handle != nullptr && !handle->shared->is_forked()) delete handle;
}

}  // namespace transept
