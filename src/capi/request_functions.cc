// Requests, streams and encoded inputs of transept.h.
#include <cmath>
#include <memory>
#include <utility>

#include "capi/border.h"
#include "capi/callback_scope.h"
#include "capi/handles.h"
#include "capi/new_request.h"
#include "capi/new_result.h"
#include "engine/stream_deltas.h"

namespace transept {
namespace {

constexpr size_t kRequestV1 = sizeof(transept_request);

struct Given {
  std::shared_ptr<SharedModel> shared;
  transept_request request;
};

StatusOr<Given> read_given(const transept_model* model, const transept_request* request) {
  Given given;
  ASSIGN_OR_RETURN(given.shared, model_of(model));
  ASSIGN_OR_RETURN(given.request, read_struct(request, kRequestV1, "request"));
  return given;
}

// Adds the request. `given.request.flags` says whether outputs come as they are.
StatusOr<std::unique_ptr<transept_stream>> submit(const Given& given) {
  const std::shared_ptr<SharedModel>& shared = given.shared;
  ASSIGN_OR_RETURN(NewRequest made, make_request(*shared, given.request));
  if (given.request.on_ready != nullptr) {
    made.spec.on_ready = [on_ready = given.request.on_ready, data = given.request.on_ready_data] {
      const CallbackScope scope(Inside::kOnReady);
      on_ready(data);
    };
  }
  std::string request_id = made.spec.id;
  ASSIGN_OR_RETURN(RequestStream stream, shared->engine().add_request(std::move(made.spec)));
  std::unique_ptr<transept_stream> handle(
      new transept_stream{shared, std::move(made.id), std::move(stream), std::move(request_id), made.is_structured});
  if (given.request.cancellation != nullptr) {
    const auto abort = [weak = std::weak_ptr(shared), id = handle->request_id] {
      if (const std::shared_ptr<SharedModel> model = weak.lock()) (void)model->engine().abort(id);
    };
    handle->on_cancel = std::make_unique<transept_stream::OnCancel>(given.request.cancellation->source.get_token(),
                                                                    std::function<void()>(abort));
  }
  return handle;
}

// What has come, within the time; nullopt: nothing. REQUIRES: the stream has not ended.
StatusOr<std::optional<RequestOutput>> read_stream(transept_stream& stream, double timeout_seconds) {
  std::optional<StatusOr<RequestOutput>> output;
  if (timeout_seconds < 0) {
    output = stream.stream.next();
  } else {
    ASSIGN_OR_RETURN(const Duration timeout, read_seconds(timeout_seconds, "timeout_seconds"));
    output = timeout == Duration::zero() ? stream.stream.try_next() : stream.stream.next_for(timeout);
  }
  stream.has_ended = stream.stream.has_ended();
  if (!output.has_value()) return std::optional<RequestOutput>();
  if (!output->ok()) return output->status();
  return std::optional<RequestOutput>(std::move(*output).value());
}

// Marks a stream as in use by this thread for the rest of the block.
class InUse final {
 public:
  explicit InUse(std::atomic<bool>& flag) : flag_(flag), is_ours_(!flag.exchange(true)) {}
  ~InUse() {
    if (is_ours_) flag_ = false;
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

  bool is_ours() const { return is_ours_; }

 private:
  std::atomic<bool>& flag_;
  const bool is_ours_;
};

Status refuse(uint32_t flags, uint32_t refused, std::string_view why) {
  return (flags & refused) == 0 ? ok_status() : field_error("flags", why);
}

// Reads a stream to its end; the callback gets its pieces, and may be absent.
StatusOr<RequestOutput> read_to_end(transept_stream& stream, transept_delta_fn on_delta, void* data) {
  std::optional<RequestOutput> whole;
  for (bool is_aborted = false; !stream.has_ended;) {
    ASSIGN_OR_RETURN(std::optional<RequestOutput> piece, read_stream(stream, -1));
    if (on_delta != nullptr) {
      const transept_result delta = make_result(stream, *piece);
      const CallbackScope scope(Inside::kCallback);
      const bool stops = on_delta(data, &delta) != 0;
      if (stops && !is_aborted && !stream.has_ended) {
        is_aborted = true;
        stream.stream.abort();
      }
      if (is_aborted) on_delta = nullptr;
    }
    if (whole.has_value()) {
      merge_delta(*whole, std::move(*piece));
    } else {
      whole = std::move(piece);
    }
  }
  return std::move(*whole);
}

}  // namespace
}  // namespace transept

using namespace transept;  // NOLINT: the functions below are C's

transept_code transept_generate(transept_model* model, const transept_request* request, transept_result** result,
                                transept_error** error) {
  if (result != nullptr) *result = nullptr;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const Given given, read_given(model, request));
    RETURN_IF_ERROR(require(result, "result"));
    RETURN_IF_ERROR(CallbackScope::check_may_wait());
    RETURN_IF_ERROR(
        refuse(given.request.flags, TRANSEPT_REQUEST_STREAM,
               "flags: transept_generate gives one result; TRANSEPT_REQUEST_STREAM is for transept_submit"));
    const SharedModel::Call call(given.shared);
    ASSIGN_OR_RETURN(const std::unique_ptr<transept_stream> stream, submit(given));
    ASSIGN_OR_RETURN(RequestOutput output, read_to_end(*stream, nullptr, nullptr));
    *result = new transept_result(make_result(*stream, std::move(output)));
    return ok_status();
  });
}

