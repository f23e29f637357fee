#include "server/instance_routes.h"

#include <memory>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "disagg/input_codec.h"
#include "request/request.h"
#include "server/engine_call.h"
#include "server/input_service.h"
#include "server/replies.h"
#include "startup/encoder_part.h"

namespace transept {
namespace {

constexpr float kDefaultTimeout = 60;  // seconds

// What a body asks to be encoded, and the other fields.
struct EncodeBody {
  std::vector<EncoderItem> items;
  BodyFields fields;
};

// Numbers come as texts, and become numbers if they are some.
StatusOr<EncodeBody> read_features(const ServerContext& context, const HttpRequest& request) {
  EncodeBody body;
  std::vector<std::pair<std::string, std::string>> values = {{"prompt", "features"}};
  for (const char* name : {"request_id", "consumer", "attempt", "timeout"}) {
    if (auto value = query_parameter(request.query, name)) values.emplace_back(name, *std::move(value));
  }
  ASSIGN_OR_RETURN(ParsedRequest parsed, parse_body(form_to_json(values, field_routes::kEncode), field_routes::kEncode,
                                                    context.options.limits));
  body.fields = std::move(parsed.body);
  StatusOr<EncoderItem> item = decode_input(std::as_bytes(std::span(request.body)));
  if (!item.ok()) return with_prefix(item.status(), "the body");
  if (Status checked = context.model.prompts->check_item(*item); !checked.ok()) {
    return with_prefix(checked, "the body");
  }
  body.items.push_back(std::move(item).value());
  return body;
}

StatusOr<EncodeBody> read_prompts_of(const ServerContext& context, const HttpRequest& request) {
  EncodeBody body;
  ASSIGN_OR_RETURN(const Json json, json_body(context, request));
  ASSIGN_OR_RETURN(ParsedRequest parsed, parse_body(json, field_routes::kEncode, context.options.limits));
  context.metrics.count_unknown_fields(parsed.num_unknown_fields);
  RETURN_IF_ERROR(model_name(context, parsed.body.model).status());
  body.fields = std::move(parsed.body);
  ASSIGN_OR_RETURN(const std::vector<EncoderDecoderPrompt> prompts,
                   read_prompts(json, static_cast<size_t>(context.options.queue.max_requests), parsed.warnings));
  PromptProcessor::Options options(parsed.prompt_options);
  options.media = media_access(context);
  for (size_t i = 0; i < prompts.size(); ++i) {
    StatusOr<EncoderDecoderInputs> inputs = context.model.prompts->process_encoder(prompts[i], options);
    if (!inputs.ok()) return at_prompt(inputs.status(), i, prompts.size());
    for (EncoderItem& item : inputs->items) body.items.push_back(std::move(item));
  }
  return body;
}

StatusOr<InstanceId> find_consumer(const ServerContext& context, const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<InstanceRecord> peers, context.instance->broker().peers());
  for (const InstanceRecord& peer : peers) {
    if (peer.id.name != name || peer.role == InstanceRole::kEncode) continue;
    const EcSecret* secret = context.instance->secret();
    if (const std::string other = explain_other_secret(peer, secret == nullptr ? "" : secret->mark()); !other.empty()) {
      return absl::UnavailableError(other);
    }
    if (peer.model == context.model.fingerprint) return peer.id;
    return absl::UnavailableError(
        explain_other_model(context.model, peer.model, str_cat("the decode instance ", name)));
  }
  return with_param(not_found("no decode instance ", name, " is known"), "consumer");
}

class Encode final : public EngineCall {
 public:
  Encode(const ServerContext& context, ApiCallPtr call, std::string request_id)
      : context_(context), call_(std::move(call)), request_id_(std::move(request_id)) {}

  void on_output(size_t /*index*/, RequestOutput output) override { items_ = std::move(output.encoded_items); }
  void on_end(const Status& status) override {
    if (status.ok()) return reply(*call_, answer());
    const bool is_taken = absl::IsInvalidArgument(status) && error_param(status) == "id";
    reply_error(context_, *call_, is_taken ? absl::AlreadyExistsError(error_message(status)) : status);
  }

 private:
  Json answer() const {
    Json::Array items;
    for (const EncodedItem& item : items_) {
      Json place = Json::object();
      place.set("offset", item.splice_offset);
      place.set("length", item.num_positions);
      Json entry = Json::object();
      entry.set("input_id", static_cast<int64_t>(items.size()));
      entry.set("digest", digest_hex(item.digest));
      entry.set("num_positions", item.num_positions);
      entry.set("place", std::move(place));
      entry.set("seconds", item.seconds);
      items.push_back(std::move(entry));
    }
    Json body = Json::object();
    body.set("object", "encode");
    body.set("request_id", request_id_);
    body.set("items", std::move(items));
    body.set("outputs", Json::array());
    return body;
  }

  const ServerContext& context_;
  const ApiCallPtr call_;
  const std::string request_id_;
  std::vector<EncodedItem> items_;
};

Status start_encode(const ServerContext& context, const ApiCallPtr& call) {
  const HttpRequest& request = call->http;
  const std::string* type = request.header("Content-Type");
  const bool is_features = type != nullptr && ascii_lower(trim(*type)) == kFeaturesContentType;
  ASSIGN_OR_RETURN(EncodeBody body, is_features ? read_features(context, request) : read_prompts_of(context, request));
  RequestSpec spec;
  spec.id = body.fields.request_id.value_or(request.request_id);
  RETURN_IF_ERROR(check_ec_name("request_id", spec.id));
  RowsConsumer consumer;
  ASSIGN_OR_RETURN(consumer.instance, find_consumer(context, *body.fields.consumer));
  consumer.attempt = static_cast<uint32_t>(body.fields.attempt.value_or(0));
  const std::chrono::duration<float> timeout(body.fields.timeout.value_or(kDefaultTimeout));
  consumer.time_left = std::chrono::duration_cast<Duration>(timeout);
  spec.deadline = call->deadline(context);
  if (spec.deadline.has_value())
    consumer.time_left = std::min(consumer.time_left, *spec.deadline - context.clock.now());
  spec.consumer = std::move(consumer);
  make_digests(body.items, {});
  spec.inputs.items = std::move(body.items);
  auto route = std::make_shared<Encode>(context, call, spec.id);
  std::vector<RequestSpec> specs;
  specs.push_back(std::move(spec));
  run_requests(context, call, std::move(specs), std::move(route));
  return ok_status();
}

}  // namespace

HttpResponse answer_input(const ServerContext& context, const HttpRequest& request) {
  return answer_input_request(context.instance->secret(), *context.instance->asker(), request);
}

void handle_encode(const ServerContext& context, const ApiCallPtr& call) {
  if (auto refusal = refuse_strangers(context.instance->secret(), call->http))
    return call->responder->respond(*std::move(refusal));
  if (const Status status = start_encode(context, call); !status.ok()) reply_error(context, *call, status);
}

}  // namespace transept
