#include "load/openai_target.h"

#include <utility>

#include "load/answer_reader.h"

namespace transept {
namespace {

class OpenAiWorker final : public Target::Worker {
 public:
  OpenAiWorker(const OpenAiTarget::Options& options, const LoadRequests& requests, const Clock& clock)
      : options_(options),
        requests_(requests),
        clock_(clock),
        client_(options.url.host, options.url.port, {.timeout = options.timeout}),
        path_(str_cat(options.url.path, endpoint_path(options.endpoint))),
        headers_(authorization(options.api_key)) {}

  void prepare(int64_t index) override { request_ = requests_.request(index); }

  Exchange send() override {
    Exchange exchange;
    exchange.audio_seconds = request_.audio_seconds;
    exchange.sent = clock_.now();
    if (options_.stream) {
      send_for_stream(exchange);
    } else {
      const auto reply = client_.post(path_, request_.content_type, request_.body, headers_);
      exchange.end = clock_.now();
      if (note_reply(reply, exchange)) AnswerReader::read_whole(reply->body, exchange);
    }
    request_ = {};
    return exchange;
  }

 private:
  void send_for_stream(Exchange& exchange) {
    AnswerReader reader(options_.endpoint);
    const auto reply = client_.post_streamed(
        path_, request_.content_type, request_.body,
        [&](std::string_view bytes) { return reader.push(bytes, clock_.now()); }, headers_);
    exchange.end = clock_.now();
    const bool is_cancelled = absl::IsCancelled(reply.status());  // by the reader, who knows why
    if (is_cancelled || note_reply(reply, exchange)) reader.finish(exchange);
  }

  // True: an answer with status 200 is in.
  static bool note_reply(const StatusOr<HttpClient::Reply>& reply, Exchange& exchange) {
    if (!reply.ok()) {
      exchange.failure = failure_kind(reply.status());
      return false;
    }
    exchange.status = reply->status;
    if (reply->status == 200) return true;
    exchange.failure = str_cat("HTTP ", reply->status);
    exchange.failure_text = error_text(reply->body);
    return false;
  }

  // {"error": {"message": ..}}; "" of other bodies.
  static std::string error_text(std::string_view body) {
    const StatusOr<Json> json = Json::parse(body);
    const Json* error = json.ok() ? json->find("error") : nullptr;
    const Json* message = error == nullptr ? nullptr : error->find("message");
    return message != nullptr && message->is_string() ? message->as_string() : "";
  }

  const OpenAiTarget::Options& options_;
  const LoadRequests& requests_;
  const Clock& clock_;
  HttpClient client_;
  std::string path_;
  HttpHeaders headers_;
  LoadRequest request_;
};

}  // namespace

std::unique_ptr<Target::Worker> OpenAiTarget::make_worker() {
  return std::make_unique<OpenAiWorker>(options_, requests_, clock_);
}

HttpHeaders authorization(const std::string& api_key) {
  if (api_key.empty()) return {};
  return {{"Authorization", "Bearer " + api_key}};
}

std::string failure_kind(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded: return "timeout";
    case absl::StatusCode::kUnavailable:
      return error_message(status).starts_with("cannot connect") ? "cannot connect" : "the connection was lost";
    case absl::StatusCode::kResourceExhausted: return "an answer that is too long";
    case absl::StatusCode::kDataLoss: return "an answer cut short, or not HTTP";
    default: return error_message(status);
  }
}

}  // namespace transept