transept_code transept_generate_stream(transept_model* model, const transept_request* request,
                                       transept_delta_fn on_delta, void* data, transept_result** result,
                                       transept_error** error) {
  if (result != nullptr) *result = nullptr;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(Given given, read_given(model, request));
    if (on_delta == nullptr) return field_error("on_delta", "on_delta is NULL");
    RETURN_IF_ERROR(CallbackScope::check_may_wait());
    RETURN_IF_ERROR(refuse(given.request.flags, TRANSEPT_REQUEST_SCORE, "flags: a score has no pieces to stream"));
    given.request.flags |= TRANSEPT_REQUEST_STREAM;
    const SharedModel::Call call(given.shared);
    ASSIGN_OR_RETURN(const std::unique_ptr<transept_stream> stream, submit(given));
    ASSIGN_OR_RETURN(RequestOutput output, read_to_end(*stream, on_delta, data));
    if (result != nullptr) *result = new transept_result(make_result(*stream, std::move(output)));
    return ok_status();
  });
}

transept_code transept_submit(transept_model* model, const transept_request* request, transept_stream** stream,
                              transept_error** error) {
  if (stream != nullptr) *stream = nullptr;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const Given given, read_given(model, request));
    RETURN_IF_ERROR(require(stream, "stream"));
    const SharedModel::Call call(given.shared);
    ASSIGN_OR_RETURN(std::unique_ptr<transept_stream> handle, submit(given));
    *stream = handle.release();
    return ok_status();
  });
}

transept_code transept_stream_next(transept_stream* stream, double timeout_seconds, transept_result** result,
                                   transept_error** error) {
  if (result != nullptr) *result = nullptr;
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(stream, "stream"));
    RETURN_IF_ERROR(require(result, "result"));
    RETURN_IF_ERROR(stream->shared->check_process());
    if (timeout_seconds != 0) RETURN_IF_ERROR(CallbackScope::check_may_wait());
    const SharedModel::Call call(stream->shared);
    const InUse in_use(stream->is_in_use);
    if (!in_use.is_ours()) return absl::FailedPreconditionError("another thread reads the stream");
    if (stream->has_ended) return absl::FailedPreconditionError("the stream has ended");
    ASSIGN_OR_RETURN(std::optional<RequestOutput> output, read_stream(*stream, timeout_seconds));
    if (output.has_value()) *result = new transept_result(make_result(*stream, std::move(*output)));
    return ok_status();
  });
}

int32_t transept_stream_has_ended(const transept_stream* stream) {
  return stream == nullptr || stream->has_ended ? 1 : 0;
}

transept_code transept_stream_abort(transept_stream* stream, transept_error** error) {
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(stream, "stream"));
    RETURN_IF_ERROR(stream->shared->check_process());
    const Status status = stream->shared->engine().abort(stream->request_id);
    return absl::IsNotFound(status) ? ok_status() : status;
  });
}

void transept_stream_free(transept_stream* stream) { free_handle(stream); }

transept_code transept_encode(transept_model* model, const transept_request* request, transept_encoded** encoded,
                              transept_error** error) {
  if (encoded != nullptr) *encoded = nullptr;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const Given given, read_given(model, request));
    RETURN_IF_ERROR(require(encoded, "encoded"));
    RETURN_IF_ERROR(CallbackScope::check_may_wait());
    const SharedModel::Call call(given.shared);
    ASSIGN_OR_RETURN(EncoderDecoderInputs inputs, make_encoder_inputs(*given.shared, given.request));
    ASSIGN_OR_RETURN(EncodedInput input, given.shared->engine().encode(std::move(inputs)).get());
    *encoded = new transept_encoded{given.shared, std::move(input)};
    return ok_status();
  });
}

int32_t transept_encoded_num_positions(const transept_encoded* encoded) {
  return encoded == nullptr ? 0 : num_positions(encoded->input.items());
}

void transept_encoded_free(transept_encoded* encoded) { free_handle(encoded); }
